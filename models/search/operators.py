"""What makes other awards of the one at hand by compiled loops: exchanges, repairs and swaps.

Exchange and complete: from one award to the next, tens of thousands of moves a second (moves.py).
Cycles of moves begin with an empty machine and warm, where a move that loses a little may stand,
and end cold; kinds of cycles take turns, and each turn is twice as long as the one before.

Destroy and repair: some winners leave, and what is free is auctioned again, price by price
(repair_kernel.py). Where bids are long and hold parts of nodes, one repair over a third of the
machine finds what exchanges of a few winners do not.

Swaps: from one award to the next by the bids that add most (swaps.py), where every row is hard.
Each looks at all bids: there are none without numba.

No clock takes part: the same seed makes the same moves, compiled or not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, sorted_places
from . import repair_kernel
from . import swaps as swap_kernel
from .compiled_search import ColumnsT, Swap, as_lists, compiled_loop, compiled_repairs, is_loaded
from .moves import COUNTS, CYCLE_LENGTH, KEPT, Floats, MoveProblem, MoveState, make_moves
from .packing import Packing, Worth
from .repair_kernel import REPAIRS, RepairProblem, RepairState, make_repairs
from .search_columns import bids_of, first_counters, moves_at, repairs_at, rows_of, swaps_at, weights_of
from .swaps import FAR, make_swaps

#: Moves of the first cycle.
_FIRST_CYCLE = 1000
#: Moves between two looks at the clock, compiled and not.
_CHUNK, _PLAIN_CHUNK = 100, 10
#: Windows of fewer bids are left to plain Python unless the compiled loop is at hand: loading it
#: takes longer.
FEW_BIDS = 300
#: Bids that a greedy award looks at together.
_AT_ONCE = 256
#: What a bid that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 0.002


class Operator(Protocol):
    """What makes other awards of the one at hand: ``award`` is the best that it met."""

    award: IntArray

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best so far."""


