"""Free resources while bids are taken one after another, and those that an award leaves.

Both count what is on nodes and the room beside reservations. First-fit's placements as compatible
bids (``first_fit_table``) are the lower bound on every award of the auction.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..bidgen.families.claims import Claim
from ..bidgen.families.registry import claims_of
from ..bidgen.first_fit import Cluster
from ..bidgen.generate import BidOptions, first_fit_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.jobs import Job
from ..cluster.resources.allocation import Allocation, columns_beside
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.demand import Demand
from ..models.search.operators import greedy_by
from ..models.search.packing import packing_within


class Short(NamedTuple):
    """What a bid lacks: a claim of its table, and the cells that have too little, ascending."""

    claim: Claim
    cells: IntArray


class ResidualCapacity:
    """The capacities of each family less the bids taken so far."""

    def __init__(self, table: BidTable, cluster: Cluster) -> None:
        self._table = table
        claims = claims_of(table, cluster.columns, cluster.guards)
        self._pairs = [(one, one.capacity.copy()) for one in claims]

    def fits(self, bid: int) -> bool:
        """Return whether a bid could be taken now."""
        return next(self.short(bid), None) is None

    def short(self, bid: int) -> Iterator[Short]:
        """Yield what a bid lacks."""
        for claim, left in self._pairs:
            mine = self._of(claim, bid)
            row, amount = claim.row[mine], claim.amount[mine]
            # What is short already is no matter of a bid that takes none of it.
            lacking = (amount > left[row]) & (amount > 0)
            if lacking.any():
                yield Short(claim, row[lacking])

    def take(self, bid: int) -> None:
        """Take a bid's resources."""
        for claim, left in self._pairs:
            mine = self._of(claim, bid)
            # Nodes that a reservation does not keep stand at a row of another one, with nothing.
            np.subtract.at(left, claim.row[mine], claim.amount[mine])

    def cells(self, bid: int) -> Iterator[Short]:
        """Yield the cells from which a bid takes, claim by claim."""
        for claim, _ in self._pairs:
            mine = self._of(claim, bid)
            yield Short(claim, claim.row[mine][claim.amount[mine] > 0])

    def _of(self, claim: Claim, bid: int) -> slice:
        return slice(bid, bid + 1) if claim.by_bid else self._table.entries(bid)


def delays(table: BidTable, chosen: IntArray, cluster: Cluster) -> bool:
    """Return whether one of some bids delays a reservation beside those before it."""
    state = ResidualCapacity(table, cluster)
    for bid in chosen.tolist():
        if any(one.claim.guard is not None for one in state.short(bid)):
            return True
        state.take(bid)
    return False


def greedy(table: BidTable, cluster: Cluster, taken: Iterable[int] = ()) -> IntArray:
    """Return the bids of a greedy award: each job in turn takes the first of its bids that fits.

    ``taken`` bids come before all others, as far as they fit together; their jobs take no other.
    """
    return greedy_awards(table, cluster, (taken,))[0]


def greedy_awards(table: BidTable, cluster: Cluster, taken: Iterable[Iterable[int]]) -> list[IntArray]:
    """Return the award after each of several sets of bids, ``taken``; the rows are packed once."""
    claims = claims_of(table, cluster.columns, cluster.guards)
    packing = packing_within(table, claims, reduces=False)
    everything = range(len(table))
    return [greedy_by(packing, np.array([*sorted(one), *everything], np.int64)) for one in taken]


def what_is_left(table: BidTable, chosen: IntArray, cluster: Cluster, *, may_change: bool = False) -> Cluster:
    """Return what some bids leave of a cluster, with the room left outside its reservations.

    What they take of a limit or of licences, those that wait for it do not hold nodes for. Nothing
    is kept for a job that starts, unless it ``may_change`` whether it does.
    """
    starts = allocations_of(table, chosen)
    left = with_starts(cluster, starts)
    started = set() if may_change else {job.id for job, _ in starts}
    kept = (one for one in left.guards if left.columns.pools.keep(one.job) and one.job.id not in started)
    return replace(left, guards=tuple(kept))


def with_starts(cluster: Cluster, starts: Sequence[tuple[Job, Allocation]]) -> Cluster:
    """Return the rest of a cluster, and of the room outside its reservations, after some starts."""
    guards = tuple(guard.copy() for guard in cluster.guards)
    for job, where in starts:
        for guard in guards:
            guard.take(job, where.nodes, where.held)
    return replace(cluster, columns=columns_beside(cluster.columns, starts), guards=guards)


def allocations_of(table: BidTable, bids: Iterable[int]) -> list[tuple[Job, Allocation]]:
    """Return the jobs of some bids, and what each holds where."""
    return [(table.demand_of(bid).job, table.allocation(bid)) for bid in bids]


def first_fit_table(demands: tuple[Demand, ...], cluster: Cluster, options: BidOptions) -> BidTable:
    """Return a bid for each job that first-fit starts; all of them hold beside each other.

    Args:
        demands: the jobs, highest priority first; ``index`` is the place among them.
        cluster: what is free; its placer says in which order jobs are placed and where, priority
            without one.
        options: how bids are made; caps on their number do not count here.
    """
    first = first_fit_bids(demands, cluster, options)
    if len(greedy(first, cluster)) == len(first):
        return first
    # A bid's gres over the job are dealt as if it stood alone: each is made beside those before it.
    left, placer, tables, jobs = cluster, cluster.placer, [], []
    for place in range(len(demands)) if placer is None else placer.order(demands):
        table = first_fit_bids((replace(demands[place], index=0),), left, options)
        if len(table):
            left = replace(left, columns=columns_beside(left.columns, allocations_of(table, [0])))
            tables.append(table)
            jobs.append(np.array([place]))
    first, _ = joined_tables(demands, tables, jobs)
    return first.only(greedy(first, cluster))
