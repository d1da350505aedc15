"""How an award is found over a window's bids: HiGHS at once, search then HiGHS, or greedy awards.

The window's integer program may be kept as a file that other solvers read.
"""

import csv
import io
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.first_fit import Cluster
from ..bidgen.generate import Bids
from ..bidgen.table import BidTable
from ..cluster.resources.capacity import FloatArray, IntArray
from ..cluster.schedule import Seconds, Sizes
from ..formats.writing import check_target, write_text
from ..models.model import Answer, Model, ModelInput, Weight
from ..models.search.packing import Packing, Worth, packing_of
from ..models.search.proving import proved_award
from ..models.search.search_parameters import SearchLimits
from ..models.solve.lexicographic import (
    integer_weights,
    largest_sum,
    solve_lexicographic,
    solve_weighted,
)
from ..models.solve.solver import SolverStatus, export_program
from ..models.winners.determine import determine
from .ledger import ResidualCapacity, greedy
from .options import StepOptions

#: Seconds that a nonzero takes PuLP and the reader of its problem.
_BUILT_S = 4e-6
#: Share of the time limit in which the program may be built where work counts.
_FOR_BUILDING = 0.5
#: A table of bids, and the winners in it, ascending.
Alternative = tuple[BidTable, IntArray]
#: Among bids equally preferred the one with the narrower span is taken, as a share of all nodes:
#: worth less than one node more or less is worth in (6.5) below 10 000 nodes.
_NARROW = 1e-4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttemptResult:
    """What one attempt found; a strategy leaves ``size`` and ``seconds`` to the attempt.

    Attributes:
        size: jobs of the window that were looked at.
        bids: those that the award was chosen from: the instance's, or more.
        answer: the winners, in the same table with what they hold.
        status: of the solver; ``proved``: no sum of priorities over the bids is larger.
        bound: the most by priority that an award could reach; None where jobs count otherwise.
        sizes: of the program.
        built: when building it ended, by the options' clock (seconds).
        seconds: that the attempt took.
        alternatives: other awards, each a table and its winners, ascending: what one of them leaves
            may hold more. Those found with less work, so that more work is never worse, and
            first-fit's if a strategy found another, so that none is worth less than the first bids.
        alone: the award of the jobs that counts chose, which bid alone before: it and what it
            leaves are looked at too. Over the same bids the auction's bound is one on it as well.
    """

    size: int = 0
    bids: Bids
    answer: Answer
    status: SolverStatus = SolverStatus.FEASIBLE_AT_LIMIT
    proved: bool = False
    bound: Weight | None = None
    sizes: Sizes = Sizes()
    built: float = 0.0
    seconds: Seconds = Seconds()
    alternatives: tuple[Alternative, ...] = ()
    alone: "AttemptResult | None" = None

    @property
    def ended(self) -> bool:
        """Whether no limit ended it: a proof did, or HiGHS within its tolerance."""
        return self.proved or self.status is SolverStatus.WITHIN_TOLERANCE


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuctionInstance:
    """What one auction of a step is decided over.

    Attributes:
        bids, weights: the bids, and what each counts.
        first: the award to begin with.
        cluster, options: what the bids are on, and the options of the step.
        deadline: when to be done, by the options' clock (seconds); None: only work counts.
    """

    bids: Bids
    weights: list[Weight]
    first: IntArray
    cluster: Cluster
    options: StepOptions
    deadline: float | None

    @property
    def table(self) -> BidTable:
        """The bids as columns."""
        return self.bids.table


def solve_exactly(instance: AuctionInstance) -> AttemptResult:
    """Give HiGHS all bids at once, as the papers' model in PuLP.

    Where there is no time to build it, first-fit's award stands. Where work is counted HiGHS
    gets what branch and bound does not soon prove.
    """
    bids, cluster, options = instance.bids, instance.cluster, instance.options
    if (result := _proved(instance)) is not None:
        return result
    if not (options.export or _may_build(instance)):
        answer = answer_of(bids.table, instance.first, cluster, options)
        return AttemptResult(bids=bids, answer=answer, sizes=_sizes(bids, 0, 0, 0), built=options.clock())
    model = build_model(bids.table, cluster, options)
    program = model.program
    start = model.start(_quick_award(instance, preferences(bids.table, cluster, options)[0]))
    built = options.clock()
    if options.export:
        export(model, options.export, weighted=options.weights == "paper")
    values, status, proved, bound = _solved(model, start, options, instance.deadline)
    answer = model.answer(values)
    # Placements without bids are nothing that was asked for.
    asked = bids.table if options.auction.has_bids else answer.table
    sound = _sound(answer, asked, cluster)
    if len(sound) < len(answer.chosen):
        answer = replace(answer, table=asked.with_cores(sound, answer.table.cores), chosen=sound)
        proved, status = False, SolverStatus.FEASIBLE_AT_LIMIT
    if not proved and options.weights == "lexicographic" and options.auction.has_bids:
        answer = replace(answer, chosen=greedy(answer.table, cluster, answer.chosen.tolist()))
    return AttemptResult(
        bids=bids,
        answer=answer,
        status=status,
        proved=proved,
        bound=bound,
        sizes=_sizes(bids, program.columns, program.rows, program.nonzeros),
        built=built,
    )


