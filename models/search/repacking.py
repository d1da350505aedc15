"""Ruin and recreate: from one award to the next, tens of thousands of moves a second (moves.py).

Cycles of moves begin warm, where a move that loses a little may stand, and end cold; cool and warm ones take
turns, and each turn is twice as long as the one before. No clock takes part: the same seed makes the same
moves, compiled or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ...bidgen.columns import FloatArray, IntArray
from .columns import first_counters, rows_of
from .compiled import Loop, compiled_loop, is_loaded
from .moves import BEST, BEST_LIKED, Floats, Shape, State, make_moves
from .packing import Packing
from .worth import Worth

#: Moves of the first cycle.
_FIRST_CYCLE = 1000
#: What a move may lose at the beginning of a cycle, as a share of the largest weight, cycle after cycle.
_WARMTH = (0.005, 0.015, 0.035)
#: Moves between two looks at the clock, compiled and not.
_CHUNK, _PLAIN_CHUNK = 100, 10
#: Windows of fewer bids are left to plain Python unless the compiled loop is at hand: loading it takes
#: longer.
FEW_BIDS = 300
#: What a bid that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 0.002


_Columns = TypeVar("_Columns", Shape, State)


class _Form:
    """A loop with the columns as it wants them: arrays where it is compiled, else lists."""

    def __init__(self, shape: Shape, loop: Loop = make_moves) -> None:
        self.loop = loop
        self.is_plain = loop is make_moves
        self.chunk = _PLAIN_CHUNK if self.is_plain else _CHUNK
        self.shape = self.of(shape)

    def of(self, columns: _Columns) -> _Columns:
        """Return columns, arrays, in this form."""
        if not self.is_plain:
            return columns
        parts = {
            name: one.tolist() if isinstance(one, np.ndarray) else one
            for name, one in columns._asdict().items()
        }
        return columns._replace(**parts)


class Repacking:
    """The award at hand, the best one met, and the moves from one to the next."""

    _state: State

    def __init__(
        self,
        packing: Packing,
        worth: Worth,
        gain: FloatArray,
        start: IntArray,
        seed: int,
        *,
        may_wait: bool = True,
    ) -> None:
        """Begin at ``start`` and what fits beside it; ``may_wait``: the compiled loop may be loaded now."""
        self._packing = packing
        self._worth = worth
        self._may_wait = may_wait
        self._rows = rows_of(packing)
        self._arrays = self._rows.shape(worth, np.array(_WARMTH))
        self._form: _Form | None = None
        self.award = start
        self.best = worth.of(start)
        self.guide(gain)
        self._begin(start, first_counters(seed, _FIRST_CYCLE))

    @property
    def is_compiled(self) -> bool:
        """Whether moves are compiled."""
        return not self._formed.is_plain

    @property
    def _formed(self) -> _Form:
        """The loop and its columns; the first time that moves are wanted, not before: some want none."""
        if self._form is None:
            may_load = self._may_wait and len(self._packing) >= FEW_BIDS
            compiled = compiled_loop() if may_load or is_loaded() else None
            self._form = _Form(self._arrays) if compiled is None else _Form(self._arrays, compiled)
            self._state = self._form.of(self._state)
        return self._form

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best so far."""
        if value > self.best:
            self.award, self.best = award, value
            self._begin(award, np.array(self._state.counter))

    def guide(self, gain: FloatArray) -> None:
        """Prefer bids by another gain: mostly by what they are worth for what they cost at its prices."""
        value = self._worth.value
        largest = float(value.max(initial=0.0)) or 1.0
        ratio = value / (np.maximum(value - gain, 0.0) + _LEAST_COST * largest)
        narrow = value / largest / np.sqrt(1 + np.diff(self._packing.indptr))
        keys = np.concatenate([ratio, ratio, value / largest, narrow])
        self._promise = keys
        self._order = np.argsort(-ratio, kind="stable")

    def run(self, moves: int, is_over: Callable[[], bool]) -> None:
        """Make so many moves, fewer when the time is up."""
        if not len(self._arrays.pool):
            return
        formed, before = self._formed, self._met()
        promise: Floats = self._promise.tolist() if formed.is_plain else self._promise
        while moves > 0 and not is_over():
            formed.loop(formed.shape, self._state, promise, min(moves, formed.chunk))
            moves -= formed.chunk
        if self._met() > before:
            self._keep(np.flatnonzero(np.asarray(self._state.best)))

    def _met(self) -> tuple[int, int]:
        counter = self._state.counter
        return int(counter[BEST]), int(counter[BEST_LIKED])

    def _keep(self, award: IntArray) -> None:
        value = self._worth.of(award)
        if value > self.best or not len(self.award):
            self.award, self.best = award, value

    def _begin(self, award: IntArray, counter: IntArray) -> None:
        """Go on from an award and what fits beside it."""
        award = greedy_by(self._packing, np.concatenate([award, self._order]))
        state = self._rows.state(award, self._arrays, counter)
        self._state = state if self._form is None else self._form.of(state)
        self._keep(award)


def greedy_by(packing: Packing, order: IntArray) -> IntArray:
    """Return the award that takes bids in an order as they fit, ascending."""
    left = packing.capacity.copy()
    won: set[int] = set()
    award: list[int] = []
    jobs = packing.job.tolist()
    for bid in order.tolist():
        entries = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
        rows, amount = packing.row[entries], packing.amount[entries]
        if jobs[bid] not in won and (left[rows] >= amount).all():
            left[rows] -= amount
            won.add(jobs[bid])
            award.append(bid)
    return np.sort(np.array(award, np.int64))
