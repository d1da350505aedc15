"""One scheduling step: a snapshot goes in, a schedule comes out (Soner, figures 3.2 and 4.1).

A job that makes a step fail is set aside, so that the others are scheduled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, nextafter
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ..bidgen.first_fit import Cluster
from ..cluster.errors import AwardError, InputError, OptionError, SolverError
from ..cluster.keywords import as_keywords, checked, with_keywords
from ..cluster.option_fields import Option, options_in
from ..cluster.option_table import StepKeywords
from ..cluster.promises import AUTO, BACKFILL, NONE, PLAN
from ..cluster.resources.allocation import resources_of
from ..cluster.resources.demand import Demand
from ..cluster.schedule import (
    Attempt,
    Award,
    BidClass,
    BidSummary,
    Objective,
    Reason,
    Refusal,
    Schedule,
    Seconds,
    Sizes,
    Status,
    summed,
)
from ..cluster.snapshot import Snapshot
from ..formats.native.cluster_file import snapshot_of
from ..models.model import Answer
from ..models.search.compiled_search import load_within
from ..models.search.operators import FEW_BIDS
from ..models.solve.lexicographic import NO_LIMIT_S
from ..models.solve.solver import SolverStatus
from .attempt import counted_award
from .check import AwardChecker, check_awards, check_schedule
from .decide import decide, with_bids
from .impossible import ImpossibleRequests
from .options import StepOptions, options_with_preset
from .placement_bound import LARGEST_SUM, bound_over_placements
from .queue import Queue, queue_of, set_aside
from .reasons import refusals
from .state import SnapshotState, StepState, state_of
from .step_pass import StepPass
from .strategies import AttemptResult

#: Seconds that a bound over all placements may take at least: it takes some hundredths of one.
_BOUND_S = 1.0
_CLASSES = (BidClass.A, BidClass.B, BidClass.C)


_Keywords = ParamSpec("_Keywords")
_Found = TypeVar("_Found")


def takes(
    keywords: Callable[_Keywords, object], *, names_errors: bool = True
) -> Callable[[Callable[..., _Found]], Callable[Concatenate[Snapshot | str | Path, _Keywords], _Found]]:
    """Return a decorator: a call over a snapshot takes a record's options as keywords."""
    return with_keywords(keywords, names_errors=names_errors)


@dataclass(kw_only=True)
class ScheduleKeywords(StepKeywords):
    """What ``schedule`` takes as keywords."""

    window_from: Option[Schedule | None] = Option(
        "The schedule of the pass before: as many jobs take part as it says (``next_window``)."
    )


@takes(ScheduleKeywords, names_errors=False)
def schedule(snapshot: Snapshot | str | Path, **options: Any) -> Schedule:
    """Run one auction over a snapshot.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        options: those of docs/options.md, with underscores; None is the default.

    Returns:
        Which jobs start where, which wait and why; every job is in exactly one of the two lists.

    Raises:
        OptionError: there is no such option, or its value cannot be used.
        InputError: the file cannot be read, or the weights are too large to be summed exactly.
        SolverError: HiGHS failed.

    Examples:
        >>> import aucsched
        >>> jobs = [
        ...     aucsched.Job(id=name, priority=priority, request=aucsched.Request(cores=cores))
        ...     for name, priority, cores in (("wide", 3, 5), ("b", 2, 4), ("c", 2, 4))
        ... ]
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)], jobs=jobs)
        >>> found = schedule(snapshot, reserve=0)
        >>> sorted(award.job for award in found.started), int(found.objective.priority)
        (['b', 'c'], 4)
    """
    try:
        explicit = checked(options, ScheduleKeywords, "schedule")
        last = explicit.pop("window_from", None)
        chosen = options_with_preset(explicit)
        window = None if last is None else last.next_window
        return take_step(snapshot_of(snapshot), chosen, window).schedule
    except OptionError as error:
        raise OptionError(as_keywords(str(error), options_in(ScheduleKeywords))) from error


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """A step's answer and what it was made from.

    Attributes:
        queue: all pending jobs, in order.
        decision: who starts, the attempts, the reservations.
        schedule: the same as a file holds it.
        state: the cluster.
    """

    queue: Queue
    decision: StepPass
    schedule: Schedule
    state: SnapshotState

    def with_bids(self) -> Self:
        """Return the step with its award among all jobs' bids, which counts may have spared."""
        return replace(self, decision=with_bids(self.decision))

    @property
    def cluster(self) -> Cluster:
        """The cluster with the reservations for blocked jobs, which the award does not delay."""
        return self.decision.cluster

    @property
    def best(self) -> AttemptResult | None:
        """The attempt whose award stands; None when no job could bid."""
        return self.decision.best


