"""Amounts that are dealt over nodes, left out of a program and dealt afterwards (Benders 1962).

AUCSCHED1's r deal the rest of a bid's cores over its nodes: each amount is in its bid's sum (4.4),
below its bid's bound (4.7) and in a node's capacity (4.5), and in no objective. So the program over
the bids alone is solved, each with the least that it must take of every node; a flow from bids over
nodes tells whether the winners' other cores can be dealt. If not, the nodes N of a least cut have
too little: there winners take at least what their other nodes cannot hold, so that

    Σ_i (what i takes of N besides + max(0, rest_i − Σ_{n ∉ N} most_in))·b_i ≤ Σ_{n ∈ N} free_n

holds for every award and not for this one. With this row the bids are solved again.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from .presolve import without_implied
from .program import IntegerProgram, Rows, are_one

#: Bids × capacity rows above which pairs of bids are not looked at.
_MOST_CELLS = 2_000_000
#: Pairs × rows that are looked at together: arrays that stay in the cache.
_CELLS_AT_ONCE = 20_000


class Cut(NamedTuple):
    """A row ``values · x ≤ upper`` over the columns that are left."""

    values: FloatArray
    upper: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AmountFlow:
    """Amounts of bids that are dealt over capacity rows.

    Attributes:
        bid, row, most: of each amount its bid, its capacity row (−1: none), and the most of it,
            shape (amounts,).
        rest: what the amounts of each bid sum to where it wins, shape (bids,).
        fixed: what bids take themselves of capacity rows, shape (bids, rows).
        free: of each capacity row, shape (rows,).
        cuts: found so far.
    """

    bid: IntArray
    row: IntArray
    most: FloatArray
    rest: FloatArray
    fixed: FloatArray
    free: FloatArray
    cuts: list[Cut] = field(default_factory=list)

    def amounts(self, values: FloatArray) -> FloatArray | None:
        """Return all amounts for the bids' values; None: they cannot be dealt: one more cut."""
        wins = are_one(values)
        mine = np.flatnonzero(wins[self.bid])
        flow = _Flow(
            self.bid[mine].tolist(),
            self.row[mine].tolist(),
            self.most[mine].tolist(),
            {bid: float(self.rest[bid]) for bid in np.flatnonzero(wins & (self.rest > 0)).tolist()},
            (self.free - wins.astype(np.float64) @ self.fixed).tolist(),
        )
        short = flow.run()
        if short is not None:
            self.cuts.append(self._cut(short))
            return None
        amounts = np.zeros(len(self.bid))
        amounts[mine] = flow.amounts
        return amounts

    def excluding(self, known: BoolArray) -> BoolArray:
        """Return which two bids cannot both be dealt to, shape (bids, bids).

        Of those that are known to exclude each other, same shape, nothing is said.

        Two bids i and k can be, where each alone can and both together (Gale 1957):
        rest_i + rest_k ≤ Σ_n min(free_n, most_in + most_kn), free_n without what both take besides.
        Of too many bids and rows none is looked at.
        """
        count = len(self.rest)
        if count * len(self.free) > _MOST_CELLS:
            return np.zeros((count, count), np.bool_)
        most, fixed, free, times = self._alike_rows()
        alone = np.bincount(self.bid[self.row < 0], self.most[self.row < 0], minlength=count)
        excludes = np.zeros((count, count), np.bool_)
        deals = np.flatnonzero((self.rest > 0) | self.fixed.any(axis=1))
        first, second = np.triu_indices(len(deals), 1)
        asked = ~known[deals[first], deals[second]]
        first, second = deals[first[asked]], deals[second[asked]]
        at_once = _CELLS_AT_ONCE // max(len(free), 1) + 1
        for begin in range(0, len(first), at_once):
            one, other = first[begin : begin + at_once], second[begin : begin + at_once]
            left = np.maximum(free - fixed[one] - fixed[other], 0.0)
            mine, theirs = most[one], most[other]
            both = np.minimum(left, mine + theirs) @ times + alone[one] + alone[other]
            cannot = both < self.rest[one] + self.rest[other]
            cannot |= np.minimum(left, mine) @ times + alone[one] < self.rest[one]
            cannot |= np.minimum(left, theirs) @ times + alone[other] < self.rest[other]
            excludes[one, other] = excludes[other, one] = cannot
        return excludes

    def _alike_rows(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return by unlike row what bids may put on and take, what is free, how many are alike."""
        rows, columns = len(self.free), len(self.rest)
        held = np.zeros((rows, 2 * columns + 1))
        limited = self.row >= 0
        np.add.at(held, (self.row[limited], self.bid[limited]), self.most[limited])
        held[:, columns:-1] = self.fixed.T
        held[:, -1] = self.free
        place: dict[bytes, int] = {}
        kind = [place.setdefault(one.tobytes(), len(place)) for one in held]
        _, first, times = np.unique(kind, return_index=True, return_counts=True)
        some = held[first]
        return some[:, :columns].T, some[:, columns:-1].T, some[:, -1], times.astype(np.float64)

    def _cut(self, rows: set[int]) -> Cut:
        """Return what every award keeps on some capacity rows."""
        there = np.zeros(len(self.free) + 1, np.bool_)
        there[list(rows)] = True
        besides = np.where(there[self.row], 0.0, self.most)
        elsewhere = np.bincount(self.bid, besides, minlength=len(self.rest))
        needed = np.maximum(self.rest - elsewhere, 0.0) + self.fixed @ there[:-1]
        return Cut(needed, float(self.free @ there[:-1]))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decomposition(AmountFlow):
    """A program without the amounts that are dealt afterwards.

    Attributes:
        program: over the columns that are left, its rows relaxed; with the ``cuts`` it has the
            solutions of the whole one, as far as these are known to matter.
        kept: which columns of the whole program are left, ascending: the bids.
        columns: how many the whole program has.
        amount: the column of the whole program of each amount, shape (amounts,).
    """

    program: IntegerProgram
    kept: IntArray
    columns: int
    amount: IntArray

    def dealt(self, values: FloatArray) -> FloatArray | None:
        """Return the whole program's values; None: the amounts cannot be dealt (``amounts``)."""
        amounts = self.amounts(values)
        if amounts is None:
            return None
        whole = np.zeros(self.columns)
        whole[self.kept] = values
        whole[self.amount] = amounts
        return whole


class _Flow:
    """The most that bids can put on rows; arrays are of amounts or, by number, of bids and rows."""

    def __init__(
        self, bid: list[int], row: list[int], most: list[float], rest: dict[int, float], free: list[float]
    ) -> None:
        self._bid, self._row, self._most = bid, row, most
        self._rest, self._free = rest, free
        self.amounts = [0.0] * len(bid)
        self._of_bid: dict[int, list[int]] = {one: [] for one in rest}
        self._of_row: dict[int, list[int]] = {}
        for number, one in enumerate(bid):
            if one in self._of_bid:
                self._of_bid[one].append(number)
                self._of_row.setdefault(row[number], []).append(number)

    def run(self) -> set[int] | None:
        """Deal everything; return the capacity rows of a least cut where that cannot be."""
        for bid, rest in self._rest.items():
            left = rest
            # Where nobody else is, first.
            for number in sorted(self._of_bid[bid], key=lambda one: self._row[one] >= 0):
                given = min(left, self._most[number], self._left_on(self._row[number]))
                if given > 0:
                    self.amounts[number] += given
                    left -= given
                    if self._row[number] >= 0:
                        self._free[self._row[number]] -= given
            while left > 0:
                path = self._path(bid)
                if isinstance(path, set):
                    return path
                left -= self._along(path, left)
        return None

    def _left_on(self, row: int) -> float:
        return float("inf") if row < 0 else self._free[row]

    def _path(self, bid: int) -> list[int] | set[int]:
        """Return amounts that are to grow and shrink in turn, or the rows that can be reached."""
        came: dict[int, int] = {}
        seen, rows, queue = {bid}, set[int](), deque([bid])
        while queue:
            for number in self._of_bid[at := queue.popleft()]:
                row = self._row[number]
                if self.amounts[number] >= self._most[number] or row in rows:
                    continue
                came[number] = came.get(-1 - at, -1)
                if row < 0 or self._free[row] > 0:
                    path = [number]
                    while (number := came[number]) >= 0:
                        path.append(number)
                    return path
                rows.add(row)
                for other in self._of_row[row]:
                    if self.amounts[other] > 0 and self._bid[other] not in seen:
                        seen.add(self._bid[other])
                        came[other] = number
                        came[-1 - self._bid[other]] = other
                        queue.append(self._bid[other])
        return rows

    def _along(self, path: list[int], left: float) -> float:
        """Change amounts along a path that ends at the first of them; return by how much."""
        end = self._row[path[0]]
        given = min(left, self._left_on(end))
        for place, number in enumerate(path):
            room = self._most[number] - self.amounts[number] if place % 2 == 0 else self.amounts[number]
            given = min(given, room)
        for place, number in enumerate(path):
            self.amounts[number] += given if place % 2 == 0 else -given
        if end >= 0:
            self._free[end] -= given
        return given


def dealing_of(program: IntegerProgram, is_amount: BoolArray, counts: BoolArray) -> Decomposition | None:
    """Return a program without its amounts; None: it has none, or they are more than amounts.

    Args:
        program: presolved (presolve.py).
        is_amount: which columns may be amounts.
        counts: which columns some objective counts.
    """
    sound = program.is_integer & (program.lower == 0) & ~counts
    if not is_amount.any() or (is_amount & ~sound).any() or (~is_amount & ~program.is_binary).any():
        return None
    return _Roles(program, is_amount).decomposed()


class _Roles:
    """What each row of a program is: a bid's sum of amounts, a bound on one, a capacity, other."""

    def __init__(self, program: IntegerProgram, is_amount: BoolArray) -> None:
        self._program, self._is_amount = program, is_amount
        self._rows = rows = Rows.of(program)
        mine, below = is_amount[rows.column], (rows.value < 0) & ~is_amount[rows.column]
        amounts, others = rows.sums(mine), rows.sums(~mine)
        led = (rows.sums(below) == 1) & (others == 1) & (rows.upper == 0) & (amounts > 0)
        self._is_sum = led & (rows.lower == 0)
        self._is_bound = led & (rows.lower == -np.inf) & (amounts == 1)
        self._is_capacity = (amounts > 0) & ~self._is_sum & ~self._is_bound
        #: The column that leads each row, and how often it counts.
        self._leads = np.full(len(rows.lower), -1)
        self._leads[rows.row[below]] = rows.column[below]
        self._times = rows.sums(np.where(below, -rows.value, 0.0))
        self._mine = mine

    def _are_sound(self) -> bool:
        """Return whether amounts are whole, and capacities only upper sides that others share."""
        rows, capacity = self._rows, self._is_capacity
        upper_only = (rows.lower[capacity] == -np.inf) & np.isfinite(rows.upper[capacity])
        return bool((rows.value[self._mine] == 1).all() and upper_only.all()) and not bool(
            (rows.value[capacity[rows.row]] < 0).any()
        )

    def decomposed(self) -> Decomposition | None:
        """Return the program without amounts."""
        rows, program = self._rows, self._program
        if not self._are_sound():
            return None
        row, column = rows.row[self._mine], rows.column[self._mine]
        sums, limits = self._is_sum[row], self._is_capacity[row]
        count = program.columns
        in_sums = np.bincount(column[sums], minlength=count)
        in_limits = np.bincount(column[limits], minlength=count)
        if (in_sums[self._is_amount] != 1).any() or (in_limits > 1).any():
            return None
        owner, place = np.full(count, -1), np.full(count, -1)
        owner[column[sums]] = self._leads[row[sums]]
        number = np.cumsum(self._is_capacity) - 1
        place[column[limits]] = number[row[limits]]
        bounds = self._is_bound[row]
        if (self._leads[row[bounds]] != owner[column[bounds]]).any():
            return None
        rest = np.zeros(count)
        # A bid with two sums has amounts of two kinds: none of the papers' has.
        if (np.bincount(self._leads[self._is_sum], minlength=count) > 1).any():
            return None
        rest[self._leads[self._is_sum]] = self._times[self._is_sum]
        most = program.upper.copy()
        np.minimum.at(most, column[bounds], self._times[row[bounds]])
        amount = np.flatnonzero(self._is_amount)
        most = np.minimum(most[amount], rest[owner[amount]])
        return self._without(amount, owner[amount], place[amount], most, rest)

    def _without(
        self, amount: IntArray, owner: IntArray, place: IntArray, most: FloatArray, rest: FloatArray
    ) -> Decomposition:
        program, rows = self._program, self._rows
        kept = np.flatnonzero(~self._is_amount)
        left = np.cumsum(~self._is_amount) - 1
        # What of a bid's rest the others of its nodes cannot hold.
        all_most = np.bincount(owner, most, program.columns)
        least = np.zeros(program.columns)
        least[amount] = np.maximum(rest[owner] - (all_most[owner] - most), 0.0)
        to = np.arange(program.columns)
        to[amount] = owner
        value = np.where(self._mine, rows.value * least[rows.column], rows.value)
        relaxed = replace(rows, column=left[to[rows.column]], columns=len(kept), value=value).summed()
        relaxed = relaxed.only(~(self._is_sum | self._is_bound))
        bids = replace(
            program,
            objective=program.objective[kept],
            lower=program.lower[kept],
            upper=program.upper[kept],
            is_integer=program.is_integer[kept],
        )
        fixed = np.zeros((len(kept), int(self._is_capacity.sum())))
        others = self._is_capacity[rows.row] & ~self._mine
        number = np.cumsum(self._is_capacity) - 1
        fixed[left[rows.column[others]], number[rows.row[others]]] = rows.value[others]
        return Decomposition(
            program=without_implied(bids, relaxed),
            kept=kept,
            columns=program.columns,
            amount=amount,
            bid=left[owner],
            row=place,
            most=most,
            rest=rest[kept],
            fixed=fixed,
            free=rows.upper[self._is_capacity],
        )