def _proved(instance: AuctionInstance) -> AttemptResult | None:
    """Return the best award, proved, where branch and bound finds it soon; else None."""
    bids, cluster, options = instance.bids, instance.cluster, instance.options
    if options.most_work is None or options.export or options.weights == "paper":
        return None
    relaxed = options.auction.relaxed(model_input(bids.table, cluster, options))
    if relaxed is None:
        return None
    preference, shown = preferences(bids.table, cluster, options)
    worth = Worth.scaled(integer_weights(instance.weights)[0], preference)
    built = options.clock()
    quick, limits = _quick_award(instance, preference), _limits(options, instance.deadline)
    found = proved_award(relaxed.packing, worth, quick, limits, relaxed.dealing)
    if found is None:
        return None
    (won, amounts), table = found, bids.table
    if amounts is not None:
        table = table.with_cores(won, relaxed.cores + amounts.astype(np.int64))
    return AttemptResult(
        bids=bids,
        answer=Answer(table=table, chosen=won, objective=options.objective, preference=shown),
        status=SolverStatus.OPTIMAL,
        proved=True,
        bound=sum(instance.weights[bid] for bid in won.tolist()),
        sizes=_packed_sizes(bids, relaxed.packing),
        built=built,
    )


def _sound(answer: Answer, asked: BidTable, cluster: Cluster) -> IntArray:
    """Return the winners that hold what they asked for and fit together, counted in integers.

    Beside counts of 10⁹ and more a solver's tolerance is some cores.
    """
    ledger = ResidualCapacity(answer.table, cluster)
    held = answer.table.cores_of_bids()
    wanted = asked.cores_of_bids()
    sound: list[int] = []
    for bid in answer.chosen.tolist():
        if held[bid] == wanted[bid] and ledger.fits(bid):
            ledger.take(bid)
            sound.append(bid)
    return np.array(sound, np.int64)


def _may_build(instance: AuctionInstance) -> bool:
    """Return whether PuLP has time to build the program: by its size, not the machine's speed.

    Where work counts no clock is asked.
    """
    options, deadline = instance.options, instance.deadline
    if deadline is None or options.most_s is None:
        return True
    left_s = deadline - options.clock() if options.most_work is None else _FOR_BUILDING * options.most_s
    given = model_input(instance.table, instance.cluster, options)
    return _BUILT_S * options.auction.nonzeros(given) <= left_s


def solve_greedily(instance: AuctionInstance) -> AttemptResult:
    """Take first-fit's award or a better greedy one; nothing is proved and no limit reached.

    The first bids of a balanced mix are the award: greedy orders by worth would undo their order.
    """
    table, cluster, options = instance.table, instance.cluster, instance.options
    preference, shown = preferences(table, cluster, options)
    packing = packing_of(table, cluster.columns, cluster.guards)
    built = options.clock()
    _export_bids(table, cluster, options)
    tied = _tied(preference, table, cluster)
    chosen = instance.first
    if cluster.placer is None:
        limits = _limits(options, None)
        chosen = determine(packing, instance.weights, tied, instance.first, limits, "greedy").award
    return AttemptResult(
        bids=instance.bids,
        answer=Answer(table=table, chosen=chosen, objective=options.objective, preference=shown),
        sizes=_packed_sizes(instance.bids, packing),
        built=built,
    )


def searched(instance: AuctionInstance, *, ends: bool = True) -> AttemptResult:
    """Search: an award at once, better ones with time; then the model over what may be better."""
    table, cluster, options = instance.table, instance.cluster, instance.options
    _export_bids(table, cluster, options)
    preference, shown = preferences(table, cluster, options)
    if cluster.placer is not None:
        # The search is as choosy as first bids, which take the nodes that are closest together.
        preference = _tied(preference, table, cluster)
    packing = packing_of(table, cluster.columns, cluster.guards)
    built = options.clock()
    found = determine(
        packing,
        instance.weights,
        preference,
        instance.first,
        replace(_limits(options, instance.deadline), ends=ends),
        build_program=lambda some: build_model(table.only(some), cluster, options).program,
    )
    return AttemptResult(
        bids=instance.bids,
        answer=Answer(table=table, chosen=found.award, objective=options.objective, preference=shown),
        status=found.status,
        proved=found.proved,
        bound=found.bound,
        sizes=_packed_sizes(instance.bids, packing),
        built=built,
        alternatives=tuple((table, award) for award in found.earlier),
    )


def _limits(options: StepOptions, deadline: float | None) -> SearchLimits:
    return SearchLimits(
        deadline=deadline,
        steps=options.most_work,
        seed=options.seed,
        clock=options.clock,
        parameters=options.steering,
    )


def _export_bids(table: BidTable, cluster: Cluster, options: StepOptions) -> None:
    """Write the model over all bids to the file that the options name, if any."""
    if options.export:
        export(build_model(table, cluster, options), options.export, weighted=False)


