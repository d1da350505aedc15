"""An award at once, a better one with time, and a bound with it.

Greedy → prices and price-guided awards → the linear relaxation with cliques (relaxation.py) → moves
(repacking.py), small auctions and merges of awards (neighbourhoods.py) in turn → HiGHS on what is left, when
that is little. What is done is a fixed sequence: the clock, or a number of steps, only ends it, so that
more is never worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isfinite

import numpy as np

from ...bidgen.columns import BoolArray, FloatArray, IntArray
from ..solve.lexicographic import NO_LIMIT_S, SolveSettings, WindowSolution, solve_lexicographic
from ..solve.solver import IntegerProgram, SolverStatus
from .diving import Diving
from .neighbourhoods import Search
from .packing import Packing
from .prices import Prices, find_prices
from .relaxation import Relaxation, Relaxed, relaxed_entries
from .repacking import Repacking, greedy_by
from .worth import Worth

#: States the integer program over some bids, ascending.
Stating = Callable[[IntArray], IntegerProgram]

#: The largest weight becomes this for the solver: room on both sides of its tolerances.
_SCALE = 1e4
#: Rounds of prices before the first step, and once more later; the share of the time that each may take.
_ROUNDS, _MORE_ROUNDS, _FOR_PRICES = 80, 1500, 0.12
#: More steps, and moves, than anyone waits for.
_ENDLESS = 10**9
#: Moves of a step of ruin and recreate that is counted. Where a clock counts, a step makes as many as bring
#: moves to their share of the time so far, and lasts this long (seconds) at least.
_MOVES, _FOR_MOVES, _STEP_S = 100, 0.4, 0.02
#: Such steps before small auctions join in; where a clock counts, the share of the time before that.
_ONLY_MOVES, _ONLY_MOVES_SHARE = 16, 0.3
#: From then on, of every so many steps one is a small auction, of every so many one betters preference, of
#: every so many one looks for the best award of all winners of several.
_AUCTION_EVERY, _PREFER_EVERY, _MERGE_EVERY = 3, 16, 15
#: Of so many turns one is for small auctions, the others for dives, which begin at once where a clock counts.
_AUCTION_OF_TURNS = 2
#: The step at which prices are bettered; entries of a program for which the linear relaxation waits one more
#: step, and entries for which rounds of cliques are one more step apart: a like share of the work each.
_BETTER_PRICES, _RELAX_ENTRIES, _CLIQUES_EVERY, _CLIQUES_ENTRIES = 12, 6000, 3, 10_000
#: Entries of a program beyond which its relaxation is too slow, whatever the time; seconds that an entry
#: takes, and where every bid wants all that there is.
_MOST_ENTRIES, _ENTRY_S, _WHOLE_ENTRY_S = 600_000, 8e-6, 2e-6
#: Share of what is left of the time for the relaxation, for a round of cliques, and for a whole program; and
#: of the time that is gone, for all rounds of cliques where a clock counts.
_FOR_RELAXATION, _FOR_CLIQUES, _FOR_WHOLE, _FOR_BOUND = 0.3, 0.25, 0.6, 0.2
#: Bids that HiGHS is given whole: before any step; after the first step; at steps that are powers of two from
#: the first on.
_TINY = 250
_WHOLE_AT_ONCE, _WHOLE_COUNTED, _WHOLE_LATER, _FIRST_WHOLE = 700, 250, 3000, 32
#: Gaps below which HiGHS is given more bids than at once, and any program whole.
_NEAR, _NEARLY_PROVED = 0.01, 1e-4
#: Share of the time that is kept for HiGHS at the end; of that, the share in which the program may be stated,
#: and the seconds that an entry takes: HiGHS looks at no limit before its first relaxation is solved.
_FOR_PROGRAM, _STATED_SHARE, _STATED_ENTRY_S = 0.15, 0.4, 4e-5
#: Share of the time that is left for a proof of the preference once the sum of weights is proved.
_FOR_PREFERENCE = 0.1
#: Steps without a better preference after which a proved award is left as it is.
_PATIENCE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the search is given.

    Attributes:
        deadline: when to stop, by ``clock`` (seconds); None when only ``steps`` count.
        steps: steps to make at most; None when only the clock counts.
        seed: of every random choice.
        solves: whether HiGHS gets programs that are small enough; otherwise there is search alone.
        ends: whether the model is stated at the end though nothing is proved: not where more search follows.
    """

    deadline: float | None
    steps: int | None
    seed: int
    clock: Callable[[], float]
    solves: bool = True
    ends: bool = True

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return NO_LIMIT_S if self.deadline is None else self.deadline - self.clock()

    def shortened(self, share: float) -> Limits:
        """Return the same limits without the last share of the time that is left now."""
        if self.deadline is None:
            return self
        return replace(self, deadline=self.deadline - share * max(0.0, self.left_s()))

    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self.deadline is not None and self.left_s() <= 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """What a search found.

    Attributes:
        award: bids, ascending.
        status: optimal only where preference is proved too; ``proved``: the sum of weights is.
        bound: on the sum of integer weights; None: none is known.
        steps: that were made.
        price: of each row of the packing at the bound, in units of weight, shape (rows,).
        earlier: awards that were the best before it, where steps are counted, not time.
    """

    award: IntArray
    status: SolverStatus
    proved: bool
    bound: int | None
    steps: int
    price: FloatArray
    earlier: tuple[IntArray, ...] = ()


