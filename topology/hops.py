"""How many links apart nodes of a network are, where its switches are groups and do not say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..cluster.network import Network, NetworkKind
from .hilbert import grid, torus_hops

IntArray = npt.NDArray[np.int64]
#: Links between node pairs, elementwise.
Hops: TypeAlias = Callable[[IntArray, IntArray], IntArray]


def hops_of(network: Network, names: Sequence[str]) -> Hops | None:
    """Return the distances of a network's nodes, by their place in ``names``; None: its tree knows them.

    Tables of dragonflies and graphs are made when the first distance is asked for.
    """
    number = {name: place for place, name in enumerate(network.members)}
    place = np.array([number[name] for name in names], np.int64)
    if network.kind is NetworkKind.TORUS:
        points = grid(network.sizes)[place]
        return lambda first, last: torus_hops(network.sizes, points[first], points[last])
    if network.kind is NetworkKind.DRAGONFLY:
        return _through_routers(network, place)
    if network.kind is NetworkKind.GRAPH:
        return lambda first, last: _linked_table(network)[place[first], place[last]].astype(np.int64)
    return None


def _through_routers(network: Network, place: IntArray) -> Hops:
    router = place // network.sizes[2]

    def hops(first: IntArray, last: IntArray) -> IntArray:
        between = _router_table(network.sizes)[router[first], router[last]].astype(np.int64)
        return np.where(first == last, 0, between + 2)

    return hops


@lru_cache(maxsize=4)
def _router_table(sizes: tuple[int, ...]) -> npt.NDArray[np.int16]:
    from .graphs import hop_table, router_graph

    graph = router_graph(sizes)
    return hop_table(graph, list(graph))


@lru_cache(maxsize=4)
def _linked_table(network: Network) -> npt.NDArray[np.int16]:
    from .graphs import hop_table, linked_graph

    return hop_table(linked_graph(network.links), network.members)