def _packed_sizes(bids: Bids, packing: Packing) -> Sizes:
    rows = len(packing.capacity) + len(packing.first)
    return _sizes(bids, len(packing), rows, len(packing.row) + len(packing))


def _tied(preference: FloatArray, table: BidTable, cluster: Cluster) -> FloatArray:
    """Return preferences that put, of equally preferred bids, the narrower span first."""
    if not len(table):
        return preference
    spans = (table.node[table.indptr[1:] - 1] - table.node[table.indptr[:-1]] + 1).astype(np.float64)
    tied: FloatArray = np.maximum(preference - _NARROW * spans / len(cluster.columns.names), 0.0)
    return tied


def _sizes(bids: Bids, columns: int, rows: int, nonzeros: int) -> Sizes:
    return Sizes(
        nodesets=bids.table.general_nodesets,
        bids=len(bids.table),
        variables=columns,
        constraints=rows,
        nonzeros=nonzeros,
    )


def keeps_whole(cluster: Cluster, options: StepOptions) -> bool:
    """Return whether equal awards are to leave whole what is wholly free: by default on blocks."""
    if options.keep_whole is None:
        return cluster.topology.units is not None and options.weights == "lexicographic"
    return options.keep_whole


def model_input(table: BidTable, cluster: Cluster, options: StepOptions) -> ModelInput:
    """Return what the options' model is built from over some bids."""
    return ModelInput(
        table=table,
        columns=cluster.columns,
        topology=cluster.topology,
        guards=cluster.guards,
        objective=options.objective,
        preference_table=options.preference_table,
        keeps_whole=keeps_whole(cluster, options),
    )


def build_model(table: BidTable, cluster: Cluster, options: StepOptions) -> Model:
    """Build a window's program in the model that the options name."""
    return options.auction(model_input(table, cluster, options))


def preferences(table: BidTable, cluster: Cluster, options: StepOptions) -> tuple[FloatArray, FloatArray]:
    """Return what each bid adds to the second stage, and its preference as schedules show it."""
    return options.auction.preferences(model_input(table, cluster, options))


def answer_of(table: BidTable, chosen: IntArray, cluster: Cluster, options: StepOptions) -> Answer:
    """Return an award as an answer, with each bid's preference as in schedules, if any."""
    shown = preferences(table, cluster, options)[1] if options.auction.has_bids else None
    return Answer(table=table, chosen=chosen, objective=options.objective, preference=shown)


def _solved(
    model: Model, start: FloatArray, options: StepOptions, deadline: float | None
) -> tuple[FloatArray, SolverStatus, bool, Fraction | int | None]:
    """Return the best solution's values, how the solve ended, whether proved, and the bound."""
    settings = _limits(options, deadline).settings(nodes=options.most_work)
    if options.weights == "paper":
        group, printed = model.group(), model.printed()
        solution, upper = solve_weighted(model.program, group, printed, start, settings)
        bound = None if upper is None else _paper_bound(model.weights, group, printed, upper)
        return solution.values, solution.status, solution.proved, bound
    integers, unit = integer_weights(model.weights)
    solution = solve_lexicographic(
        model.program, model.group(), integers, model.preference(), start, settings
    )
    reached = None if solution.bound is None else solution.bound * unit
    return solution.values, solution.status, solution.proved, reached


def _quick_award(instance: AuctionInstance, preference: FloatArray) -> IntArray:
    """Return the better of first-fit by priority and greedy by priority over the bids."""
    table, cluster = instance.table, instance.cluster
    return max(
        (instance.first, greedy(table, cluster)),
        key=lambda one: (sum(instance.weights[bid] for bid in one.tolist()), float(preference[one].sum())),
    )


def _paper_bound(weights: list[Weight], group: IntArray, printed: FloatArray, upper: float) -> Fraction | int:
    """Return a bound on the sum of priorities from one on the printed objective.

    A column's printed weight may lie below its priority by β·K or P·c: that is added back.
    """
    asked = np.array([float(weight) for weight in weights])
    below = np.maximum(asked - printed, 0.0)
    most = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(most, group, below)
    rounded = [int(-(-weight // 1)) for weight in weights]
    return min(Fraction(largest_sum(rounded, group)), Fraction(upper + float(most.sum())))


def export(model: Model, path: str, *, weighted: bool) -> None:
    """Write the program to ``path``, .mps or .lp, with the objective of the first stage.

    Under lexicographic weights that is the sum of priorities: an optimum of the file is the
    schedule's ``objective.priority``. The options refuse other endings. A table beside it, with
    .csv after its name, says which job and nodes a column is of.

    Raises:
        InputError: the file cannot be written.
    """
    check_target(f"{path}.csv")
    objective = model.printed() if weighted else np.array([float(weight) for weight in model.weights])
    what = "the printed objective" if weighted else "priorities"
    program = model.program.maximising(objective)
    about = f"{what} over the window's bids; the file of this name and .csv says what its columns are"
    export_program(program, model.names, path, about)
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerows([("column", "job", "cores", "nodes"), *model.described_columns()])
    write_text(f"{path}.csv", rows.getvalue())
