"""Dives: some winners leave, and what is free is auctioned again, price by price (repair_kernel.py).

Where bids are long and hold parts of nodes, one such dive over a third of the machine finds what exchanges of
a few winners do not. No clock takes part: the same seed makes the same dives, compiled or not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray
from .compiled_search import Dives, as_lists, compiled_dives, is_loaded
from .packing import Packing, Worth
from .repair_kernel import BEST, BEST_LIKED, COUNTS, DIVES, RANDOM, Dive, DiveBids, make_dives
from .search_columns import bids_of, dive_at

#: How often bids are taken between two looks at the clock, compiled and not.
_CHUNK, _PLAIN_CHUNK = 16, 1


class DestroyRepair:
    """The award at hand, the best one met, and dives from one to the next, each begun at the same prices.

    Columns are made when the first dive is wanted: many searches end before. ``is_plain``: dives are not
    compiled.
    """

    _bids: DiveBids
    _loop: Dives

    def __init__(self, packing: Packing, worth: Worth, price: FloatArray, start: IntArray, seed: int) -> None:
        self._packing = packing
        self._worth = worth
        self._price = price
        self._made: Dive | None = None
        self.is_plain = True
        self._counter = np.zeros(COUNTS, np.int64)
        # As srand48 does, but another sequence than the moves'.
        self._counter[RANDOM] = ((seed % (1 << 32)) << 16) + 0x5EED
        self.award, self.best = start, worth.of(start)

    @property
    def _state(self) -> Dive:
        if self._made is None:
            compiled = compiled_dives() if is_loaded() else None
            self.is_plain = compiled is None
            self._loop = compiled or make_dives
            self._arrays = bids_of(self._packing, self._worth)
            self._bids = as_lists(self._arrays) if self.is_plain else self._arrays
            self._made = self._first_state()
        return self._made

    def _first_state(self) -> Dive:
        """Return the state from which dives start at the best award."""
        counter = self._counter if self._made is None else np.array(self._made.counter)
        state = dive_at(self.award, self._arrays, counter)
        return as_lists(state) if self.is_plain else state

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best."""
        if value > self.best:
            self.award, self.best = award, value
            if self._made is not None:
                self._made = self._first_state()

    @property
    def ended(self) -> int:
        """How many dives have ended."""
        return 0 if self._made is None else int(self._made.counter[DIVES])

    def run(self, dives: int, is_over: Callable[[], bool]) -> None:
        """Dive so many times, fewer when the time is up; a dive that it breaks off goes on the next time."""
        if not len(self._packing):
            return
        state = self._state
        before, end = _met(state), state.counter[DIVES] + dives
        price = self._price.tolist() if self.is_plain else self._price
        chunk = _PLAIN_CHUNK if self.is_plain else _CHUNK
        while state.counter[DIVES] < end and not is_over():
            self._loop(self._bids, state, price, chunk if dives > 1 else 1)
        if _met(state) > before:
            award = np.flatnonzero(np.asarray(state.best))
            value = self._worth.of(award)
            if value > self.best:
                self.award, self.best = award, value


def _met(state: Dive) -> tuple[int, int]:
    """Return what the best award met counts, and how much it is liked."""
    return int(state.counter[BEST]), int(state.counter[BEST_LIKED])
