"""What a plain scheduler starts: first-fit by priority, and plain backfilling.

First-fit's placements as compatible bids are the lower bound on every award of the auction; its award alone
is what auctions are compared with. Backfilling starts jobs one after another, each on the first nodes that
hold it, beside reservations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.first_fit import FirstFitPlacer, Placer
from ..bidgen.generate import BidOptions, Bids, first_fit_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.snapshot import Snapshot
from ..topology.tree import Topology
from .ledger import FreeState, greedy
from .options import StepOptions
from .queue import queue_of
from .reserve import StepReservations
from .state import state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The jobs that first-fit starts, with their node names, and the sum of their priorities."""

    started: Mapping[str, tuple[str, ...]]
    priority: Fraction | int


def first_fit_by_priority(snapshot: Snapshot, window: int, reserve: int = 0) -> Baseline:
    """Return what starts when each job of the window, by priority, takes the first nodes that hold it.

    Args:
        snapshot: the cluster and its queue.
        window: jobs of highest priority that are looked at.
        reserve: this many of the first blocked jobs get a reservation, which later jobs do not delay, as in
            plain backfill.
    """
    state = state_of(snapshot)
    queue = queue_of(snapshot, state.reader, StepOptions(window=window))
    fit = FirstFitPlacer(state.columns, state.topology)
    starts = backfilled(queue.window, fit, StepReservations(state, reserve, later_only=True))
    names = state.columns.names
    return Baseline(
        started={
            start.demand.job.id: tuple(names[node] for node in start.allocation.nodes.tolist())
            for start in starts
        },
        priority=sum((start.demand.job.priority for start in starts), start=Fraction(0)),
    )


def first_fit_table(
    demands: tuple[Demand, ...],
    columns: Columns,
    topology: Topology,
    options: BidOptions,
    guards: tuple[Guard, ...] = (),
    placer: Placer | None = None,
) -> BidTable:
    """Return a bid for each job that first-fit starts; all of them hold beside each other.

    Args:
        demands: the jobs, highest priority first; ``index`` is the place among them.
        columns: free resources.
        topology: how far apart nodes are.
        options: how bids are made; caps on their number do not count here.
        guards: reservations.
        placer: says in which order jobs are placed and where; None: by priority.
    """
    first = first_fit_bids(demands, columns, topology, options, guards, placer)
    if len(greedy(first, columns, (), guards)) == len(first):
        return first
    # A bid's gres over the job are dealt as if it stood alone: each is made beside those before it.
    left, tables, jobs = columns, [], []
    for place in range(len(demands)) if placer is None else placer.order(demands):
        alone = (replace(demands[place], index=0),)
        table = first_fit_bids(alone, left, topology, options, guards, placer)
        if len(table):
            left = without_bids(left, table, [0])
            tables.append(table)
            jobs.append(np.array([place]))
    first, _ = joined_tables(demands, tables, jobs)
    kept = np.zeros(len(first), np.bool_)
    kept[greedy(first, columns, (), guards)] = True
    return first.only(kept)


def first_bids(
    demands: tuple[Demand, ...],
    columns: Columns,
    topology: Topology,
    options: BidOptions,
    guards: tuple[Guard, ...],
    placer: Placer,
) -> Bids:
    """Return a placer's first bids alone; arguments as in ``first_fit_table``."""
    table = first_fit_table(demands, columns, topology, options, guards, placer)
    starts = np.bincount(table.job, minlength=len(demands)) > 0
    return Bids(table=table, first_fit=starts, placed=len(table), complete=True, could_bid=starts)


def without_bids(columns: Columns, table: BidTable, bids: Iterable[int]) -> Columns:
    """Return the columns without what some bids hold."""
    state = FreeState(table, columns)
    for bid in bids:
        state.take(bid)
    return state.columns()


def backfilled(
    waiting: Iterable[Demand],
    fit: FirstFitPlacer,
    reserved: StepReservations,
    passes_over: Callable[[Demand], bool] = lambda _: False,
) -> list[StartingJob]:
    """Return what starts in the order of the queue beside reservations for the first blocked jobs.

    Args:
        waiting: jobs, highest priority first.
        fit: places them, beside the reservations that there are.
        reserved: makes reservations for blocked jobs as long as it wants more.
        passes_over: whether a blocked job gets none.
    """
    starts: list[StartingJob] = []
    for demand in waiting:
        placement = fit.place(demand)
        if placement is not None:
            starts.append(StartingJob(demand=demand, allocation=placement.allocation()))
        elif reserved.wants_more and demand.job.id not in reserved.asked and not passes_over(demand):
            _reserve(demand, reserved, starts, fit)
    return starts


def _reserve(
    demand: Demand, reserved: StepReservations, starts: list[StartingJob], fit: FirstFitPlacer
) -> None:
    """Keep nodes for a blocked job: what has started and outlasts its start stands beside it."""
    before = len(reserved.guards)
    reserved.reserve(demand, starts)
    for made in reserved.guards[before:]:
        guard = made.copy()
        for start in starts:
            guard.take(start.demand.job, start.allocation.nodes, start.allocation.held)
        fit.keep(guard)
