"""A queue of thousands: the next job that may start is found without looking at every one.

A block is neighbouring places of the queue. A block holds no job that may start where its least
estimate is above the time that is left, of the sizes that fit, and it has none that fits beside the
reservation: two comparisons, for a block and for a group of blocks alike.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from ...cluster.kernels.column_operations import first_from
from ...cluster.kernels.harness import Column, Floats, Ints, kernel

#: Jobs of a block, and blocks of a group of them.
BLOCK = 64
#: Classes of sizes at most.
CLASSES = 16
#: Places of ``counts``: how many jobs wait here, and the first of them.
DEEP, HEAD = 0, 1


class DeepQueue(NamedTuple):
    """Waiting jobs by number, which is the place in the queue's order.

    Attributes:
        counts: see above; the head is the number of all jobs where none waits.
        waiting: by number, the estimate of a job that waits here; infinite for any other.
        lowest: by class, its smallest size; rising. Empty: the queue holds nothing, and cannot.
        size_class: by number.
        block: for each block, by class, the least estimate of its sizes and all smaller ones.
        group: the same for each group.
    """

    counts: Ints
    waiting: Floats
    lowest: Ints
    size_class: Ints
    block: Floats
    group: Floats


def deep_queue_of(size: Column, *, is_compiled: bool) -> DeepQueue:
    """Return an empty queue for jobs of these sizes, by number; of none it cannot hold anything."""
    distinct = np.unique(np.asarray(size, np.int64))
    lowest = np.ascontiguousarray(distinct[:: max(-(-len(distinct) // CLASSES), 1)])
    blocks = -(-len(size) // BLOCK)
    # Places beyond the last job belong to no class.
    size_class = np.full(blocks * BLOCK, len(lowest))
    size_class[: len(size)] = np.searchsorted(lowest, size, side="right") - 1
    groups = -(-blocks // BLOCK)
    queue = DeepQueue(
        counts=np.array([0, len(size)]),
        waiting=np.full(blocks * BLOCK, inf),
        lowest=lowest,
        size_class=size_class,
        block=np.full(groups * BLOCK * len(lowest), inf),
        group=np.full(groups * len(lowest), inf),
    )
    columns: Sequence[Column] = queue if is_compiled else [column.tolist() for column in queue]
    return DeepQueue(*columns)


@kernel
def class_below(index: DeepQueue, size: int) -> int:
    """Return the last class that has sizes up to this one; −1 where none has."""
    return first_from(index.lowest, len(index.lowest), size + 1) - 1


@kernel
def add_deep(index: DeepQueue, job: int, estimate: float) -> None:
    """Let a job wait."""
    classes = len(index.lowest)
    index.waiting[job] = estimate
    block, group = job // BLOCK * classes, job // (BLOCK * BLOCK) * classes
    for one in range(index.size_class[job], classes):
        if estimate < index.block[block + one]:
            index.block[block + one] = estimate
            index.group[group + one] = min(index.group[group + one], estimate)
    index.counts[HEAD] = min(index.counts[HEAD], job)
    index.counts[DEEP] += 1


@kernel
def remove_deep(index: DeepQueue, job: int) -> None:
    """Let a job wait no more; the head is then the first of those left."""
    classes, estimate = len(index.lowest), index.waiting[job]
    index.waiting[job] = inf
    index.counts[DEEP] -= 1
    block, group = job // BLOCK, job // (BLOCK * BLOCK)
    first, row = index.size_class[job], block * classes
    # Of these classes it was the least, perhaps not alone.
    stop = first
    while stop < classes and index.block[row + stop] == estimate:
        index.block[row + stop] = inf
        stop += 1
    if stop > first:
        for other in range(block * BLOCK, (block + 1) * BLOCK):
            one = index.size_class[other]
            if first <= one < stop and index.waiting[other] < index.block[row + one]:
                index.block[row + one] = index.waiting[other]
        least = index.block[row + first - 1] if first > 0 else inf
        for one in range(first, stop):
            least = min(least, index.block[row + one])
            index.block[row + one] = least
            if least != estimate and index.group[group * classes + one] == estimate:
                _regroup(index, group, one)
    if job == index.counts[HEAD]:
        top = classes - 1
        index.counts[HEAD] = next_fit(index, job, top, inf, -1, index.size_class, top, -1)


@kernel
def _regroup(index: DeepQueue, group: int, one: int) -> None:
    classes, least = len(index.lowest), inf
    # Nobody waits before the head.
    for block in range(max(group * BLOCK, index.counts[HEAD] // BLOCK), (group + 1) * BLOCK):
        least = min(least, index.block[block * classes + one])
    index.group[group * classes + one] = least


@kernel
def next_fit(
    index: DeepQueue,
    after: int,
    fits: int,
    slack: float,
    beside: int,
    size: Column,
    free: int,
    extra: int,
) -> int:
    """Return the first waiting job after another that may start; the number of jobs if none may.

    ``slack`` is rounded up: EASY's condition (``share_of_extra``) is for the caller to ask.

    Args:
        index: the queue.
        after: a job.
        fits: the last class of sizes that fit.
        slack: such a job may start if its estimate is at most so long, or
        beside: its class is at most this one, −1 for none, and the rest of the same holds exactly:
        size: by number.
        free: at most so many processors are needed, and
        extra: without regard to the estimate, at most so many.
    """
    jobs, classes = len(size), len(index.lowest)
    job = after + 1
    while job < jobs:
        if job % BLOCK == 0:
            row = job // (BLOCK * BLOCK) * classes
            if job % (BLOCK * BLOCK) == 0 and not holds(index.group, row, fits, slack, beside, inf):
                job += BLOCK * BLOCK
                continue
            if not holds(index.block, job // BLOCK * classes, fits, slack, beside, inf):
                job += BLOCK
                continue
        estimate = index.waiting[job]
        if estimate < inf and size[job] <= free and (estimate <= slack or size[job] <= extra):
            return job
        job += 1
    return jobs


@kernel
def holds(least: Column, row: int, fits: int, slack: float, beside: int, below: float) -> bool:
    """Say whether a block or a group has a job that may start, of an estimate below another."""
    return least[row + fits] < below and (
        least[row + fits] <= slack or (beside >= 0 and least[row + beside] < below)
    )
