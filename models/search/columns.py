"""The columns that the search's loop reads and changes (moves.py), made from a packing and an award."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...bidgen.columns import FloatArray, IntArray
from .moves import (
    BEST,
    BEST_LIKED,
    COUNTS,
    CYCLE_LENGTH,
    LIKED,
    RANDOM,
    THRESHOLDS,
    TOTAL,
    Shape,
    State,
)
from .packing import Packing
from .worth import Worth

#: Preferences are compared in billionths.
_BILLION = 1e9
#: Sums of weights stay below this, so that floats hold each of them.
_LARGEST_SUM = 1 << 52


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rows:
    """A packing in which a job is a row of capacity 1 like the others.

    Attributes:
        capacity: of each row, shape (rows,).
        indptr, row, amount: bid by bid, shape (bids + 1,), (entries,).
        by_row, bid, wanted: row by row, the largest amount first, shape (rows + 1,), (entries,).
        row_of: the row of each of those entries.
        own: rows that are no jobs, the first.
    """

    capacity: IntArray
    indptr: IntArray
    row: IntArray
    amount: IntArray
    by_row: IntArray
    bid: IntArray
    wanted: IntArray
    row_of: IntArray
    own: int

    def shape(self, worth: Worth, warmth: FloatArray) -> Shape:
        """Return what does not change; ``warmth`` is a share of the largest weight, cycle by cycle."""
        weight = _weights(worth)
        bids = len(weight)
        fits = np.bincount(self.bid[self.wanted > self.capacity[self.row_of]], minlength=bids) == 0
        return Shape(
            indptr=self.indptr,
            row=self.row,
            amount=self.amount,
            by_row=self.by_row,
            bid=self.bid,
            wanted=self.wanted,
            weight=weight,
            liked=np.rint(worth.preference * _BILLION).astype(np.int64),
            own=self.own,
            pool=np.flatnonzero(fits),
            threshold=-np.log((np.arange(THRESHOLDS) + 0.5) / THRESHOLDS),
            warmth=warmth * float(weight.max(initial=0)),
        )

    def state(self, award: IntArray, shape: Shape, counter: IntArray) -> State:
        """Return the state at an award that fits (bids, ascending); it is the best one met.

        ``counter`` holds what the counters are but for the award's.
        """
        bids, rows = len(self.indptr) - 1, len(self.capacity)
        won = np.zeros(bids, np.int64)
        won[award] = 1
        bid_of = np.repeat(np.arange(bids), np.diff(self.indptr))
        mine = won[bid_of] > 0
        used = np.bincount(self.row[mine], weights=self.amount[mine], minlength=rows)
        left = self.capacity - used.astype(np.int64)
        is_short = self.wanted > left[self.row_of]
        winners = np.flatnonzero(won[self.bid])
        held = np.bincount(self.row_of[winners], minlength=rows)
        within = np.arange(len(winners)) - np.repeat(np.cumsum(held) - held, held)
        holder = np.zeros(len(self.bid), np.int64)
        holder[self.by_row[self.row_of[winners]] + within] = self.bid[winners]
        counter[TOTAL] = counter[BEST] = np.asarray(shape.weight)[award].sum()
        counter[LIKED] = counter[BEST_LIKED] = np.asarray(shape.liked)[award].sum()
        return State(
            left=left,
            place=self.by_row[:-1] + np.bincount(self.row_of[is_short], minlength=rows),
            held=held,
            holder=holder,
            short=np.bincount(self.bid[is_short], minlength=bids),
            won=won,
            best=won.copy(),
            seen=np.zeros(bids, np.int64),
            candidate=np.zeros(bids, np.int64),
            key=np.zeros(bids),
            out=np.zeros(bids, np.int64),
            into=np.zeros(bids, np.int64),
            counter=counter,
        )


def rows_of(packing: Packing) -> Rows:
    """Return a packing's rows, those of its jobs after its own."""
    jobs = int(packing.job.max(initial=-1)) + 1
    own, bids = len(packing.capacity), len(packing)
    ends = packing.indptr[1:]
    indptr = packing.indptr + np.arange(bids + 1)
    row = np.insert(packing.row, ends, own + packing.job)
    amount = np.insert(packing.amount, ends, 1)
    bid = np.repeat(np.arange(bids), np.diff(indptr))
    order = np.lexsort((bid, -amount, row))
    return Rows(
        capacity=np.append(packing.capacity, np.ones(jobs, np.int64)),
        indptr=indptr,
        row=row,
        amount=amount,
        by_row=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=own + jobs))]),
        bid=bid[order],
        wanted=amount[order],
        row_of=row[order],
        own=own,
    )


def first_counters(seed: int, cycle: int) -> IntArray:
    """Return the counters before the first move."""
    counter = np.zeros(COUNTS, np.int64)
    # As srand48 does: low bits that are the same for all seeds are mixed in by the first numbers drawn.
    counter[RANDOM] = ((seed % (1 << 32)) << 16) + 0x330E
    counter[CYCLE_LENGTH] = cycle
    return counter


def _weights(worth: Worth) -> IntArray:
    """Return weights of which no sum is too large for a float; exact unless they are huge fractions."""
    total = sum(worth.weights)
    shift = max(0, (total // _LARGEST_SUM).bit_length())
    return np.array([weight >> shift for weight in worth.weights], np.int64)
