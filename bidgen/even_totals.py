"""How an amount is put on the nodes of a bid, for many bids at once.

Bid ``i`` holds the entries ``indptr[i]:indptr[i + 1]``; ``units`` is what each entry's node could give.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..cluster.resources.capacity import IntArray

Number = TypeVar("Number", np.int64, np.uint64)


def sums_of(values: npt.NDArray[Number], indptr: IntArray) -> npt.NDArray[Number]:
    """Return the sum of each bid's entries, shape (bids,)."""
    if len(indptr) < 2:  # noqa: PLR2004 - no bid at all
        return values[:0]
    sums: npt.NDArray[Number] = np.add.reduceat(values, indptr[:-1])
    return sums


def pack(units: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Fill nodes one after another: all the first can give, ``least`` on every one after the last full.

    ``least`` and ``total`` have shape (bids,); every bid can hold its total.
    """
    length: IntArray = np.diff(indptr)
    floor = np.repeat(least, length)
    room: IntArray = np.maximum(units - floor, 0)
    extra: IntArray = total - length * least
    return floor + deal(room, indptr, extra)


def deal(room: IntArray, indptr: IntArray, total: IntArray) -> IntArray:
    """Deal each bid's total over its entries in order, all that each has room for."""
    length = np.diff(indptr)
    before = np.cumsum(room) - room
    before -= np.repeat(before[indptr[:-1]], length)
    dealt: IntArray = np.minimum(np.maximum(np.repeat(total, length) - before, 0), room)
    return dealt


def deal_evenly(room: IntArray, indptr: IntArray, total: IntArray) -> IntArray:
    """Deal each bid's total over its entries as evenly as their room lets it; at most all the room."""
    within = np.minimum(total, sums_of(room, indptr))
    return even(room, indptr, np.zeros(len(total), np.int64), within)


def even(units: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Put ⌈R/N⌉ or ⌊R/N⌋ units on each node where they fit, else as evenly as they do."""
    length = np.diff(indptr)
    floor = np.repeat(least, length)
    level = np.repeat(_water_level(np.maximum(units, floor), indptr, least, total), length)
    below: IntArray = np.maximum(np.minimum(units, level - 1), floor)
    could_take = np.asarray((units >= level) & (level > floor), np.int64)
    missing: IntArray = total - sums_of(below, indptr)
    return below + deal(could_take, indptr, missing)


def _water_level(most: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Return for each bid the smallest t with sum of max(least, min(most, t)) at least its total."""
    length = np.diff(indptr)
    # Where every node could give its even share, that is the level; elsewhere it is looked for.
    share = -(-total // np.maximum(length, 1))
    level = np.where(share > least, share, 0)
    poorest = np.minimum.reduceat(most, indptr[:-1]) if len(total) else share
    rest = np.flatnonzero((poorest < share) & (share > least))
    if len(rest):
        some = most[np.repeat(np.isin(np.arange(len(total)), rest), length)]
        level[rest] = _searched_level(some, length[rest], least[rest], total[rest])
    return level


def _searched_level(most: IntArray, length: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Return the same by bisection; ``most`` is of these bids' entries."""
    indptr = np.concatenate([[0], np.cumsum(length)])
    floor = np.repeat(least, length)
    low = np.zeros(len(total), np.int64)
    high = np.full(len(total), int(most.max(initial=1)))
    while (low < high).any():
        middle = (low + high) // 2
        filled = sums_of(np.maximum(np.minimum(most, np.repeat(middle, length)), floor), indptr)
        enough = filled >= total
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return low