class ColumnSearch(ABC):
    """The best award met, and a loop over columns that makes others of it.

    Columns are made when the loop is wanted first: many searches end before.

    Args:
        worth: what awards are compared by.
        start: an award that fits.
        plain: the loop as it is.
        load: returns it compiled, None where that is not at hand.
    """

    def __init__(
        self, worth: Worth, start: IntArray, plain: Callable[..., Any], load: Callable[[], Any]
    ) -> None:
        self._worth = worth
        self._plain, self._load = plain, load
        self.award, self.best = start, worth.of(start)

    @cached_property
    def _loop(self) -> Callable[..., Any]:
        """The loop; looked for when it is wanted, not before."""
        return self._load() or self._plain

    @property
    def is_compiled(self) -> bool:
        """Whether the loop is compiled: it wants arrays then, else lists."""
        return self._loop is not self._plain

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best so far."""
        if value > self.best:
            self.award, self.best = award, value
            self._restart()

    @abstractmethod
    def run(self, count: int, is_over: Callable[[], bool]) -> None:
        """Make so many other awards, fewer when the time is up."""

    @abstractmethod
    def _restart(self) -> None:
        """Go on from the best award."""

    def _formed(self, columns: ColumnsT) -> ColumnsT:
        """Return columns, arrays, as the loop wants them."""
        return columns if self.is_compiled else as_lists(columns)

    def _numbers(self, column: FloatArray) -> Floats:
        """Return one column, an array, as the loop wants it."""
        return column if self.is_compiled else column.tolist()

    def _keep(self, award: IntArray) -> None:
        """Take an award that is better than the best so far."""
        value = self._worth.of(award)
        if value > self.best or not len(self.award):
            self.award, self.best = award, value


class ExchangeSearch(ColumnSearch):
    """The award at hand, the best one met, and the moves from one to the next.

    Attributes:
        gain: of each bid at the prices at hand, shape (bids,).
    """

    _shape: MoveProblem
    gain: FloatArray

    def __init__(
        self,
        packing: Packing,
        worth: Worth,
        price: FloatArray,
        start: IntArray,
        seed: int,
        *,
        may_wait: bool = True,
    ) -> None:
        """Begin at ``start`` and what fits beside it; ``may_wait``: the loop may be loaded now."""
        may_load = may_wait and len(packing) >= FEW_BIDS
        load = lambda: compiled_loop() if may_load or is_loaded() else None  # noqa: E731 - lazy
        super().__init__(worth, start, make_moves, load)
        self._packing = packing
        self._largest = float(weights_of(worth).max(initial=0))
        self._made: MoveState | None = None
        self.guide(price)
        counter = first_counters(seed, COUNTS, 0x330E)
        counter[CYCLE_LENGTH] = _FIRST_CYCLE
        self._begin(start, counter)

    @property
    def sets(self) -> MoveProblem | None:
        """The columns as arrays where every row is hard (moves.py); None where some row is not."""
        return self._arrays if self.is_compiled and not len(self._arrays.bid) else None

    @cached_property
    def _arrays(self) -> MoveProblem:
        return rows_of(self._packing, self._worth)

    @property
    def _state(self) -> MoveState:
        """The state that moves go on from."""
        if self._made is None:
            award, counter = self._beginning
            self._made = self._formed(moves_at(self._packing, award, self._arrays, counter))
            self._shape = self._formed(self._arrays)
        return self._made

    def _restart(self) -> None:
        self._begin(self.award, self._beginning[1] if self._made is None else np.array(self._made.counter))

    def others(self) -> list[IntArray]:
        """Return the awards at the ends of the last cycles, the best first, each once."""
        if self._made is None:
            return []
        bids = len(self._packing)
        kept = np.asarray(self._made.kept).reshape(KEPT, bids)
        awards = {one.tobytes(): one for one in (np.flatnonzero(row) for row in kept) if len(one)}
        return sorted(awards.values(), key=self._worth.of, reverse=True)

    def guide(self, price: FloatArray) -> None:
        """Prefer bids by other prices of the packing's rows, in units of ``Worth.value``.

        A job costs what its best bid gains: then no bid is worth more than it pays.
        """
        packing, value = self._packing, self._worth.value
        unit = self._largest / (float(value.max(initial=0.0)) or 1.0)
        cost = packing.cost(price)
        of_job = np.zeros(int(packing.job.max(initial=-1)) + 1)
        np.maximum.at(of_job, packing.job, value - cost)
        self.gain = (value - cost - of_job[packing.job]) * unit
        self._price = np.concatenate([price, of_job]) * unit
        # Rounding must not make a bid worth more than it pays.
        self._price *= 1 + 1e-9
        largest = float(value.max(initial=0.0)) or 1.0
        ratio = value / (np.maximum(cost, 0.0) + _LEAST_COST * largest)
        self._order = np.argsort(-ratio, kind="stable")

    def narrow(self, alive: BoolArray) -> None:
        """Let in only bids that are alive, shape (bids,): those that a better award could hold."""
        pool = np.asarray(self._arrays.pool)
        left, gone = pool[alive[pool]], pool[~alive[pool]]
        if not len(left) or not len(gone):
            return
        self._arrays = self._arrays._replace(pool=left)
        if self._made is not None:
            self._shape = self._formed(self._arrays)
            for bid in gone.tolist():
                self._made.short[bid] += 1

    def run(self, count: int, is_over: Callable[[], bool]) -> None:
        """Make so many moves, fewer when the time is up."""
        state, chunk = self._state, _CHUNK if self.is_compiled else _PLAIN_CHUNK
        if not len(self._arrays.pool):
            return
        gain, price = self._numbers(self.gain), self._numbers(self._price)
        while count > 0 and not is_over():
            self._loop(self._shape, state, gain, price, min(count, chunk))
            count -= chunk
        self._keep(np.flatnonzero(np.asarray(state.best)))

    def _begin(self, award: IntArray, counter: IntArray) -> None:
        """Go on from an award and what fits beside it."""
        award = greedy_by(self._packing, np.concatenate([award, self._order]))
        self._beginning = award, counter
        if self._made is not None:
            state = moves_at(self._packing, award, self._arrays, counter)
            kept = np.array(self._made.kept)
            self._made = self._formed(state._replace(kept=kept))
        self._keep(award)


def greedy_by(packing: Packing, order: IntArray) -> IntArray:
    """Return the award that takes bids in an order as they fit, ascending."""
    left = packing.capacity.copy()
    has_won = np.zeros(int(packing.job.max(initial=-1)) + 1, np.bool_)
    award: list[int] = []
    indptr, job = packing.indptr.tolist(), packing.job.tolist()
    for begin in range(0, len(order), _AT_ONCE):
        # Less is left with every bid taken: those that do not fit now are done with, all at once.
        some = order[begin : begin + _AT_ONCE]
        some = some[~has_won[packing.job[some]]]
        for bid in some[packing.fit(some, left)].tolist():
            entries = slice(indptr[bid], indptr[bid + 1])
            rows, amount = packing.row[entries], packing.amount[entries]
            if not has_won[job[bid]] and (left[rows] >= amount).all():
                left[rows] -= amount
                has_won[job[bid]] = True
                award.append(bid)
    return np.sort(np.array(award, np.int64))


def greedy_award(packing: Packing, worth: Worth, start: IntArray) -> IntArray:
    """Return the start or a better greedy award, its winners with the bids that they prefer.

    The groups have their turns in the order of the packing, by what their bids are worth, and by
    how much these are preferred; each takes, of those of its bids that still fit, the one worth
    most, of equals the most preferred.
    """
    if not len(packing):
        return start
    second = worth.preference
    by_worth = np.lexsort((-second, -worth.value, packing.job))
    keys = (
        np.arange(len(packing.first)),
        *(-np.maximum.reduceat(one, packing.first) for one in (worth.value, second)),
    )
    awards = [start]
    for key in keys:
        rank = np.empty(len(key), np.int64)
        rank[np.argsort(key, kind="stable")] = np.arange(len(key))
        awards.append(greedy_by(packing, by_worth[sorted_places(rank[packing.group[by_worth]])]))
    return _more_preferred(packing, worth, max(awards, key=worth.of))


def _more_preferred(packing: Packing, worth: Worth, award: IntArray) -> IntArray:
    """Let each winner in turn take a bid of equal worth that it prefers, beside the others."""
    used, chosen = packing.use(award), award.copy()
    value, preference = worth.value, worth.preference
    ends = np.append(packing.first[1:], len(packing))
    for place, bid in enumerate(award.tolist()):
        group = int(np.searchsorted(packing.first, bid, side="right")) - 1
        first, last = int(packing.first[group]), int(ends[group])
        mine = packing.use(np.array([bid]))
        fits = packing.fits(packing.capacity - used + mine)[first:last]
        fits &= (preference[first:last] > preference[bid]) & (value[first:last] == value[bid])
        if fits.any():
            better = first + int(np.argmax(np.where(fits, preference[first:last], -np.inf)))
            used += packing.use(np.array([better])) - mine
            chosen[place] = better
    return np.sort(chosen)


#: How often bids are taken between two looks at the clock, compiled and not.
_REPAIR_CHUNK, _PLAIN_REPAIR_CHUNK = 16, 1


class DestroyRepair(ColumnSearch):
    """The award at hand, the best one met, and repairs of it, all from the same prices."""

    _bids: RepairProblem

    def __init__(self, packing: Packing, worth: Worth, price: FloatArray, start: IntArray, seed: int) -> None:
        load = lambda: compiled_repairs() if is_loaded() else None  # noqa: E731 - asked when wanted
        super().__init__(worth, start, make_repairs, load)
        self._packing = packing
        self._price = price
        self._made: RepairState | None = None
        self._counter = first_counters(seed, repair_kernel.COUNTS, 0x5EED)

    @property
    def _state(self) -> RepairState:
        if self._made is None:
            self._arrays = bids_of(self._packing, self._worth)
            self._bids = self._formed(self._arrays)
            self._made = self._formed(repairs_at(self.award, self._arrays, self._counter))
        return self._made

    def _restart(self) -> None:
        if self._made is not None:
            counter = np.array(self._made.counter)
            self._made = self._formed(repairs_at(self.award, self._arrays, counter))

    def run(self, count: int, is_over: Callable[[], bool]) -> None:
        """Repair so many times, fewer when the time is up; one broken off goes on next time."""
        if not len(self._packing):
            return
        state, chunk = self._state, _REPAIR_CHUNK if self.is_compiled else _PLAIN_REPAIR_CHUNK
        end, price = state.counter[REPAIRS] + count, self._numbers(self._price)
        while state.counter[REPAIRS] < end and not is_over():
            self._loop(self._bids, state, price, chunk if count > 1 else 1)
        self._keep(np.flatnonzero(np.asarray(state.best)))


#: Swaps between two looks at the clock.
_SWAP_CHUNK = 500


class Swapping(ColumnSearch):
    """The best award met, and swaps from one to the next.

    Args:
        loop: makes swaps.
        shape: bids and rows, as arrays (search_columns.py); all rows are hard.
        worth: what awards are compared by.
        gain: of each bid at prices, shape (bids,).
        start: an award that fits.
        seed: of every random choice.
    """

    def __init__(
        self, loop: Swap, shape: MoveProblem, worth: Worth, gain: FloatArray, start: IntArray, seed: int
    ) -> None:
        super().__init__(worth, start, make_swaps, lambda: loop)
        self._shape = shape
        self._gain = gain
        self._state = swaps_at(start, shape, first_counters(seed, swap_kernel.COUNTS, 0x5A4B))

    def _restart(self) -> None:
        """Go on from the best award; ends of runs are kept."""
        before = self._state
        begun = swaps_at(self.award, self._shape, np.array(before.counter))
        self._state = begun._replace(ends=before.ends, worth=before.worth)

    def guide(self, gain: FloatArray) -> None:
        """Find bids promising by other prices."""
        self._gain = gain

    def narrow(self, pool: IntArray) -> None:
        """Let in only some bids of those that may come in, ascending."""
        gone = np.setdiff1d(np.asarray(self._shape.pool), pool)
        np.asarray(self._state.adds)[gone] -= 2 * FAR
        self._shape = self._shape._replace(pool=np.setdiff1d(np.asarray(self._shape.pool), gone))

    def others(self) -> list[IntArray]:
        """Return the awards at the ends of runs that are kept."""
        ends = np.asarray(self._state.ends).reshape(swap_kernel.KEPT, -1)
        return [np.flatnonzero(end) for end in ends if end.any()]

    def run(self, count: int, is_over: Callable[[], bool]) -> None:
        """Make so many swaps, fewer when the time is up."""
        if not len(self._shape.pool):
            return
        state = self._state
        while count > 0 and not is_over():
            self._loop(self._shape, state, self._gain, min(count, _SWAP_CHUNK))
            count -= _SWAP_CHUNK
        self._keep(np.flatnonzero(np.asarray(state.best)))
