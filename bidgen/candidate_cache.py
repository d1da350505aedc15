"""The nodes that jobs of one shape could still use while what is free only gets less.

What once could not be a job's cannot be another's of its shape later: nodes are looked at again only
where they could, and where the first few will do no others are.
"""

from __future__ import annotations

import numpy as np

from .columns import BoolArray, Capacity, Columns, IntArray
from .demand import Demand, Variant
from .fields import GresChoice, units_of, usable

#: So many nodes are looked at first, each time twice as many as before.
_FIRST_LOOK = 64


class CandidateCache:
    """Nodes in snapshot order, by what jobs ask of each.

    Args:
        columns: the machine's.
        free: what is free: it may only get less.
    """

    def __init__(self, columns: Columns, free: Capacity) -> None:
        self._columns = columns
        self._free = free
        # Beside the nodes the variant: no other can have its identity while it lives.
        self._open: dict[object, tuple[Variant, IntArray]] = {}

    def all(self, demand: Demand, variant: Variant, choice: GresChoice) -> IntArray:
        """Return all nodes that the job could use."""
        nodes = self._known(demand, variant, choice)
        left = nodes[self._mask(demand, variant, choice, nodes)]
        self._keep(demand, variant, choice, left)
        return left

    def first(
        self, demand: Demand, variant: Variant, choice: GresChoice, least: int, units: int
    ) -> IntArray | None:
        """Return the first nodes that are so many with so many units together; None: there are not enough."""
        nodes = self._known(demand, variant, choice)
        found: list[IntArray] = []
        count = have = looked = 0
        size = max(_FIRST_LOOK, 2 * least)
        while (count < least or have < units) and looked < len(nodes):
            some = nodes[looked : looked + size]
            some = some[self._mask(demand, variant, choice, some)]
            found.append(some)
            count += len(some)
            if units:
                have += int(units_of(demand, self._free, self._columns, some).sum())
            looked, size = min(looked + size, len(nodes)), 2 * size
        if 2 * count < looked:
            self._keep(demand, variant, choice, np.concatenate([*found, nodes[looked:]]))
        return np.concatenate(found) if found and count >= least and have >= units else None

    def _mask(self, demand: Demand, variant: Variant, choice: GresChoice, nodes: IntArray) -> BoolArray:
        return usable(demand, variant, choice, self._free, self._columns, nodes)

    def _known(self, demand: Demand, variant: Variant, choice: GresChoice) -> IntArray:
        key = _key(demand, variant, choice)
        if key not in self._open:
            self._open[key] = (variant, np.flatnonzero(variant.eligible))
        return self._open[key][1]

    def _keep(self, demand: Demand, variant: Variant, choice: GresChoice, nodes: IntArray) -> None:
        self._open[_key(demand, variant, choice)] = (variant, nodes)


def _key(demand: Demand, variant: Variant, choice: GresChoice) -> tuple[object, ...]:
    """Return everything that ``usable`` depends on beside what is free."""
    return (
        id(variant.eligible),
        choice.per_node,
        demand.unit,
        demand.least,
        demand.memory_per_node,
        demand.memory_per_core,
        demand.exclusive,
    )
