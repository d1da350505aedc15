"""The cluster's free resources as columns, one entry a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..cluster.snapshot import Snapshot
from .capacity import UNLIMITED_MIB, BoolArray, Capacity, FloatArray, IntArray
from .families.pools import Pools
from .families.registry import pools_of
from .families.shares import KeptCores

__all__ = [
    "UNLIMITED_MIB",
    "BoolArray",
    "Capacity",
    "Columns",
    "FloatArray",
    "IntArray",
    "columns_of",
    "nothing_held",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Columns:
    """A snapshot's nodes as arrays.

    Attributes:
        names: node names, in snapshot order.
        index: position of each name.
        total, free: what each node has, and what of it is free.
        takes_jobs: the node's state lets jobs start, shape (n,).
        is_empty: nothing on the node is in use, shape (n,).
        gres_max: G_max of Soner (6.5) by request name: the most configured on any node. A name without a
            type (``gpu``) takes the most of any of its types.
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


def columns_of(snapshot: Snapshot) -> Columns:
    """Return the snapshot's nodes as columns."""
    nodes = snapshot.nodes
    gres_names = sorted({name for node in nodes for name in node.total.gres})
    total = Capacity(
        cores=np.array([node.total.cores for node in nodes], np.int64),
        memory=_memory([node.total.memory_mib for node in nodes]),
        gres={
            name: np.array([node.total.gres.get(name, 0) for node in nodes], np.int64) for name in gres_names
        },
    )
    free = Capacity(
        cores=np.array([node.free.cores for node in nodes], np.int64),
        memory=_memory([node.free.memory_mib for node in nodes]),
        gres={
            name: np.array([node.free.gres.get(name, 0) for node in nodes], np.int64) for name in gres_names
        },
    )
    return Columns(
        names=tuple(node.name for node in nodes),
        index={node.name: place for place, node in enumerate(nodes)},
        total=total,
        free=free,
        takes_jobs=np.array([node.state.takes_jobs for node in nodes], np.bool_),
        is_empty=nothing_held(total, free),
        gres_max=_gres_max(total),
        pools=pools_of(snapshot),
    )


def _memory(values: list[int | None]) -> IntArray:
    return np.array([UNLIMITED_MIB if value is None else value for value in values], np.int64)


def nothing_held(total: Capacity, free: Capacity) -> BoolArray:
    """Return the nodes of which everything is free, shape (n,)."""
    empty: BoolArray = (free.cores == total.cores) & (free.memory == total.memory)
    for name, counts in free.gres.items():
        empty &= counts == total.gres[name]
    return empty


def _gres_max(total: Capacity) -> dict[str, int]:
    most: dict[str, int] = {}
    for name, counts in total.gres.items():
        for request_name in {name, name.partition(":")[0]}:
            most[request_name] = max(most.get(request_name, 0), int(counts.max()))
    return most
