"""Columns of the search's loops (moves.py, repair_kernel.py): of a packing and an award."""

from collections.abc import Iterable, Mapping

import numpy as np

from ...cluster.resources.capacity import BoolArray, IntArray, ranges, sorted_places, sums_before
from ..solve.program import in_one_clique
from . import repair_kernel, swaps
from .bounding import runs_of
from .moves import (
    BEST,
    BEST_PREFERENCE,
    COMPLETED,
    DEPTH,
    KEPT,
    PREFERENCE,
    RANDOM,
    THRESHOLDS,
    TOTAL,
    MoveProblem,
    MoveState,
)
from .packing import EXACT_SUM, Packing, Worth
from .reductions import MOST_BIDS
from .repair_kernel import RepairProblem, RepairState
from .swaps import Swaps

#: Preferences are compared in billionths.
_BILLION = 1e9
#: Bids of which the pairs are found together.
_AT_ONCE = 64
#: How cycles of moves differ (moves.py), the first and the last as shares of the largest weight.
#: Every cycle begins with an empty machine: longer ones that go on find less. Where few bids would
#: do (their prices tell), moves have to be choosy; where many would, they must not.
_WARMTH, _DRAWN, _NOISE = np.array([0.02, 0.01, 0.01, 0.02]), np.array([3, 12, 3, 12]), 0.01


def rows_of(packing: Packing, worth: Worth) -> MoveProblem:
    """Return what moves read of a packing: a job is a row of capacity 1 after its own rows."""
    jobs = int(packing.job.max(initial=-1)) + 1
    own, bids = len(packing.capacity), len(packing)
    ends = packing.indptr[1:]
    indptr = packing.indptr + np.arange(bids + 1)
    row = np.insert(packing.row, ends, own + packing.job)
    amount = np.insert(packing.amount, ends, 1)
    capacity = np.append(packing.capacity, np.ones(jobs, np.int64))
    bid = np.repeat(np.arange(bids), np.diff(indptr))
    too_much = bid[amount > capacity[row]]
    # Bids of a row ascend already.
    order = sorted_places(amount.max(initial=0) - amount)
    order = order[sorted_places(row[order])]
    bidders = np.bincount(row, minlength=own + jobs)
    # Without a matrix of who excludes whom every row is taken as soft.
    is_hard = _hard_rows(amount[order], capacity, bidders) & (bids <= MOST_BIDS)
    near_at, near = _near(bid[order], is_hard, bidders)
    order = order[~is_hard[row[order]]]
    most = np.where(is_hard, np.minimum(bidders, 1), bidders)
    weight = weights_of(worth)
    largest = float(weight.max(initial=0))
    return MoveProblem(
        indptr=indptr,
        row=row,
        amount=amount,
        near_at=near_at,
        near=near,
        by_row=sums_before(np.where(is_hard, 0, bidders)),
        bid=bid[order],
        wanted=amount[order],
        room=sums_before(most),
        weight=weight,
        preference=preferences_of(worth),
        pool=np.flatnonzero(np.bincount(too_much, minlength=bids) == 0),
        own=own,
        threshold=-np.log((np.arange(THRESHOLDS) + 0.5) / THRESHOLDS),
        warmth=_WARMTH * largest,
        drawn=_DRAWN,
        noise=_NOISE * largest,
    )


