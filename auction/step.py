"""One scheduling step: a snapshot goes in, a schedule comes out (Soner, figures 3.2 and 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.columns import columns_of
from ..bidgen.demand import Demand
from ..cluster.jobs import Job
from ..cluster.nodes import Resources
from ..cluster.schedule import (
    Attempt,
    Award,
    BidClass,
    BidSummary,
    Objective,
    Schedule,
    Seconds,
    Sizes,
    Status,
)
from ..cluster.snapshot import Snapshot
from ..models.solve.solver import SolverStatus
from ..topology.tree import topology_of
from .attempt import AttemptResult, Cluster, attempt
from .check import check_schedule
from .ledger import FreeState
from .options import StepOptions, options_with_preset
from .parts import attempt_in_parts
from .queue import Queue, queue_of
from .reasons import refusals
from .reserve import reservations_for

_CLASSES = (BidClass.A, BidClass.B, BidClass.C)


def schedule(  # noqa: PLR0913 - the public contract: every option by name
    snapshot: Snapshot,
    *,
    preset: str | None = None,
    model: str | None = None,
    window: int | None = None,
    max_bids: int | None = None,
    max_bids_per_job: int | None = None,
    time_limit_s: float | None = None,
    weights: str | None = None,
    objective: str | None = None,
    strategy: str | None = None,
    work_limit: int | None = None,
    part_nodes: int | None = None,
    on_timeout: str | None = None,
    reserve: int | None = None,
    seed: int | None = None,
    preference_table: str | None = None,
    bid_order: str | None = None,
    export: str | None = None,
    clock: Callable[[], float] | None = None,
) -> Schedule:
    """Run one auction over a snapshot.

    Args:
        snapshot: the cluster and its queue.
        preset: ``paper`` or ``plugin``; options given beside it stand.
        model: ``ipsched``, ``aucsched1``, ``aucsched2`` or ``aucsched3`` (default).
        window: jobs of highest priority that take part (100).
        max_bids: bids of all jobs together (6000; AUCSCHED1: 150).
        max_bids_per_job: bids of one job (60; AUCSCHED1: 15).
        time_limit_s: seconds of wall time of each attempt's solve (3).
        weights: ``lexicographic`` (default) or ``paper``.
        objective: ``priority`` (default) or ``priority_cores``.
        strategy: ``anytime`` (default for AUCSCHED2 and 3 under lexicographic weights) or ``exact`` (else).
        work_limit: instead of the time limit, so that the answer does not depend on the machine's speed:
            steps of the search, or for ``exact`` branch-and-bound nodes of each solve.
        part_nodes: clusters of more nodes are searched in parts of at most so many (20 000).
        on_timeout: ``halve`` (default), ``incumbent`` or ``discard``.
        reserve: how many of the first blocked jobs get a reservation (0).
        seed: the solver's (0).
        preference_table: ``corrected`` (default) or ``printed``.
        bid_order: ``spec`` (default) or ``figure-4.5``.
        export: file for the window's integer program, ``.mps`` or ``.lp``.
        clock: seconds of wall time (time.perf_counter).

    Returns:
        Who starts where, who waits and why; every job stands in exactly one of the two lists.

    Raises:
        OptionError: an option's value cannot be used.
        InputError: the weights are too large to be summed exactly.
        SolverError: HiGHS failed.
    """
    given = {name: value for name, value in locals().items() if name not in {"snapshot", "preset"}}
    explicit = {name: value for name, value in given.items() if value is not None}
    return run_step(snapshot, options_with_preset(preset, explicit))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """A step's answer and what it was made from.

    Attributes:
        cluster: with the reservations for blocked jobs, which the award does not delay.
        best: the attempt whose award stands; None when no job takes part.
    """

    queue: Queue
    cluster: Cluster
    best: AttemptResult | None
    schedule: Schedule


def run_step(snapshot: Snapshot, options: StepOptions) -> Schedule:
    """Run one auction; a timeout is treated as ``options.on_timeout`` says (SPEC 1.9)."""
    return take_step(snapshot, options).schedule


def take_step(snapshot: Snapshot, options: StepOptions) -> Step:
    """Run one auction and keep its bids, for those who ask why."""
    began = options.clock()
    cluster = Cluster(columns=columns_of(snapshot), topology=topology_of(snapshot))
    queue = queue_of(snapshot, cluster.columns, options)
    attempts = _attempts(queue, cluster, options)
    best = _best(attempts)
    if options.reserve and best is not None:
        cluster, again = _with_reservations(snapshot, queue, cluster, best, options)
        attempts += again
        best = _best(again) or best
    discarded = options.on_timeout == "discard" and best is not None and not best.proved
    awards = () if best is None or discarded else _awards(best, cluster)
    waiting = refusals(snapshot, queue, cluster, best, discarded=discarded)
    result = Schedule(
        model=options.model,
        status=_status(best, discarded=discarded),
        objective=_objective(best, discarded=discarded),
        started=awards,
        pending=tuple(waiting),
        window=0 if best is None else best.size,
        attempts=tuple(_reported(one) for one in attempts),
        sizes=Sizes() if best is None else best.sizes,
        seconds=_seconds(attempts, options.clock() - began),
    )
    check_schedule(snapshot, result)
    return Step(queue=queue, cluster=cluster, best=best, schedule=result)


def _attempts(queue: Queue, cluster: Cluster, options: StepOptions) -> list[AttemptResult]:
    """Solve the window; under ``halve`` again with half of it, until a solve is proved or one job is left."""
    attempts: list[AttemptResult] = []
    window: tuple[Demand, ...] = queue.window
    while window:
        # The file is the whole window's: halved attempts leave it alone.
        asked = replace(options, export="") if attempts else options
        in_parts = options.is_anytime and len(cluster.columns.names) > options.nodes_of_a_part
        attempts.append((attempt_in_parts if in_parts else attempt)(window, cluster, asked))
        halves = options.on_timeout == "halve" and not options.is_anytime
        if attempts[-1].proved or not halves or len(window) == 1:
            break
        window = window[: len(window) // 2]
    return attempts


def _with_reservations(
    snapshot: Snapshot, queue: Queue, cluster: Cluster, best: AttemptResult, options: StepOptions
) -> tuple[Cluster, list[AttemptResult]]:
    """Return the cluster with reservations for the first blocked jobs, and the attempts made beside them.

    None are made again when the award at hand delays no reservation.
    """
    awards = {award.job: award for award in _awards(best, cluster)}
    before: list[Award] = []
    blocked: list[tuple[Job, list[Award]]] = []
    for demand in queue.window:
        if demand.job.id in awards:
            before.append(awards[demand.job.id])
        else:
            blocked.append((demand.job, list(before)))
    reserved = reservations_for(snapshot, blocked, options.reserve)
    cluster = replace(cluster, guards=tuple(one.guard for one in reserved))
    state = FreeState(best.table, cluster.columns, cluster.guards)
    delays = any(guard.is_now for guard in cluster.guards)
    for bid in best.chosen.tolist():
        delays = delays or state.delayed(bid) is not None
        state.take(bid)
    return cluster, _attempts(queue, cluster, options) if delays else []


def _best(attempts: list[AttemptResult]) -> AttemptResult | None:
    """Return the attempt with the best award: by priority, by preference, the proved before the others."""
    return max(attempts, key=lambda one: (one.value[0], one.value[1], one.proved), default=None)


def _awards(best: AttemptResult, cluster: Cluster) -> tuple[Award, ...]:
    return tuple(_award(best, int(bid), cluster) for bid in best.chosen)


def _award(best: AttemptResult, bid: int, cluster: Cluster) -> Award:
    table = best.table
    entries = table.entries(bid)
    demand = table.demands[int(table.job[bid])]
    counts_memory = demand.counts_memory and table.memory is not None
    memory = table.memory[entries].tolist() if counts_memory and table.memory is not None else None
    names = [cluster.columns.names[node] for node in table.node[entries].tolist()]
    nodes = {
        name: Resources(
            cores=int(table.cores[entries][place]),
            memory_mib=None if memory is None else memory[place],
            gres={
                kind: int(counts[entries][place])
                for kind, counts in table.gres.items()
                if counts[entries][place]
            },
        )
        for place, name in enumerate(names)
    }
    summary = BidSummary(
        bid_class=_CLASSES[int(table.bid_class[bid])],
        level=None if cluster.topology.is_linear else int(table.level[bid]),
        preference=None if best.preference is None else float(best.preference[bid]),
    )
    return Award(job=demand.job.id, nodes=nodes, bid=summary)


def _status(best: AttemptResult | None, *, discarded: bool) -> Status:
    if best is None or best.status is SolverStatus.OPTIMAL:
        return Status.OPTIMAL
    return Status.NO_SOLUTION if discarded else Status.FEASIBLE


def _objective(best: AttemptResult | None, *, discarded: bool) -> Objective:
    if best is None:
        return Objective(priority=0, preference=0.0, bound=0.0, gap=0.0)
    if discarded:
        bound = None if best.bound is None else float(best.bound)
        return Objective(priority=0, preference=0.0, bound=bound, gap=None)
    preference = None if best.preference is None else float(np.sum(best.preference[best.chosen]))
    return Objective(
        priority=best.priority,
        preference=preference,
        bound=None if best.bound is None else float(best.bound),
        gap=_gap(best.priority, best.bound),
    )


def _gap(value: Fraction | int, bound: Fraction | int | None) -> float | None:
    """Return (bound − value) / value, None when no bound is known or the value is 0 below one."""
    if bound is None or (value == 0 and bound > 0):
        return None
    return 0.0 if bound <= value else float((bound - value) / value)


def _reported(one: AttemptResult) -> Attempt:
    return Attempt(
        size=one.size,
        status=one.status.value,
        priority=one.priority,
        seconds=one.bid_seconds + one.build_seconds + one.solve_seconds,
    )


def _seconds(attempts: list[AttemptResult], total: float) -> Seconds:
    return Seconds(
        bids=sum(one.bid_seconds for one in attempts),
        build=sum(one.build_seconds for one in attempts),
        solve=sum(one.solve_seconds for one in attempts),
        total=total,
    )
