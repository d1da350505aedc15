"""Resources of nodes: cores, gres by name, memory. A cell is a node; bids take what they hold.

Also the room next to blocked jobs' reservations: what bids that outlast their start must leave. And
cores kept beside free gres, where a balance is kept (auction/balance.py).
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...cluster.resources.capacity import (
    CORES,
    MEMORY,
    UNLIMITED_MIB,
    BoolArray,
    IntArray,
    Resource,
)
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ..table import BidTable
from .claims import Claim, Family


class OnNodes(Family):
    """What the families of resources on nodes share."""

    @abstractmethod
    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield each resource, what entries hold of it, and how much follows from each core."""

    def counts(self, capacity: IntArray) -> BoolArray | None:
        """Return where amounts are limited at all, shape of ``capacity``; None: everywhere."""
        del capacity
        return None

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield Σ_i amount_in·b_i ≤ free_n for each node n and resource."""
        for number, (resource, amount, per_core) in enumerate(self.entries(table)):
            yield self.claim(table.node, columns.free.amounts(resource), resource, number, amount, per_core)

    def claim(
        self,
        row: IntArray,
        capacity: IntArray,
        resource: Resource,
        number: int,
        amount: IntArray,
        per_core: IntArray | int,
    ) -> Claim:
        """Return the claim of one resource, without entries that are not limited."""
        limited = self.counts(capacity[row])
        if limited is not None:
            amount, per_core = amount * limited, per_core * limited
        return Claim(
            resource=resource,
            symbol=f"{resource.family}{number if resource.name else ''}",
            row=row,
            amount=amount,
            capacity=capacity,
            per_core=per_core,
        )

    def words(self, resource: Resource) -> str:
        """Return the resource's name."""
        return resource.label


class Cores(OnNodes):
    """Σ_i T_in·b_i ≤ A_n^cpu for each node n: Soner (5.3), (6.3).

    Where a program deals the cores Σ (u + r) ≤ A_n^cpu (4.5), Σ_j x_nj ≤ A_n^cpu (3.2).
    """

    name = CORES.family

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield T_in."""
        yield CORES, table.cores, 1


class Gres(OnNodes):
    """Σ_i U_in·R_i^gres·b_i ≤ A_n^gres for each n and gres: Soner (5.4), (6.4); Σ u·R_j^gres (4.6).

    Where a program chooses the nodes, Σ_j R_j^gres·t_nj (3.4) and what it deals of a total, y_nj.
    """

    name = "gres"

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield the counts of each gres that some bid asks for."""
        for kind, counts in table.gres.items():
            yield Resource(self.name, kind), counts, 0


