"""An award at once, a better one with time, and a bound with it.

Greedy → prices and price-guided awards → better prices, the relaxation and cliques (bounding.py) → moves
(exchange_search.py), swaps (swapping.py), dives (destroy_repair.py), small auctions and merges of awards
(neighbourhoods.py) in turn → HiGHS on what is left, when that is little. What is done is a fixed sequence:
the clock, or a number of steps, only ends it, so that more is never worse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray
from ..solve.lexicographic import SolveSettings, WindowSolution, solve_lexicographic
from ..solve.solver import SolverStatus
from .bid_worth import SCALE, Worth
from .bounding import Bounding
from .compiled_search import compiled_swaps
from .destroy_repair import DestroyRepair
from .exchange_search import ExchangeSearch, greedy_by
from .neighbourhoods import Search
from .packing import Packing
from .prices import SearchPrices
from .proving import best_among
from .relaxation import Relaxed
from .search_limits import Found, SearchLimits, Stating
from .swapping import Swapping

#: More steps, and moves, than anyone waits for.
_ENDLESS = 10**9
#: Moves of a step of ruin and recreate that is counted. Where a clock counts, a step makes as many as bring
#: moves to their share of the time so far, less of it where dives take turns with them, and lasts this long
#: (seconds) at least.
_MOVES, _FOR_MOVES, _FOR_MOVES_BESIDE_DIVES, _STEP_S = 100, 0.4, 0.1, 0.02
#: The shares of moves and of swaps where these take turns with them, and at which of the turns.
_FOR_MOVES_BESIDE_SWAPS, _FOR_SWAPS, _SWAP = 0.1, 0.5, 2
#: Bids of a job, on average, from which on dives pay though each bid takes all of its rows.
_CHOICE = 8
#: Dives of a step that is counted.
_DIVES = 2
#: Such steps before small auctions join in; where a clock counts, the share of the time before that.
_ONLY_MOVES, _ONLY_MOVES_SHARE = 16, 0.3
#: From then on, of every so many steps one is a small auction, of every so many one betters preference, of
#: every so many one looks for the best award of all winners of several.
_AUCTION_EVERY, _PREFER_EVERY, _MERGE_EVERY = 3, 16, 15
#: Of so many turns one is for small auctions, the others for dives, which begin at once where a clock counts.
_AUCTION_OF_TURNS = 2
#: Share of what is left of the time for a whole program.
_FOR_WHOLE = 0.6
#: Bids that HiGHS is given whole: before and after the first step, where a clock counts and where steps are
#: counted, as in the passes of a simulation; at steps that are powers of two from the first such on.
_WHOLE_AT_ONCE, _WHOLE_COUNTED, _WHOLE_LATER, _FIRST_WHOLE = 700, 250, 3000, 32
#: Bids that branch and bound alone is given after the first step, where steps are counted.
_BRANCHED = 1000
#: Gaps below which HiGHS is given more bids than at once, and any program whole.
_NEAR, _NEARLY_PROVED = 0.01, 1e-4
#: Share of the time that is kept for HiGHS at the end; of that, the share in which the program may be stated,
#: and the seconds that an entry takes: HiGHS looks at no limit before its first relaxation is solved.
_FOR_PROGRAM, _STATED_SHARE, _STATED_ENTRY_S = 0.15, 0.4, 4e-5
#: Share of the time that is left for a proof of the preference once the sum of weights is proved.
_FOR_PREFERENCE = 0.1
#: Steps without a better preference after which a proved award is left as it is.
_PATIENCE = 40


def solve_anytime(
    packing: Packing,
    weights: list[int],
    preference: FloatArray,
    start: IntArray,
    limits: SearchLimits,
    state: Stating | None = None,
) -> Found:
    """Return the best award found within the limits, by the sum of weights and then by preference.

    Args:
        packing: bids and capacities.
        weights: not negative integers, shape (bids,).
        preference: higher is better, not negative, shape (bids,).
        start: an award that fits.
        limits: when to stop.
        state: states the integer program over some bids (ascending, one column each) for HiGHS; None: the
            packing's own rows.
    """
    return AnytimeSearch(packing, weights, preference, start, limits, state).run()


class AnytimeSearch:
    """The award at hand, the bound, and what betters both."""

    def __init__(
        self,
        packing: Packing,
        weights: list[int],
        preference: FloatArray,
        start: IntArray,
        limits: SearchLimits,
        state: Stating | None = None,
    ) -> None:
        self._packing = packing
        self._limits = limits
        # What is no model of the papers has nothing left to state at the end, nor where more search follows.
        has_end = state is not None and limits.ends
        self._searching = limits.shortened(_FOR_PROGRAM) if has_end else limits
        self._state: Stating = state or (lambda bids: packing.program(bids, packing.capacity))
        # Only a model of the papers has to be stated whatever is proved.
        self._is_stated = state is None
        self._worth = Worth.scaled(weights, preference)
        self._bounding = Bounding(packing, self._worth, self._searching)
        self._longest_s, self._moved_s = 0.0, 0.0
        self._small = _WHOLE_COUNTED if limits.counts_steps else _WHOLE_AT_ONCE
        # Dives pay where bids hold parts of rows, or jobs have many to choose from; else small auctions do.
        self._dives = packing.has_parts or len(packing) >= _CHOICE * len(packing.first)
        self._search_s = self._searching.left_s()
        self.award = start
        self._earlier: list[IntArray] = []
        self.best = self._worth.of(start)
        self._is_liked_best = not preference.any()
        if not limits.counts_steps:
            # However short the time, no award is below these; under a work limit moves come soon enough.
            for order in _plain_orders(packing, self._worth.value):
                self._offer(greedy_by(packing, order))
        # A small program is soon relaxed: better prices are not worth their time.
        is_small = len(packing) <= self._small
        prices, value = self._bounding.begin(start, is_small=is_small), self._worth.value
        gain = value - packing.cost(prices.price)
        for order in _orders(prices, gain, value):
            self._offer(greedy_by(packing, order))
        # Loading what is compiled takes a while: a clock that runs does not pay for it.
        may_wait = limits.deadline is None
        self._repacking = ExchangeSearch(
            packing, self._worth, prices.price, self.award, limits.seed, may_wait=may_wait
        )
        self._search = Search(packing, self._worth, gain, self.award, limits.seed)
        self._diving = DestroyRepair(packing, self._worth, prices.price, self.award, limits.seed)
        self._swapping: Swapping | None = None
        self._swapped_s = 0.0
        self._offer(self._repacking.award)

    def run(self) -> Found:
        """Make steps until the limits or a proof end it."""
        steps = _ENDLESS if self._limits.steps is None else self._limits.steps
        since, number = 0, 0
        if steps and len(self._packing) <= self._small and not self._is_finished(0):
            self._prove()
        # No step, no solver: prices and greedy awards only, for those who make thousands of attempts.
        while number < steps and not self._is_finished(since):
            before = self.best
            self._step(number)
            self._events(number)
            since = since + 1 if self.best == before else 0
            number += 1
        self._finish()
        status = (
            SolverStatus.OPTIMAL if self._proved and self._is_liked_best else SolverStatus.FEASIBLE_AT_LIMIT
        )
        return Found(
            award=self.award,
            status=status,
            proved=self._proved,
            bound=self._bounding.bound,
            steps=number,
            price=self._bounding.price * (max(self._worth.weights, default=0) / SCALE),
            earlier=tuple(self._earlier),
        )

    @property
    def _proved(self) -> bool:
        bound = self._bounding.bound
        return bound is not None and self.best[0] >= bound

    def _is_finished(self, since: int) -> bool:
        if self._searching.is_over() or not len(self._packing):
            return True
        return self._proved and (self._is_liked_best or self._cannot_be_liked_more() or since > _PATIENCE)

    def _cannot_be_liked_more(self) -> bool:
        """Return whether every job that bids wins, each with a bid that it likes best."""
        packing, liked = self._packing, self._worth.preference
        most = np.maximum.reduceat(liked, packing.first)
        self._is_liked_best = len(self.award) == len(packing.first) and bool(
            (liked[self.award] >= most - 1e-12).all()
        )
        return self._is_liked_best

    def _step(self, number: int) -> None:
        """Make one step: moves, a small auction, or one about preference."""
        may_prefer = bool(self._worth.preference.any())
        if self._proved or (may_prefer and number % _PREFER_EVERY == _PREFER_EVERY - 1 and self._has_time):
            self._auctioned(self._search.prefer)
        elif self._may_auction(number) and number % _MERGE_EVERY == _MERGE_EVERY - 1 and self._has_time:
            self._auctioned(lambda left_s: self._search.merge(self._others(), left_s))
        elif number % _AUCTION_EVERY == _SWAP and self._may_swap:
            self._swap()
        elif number % _AUCTION_EVERY != 0:
            self._move()
        elif self._may_auction(number) and self._is_for_auctions(number) and self._has_time:
            self._auctioned(self._improve)
        elif self._dives and (self._may_auction(number) or not self._searching.counts_steps):
            self._dive()
        else:
            self._move()

    def _is_for_auctions(self, number: int) -> bool:
        return not self._dives or number % (_AUCTION_EVERY * _AUCTION_OF_TURNS) == 0

    def _may_auction(self, number: int) -> bool:
        if self._searching.counts_steps:
            return number >= _ONLY_MOVES
        return self._searching.left_s() < (1 - _ONLY_MOVES_SHARE) * self._search_s

    def _improve(self, left_s: float) -> None:
        """Hold small auctions: one, or where a clock counts for as long as the moves between them last."""
        self._search.improve(left_s)
        if not self._searching.counts_steps:
            end = left_s - _STEP_S * (_AUCTION_EVERY - 1)
            while (left := self._searching.left_s()) > max(end, self._longest_s):
                self._search.improve(left)

    def _dive(self) -> None:
        """Dive some times, or where a clock counts for as long as the moves between dives last."""
        diving, searching = self._diving, self._searching
        diving.adopt(self.award, self.best)
        end = searching.left_s() - _STEP_S * (_AUCTION_EVERY - 1)
        if searching.counts_steps:
            diving.run(_DIVES, searching.is_over)
        else:
            diving.run(_ENDLESS, lambda: searching.left_s() <= max(end, 0.0))
        self._offer(diving.award)

    def _move(self) -> None:
        """Make the moves of one step."""
        repacking = self._repacking
        repacking.adopt(self.award, self.best)
        if self._limits.counts_steps:
            repacking.run(_MOVES, self._limits.is_over)
        else:
            share = _FOR_MOVES_BESIDE_DIVES if self._dives else _FOR_MOVES
            share = share if self._swapping is None else _FOR_MOVES_BESIDE_SWAPS
            self._moved_s += self._for_its_share(repacking.run, share, self._moved_s)
        self._offer(repacking.award)

    @property
    def _may_swap(self) -> bool:
        """Return whether swaps take turns with moves: where a clock counts, and every row is hard."""
        if self._limits.counts_steps or self._dives:
            return False
        loop, sets = compiled_swaps() if self._repacking.is_compiled else None, self._repacking.sets
        if self._swapping is None and loop is not None and sets is not None:
            repacking = self._repacking
            self._swapping = Swapping(loop, sets, self._worth, repacking.gain, self.award, self._limits.seed)
        return self._swapping is not None

    def _swap(self) -> None:
        """Make the swaps of one step."""
        swapping = self._swapping
        assert swapping is not None  # noqa: S101 - asked before
        swapping.adopt(self.award, self.best)
        self._swapped_s += self._for_its_share(swapping.run, _FOR_SWAPS, self._swapped_s)
        self._offer(swapping.award)

    def _for_its_share(
        self, run: Callable[[int, Callable[[], bool]], None], share: float, spent_s: float
    ) -> float:
        """Run what has taken so many seconds until it has its share of the time; return how long it ran."""
        searching = self._searching
        began = searching.left_s()
        others = max(0.0, self._search_s - began - spent_s)
        due = max(_STEP_S, others * share / (1 - share) - spent_s)
        run(_ENDLESS, lambda: searching.left_s() <= max(0.0, began - due))
        return began - searching.left_s()

    @property
    def _has_time(self) -> bool:
        """Return whether the longest small auction so far would end in time."""
        return self._searching.counts_steps or self._searching.left_s() > self._longest_s

    def _auctioned(self, step: Callable[[float], None]) -> None:
        began = self._searching.left_s()
        self._search.adopt(self.award, self.best, self._others())
        step(min(began, self._searching.ends_in_s()))
        self._offer(self._search.award)
        self._longest_s = max(self._longest_s, began - self._searching.left_s())

    def _others(self) -> list[IntArray]:
        """Return the awards at which runs of swaps and cycles of moves ended."""
        swapped = [] if self._swapping is None else self._swapping.others()
        return [*swapped, *self._repacking.others()]

    def _events(self, number: int) -> None:
        """Better the bound at the steps set for it, and solve what is left of a small program."""
        if number == 0 and len(self._packing) <= self._small and not self._is_finished(0):
            self._solve_whole(_FIRST_WHOLE)
        if not self._proved:
            self._guided(self._bounding.step(number, self.award))
        if number == 0 and self._limits.counts_steps and len(self._packing) > self._small:
            self._prove_by_branches()
        if number >= _FIRST_WHOLE and number & (number - 1) == 0:
            self._solve_whole(number // 2)

    def _guided(self, found: FloatArray | Relaxed | None) -> None:
        """Let better prices lead the search, and a relaxed solution small auctions besides."""
        if isinstance(found, Relaxed):
            self._search.guide(found.gain, found.share)
            if not self._limits.counts_steps:
                # Where steps are counted, the moves of a seed stay those of earlier releases.
                self._repacking.narrow(self._bounding.alive)
                if self._swapping is not None:
                    self._swapping.narrow(np.flatnonzero(self._bounding.alive))
            # Of the rows alone: cliques are no rows of moves.
            found = None if self._bounding.cliques else found.price
        if found is not None:
            # Dives go on with what rounds of prices found first: a relaxation's duals lead them astray.
            self._repacking.guide(found)
            if self._swapping is not None:
                self._swapping.guide(self._repacking.gain)

    def _prove(self) -> None:
        """Give HiGHS a small program: where a clock counts, what a tight bound leaves of it."""
        if not self._limits.counts_steps and self._limits.solves:
            self._bounding.tighten(self.award)
        self._solve_whole(_FIRST_WHOLE)

    def _offer(self, award: IntArray) -> None:
        value = self._worth.of(award)
        if value > self.best:
            if self._limits.counts_steps:
                self._earlier.append(self.award)
            self.award, self.best = award, value

    def _solve_whole(self, checks: int) -> None:
        """Give HiGHS every bid that a better award could hold, when they are few or the proof is near."""
        alive, bound = np.union1d(np.flatnonzero(self._bounding.alive), self.award), self._bounding.bound
        gap = 1.0 if bound is None else (bound - self.best[0]) / max(self.best[0], 1)
        most = _WHOLE_AT_ONCE if gap > _NEAR else _WHOLE_LATER if gap > _NEARLY_PROVED else len(alive)
        is_settled = self._proved and self._is_liked_best
        if len(alive) > most or is_settled or not self._limits.solves:
            return
        found, is_best = self.award, False
        # Where a clock counts the model is stated whatever is proved.
        if self._limits.counts_steps:
            found, is_best = self._branched(alive)
        if is_best and found is self.award:
            self._settle(found)
            return
        share = 1.0 if self._searching.is_over() else _FOR_WHOLE
        solution = self._solved(alive, share, None if self._limits.steps is None else checks)
        # Bids that were left out are in no better award: what is proved without them is proved.
        self._bounding.take(None if solution.bound is None else max(solution.bound, self.best[0]))
        self._is_liked_best |= solution.status is SolverStatus.OPTIMAL
        if is_best and not (self._proved and self._is_liked_best):
            self._settle(found)

    def _branched(self, bids: IntArray) -> tuple[IntArray, bool]:
        """Return the best award among some bids by branch and bound, and whether that is proved."""
        return best_among(self._packing, self._worth, self.award, bids, self._bounding.price)

    def _prove_by_branches(self) -> None:
        """Let branch and bound alone look for a proof, over bids that are too many for HiGHS at once."""
        alive = np.union1d(np.flatnonzero(self._bounding.alive), self.award)
        if len(alive) <= _BRANCHED and self._limits.solves and not (self._proved and self._is_liked_best):
            found, is_best = self._branched(alive)
            if is_best:
                self._settle(found)

    def _settle(self, award: IntArray) -> None:
        """Take an award that is proved the best."""
        self._offer(award)
        self._bounding.take(self.best[0])
        self._is_liked_best = True

    def _solved(self, bids: IntArray, share: float, checks: int | None) -> WindowSolution:
        """Give HiGHS the program over some bids, the award at hand as its start, and take what it finds."""
        limits = self._limits
        self._is_stated = True
        program = self._state(bids)
        settings = SolveSettings(
            time_limit_s=max(0.0, min(share * limits.left_s(), limits.ends_in_s())),
            seed=limits.seed,
            clock=limits.clock,
            most_checks=checks,
        )
        solution = solve_lexicographic(
            program.with_cliques(_within(self._bounding.cliques, bids)),
            self._packing.job[bids],
            [self._worth.weights[bid] for bid in bids.tolist()],
            self._worth.preference[bids],
            np.isin(bids, self.award).astype(np.float64),
            settings,
        )
        award = bids[solution.values > 0.5]  # noqa: PLR2004 - 0/1 values
        # Beside huge counts the solver's tolerance is more than nothing: what it found is counted again.
        if (self._packing.use(award) <= self._packing.capacity).all():
            self._offer(award)
        return solution

    def _finish(self) -> None:
        """With the rest of the time, give HiGHS the bids that a better award could hold, or the likeliest."""
        if self._limits.counts_steps or self._limits.is_over() or not len(self._packing):
            return
        if not self._limits.ends and not self._proved:
            return
        if self._proved and self._is_liked_best and self._is_stated:
            return
        alive = np.union1d(np.flatnonzero(self._bounding.alive), self.award)
        # A proved sum of weights is not worth the whole limit: only preference is still open.
        share = _FOR_PREFERENCE if self._proved else 1.0
        most = max(1, int(_STATED_SHARE * self._limits.left_s() / _STATED_ENTRY_S))
        length = np.diff(self._packing.indptr)
        if int(length[alive].sum()) <= most:
            solution = self._solved(alive, share, None)
            self._bounding.take(None if solution.bound is None else max(solution.bound, self.best[0]))
            self._is_liked_best |= solution.status is SolverStatus.OPTIMAL
            return
        gain = self._worth.value - self._packing.cost(self._bounding.price)
        likeliest = alive[np.argsort(-gain[alive], kind="stable")]
        few = likeliest[np.cumsum(length[likeliest]) <= most]
        # Bids are left out that could be in a better award: what is proved over the others is no bound.
        self._solved(np.union1d(few, self.award), share, None)


def _within(cliques: list[IntArray], bids: IntArray) -> list[IntArray]:
    """Return the cliques' places among some bids (ascending), those of two and more."""
    places = [np.flatnonzero(np.isin(bids, clique)) for clique in cliques]
    return [place for place in places if len(place) > 1]


def _plain_orders(packing: Packing, value: FloatArray) -> list[IntArray]:
    """Return the orders of who needs no prices: by worth, and by worth for each entry (a node, mostly)."""
    entries = np.maximum(np.diff(packing.indptr), 1)
    return [np.argsort(-value, kind="stable"), np.argsort(-value / entries, kind="stable")]


def _orders(prices: SearchPrices, gain: FloatArray, value: FloatArray) -> list[IntArray]:
    """Return orders for greedy awards: by gain for its worth, and by how often the rounds chose a bid."""
    largest = max(float(value.max(initial=0.0)), 1e-9)
    return [
        np.argsort(-(gain / np.maximum(value, 1e-9) + prices.share), kind="stable"),
        np.argsort(-(prices.share + 1e-6 * gain / largest), kind="stable"),
    ]
