"""One attempt: the bids of a window, the best quick award, the integer program, the better of both."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..bidgen.columns import Columns, FloatArray, IntArray
from ..bidgen.demand import Demand
from ..bidgen.generate import BidOptions, Bids, generate_bids
from ..bidgen.guard import Guard
from ..bidgen.table import BidTable
from ..cluster.errors import InputError
from ..cluster.schedule import Sizes
from ..models.exact import integer_weights, largest_sum
from ..models.ipsched import check_size
from ..models.lexicographic import SolveSettings, solve_lexicographic, solve_weighted
from ..models.solver import SolverStatus
from ..topology.tree import Topology
from .export import export
from .options import StepOptions
from .state import greedy
from .stated import Stated, Weight, bid_weights, state

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
    stated = state(bids.table, cluster.columns, cluster.topology, options, guards)
    first = _quick_award(bids, cluster, weights, stated)
    built = clock()
    if options.export:
        export(stated, options.export, weighted=options.weights == "paper")
    values, status, proved, bound = _solved(stated, stated.start(first), options)
    answer = stated.answer(values)
    chosen = answer.chosen
    if not proved and options.weights == "lexicographic" and options.model != "ipsched":
        chosen = np.array(greedy(answer.table, cluster.columns, chosen.tolist(), guards), np.int64)
    worth = bid_weights(answer.table, options.objective)
    priority = sum((worth[bid] for bid in chosen), start=Fraction(0))
    liked = (
        float(stated.preference @ values) if answer.preference is None else answer.preference[chosen].sum()
    )
    return AttemptResult(
        size=len(window),
        bids=bids,
        table=answer.table,
        chosen=chosen,
        status=status,
        proved=proved,
        priority=priority,
        bound=None if bound is None else max(bound, priority),
        preference=answer.preference,
        value=(priority, float(liked)),
        sizes=Sizes(
            nodesets=bids.table.general_nodesets,
            bids=len(bids.table),
            variables=stated.program.columns,
            constraints=stated.program.rows,
            nonzeros=stated.program.nonzeros,
        ),
        bid_seconds=made - began,
        build_seconds=built - made,
        solve_seconds=clock() - built,
    )


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
    settings = SolveSettings(time_limit_s=options.time_limit_s, seed=options.seed, clock=options.clock)
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