def solve_anytime(
    packing: Packing,
    weights: list[int],
    preference: FloatArray,
    start: IntArray,
    limits: Limits,
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
    return _Contest(packing, weights, preference, start, limits, state).run()


class _Contest:
    """The award at hand, the bound, and what betters both."""

    def __init__(
        self,
        packing: Packing,
        weights: list[int],
        preference: FloatArray,
        start: IntArray,
        limits: Limits,
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
        self._largest = max(weights, default=1) or 1
        value = np.array([weight / self._largest for weight in weights]) * _SCALE
        self._worth = Worth(weights=weights, value=value, preference=preference)
        self._longest_s, self._moved_s, self._bound_s = 0.0, 0.0, 0.0
        # Dives pay where bids hold parts of rows; where each takes all of a row, small auctions are better.
        self._dives = bool((packing.amount < packing.capacity[packing.row]).any())
        self._entry_s = _ENTRY_S if self._dives else _WHOLE_ENTRY_S
        self._has_relaxed = False
        self._search_s = self._searching.left_s()
        self.award = start
        self._earlier: list[IntArray] = []
        self.best = self._worth.of(start)
        self.bound: int | None = None
        self._is_liked_best = not preference.any()
        self._alive: BoolArray = np.ones(len(packing), np.bool_)
        self._relaxation: Relaxation | None = None
        prices = find_prices(packing, value, float(value[start].sum()), _ROUNDS, self._over(_FOR_PRICES))
        self._priced(prices)
        gain = value - packing.cost(prices.price)
        for order in _orders(prices, gain, value):
            self._offer(greedy_by(packing, order))
        # Loading what is compiled takes a while: a clock that runs does not pay for it.
        may_wait = limits.deadline is None
        self._repacking = Repacking(
            packing, self._worth, prices.price, self.award, limits.seed, may_wait=may_wait
        )
        self._search = Search(packing, self._worth, gain, self.award, limits.seed)
        self._diving = Diving(packing, self._worth, prices.price, self.award, limits.seed)
        self._offer(self._repacking.award)

    def run(self) -> Found:
        """Make steps until the limits or a proof end it."""
        steps = _ENDLESS if self._limits.steps is None else self._limits.steps
        since, number = 0, 0
        if steps and len(self._packing) <= _TINY and not self._is_finished(0):
            self._solve_whole(_FIRST_WHOLE)
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
            bound=self.bound,
            steps=number,
            price=self._price * (self._largest / _SCALE),
            earlier=tuple(self._earlier),
        )

    @property
    def _proved(self) -> bool:
        return self.bound is not None and self.best[0] >= self.bound

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

    def _over(self, share: float) -> Callable[[], bool]:
        """Return whether a share of the time that is left now is used up."""
        left = self._searching.left_s()
        return lambda: self._searching.deadline is not None and self._searching.left_s() <= (1 - share) * left

    def _step(self, number: int) -> None:
        """Make one step: moves, a small auction, or one about preference."""
        may_prefer = bool(self._worth.preference.any())
        if self._proved or (may_prefer and number % _PREFER_EVERY == _PREFER_EVERY - 1 and self._has_time):
            self._auctioned(self._search.prefer)
        elif self._may_auction(number) and number % _MERGE_EVERY == _MERGE_EVERY - 1 and self._has_time:
            self._auctioned(lambda left_s: self._search.merge(self._repacking.others(), left_s))
        elif number % _AUCTION_EVERY != 0:
            self._move()
        elif self._may_auction(number) and self._is_for_auctions(number) and self._has_time:
            self._auctioned(self._improve)
        elif self._dives and (self._may_auction(number) or self._searching.deadline is not None):
            self._dive()
        else:
            self._move()

    def _is_for_auctions(self, number: int) -> bool:
        return not self._dives or number % (_AUCTION_EVERY * _AUCTION_OF_TURNS) == 0

    def _may_auction(self, number: int) -> bool:
        if self._searching.deadline is None:
            return number >= _ONLY_MOVES
        return self._searching.left_s() < (1 - _ONLY_MOVES_SHARE) * self._search_s

    def _improve(self, left_s: float) -> None:
        """Hold small auctions: one, or where a clock counts for as long as the moves between them last."""
        self._search.improve(left_s)
        if self._searching.deadline is not None:
            end = left_s - _STEP_S * (_AUCTION_EVERY - 1)
            while (left := self._searching.left_s()) > max(end, self._longest_s):
                self._search.improve(left)

    def _dive(self) -> None:
        """Dive once, or where a clock counts for as long as the moves between dives last."""
        diving, searching = self._diving, self._searching
        diving.adopt(self.award, self.best)
        end = searching.left_s() - _STEP_S * (_AUCTION_EVERY - 1)
        diving.dive(searching.is_over)
        while searching.deadline is not None and searching.left_s() > max(end, 0.0):
            diving.dive(searching.is_over)
        self._offer(diving.award)

    def _move(self) -> None:
        """Make the moves of one step."""
        repacking, searching = self._repacking, self._searching
        repacking.adopt(self.award, self.best)
        if self._limits.deadline is None:
            repacking.run(_MOVES, lambda: False)
        else:
            began = searching.left_s()
            others = max(0.0, self._search_s - began - self._moved_s)
            due = max(_STEP_S, others * _FOR_MOVES / (1 - _FOR_MOVES) - self._moved_s)
            repacking.run(_ENDLESS, lambda: searching.left_s() <= max(0.0, began - due))
            self._moved_s += began - searching.left_s()
        self._offer(repacking.award)

    @property
    def _has_time(self) -> bool:
        """Return whether the longest small auction so far would end in time."""
        return self._searching.deadline is None or self._searching.left_s() > self._longest_s

    def _auctioned(self, step: Callable[[float], None]) -> None:
        began = self._searching.left_s()
        self._search.adopt(self.award, self.best, self._repacking.others())
        step(began)
        self._offer(self._search.award)
        self._longest_s = max(self._longest_s, began - self._searching.left_s())

    def _events(self, number: int) -> None:
        """Better the bound at the steps set for it, and solve what is left of a small program."""
        # Where steps are counted, as in the passes of a simulation, HiGHS gets small programs only at once.
        most = _WHOLE_COUNTED if self._limits.deadline is None else _WHOLE_AT_ONCE
        if number == 0 and len(self._packing) <= most and not self._is_finished(0):
            self._solve_whole(_FIRST_WHOLE)
        if number == _BETTER_PRICES and self._relaxation is None:
            value = self._worth.value
            target = float(value[self.award].sum())
            over = self._over(_FOR_PRICES)
            self._priced(find_prices(self._packing, value, target, _MORE_ROUNDS, over, self._price))
            self._guide(self._price)
        entries = relaxed_entries(self._packing)
        after = number - entries // _RELAX_ENTRIES - 1
        if not self._has_relaxed and (
            after == 0 if self._limits.deadline is None else self._may_relax(entries)
        ):
            self._has_relaxed = True
            self._relax(entries)
        elif self._has_relaxed and self._may_tighten(after, entries):
            self._tighten()
        if number >= _FIRST_WHOLE and number & (number - 1) == 0:
            self._solve_whole(number // 2)

    def _may_relax(self, entries: int) -> bool:
        """Return whether the time that is gone is what the relaxation takes: it never takes most of it."""
        return entries * self._entry_s < self._search_s - self._searching.left_s()

    def _may_tighten(self, after: int, entries: int) -> bool:
        """Return whether a round of cliques is due: by steps, or by a share of the time where that counts."""
        if self._limits.deadline is None:
            return after % (_CLIQUES_EVERY * (1 + entries // _CLIQUES_ENTRIES)) == 0
        return self._bound_s < _FOR_BOUND * (self._search_s - self._searching.left_s())

    def _offer(self, award: IntArray) -> None:
        value = self._worth.of(award)
        if value > self.best:
            if self._limits.deadline is None:
                self._earlier.append(self.award)
            self.award, self.best = award, value

    def _bounded(self, bound: int | None) -> None:
        if bound is not None:
            self.bound = bound if self.bound is None else min(self.bound, bound)

    def _priced(self, prices: Prices) -> None:
        self._price = prices.price
        self._bounded(self._in_weights(prices.bound))

    def _in_weights(self, bound: float) -> int | None:
        """Return a bound in integer weights, rounded down but for what floats may have lost."""
        if not isfinite(bound):
            return None
        return floor(Fraction(bound * (1 + 1e-9) / _SCALE) * self._largest + Fraction(1, 10**6))

    def _relax(self, entries: int) -> None:
        """Solve the linear relaxation where there is time for it."""
        left = self._searching.left_s()
        if self._proved or entries > _MOST_ENTRIES or entries * self._entry_s > _FOR_RELAXATION * left:
            return
        self._relaxation = Relaxation(self._packing, self._worth.value)
        relaxed = self._relaxation.solve(_FOR_RELAXATION * left)
        if relaxed is not None:
            # Of the rows alone: cliques are no rows of the moves.
            self._guide(relaxed.price)
        self._use(relaxed)

    def _guide(self, price: FloatArray) -> None:
        self._repacking.guide(price)
        self._diving.guide(price)

    def _tighten(self) -> None:
        if self._relaxation is not None and not self._relaxation.is_done and not self._proved:
            began = self._searching.left_s()
            self._use(self._relaxation.tighten(_FOR_CLIQUES * began))
            self._bound_s += began - self._searching.left_s()

    def _use(self, relaxed: Relaxed | None) -> None:
        """Take a relaxation's bound and prices, and forget the bids that no better award can hold."""
        if relaxed is None:
            if self._relaxation is not None and not self._relaxation.is_done:
                self._relaxation = None
            return
        self._bounded(self._in_weights(relaxed.bound))
        self._price = relaxed.price
        self._search.guide(relaxed.gain, relaxed.share)
        slack = relaxed.bound - float(self._worth.value[self.award].sum())
        # A thousandth of the largest weight more than floats can lose.
        self._alive &= relaxed.loss <= slack + 1e-3

    def _solve_whole(self, checks: int) -> None:
        """Give HiGHS every bid that a better award could hold, when they are few or the proof is near."""
        alive = np.union1d(np.flatnonzero(self._alive), self.award)
        gap = 1.0 if self.bound is None else (self.bound - self.best[0]) / max(self.best[0], 1)
        most = _WHOLE_AT_ONCE if gap > _NEAR else _WHOLE_LATER if gap > _NEARLY_PROVED else len(alive)
        is_settled = self._proved and self._is_liked_best
        if len(alive) > most or is_settled or not self._limits.solves:
            return
        share = 1.0 if self._searching.is_over() else _FOR_WHOLE
        solution = self._solved(alive, share, None if self._limits.steps is None else checks)
        # Bids that were left out are in no better award: what is proved without them is proved.
        self._bounded(None if solution.bound is None else max(solution.bound, self.best[0]))
        self._is_liked_best |= solution.status is SolverStatus.OPTIMAL

    def _solved(self, bids: IntArray, share: float, checks: int | None) -> WindowSolution:
        """Give HiGHS the program over some bids, the award at hand as its start, and take what it finds."""
        limits = self._limits
        self._is_stated = True
        program = self._state(bids)
        cliques = [] if self._relaxation is None else self._relaxation.cliques
        settings = SolveSettings(
            time_limit_s=max(0.0, share * limits.left_s()),
            seed=limits.seed,
            clock=limits.clock,
            most_checks=checks,
        )
        solution = solve_lexicographic(
            program.with_cliques(_within(cliques, bids)),
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
        if self._limits.deadline is None or self._limits.is_over() or not len(self._packing):
            return
        if not self._limits.ends and not self._proved:
            return
        if self._proved and self._is_liked_best and self._is_stated:
            return
        alive = np.union1d(np.flatnonzero(self._alive), self.award)
        # A proved sum of weights is not worth the whole limit: only preference is still open.
        share = _FOR_PREFERENCE if self._proved else 1.0
        most = max(1, int(_STATED_SHARE * self._limits.left_s() / _STATED_ENTRY_S))
        length = np.diff(self._packing.indptr)
        if int(length[alive].sum()) <= most:
            solution = self._solved(alive, share, None)
            self._bounded(None if solution.bound is None else max(solution.bound, self.best[0]))
            self._is_liked_best |= solution.status is SolverStatus.OPTIMAL
            return
        gain = self._worth.value - self._packing.cost(self._price)
        likeliest = alive[np.argsort(-gain[alive], kind="stable")]
        few = likeliest[np.cumsum(length[likeliest]) <= most]
        # Bids are left out that could be in a better award: what is proved over the others is no bound.
        self._solved(np.union1d(few, self.award), share, None)


def _within(cliques: list[IntArray], bids: IntArray) -> list[IntArray]:
    """Return the cliques' places among some bids (ascending), those of two and more."""
    places = [np.flatnonzero(np.isin(bids, clique)) for clique in cliques]
    return [place for place in places if len(place) > 1]


def _orders(prices: Prices, gain: FloatArray, value: FloatArray) -> list[IntArray]:
    """Return orders for greedy awards: by gain for its worth, and by how often the rounds chose a bid."""
    largest = max(float(value.max(initial=0.0)), 1e-9)
    return [
        np.argsort(-(gain / np.maximum(value, 1e-9) + prices.share), kind="stable"),
        np.argsort(-(prices.share + 1e-6 * gain / largest), kind="stable"),
    ]
