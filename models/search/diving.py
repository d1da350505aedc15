"""Dives: some winners leave, and the auction over what is free is held again, price by price.

Rounds of prices (prices.py) on what is free tell which bids win most often; a few of those are taken, what is
free shrinks, and rounds go on from the prices at hand until nothing fits. Where bids are long and hold parts
of nodes, one such dive over a third of the machine finds what exchanges of a few winners do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...bidgen.columns import BoolArray, FloatArray, IntArray
from .packing import Packing
from .prices import Runs, best_bids, runs_of
from .worth import Worth

#: Rounds of prices before some bids are taken, how many of the jobs that still bid then win, and how far the
#: bound is thought to be above the best award, which sets the length of a round's step.
_ROUNDS, _TAKEN, _STEP = 8, 0.03, 0.1
#: How much of what rounds chose before counts after one more round, and after bids were taken.
_KEPT, _KEPT_ON = 0.85, 0.3
#: What chance multiplies the share by which bids are taken: up to 1 + this.
_NOISE = 0.3
#: Shares of the winners that leave, at least and at most; in how many dives they are neighbours.
_FEWEST, _MOST, _NEAR = 0.1, 0.35, 0.5
#: How much worse an award may be that the next dive starts from, and how often it may.
_WORSE, _OFTEN = 0.002, 0.1


class Diving:
    """The award at hand, the best one met, and dives from one to the next."""

    def __init__(self, packing: Packing, worth: Worth, price: FloatArray, start: IntArray, seed: int) -> None:
        self._packing = packing
        self._worth = worth
        self._price = price
        self._runs: Runs | None = None
        self._rng = np.random.default_rng(seed)
        self._place = packing.places()
        self.award, self.best = start, worth.of(start)
        self._at_hand, self._value = self.award, self.best

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best."""
        if value > self.best:
            self.award, self.best = award, value
            self._at_hand, self._value = award, value

    def guide(self, price: FloatArray) -> None:
        """Begin dives with other prices of the rows, in units of ``Worth.value``, shape (rows,)."""
        self._price = price

    def dive(self, is_over: Callable[[], bool]) -> None:
        """Let some winners leave, and take what rounds of prices choose instead."""
        if not len(self._packing):
            return
        award = np.sort(self._completed(self._kept(), is_over))
        value = self._worth.of(award)
        if value > self.best:
            self.award, self.best = award, value
        may_lose = _WORSE * self._value[0] if self._rng.random() < _OFTEN else 0
        if value >= self._value or value[0] > self._value[0] - may_lose:
            self._at_hand, self._value = award, value

    def _kept(self) -> IntArray:
        """Return the winners that stay: without those around a place, or without some at random."""
        award, rng = self._at_hand, self._rng
        leaving = int(len(award) * rng.uniform(_FEWEST, _MOST))
        if not len(award) or rng.random() >= _NEAR:
            return np.sort(rng.permutation(award)[leaving:])
        centre = self._place[award[rng.integers(len(award))]]
        distance = np.abs(self._place[award] - centre) + rng.random(len(award))
        return award[np.sort(np.argsort(distance, kind="stable")[leaving:])]

    def _completed(self, kept: IntArray, is_over: Callable[[], bool]) -> IntArray:
        """Return winners and those that rounds of prices choose beside them."""
        packing = self._packing
        left = packing.capacity - packing.use(kept)
        won = np.zeros(int(packing.job[-1]) + 1, np.bool_)
        won[packing.job[kept]] = True
        bids = np.flatnonzero(packing.fits(left) & ~won[packing.job])
        share, price = np.zeros(len(packing)), self._price
        taken = kept.tolist()
        while len(bids):
            price = self._rounds(bids, left, price, share, 0 if is_over() else _ROUNDS)
            taken += self._taken(bids, left, won, share)
            bids = bids[self._still_fit(bids, left) & ~won[packing.job[bids]]]
            share *= _KEPT_ON
        return np.array(taken, np.int64)

    def _rounds(
        self, bids: IntArray, left: IntArray, price: FloatArray, share: FloatArray, rounds: int
    ) -> FloatArray:
        """Return prices after some rounds over bids that fit; ``share`` of those that they choose grows."""
        if self._runs is None:
            self._runs = runs_of(self._packing)
        runs, value, job = self._runs.of(bids), self._worth.value[bids], self._packing.job[bids]
        first = np.flatnonzero(np.diff(job, prepend=-1))
        room = np.maximum(left, 1)
        for _ in range(rounds):
            gain = value - runs.cost(price)
            chosen = best_bids(job, first, gain)
            share *= _KEPT
            share[bids[chosen]] += 1 - _KEPT
            excess = runs.use(chosen, len(left)) - left
            move = np.where((excess < 0) & (price <= 0), 0.0, excess / room)
            norm = float(move @ move)
            if norm == 0:
                break
            bound = float(gain[chosen].sum() + left @ price)
            price = np.maximum(0.0, price + _STEP * bound / norm * move / room)
        return price

    def _taken(self, bids: IntArray, left: IntArray, won: BoolArray, share: FloatArray) -> list[int]:
        """Take the bids that were chosen most often, as they fit; ``left`` and ``won`` follow."""
        packing, mine = self._packing, share[bids]
        value = self._worth.value[bids]
        key = mine * (1 + _NOISE * self._rng.random(len(bids))) + 1e-6 * value
        most = max(1, int(_TAKEN * np.count_nonzero(np.diff(packing.job[bids], prepend=-1))))
        taken: list[int] = []
        for bid in bids[np.argsort(-key, kind="stable")].tolist():
            entries = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
            rows, amount = packing.row[entries], packing.amount[entries]
            if not won[packing.job[bid]] and (left[rows] >= amount).all():
                left[rows] -= amount
                won[packing.job[bid]] = True
                taken.append(bid)
            if len(taken) == most:
                break
        return taken

    def _still_fit(self, bids: IntArray, left: IntArray) -> BoolArray:
        """Return which of some bids fit into what is left, shape (bids,)."""
        packing = self._packing
        entries = packing.entries(bids)
        short = packing.amount[entries] > left[packing.row[entries]]
        length = packing.indptr[bids + 1] - packing.indptr[bids]
        whose = np.repeat(np.arange(len(bids)), length)[short]
        fits = np.ones(len(bids), np.bool_)
        fits[whose] = False
        return fits
