"""Gantt charts: jobs as boxes over time and processors; of simulations, plans, negotiated runs.

The first two are coloured by waiting time, the last by what changed its size.

Nodes without planned jobs are left out: on a large machine the others would have no room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..auction.planning.plan import OVERDUE_S, Plan
from ..cluster.nodes import Node, Reservation, Resources
from ..cluster.snapshot import Snapshot
from ..cluster.text import plural
from ..negotiation.runtime.runtime_machine import places
from ..simulation.negotiated.negotiated_report import Negotiated
from ..simulation.nodes.node_result import NodeSimulation
from ..simulation.placement import Stay, lowest_first
from ..simulation.result import Simulation
from .canvas import (
    GREY,
    ORANGE,
    add_boxes,
    count_axis,
    legend_above,
    literal,
    name_nodes,
    new_figure,
    points_per_unit,
    save_figure,
    styled,
    time_unit,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

#: Up to this many jobs are drawn as boxes with edges; more are averaged into an image's cells.
_BOXES = 600
#: Cells of that image, at most: about those of the printed page.
_COLUMNS, _ROWS = 1500, 600
#: Light to dark, the lightest still apart from the white of idle processors.
_COLORS = ("#d3e1ee", "#8fb8da", "#3f83ba", "#1b4f86", "#0c2547")
#: Room that a digit of a job's number takes, in points.
_DIGIT_PT, _LINE_PT = 3.2, 6.0
#: Ticks of the scale of waiting times are at least so far apart, as a share of it.
_APART = 0.08
#: Colours darker than this value of the map carry white numbers.
_DARK = 0.55


class GanttBars(NamedTuple):
    """One box for each run of neighbouring processors that a job holds, in the axes' units."""

    job: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]

    def draw(self, axes: Axes, **looks: Any) -> None:
        """Draw the boxes with the looks of a PolyCollection."""
        sides = self.start, self.first, self.end - self.start, self.last - self.first
        add_boxes(axes, np.stack(sides, axis=1), **looks)


def draw_jobs(axes: Axes, boxes: GanttBars, wait: NDArray[np.float64], names: Sequence[str]) -> None:
    """Draw jobs into axes whose limits stand and begin at 0."""
    colors = _colors(wait[np.unique(boxes.job)])
    if len(np.unique(boxes.job)) > _BOXES:
        _draw_image(axes, boxes, wait, colors)
        return
    faces = colors.to_rgba(wait[boxes.job])
    # Edges darker than their boxes: of a job narrower than a line its edges are what is seen.
    boxes.draw(axes, facecolors=faces, edgecolors=faces * (0.6, 0.6, 0.6, 1), linewidths=0.3)
    figure = cast("Figure", axes.figure)
    figure.draw_without_rendering()  # fixes the axes' size, which says what names fit
    _draw_names(axes, boxes, names, colors.to_rgba(wait))


def label_waits(axes: Axes, wait: NDArray[np.float64], label: str) -> None:
    """Put the scale of waiting times beside the axes, where anybody waited."""
    if wait.any():
        from matplotlib.ticker import FixedLocator, NullLocator  # noqa: PLC0415 - may be absent

        colors = _colors(wait)
        bar = axes.figure.colorbar(colors, ax=axes, label=label, pad=0.01, aspect=30)
        bar.ax.yaxis.set_major_locator(FixedLocator(_ticks(colors, float(wait.max()))))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter("{x:,.15g}")


def _ticks(colors: ScalarMappable, largest: float) -> list[float]:
    """Return 0 and round numbers (1, 2, 5, tenfold) along the scale, far enough apart to read."""
    decades = range(-9, int(np.floor(np.log10(largest))) + 1)
    values = np.array([0.0, *(step * 10.0**decade for decade in decades for step in (1, 2, 5))])
    values = values[values <= largest]
    ticks, last = [0.0], 0.0
    for value, place in zip(values.tolist(), np.asarray(colors.norm(values)).tolist(), strict=True):
        if place - last >= _APART:
            ticks.append(value)
            last = place
    return ticks