def run_step(snapshot: Snapshot, options: StepOptions, window: int | None = None) -> Schedule:
    """Run one auction over the first ``window`` jobs, by default and at most ``options.window``."""
    return take_step(snapshot, options, window).schedule


def _start_time(options: StepOptions, jobs: int) -> float:
    """Return when the step's time began; it includes loading if a clock ends the search."""
    began = options.clock() if options.began is None else options.began
    most_bids = min(options.bids_in_all, min(jobs, options.window) * options.bids_per_job)
    if options.is_anytime and options.most_work is None and most_bids >= FEW_BIDS:
        load_within(options.most_s)
    return began


def check_queue_promise(options: StepOptions) -> None:
    """Refuse a promise that a step cannot make, as it sees one moment of a queue.

    Raises:
        OptionError: names it.
    """
    if options.promise not in {None, PLAN, NONE, BACKFILL}:
        where = "" if options.promise == AUTO else " and slurm run"
        raise OptionError(
            f"promise: {options.promise!r} is for simulations{where}; for one queue give none, "
            "backfill or plan (plan keeps what its jobs were promised)"
        )


def take_step(
    snapshot: Snapshot,
    options: StepOptions,
    window: int | None = None,
    last: SnapshotState | None = None,
    *,
    lazy: bool = False,
) -> Step:
    """Run one auction and keep its bids, for those who ask why.

    A job that makes bids or checks fail is set aside with a reason; the others are decided again.

    Args:
        snapshot: the cluster and its queue.
        options: of the step.
        window: jobs that are looked at; None: as many as the options say.
        last: the state of an earlier snapshot, of which what has not changed is not read anew.
        lazy: reasons, and a bound over all placements that proves nothing more, are found when they
            are first read.
    """
    check_queue_promise(options)
    began = _start_time(options, len(snapshot.jobs))
    options = replace(options, began=began)
    size = options.window if window is None else min(window, options.window)
    looked_at = replace(options, window=size)
    state = state_of(snapshot, last)
    state = replace(state, impossible=ImpossibleRequests(state).why)
    aside: dict[str, Refusal] = {}
    while True:
        queue = queue_of(snapshot, state.reader, looked_at, aside)
        try:
            decision = decide(state, queue.waiting, options, window=size)
            if decision.placed:
                # Counts proved this award without an auction: make bids of it for the schedule.
                cluster, placed = decision.cluster, decision.placed
                decision.best = counted_award(placed, cluster, options, len(decision.window))
            result = _schedule(state, queue, decision, options, began, lazy)
            (check_awards if lazy else check_schedule)(snapshot, result)
        except ENDS_THE_STEP:
            raise
        except Exception as error:
            refusal = failing_job(state, queue.waiting, options, error, AwardChecker(snapshot))
            if refusal is None:
                raise
            aside[refusal.job] = refusal
        else:
            return Step(queue=queue, decision=decision, schedule=result, state=state)


def _schedule(
    state: SnapshotState,
    queue: Queue,
    decision: StepPass,
    options: StepOptions,
    began: float,
    lazy: bool,
) -> Schedule:
    best, started = decision.best, []
    if best is not None and not decision.discarded:
        started = [_award(best.answer, bid, decision.cluster) for bid in best.answer.chosen.tolist()]
    now = options.clock()
    left_s = NO_LIMIT_S if options.most_s is None else began + options.most_s - now

    def sizes_and_refusals() -> tuple[Sizes, tuple[Refusal, ...]]:
        """Say how many bids there are, and why the others wait, within the time left when asked."""
        end = left_s + (options.clock() if lazy else now)
        among_bids = with_bids(decision, None if options.most_s is None else end - options.clock())
        sizes = Sizes() if among_bids.best is None else among_bids.best.sizes
        return sizes, tuple(refusals(state, queue, among_bids, lambda: options.clock() >= end))

    sizes, refused = (Sizes() if best is None else best.sizes, None) if lazy else sizes_and_refusals()
    return Schedule(
        model=options.model,
        status=_status(decision, queue),
        objective=_objective(decision, options, left_s, lazy),
        started=tuple(started),
        pending=(lambda: sizes_and_refusals()[1]) if refused is None else refused,
        window=len(decision.window) if best is None else best.size,
        next_window=decision.next_window,
        attempts=tuple(
            Attempt(
                size=one.size,
                status=one.status.value,
                priority=one.answer.priority,
                seconds=one.seconds.total,
            )
            for one in decision.attempts
        ),
        sizes=sizes,
        seconds=replace(
            summed(Seconds, (one.seconds for one in decision.attempts)), total=options.clock() - began
        ),
        search_parameters=options.steering.changed,
    )


