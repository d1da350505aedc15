"""An award at once, a better one with time, and a bound with it.

Greedy → prices and price-guided awards → branch and bound (proving.py) → better prices, the
relaxation and cliques (bounding.py) → moves, swaps and repairs (operators.py), small auctions and
merges of awards (neighbourhoods.py) in turn → HiGHS on what is left, or on the likeliest of it:
after as many steps as a command makes by default, or with the last share of the time. What is done
is a fixed sequence: the clock, or a number of steps, only ends it, so that more is never worse.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...cluster.option_table import WORK_LIMIT
from ...cluster.resources.capacity import FloatArray, IntArray
from ..solve.lexicographic import WindowSolution, solve_lexicographic
from ..solve.program import are_one
from ..solve.solver import SolverStatus
from .bounding import Bounding, Relaxed, SearchPrices
from .compiled_search import compiled_swaps
from .neighbourhoods import SmallAuctions
from .operators import DestroyRepair, ExchangeSearch, Operator, Swapping, greedy_by
from .packing import SCALE, Packing, Worth
from .proving import best_among
from .search_parameters import Found, ProgramBuilder, SearchLimits

#: More steps, and moves, than anyone waits for.
_ENDLESS = 10**9


@dataclass(slots=True, eq=False)
class Turn:
    """An operator in the sequence of steps.

    Attributes:
        is_due: whether it has the step of a number, where no turn before it has.
        operator: makes other awards of the one at hand.
        run: works so many times, fewer when the time is up.
        budget: how often it works in a step, and what ends it before; asked for with the turn.
        spent_s: seconds that it had so far.
    """

    is_due: Callable[[int], bool]
    operator: Operator
    run: Callable[[int, Callable[[], bool]], None]
    budget: "Callable[[Turn], tuple[int, Callable[[], bool]]]" = lambda _: (1, lambda: True)
    spent_s: float = 0.0


class AnytimeSearch:
    """The award at hand, the bound, and what betters both: by sum of weights, then by preference.

    Args:
        packing: bids and capacities.
        worth: of the bids.
        start: an award that fits.
        limits: when to stop.
        build_program: builds the integer program over some bids (ascending, one column each) for
            HiGHS; None: the packing's own rows.
    """

    def __init__(
        self,
        packing: Packing,
        worth: Worth,
        start: IntArray,
        limits: SearchLimits,
        build_program: ProgramBuilder | None = None,
    ) -> None:
        self._packing = packing
        self._limits = limits
        self._tuned = limits.parameters
        # What is no model of the papers has nothing left to build at the end, nor where more search
        # follows.
        has_end = build_program is not None and limits.ends
        self._searching = limits.shortened(self._tuned.program_share) if has_end else limits
        self._program = build_program or partial(packing.program, left=packing.capacity)
        # Only a model of the papers has to be built whatever is proved.
        self._is_built = build_program is None
        self._worth = worth
        self._bounding = Bounding(packing, self._worth, self._searching)
        self._small = self._tuned.whole_counted if limits.counts_steps else self._tuned.whole_at_once
        # They pay where bids hold parts of rows, or jobs have many to choose from; else small
        # auctions do.
        self._repairs = packing.has_parts or len(packing) >= self._tuned.repair_choice * len(packing.first)
        self._search_s = self._searching.left_s()
        self.award = start
        self._earlier: list[IntArray] = []
        self.best = self._worth.of(start)
        self._is_most_preferred = not worth.preference.any()
        self._too_many_to_branch = self._tuned.branched + 1
        # A small program is soon relaxed: better prices are not worth their time.
        is_small = len(packing) <= self._small
        prices, value = self._bounding.begin(start, is_small=is_small), self._worth.value
        gain = value - packing.cost(prices.price)
        # No award is below these; under a work limit moves come soon enough.
        plain = [] if limits.counts_steps else _plain_orders(packing, value)
        for order in (*plain, *_orders(prices, gain, value)):
            self._offer(greedy_by(packing, order))
        # Loading what is compiled takes a while: a clock that runs does not pay for it.
        self._may_wait = limits.deadline is None
        self._exchanging = ExchangeSearch(
            packing, self._worth, prices.price, self.award, limits.seed, may_wait=self._may_wait
        )
        self._auctions = SmallAuctions(packing, self._worth, gain, self.award, self._searching, self._others)
        self._repairing = DestroyRepair(packing, self._worth, prices.price, self.award, limits.seed)
        self._swapping: Swapping | None = None
        self._offer(self._exchanging.award)
        self._turns = self._sequence()

    def _sequence(self) -> list[Turn]:
        """Return the operators: of those that are due the first has a step."""
        auctions = self._auctions
        may_prefer = bool(self._worth.preference.any())
        every, parameters = self._tuned.auction_every, self._tuned

        def prefers(number: int) -> bool:
            is_its_turn = may_prefer and number % parameters.prefer_every == parameters.prefer_every - 1
            return self._proved or (is_its_turn and auctions.has_time)

        def merges(number: int) -> bool:
            is_its_turn = number % parameters.merge_every == parameters.merge_every - 1
            return is_its_turn and self._may_auction(number) and auctions.has_time

        def improves(number: int) -> bool:
            is_its_turn = number % (every * parameters.auction_of_turns if self._repairs else every) == 0
            return is_its_turn and self._may_auction(number) and auctions.has_time

        def repairs(number: int) -> bool:
            may_repair = self._may_auction(number) or not self._searching.counts_steps
            return number % every == 0 and self._repairs and may_repair

        return [
            Turn(prefers, auctions, partial(auctions.run, auctions.prefer)),
            Turn(merges, auctions, partial(auctions.run, auctions.merge)),
            Turn(improves, auctions, partial(auctions.run, auctions.improve), self._between),
            Turn(repairs, self._repairing, self._repairing.run, self._between),
            Turn(lambda _: True, self._exchanging, self._exchanging.run, self._moves),
        ]

    def run(self) -> Found:
        """Make steps until the limits or a proof end it."""
        steps = _ENDLESS if self._limits.steps is None else self._limits.steps
        since, number = 0, 0
        if steps and not self._is_finished(0):
            self._prove_by_branches()
        if steps and len(self._packing) <= self._small and not self._is_finished(0):
            # Where a clock counts, what a tight bound leaves of a small program.
            if not self._limits.counts_steps and self._limits.solves:
                self._bounding.tighten(self.award)
            self._solve_whole(self._tuned.first_whole)
        # No step, no solver: prices and greedy awards only, for those who make thousands of
        # attempts.
        while number < steps and not self._is_finished(since):
            before = self.best
            if number == self._tuned.swap_turn:
                self._add_swaps()
            turn = next(one for one in self._turns if one.is_due(number))
            turn.operator.adopt(self.award, self.best)
            began = self._searching.left_s()
            turn.run(*turn.budget(turn))
            turn.spent_s += began - self._searching.left_s()
            self._offer(turn.operator.award)
            self._events(number)
            since = since + 1 if self.best == before else 0
            number += 1
        self._finish()
        status = SolverStatus.OPTIMAL if self._is_settled else SolverStatus.FEASIBLE_AT_LIMIT
        return Found(
            award=self.award,
            status=status,
            proved=self._proved,
            bound=self._bounding.bound,
            price=self._bounding.price * (max(self._worth.weights, default=0) / SCALE),
            earlier=tuple(self._earlier),
        )

    @property
    def _proved(self) -> bool:
        bound = self._bounding.bound
        return bound is not None and self.best[0] >= bound

    @property
    def _is_settled(self) -> bool:
        return self._proved and self._is_most_preferred

    def _is_finished(self, since: int) -> bool:
        if self._searching.is_over() or not len(self._packing):
            return True
        if not self._proved:
            return False
        is_best = self._is_most_preferred or self._cannot_be_preferred_more()
        return is_best or since > self._tuned.patience

    def _cannot_be_preferred_more(self) -> bool:
        """Return whether every job that bids wins, each with its most preferred bid."""
        packing, preference = self._packing, self._worth.preference
        most = np.maximum.reduceat(preference, packing.first)
        self._is_most_preferred = len(self.award) == len(packing.first) and bool(
            (preference[self.award] >= most - 1e-12).all()
        )
        return self._is_most_preferred

    def _may_auction(self, number: int) -> bool:
        if self._searching.counts_steps:
            return number >= self._tuned.only_moves
        return self._searching.left_s() < (1 - self._tuned.only_moves_share) * self._search_s

    def _between(self, turn: Turn) -> tuple[int, Callable[[], bool]]:
        """One auction or repair, or by a clock as long as the moves between them last."""
        searching, auctions = self._searching, self._auctions
        if searching.counts_steps:
            return 1, searching.is_over
        end = max(0.0, searching.left_s() - self._tuned.step_s * (self._tuned.auction_every - 1))
        if turn.operator is self._repairing:
            return _ENDLESS, lambda: searching.left_s() <= end
        return _ENDLESS, lambda: searching.left_s() <= max(end, auctions.longest_s)

    def _moves(self, turn: Turn) -> tuple[int, Callable[[], bool]]:
        """The moves of one step."""
        parameters = self._tuned
        if self._limits.counts_steps:
            return parameters.moves, self._searching.is_over
        has_others = self._repairs or self._swapping is not None
        return self._its_share(turn, parameters.move_share_beside if has_others else parameters.move_share)

    def _its_share(self, turn: Turn, share: float) -> tuple[int, Callable[[], bool]]:
        """As much as brings a turn to its share of the time."""
        searching = self._searching
        began = searching.left_s()
        others = max(0.0, self._search_s - began - turn.spent_s)
        due = max(self._tuned.step_s, others * share / (1 - share) - turn.spent_s) if share < 1 else began
        return _ENDLESS, lambda: searching.left_s() <= max(0.0, began - due)

    def _add_swaps(self) -> None:
        """Give swaps turns, after those of merges: where a clock counts, and every row is hard."""
        tuned, limits, exchanging = self._tuned, self._limits, self._exchanging
        every, place = tuned.auction_every, tuned.swap_turn
        if limits.counts_steps or self._repairs or place >= every:
            return
        loop, sets = compiled_swaps() if exchanging.is_compiled else None, exchanging.sets
        if loop is not None and sets is not None:
            swapping = Swapping(loop, sets, self._worth, exchanging.gain, self.award, limits.seed)
            budget = partial(self._its_share, share=tuned.swap_share)
            is_due = lambda number: number % every == place  # noqa: E731 - a line
            self._turns.insert(2, Turn(is_due, swapping, swapping.run, budget))
            self._swapping = swapping

    def _others(self) -> list[IntArray]:
        """Return the awards at which runs of swaps and cycles of moves ended."""
        swapped = [] if self._swapping is None else self._swapping.others()
        return [*swapped, *self._exchanging.others()]

    def _events(self, number: int) -> None:
        """Better the bound at the steps set for it, and solve what is left of a small program."""
        if number == 0 and len(self._packing) <= self._small and not self._is_finished(0):
            self._solve_whole(self._tuned.first_whole)
        if not self._proved:
            self._guided(self._bounding.step(number, self.award))
        if number == 0 and len(self._packing) > self._small:
            self._prove_by_branches()
        if number >= self._tuned.first_whole and number & (number - 1) == 0:
            self._solve_whole(number // 2)
        if number + 1 == WORK_LIMIT and self._limits.counts_steps:
            self._solve_likeliest()

    def _guided(self, found: FloatArray | Relaxed | None) -> None:
        """Let better prices lead the search, and a relaxed solution small auctions besides."""
        if isinstance(found, Relaxed):
            self._auctions.guide(found.gain, found.share)
            if not self._limits.counts_steps:
                # Where steps are counted, the moves of a seed stay those of earlier releases.
                self._exchanging.narrow(self._bounding.alive)
                if self._swapping is not None:
                    self._swapping.narrow(np.flatnonzero(self._bounding.alive))
            # Of the rows alone: cliques are no rows of moves.
            found = None if self._bounding.cliques else found.price
        if found is not None:
            # Repairs go on with what rounds of prices found first: a relaxation's duals lead them
            # astray.
            self._exchanging.guide(found)
            if self._swapping is not None:
                self._swapping.guide(self._exchanging.gain)

    def _offer(self, award: IntArray) -> None:
        value = self._worth.of(award)
        if value > self.best:
            if self._limits.counts_steps:
                self._earlier.append(self.award)
            self.award, self.best = award, value

    def _solve_whole(self, checks: int) -> None:
        """Give HiGHS every bid that a better award could hold, if few or if the proof is near."""
        self._prove_by_branches()
        alive, bound = self._alive, self._bounding.bound
        gap = 1.0 if bound is None else (bound - self.best[0]) / max(self.best[0], 1)
        tuned = self._tuned
        later = tuned.whole_later if gap > tuned.nearly_proved else len(alive)
        most = tuned.whole_at_once if gap > tuned.near else later
        if len(alive) > most or self._is_settled or not self._limits.solves:
            return
        share = 1.0 if self._searching.is_over() else self._tuned.whole_share
        self._take(self._solved(alive, share, None if self._limits.steps is None else checks))

    def _prove_by_branches(self) -> None:
        """Let branch and bound find the best award and a proof, unless it saw as many bids."""
        alive = self._alive
        may_prove = self._searching.may_prove and len(alive) < self._too_many_to_branch
        if not may_prove or self._is_settled:
            return
        # Again of half as many: a proof takes the square of their number.
        self._too_many_to_branch = len(alive) // 2
        found, is_best = best_among(
            self._packing, self._worth, self.award, alive, self._bounding.price, may_wait=self._may_wait
        )
        self._offer(found)
        if is_best:
            self._bounding.take(self.best[0])
            self._bounding.alive[:] = False
            self._is_most_preferred = True

    @property
    def _alive(self) -> IntArray:
        """The bids that a better award could hold, and those of this one."""
        return np.union1d(np.flatnonzero(self._bounding.alive), self.award)

    def _take(self, solution: WindowSolution) -> None:
        """Take what is proved over such bids: those that were left out are in no better award."""
        self._bounding.take(None if solution.bound is None else max(solution.bound, self.best[0]))
        self._is_most_preferred |= solution.status is SolverStatus.OPTIMAL

    def _solved(self, bids: IntArray, share: float, checks: int | None) -> WindowSolution:
        """Give HiGHS the program over some bids, from the award at hand, and take what it finds."""
        self._is_built = True
        program = self._program(bids)
        settings = self._limits.settings(share, checks=checks)
        solution = solve_lexicographic(
            program.with_cliques(_within(self._bounding.cliques, bids)),
            self._packing.job[bids],
            [self._worth.weights[bid] for bid in bids.tolist()],
            self._worth.preference[bids],
            np.isin(bids, self.award).astype(np.float64),
            settings,
        )
        award = bids[are_one(solution.values)]
        # Beside huge counts the solver's tolerance is more than nothing: what it found is recounted.
        if (self._packing.use(award) <= self._packing.capacity).all():
            self._offer(award)
        return solution

    def _solve_likeliest(self) -> None:
        """Give HiGHS the likeliest bids, as many as are a small program, unless it had any."""
        if not self._is_built:
            tuned = self._tuned
            self._build(np.ones(len(self._packing)), tuned.whole_counted, 1.0, tuned.first_whole)

    def _finish(self) -> None:
        """With the rest of the time, give HiGHS the bids that could beat it, or the likeliest."""
        limits, tuned = self._limits, self._tuned
        if limits.is_over() or not (limits.ends or self._proved):
            return
        if limits.counts_steps:
            if self._searching.is_over():
                self._solve_likeliest()
            return
        # A proved sum of weights is not worth the whole limit: only preference is still open.
        share = tuned.preference_share if self._proved else 1.0
        most = max(1, int(tuned.stated_share * limits.left_s() / tuned.stated_entry_s))
        self._build(np.diff(self._packing.indptr), most, share, None)

    def _build(self, size: IntArray | FloatArray, most: int, share: float, checks: int | None) -> None:
        """Give HiGHS the bids of possible better awards, or the likeliest of a size together."""
        if not len(self._packing) or (self._is_settled and self._is_built):
            return
        alive = self._alive
        if size[alive].sum() <= most:
            self._take(self._solved(alive, share, checks))
            return
        gain = self._worth.value - self._packing.cost(self._bounding.price)
        likeliest = alive[np.argsort(-gain[alive], kind="stable")]
        few = likeliest[np.cumsum(size[likeliest]) <= most]
        # What is proved without bids that a better award could hold is no bound.
        self._solved(np.union1d(few, self.award), share, checks)


def _within(cliques: list[IntArray], bids: IntArray) -> list[IntArray]:
    """Return the cliques' places among some bids (ascending), those of two and more."""
    places = [np.flatnonzero(np.isin(bids, clique)) for clique in cliques]
    return [place for place in places if len(place) > 1]


def _plain_orders(packing: Packing, value: FloatArray) -> list[IntArray]:
    """Return the orders that need no prices: by worth, and by worth an entry (mostly a node)."""
    entries = np.maximum(np.diff(packing.indptr), 1)
    return [np.argsort(-value, kind="stable"), np.argsort(-value / entries, kind="stable")]


def _orders(prices: SearchPrices, gain: FloatArray, value: FloatArray) -> list[IntArray]:
    """Return orders for greedy awards: by gain over worth, and by how often rounds chose a bid."""
    largest = max(float(value.max(initial=0.0)), 1e-9)
    return [
        np.argsort(-(gain / np.maximum(value, 1e-9) + prices.share), kind="stable"),
        np.argsort(-(prices.share + 1e-6 * gain / largest), kind="stable"),
    ]