def _colors(wait: NDArray[np.float64]) -> ScalarMappable:
    """Return the scale of waits: linear up to the median of jobs that waited, then logarithmic."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - the extra may be absent
    from matplotlib.colors import LinearSegmentedColormap, SymLogNorm  # noqa: PLC0415

    waited = wait[wait > 0]
    threshold = float(np.median(waited)) if len(waited) else 1.0
    norm = SymLogNorm(linthresh=threshold, vmin=0, vmax=float(waited.max(initial=threshold)))
    return ScalarMappable(norm, LinearSegmentedColormap.from_list("wait", _COLORS))


def _draw_names(axes: Axes, boxes: GanttBars, names: Sequence[str], colors: NDArray[np.float64]) -> None:
    """Write a job's name into its largest box, where it fits."""
    across, up = points_per_unit(axes)
    width, height = (boxes.end - boxes.start) * across, (boxes.last - boxes.first) * up
    written: set[int] = set()
    for box in np.argsort(-width * height, kind="stable").tolist():
        job = int(boxes.job[box])
        text = names[job]
        if job in written or width[box] < _DIGIT_PT * (len(text) + 0.5) or height[box] < _LINE_PT:
            continue
        written.add(job)
        middle = ((boxes.start[box] + boxes.end[box]) / 2, (boxes.first[box] + boxes.last[box]) / 2)
        color = "white" if colors[job][:3].mean() < _DARK else "#20242a"
        axes.annotate(literal(text), middle, ha="center", va="center", fontsize=5, color=color)


def _draw_image(axes: Axes, boxes: GanttBars, wait: NDArray[np.float64], colors: ScalarMappable) -> None:
    """Draw each cell in the colour of its jobs' mean waiting time, as dense as they fill it.

    Thousands of jobs are narrower than a dot of the page: boxes would hide each other there.
    """
    extent = axes.get_xlim()[1], int(axes.get_ylim()[1])
    columns, rows = _COLUMNS, min(_ROWS, extent[1])
    filled, waited = np.zeros((rows, columns)), np.zeros((rows, columns))
    across = np.stack([boxes.start, boxes.end]).T * (columns / extent[0])
    up = np.stack([boxes.first, boxes.last]).T * (rows / extent[1])
    for x, y, value in zip(across.tolist(), up.tolist(), wait[boxes.job].tolist(), strict=True):
        horizontal, across_cells = _cells(x[0], x[1], columns)
        vertical, up_cells = _cells(y[0], y[1], rows)
        part = up_cells[:, None] * across_cells
        filled[vertical, horizontal] += part
        waited[vertical, horizontal] += value * part
    image = colors.to_rgba(waited / np.maximum(filled, 1e-12))
    image[..., 3] = np.clip(filled, 0, 1)
    axes.imshow(
        image, origin="lower", aspect="auto", extent=(0, extent[0], 0, extent[1]), interpolation="none"
    )


def _cells(begin: float, end: float, count: int) -> tuple[slice, NDArray[np.float64]]:
    """Return the cells that a stretch touches, and how much of each it covers."""
    first, last = int(begin), min(int(np.ceil(end)), count)
    edges = np.arange(first, last + 1, dtype=np.float64)
    edges[0], edges[-1] = begin, end
    return slice(first, last), np.diff(edges)


def draw_gantt(result: Simulation, path: Path | None, *, name: str = "") -> Figure:
    """Draw the chart.

    Args:
        result: the outcome; the nodes of a machine that has any stand on the axis.
        path: file to write; None: none.
        name: of the log or workload, for the title.
    """
    with styled():
        figure, axes, seconds = _chart(3.6, max(result.makespan, 1), result.workload.requests.processors)
        write_title(axes, f"{result.policy} on {name}" if name else "")
        if isinstance(result, NodeSimulation):
            axes.set_ylabel("Cores, node by node")
            name_nodes(axes, result.empty.names, result.empty.total.cores.tolist())
        else:
            axes.set_ylabel("Processors")
            count_axis(axes)
        wait_unit, wait_seconds = time_unit(float(result.wait.max(initial=0)), largest="h")
        wait = np.zeros(len(result.starts))
        wait[result.started] = result.wait / wait_seconds
        names = [str(number) for number in result.workload.ids]
        starts, run = result.starts, result.workload.run
        boxes = _boxes_of(
            (job, starts[job] / seconds, (starts[job] + run[job]) / seconds, first, first + count)
            for job, runs in result.placed.items()
            for first, count in runs
        )
        draw_jobs(axes, boxes, wait, names)
        label_waits(axes, wait, f"Waiting time ({wait_unit})")
        save_figure(figure, path)
    return figure


