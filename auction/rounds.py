"""Rounds of new bids: jobs bid again on what a part of an award would leave.

Bids are made once, for all jobs alike, on what is free before anybody starts: under caps they are
few of all sets of nodes, and fit beside each other by chance. So once an award is found, some
winners at a time are taken out of it, and they and the losers bid anew on what is then free. A
small auction over these bids, the old ones among them, finds their winners. It is column generation
by neighbourhoods: what a round offers fits beside all that stays.

A round goes on from an award within half a percent of the best. The sequence is fixed: the clock,
or a number of rounds, only ends it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.candidates import GuardedViews
from ..bidgen.first_fit import Cluster
from ..bidgen.generate import BidOptions, generate_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.resources.capacity import BoolArray, IntArray
from ..cluster.resources.demand import Demand
from ..models.model import bid_weights
from ..models.search.packing import packing_of
from ..models.search.search_parameters import SearchLimits
from ..models.solve.lexicographic import NO_LIMIT_S
from ..models.solve.solver import SolverStatus
from ..models.winners.determine import determine
from .ledger import first_fit_table, what_is_left
from .list_scheduling import SPARED, JobLists, placer_in
from .options import StepOptions
from .placement_bound import bound_over_placements
from .strategies import AttemptResult, AuctionInstance, answer_of, preferences, searched

#: The share of the winners that a round takes out, and the fewest and most that it takes out.
_SHARE, _FEWEST, _MOST = 0.15, 4, 12
#: Losers that bid in a round at most, and bids of each job.
_LOSERS, _BIDS = 40, 8
#: One of so many rounds is an auction; the others place jobs by lists: shares of the winners that
#: leave.
_AUCTION_EVERY, _LISTED_SHARES, _NOISES = 3, (0.1, 0.2, 0.4), (0.02, 0.1, 0.3)
#: Steps of the search in each round.
_STEPS = 2
#: How far below the best an award may be that the next round starts from.
_WORSE = 0.005

#: Shares of the time for the search over first bids and rounds of new ones; the rest is for all.
_FOR_SEARCH, _FOR_ROUNDS = 0.2, 0.55
#: Searching the arrays again and stating the model may take so many times as long as building them.
_BUILDS = 3
#: Rounds without a better award that end them: where the first bids' best is proved or work is
#: limited, and where it is not.
_PATIENCE, _OPEN_PATIENCE = 24, 100
#: Under a work limit: steps of the search before rounds join in, and steps that a round counts as.
_FIRST_STEPS, _STEPS_OF_ROUND = 32, 8
#: Sums of preferences that differ by less are equal.
_EQUAL = 1e-9

#: What an award counts, exactly, then its preference.
Value = tuple[Fraction, float]


@dataclass(frozen=True, slots=True, eq=False)
class WinnersTable:
    """An award as a table of its winners alone.

    Attributes:
        table: one bid for each winner.
        origin: which bid of the first table each is, −1 for one that was made in a round.
        value: what it counts.
    """

    table: BidTable
    origin: IntArray
    value: Value


class Rounds:
    """Betters an award round by round.

    Args:
        cluster: what the award stands on.
        options: of the step.
        table: the bids that were made first; their jobs are those that bid.
        chosen: the award among them.
    """

    def __init__(self, cluster: Cluster, options: StepOptions, table: BidTable, chosen: IntArray) -> None:
        self._cluster = cluster
        self._options = options
        self._demands = table.demands
        self._rng = np.random.default_rng(options.seed)
        self._number = 0
        winners = table.only(chosen)
        self._lists = None
        if cluster.placer is None:
            self._lists = JobLists.of(self._demands, options.objective, cluster.columns, NO_LIMIT_S)
        self._at = WinnersTable(winners, np.sort(chosen), self.value_of(winners))
        self.best = self._at

    def run(self, deadline: float | None, steps: int | None, patience: int = 10**9) -> None:
        """Make rounds until every job starts.

        A time of the options' clock ends them before, or so many rounds, or failures in turn.
        """
        clock, since, longest = self._options.clock, 0, 0.0

        def is_over() -> bool:
            return deadline is not None and clock() >= deadline

        while since < patience and (steps is None or self._number < steps):
            began = clock()
            is_late = deadline is not None and began + longest >= deadline
            if is_late or len(self.best.table) == len(self._demands):
                return
            before = self.best
            self._round(is_over)
            since = 0 if self.best is not before else since + 1
            longest = max(longest, clock() - began)

    def value_of(self, winners: BidTable) -> Value:
        """Return what all bids of a table count."""
        worth = Fraction(sum(bid_weights(winners, self._options.objective)))
        return worth, float(preferences(winners, self._cluster, self._options)[0].sum())

    def _round(self, is_over: Callable[[], bool]) -> None:
        """Take some winners out, let them and losers bid on what is free, put the best back."""
        at, number = self._at, self._number
        self._number += 1
        lists = None if number % _AUCTION_EVERY == 0 else self._lists
        gone = self._taken_out(number, _SHARE if lists is None else self._rng.choice(_LISTED_SHARES))
        kept, back = at.table.only(~gone), at.table.only(gone)
        left = what_is_left(kept, np.arange(len(kept)), self._cluster, may_change=True)
        places = self._bidding(set(kept.job.tolist()), back.job, left)
        if not len(places):
            return
        demands = tuple(
            replace(self._demands[place], index=index) for index, place in enumerate(places.tolist())
        )
        few = BidOptions(
            max_bids=_BIDS * len(demands),
            max_bids_per_job=_BIDS,
            use_switches=self._options.auction.uses_switches,
        )
        if lists is not None:
            won = self._placed(demands, lists.after(kept.job), places, left, few)
            self._go_on(kept, at.origin[~gone], won, places[won.job], np.full(len(won), -1))
            return
        made = generate_bids(demands, left, few, is_over).table
        table, order = joined_tables(
            demands, [made, back], [made.job, np.searchsorted(places, back.job).astype(np.int64)]
        )
        start = np.flatnonzero(order >= len(made))
        weights = bid_weights(table, self._options.objective)
        packing = packing_of(table, left.columns, left.guards)
        limits = SearchLimits(
            deadline=None, steps=_STEPS, seed=number, clock=self._options.clock, solves=False
        )
        preference, _ = preferences(table, self._cluster, self._options)
        found = determine(packing, weights, preference, start, limits).award
        won = table.only(found)
        again = order[found] - len(made)
        came = np.where(again >= 0, at.origin[gone][np.maximum(again, 0)] if gone.any() else -1, -1)
        self._go_on(kept, at.origin[~gone], won, places[won.job], came)

    def _placed(
        self, demands: tuple[Demand, ...], lists: JobLists, places: IntArray, left: Cluster, few: BidOptions
    ) -> BidTable:
        """Return where jobs start one after another on what is left, in the order of a list."""
        noise = self._rng.normal(0.0, self._rng.choice(_NOISES), len(places))
        only_tied = bool(self._rng.integers(2))
        order = lists.order(places, noise, self._rng.choice(SPARED), only_tied=only_tied)
        placer = placer_in(demands, order, is_tight=bool(self._rng.integers(2)))
        return first_fit_table(demands, replace(left, placer=placer), few)

    def _go_on(
        self, kept: BidTable, origin: IntArray, won: BidTable, places: IntArray, came: IntArray
    ) -> None:
        """Take a round's award unless it is much worse than the best one."""
        table, order = joined_tables(self._demands, [kept, won], [kept.job, places])
        found = WinnersTable(table, np.concatenate([origin, came])[order], self.value_of(table))
        if _is_better(found.value, self.best.value):
            self.best = found
        if found.value[0] >= self.best.value[0] * Fraction(1 - _WORSE):
            self._at = found

    def _taken_out(self, number: int, share: float) -> BoolArray:
        """Return which winners a round takes out: first none, then neighbours and any in turn."""
        table = self._at.table
        count = len(table)
        gone = np.zeros(count, np.bool_)
        if number == 0 or not count:
            return gone
        limit = _MOST if share == _SHARE else count
        most = min(count, max(_FEWEST, min(limit, round(share * count))))
        if number % 2:
            middle = np.add.reduceat(table.node, table.indptr[:-1]) / table.lengths
            far = np.abs(middle - self._rng.choice(middle))
            gone[np.argsort(far, kind="stable")[:most]] = True
        else:
            gone[self._rng.choice(count, most, replace=False)] = True
        return gone

    def _bidding(self, staying: set[int], back: IntArray, left: Cluster) -> IntArray:
        """Return a round's bidding jobs, ascending: those taken out, losers that could start."""
        views = GuardedViews(left.columns, left.columns.free, left.guards)
        mine = set(back.tolist())
        losers = [
            demand.index
            for demand in self._demands
            if demand.index not in staying and demand.index not in mine and views.could_start(demand)
        ]
        if len(losers) > _LOSERS:
            losers = self._rng.choice(losers, _LOSERS, replace=False).tolist()
        return np.array(sorted({*losers, *mine}), np.int64)


