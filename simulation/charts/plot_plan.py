"""The chart of a plan: the cores of its nodes over the time to come, with what runs and what is reserved.

Nodes on which nothing is planned are left out: on a large machine they would leave no room for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...auction.planning.plan import OVERDUE_S, Plan
from ...cluster.nodes import Node, Reservation, Resources
from ...cluster.snapshot import Snapshot
from ...cluster.text import counted
from ...formats.drawing import save_figure
from ..placement import FreeRuns
from .chart import GREY, name_nodes, new_figure, styled, time_unit, write_title
from .gantt import Boxes, draw_jobs, label_waits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What has no end is drawn this much longer than the last end that is known.
_BEYOND = 1.1
_LEAST_S = 60.0


class _Stay(NamedTuple):
    """A job on its nodes; ``job`` is its place among the planned, −1 for a running one."""

    job: int
    start: float
    end: float
    nodes: Mapping[str, Resources]


def draw_plan(snapshot: Snapshot, plan: Plan, path: Path) -> None:
    """Draw the chart; on each node jobs get the lowest cores that are free, nodes stand in their order."""
    stays = list(_stays(snapshot, plan))
    used = {name for one in plan.planned for name in one.nodes}
    nodes = tuple(node for node in snapshot.nodes if node.name in used or not used)
    known = [time for stay in stays for time in (stay.start, stay.end) if time < inf]
    known += [one.end - plan.time for one in snapshot.reservations if one.start > plan.time]
    horizon = max([_LEAST_S, *known]) * (_BEYOND if any(stay.end == inf for stay in stays) else 1)
    unit, seconds = time_unit(horizon)
    with styled():
        figure, axes = new_figure(3.6, 1)
        axes.set_xlim(0, horizon / seconds)
        axes.set_ylim(0, sum(node.total.cores for node in nodes))
        axes.set_xlabel(f"Time from now ({unit})")
        axes.set_ylabel(f"{len(nodes)} of {len(snapshot.nodes)} nodes, core by core")
        name_nodes(axes, [node.name for node in nodes], [node.total.cores for node in nodes])
        left = len(plan.unplanned)
        write_title(axes, f"plan: {counted(len(plan.planned), 'job')}, {counted(left, 'job')} left out")
        _draw_reservations(axes, nodes, snapshot.reservations, (plan.time, seconds))
        running, planned = _boxes(nodes, stays, horizon, seconds)
        _draw_running(axes, running)
        wait_unit, wait_seconds = time_unit(max(known, default=0.0), largest="h")
        wait = np.array([(one.start - plan.time) / wait_seconds for one in plan.planned])
        if len(wait):
            draw_jobs(axes, planned, wait, [one.job for one in plan.planned])
            label_waits(axes, wait, f"Time until the start ({wait_unit})")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
        save_figure(figure, path)


def _stays(snapshot: Snapshot, plan: Plan) -> Iterator[_Stay]:
    for job in snapshot.running:
        end = inf if job.end_time is None else max(job.end_time - plan.time, OVERDUE_S)
        yield _Stay(-1, 0.0, end, job.nodes)
    for place, one in enumerate(plan.planned):
        end = inf if one.end is None else one.end - plan.time
        yield _Stay(place, one.start - plan.time, end, one.nodes)


def _boxes(nodes: Sequence[Node], stays: list[_Stay], horizon: float, seconds: float) -> tuple[Boxes, Boxes]:
    """Return the boxes of running and of planned jobs; those of neighbouring cores are one."""
    spans: dict[int, list[tuple[int, int]]] = {place: [] for place in range(len(stays))}
    by_node: dict[str, list[int]] = {}
    for place, stay in enumerate(stays):
        for name in stay.nodes:
            by_node.setdefault(name, []).append(place)
    first = 0
    for node in nodes:
        for place, begin, end in _on_node(node.total.cores, node.name, by_node.get(node.name, []), stays):
            if spans[place] and spans[place][-1][1] == first + begin:
                spans[place][-1] = (spans[place][-1][0], first + end)
            else:
                spans[place].append((first + begin, first + end))
        first += node.total.cores
    rows = [
        (stays[place].job, stays[place].start / seconds, min(stays[place].end, horizon) / seconds, *span)
        for place, found in spans.items()
        for span in found
    ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return _boxes_of(table[table[:, 0] < 0]), _boxes_of(table[table[:, 0] >= 0])


def _boxes_of(table: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Boxes:
    return Boxes(table[:, 0].astype(np.int64), *table[:, 1:].T)


def _on_node(cores: int, name: str, places: list[int], stays: list[_Stay]) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of a node's cores that each stay holds, lowest cores first."""
    free = FreeRuns(cores)
    # At one time ends come before starts.
    events = [(stays[place].start, 1, place) for place in places if stays[place].nodes[name].cores]
    events += [(stays[place].end, 0, place) for _, _, place in events]
    taken = {}
    for _, starting, place in sorted(events):
        if starting:
            taken[place] = free.take(stays[place].nodes[name].cores)
        else:
            free.give(taken[place])
    for place, runs in sorted(taken.items()):
        for begin, count in runs:
            yield place, begin, begin + count


def _draw_running(axes: Axes, boxes: Boxes) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - the extra may be absent

    if not len(boxes.job):
        return
    left, right, low, high = boxes.start, boxes.end, boxes.first, boxes.last
    corners = np.stack([left, low, right, low, right, high, left, high], axis=1).reshape(-1, 4, 2)
    label = "running, to its time limit"
    axes.add_collection(PolyCollection(list(corners), facecolors=GREY, linewidths=0, alpha=0.55, label=label))


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
