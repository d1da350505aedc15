"""The picture of a machine: which jobs start where, what is busy, what stays free. matplotlib is an extra.

A node is a cell, filled from the left by its cores: busy ones grey, then those of each job that starts
there in the job's colour; what stays free is white, or hatched where the node takes no jobs. A GPU is a
small mark below: filled grey when used, in the job's colour when it is taken now, hollow when free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.resources.capacity import FloatArray
from ..cluster.schedule import Award, Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.text import plural
from .canvas import add_boxes, literal, save_figure, styled
from .machine_layout import (
    LABEL_SIZE,
    LARGEST_LABEL_PT,
    LETTER,
    NAME,
    Boxes,
    Layout,
    boxes_of,
    changed_part,
    gpus,
    layout_of,
    place_of_number,
)
from .schedule_text import cores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCHES = {"hatch.linewidth": 0.35, "hatch.color": "#8a8f98"}
_DPI, _POINTS = 300, 72
#: Page: as wide as a text's column, or a landscape page for a machine of more nodes than that (inches).
_PAGE_IN, _WIDE_PAGE_IN, _WIDE_FROM = (7.0, 6.0), (11.0, 6.6), 3000
_MARGIN_IN, _TITLE_IN, _LEGEND_ROW_IN = 0.12, 0.36, 0.17

#: The widest jobs get one of these each and stand in the legend.
_COLORS = (
    "#1f6fb4", "#e07b22", "#2c9a4b", "#c9302c", "#7d54b2", "#8a5a3b",
    "#dd6bb4", "#b3a712", "#17a3b5", "#0c2f63", "#f2b134", "#6fcf97",
)  # fmt: skip
#: All narrower ones take these in turn.
_OTHERS = ("#a8d5f6", "#85bfe9")
_BUSY, _FREE, _LINE, _INK, _USED_GPU = "#c9ccd1", "#ffffff", "#8a8f98", "#20242a", "#7b8089"
_LEGEND_COLUMNS = 4
#: Least size of letters.
_LEAST_PT = 2.6
#: White edges of boxes this narrow would hide them (points).
_NARROW_PT = 1.5


def draw_machine(snapshot: Snapshot, schedule: Schedule, path: Path | None) -> Figure:
    """Draw the machine with a schedule's awards; the file is written whole or not at all.

    Of a large machine only the leaf switches are drawn where something is free or starts.

    Raises:
        InputError: the file cannot be written.
    """
    whole, snapshot = snapshot, changed_part(snapshot, schedule)
    page = _WIDE_PAGE_IN if len(snapshot.nodes) > _WIDE_FROM else _PAGE_IN
    layout = layout_of(snapshot, page[0] - 2 * _MARGIN_IN, page[1])
    boxes = boxes_of(snapshot, schedule.started, layout)
    colors = _colors(schedule.started)
    with styled(**_HATCHES):
        entries = list(_legend(boxes, schedule.started, colors))
        figure, axes = _new_figure(layout, page[0], len(entries))
        _write_labels(axes, layout, snapshot)
        _draw_cores(axes, boxes, colors, layout)
        _draw_gpus(axes, boxes, colors, layout)
        _write_jobs(axes, boxes, colors, layout)
        _write_title(figure, whole, schedule, len(whole.nodes) - len(snapshot.nodes))
        _draw_legend(figure, entries)
        save_figure(figure, path)
    return figure


def _colors(awards: Sequence[Award]) -> dict[str, str]:
    """Return each job's colour, the widest jobs first."""
    ordered = sorted(awards, key=lambda award: (-len(award.nodes), -cores_of(award)))
    return {
        award.job: _COLORS[place] if place < len(_COLORS) else _OTHERS[place % 2]
        for place, award in enumerate(ordered)
    }


def _new_figure(layout: Layout, width_in: float, entries: int) -> tuple[Figure, Axes]:
    """Return a figure with a title's line above the machine and room for the legend below."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    legend = _LEGEND_ROW_IN * -(-entries // _LEGEND_COLUMNS) + 0.08
    across, down = layout.width * layout.cell_in, layout.height * layout.cell_in
    height = down + legend + _TITLE_IN + 2 * _MARGIN_IN
    figure = Figure(figsize=(width_in, height), dpi=_DPI)
    left, bottom = _MARGIN_IN / width_in, (_MARGIN_IN + legend) / height
    axes = figure.add_axes((left, bottom, across / width_in, down / height))
    axes.set_xlim(0, layout.width)
    axes.set_ylim(layout.height, 0)
    axes.set_axis_off()
    return figure, axes


def _cell_pt(layout: Layout) -> float:
    return layout.cell_in * _POINTS


def _write_labels(axes: Axes, layout: Layout, snapshot: Snapshot) -> None:
    """Write each row's leaf switch, or its first node in the linear topology, where it can be read."""
    size = min(LARGEST_LABEL_PT, LABEL_SIZE * _cell_pt(layout))
    if layout.named:
        _write_names(axes, layout, snapshot)
        if snapshot.switches is None:
            return
    if size < _LEAST_PT:
        return
    for x, y, text in layout.labels:
        axes.text(x, y + 0.5, literal(text), ha="right", va="center", fontsize=size, color=_INK)


def _write_names(axes: Axes, layout: Layout, snapshot: Snapshot) -> None:
    """Write each node's name above it."""
    longest = max(len(node.name) for node in snapshot.nodes)
    size = min(LARGEST_LABEL_PT, 0.8 * NAME * _cell_pt(layout), 0.95 * _cell_pt(layout) / (LETTER * longest))
    for place, node in enumerate(snapshot.nodes):
        x, y = layout.x[place] + 0.5, layout.y[place] + NAME
        axes.text(x, y, literal(node.name), ha="center", va="bottom", fontsize=size, color=_INK)


