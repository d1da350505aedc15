"""The boxes of the picture of a machine: the busy, newly awarded and free parts of each node.

Pure geometry in units of a cell; a box is its left, top, width and height, boxes are of shape (boxes, 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...bidgen.columns import FloatArray
from ...cluster.nodes import Node, Resources
from ...cluster.schedule import Award
from ...cluster.snapshot import Snapshot
from .layout import Layout

#: Part of a cell that is drawn; of a node with GPUs its cores take the upper part.
_SIDE, _ABOVE_GPUS = 0.86, 0.64
#: Part of its place that a GPU's mark fills, and its distance from the cores (cells).
_GPU, _BELOW_CORES = 0.8, 0.05
#: Boxes of one job in neighbouring cells stand so close (cells).
_NEIGHBOURS = 0.16
#: Part of a cell that its node's name takes where it is written.
NAME = 0.2

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Boxes:
    """All boxes of a picture.

    Attributes:
        frames: the cores of each node, whatever holds them.
        busy: cores that are held now.
        closed: cores that are free on nodes that take no jobs.
        jobs: cores that each job takes now.
        used_gpus, free_gpus: one mark a GPU.
        taken_gpus: those that each job takes now.
    """

    frames: FloatArray
    busy: FloatArray
    closed: FloatArray
    jobs: Mapping[str, FloatArray]
    used_gpus: FloatArray
    free_gpus: FloatArray
    taken_gpus: Mapping[str, FloatArray]


def boxes_of(snapshot: Snapshot, awards: Iterable[Award], layout: Layout) -> Boxes:
    """Return the boxes of a machine and of the jobs that start on it."""
    started = list(awards)
    taken: dict[str, list[tuple[str, Resources]]] = {}
    for award in started:
        for name, use in award.nodes.items():
            taken.setdefault(name, []).append((award.job, use))
    builder = _Builder([award.job for award in started], NAME if layout.named else 0.0)
    for place, node in enumerate(snapshot.nodes):
        builder.add(node, taken.get(node.name, []), float(layout.x[place]), float(layout.y[place]))
    return builder.boxes()


def gpus(gres: Mapping[str, int]) -> int:
    """Return how many of a node's or a job's generic resources are GPUs, of any type."""
    return sum(count for name, count in gres.items() if name.partition(":")[0] == "gpu")


class _Builder:
    """Collects the boxes of one node after another."""

    def __init__(self, jobs: Sequence[str], name: float) -> None:
        self._name = name
        self._frames: list[Box] = []
        self._busy: list[Box] = []
        self._closed: list[Box] = []
        self._jobs: dict[str, list[Box]] = {job: [] for job in jobs}
        self._used: list[Box] = []
        self._free: list[Box] = []
        self._taken: dict[str, list[Box]] = {job: [] for job in jobs}

    def add(self, node: Node, taken: Sequence[tuple[str, Resources]], x: float, y: float) -> None:
        """Add a node whose cell has its upper left corner at (x, y)."""
        left, top = x + (1 - _SIDE) / 2, y + (1 - _SIDE) / 2 + self._name
        height = (_SIDE - self._name) * (_ABOVE_GPUS if gpus(node.total.gres) else 1)
        self._frames.append((left, top, _SIDE, height))
        self._add_cores(node, taken, left, top, height)
        if gpus(node.total.gres):
            self._add_gpus(node, taken, left, top + height)

    def _add_cores(
        self, node: Node, taken: Sequence[tuple[str, Resources]], left: float, top: float, height: float
    ) -> None:
        one = _SIDE / node.total.cores
        busy = node.total.cores - node.free.cores
        if busy:
            self._busy.append((left, top, busy * one, height))
        at = left + busy * one
        for job, use in taken:
            self._jobs[job].append((at, top, use.cores * one, height))
            at += use.cores * one
        rest = left + _SIDE - at
        if not node.state.takes_jobs and node.free.cores:
            self._closed.append((at, top, rest, height))

    def _add_gpus(self, node: Node, taken: Sequence[tuple[str, Resources]], left: float, top: float) -> None:
        total, free = gpus(node.total.gres), gpus(node.free.gres)
        lists = [self._used] * (total - free)
        for job, use in taken:
            lists.extend([self._taken[job]] * gpus(use.gres))
        lists.extend([self._free] * (total - len(lists)))
        place, strip = _SIDE / total, (_SIDE - self._name) * (1 - _ABOVE_GPUS)
        # Squares for a few; of many GPUs each is a bar, or they would vanish.
        width = _GPU * min(place, strip)
        height = min(strip - _BELOW_CORES, 2 * width) if place < strip / 2 else width
        for number, boxes in enumerate(lists):
            middle = left + (number + 0.5) * place
            boxes.append((middle - width / 2, top + _BELOW_CORES, width, height))

    def boxes(self) -> Boxes:
        """Return what was collected."""
        return Boxes(
            frames=_array(self._frames),
            busy=_array(self._busy),
            closed=_array(self._closed),
            jobs={job: _array(boxes) for job, boxes in self._jobs.items()},
            used_gpus=_array(self._used),
            free_gpus=_array(self._free),
            taken_gpus={job: _array(boxes) for job, boxes in self._taken.items()},
        )


def _array(boxes: list[Box]) -> FloatArray:
    return np.array(boxes, np.float64).reshape(-1, 4)


def corners(boxes: FloatArray) -> FloatArray:
    """Return each box's corners, shape (boxes, 4, 2)."""
    left, top, width, height = boxes.T
    right, bottom = left + width, top + height
    flat: FloatArray = np.stack([left, top, right, top, right, bottom, left, bottom], axis=1)
    return flat.reshape(-1, 4, 2)


def widest_run(boxes: FloatArray) -> list[Box]:
    """Return the widest box, or row of boxes that stand beside each other."""
    runs: list[list[Box]] = []
    for left, top, width, height in boxes[np.lexsort((boxes[:, 0], boxes[:, 1]))].tolist():
        before = runs[-1][-1] if runs else None
        beside = before and before[1] == top and left - (before[0] + before[2]) <= _NEIGHBOURS
        if not beside:
            runs.append([])
        runs[-1].append((left, top, width, height))
    return max(runs, key=_width)


def _width(run: list[Box]) -> float:
    return run[-1][0] + run[-1][2] - run[0][0]


def place_of_number(boxes: FloatArray, letters: float) -> Box:
    """Return where a job's number stands best: a box that holds it, else the whole of the widest run.

    Args:
        boxes: the job's.
        letters: width of the number at full size, in cells.
    """
    run = widest_run(boxes)
    middle = run[0][0] + _width(run) / 2
    one = min(
        (box for box in run if box[2] >= letters),
        key=lambda box: abs(box[0] + box[2] / 2 - middle),
        default=None,
    )
    return one or (run[0][0], run[0][1], _width(run), run[0][3])
