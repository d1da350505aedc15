"""Exchange and complete: from one award to the next, tens of thousands of moves a second (moves.py).

Cycles of moves begin with an empty machine and warm, where a move that loses a little may stand, and end
cold; kinds of cycles take turns, and each turn is twice as long as the one before. No clock takes part: the
same seed makes the same moves, compiled or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from .compiled_search import Loop, as_lists, compiled_loop, is_loaded
from .moves import BEST, BEST_LIKED, KEPT, Floats, MoveProblem, MoveState, make_moves
from .packing import Packing, Worth
from .search_columns import Cycles, JobRows, first_counters, rows_of, weights_of

#: Moves of the first cycle.
_FIRST_CYCLE = 1000
#: Every cycle begins with an empty machine: longer ones that go on find less. Where few bids would do (their
#: prices tell), moves have to be choosy; where many would, they must not.
_CYCLES = Cycles(
    warmth=np.array([0.02, 0.01, 0.01, 0.02]),
    anew=np.array([1, 1, 1, 1]),
    drawn=np.array([3, 12, 3, 12]),
    noise=0.01,
)
#: Moves between two looks at the clock, compiled and not.
_CHUNK, _PLAIN_CHUNK = 100, 10
#: Windows of fewer bids are left to plain Python unless the compiled loop is at hand: loading it takes
#: longer.
FEW_BIDS = 300
#: Bids that a greedy award looks at together.
_AT_ONCE = 256
#: What a bid that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 0.002


_Columns = TypeVar("_Columns", MoveProblem, MoveState)


class _Form:
    """A loop with the columns as it wants them: arrays where it is compiled, else lists."""

    def __init__(self, shape: MoveProblem, loop: Loop = make_moves) -> None:
        self.loop = loop
        self.is_plain = loop is make_moves
        self.chunk = _PLAIN_CHUNK if self.is_plain else _CHUNK
        self.shape = self.of(shape)

    def of(self, columns: _Columns) -> _Columns:
        """Return columns, arrays, in this form."""
        return as_lists(columns) if self.is_plain else columns


class ExchangeSearch:
    """The award at hand, the best one met, and the moves from one to the next.

    Rows and columns are made when the first move is wanted: many searches end before.
    """

    _rows: JobRows
    _arrays: MoveProblem

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
        """Begin at ``start`` and what fits beside it; ``may_wait``: the compiled loop may be loaded now."""
        self._packing = packing
        self._worth = worth
        self._may_wait = may_wait
        self._largest = float(weights_of(worth).max(initial=0))
        self._form: _Form | None = None
        self._made: MoveState | None = None
        self.award = start
        self.best = worth.of(start)
        self.guide(price)
        self._begin(start, first_counters(seed, _FIRST_CYCLE))

    @property
    def is_compiled(self) -> bool:
        """Whether moves are compiled."""
        return not self._formed.is_plain

    @property
    def sets(self) -> MoveProblem | None:
        """The columns as arrays where every row is hard (moves.py); None where some row is not."""
        return self._arrays if self.is_compiled and not len(self._rows.bid) else None

    @property
    def gain(self) -> FloatArray:
        """What each bid gains at the prices at hand, shape (bids,)."""
        return self._gain

    @property
    def _formed(self) -> _Form:
        """The loop and its columns; the first time that moves are wanted, not before: some want none."""
        if self._form is None:
            may_load = self._may_wait and len(self._packing) >= FEW_BIDS
            compiled = compiled_loop() if may_load or is_loaded() else None
            self._rows = rows_of(self._packing)
            self._arrays = self._rows.shape(self._worth, _CYCLES)
            self._form = _Form(self._arrays) if compiled is None else _Form(self._arrays, compiled)
        return self._form

    @property
    def _state(self) -> MoveState:
        """The state that moves go on from."""
        formed = self._formed
        if self._made is None:
            award, counter = self._beginning
            self._made = formed.of(self._rows.state(award, self._arrays, counter))
        return self._made

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best so far."""
        if value > self.best:
            self.award, self.best = award, value
            self._begin(award, self._beginning[1] if self._made is None else np.array(self._made.counter))

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
        self._gain = (value - cost - of_job[packing.job]) * unit
        self._price = np.concatenate([price, of_job]) * unit
        # Rounding must not make a bid worth more than it pays.
        self._price *= 1 + 1e-9
        largest = float(value.max(initial=0.0)) or 1.0
        ratio = value / (np.maximum(cost, 0.0) + _LEAST_COST * largest)
        self._order = np.argsort(-ratio, kind="stable")

    def narrow(self, alive: BoolArray) -> None:
        """Let in only bids that are alive, shape (bids,): those that a better award could hold."""
        formed = self._formed
        pool = np.asarray(self._arrays.pool)
        left, gone = pool[alive[pool]], pool[~alive[pool]]
        if not len(left) or not len(gone):
            return
        self._arrays = self._arrays._replace(pool=left)
        formed.shape = formed.of(self._arrays)
        if self._made is not None:
            for bid in gone.tolist():
                self._made.short[bid] += 1

    def run(self, moves: int, is_over: Callable[[], bool]) -> None:
        """Make so many moves, fewer when the time is up."""
        formed, state = self._formed, self._state
        if not len(self._arrays.pool):
            return
        before = _met(state)
        gain: Floats = self._gain.tolist() if formed.is_plain else self._gain
        price: Floats = self._price.tolist() if formed.is_plain else self._price
        while moves > 0 and not is_over():
            formed.loop(formed.shape, state, gain, price, min(moves, formed.chunk))
            moves -= formed.chunk
        if _met(state) > before:
            self._keep(np.flatnonzero(np.asarray(state.best)))

    def _keep(self, award: IntArray) -> None:
        value = self._worth.of(award)
        if value > self.best or not len(self.award):
            self.award, self.best = award, value

    def _begin(self, award: IntArray, counter: IntArray) -> None:
        """Go on from an award and what fits beside it."""
        award = greedy_by(self._packing, np.concatenate([award, self._order]))
        self._beginning = award, counter
        if self._made is not None:
            state = self._rows.state(award, self._arrays, counter)
            kept = np.array(self._made.kept)
            self._made = self._formed.of(state._replace(kept=kept))
        self._keep(award)


def _met(state: MoveState) -> tuple[int, int]:
    """Return what the best award met counts, and how much it is liked."""
    return int(state.counter[BEST]), int(state.counter[BEST_LIKED])


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
