"""Memory of nodes, in MiB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray
from .claims import FreePlacement, Resource
from .on_nodes import OnNodes

if TYPE_CHECKING:
    from ..columns import Columns
    from ..table import BidTable


class Memory(OnNodes):
    """Σ_i memory_in·b_i ≤ free memory of each node n that limits it: as (5.3), for memory.

    A job asks for so much on each node, or for each core on it; not in the papers.
    """

    name = "memory"
    _memory = Resource("memory")

    def entries(self, table: BidTable) -> Iterator[tuple[Resource, IntArray, IntArray | int]]:
        """Yield MiB, where some bid counts them."""
        if table.memory is not None:
            yield self._memory, table.memory, _per_core(table)

    def kinds(self, capacity: Capacity) -> Iterator[Resource]:
        """Yield the memory."""
        del capacity
        yield self._memory

    def of(self, capacity: Capacity, resource: Resource) -> IntArray:
        """Return the MiB."""
        del resource
        return capacity.memory

    def counts(self, capacity: IntArray) -> BoolArray:
        """Return which nodes limit memory: what is less than half of no limit was taken of a limit."""
        limited: BoolArray = capacity < UNLIMITED_MIB // 2
        return limited

    def on_node(self, job: FreePlacement, columns: Columns) -> Iterator[tuple[Resource, IntArray | int, int]]:
        """Yield MiB for t and for x; an exclusive job holds that of all the cores of its nodes."""
        if job.demand.exclusive:
            yield self._memory, job.demand.memory_on(columns.total.cores[job.nodes]), 0
            return
        yield self._memory, job.demand.memory_per_node, job.demand.memory_per_unit


def _per_core(table: BidTable) -> IntArray | int:
    """Return the MiB that follow from each core of an entry; where its cores are fixed, so is its memory."""
    per_core = [
        0 if one.units_per_node is not None or one.exclusive else one.memory_per_core for one in table.demands
    ]
    if not any(per_core):
        return 0
    return np.array(per_core, np.int64)[np.repeat(table.job, table.lengths)]


MEMORY = Memory()
