"""One attempt: the bids of a window, the best quick award, the integer program, the better of both."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..bidgen.columns import Columns, FloatArray, IntArray
from ..bidgen.demand import Demand
from ..bidgen.generate import BidOptions, Bids, generate_bids
from ..bidgen.table import BidTable
from ..cluster.errors import InputError
from ..cluster.schedule import Sizes
from ..models.aucsched2 import Aucsched2
from ..models.aucsched3 import Aucsched3
from ..models.exact import integer_weights, largest_sum
from ..models.lexicographic import SolveSettings, WindowSolution, solve_lexicographic, solve_weighted
from ..models.preference import PREFERENCE_TABLES
from ..models.solver import SolverStatus
from ..topology.tree import Topology
from .options import MODELS, StepOptions
from .state import greedy

#: Above this a sum of weights is refused: floats, in which others read it, no longer hold every integer.
LARGEST_SUM = 2**53


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cluster:
    """What every attempt of a step shares."""

    columns: Columns
    topology: Topology


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttemptResult:
    """What one attempt found.

    Attributes:
        bids: the bids that were auctioned.
        chosen: the winners, ascending.
        status: of the solver; ``proved`` when the sum of priorities is proved the best over the bids.
        priority: the exact sum of the winners' weights; ``bound`` the most any award could reach.
        preference: of each bid, as schedules show it.
        value: priority, then preference: what awards are compared by.
    """

    size: int
    bids: Bids
    chosen: IntArray
    status: SolverStatus
    proved: bool
    priority: Fraction | int
    bound: Fraction | int | None
    preference: FloatArray
    value: tuple[Fraction | int, float]
    sizes: Sizes
    bid_seconds: float
    build_seconds: float
    solve_seconds: float

    @property
    def table(self) -> BidTable:
        """The bids' table."""
        return self.bids.table


def attempt(window: tuple[Demand, ...], cluster: Cluster, options: StepOptions) -> AttemptResult:
    """Auction a window's bids and return the best award found within the time limit."""
    clock = options.clock
    began = clock()
    bids = generate_bids(window, cluster.columns, cluster.topology, _bid_options(options))
    table = bids.table
    weights = weights_of(table, options.objective)
    integers, unit = integer_weights(weights)
    made = clock()
    model = _model(table, cluster, options, np.array(integers, np.float64))
    preference, shown = model.preference(), model.shown_preference()
    printed = model.paper_weights(_priorities(window)) * _multipliers(table, options.objective)
    program = model.program()
    # PuLP's expressions take several times the memory of the arrays read from them.
    del model
    start = _quick_award(bids, cluster.columns, integers, preference)
    built = clock()
    settings = SolveSettings(time_limit_s=options.time_limit_s, seed=options.seed, clock=clock)
    if options.weights == "paper":
        solution, upper = solve_weighted(program, printed, start, settings)
        bound = _paper_bound(solution, upper, table, printed, weights)
    else:
        solution = solve_lexicographic(program, table.job, integers, preference, start, settings)
        bound = None if solution.bound is None else solution.bound * unit
    chosen = solution.chosen
    if options.weights == "lexicographic" and not solution.proved:
        chosen = np.array(greedy(table, cluster.columns, chosen.tolist()), np.int64)
    priority = sum((weights[bid] for bid in chosen), start=Fraction(0))
    return AttemptResult(
        size=len(window),
        bids=bids,
        chosen=chosen,
        status=solution.status,
        proved=solution.proved,
        priority=priority,
        bound=bound,
        preference=shown,
        value=(priority, float(preference[chosen].sum())),
        sizes=Sizes(
            nodesets=table.general_nodesets,
            bids=len(table),
            variables=program.columns,
            constraints=program.rows,
            nonzeros=program.nonzeros,
        ),
        bid_seconds=made - began,
        build_seconds=built - made,
        solve_seconds=clock() - built,
    )


def _bid_options(options: StepOptions) -> BidOptions:
    return BidOptions(
        max_bids=options.max_bids,
        max_bids_per_job=options.max_bids_per_job,
        use_switches=options.model == "aucsched3",
    )


def _model(
    table: BidTable, cluster: Cluster, options: StepOptions, weights: FloatArray
) -> Aucsched2 | Aucsched3:
    return MODELS[options.model](
        table,
        cluster.columns,
        weights,
        constants=PREFERENCE_TABLES[options.preference_table],
        max_level=cluster.topology.max_level,
    )


def weights_of(table: BidTable, objective: str) -> list[int | Fraction]:
    """Return P_j, or P_j·R_j^cpu, of each bid, exactly as given.

    Raises:
        InputError: the largest weights of all jobs together are above 2⁵³.
    """
    priorities = [demand.job.priority for demand in table.demands]
    cores = _multipliers(table, objective).tolist()
    weights = [priorities[job] * int(count) for job, count in zip(table.job.tolist(), cores, strict=True)]
    integers, unit = integer_weights(weights)
    total = largest_sum(integers, table.job) * unit
    if total > LARGEST_SUM:
        raise InputError(f"the window's weights sum to {float(total):.17g}, above 2^53", path="jobs")
    return weights


def _multipliers(table: BidTable, objective: str) -> IntArray:
    """Return what each bid's priority is multiplied by: 1, or its job's cores R_j^cpu."""
    if objective == "priority":
        return np.ones(len(table), np.int64)
    asked = np.array([demand.job.request.cores or 0 for demand in table.demands], np.int64)[table.job]
    per_node = np.array([demand.job.request.cores_per_node or 0 for demand in table.demands], np.int64)[
        table.job
    ]
    return np.where(asked > 0, asked, per_node * table.lengths)


def _priorities(window: tuple[Demand, ...]) -> FloatArray:
    return np.array([float(demand.job.priority) for demand in window])


def _quick_award(bids: Bids, columns: Columns, weights: list[int], preference: FloatArray) -> IntArray:
    """Return the better of first-fit by priority and greedy by priority over the bids."""
    table = bids.table
    first = np.searchsorted(table.job, np.flatnonzero(bids.first_fit))
    by_first_fit = greedy(table, columns, first.tolist())
    by_bids = greedy(table, columns)
    best = max(
        (by_first_fit, by_bids),
        key=lambda chosen: (sum(weights[bid] for bid in chosen), float(preference[chosen].sum())),
    )
    return np.array(best, np.int64)


def _paper_bound(
    solution: WindowSolution,
    upper: float | None,
    table: BidTable,
    values: FloatArray,
    weights: list[int | Fraction],
) -> Fraction | int | None:
    """Return a bound on the sum of priorities from one on the printed objective.

    A bid's value may lie below its priority by β·K: so much is added back for each job.
    """
    if upper is None:
        return None
    below = [max(0.0, float(weight) - value) for weight, value in zip(weights, values.tolist(), strict=True)]
    most = np.zeros(len(table.demands))
    np.maximum.at(most, table.job, np.array(below))
    reached = sum((weights[bid] for bid in solution.chosen), start=Fraction(0))
    everything = Fraction(largest_sum(*_scaled(weights, table)))
    return max(reached, min(everything, Fraction(upper + float(most.sum()))))


def _scaled(weights: list[int | Fraction], table: BidTable) -> tuple[list[int], IntArray]:
    return [int(-(-weight // 1)) for weight in weights], table.job