def _chart(
    height: float, span_s: float, rows: int, since: str = "since the first submission"
) -> tuple[Figure, Axes, float]:
    """Return a chart of so many rows over a time, and the seconds of its unit."""
    figure, axes = new_figure(height, 1)
    unit, seconds = time_unit(span_s)
    axes.set_xlim(0, span_s / seconds)
    axes.set_ylim(0, rows)
    axes.set_xlabel(f"Time {since} ({unit})")
    return figure, axes, seconds


#: What has no end is drawn this much longer than the last end that is known.
_BEYOND = 1.1
_LEAST_S = 60.0


def draw_plan(snapshot: Snapshot, plan: Plan, path: Path | None) -> Figure:
    """Draw the chart; on each node jobs get the lowest free cores; nodes are in their order."""
    used = {name for one in plan.planned for name in one.nodes}
    nodes = tuple(node for node in snapshot.nodes if node.name in used or not used)
    stays = list(_stays(snapshot, plan, {node.name: place for place, node in enumerate(nodes)}))
    known = [time for _, stay in stays for time in (stay.start, stay.end) if time < inf]
    known += [one.end - plan.time for one in snapshot.reservations if one.start > plan.time]
    horizon = max([_LEAST_S, *known]) * (_BEYOND if any(stay.end == inf for _, stay in stays) else 1)
    with styled():
        figure, axes, seconds = _chart(3.6, horizon, sum(node.total.cores for node in nodes), "from now")
        axes.set_ylabel(f"{len(nodes)} of {len(snapshot.nodes)} nodes, core by core")
        name_nodes(axes, [node.name for node in nodes], [node.total.cores for node in nodes])
        write_title(axes, f"plan: {plural(len(plan.planned), 'job')}, {len(plan.unplanned)} not planned")
        _draw_reservations(axes, nodes, snapshot.reservations, (plan.time, seconds))
        running, planned = _planned_boxes(nodes, stays, horizon, seconds)
        if len(running.job):
            label = "running, to its time limit"
            running.draw(axes, facecolors=GREY, linewidths=0, alpha=0.55, label=label)
        wait_unit, wait_seconds = time_unit(max(known, default=0.0), largest="h")
        wait = np.array([(one.start - plan.time) / wait_seconds for one in plan.planned])
        if len(wait):
            draw_jobs(axes, planned, wait, [one.job for one in plan.planned])
            label_waits(axes, wait, f"Time until the start ({wait_unit})")
        if axes.get_legend_handles_labels()[0]:
            legend_above(axes, up=1, pad=0.2)
        save_figure(figure, path)
    return figure


def _stays(snapshot: Snapshot, plan: Plan, number: Mapping[str, int]) -> Iterator[tuple[int, Stay]]:
    """Yield each job on nodes with a number, with its place among the planned; −1: it runs."""

    def cores(nodes: Mapping[str, Resources]) -> list[tuple[int, int]]:
        return [(number[name], use.cores) for name, use in nodes.items() if name in number]

    for job in snapshot.running:
        end = inf if job.end_time is None else max(job.end_time - plan.time, OVERDUE_S)
        yield -1, Stay(0.0, end, cores(job.nodes))
    for place, one in enumerate(plan.planned):
        end = inf if one.end is None else one.end - plan.time
        yield place, Stay(one.start - plan.time, end, cores(one.nodes))


def _planned_boxes(
    nodes: Sequence[Node], stays: Sequence[tuple[int, Stay]], horizon: float, seconds: float
) -> tuple[GanttBars, GanttBars]:
    """Return the boxes of running and of planned jobs; those of neighbouring cores are one."""
    held = lowest_first([node.total.cores for node in nodes], dict(enumerate(stay for _, stay in stays)))
    rows = [
        (job, stay.start / seconds, min(stay.end, horizon) / seconds, first, first + count)
        for place, (job, stay) in enumerate(stays)
        for first, count in held[place]
    ]
    return _boxes_of(row for row in rows if row[0] < 0), _boxes_of(row for row in rows if row[0] >= 0)


def _boxes_of(rows: Iterable[tuple[float, ...]]) -> GanttBars:
    table = np.array(list(rows), dtype=np.float64).reshape(-1, 5)
    return GanttBars(table[:, 0].astype(np.int64), *table[:, 1:].T)


