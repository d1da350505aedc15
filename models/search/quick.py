"""A good award in milliseconds: greedy awards in many orders, for those who make thousands of steps.

Each round orders the jobs anew, by priority, by worth, by preference, then at random around their worth; each
job in turn takes, of those of its bids that still fit, the one worth most, and among equals the one it likes
best. The best round stands, by the exact sum of weights and then by preference; its winners then exchange
their bids for ones they like better.
"""

from __future__ import annotations

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray
from .packing import Packing, Worth

#: Random orders multiply worth by a factor from 1 − this to 1 + this.
_NOISE = 0.7


def solve_quick(
    packing: Packing, weights: list[int], preference: FloatArray, start: IntArray, rounds: int, seed: int
) -> IntArray:
    """Return an award (bids, ascending) at least as good as ``start``.

    Args:
        packing: bids and capacities.
        weights: not negative integers, shape (bids,).
        preference: higher is better, not negative, shape (bids,).
        start: an award that fits.
        rounds: orders that are tried, the first three of them fixed.
        seed: of the random orders.
    """
    if not len(packing):
        return start
    largest = float(max(weights)) or 1.0
    value = np.array([weight / largest for weight in weights])
    worth = Worth(weights=weights, value=value, preference=preference)
    quick = _Quick(packing, value, preference, seed)
    best, award = worth.of(start), start
    everything = len(packing.first)
    for number in range(rounds):
        found = quick.award(number)
        reached = worth.of(found)
        if reached > best:
            best, award = reached, found
        if len(award) == everything and number >= quick.fixed:
            break
    return quick.preferred(award)


class _Quick:
    """Greedy awards over one packing."""

    def __init__(self, packing: Packing, value: FloatArray, preference: FloatArray, seed: int) -> None:
        self._packing = packing
        self._preference = preference
        self._value = value
        ends = np.append(packing.first[1:], len(packing))
        self._ranges = list(zip(packing.first.tolist(), ends.tolist(), strict=True))
        self._worth = np.maximum.reduceat(value, packing.first)
        liked = np.maximum.reduceat(preference, packing.first)
        self._fixed = [np.arange(len(self._ranges)), np.argsort(-self._worth, kind="stable")]
        self._fixed.append(np.argsort(-liked, kind="stable"))
        self._rng = np.random.default_rng(seed)
        #: Bids of each job, those worth most first, among these the best liked.
        self._by_worth = np.lexsort((-preference, -value, packing.job))

    @property
    def fixed(self) -> int:
        """How many orders come before the random ones."""
        return len(self._fixed)

    def award(self, number: int) -> IntArray:
        """Return the greedy award of one round's order."""
        if number < len(self._fixed):
            order = self._fixed[number]
        else:
            noise = 1 + _NOISE * (2 * self._rng.random(len(self._worth)) - 1)
            order = np.argsort(-self._worth * noise, kind="stable")
        return self._greedy(order)

    def _greedy(self, order: IntArray) -> IntArray:
        packing = self._packing
        left = packing.capacity.copy()
        fits = packing.fits(left)
        chosen: list[int] = []
        for place in order.tolist():
            first, last = self._ranges[place]
            if not fits[first:last].any():
                continue
            bids = self._by_worth[first:last]
            bid = int(bids[np.argmax(fits[bids])])
            entries = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
            left[packing.row[entries]] -= packing.amount[entries]
            chosen.append(bid)
            fits = packing.fits(left)
        return np.sort(np.array(chosen, np.int64))

    def preferred(self, award: IntArray) -> IntArray:
        """Let each winner in turn take a bid of equal worth that it likes better, beside the others."""
        packing, liked = self._packing, self._preference
        used = packing.use(award)
        chosen = award.copy()
        for place, bid in enumerate(award.tolist()):
            job = int(np.searchsorted(packing.first, bid, side="right")) - 1
            first, last = self._ranges[job]
            mine = packing.use(np.array([bid]))
            fits = packing.fits(packing.capacity - used + mine)[first:last]
            fits &= (liked[first:last] > liked[bid]) & (self._value[first:last] == self._value[bid])
            if not fits.any():
                continue
            better = first + int(np.argmax(np.where(fits, liked[first:last], -np.inf)))
            used += packing.use(np.array([better])) - mine
            chosen[place] = better
        return np.sort(chosen)
