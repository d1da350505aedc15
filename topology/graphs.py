"""Networks and trees of switches as networkx graphs, for pictures and counts.

A vertex is a node of the cluster (its name) or a switch. Only who looks at a graph loads networkx.
"""

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np

from ..cluster.network import Network, NetworkKind
from ..cluster.nodes import Switch
from .distances import global_links_of
from .hilbert import grid


def graph_of(network: Network) -> Any:
    """Return a network's graph; nodes are named as in it."""
    kinds = {
        NetworkKind.TORUS: _torus,
        NetworkKind.DRAGONFLY: _dragonfly,
        NetworkKind.FAT_TREE: _fat_tree,
    }
    return kinds[network.kind](network) if network.kind in kinds else nx.Graph(network.links)


def _torus(network: Network) -> Any:
    """Return a torus: each node linked to its neighbours along each dimension, and round its ends."""
    shape, members = network.sizes, network.members
    graph = nx.Graph()
    graph.add_nodes_from(members)
    points = grid(shape)
    for axis, length in enumerate(shape):
        further = points.copy()
        further[:, axis] = (further[:, axis] + 1) % length
        ends = np.ravel_multi_index(tuple(further.T), shape)
        graph.add_edges_from(
            (members[place], members[end]) for place, end in enumerate(ends.tolist()) if place != end
        )
    return graph


def _dragonfly(network: Network) -> Any:
    """Return a dragonfly's graph; a router is the vertex (group, router).

    All routers of a group are linked, and groups by global links (Kim et al., ISCA 2008).
    """
    groups, routers, per_router, _ = network.sizes
    graph = nx.Graph()
    graph.add_nodes_from(product(range(groups), range(routers)))
    for group in range(groups):
        graph.add_edges_from(combinations([(group, router) for router in range(routers)], 2))
    for one, other in global_links_of(network.sizes).tolist():
        graph.add_edge(divmod(one, routers), divmod(other, routers))
    for place, name in enumerate(network.members):
        graph.add_edge(divmod(place // per_router, routers), name)
    return graph


def _fat_tree(network: Network) -> Any:
    """Return a fat tree's wiring: each link is an edge.

    A group of the tree at level l is (radix/2)^l switches here, each wired to one switch of every
    part of the group, so that any two nodes are as far apart as in the tree.
    """
    half = network.sizes[1] // 2
    graph = nx.Graph()
    graph.add_nodes_from(network.members)
    for switch in network.switches:
        level = int(switch.name[1 : switch.name.index("-")])
        for node in switch.nodes:
            graph.add_edge((switch.name, ()), node)
        for child, lower, port in product(
            switch.switches, product(range(half), repeat=max(0, level - 1)), range(half)
        ):
            graph.add_edge((child, lower), (switch.name, (*lower, port)))
    return graph


def tree_graph(switches: Iterable[Switch]) -> Any:
    """Return a tree of switches as a networkx graph, edges from each switch to what is below it."""
    graph = nx.DiGraph()
    for switch in switches:
        graph.add_edges_from((("switch", switch.name), ("switch", name)) for name in switch.switches)
        graph.add_edges_from((("switch", switch.name), name) for name in switch.nodes)
    return graph
