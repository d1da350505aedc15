"""A queue of thousands: the next job that may start is found without looking at every one.

A block is neighbouring places. A block holds no job that may start where its least estimate is above the time
that is left, of the sizes that fit, and it has none that fits beside the reservation: two comparisons, for a
block and for a group of blocks alike.
"""

from __future__ import annotations

from math import inf

from .loop_state import BLOCK, DEEP, HEAD, Column, Index


def class_below(index: Index, size: int) -> int:
    """Return the last class that has sizes up to this one; −1 where none has."""
    low, high = 0, len(index.lowest)
    while low < high:
        middle = (low + high) // 2
        if index.lowest[middle] <= size:
            low = middle + 1
        else:
            high = middle
    return low - 1


def add(index: Index, counts: Column, job: int, estimate: float) -> None:
    """Let a job wait."""
    index.waiting[job] = estimate
    block, group = job // BLOCK, job // (BLOCK * BLOCK)
    for one in range(index.size_class[job], len(index.lowest)):
        index.block[block, one] = min(index.block[block, one], estimate)
        index.group[group, one] = min(index.group[group, one], estimate)
    counts[HEAD] = min(counts[HEAD], job)
    counts[DEEP] += 1


def remove(index: Index, counts: Column, job: int) -> None:
    """Let a job wait no more; the head is then the first of those left."""
    estimate = index.waiting[job]
    index.waiting[job] = inf
    counts[DEEP] -= 1
    block, group = job // BLOCK, job // (BLOCK * BLOCK)
    classes = len(index.lowest)
    first = index.size_class[job]
    if index.block[block, first] == estimate:
        least = index.block[block, first - 1] if first > 0 else inf
        for one in range(first, classes):
            old = index.block[block, one]
            if old < estimate:
                break
            for other in range(block * BLOCK, (block + 1) * BLOCK):
                if index.size_class[other] == one:
                    least = min(least, index.waiting[other])
            index.block[block, one] = least
            if least != old and index.group[group, one] == old:
                _regroup(index, group, one)
    if job == counts[HEAD]:
        top = classes - 1
        counts[HEAD] = next_fit(index, counts[HEAD], top, inf, -1, index.size_class, top, -1)


def _regroup(index: Index, group: int, one: int) -> None:
    least = inf
    for block in range(group * BLOCK, (group + 1) * BLOCK):
        least = min(least, index.block[block, one])
    index.group[group, one] = least


def next_fit(
    index: Index, after: int, fits: int, slack: float, beside: int, size: Column, free: int, extra: int
) -> int:
    """Return the first waiting job after another that may start; the number of jobs where there is none.

    Args:
        index: the queue.
        after: a job.
        fits: the last class of sizes that fit.
        slack: such a job may start if its estimate is at most so long, or
        beside: its class is at most this one, −1 for none, and the rest of the same holds exactly:
        size: by place.
        free: at most so many processors are needed, and
        extra: without regard to the estimate, at most so many.
    """
    jobs = len(size)
    job = after + 1
    while job < jobs:
        if job % (BLOCK * BLOCK) == 0 and not _holds(
            index.group[job // (BLOCK * BLOCK)], fits, slack, beside
        ):
            job += BLOCK * BLOCK
            continue
        if job % BLOCK == 0 and not _holds(index.block[job // BLOCK], fits, slack, beside):
            job += BLOCK
            continue
        estimate = index.waiting[job]
        if estimate < inf and size[job] <= free and (estimate <= slack or size[job] <= extra):
            return job
        job += 1
    return jobs


def _holds(least: Column, fits: int, slack: float, beside: int) -> bool:
    return (least[fits] <= slack and least[fits] < inf) or (beside >= 0 and least[beside] < inf)
