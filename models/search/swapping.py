"""Swaps: from one award to the next by whoever adds most (swaps.py), where every row is hard.

No clock takes part: the same seed makes the same swaps. Each looks at all bids: there are none without numba.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray
from .compiled_search import Swap
from .moves import MoveProblem
from .packing import Worth
from .search_columns import swaps_at
from .swaps import BEST, COUNTS, FAR, KEPT, RANDOM

#: Swaps between two looks at the clock.
_CHUNK = 500


class Swapping:
    """The best award met, and swaps from one to the next.

    Args:
        loop: makes swaps.
        shape: bids and rows, as arrays (columns.py); all rows are hard.
        worth: what awards are compared by.
        gain: of each bid at prices, shape (bids,).
        start: an award that fits.
        seed: of every random choice.
    """

    def __init__(
        self, loop: Swap, shape: MoveProblem, worth: Worth, gain: FloatArray, start: IntArray, seed: int
    ) -> None:
        self._loop = loop
        self._shape = shape
        self._worth = worth
        self._gain = gain
        counter = np.zeros(COUNTS, np.int64)
        # As srand48 does, but another sequence than the moves' and the dives'.
        counter[RANDOM] = ((seed % (1 << 32)) << 16) + 0x5A4B
        self._state = swaps_at(start, shape, counter)
        self.award, self.best = start, worth.of(start)

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best so far; ends of runs are kept."""
        if value > self.best:
            self.award, self.best = award, value
            before = self._state
            begun = swaps_at(award, self._shape, np.array(before.counter))
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
        ends = np.asarray(self._state.ends).reshape(KEPT, -1)
        return [np.flatnonzero(end) for end in ends if end.any()]

    def run(self, swaps: int, is_over: Callable[[], bool]) -> None:
        """Make so many swaps, fewer when the time is up."""
        if not len(self._shape.pool):
            return
        state, before = self._state, int(self._state.counter[BEST])
        while swaps > 0 and not is_over():
            self._loop(self._shape, state, self._gain, min(swaps, _CHUNK))
            swaps -= _CHUNK
        if int(state.counter[BEST]) > before:
            award = np.flatnonzero(np.asarray(state.best))
            value = self._worth.of(award)
            if value > self.best:
                self.award, self.best = award, value