def _award(answer: Answer, bid: int, cluster: Cluster) -> Award:
    table = answer.table
    demand = table.demand_of(bid)
    summary = BidSummary(
        bid_class=_CLASSES[int(table.bid_class[bid])],
        level=None if cluster.topology.is_linear else int(table.level[bid]),
        preference=None if answer.preference is None else float(answer.preference[bid]),
    )
    nodes = resources_of(demand, table.allocation(bid), cluster.columns.names)
    return Award(job=demand.job.id, nodes=nodes, bid=summary)


def _status(decision: StepPass, queue: Queue) -> Status:
    """Return optimal only where that is said of the whole window, without a job set aside."""
    best = decision.best
    if best is None or (best.status is SolverStatus.OPTIMAL and best.size == len(decision.window)):
        is_whole = all(one.reason is not Reason.SET_ASIDE for one in queue.unable.values())
        return Status.OPTIMAL if is_whole else Status.FEASIBLE
    return Status.NO_SOLUTION if decision.discarded else Status.FEASIBLE


def _objective(decision: StepPass, options: StepOptions, left_s: float, lazy: bool) -> Objective:
    """Return what the award is worth, and, where there is time, a bound over all placements.

    If ``lazy`` and the bound over bids proves the award, a read finds it.
    """
    best = decision.best
    is_deferred = lazy and (best is None or best.bound == best.answer.priority)
    known = None if is_deferred else _placement_bound(decision, options, left_s)

    def read() -> float | None:
        """Return the bound over all placements."""
        found = _placement_bound(decision, options, left_s) if is_deferred else known
        return None if found is None else _not_below(found)

    objective = partial(Objective, bound_over_placements=read if is_deferred else read())
    if best is None:
        return objective(priority=0, preference=0.0, bound=0.0, gap=0.0)
    # Bids that were made in rounds are beyond the bound over the first ones.
    bounds = [one for one in (known, best.bound) if one is not None]
    bound = _not_below(min(bounds)) if bounds else None
    if decision.discarded:
        return objective(priority=0, preference=0.0, bound=bound, gap=None)
    return objective(
        priority=best.answer.priority,
        preference=None if best.answer.preference is None else best.answer.preferred,
        bound=bound,
        gap=_gap(best.answer.priority, min(bounds) if bounds else None),
    )


def _placement_bound(decision: StepPass, options: StepOptions, left_s: float) -> Fraction | int | None:
    """Return a bound over all placements of the window and of those behind it that start."""
    if not options.valuation.is_bounded or decision.cluster.placer is not None:
        return None
    best = decision.best
    started = () if best is None else (start.demand for start in decision.starts)
    jobs = {demand.job.id: demand for demand in (*decision.window, *started)}
    found = bound_over_placements(tuple(jobs.values()), decision.cluster.columns, max(left_s, _BOUND_S))
    if found is None:
        return None
    return found if best is None else max(found, best.answer.priority)


def _not_below(bound: Fraction | int) -> float:
    """Return a bound as a float: the nearest one, beyond 2⁵³ none that is less."""
    nearest = float(bound)
    return nextafter(nearest, inf) if nearest < bound and bound > LARGEST_SUM else nearest


def _gap(value: Fraction | int, bound: Fraction | int | None) -> float | None:
    """Return (bound − value) / value, None when no bound is known or the value is 0 below one."""
    if bound is None or (value == 0 and bound > 0):
        return None
    return 0.0 if bound <= value else float((bound - value) / value)


#: Errors that no single job causes.
ENDS_THE_STEP = (InputError, OptionError, SolverError)


def failing_job(
    state: StepState,
    window: tuple[Demand, ...],
    options: StepOptions,
    error: Exception,
    checker: AwardChecker,
) -> Refusal | None:
    """Return the job that made a step fail, set aside; None when no job alone does.

    An award that breaks a rule names its job. Otherwise each job of the window bids alone: the
    first that fails, or whose bid the check refuses, it is.
    """
    if isinstance(error, AwardError) and error.job in {demand.job.id for demand in window}:
        return set_aside(str(error.job), error)
    # Beside nothing: no reservation, promise or balance, and no limit of time.
    alone = replace(
        options,
        strategy="greedy" if options.is_greedy else options.strategy,
        work_limit=None if options.is_greedy else 0,
        time_limit_s=None,
        promise="none",
        reserve=0,
        balance=False,
        export="",
    )
    for demand in window:
        try:
            for start in decide(state, (demand,), alone, window=1).starts:
                held = resources_of(start.demand, start.allocation, state.columns.names)
                checker.check(start.demand.job, held)
        except ENDS_THE_STEP:
            raise
        except Exception as found:  # noqa: BLE001 - whatever it is, it is this job's
            return set_aside(demand.job.id, found)
    return None