def moves_at(packing: Packing, award: IntArray, shape: MoveProblem, counter: IntArray) -> MoveState:
    """Return the state of moves at an award that fits (bids, ascending); it is the best one met.

    ``counter`` holds what the counters are but for the award's.
    """
    row, by_row, room, bid = map(np.asarray, (shape.row, shape.by_row, shape.room, shape.bid))
    bids, rows = len(packing), len(room) - 1
    won = np.zeros(bids, np.int64)
    won[award] = 1
    bid_of = np.repeat(np.arange(bids), np.diff(shape.indptr))
    row_of = np.repeat(np.arange(rows), np.diff(by_row))
    mine = np.flatnonzero(won[bid_of])
    used = np.bincount(row[mine], weights=np.asarray(shape.amount)[mine], minlength=rows)
    capacity = np.append(packing.capacity, np.ones(rows - shape.own, np.int64))
    left = capacity - used.astype(np.int64)
    is_short = np.asarray(shape.wanted) > left[row_of]
    mine = mine[sorted_places(row[mine])]
    held = np.bincount(row[mine], minlength=rows)
    holder = np.zeros(int(room[-1]), np.int64)
    holder[ranges(room[:-1], held)] = bid_of[mine]
    # Exclusion is mutual.
    near_at, near = np.asarray(shape.near_at), np.asarray(shape.near)
    excluded = np.bincount(near[ranges(near_at[award], np.diff(near_at)[award])], minlength=bids)
    # Bids that want more than there is never fit.
    excluded += ~np.isin(np.arange(bids), shape.pool)
    counter[TOTAL] = counter[BEST] = np.asarray(shape.weight)[award].sum()
    counter[PREFERENCE] = counter[BEST_PREFERENCE] = np.asarray(shape.preference)[award].sum()
    return MoveState(
        left=left,
        place=by_row[:-1] + np.bincount(row_of[is_short], minlength=rows),
        held=held,
        holder=holder,
        short=np.bincount(bid[is_short], minlength=bids) + excluded,
        won=won,
        best=won.copy(),
        kept=np.zeros(KEPT * bids, np.int64),
        key=np.zeros(bids),
        marked=np.zeros(rows, np.int64),
        branch=np.zeros((DEPTH + 1) * COMPLETED, np.int64),
        counter=counter,
        **_zeros(("seen", "candidate", "out", "into"), bids),
        **_zeros(("ends", "begins", "worth", "pick", "found"), DEPTH + 1),
    )


def _zeros(names: Iterable[str], count: int) -> Mapping[str, IntArray]:
    """Return columns of so many integers, 0 each, by name."""
    return {name: np.zeros(count, np.int64) for name in names}


def _hard_rows(amount: IntArray, capacity: IntArray, bidders: IntArray) -> BoolArray:
    """Return on which rows no two bids fit together; entries: by row, the largest amount first."""
    ends = np.cumsum(bidders)
    pairs = np.flatnonzero(bidders > 1)
    least = np.zeros(len(capacity), np.int64)
    least[pairs] = amount[ends[pairs] - 1] + amount[ends[pairs] - 2]
    # A row of one bid that fits stands in nobody's way; of one that does not, no award has to know.
    return (least > capacity) | (bidders < 2)  # noqa: PLR2004 - a pair


def _near(bid: IntArray, is_hard: BoolArray, bidders: IntArray) -> tuple[IntArray, IntArray]:
    """Return which bids exclude each other through hard rows; entries are sorted by row."""
    count = int(bid.max(initial=-1)) + 1
    if not (is_hard & (bidders > 1)).any():
        return np.zeros(count + 1, np.int64), np.zeros(0, np.int64)
    excludes = in_one_clique(sums_before(bidders), bid, is_hard, count)
    np.fill_diagonal(excludes, val=False)
    near_at = sums_before(excludes.sum(axis=1))
    # Millions of pairs: one array of them is filled some rows at a time, none is made to make it.
    near = np.empty(int(near_at[-1]), np.int64)
    for first in range(0, count, _AT_ONCE):
        rows = excludes[first : first + _AT_ONCE]
        ends = near_at[first : first + len(rows) + 1]
        before = np.repeat(np.arange(len(rows)) * count, np.diff(ends))
        near[ends[0] : ends[-1]] = np.flatnonzero(rows) - before
    return near_at, near


def first_counters(seed: int, count: int, sequence: int) -> IntArray:
    """Return so many counters of a loop before it begins: the random number, then 0 each.

    As srand48 does: the 16 low bits, ``sequence``, are the same for all seeds and others for each
    loop. The first numbers drawn mix them in.
    """
    counter = np.zeros(count, np.int64)
    counter[RANDOM] = ((seed % (1 << 32)) << 16) + sequence
    return counter