def _is_better(value: Value, than: Value) -> bool:
    """Return whether an award counts more, or is preferred by more than float sums may differ."""
    return value[0] > than[0] or (value[0] == than[0] and value[1] > than[1] + _EQUAL)


def improved(
    solved: AttemptResult,
    instance: AuctionInstance,
    start: AttemptResult,
    deadline: float | None,
    steps: int | None,
    patience: int,
) -> AttemptResult:
    """Return the better of an award and rounds from another over the same bids, with all bids."""
    bids, cluster, options = instance.bids, instance.cluster, instance.options
    rounds = Rounds(cluster, options, bids.table, start.answer.chosen)
    rounds.run(deadline, steps, patience)
    best, table = rounds.best, bids.table
    if not _is_better(best.value, rounds.value_of(table.only(solved.answer.chosen))):
        return solved
    new = best.table.only(best.origin < 0)
    joined, order = joined_tables(table.demands, [table, new], [table.job, new.job])
    old = np.isin(np.arange(len(table)), best.origin)
    won = np.concatenate([old, np.ones(len(new), np.bool_)])[order]
    place = np.argsort(order)
    chosen = (solved.answer.chosen, *(award for _, award in solved.alternatives))
    awards = () if steps is None else chosen
    return replace(
        solved,
        bids=replace(bids, table=joined),
        answer=answer_of(joined, np.flatnonzero(won), cluster, options),
        status=SolverStatus.FEASIBLE_AT_LIMIT,
        proved=False,
        bound=None,
        alternatives=tuple((joined, np.sort(place[award])) for award in awards),
    )


