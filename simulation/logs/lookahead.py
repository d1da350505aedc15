"""Backfilling with lookahead (Chapter 3, the sixth parameter; Shmueli and Feitelson's LOS).

docs/policies.md (lookahead) says what a pass does. Here is the fullest selection of jobs, exactly:
a knapsack now and, beside it, one at the shadow time.

Shmueli and Feitelson (Backfilling with lookahead, 2003/2005) fill a table over jobs × free
processors × extra processors. A job's weight at the shadow time is 0 (it has ended by then) or its
size, and its value is its size. So the table over two capacities is two subset sums: those of short
jobs, and those of long jobs within *extra*. A row of either is one integer: bit s says that s
processors can be filled exactly. Adding a job is a shift and an OR of whole machine words.

Jobs of one size and kind are interchangeable but for their place, and at most ⌊capacity / size⌋ of
them fit: only that many of the first are looked at. That bounds the rows by the machine, however
long the queue. Sizes count in units of their greatest common divisor. Where taking the first that
fits, again and again, fills all that is free, that is the answer, and there are no rows.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from math import gcd
from typing import NamedTuple

from ..backfilling.easy import FREE, start
from .selection import QueuePolicy

#: All rows together have at most this many bits (¼ GiB): beyond, only the first candidates are
#: looked at. It takes hundreds of sizes without a common divisor on millions of processors.
MOST_BITS = 2**31


class Candidate(NamedTuple):
    """A waiting job that fits now; ``long`` when it would still run at the shadow time."""

    job: int
    size: int
    long: bool


def fullest(candidates: Sequence[Candidate], free: int, extra: int) -> list[int]:
    """Return the jobs that together use most processors; of equal selections the first jobs'.

    Between two selections that use equally many, the better one holds the first candidate in which
    they differ.

    Args:
        candidates: in order of preference; each of at most ``free`` processors.
        free: processors that all together may use now.
        extra: processors that those still running at the shadow time may use together.
    """
    beside = min(extra, free)
    kept = _without_surplus(candidates, free, beside)
    greedy = _first_that_fit(kept, free, beside)
    used = sum(one.size for one in greedy)
    if used == free or len(greedy) == len(kept):
        return [one.job for one in greedy]
    unit = gcd(*(one.size for one in kept))
    free, beside = free // unit, beside // unit
    kept = [one._replace(size=one.size // unit) for one in kept[: max(MOST_BITS // (free + 1), 1)]]
    return _chosen(kept, free, beside)


def _first_that_fit(kept: Iterable[Candidate], free: int, beside: int) -> list[Candidate]:
    """Return what starts when each in turn does that still fits."""
    found = []
    for one in kept:
        if one.size <= free and (not one.long or one.size <= beside):
            found.append(one)
            free -= one.size
            beside -= one.size if one.long else 0
    return found


def _chosen(kept: Sequence[Candidate], free: int, beside: int) -> list[int]:
    rows = _rows(kept, free, beside)
    target = free
    while not _reaches(*rows[0], target, beside):
        target -= 1
    chosen: list[int] = []
    room = beside
    for one, (short, long) in zip(kept, rows[1:], strict=True):
        if not target:
            break
        left = room - one.size if one.long else room
        long_left = long >> (beside - left) if left >= 0 else 0
        if one.size <= target and _reaches(short, long_left, target - one.size, left):
            chosen.append(one.job)
            target, room = target - one.size, left
    return chosen


def _without_surplus(candidates: Sequence[Candidate], free: int, beside: int) -> list[Candidate]:
    """Return the candidates less those of which more stand before them than can start together."""
    left: dict[tuple[int, bool], int] = {}
    kept = []
    for one in candidates:
        kind = (one.size, one.long)
        count = left.setdefault(kind, (beside if one.long else free) // one.size)
        if count:
            kept.append(one)
            left[kind] = count - 1
    return kept


def _rows(kept: Sequence[Candidate], free: int, beside: int) -> list[tuple[int, int]]:
    """Return, before each candidate and after the last, the sums that it and those after it reach.

    Of the short sums bit s stands for s, of the long ones bit ``beside`` − s: then one AND compares
    all pairs whose sum is the same.
    """
    short, long = 1, 1 << beside
    within = (1 << (free + 1)) - 1
    rows = [(short, long)]
    for one in reversed(kept):
        if one.long:
            long |= long >> one.size
        else:
            short |= (short << one.size) & within
        rows.append((short, long))
    rows.reverse()
    return rows


def _reaches(short: int, long: int, target: int, room: int) -> bool:
    """Say whether a short and a long sum make ``target``; bit ``room`` − s of ``long`` means s."""
    moved = long << (target - room) if target >= room else long >> (room - target)
    return short & moved != 0


class Lookahead(QueuePolicy):
    """LOS over a queue sorted by job number, or by ``resort`` before each pass."""

    def backfill(self, now: float) -> None:
        """Start the fullest selection beside the head's reservation."""
        free, depth = self._counts[FREE], self._options.lookahead_depth
        looked_at = islice(self._queue, 1, None if depth is None else depth + 1)
        fitting = [job for job in looked_at if self._size[job] <= free]
        if not fitting:
            return
        shadow, extra = self._shadow(self._size[self._queue[0]])
        candidates = [Candidate(job, self._size[job], now + self._estimate[job] > shadow) for job in fitting]
        if self._options.lookahead_ties == "last":
            candidates.reverse()
        for job in fullest(candidates, free, extra):
            start(self._state, now, job)
