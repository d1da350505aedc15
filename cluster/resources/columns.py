"""Residual capacity: what is free on nodes, as columns with an entry a node, and off them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..nodes import Node
from .capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray, capacity_of, nothing_held
from .job_reservations import KeptCores
from .pools import Pools


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Columns:
    """What jobs may take: of nodes, as arrays, and what a site or a balance leaves them beside.

    Attributes:
        names: node names, in snapshot order.
        index: position of each name.
        total, free: what each node has, and what of it is free.
        takes_jobs: the node's state lets jobs start, shape (n,).
        is_empty: nothing on the node is in use, shape (n,).
        gres_max: G_max of Soner (6.5) by request name: the most configured on any node. A name
            without a type (``gpu``) takes the most of any of its types.
        pools: what is left of what stands on no node: licences, limits, shares.
        kept: cores that some jobs leave for others, where a balance asks for it.
    """

    names: tuple[str, ...]
    index: Mapping[str, int]
    total: Capacity
    free: Capacity
    takes_jobs: BoolArray
    is_empty: BoolArray
    gres_max: Mapping[str, int]
    pools: Pools
    kept: tuple[KeptCores, ...] = ()

    @classmethod
    def of(cls, nodes: Sequence[Node], pools: Pools) -> "Columns":
        """Return nodes as columns, with what is left of the pools."""
        kinds = sorted({kind for node in nodes for kind in node.total.gres})
        total = capacity_of([node.total for node in nodes], kinds, UNLIMITED_MIB)
        free = capacity_of([node.free for node in nodes], kinds, UNLIMITED_MIB)
        most: dict[str, int] = {}
        for name, counts in total.gres.items():
            for request_name in {name, name.partition(":")[0]}:
                most[request_name] = max(most.get(request_name, 0), int(counts.max()))
        return cls(
            names=tuple(node.name for node in nodes),
            index={node.name: place for place, node in enumerate(nodes)},
            total=total,
            free=free,
            takes_jobs=np.array([node.state.takes_jobs for node in nodes], np.bool_),
            is_empty=nothing_held(total, free),
            gres_max=most,
            pools=pools,
        )

    def named(self, nodes: IntArray) -> tuple[str, ...]:
        """Return the names of some nodes, by their places."""
        return tuple(self.names[node] for node in nodes.tolist())

    def renewed(self, nodes: Sequence[Node], places: Sequence[int], pools: Pools) -> "Columns":
        """Return the columns with some nodes as they are now; their totals are the same.

        ``places``: of those that may have changed.
        """
        free, some = self.free.copy(), np.array(places, np.int64)
        now = capacity_of([nodes[place].free for place in places], free.gres, UNLIMITED_MIB)
        for resource in free.resources():
            free.amounts(resource)[some] = now.amounts(resource)
        takes, empty = self.takes_jobs.copy(), self.is_empty.copy()
        takes[some] = [nodes[place].state.takes_jobs for place in places]
        empty[some] = nothing_held(self.total.at(some), now)
        return replace(self, free=free, takes_jobs=takes, is_empty=empty, pools=pools)
