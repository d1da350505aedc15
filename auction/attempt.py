"""One attempt: a window's bids, the best quick award, the integer program, the better of both."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from ..bidgen.first_fit import Cluster, FirstFitPlacer, Placement
from ..bidgen.generate import Bids, Others, generate_bids, placed_bids
from ..bidgen.table import CLASS_A, BidTable
from ..cluster.errors import InputError
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.schedule import Seconds
from ..models.model import Weight, bid_weights, has_one_worth
from ..models.solve.lexicographic import NO_LIMIT_S, integer_weights, largest_sum
from ..models.solve.solver import SolverStatus
from .ledger import first_fit_table, greedy_awards
from .list_scheduling import JobLists, hardest_first, list_placers
from .options import StepOptions
from .placement_bound import LARGEST_SUM, most_valuable
from .rounds import solve_anytime
from .strategies import (
    AttemptResult,
    AuctionInstance,
    answer_of,
    keeps_whole,
    solve_exactly,
    solve_greedily,
)

#: The share of an attempt's time after which jobs bid where first-fit places them only.
_FOR_BIDS = 0.5
#: How an award is found.
STRATEGIES = {"anytime": solve_anytime, "exact": solve_exactly, "greedy": solve_greedily}


def attempt(
    demands: tuple[Demand, ...],
    cluster: Cluster,
    options: StepOptions,
    *,
    size: int,
    deadline: float | None,
    others: Others | None = None,
) -> AttemptResult:
    """Auction jobs' bids and return the best award found; it is worth at least the first bids.

    Args:
        demands: the jobs that bid, highest priority first; ``index`` is the place among them.
        cluster: free resources and reservations.
        options: of the step.
        size: jobs of the window that were looked at for them.
        deadline: when to be done, by the options' clock (seconds); None: only work counts.
        others: jobs of the window that do not bid.
    """
    clock = options.clock
    began = clock()
    options.auction.check_size(len(demands), len(cluster.columns.names))
    bids = bids_of_step(demands, cluster, options, deadline, others)
    weights = bid_weights(bids.table, options.objective)
    if options.weights == "paper" or options.export:
        _check_sum(weights, bids.table.job)
    made = clock()
    first, start = starts_of(bids, cluster, options)
    instance = AuctionInstance(
        bids=bids, weights=weights, first=start, cluster=cluster, options=options, deadline=deadline
    )
    solved = STRATEGIES[options.chosen_strategy](instance)
    # Of the bids before rounds made others, which stand between them.
    begun = _first_award(first, bids, cluster, options)
    solved = _not_below(begun, solved, cluster, options)
    if not bids.complete:
        # What is proved over some of the bids is no proof.
        solved = replace(solved, status=SolverStatus.FEASIBLE_AT_LIMIT, proved=False, bound=None)
    answer = solved.answer
    is_final = options.is_greedy or (options.weights == "paper" and solved.proved)
    is_start = is_final or answer.chosen is begun[1]
    has_worth = any(demand.worth is not None for demand in demands)
    spent = made - began, solved.built - made, clock() - solved.built
    return replace(
        solved,
        size=size,
        bound=None if has_worth or solved.bound is None else max(solved.bound, answer.priority),
        seconds=Seconds(bids=spent[0], build=spent[1], solve=spent[2], total=sum(spent)),
        alternatives=solved.alternatives if is_start else (*solved.alternatives, _start_of(begun, bids)),
    )


def other_award(
    base: AttemptResult, table: BidTable, chosen: IntArray, cluster: Cluster, options: StepOptions
) -> AttemptResult:
    """Return an attempt with another award, over any bids, of which nothing is proved."""
    if table is base.answer.table:
        answer = replace(base.answer, chosen=chosen)
    else:
        answer = answer_of(table, chosen, cluster, options)
    return replace(base, answer=answer, status=SolverStatus.FEASIBLE_AT_LIMIT, proved=False)


def counted_award(
    placed: Sequence[Placement], cluster: Cluster, options: StepOptions, size: int
) -> AttemptResult:
    """Return an award of which counts say that no other is better, as an attempt with a proof.

    Args:
        placed: where its jobs start.
        cluster: free resources and reservations.
        options: of the step.
        size: jobs of the window.
    """
    table = placed_bids(placed, cluster, options.bids)
    won = np.ones(len(table), np.bool_)
    bids = Bids(table=table, first_fit=won, placed=len(won), complete=True, could_bid=won)
    answer = answer_of(table, np.arange(len(table)), cluster, options)
    return AttemptResult(
        size=size,
        bids=bids,
        answer=answer,
        status=SolverStatus.OPTIMAL,
        proved=True,
        bound=answer.priority,
    )


def placed_by_counts(
    demands: tuple[Demand, ...], cluster: Cluster, options: StepOptions
) -> tuple[Sequence[Demand], list[Placement | None], FirstFitPlacer] | None:
    """Return jobs of which no others count more, where first-fit starts each, and what placed them.

    These are all jobs, or those that counts choose; none where no job has room beside the
    reservations. First-fit goes by priority, or where that leaves one out from the hardest to place
    on. None: no proof comes soon.

    Args:
        demands: the jobs that bid, highest priority first.
        cluster: free resources and reservations.
        options: of the step.
    """
    fit, free = FirstFitPlacer(cluster), int(np.maximum(cluster.columns.free.cores, 0).sum())
    if sum(demand.fewest_cores for demand in demands) <= free:
        placements = fit.place_all(demands)
        if None not in placements:
            return demands, placements, fit
        fit = FirstFitPlacer(cluster)
    # On more nodes a job may be through before a reservation.
    may_bid = (demand.job.limits_by_nodes_s or fit.could_hold(demand) for demand in demands)
    if are_preferred((), cluster, options) and not any(may_bid):
        return (), [], fit
    chosen = most_valuable(demands, options.objective, cluster)
    placements = fit.place_all(chosen)
    if None in placements:
        fit = FirstFitPlacer(replace(cluster, placer=hardest_first(chosen, cluster.columns)))
        placements = fit.place_all(chosen)
    return (chosen, placements, fit) if chosen else None


def are_preferred(placements: Sequence[Placement], cluster: Cluster, options: StepOptions) -> bool:
    """Return whether no award of the same jobs counts more, or is preferred; False: not known.

    Of a job without gres no bid is preferred to one on its fewest nodes below one leaf, or of class
    A where levels do not count. What the award is to leave wholly free, or anything else: bids and
    a search have to say.
    """
    has_one = all(has_one_worth(one.asked.demand, options.objective) for one in placements)
    if not (options.counts_may_prove and has_one) or keeps_whole(cluster, options):
        return False
    columns, topology = cluster.columns, cluster.topology
    for placement in placements:
        demand = placement.asked.demand
        if demand.alone_in is not None or any(one.gres or one.gres_total for one in demand.variants):
            return False
        if len(placement.nodes) > 1 and len(placement.nodes) > _fewest_nodes(demand, columns):
            return False
    if options.auction.uses_switches:
        if topology.is_one_switch or not placements:
            return True
        ends = np.cumsum([0, *(len(placement.nodes) for placement in placements)])
        nodes = np.concatenate([placement.nodes for placement in placements])
        return not topology.level[topology.common_switch_of_sets(ends, nodes)].any()
    table = placed_bids(placements, cluster, options.bids)
    return len(table) == len(placements) and bool((table.bid_class == CLASS_A).all())


def _fewest_nodes(demand: Demand, columns: Columns) -> int:
    """Return a number of nodes below which no bid of a job is."""
    if demand.node_counts is not None:
        return demand.node_counts.minimum
    most = int(columns.total.cores[demand.eligible].max(initial=0))
    return -(-(demand.units or 0) // max(1, most // demand.unit))


def bids_of_step(
    demands: tuple[Demand, ...],
    cluster: Cluster,
    options: StepOptions,
    deadline: float | None,
    others: Others | None,
) -> Bids:
    """Make the bids, within their share of the time."""
    clock = options.clock
    began = clock()
    if cluster.placer is not None and options.is_greedy and not cluster.everywhere:
        table = first_fit_table(demands, cluster, options.bids)
        starts = np.bincount(table.job, minlength=len(demands)) > 0
        return Bids(table=table, first_fit=starts, placed=len(table), complete=True, could_bid=starts)
    # A file of the program holds all bids, however long they take.
    is_endless = deadline is None or bool(options.export)
    end = inf if is_endless or deadline is None else clock() + _FOR_BIDS * (deadline - clock())
    made = options.bids
    # Jobs are placed in other orders, too, but where a balance is kept, or for greedy awards.
    if cluster.placer is None and not options.is_greedy:
        lists = JobLists.of(demands, options.objective, cluster.columns, min(end - began, NO_LIMIT_S))
        if lists is not None:
            made = replace(made, placers=list_placers(lists, demands, options.seed), worth=lists.worth)
        elif options.selects:
            # By counts all may start: where they do in ``placed_by_counts`` is one of the awards.
            made = replace(made, placers=(hardest_first(demands, cluster.columns),))
    return generate_bids(demands, cluster, made, lambda: clock() >= end, others)


def starts_of(bids: Bids, cluster: Cluster, options: StepOptions) -> tuple[IntArray, IntArray]:
    """Return first-fit's award and the search's start: that, or a list's if worth more."""
    # First-fit's placements, as far as they fit together as bids, and what fits beside them.
    taken = (one.tolist() for one in (_placements(bids), *bids.listed))
    table, starts = bids.table, greedy_awards(bids.table, cluster, taken)
    return starts[0], max(starts, key=lambda one: sum(bid_weights(table, options.objective, one)))