def solve_anytime(instance: AuctionInstance) -> AttemptResult:
    """Search the bids; then, with what is left of the time or work, let jobs bid anew in rounds.

    By the clock the search, rounds, and the search of all bids have shares of the time.
    """
    options, deadline = instance.options, instance.deadline
    if options.most_work is not None or deadline is None:
        solved = searched(instance)
        rounds = max(0, (options.most_work or 0) - _FIRST_STEPS) // _STEPS_OF_ROUND
        if not rounds:
            return solved
        # The same start whatever the limit, so that more work is never worse.
        start = searched(replace(instance, options=replace(options, work_limit=_FIRST_STEPS)))
        return improved(solved, instance, start, deadline, rounds, _PATIENCE)
    now = options.clock()
    left_s = max(0.0, deadline - now)
    solved = searched(replace(instance, deadline=now + _FOR_SEARCH * left_s), ends=False)
    if solved.proved and _is_best_of_all(solved, instance, deadline):
        return solved
    # Stating as many bids again takes a while: where there is no time for it, rounds have the rest.
    is_short = (1 - _FOR_SEARCH - _FOR_ROUNDS) * left_s < _BUILDS * (solved.built - now)
    end = deadline if is_short else now + (_FOR_SEARCH + _FOR_ROUNDS) * left_s
    patience = _PATIENCE if solved.proved else _OPEN_PATIENCE
    solved = improved(solved, instance, solved, end, None, patience)
    if solved.proved or is_short:
        return solved
    # What is left of the time is for the model over all bids, those of the rounds among them.
    bids, without_export = solved.bids, replace(options, export="")
    weights = bid_weights(bids.table, options.objective)
    again = replace(instance, bids=bids, weights=weights, first=solved.answer.chosen, options=without_export)
    return searched(again)


def _is_best_of_all(solved: AttemptResult, instance: AuctionInstance, deadline: float) -> bool:
    """Return whether no placement of the jobs, whoever bids there, could be worth more."""
    table, options = solved.answer.table, instance.options
    if not options.valuation.is_bounded or any(one.worth is not None for one in table.demands):
        return False
    left_s = max(0.0, deadline - options.clock())
    bound = bound_over_placements(table.demands, instance.cluster.columns, left_s)
    return bound is not None and solved.answer.value[0] >= bound
