"""One attempt: the bids of a window, the best quick award, the integer program, the better of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.columns import Columns, FloatArray, IntArray
from ..bidgen.demand import Demand
from ..bidgen.generate import BidOptions, Bids, generate_bids
from ..bidgen.guard import Guard
from ..bidgen.table import BidTable
from ..cluster.errors import InputError
from ..cluster.schedule import Sizes
from ..models.ipsched import check_size
from ..models.preference import PREFERENCE_TABLES, TABLE_4_4, cost_k, preference_f
from ..models.search.anytime import Limits, solve_anytime
from ..models.search.packing import packing_of
from ..models.solve.exact import integer_weights, largest_sum
from ..models.solve.lexicographic import NO_LIMIT_S, SolveSettings, solve_lexicographic, solve_weighted
from ..models.solve.solver import SolverStatus
from ..topology.tree import Topology
from .export import export
from .ledger import greedy
from .options import StepOptions
from .programs import Answer, Stated, Weight, bid_weights, state

#: Above this a sum of weights is refused: floats, in which others read it, no longer hold every integer.
LARGEST_SUM = 2**53


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cluster:
    """What every attempt of a step shares: the cluster, and reservations that bids must not delay."""

    columns: Columns
    topology: Topology
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttemptResult:
    """What one attempt found.

    Attributes:
        bids: the bids that were auctioned.
        table: the same with what the winners hold; chosen: the winners in it, ascending.
        status: of the solver; ``proved`` when the sum of priorities is proved the best over the bids.
        priority: the exact sum of the winners' weights; ``bound`` the most any award could reach.
        preference: of each bid of the table, as schedules show it; None where the model has none.
        value: priority, then preference: what awards are compared by.
    """

    size: int
    bids: Bids
    table: BidTable
    chosen: IntArray
    status: SolverStatus
    proved: bool
    priority: Fraction | int
    bound: Fraction | int | None
    preference: FloatArray | None
    value: tuple[Fraction | int, float]
    sizes: Sizes
    bid_seconds: float
    build_seconds: float
    solve_seconds: float


def attempt(window: tuple[Demand, ...], cluster: Cluster, options: StepOptions) -> AttemptResult:
    """Auction a window's bids and return the best award found within the time limit."""
    clock = options.clock
    began = clock()
    if options.model == "ipsched":
        check_size(len(window), len(cluster.columns.names))
    guards = cluster.guards
    bids = generate_bids(window, cluster.columns, cluster.topology, bid_options(options), guards)
    weights = bid_weights(bids.table, options.objective)
    _check_sum(weights, bids.table.job)
    made = clock()
    if options.is_anytime:
        solved = _anytime(bids, weights, cluster, options, began)
    else:
        solved = _exact(bids, weights, cluster, options)
    worth = bid_weights(solved.answer.table, options.objective)
    priority = sum((worth[bid] for bid in solved.answer.chosen), start=Fraction(0))
    return AttemptResult(
        size=len(window),
        bids=bids,
        table=solved.answer.table,
        chosen=solved.answer.chosen,
        status=solved.status,
        proved=solved.proved,
        priority=priority,
        bound=None if solved.bound is None else max(solved.bound, priority),
        preference=solved.answer.preference,
        value=(priority, solved.liked),
        sizes=solved.sizes,
        bid_seconds=made - began,
        build_seconds=solved.built - made,
        solve_seconds=clock() - solved.built,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Solved:
    """How one strategy answered; ``liked`` is the award's preference, ``built`` when building ended."""

    answer: Answer
    status: SolverStatus
    proved: bool
    bound: Fraction | int | None
    liked: float
    sizes: Sizes
    built: float


def _exact(bids: Bids, weights: list[Weight], cluster: Cluster, options: StepOptions) -> _Solved:
    """Solve the papers' model, stated in PuLP, with HiGHS."""
    guards = cluster.guards
    stated = state(bids.table, cluster.columns, cluster.topology, options, guards)
    first = _quick_award(bids, cluster, weights, stated)
    built = options.clock()
    if options.export:
        export(stated, options.export, weighted=options.weights == "paper")
    values, status, proved, bound = _solved(stated, stated.start(first), options)
    answer = stated.answer(values)
    if not proved and options.weights == "lexicographic" and options.model != "ipsched":
        filled = greedy(answer.table, cluster.columns, answer.chosen.tolist(), guards)
        answer = replace(answer, chosen=np.array(filled, np.int64))
    liked = (
        stated.preference @ values if answer.preference is None else answer.preference[answer.chosen].sum()
    )
    return _Solved(
        answer=answer,
        status=status,
        proved=proved,
        bound=bound,
        liked=float(liked),
        sizes=_sizes(bids, stated.program.columns, stated.program.rows, stated.program.nonzeros),
        built=built,
    )


def _anytime(
    bids: Bids, weights: list[Weight], cluster: Cluster, options: StepOptions, began: float
) -> _Solved:
    """Search: an award at once, better ones until the time or the steps are used up."""
    table, guards = bids.table, cluster.guards
    if options.export:
        export(
            state(table, cluster.columns, cluster.topology, options, guards), options.export, weighted=False
        )
    liked, shown = preferences(table, cluster, options)
    integers, unit = integer_weights(weights)
    packing = packing_of(table, cluster.columns, guards)
    first = np.searchsorted(table.job, np.flatnonzero(bids.first_fit))
    start = np.array(greedy(table, cluster.columns, first.tolist(), guards), np.int64)
    built = options.clock()
    by_clock = options.work_limit is None
    limits = Limits(
        deadline=began + options.time_limit_s if by_clock else None,
        steps=options.work_limit,
        seed=options.seed,
        clock=options.clock,
    )
    found = solve_anytime(packing, integers, liked, start, limits)
    return _Solved(
        answer=Answer(table=table, chosen=found.award, preference=shown),
        status=found.status,
        proved=found.proved,
        bound=None if found.bound is None else found.bound * unit,
        liked=float(shown[found.award].sum()),
        sizes=_sizes(
            bids, len(table), len(packing.capacity) + len(packing.first), len(packing.row) + len(table)
        ),
        built=built,
    )


def _sizes(bids: Bids, columns: int, rows: int, nonzeros: int) -> Sizes:
    return Sizes(
        nodesets=bids.table.general_nodesets,
        bids=len(bids.table),
        variables=columns,
        constraints=rows,
        nonzeros=nonzeros,
    )


def preferences(table: BidTable, cluster: Cluster, options: StepOptions) -> tuple[FloatArray, FloatArray]:
    """Return what each bid adds to the second stage, and its preference as schedules show it."""
    nodes = len(cluster.columns.names)
    if options.model != "aucsched3":
        is_first = options.model == "aucsched1"
        constants = TABLE_4_4 if is_first else PREFERENCE_TABLES[options.preference_table]
        f = preference_f(table, nodes, constants)
        return f, f
    cost = cost_k(table, nodes, cluster.topology.max_level)
    return 3.0 - cost, -cost


def bid_options(options: StepOptions) -> BidOptions:
    """Return how a step's bids are made."""
    return BidOptions(
        max_bids=options.bids_in_all,
        max_bids_per_job=options.bids_per_job,
        use_switches=options.model == "aucsched3",
        order=options.bid_order,
    )


def _check_sum(weights: list[Weight], job: IntArray) -> None:
    """Raise InputError when the largest weights of all jobs together are above 2⁵³."""
    integers, unit = integer_weights(weights)
    total = largest_sum(integers, job) * unit
    if total > LARGEST_SUM:
        raise InputError(f"the window's weights sum to {float(total):.17g}, above 2^53", path="jobs")


def _solved(
    stated: Stated, start: FloatArray, options: StepOptions
) -> tuple[FloatArray, SolverStatus, bool, Fraction | int | None]:
    """Return the values of the best solution, how the solve ended, whether proved, and the bound."""
    settings = SolveSettings(
        time_limit_s=options.time_limit_s if options.work_limit is None else NO_LIMIT_S,
        seed=options.seed,
        clock=options.clock,
        most_nodes=options.work_limit,
    )
    if options.weights == "paper":
        solution, upper = solve_weighted(stated.program, stated.printed, start, settings)
        return solution.values, solution.status, solution.proved, _paper_bound(stated, upper)
    integers, unit = integer_weights(stated.weights)
    solution = solve_lexicographic(stated.program, stated.group, integers, stated.preference, start, settings)
    bound = None if solution.bound is None else solution.bound * unit
    return solution.values, solution.status, solution.proved, bound


def _quick_award(bids: Bids, cluster: Cluster, weights: list[Weight], stated: Stated) -> IntArray:
    """Return the better of first-fit by priority and greedy by priority over the bids."""
    table, columns, guards = bids.table, cluster.columns, cluster.guards
    first = np.searchsorted(table.job, np.flatnonzero(bids.first_fit))
    preference = (
        stated.preference[: len(table)] if len(stated.preference) >= len(table) else np.zeros(len(table))
    )
    best = max(
        (greedy(table, columns, first.tolist(), guards), greedy(table, columns, (), guards)),
        key=lambda chosen: (sum(weights[bid] for bid in chosen), float(preference[chosen].sum())),
    )
    return np.array(best, np.int64)


def _paper_bound(stated: Stated, upper: float | None) -> Fraction | int | None:
    """Return a bound on the sum of priorities from one on the printed objective.

    A column's printed weight may lie below its priority by β·K or P·c: so much is added back.
    """
    if upper is None:
        return None
    exact = np.array([float(weight) for weight in stated.weights])
    below = np.maximum(exact - stated.printed, 0.0)
    most = np.zeros(int(stated.group.max(initial=-1)) + 1)
    np.maximum.at(most, stated.group, below)
    rounded = [int(-(-weight // 1)) for weight in stated.weights]
    return min(Fraction(largest_sum(rounded, stated.group)), Fraction(upper + float(most.sum())))