def _placements(bids: Bids) -> IntArray:
    """Return the bids that are first-fit placements: the first of their jobs."""
    return np.searchsorted(bids.table.job, np.flatnonzero(bids.first_fit))


def _first_award(
    first: IntArray, bids: Bids, cluster: Cluster, options: StepOptions
) -> tuple[BidTable, IntArray]:
    """Return first-fit's award: over the bids, or over its own table if they do not hold it."""
    placed = _placements(bids)
    if not bids.placed == len(placed) > len(np.intersect1d(first, placed)):
        return bids.table, first
    # Dealt as if each stood alone, gres over all nodes of several jobs do not fit together.
    table = first_fit_table(bids.table.demands, cluster, options.bids)
    return table, np.arange(len(table))


def _start_of(begun: tuple[BidTable, IntArray], bids: Bids) -> tuple[BidTable, IntArray]:
    """Return first-fit's award as greedy steps complete it: its placements, but no other bids."""
    table, first = begun
    placed = np.intersect1d(first, _placements(bids)) if table is bids.table else first
    return table, placed if len(placed) else first


def _not_below(
    begun: tuple[BidTable, IntArray], solved: AttemptResult, cluster: Cluster, options: StepOptions
) -> AttemptResult:
    """Return the answer, or first-fit's award where that is worth more by the exact sum.

    A solver's tolerance, or a limit that comes at once, may leave less. Under the papers' weighted
    sum an optimum may be worth less by priorities alone: a proof stands.
    """
    if options.weights == "paper" and solved.proved:
        return solved
    table, first = begun
    if sum(bid_weights(table, options.objective, first)) <= solved.answer.value[0]:
        return solved
    return replace(
        solved,
        answer=answer_of(table, first, cluster, options),
        status=SolverStatus.FEASIBLE_AT_LIMIT if solved.proved else solved.status,
        proved=False,
    )


def _check_sum(weights: list[Weight], job: IntArray) -> None:
    """Raise InputError when the largest weights of all jobs together are above 2⁵³."""
    integers, unit = integer_weights(weights)
    total = largest_sum(integers, job) * unit
    if total > LARGEST_SUM:
        raise InputError(f"the window's weights sum to {float(total):.17g}, above 2^53", path="jobs")
