"""Cores of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..capacity import Capacity, IntArray
from .claims import FreePlacement, Resource
from .on_nodes import OnNodes

if TYPE_CHECKING:
    from ..columns import Columns
    from ..table import BidTable


class Cores(OnNodes):
    """Σ_i T_in·b_i ≤ A_n^cpu for each node n: Soner (5.3), (6.3).

    Where a program deals the cores Σ (u + r) ≤ A_n^cpu (4.5), Σ_j x_nj ≤ A_n^cpu (3.2).
    """

    name = "cores"
    _cores = Resource("cores")

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield T_in."""
        yield self._cores, table.cores, 1

    def kinds(self, capacity: Capacity) -> Iterator[Resource]:
        """Yield the cores."""
        del capacity
        yield self._cores

    def of(self, capacity: Capacity, resource: Resource) -> IntArray:
        """Return the cores."""
        del resource
        return capacity.cores

    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield x units, or all of a node's cores for t."""
        if job.demand.exclusive:
            yield self._cores, columns.total.cores[job.nodes], 0
        else:
            yield self._cores, 0, job.demand.unit


CORES = Cores()
