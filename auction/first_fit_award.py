"""First-fit by priority as compatible bids: the lower bound on every award of the auction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..bidgen.first_fit import Placer
from ..bidgen.generate import BidOptions, Bids, first_fit_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..topology.tree import Topology
from .ledger import FreeState, greedy


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
