"""Resources of nodes: cores, gres by name, memory. A cell is a node; bids take what they hold there.

Room beside reservations for blocked jobs, too: what bids that outlast a reservation's start must leave.
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
    Capacity,
    Cell,
    IntArray,
    Resource,
)
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ..table import BidTable
from .claims import Claim, Family, FreePlacement, Taken


class OnNodes(Family):
    """What the families of resources on nodes share."""

    @abstractmethod
    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield each resource, what entries hold of it, and how much follows from each core on them."""

    @abstractmethod
    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield each resource, what a job takes on each node it may use, and besides for each unit there."""

    def dealt(self, job: FreePlacement) -> Iterator[tuple[Resource, str]]:
        """Yield resources of which the program deals a job's total over its nodes, and by which name."""
        del job
        return iter(())

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

    def taken(self, job: FreePlacement, columns: Columns) -> Iterator[Taken]:
        """Yield what a job takes of the nodes that it may use, where they are limited."""
        for resource, on_node, on_unit in self.on_node(job, columns):
            free = columns.free.amounts(resource)
            limited = self.counts(free)
            for at, node in enumerate(job.nodes.tolist()):
                amount = on_node if isinstance(on_node, int) else int(on_node[at])
                if (amount or on_unit) and (limited is None or limited[node]):
                    cell = Cell(resource, node)
                    yield Taken(cell, int(free[node]), at=at, on_node=amount, on_unit=on_unit)
        for resource, name in self.dealt(job):
            free = columns.free.amounts(resource)
            for at, node in enumerate(job.nodes.tolist()):
                yield Taken(Cell(resource, node), int(free[node]), at=at, dealt=name)

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

    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield x units, or all of a node's cores for t."""
        if job.demand.exclusive:
            yield CORES, columns.total.cores[job.nodes], 0
        else:
            yield CORES, 0, job.demand.unit


class Gres(OnNodes):
    """Σ_i U_in·R_i^gres·b_i ≤ A_n^gres for each node n and gres: Soner (5.4), (6.4); Σ u·R_j^gres (4.6).

    Where a program chooses the nodes, Σ_j R_j^gres·t_nj (3.4) and what it deals of a total, y_nj.
    """

    name = "gres"

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield the counts of each gres that some bid asks for."""
        for kind, counts in table.gres.items():
            yield Resource(self.name, kind), counts, 0

    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield the counts on each node, or all that a node has."""
        if job.demand.exclusive:
            for kind, counts in columns.total.gres.items():
                yield Resource(self.name, kind), counts[job.nodes], 0
            return
        for kind, _, count in job.choice.per_node:
            if count:
                yield Resource(self.name, kind), count, 0

    def dealt(self, job: FreePlacement) -> Iterator[tuple[Resource, str]]:
        """Yield the gres asked for over all nodes; an exclusive job holds all of them anyway."""
        for kind, _, low, _ in job.choice.total:
            if low and not job.demand.exclusive:
                yield Resource(self.name, kind), kind


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
        """Return which nodes limit memory: what is less than half of no limit was taken of a limit."""
        limited: BoolArray = capacity < UNLIMITED_MIB // 2
        return limited

    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield MiB for t and for x; an exclusive job holds that of all the cores of its nodes."""
        if job.demand.exclusive:
            yield MEMORY, job.demand.memory_on(columns.total.cores[job.nodes]), 0
            return
        yield MEMORY, job.demand.memory_per_node, job.demand.memory_per_unit


def _memory_per_core(table: BidTable) -> IntArray | int:
    """Return the MiB that follow from each core of an entry; where its cores are fixed, so is its memory."""
    per_core = [
        0 if one.units_per_node is not None or one.exclusive else one.memory_per_core for one in table.demands
    ]
    if not any(per_core):
        return 0
    return np.array(per_core, np.int64)[np.repeat(table.job, table.lengths)]


class ReservationRows(Family):
    """Σ_i amount_in·b_i ≤ room_n on a reservation's nodes n, over bids that outlast its start.

    The rows (5.3) and (5.4) at that time; what a bid's own job has reserved there is not counted
    again. Not in the papers: the shadow time of EASY.

    Args:
        on_nodes: the families whose resources reservations hold.
        guards: the reservations.
    """

    name = "room"

    def __init__(self, on_nodes: tuple[OnNodes, ...], guards: tuple[Guard, ...] = ()) -> None:
        self._on_nodes = on_nodes
        self._guards = guards

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what long bids take of each resource on each reservation's nodes."""
        del columns
        for number, guard in enumerate(self._guards):
            for claim in self.beside(guard, table):
                yield replace(claim, symbol=f"guard{number}_{claim.symbol}")

    def beside(self, guard: Guard, table: BidTable) -> Iterator[Claim]:
        """Yield what bids take beside one reservation."""
        if not len(guard.nodes):
            return
        place, counts = _places(guard, table)
        for family in self._on_nodes:
            for index, (resource, amount, per_core) in enumerate(family.entries(table)):
                room = guard.room.amounts(resource)
                claim = family.claim(place, room, resource, index, amount * counts, per_core * counts)
                yield replace(_beside_own(claim, _credit(guard, table, resource, place, counts)), guard=guard)

    def taken(self, job: FreePlacement, columns: Columns) -> Iterator[Taken]:
        """Yield the same for nodes that a program chooses; what a job has reserved it gives back."""
        for number, guard in enumerate(self._guards):
            if not guard.outlasts(job.demand.job):
                continue
            place_of = {node: place for place, node in enumerate(guard.nodes.tolist())}
            for family in self._on_nodes:
                for one in family.taken(job, columns):
                    resource, node = one.cell.resource, one.cell.place
                    if node in place_of:
                        room = int(guard.room.amounts(resource)[place_of[node]])
                        yield one._replace(cell=Cell(resource, node, number), capacity=room)
                own = guard.kept.get(job.demand.job.id)
                if own is not None:
                    yield from _given_back(family.name, own, guard, number)

    def delayed(self, guard: Guard, table: BidTable) -> BoolArray:
        """Return which bids alone would delay a reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        short = np.zeros(len(table.node), np.bool_)
        for claim in self.beside(guard, table):
            short |= (claim.amount > 0) & (claim.amount > claim.capacity[claim.row])
        return np.logical_or.reduceat(short, table.indptr[:-1])

    def words(self, resource: Resource) -> str:
        """Return what a bid lacks, whatever the resource."""
        del resource
        return "room next to the reservation"


def _given_back(family: str, own: Capacity, guard: Guard, number: int) -> Iterator[Taken]:
    """Yield what a job that starts gives back of what is reserved for it, on every node of a reservation."""
    for resource in own.resources():
        if resource.family != family:
            continue
        held, room = own.amounts(resource), guard.room.amounts(resource)
        for place in np.flatnonzero(held).tolist():
            cell = Cell(resource, int(guard.nodes[place]), number)
            yield Taken(cell, int(room[place]), on_job=-int(held[place]))


def _beside_own(claim: Claim, own: IntArray | None) -> Claim:
    if own is None:
        return claim
    beside = claim.amount - own
    # Where a program deals the cores, amounts change with them.
    dealt = beside if np.any(claim.per_core) else None
    return replace(claim, amount=np.maximum(beside, 0), beside_own=dealt)


def _places(guard: Guard, table: BidTable) -> tuple[IntArray, BoolArray]:
    """Return where among the guarded nodes each entry stands, and whether it counts; shape (entries,)."""
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
