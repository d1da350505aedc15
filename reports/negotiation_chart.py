"""The Gantt chart of a negotiated run: jobs that grow and shrink, on the nodes that they held."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..formats.drawing import literal, save_figure
from ..negotiation.runtime.runtime_machine import places
from ..simulation.negotiated.negotiated_run import Negotiated
from .canvas import GREY, ORANGE, count_axis, new_figure, points_per_unit, styled, time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Jobs that never change their size, and those that may but kept it.
_COLORS = {"rigid": "#dcdfe4", "moldable": "#b9c9da", "malleable, kept its size": "#b9c9da"}
#: Jobs that grew or shrank: neighbours in time get different ones, so that each is seen as one shape.
_CHANGED = ("#1f5a94", "#2a8c82", "#7a4b9a", "#b0532a", "#4f7f2e", "#a83c62", "#3f6fc0", "#8a6d1f")
_URGENT = ORANGE
_GREW = "malleable, grew or shrank"
#: Room that a letter of a job's name takes, in points, and a line.
_LETTER_PT, _LINE_PT = 3.2, 5.5


class _Box(NamedTuple):
    """A stretch of time on neighbouring nodes [first, last)."""

    start: float
    end: float
    first: int
    last: int

    def corners(self, seconds: float) -> list[tuple[float, float]]:
        """Return its corners with times in units of that many seconds."""
        left, right = self.start / seconds, self.end / seconds
        return [(left, self.first), (right, self.first), (right, self.last), (left, self.last)]


def draw_malleable(result: Negotiated, path: Path) -> None:
    """Draw the chart; a job that changed its size has a colour of its own, so that its steps are seen."""
    with styled():
        figure, axes = new_figure(4.2, 1)
        end = max((held.end_s for held in result.held), default=1.0)
        unit, seconds = time_unit(end)
        axes.set_xlim(0, end / seconds)
        axes.set_ylim(0, len(result.play.nodes) * result.runtime.parts)
        axes.set_xlabel(f"Time since the first submission ({unit})")
        axes.set_ylabel("Nodes" if result.runtime.parts == 1 else f"Nodes, in {result.runtime.parts} parts")
        count_axis(axes)
        figure.draw_without_rendering()
        _draw(axes, result, seconds)
        save_figure(figure, path)


def _bar_shapes(result: Negotiated) -> dict[str, list[_Box]]:
    """Return each job's boxes: a node's stretches joined over time, nodes of equal stretches joined."""
    stretches: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for held in sorted(result.held, key=lambda held: held.start_s):
        for node in places(held.nodes):
            mine = stretches.setdefault((held.job, node), [])
            if mine and mine[-1][1] == held.start_s:
                mine[-1] = (mine[-1][0], held.end_s)
            else:
                mine.append((held.start_s, held.end_s))
    shapes: dict[str, list[_Box]] = {}
    for (job, node), mine in sorted(stretches.items()):
        boxes = shapes.setdefault(job, [])
        for start, end in mine:
            place = next((i for i, b in enumerate(boxes) if b[:2] == (start, end) and b[3] == node), None)
            if place is None:
                boxes.append(_Box(start, end, node, node + 1))
            else:
                boxes[place] = boxes[place]._replace(last=node + 1)
    return shapes


def _draw(axes: Axes, result: Negotiated, seconds: float) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - the extra may be absent
    from matplotlib.patches import Patch  # noqa: PLC0415

    shapes, looks = _bar_shapes(result), _looks(result)
    handles: dict[str, Patch] = {}
    names = sorted(shapes, key=lambda job: shapes[job][0].start)
    for number, job in enumerate(names):
        look = looks[job]
        color = {**_COLORS, "urgent": _URGENT}.get(look, _CHANGED[number % len(_CHANGED)])
        corners = [box.corners(seconds) for box in shapes[job]]
        axes.add_collection(PolyCollection(corners, facecolors=color, edgecolors="white", linewidths=0.25))
        handles.setdefault(look, Patch(facecolor=color, edgecolor=GREY, linewidth=0.3, label=look))
    axes.legend(
        handles=list(handles.values()), loc="lower right", bbox_to_anchor=(1, 1.0), ncols=4, borderaxespad=0.2
    )
    _write_names(axes, shapes, looks, seconds)


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
            looks[job] = _GREW if len(sizes.get(job, ())) > 1 else "malleable, kept its size"
        else:
            looks[job] = kind if kind in _COLORS else "rigid"
    return looks


def _write_names(axes: Axes, shapes: dict[str, list[_Box]], looks: dict[str, str], seconds: float) -> None:
    """Write a job's name into its largest box, where it fits."""
    across, up = points_per_unit(axes)
    for job, boxes in shapes.items():
        box = max(boxes, key=lambda box: (box.end - box.start) * (box.last - box.first))
        width, height = (box.end - box.start) / seconds * across, (box.last - box.first) * up
        if width >= _LETTER_PT * (len(job) + 0.5) and height >= _LINE_PT:
            color = "white" if looks[job] in {_GREW, "urgent"} else "#20242a"
            middle = ((box.start + box.end) / 2 / seconds, (box.first + box.last) / 2)
            axes.annotate(literal(job), middle, ha="center", va="center", fontsize=4.5, color=color)