def _add(axes: Axes, boxes: FloatArray, face: str, edge: str = "none", line: float = 0.0) -> Any:
    return add_boxes(axes, boxes, facecolors=face, edgecolors=edge, linewidths=line)


def _draw_cores(axes: Axes, boxes: Boxes, colors: Mapping[str, str], layout: Layout) -> None:
    _add(axes, boxes("frames"), _FREE)
    _add(axes, boxes("busy"), _BUSY)
    _add(axes, boxes("closed"), "#f3f3f3", _LINE).set_hatch("/" * 8)
    for job, color in colors.items():
        # A white line between two jobs of a node, where it leaves something of them.
        narrowest = float(boxes("jobs", job)[:, 2].min()) * _cell_pt(layout)
        _add(axes, boxes("jobs", job), color, "white", 0.3 if narrowest > _NARROW_PT else 0.0)
    _add(axes, boxes("frames"), "none", _LINE, min(0.5, 0.05 * _cell_pt(layout)))


def _draw_gpus(axes: Axes, boxes: Boxes, colors: Mapping[str, str], layout: Layout) -> None:
    line = min(0.4, 0.03 * _cell_pt(layout))
    _add(axes, boxes("free_gpus"), _FREE, _LINE, line)
    _add(axes, boxes("used_gpus"), _USED_GPU, _USED_GPU, line)
    for job, color in colors.items():
        _add(axes, boxes("taken_gpus", job), color, color, line)


def _write_jobs(axes: Axes, boxes: Boxes, colors: Mapping[str, str], layout: Layout) -> None:
    """Write a job's number over the widest row of its cells, where it fits."""
    points = _cell_pt(layout)
    for job, color in colors.items():
        tall = min(LARGEST_LABEL_PT, 0.8 * points * boxes("jobs", job)[0, 3])
        letters = LETTER * len(job) + 0.3
        left, top, width, height = place_of_number(boxes("jobs", job), tall * letters / points)
        size = min(tall, width * points / letters)
        red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
        luma = 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
        if size < _LEAST_PT:
            continue
        axes.text(
            left + width / 2,
            top + height / 2,
            literal(job),
            ha="center",
            va="center_baseline",
            fontsize=size,
            color="white" if luma < 150 else _INK,  # noqa: PLR2004 - of 255
        )


def _write_title(figure: Figure, snapshot: Snapshot, schedule: Schedule, left_out: int) -> None:
    nodes = {name for award in schedule.started for name in award.nodes}
    taken = sum(map(cores_of, schedule.started))
    free = sum(node.free.cores for node in snapshot.nodes if node.state.takes_jobs)
    text = (
        f"{schedule.model} starts {len(schedule.started)} of {len(schedule.started) + len(schedule.pending)} "
        f"jobs on {len(nodes)} of {len(snapshot.nodes)} nodes; {taken} of {free} free cores are taken"
    )
    if left_out:
        text += f"\nnot drawn: {plural(left_out, 'node')} of switches where nothing is free or starts"
    width, height = figure.get_size_inches()
    figure.text(
        _MARGIN_IN / width, 1 - _MARGIN_IN / height, text, ha="left", va="top", fontsize=8, color=_INK
    )


def _legend(boxes: Boxes, awards: Sequence[Award], colors: Mapping[str, str]) -> Iterator[Any]:
    """Yield a handle for each thing on the picture: the widest jobs, the others, what is busy and free."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - the extra may be absent
    from matplotlib.patches import Patch  # noqa: PLC0415

    def patch(text: str, face: str, edge: str = "none", hatch: str | None = None) -> Patch:
        return Patch(facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0.5, label=text)

    def gpu(text: str, face: str, edge: str) -> Line2D:
        drawn = Line2D([], [], marker="s", markersize=4, markeredgewidth=0.5, linewidth=0, label=text)
        drawn.set(markerfacecolor=face, markeredgecolor=edge)
        return drawn

    by_job = {award.job: award for award in awards}
    for job in list(colors)[: len(_COLORS)]:
        yield patch(_described(by_job[job]), colors[job])
    if len(colors) > len(_COLORS):
        yield patch(plural(len(colors) - len(_COLORS), "narrower job"), _OTHERS[0])
    yield patch("busy", _BUSY)
    yield patch("stays free", _FREE, _LINE)
    if len(boxes("closed")):
        yield patch("takes no jobs", "#f3f3f3", _LINE, "/" * 8)
    if len(boxes("used_gpus")):
        yield gpu("GPU in use", _USED_GPU, _USED_GPU)
    if len(boxes("free_gpus")):
        yield gpu("GPU free", _FREE, _LINE)


def _described(award: Award) -> str:
    held = sum(gpus(use.gres) for use in award.nodes.values())
    parts = [plural(len(award.nodes), "node"), plural(cores_of(award), "core")]
    parts += [plural(held, "GPU")] if held else []
    # What begins with _ matplotlib leaves out of a legend.
    name = literal(award.job)
    return f"{' ' * name.startswith('_')}{name}: {', '.join(parts)}"


def _draw_legend(figure: Figure, handles: Sequence[Any]) -> None:
    width, height = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(_MARGIN_IN / width, _MARGIN_IN / height),
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=6.5,
        borderaxespad=0,
        borderpad=0,
        handlelength=1.6,
        handleheight=0.9,
        columnspacing=1.4,
        labelspacing=0.55,
    )
