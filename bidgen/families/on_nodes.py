"""Resources of nodes: cores, gres by name, memory. A cell is a node; bids take what they hold there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from ...cluster.resources.capacity import CORES, MEMORY, UNLIMITED_MIB, BoolArray, Cell, IntArray, Resource
from ...cluster.resources.columns import Columns
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
        limited = self.counts(capacity)
        if limited is not None:
            amount, per_core = amount * limited[row], per_core * limited[row]
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
