"""Large-neighbourhood search: free some winners, let them and losers bid in a small auction.

Each step keeps the best award, by the exact sum of weights, then by preference: more steps are
never worse. With the same seed the steps are the same whatever the clock says: it only ends them.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..solve.program import IntegerProgram, are_one
from ..solve.solver import SolverOptions, SolverStatus, solve
from .operators import greedy_by
from .packing import ByRow, Packing, Worth
from .search_parameters import SearchLimits

#: Bids of a neighbourhood, branch-and-bound nodes of its solve, how often that may ask to go on.
_MOST_BIDS = 400
_NODES, _CHECKS = 20, 8
#: Sizes of neighbourhoods, winners that are freed: the least, at first the most, and by what
#: factors that grows where a solve is proved and shrinks where it is not.
_SMALLEST, _REACH, _GROWS, _SHRINKS = 3, 16.0, 1.06, 0.6
#: Share of neighbourhoods that free the winners which the relaxed solution has least of, and how
#: much chance is in that.
_UNLIKELY, _NOISE = 0.25, 0.5
#: Neighbourhoods of an award without a better one after which another award is tried.
_PATIENCE = 40


class SmallAuctions:
    """The award at hand, and small auctions that better it.

    Args:
        packing: bids and capacities.
        worth: what awards are compared by.
        gain: of each bid at prices, shape (bids,).
        start: an award that fits.
        limits: of the search.
        others: returns awards to try besides.

    Attributes:
        longest_s: seconds of the longest turn so far.
    """

    def __init__(
        self,
        packing: Packing,
        worth: Worth,
        gain: FloatArray,
        start: IntArray,
        limits: SearchLimits,
        others: Callable[[], list[IntArray]],
    ) -> None:
        self.limits = limits
        self.longest_s = 0.0
        self._find_others = others
        self._packing = packing
        self._worth = worth
        self._gain = gain
        self._relaxed: FloatArray | None = None
        self._rng = np.random.default_rng(limits.seed)
        self._reach, self._since = _REACH, 0
        self._others: list[IntArray] = []
        self._jobs = int(packing.job.max(initial=-1)) + 1
        self._place = packing.places()
        award = self._filled(np.sort(start))
        self.award, self.best = award, worth.of(award)
        self._at_hand, self._value = self.award, self.best

    @cached_property
    def _by_row(self) -> ByRow:
        """Who bids on each capacity; many searches end before that is asked."""
        return self._packing.by_row()

    @property
    def has_time(self) -> bool:
        """Whether the longest turn so far would end in time."""
        return self.limits.counts_steps or self.limits.left_s() > self.longest_s

    def adopt(self, award: IntArray, value: tuple[int, float]) -> None:
        """Go on from an award that is better than the best."""
        self._others = self._find_others()
        if value > self.best:
            self.award, self.best = award, value
            self._at_hand, self._value, self._since = award, value, 0

    def guide(self, gain: FloatArray, share: FloatArray) -> None:
        """Prefer bids by another gain; ``share`` of each wins in the relaxed solution."""
        self._gain, self._relaxed = gain, share

    def run(self, auction: Callable[[float], None], count: int, is_over: Callable[[], bool]) -> None:
        """Hold so many auctions of a kind, one at least, fewer when the time is up."""
        limits = self.limits
        began = limits.left_s()
        auction(min(began, limits.ends_in_s()))
        while count > 1 and not is_over():
            auction(min(limits.left_s(), limits.ends_in_s()))
            count -= 1
        self.longest_s = max(self.longest_s, began - limits.left_s())

    def improve(self, left_s: float) -> None:
        """Free winners around a place or in the way of a loser, and auction what is free."""
        if self._since >= _PATIENCE:
            choices = [self.award, *self._others]
            another = choices[int(self._rng.integers(len(choices)))]
            self._at_hand, self._since = self._filled(np.sort(another)), 0
            self._value = self._worth.of(self._at_hand)
        freed = self._neighbourhood()
        kept = np.setdiff1d(self._at_hand, freed, assume_unique=True)
        left = self._packing.capacity - self._packing.use(kept)
        # Bids that fit into what is free, of all jobs that do not hold what is kept.
        fits = ~self._of_jobs(kept) & self._packing.fits(left)
        bids = self._limited(np.flatnonzero(fits), freed, -self._gain)
        if len(bids) <= len(freed):
            return
        program = self._packing.program(bids, left)
        small = self._worth.preference[bids].max(initial=1.0) * max(1, len(freed)) * 4
        objective = self._worth.value[bids] + self._worth.preference[bids] / small
        found, is_proved = self._solved(program, objective, bids, freed, left_s)
        self._reach = max(self._reach * (_GROWS if is_proved else _SHRINKS), _SMALLEST)
        self._reach = min(self._reach, max(len(self._at_hand), _SMALLEST))
        self._accept(kept, found)

    def merge(self, left_s: float) -> None:
        """Look for the best award of winners of several awards, as many as make a small program."""
        bids = self.award
        for award in self._others:
            more = np.union1d(bids, award)
            if len(more) > _MOST_BIDS:
                break
            bids = more
        if len(bids) == len(self.award):
            return
        program = self._packing.program(bids, self._packing.capacity)
        found, _ = self._solved(program, self._worth.value[bids], bids, self.award, left_s)
        self._at_hand, self._value = self.award, self.best
        self._accept(self.award[:0], found)

    def _neighbourhood(self) -> IntArray:
        """Return winners to free: in a loser's way, around a place, or bidding for like things."""
        drawn = self._rng.random()
        size = int(self._reach * (1 + self._rng.random()) / 2)
        if self._relaxed is not None and self._rng.random() < _UNLIKELY:
            return self._against(self._relaxed, size)
        if drawn < 0.4:  # noqa: PLR2004 - a share
            return self._around_loser(size)
        return self._around_place(size) if drawn < 0.7 else self._related(size)  # noqa: PLR2004

    def prefer(self, left_s: float) -> None:
        """Place some of the winners anew, all of them, where they are preferred."""
        self._at_hand, self._value = self.award, self.best
        freed = self._around_place(int(self._rng.integers(_SMALLEST, int(_REACH) + 1)))
        kept = np.setdiff1d(self._at_hand, freed, assume_unique=True)
        left = self._packing.capacity - self._packing.use(kept)
        fits = self._of_jobs(freed) & self._packing.fits(left)
        bids = self._limited(np.flatnonzero(fits), freed, -self._worth.preference)
        # A job's bids may be worth differently (by their cores): only equals are exchanged here.
        own = {int(self._packing.job[bid]): self._worth.weights[bid] for bid in freed.tolist()}
        pairs = zip(bids.tolist(), self._packing.job[bids].tolist(), strict=True)
        bids = np.array([bid for bid, job in pairs if self._worth.weights[bid] == own[job]], np.int64)
        program = self._packing.program(bids, left, all_win=True)
        found, _ = self._solved(program, self._worth.preference[bids], bids, freed, left_s)
        self._accept(kept, found)

    def _solved(
        self, program: IntegerProgram, objective: FloatArray, bids: IntArray, freed: IntArray, left_s: float
    ) -> tuple[IntArray, bool]:
        """Return a small auction's winners, ``freed`` if none are better, and whether proved."""
        start = np.isin(bids, freed).astype(np.float64)
        options = SolverOptions(
            time_limit_s=left_s,
            absolute_gap=0.0,
            most_checks=_CHECKS,
            extra={"mip_max_nodes": _NODES, "mip_max_improving_sols": 40},
        )
        report = solve(program.maximising(objective), options, start)
        found = freed if report.values is None else bids[are_one(report.values)]
        return found, report.status is SolverStatus.OPTIMAL

    def _accept(self, kept: IntArray, found: IntArray) -> None:
        """Take an award that is not worse."""
        award = self._filled(np.sort(np.concatenate([kept, found])))
        value = self._worth.of(award)
        self._since += 1
        if value < self._value or not (self._packing.use(award) <= self._packing.capacity).all():
            return
        if value > self._value:
            self._since = 0
        self._at_hand, self._value = award, value
        if value >= self.best:
            self.award, self.best = award, value

    def _against(self, share: FloatArray, size: int) -> IntArray:
        """Return winners of least relaxed value (RINS: Danna, Rothberg, Le Pape 2005)."""
        award = self._at_hand
        likely = share[award] + _NOISE * self._rng.random(len(award))
        return np.sort(award[np.argsort(likely, kind="stable")[:size]])

    def _around_place(self, size: int) -> IntArray:
        """Return winners that stand nearest to a random place."""
        award = self._at_hand
        if not len(award):
            return award
        centre = self._place[award[self._rng.integers(len(award))]]
        return self._nearest(award, centre, size)

    def _related(self, size: int) -> IntArray:
        """Return winners that stand in the way of bids that others of them stand in the way of."""
        packing, award = self._packing, self._at_hand
        if not len(award):
            return award
        holders, rows, _ = packing.taken(award)
        freed = np.zeros(len(award), np.bool_)
        freed[self._rng.integers(len(award))] = True
        for _ in range(4 * size):
            one = award[self._rng.choice(np.flatnonzero(freed))]
            mine = packing.row[packing.indptr[one] : packing.indptr[one + 1]]
            if not len(mine) or freed.sum() >= size:
                break
            rivals, _ = self._by_row.of(int(self._rng.choice(mine)))
            rival = int(self._rng.choice(rivals))
            wanted = np.zeros(len(packing.capacity), np.bool_)
            wanted[packing.row[packing.indptr[rival] : packing.indptr[rival + 1]]] = True
            freed[holders[wanted[rows]]] = True
        found: IntArray = award[np.flatnonzero(freed)]
        return found

    def _nearest(self, bids: IntArray, centre: int, count: int) -> IntArray:
        distance = np.abs(self._place[bids] - centre) + self._rng.random(len(bids))
        return np.sort(bids[np.argsort(distance, kind="stable")[:count]])

    def _around_loser(self, size: int) -> IntArray:
        """Return the winners in the way of a losing job's good bid, and some nearby."""
        award = self._at_hand
        losers = np.flatnonzero(~self._of_jobs(award))
        if not len(losers) or not len(award):
            return self._around_place(size)
        # The best of a few at random: promising at the prices, but not always the same.
        few = losers[self._rng.integers(len(losers), size=min(12, len(losers)))]
        bid = int(few[np.argmax(self._gain[few])])
        mine = self._packing.entries(np.array([bid]))
        rows = np.zeros(len(self._packing.capacity), np.bool_)
        left = self._packing.capacity - self._packing.use(award)
        short = mine[self._packing.amount[mine] > left[self._packing.row[mine]]]
        rows[self._packing.row[short]] = True
        holders, held, _ = self._packing.taken(award)
        touches = np.zeros(len(award), np.bool_)
        touches[holders[rows[held]]] = True
        blocking = award[touches]
        if len(blocking) >= max(size, int(_REACH)):
            return np.sort(self._rng.permutation(blocking)[: max(size, int(_REACH))])
        others = max(0, size - len(blocking))
        more = self._nearest(award[~touches], int(self._place[bid]), others)
        return np.sort(np.concatenate([blocking, more]))

    def _of_jobs(self, bids: IntArray) -> BoolArray:
        """Return which bids are of the jobs of some of them, shape (bids,)."""
        jobs = np.zeros(self._jobs, np.bool_)
        jobs[self._packing.job[bids]] = True
        return jobs[self._packing.job]

    def _limited(self, bids: IntArray, freed: IntArray, dislike: FloatArray) -> IntArray:
        if len(bids) <= _MOST_BIDS:
            return np.union1d(bids, freed)
        # At the same prices the same bids would come again: a little noise lets others in.
        noise = self._rng.random(len(bids)) * dislike[bids].std() * self._rng.choice([0.0, 0.05, 0.2])
        best = bids[np.argsort(dislike[bids] + noise, kind="stable")[:_MOST_BIDS]]
        return np.union1d(best, freed)

    def _filled(self, award: IntArray) -> IntArray:
        """Return the award with every losing job's best fitting bid added, most worth first."""
        fitting = np.flatnonzero(self._packing.fits(self._packing.capacity - self._packing.use(award)))
        order = fitting[np.lexsort((-self._gain[fitting], -self._worth.value[fitting]))]
        return greedy_by(self._packing, np.concatenate([award, order]))
