"""Generic resources of nodes, each by its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..capacity import Capacity, IntArray
from .claims import FreePlacement, Resource
from .on_nodes import OnNodes

if TYPE_CHECKING:
    from ..columns import Columns
    from ..table import BidTable


class Gres(OnNodes):
    """Σ_i U_in·R_i^gres·b_i ≤ A_n^gres for each node n and gres: Soner (5.4), (6.4); Σ u·R_j^gres (4.6).

    Where a program chooses the nodes, Σ_j R_j^gres·t_nj (3.4) and what it deals of a total, y_nj.
    """

    name = "gres"

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield the counts of each gres that some bid asks for."""
        for kind, counts in table.gres.items():
            yield Resource(self.name, kind), counts, 0

    def kinds(self, capacity: Capacity) -> Iterator[Resource]:
        """Yield every gres."""
        return (Resource(self.name, kind) for kind in capacity.gres)

    def of(self, capacity: Capacity, resource: Resource) -> IntArray:
        """Return the counts of one gres."""
        return capacity.gres[resource.name]

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


GRES = Gres()
