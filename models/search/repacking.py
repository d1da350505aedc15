"""Ruin and recreate: take some winners out, let what fits bid its way back in, hundreds of times a second.

A move lets a losing bid in and takes out who stands in its way, or takes out winners around a place; then
bids that fit are added, the most promising first, with noise. A move that loses a little may stand, the less
the longer a cycle lasts; every cycle begins at the best award. No clock takes part: the same seed makes the
same moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np

from ...bidgen.columns import BoolArray, FloatArray, IntArray
from .packing import Packing
from .worth import Worth

#: Moves of the first cycle; each cycle is twice as long as the one before.
_FIRST_CYCLE = 250
#: What a move may lose at the beginning of a cycle, as a share of the largest weight.
_WARM = 0.015
#: Winners taken out around a place: at least, at most.
_FEWEST, _MOST = 2, 8
#: Shares of moves: that let a loser in; that go by gain at the prices (the others by worth); in which what
#: was taken out may not come back at once.
_ADMIT, _BY_GAIN, _BARRED = 0.5, 0.5, 0.7
#: Standard deviation of the noise, as a share of what is compared.
_NOISE = 0.25


@dataclass(slots=True, eq=False)
class _State:
    """An award and what it leaves: copied before each move, put back when the move is refused.

    Attributes:
        won: the winning bid of each job, −1 when it loses, shape (jobs,).
        left: of each capacity, shape (rows,).
        short: in how many of its capacities each bid finds too little, shape (bids,).
        total: exact sum of the winners' weights; ``liked`` their preference.
    """

    won: IntArray
    left: IntArray
    short: np.ndarray[tuple[int], np.dtype[np.int32]]
    total: int
    liked: float

    def copy(self) -> _State:
        return _State(self.won.copy(), self.left.copy(), self.short.copy(), self.total, self.liked)


class Repacking:
    """The award at hand, the best one met, and the moves from one to the next."""

    def __init__(self, packing: Packing, worth: Worth, gain: FloatArray, start: IntArray, seed: int) -> None:
        self._packing = packing
        self._worth = worth
        self._rng = np.random.default_rng(seed)
        self._keys = (gain, worth.value)
        self._by_row = packing.by_row()
        self._place = packing.places()
        self._jobs = int(packing.job.max(initial=-1)) + 1
        self._job_first = np.searchsorted(packing.job, np.arange(self._jobs + 1))
        self._warm = _WARM * max(worth.weights, default=0)
        self._cycle, self._moves = _FIRST_CYCLE, 0
        self._state = self._empty()
        self.award = start
        self.best = worth.of(start)
        self.offer(start)

    def _empty(self) -> _State:
        packing = self._packing
        short = packing.amount > packing.capacity[packing.row]
        bid = np.repeat(np.arange(len(packing)), np.diff(packing.indptr))
        return _State(
            won=np.full(self._jobs, -1, np.int64),
            left=packing.capacity.copy(),
            short=np.bincount(bid[short], minlength=len(packing)).astype(np.int32),
            total=0,
            liked=0.0,
        )

    def offer(self, award: IntArray) -> None:
        """Go on from an award, and keep it when it is the best so far."""
        self._state = self._empty()
        self._take(award, out=False)
        self._fill(self._keys[0], barred=None)
        self._keep()

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Begin the next cycle at an award that is better than the best so far."""
        if value > self.best:
            self.award, self.best = award, value

    def guide(self, gain: FloatArray) -> None:
        """Prefer bids by another gain."""
        self._keys = (gain, self._keys[1])

    def run(self, moves: int, is_over: Callable[[], bool]) -> None:
        """Make so many moves, fewer when the time is up."""
        for _ in range(moves):
            if is_over():
                return
            if self._moves == self._cycle:
                self._moves, self._cycle = 0, 2 * self._cycle
                self.offer(self.award)
            self._move(self._warm * (1 - self._moves / self._cycle))
            self._moves += 1

    def _move(self, warmth: float) -> None:
        before = self._state
        self._state = before.copy()
        rng = self._rng
        taken = self._admit_loser() if rng.random() < _ADMIT else self._ruin()
        if taken is None:
            self._state = before
            return
        barred: BoolArray | None = None
        if rng.random() < _BARRED:
            barred = np.zeros(len(self._packing), np.bool_)
            barred[taken] = True
        self._fill(self._keys[0] if rng.random() < _BY_GAIN else self._keys[1], barred)
        lost = before.total - self._state.total
        if lost > 0:
            stands = warmth > 0 and rng.random() < exp(-min(lost / warmth, 700.0))
        else:
            stands = lost < 0 or self._state.liked >= before.liked
        if not stands:
            self._state = before
        elif lost <= 0:
            self._keep()

    def _keep(self) -> None:
        if self._state.total < self.best[0]:
            return
        award = self._winners()
        value = self._worth.of(award)
        if value > self.best or not len(self.award):
            self.award, self.best = award, value

    def _winners(self) -> IntArray:
        """Return the winning bids, ascending (jobs are numbered in the order of their bids)."""
        winners: IntArray = self._state.won[self._state.won >= 0]
        return winners

    def _admit_loser(self) -> IntArray | None:
        """Let a bid of a losing job in; return the winners that had to leave."""
        rng, state, packing = self._rng, self._state, self._packing
        losers = np.flatnonzero((state.won < 0) & (np.diff(self._job_first) > 0))
        if not len(losers):
            return None
        job = int(losers[rng.integers(len(losers))])
        bid = int(rng.integers(self._job_first[job], self._job_first[job + 1]))
        mine = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
        rows, amount = packing.row[mine], packing.amount[mine]
        if (amount > packing.capacity[rows]).any():
            return None
        taken: list[int] = []
        while True:
            lacking = rows[amount > state.left[rows]]
            if not len(lacking):
                break
            holders = self._holders(int(lacking[rng.integers(len(lacking))]))
            out = int(holders[rng.integers(len(holders))])
            self._take(np.array([out]), out=True)
            taken.append(out)
        self._take(np.array([bid]), out=False)
        return np.array(taken, np.int64)

    def _holders(self, row: int) -> IntArray:
        """Return the winners that hold some of a capacity."""
        bids, _ = self._by_row.of(row)
        holders: IntArray = bids[self._state.won[self._packing.job[bids]] == bids]
        return holders

    def _ruin(self) -> IntArray | None:
        """Take winners out that stand nearest to a random winner."""
        winners = self._winners()
        if not len(winners):
            return None
        centre = self._place[winners[self._rng.integers(len(winners))]]
        count = min(len(winners), int(self._rng.integers(_FEWEST, _MOST + 1)))
        distance = np.abs(self._place[winners] - centre)
        taken = winners[np.argpartition(distance, count - 1)[:count]]
        self._take(taken, out=True)
        return taken

    def _fill(self, key: FloatArray, barred: BoolArray | None) -> None:
        """Add bids that fit until none does, the most promising first; ``barred`` may not be among them."""
        state, job = self._state, self._packing.job
        while True:
            fitting = np.flatnonzero(state.short == 0)
            fitting = fitting[state.won[job[fitting]] < 0]
            if barred is not None:
                fitting = fitting[~barred[fitting]]
            if not len(fitting):
                return
            noisy = key[fitting] * (1 + _NOISE * self._rng.standard_normal(len(fitting)))
            self._take(fitting[np.argmax(noisy)][None], out=False)

    def _take(self, bids: IntArray, *, out: bool) -> None:
        """Take bids out of the award, or in; what they hold becomes free, or theirs."""
        state, packing = self._state, self._packing
        if not len(bids):
            return
        entries = packing.entries(bids)
        rows, amount = packing.row[entries], packing.amount[entries]
        if len(bids) > 1:
            rows, place = np.unique(rows, return_inverse=True)
            amount = np.bincount(place, weights=amount, minlength=len(rows)).astype(np.int64)
        before = state.left[rows]
        after = before + amount if out else before - amount
        state.left[rows] = after
        of_rows, length = self._by_row.entries(rows)
        wanted = self._by_row.amount[of_rows]
        low, high = (before, after) if out else (after, before)
        changed = (wanted > np.repeat(low, length)) & (wanted <= np.repeat(high, length))
        np.add.at(state.short, self._by_row.bid[of_rows[changed]], np.int32(-1 if out else 1))
        jobs = packing.job[bids]
        state.won[jobs] = -1 if out else bids
        sign = -1 if out else 1
        state.total += sign * sum(self._worth.weights[bid] for bid in bids.tolist())
        state.liked += sign * float(self._worth.preference[bids].sum())


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
