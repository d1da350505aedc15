"""Resources left by an award, on nodes and beside reservations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..bidgen.table import BidTable, allocation_of_bid
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.job_reservations import Guard
from .ledger import FreeState
from .strategies import Cluster


def what_is_left(table: BidTable, chosen: IntArray, cluster: Cluster, *, may_change: bool = False) -> Cluster:
    """Return what some bids leave of a cluster, with the room that they leave beside its reservations.

    What they take of a limit or of licences, those that wait for it do not hold nodes for. Nothing is kept
    for a job that starts, unless it ``may_change`` whether it does.
    """
    state = FreeState(table, cluster.columns, cluster.guards)
    guards = tuple(guard.copy() for guard in cluster.guards)
    for bid in chosen.tolist():
        state.take(bid)
        _lessen(guards, table, bid)
    columns = state.columns()
    started = {table.demands[job].job.id for job in table.job[chosen].tolist()} if not may_change else ()
    kept = tuple(guard for guard in guards if columns.pools.hold(guard.job) and guard.job.id not in started)
    return replace(cluster, columns=columns, guards=kept)


def _lessen(guards: Iterable[Guard], table: BidTable, bid: int) -> None:
    """Lessen the room beside reservations by what a bid holds."""
    if not guards:
        return
    allocation, job = allocation_of_bid(table, bid), table.demands[int(table.job[bid])].job
    for guard in guards:
        guard.take(job, allocation.nodes, allocation.held)