class Memory(OnNodes):
    """Σ_i memory_in·b_i ≤ free memory of each node n that limits it: as (5.3), for memory in MiB.

    A job asks for so much on each node, or for each core on it; not in the papers.
    """

    name = MEMORY.family

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield MiB, where some bid counts them."""
        if table.memory is not None:
            yield MEMORY, table.memory, _memory_per_core(table)

    def counts(self, capacity: IntArray) -> BoolArray:
        """Return which nodes limit memory: less than half of "no limit" is the rest of a limit."""
        limited: BoolArray = capacity < UNLIMITED_MIB // 2
        return limited


def _memory_per_core(table: BidTable) -> IntArray | int:
    """Return the MiB that follow from each core of an entry; 0 where its cores are fixed."""
    per_core = [
        0 if one.units_per_node is not None or one.exclusive else one.memory_per_core for one in table.demands
    ]
    if not any(per_core):
        return 0
    return np.array(per_core, np.int64)[np.repeat(table.job, table.lengths)]


#: Resources of nodes: what reservations hold, too.
ON_NODES: tuple[OnNodes, ...] = (Cores(), Gres(), Memory())


class ReservationRows(Family):
    """Σ_i amount_in·b_i ≤ room_n on a reservation's nodes n, over bids that outlast its start.

    The rows (5.3) and (5.4) at that time; what a bid's own job has reserved there is not counted
    again. Not in the papers: the shadow time of EASY.

    Args:
        guards: the reservations.
    """

    name = "room"

    def __init__(self, guards: tuple[Guard, ...] = ()) -> None:
        self._guards = guards

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what long bids take of each resource on each reservation's nodes."""
        del columns
        for number, guard in enumerate(self._guards):
            for claim in self.of_guard(guard, table):
                yield replace(claim, symbol=f"guard{number}_{claim.symbol}")

    def of_guard(self, guard: Guard, table: BidTable) -> Iterator[Claim]:
        """Yield what bids take beside one reservation."""
        if not len(guard.nodes):
            return
        place, counts = _places(guard, table)
        for family in ON_NODES:
            for index, (resource, amount, per_core) in enumerate(family.entries(table)):
                room = guard.room.amounts(resource)
                claim = family.claim(place, room, resource, index, amount * counts, per_core * counts)
                yield replace(_beside_own(claim, _credit(guard, table, resource, place, counts)), guard=guard)

    def delayed(self, guard: Guard, table: BidTable) -> BoolArray:
        """Return which bids alone would delay a reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        short = np.zeros(len(table.node), np.bool_)
        for claim in self.of_guard(guard, table):
            short |= (claim.amount > 0) & (claim.amount > claim.capacity[claim.row])
        return np.logical_or.reduceat(short, table.indptr[:-1])

    def words(self, resource: Resource) -> str:
        """Return what a bid lacks, whatever the resource."""
        del resource
        return "room next to the reservation"


def _beside_own(claim: Claim, own: IntArray | None) -> Claim:
    if own is None:
        return claim
    beside = claim.amount - own
    # Where a program deals the cores, amounts change with them.
    dealt = beside if np.any(claim.per_core) else None
    return replace(claim, amount=np.maximum(beside, 0), beside_own=dealt)


def _places(guard: Guard, table: BidTable) -> tuple[IntArray, BoolArray]:
    """Return each entry's place among guarded nodes, and whether it counts; shape (entries,)."""
    place = np.minimum(np.searchsorted(guard.nodes, table.node), len(guard.nodes) - 1)
    long = np.repeat(_too_long(guard, table), table.lengths)
    return place, long & (guard.nodes[place] == table.node)


def _too_long(guard: Guard, table: BidTable) -> BoolArray:
    """Return which bids of a table would hold their nodes too long, shape (bids,)."""
    jobs = [demand.job for demand in table.demands]
    long = np.array([guard.outlasts(job) for job in jobs], np.bool_)[table.job]
    for place, job in enumerate(jobs):
        if job.limits_by_nodes_s:
            for bid in np.flatnonzero(table.job == place).tolist():
                long[bid] = guard.outlasts(job, int(table.lengths[bid]))
    return long


def _credit(
    guard: Guard, table: BidTable, resource: Resource, place: IntArray, counts: BoolArray
) -> IntArray | None:
    """Return what each entry's job has reserved there itself, shape (entries,); None: nothing."""
    kept = [guard.kept.get(demand.job.id) for demand in table.demands] if guard.kept else []
    if not any(kept):
        return None
    credit = np.zeros(len(table.node), np.int64)
    job = np.repeat(table.job, table.lengths)
    for index, own in enumerate(kept):
        if own is not None:
            mine = counts & (job == index)
            credit[mine] = own.amounts(resource)[place[mine]]
    return credit


class GapRows(Family):
    """Σ_i T_in·b_i ≤ A_n^cpu − kept_n for each node n with free gres, over the jobs that fill gaps.

    Not in the papers. ``kept_n`` are the cores that a waiting job with gres needs on a node.
    """

    name = "kept_cores"

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield the cores that bids of those jobs take of each node."""
        for kept in columns.kept:
            limited = np.array([demand.job.id in kept.jobs for demand in table.demands], np.bool_)
            if limited.any():
                counts = limited[np.repeat(table.job, table.lengths)].astype(np.int64)
                yield Claim(
                    resource=Resource(self.name, kept.name),
                    symbol=f"kept_{kept.name}",
                    row=table.node,
                    amount=table.cores * counts,
                    capacity=kept.left,
                    per_core=counts,
                )

    def words(self, resource: Resource) -> str:
        """Return what is kept, whatever for."""
        del resource
        return "cores that are not kept for jobs with gres"
