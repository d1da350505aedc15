"""What the families of resources on nodes share: a cell is a node, a bid takes of it what it holds there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..capacity import BoolArray, Capacity, IntArray
from .claims import Cell, Claim, Family, FreePlacement, Resource, Taken

if TYPE_CHECKING:
    from ..columns import Columns
    from ..guard import Guard
    from ..table import BidTable


class OnNodes(Family):
    """A resource of nodes, or several by name."""

    @abstractmethod
    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield each resource, what entries hold of it, and how much follows from each core on them."""

    @abstractmethod
    def kinds(self, capacity: Capacity) -> Iterator[Resource]:
        """Yield the resources of a capacity."""

    @abstractmethod
    def of(self, capacity: Capacity, resource: Resource) -> IntArray:
        """Return one resource's amounts, the capacity's own array."""

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

    def claims(self, table: BidTable, columns: Columns, guards: tuple[Guard, ...]) -> Iterator[Claim]:
        """Yield Σ_i amount_in·b_i ≤ free_n for each node n and resource."""
        del guards
        for number, (resource, amount, per_core) in enumerate(self.entries(table)):
            yield self.claim(table.node, self.of(columns.free, resource), resource, number, amount, per_core)

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

    def taken(self, job: FreePlacement, columns: Columns, guards: tuple[Guard, ...]) -> Iterator[Taken]:
        """Yield the same for nodes that a program chooses."""
        del guards
        yield from self.taken_of(job, columns)

    def taken_of(self, job: FreePlacement, columns: Columns) -> Iterator[Taken]:
        """Yield what a job takes of the nodes that it may use, where they are limited."""
        for resource, on_node, on_unit in self.on_node(job, columns):
            free = self.of(columns.free, resource)
            limited = self.counts(free)
            for at, node in enumerate(job.nodes.tolist()):
                amount = on_node if isinstance(on_node, int) else int(on_node[at])
                if (amount or on_unit) and (limited is None or limited[node]):
                    cell = Cell(resource, node)
                    yield Taken(cell, int(free[node]), at=at, on_node=amount, on_unit=on_unit)
        for resource, name in self.dealt(job):
            free = self.of(columns.free, resource)
            for at, node in enumerate(job.nodes.tolist()):
                yield Taken(Cell(resource, node), int(free[node]), at=at, dealt=name)

    def words(self, resource: Resource) -> str:
        """Return the resource's name."""
        return resource.label
