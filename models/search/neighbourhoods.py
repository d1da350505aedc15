"""Large-neighbourhood search: free some winners, let them and the losers bid again, solve that small auction.

Each step keeps the best award, by the exact sum of weights and then by preference, so that more steps are
never worse; with the same seed the steps are the same whatever the clock says, it only ends them.
"""

from __future__ import annotations

import numpy as np

from ...bidgen.columns import FloatArray, IntArray
from ..solve.solver import IntegerProgram, SolverOptions, solve
from .packing import Packing
from .worth import Worth

#: Bids of a neighbourhood, branch-and-bound nodes of its solve, and how often that may ask to go on.
_MOST_BIDS = 250
_NODES, _CHECKS = 20, 12
#: Sizes of neighbourhoods: winners that are freed.
_SMALLEST, _LARGEST = 3, 16


class Search:
    """The award at hand, and steps that better it."""

    def __init__(self, packing: Packing, worth: Worth, gain: FloatArray, start: IntArray, seed: int) -> None:
        self._packing = packing
        self._worth = worth
        self._gain = gain
        self._rng = np.random.default_rng(seed)
        self._size = _SMALLEST + 4
        self._jobs = int(packing.job.max(initial=-1)) + 1
        self._place = packing.places()
        self.award = np.sort(start)
        self.award = self._filled(self.award)
        self.best = worth.of(self.award)

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the one at hand."""
        if value > self.best:
            self.award, self.best = award, value

    def guide(self, gain: FloatArray) -> None:
        """Prefer bids by another gain."""
        self._gain = gain

    def improve(self, left_s: float) -> None:
        """Free winners around a place or in the way of a loser, and auction what is free."""
        if not len(self._packing):
            return
        freed = self._around_loser() if self._rng.random() < 0.6 else self._around_place()  # noqa: PLR2004
        kept = np.setdiff1d(self.award, freed, assume_unique=True)
        left = self._packing.capacity - self._packing.use(kept)
        bids = self._candidates(kept, freed, left)
        if len(bids) <= len(freed):
            return
        program = self._packing.program(bids, left)
        small = self._worth.preference[bids].max(initial=1.0) * max(1, len(freed)) * 4
        objective = self._worth.value[bids] + self._worth.preference[bids] / small
        found = self._solved(program, objective, bids, freed, left_s)
        self._accept(kept, found)

    def prefer(self, left_s: float) -> None:
        """Place some of the winners anew, all of them, where they are liked better."""
        if not len(self._packing):
            return
        freed = self._around_place()
        kept = np.setdiff1d(self.award, freed, assume_unique=True)
        left = self._packing.capacity - self._packing.use(kept)
        mine = np.zeros(self._jobs, np.bool_)
        mine[self._packing.job[freed]] = True
        fits = mine[self._packing.job] & self._packing.fits(left)
        bids = self._limited(np.flatnonzero(fits), freed, -self._worth.preference)
        # A job's bids may be worth differently (by their cores): only equals are exchanged here.
        own = {int(self._packing.job[bid]): self._worth.weights[bid] for bid in freed.tolist()}
        pairs = zip(bids.tolist(), self._packing.job[bids].tolist(), strict=True)
        bids = np.array([bid for bid, job in pairs if self._worth.weights[bid] == own[job]], np.int64)
        program = self._packing.program(bids, left, must=np.ones(len(bids), np.bool_))
        found = self._solved(program, self._worth.preference[bids], bids, freed, left_s)
        self._accept(kept, found)

    def _solved(
        self, program: IntegerProgram, objective: FloatArray, bids: IntArray, freed: IntArray, left_s: float
    ) -> IntArray:
        """Return the bids that win a small auction, those freed when nothing better is found."""
        start = np.isin(bids, freed).astype(np.float64)
        options = SolverOptions(
            time_limit_s=left_s,
            absolute_gap=0.0,
            most_checks=_CHECKS,
            extra={"mip_max_nodes": _NODES, "mip_max_improving_sols": 40},
        )
        report = solve(program.maximising(objective), options, start)
        return freed if report.values is None else bids[report.values > 0.5]  # noqa: PLR2004 - 0/1 values

    def _accept(self, kept: IntArray, found: IntArray) -> None:
        """Take an award that is not worse, and draw the size of the next neighbourhood."""
        award = self._filled(np.sort(np.concatenate([kept, found])))
        value = self._worth.of(award)
        if value >= self.best and (self._packing.use(award) <= self._packing.capacity).all():
            self.award, self.best = award, value
        self._size = int(self._rng.integers(_SMALLEST, _LARGEST + 1))

    def _around_place(self) -> IntArray:
        """Return winners that stand nearest to a random place."""
        if not len(self.award):
            return self.award
        centre = self._place[self.award[self._rng.integers(len(self.award))]]
        return self._nearest(self.award, centre, self._size)

    def _nearest(self, bids: IntArray, centre: int, count: int) -> IntArray:
        distance = np.abs(self._place[bids] - centre) + self._rng.random(len(bids))
        return np.sort(bids[np.argsort(distance, kind="stable")[:count]])

    def _around_loser(self) -> IntArray:
        """Return the winners in the way of a losing job's good bid, and some nearby."""
        won = np.zeros(self._jobs, np.bool_)
        won[self._packing.job[self.award]] = True
        losers = np.flatnonzero(~won[self._packing.job])
        if not len(losers) or not len(self.award):
            return self._around_place()
        # The best of a few at random: promising at the prices, but not always the same.
        few = losers[self._rng.integers(len(losers), size=min(12, len(losers)))]
        bid = int(few[np.argmax(self._gain[few])])
        mine = self._packing.entries(np.array([bid]))
        rows = np.zeros(len(self._packing.capacity), np.bool_)
        left = self._packing.capacity - self._packing.use(self.award)
        short = mine[self._packing.amount[mine] > left[self._packing.row[mine]]]
        rows[self._packing.row[short]] = True
        entries = self._packing.entries(self.award)
        length = self._packing.indptr[self.award + 1] - self._packing.indptr[self.award]
        holder = np.repeat(np.arange(len(self.award)), length)
        touches = np.zeros(len(self.award), np.bool_)
        touches[holder[rows[self._packing.row[entries]]]] = True
        blocking = self.award[touches]
        if len(blocking) >= _LARGEST:
            return np.sort(self._rng.permutation(blocking)[:_LARGEST])
        others = max(0, self._size - len(blocking))
        more = self._nearest(self.award[~touches], int(self._place[bid]), others)
        return np.sort(np.concatenate([blocking, more]))

    def _candidates(self, kept: IntArray, freed: IntArray, left: IntArray) -> IntArray:
        """Return the bids that fit into what is free, of all jobs that do not hold what is kept."""
        held = np.zeros(self._jobs, np.bool_)
        held[self._packing.job[kept]] = True
        fits = ~held[self._packing.job] & self._packing.fits(left)
        return self._limited(np.flatnonzero(fits), freed, -self._gain)

    def _limited(self, bids: IntArray, freed: IntArray, dislike: FloatArray) -> IntArray:
        if len(bids) <= _MOST_BIDS:
            return np.union1d(bids, freed)
        # At the same prices the same bids would come again: a little noise lets others in.
        noise = self._rng.random(len(bids)) * dislike[bids].std() * self._rng.choice([0.0, 0.5, 1.5])
        best = bids[np.argsort(dislike[bids] + noise, kind="stable")[:_MOST_BIDS]]
        return np.union1d(best, freed)

    def _filled(self, award: IntArray) -> IntArray:
        """Return the award with every losing job's best fitting bid added, most worth first."""
        packing = self._packing
        if not len(packing):
            return award
        won = np.zeros(self._jobs, np.bool_)
        won[packing.job[award]] = True
        left = packing.capacity - packing.use(award)
        fitting = np.flatnonzero(packing.fits(left) & ~won[packing.job])
        if not len(fitting):
            return award
        added: list[int] = []
        for bid in fitting[np.lexsort((-self._gain[fitting], -self._worth.value[fitting]))].tolist():
            entries = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
            rows, amount = packing.row[entries], packing.amount[entries]
            if not won[packing.job[bid]] and (left[rows] >= amount).all():
                left[rows] -= amount
                won[packing.job[bid]] = True
                added.append(bid)
        return np.sort(np.concatenate([award, np.array(added, np.int64)]))
