"""The fast path: a bid table straight to arrays, without PuLP.

Rows that cannot bind are dropped and equal rows merged with the least right side: what is left has
the same solutions as the PuLP model. Awards over it are compared by their ``Worth``: the exact sum
of weights, then preference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...bidgen.families.claims import Claim
from ...bidgen.families.registry import claims_of
from ...bidgen.table import BidTable
from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, ranges, sorted_places, sums_before
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ..solve.program import IntegerProgram


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Packing:
    """Bids and the capacities they share; at most one bid of a job wins.

    Attributes:
        job: of each bid, ascending, shape (bids,).
        first: first bid of each job that has one, shape (bidding jobs,).
        indptr, row, amount: what bid ``i`` takes of which capacity, shape (bids + 1,), (entries,).
        capacity: of each row, shape (rows,).
        origin: which of the capacities that it was made from each row is, shape (rows,).
    """

    job: IntArray
    first: IntArray
    indptr: IntArray
    row: IntArray
    amount: IntArray
    capacity: IntArray
    origin: IntArray

    def __len__(self) -> int:
        return len(self.job)

    @property
    def group(self) -> IntArray:
        """Which of the bidding jobs each bid is of, shape (bids,)."""
        return np.repeat(np.arange(len(self.first)), np.diff(np.append(self.first, len(self))))

    @property
    def has_parts(self) -> bool:
        """Whether some bid takes less of a row than there is."""
        return bool((self.amount < self.capacity[self.row]).any())

    def fit(self, bids: IntArray, left: IntArray) -> BoolArray:
        """Return which of some bids fit, each alone, in what is left of the capacities."""
        entries = self.entries(bids)
        short = self.amount[entries] > left[self.row[entries]]
        return _none_of(short, sums_before(self.lengths(bids)))

    def use(self, bids: IntArray) -> IntArray:
        """Return what some bids take of every capacity together, shape (rows,)."""
        entries = self.entries(bids)
        used = np.bincount(self.row[entries], weights=self.amount[entries], minlength=len(self.capacity))
        whole: IntArray = used.astype(np.int64)
        return whole

    def entries(self, bids: IntArray) -> IntArray:
        """Return the positions of the entries of some bids, one bid after another."""
        return ranges(self.indptr[bids], self.lengths(bids))

    def lengths(self, bids: IntArray) -> IntArray:
        """Return how many entries each of some bids has."""
        return self.indptr[bids + 1] - self.indptr[bids]

    def taken(self, bids: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return of each entry of some bids which of them it is of, its row, and its amount."""
        entries = self.entries(bids)
        return np.repeat(np.arange(len(bids)), self.lengths(bids)), self.row[entries], self.amount[entries]

    def places(self) -> IntArray:
        """Return each bid's place on the machine: its first capacity (they are in node order)."""
        padded = np.append(self.row, 0)
        places: IntArray = np.where(np.diff(self.indptr) > 0, padded[self.indptr[:-1]], 0)
        return places

    def by_row(self) -> "ByRow":
        """Return the entries capacity by capacity."""
        order = sorted_places(self.row)
        bid = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        counts = np.bincount(self.row, minlength=len(self.capacity))
        return ByRow(indptr=sums_before(counts), bid=bid[order], amount=self.amount[order])

    def fits(self, left: IntArray) -> BoolArray:
        """Return which bids alone would fit into what is left of the capacities, shape (bids,)."""
        return _none_of(self.amount > left[self.row], self.indptr)

    def cost(self, prices: FloatArray) -> FloatArray:
        """Return what every bid would pay at prices of the capacities, shape (bids,)."""
        paid = sums_before(self.amount * prices[self.row])
        cost: FloatArray = paid[self.indptr[1:]] - paid[self.indptr[:-1]]
        return cost

    def program(self, bids: IntArray, left: IntArray, *, all_win: bool = False) -> IntegerProgram:
        """Return the integer program over some bids (ascending) and what is left of the capacities.

        ``all_win``: each of their jobs has to win with one of them.
        """
        jobs, place = np.unique(self.job[bids], return_inverse=True)
        column, row, amount = self.taken(bids)
        if len(bids) == len(self) and left is self.capacity:
            # That is what the packing is: it has been reduced.
            reduced = _Rows(row, column, amount, left, self.origin)
        else:
            rows, row = np.unique(row, return_inverse=True)
            reduced = _reduced(row, column, amount, left[rows], self.job[bids])
        all_rows = np.concatenate([place, len(jobs) + reduced.row])
        all_columns = np.concatenate([np.arange(len(bids)), reduced.column])
        values = np.concatenate([np.ones(len(bids)), reduced.amount])
        # Columns of a row ascend already.
        order = sorted_places(all_rows)
        count = len(jobs) + len(reduced.capacity)
        lower = np.full(count, -np.inf)
        if all_win:
            lower[: len(jobs)] = 1.0
        return IntegerProgram(
            objective=np.zeros(len(bids)),
            lower=np.zeros(len(bids)),
            upper=np.ones(len(bids)),
            is_integer=np.ones(len(bids), np.bool_),
            row_lower=lower,
            row_upper=np.concatenate([np.ones(len(jobs)), reduced.capacity]),
            indptr=sums_before(np.bincount(all_rows, minlength=count)),
            index=all_columns[order],
            value=values[order],
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ByRow:
    """Who bids on each capacity: row ``r``: ``bid[indptr[r]:indptr[r + 1]]``, ``amount`` each."""

    indptr: IntArray
    bid: IntArray
    amount: IntArray

    def of(self, row: int) -> tuple[IntArray, IntArray]:
        """Return the bids on one capacity, and what each wants of it."""
        mine = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
        return self.bid[mine], self.amount[mine]


def _none_of(flags: BoolArray, indptr: IntArray) -> BoolArray:
    """Return for each range of ``indptr`` whether no flag is set."""
    ended = np.append(flags, values=False)
    found = np.logical_or.reduceat(ended, indptr[:-1]) if len(indptr) > 1 else flags[:0]
    none: BoolArray = ~found | (np.diff(indptr) == 0)
    return none


def packing_of(table: BidTable, columns: Columns, guards: tuple[Guard, ...] = ()) -> Packing:
    """Return a table's bids and the capacities of every family."""
    return packing_within(table, claims_of(table, columns, guards))


def packing_within(table: BidTable, claims: Iterable[Claim], *, reduces: bool = True) -> Packing:
    """Return a table's bids and the capacities of some claims, one after another."""
    bid, none = table.bid, np.zeros(0, np.int64)
    rows, bids, amounts, capacities = [none], [none], [none], [none]
    offset = 0
    for claim in claims:
        wanted = np.flatnonzero(claim.amount)
        rows.append(claim.row[wanted] + offset)
        bids.append(wanted if claim.by_bid else bid[wanted])
        amounts.append(claim.amount[wanted])
        capacities.append(claim.capacity)
        offset += len(claim.capacity)
    columns = map(np.concatenate, (bids, rows, amounts, capacities))
    return packing_from(table.job, *columns, reduces=reduces)


def packing_from(
    job: IntArray,
    bid: IntArray,
    row: IntArray,
    amount: IntArray,
    capacity: IntArray,
    *,
    reduces: bool = True,
) -> Packing:
    """Return bids that take amounts of rows: ``bid[i]`` takes ``amount[i]`` of ``row[i]``.

    Args:
        job: of each bid, ascending, shape (bids,).
        bid: of each entry, shape (entries,); ``row`` and ``amount`` alike.
        row: which capacity it takes of.
        amount: how much.
        capacity: of each row, shape (rows,).
        reduces: rows that cannot bind are dropped and equal ones merged; that pays where a program
            follows. Else rows stay as they are, and tell what they are by their places.
    """
    if reduces:
        rows = _reduced(row, bid, amount, capacity, job)
    else:
        rows = _Rows(row, bid, amount, capacity, np.arange(len(capacity)))
    order = sorted_places(rows.column)
    return Packing(
        job=job,
        first=np.flatnonzero(np.diff(job, prepend=-1)),
        indptr=sums_before(np.bincount(rows.column, minlength=len(job))),
        row=rows.row[order],
        amount=rows.amount[order],
        capacity=rows.capacity,
        origin=rows.origin,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    row: IntArray
    column: IntArray
    amount: IntArray
    capacity: IntArray
    origin: IntArray


def _reduced(row: IntArray, column: IntArray, amount: IntArray, capacity: IntArray, job: IntArray) -> _Rows:
    """Drop rows that cannot bind and merge equal ones; rows are numbered anew, in their order."""
    binds = _could_bind(row, job[column], amount, capacity)
    keep = binds[row]
    row, column, amount = row[keep], column[keep], amount[keep]
    least = capacity.copy()
    same = _first_equal(row, column, amount, len(capacity))
    np.minimum.at(least, same, capacity)
    stays = binds & (same == np.arange(len(capacity)))
    number = np.cumsum(stays) - 1
    keep = stays[row]
    return _Rows(number[row[keep]], column[keep], amount[keep], least[stays], np.flatnonzero(stays))


def _could_bind(row: IntArray, job: IntArray, amount: IntArray, capacity: IntArray) -> BoolArray:
    """Return which rows some award could overfill: each job by its bid that wants most of it."""
    if not len(row):
        return np.zeros(len(capacity), np.bool_)
    key = row * (int(job.max()) + 1) + job
    order = sorted_places(key)
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    largest = np.maximum.reduceat(amount[order], starts)
    total = np.bincount(row[order][starts], weights=largest, minlength=len(capacity))
    binds: BoolArray = total > capacity
    return binds


def _first_equal(row: IntArray, column: IntArray, amount: IntArray, rows: int) -> IntArray:
    """Return for each row the first row with the same entries, by 128-bit fingerprints."""
    if not len(row):
        return np.arange(rows)
    prints = np.zeros((2, rows), np.uint64)
    for half, words in zip(prints, _words(int(column.max()) + 1), strict=True):
        np.add.at(half, row, words[column] * amount.astype(np.uint64))
    order = np.lexsort(prints)
    begins = np.append(True, (np.diff(prints[:, order]) != 0).any(axis=0))
    equal = np.empty(rows, np.int64)
    # Of equal rows the sort, which is stable, leaves the first in front.
    equal[order] = order[begins][np.cumsum(begins) - 1]
    return equal


@lru_cache(maxsize=64)
def _words(count: int) -> npt.NDArray[np.uint64]:
    """Return two random words for each of so many columns."""
    return np.random.default_rng(1).integers(1, 2**63, (2, count), np.uint64)


#: The largest weight becomes this for the solver: room on both sides of its tolerances.
SCALE = 1e4
#: Sums of weights below this are held by integers of 64 bits and by floats.
EXACT_SUM = 1 << 52


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Worth:
    """What bids are worth.

    Attributes:
        weights: exact integers, compared as such.
        value: the same as floats for the solver, scaled so that the largest is near 10⁴.
        preference: second, not negative.
    """

    weights: list[int]
    value: FloatArray
    preference: FloatArray

    @classmethod
    def scaled(cls, weights: list[int], preference: FloatArray) -> "Worth":
        """Return bids' worth by their weights, not negative, and preference; shape (bids,)."""
        largest = max(weights, default=1) or 1
        value = np.array([weight / largest for weight in weights]) * SCALE
        return cls(weights=weights, value=value, preference=preference)

    def of(self, bids: IntArray) -> tuple[int, float]:
        """Return an award's exact sum and its preference."""
        return sum(self.weights[bid] for bid in bids.tolist()), round(float(self.preference[bids].sum()), 9)