def bids_of(packing: Packing, worth: Worth) -> RepairProblem:
    """Return what repairs read (repair_kernel.py)."""
    runs = runs_of(packing)
    columns = RepairProblem(
        ends=runs.ends,
        first=runs.first,
        end=runs.end,
        amount=runs.amount,
        job=packing.job,
        place=packing.places(),
        weight=weights_of(worth),
        preference=preferences_of(worth),
        value=worth.value,
        capacity=packing.capacity,
    )
    # Another layout would be another type to compile for.
    return RepairProblem(*map(np.ascontiguousarray, columns))


def repairs_at(award: IntArray, bids: RepairProblem, counter: IntArray) -> RepairState:
    """Return the state in which no repair is under way, at an award that fits (bids, ascending).

    ``counter`` holds what the counters are but for the award's.
    """
    count, rows = len(bids.weight), len(bids.capacity) + 1
    won = np.zeros(count, np.int64)
    won[award] = 1
    counter[[repair_kernel.CURRENT, repair_kernel.BEST]] = np.asarray(bids.weight)[award].sum()
    preference = np.asarray(bids.preference)[award].sum()
    counter[[repair_kernel.CURRENT_PREFERENCE, repair_kernel.BEST_PREFERENCE]] = preference
    counter[repair_kernel.LIVE] = -1
    return RepairState(
        won=won,
        current=won.copy(),
        best=won.copy(),
        held=np.zeros(int(np.max(bids.job, initial=-1)) + 1, np.int64),
        price=np.zeros(rows),
        share=np.zeros(count),
        gain=np.zeros(count),
        key=np.zeros(count),
        upto=np.zeros(rows),
        move=np.zeros(rows),
        counter=counter,
        **_zeros(("live", "chosen"), count),
        **_zeros(("left", "local", "wanted", "free", "used"), rows),
    )


def swaps_at(award: IntArray, shape: MoveProblem, counter: IntArray) -> Swaps:
    """Return the state of swaps at a fitting award (bids, ascending), the best and its run's best.

    ``counter`` holds what the counters are but for the award's.
    """
    weight, near_at, near, pool = map(np.asarray, (shape.weight, shape.near_at, shape.near, shape.pool))
    won = np.zeros(len(weight), np.int64)
    won[award] = 1
    adds = weight - swaps.FAR * won
    out = np.ones(len(weight), np.bool_)
    out[pool] = False
    adds[out] -= 2 * swaps.FAR
    for bid in award.tolist():
        adds[near[near_at[bid] : near_at[bid + 1]]] -= weight[bid]
    counter[[swaps.TOTAL, swaps.BEST, swaps.REACHED, swaps.RUN]] = weight[award].sum()
    counter[swaps.SINCE] = counter[swaps.SWAPS]
    # Who left another award may come in at once.
    counter[[swaps.IDLE, swaps.GONE]] = 0
    return Swaps(
        won=won,
        best=won.copy(),
        run=won.copy(),
        adds=adds,
        away=np.zeros(len(weight), np.int64),
        until=np.zeros(len(weight), np.int64),
        ends=np.zeros(swaps.KEPT * len(weight), np.int64),
        worth=np.zeros(swaps.KEPT, np.int64),
        counter=counter,
    )


def weights_of(worth: Worth) -> IntArray:
    """Return weights with no sum too large for a float; exact unless they are huge fractions."""
    total = sum(worth.weights)
    shift = max(0, (total // EXACT_SUM).bit_length())
    return np.array([weight >> shift for weight in worth.weights], np.int64)


def preferences_of(worth: Worth) -> IntArray:
    """Return preferences as integers."""
    preference: IntArray = np.rint(worth.preference * _BILLION).astype(np.int64)
    return preference