def _draw_reservations(
    axes: Axes, nodes: Sequence[Node], reservations: Sequence[Reservation], scale: tuple[float, float]
) -> None:
    """Hatch what is reserved; ``scale`` is now, and the seconds of a unit of the axis."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - the extra may be absent

    now, seconds = scale
    ends = np.cumsum([node.total.cores for node in nodes]).tolist()
    label = "reserved"
    for one in reservations:
        begin, end = max(one.start - now, 0) / seconds, (one.end - now) / seconds
        kept = set(one.nodes)
        for node, top in zip(nodes, ends, strict=True):
            if node.name in kept:
                box = Rectangle((begin, top - node.total.cores), end - begin, node.total.cores)
                box.set(facecolor="none", edgecolor=GREY, hatch="////", linewidth=0, label=label)
                axes.add_patch(box)
                label = "_reserved"


#: Jobs that never change their size, and those that may but kept it; urgent ones.
_LOOKS = {"rigid": "#dcdfe4", "moldable": "#b9c9da", "malleable, kept its size": "#b9c9da", "urgent": ORANGE}
#: Jobs that grew or shrank: neighbours in time get different ones, so each is seen as a shape.
_CHANGED = ("#1f5a94", "#2a8c82", "#7a4b9a", "#b0532a", "#4f7f2e", "#a83c62", "#3f6fc0", "#8a6d1f")


def draw_malleable(result: Negotiated, path: Path) -> None:
    """Draw a negotiated run: a job that changed its size has its own colour, to show its steps."""
    from matplotlib.colors import to_rgba_array  # noqa: PLC0415 - the extra may be absent
    from matplotlib.patches import Patch  # noqa: PLC0415

    with styled():
        end = max((held.end_s for held in result.held), default=1.0)
        figure, axes, seconds = _chart(4.2, end, len(result.play.nodes) * result.runtime.parts)
        axes.set_ylabel("Nodes" if result.runtime.parts == 1 else f"Nodes, in {result.runtime.parts} parts")
        count_axis(axes)
        figure.draw_without_rendering()
        names, boxes = _held_boxes(result, seconds)
        looks = _looks(result)
        shown = [_LOOKS.get(looks[job], _CHANGED[place % len(_CHANGED)]) for place, job in enumerate(names)]
        colors = to_rgba_array(shown)
        boxes.draw(axes, facecolors=colors[boxes.job], edgecolors="white", linewidths=0.25)
        handles: dict[str, Patch] = {}
        for job, color in zip(names, shown, strict=True):
            label = looks[job]
            handles.setdefault(label, Patch(facecolor=color, edgecolor=GREY, linewidth=0.3, label=label))
        legend_above(axes, up=1, pad=0.2, ncols=4, handles=list(handles.values()))
        _draw_names(axes, boxes, names, colors)
        save_figure(figure, path)


def _held_boxes(result: Negotiated, seconds: float) -> tuple[list[str], GanttBars]:
    """Return the jobs by start, and their boxes: equal stretches of neighbouring nodes are one."""
    stretches: dict[tuple[str, int], list[tuple[float, float]]] = {}
    in_order = sorted(result.held, key=lambda held: (held.start_s, held.job))
    for held in in_order:
        for node in places(held.nodes):
            mine = stretches.setdefault((held.job, node), [])
            if mine and mine[-1][1] == held.start_s:
                mine[-1] = (mine[-1][0], held.end_s)
            else:
                mine.append((held.start_s, held.end_s))
    last: dict[tuple[str, tuple[float, float]], list[list[int]]] = {}
    for (job, node), mine in sorted(stretches.items()):
        for stretch in mine:
            runs = last.setdefault((job, stretch), [])
            if runs and runs[-1][1] == node:
                runs[-1][1] = node + 1
            else:
                runs.append([node, node + 1])
    names = list(dict.fromkeys(held.job for held in in_order))
    number = {job: place for place, job in enumerate(names)}
    return names, _boxes_of(
        (number[job], start / seconds, end / seconds, *run)
        for (job, (start, end)), runs in last.items()
        for run in runs
    )


def _looks(result: Negotiated) -> dict[str, str]:
    """Return what each job's boxes look like."""
    sizes: dict[str, set[int]] = {}
    for held in result.held:
        sizes.setdefault(held.job, set()).add(held.nodes.bit_count())
    looks = {}
    for arrival in result.play.arrivals:
        job, kind = arrival.job.job, arrival.job.type.value
        if arrival.urgent:
            looks[job] = "urgent"
        elif kind == "malleable":
            has_changed = len(sizes.get(job, ())) > 1
            looks[job] = "malleable, grew or shrank" if has_changed else "malleable, kept its size"
        else:
            looks[job] = kind if kind in _LOOKS else "rigid"
    return looks
