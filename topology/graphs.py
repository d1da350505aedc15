"""Networks and trees of switches as networkx graphs, for pictures and counts.

A vertex is a node of the cluster (its name) or a switch. Only who looks at a graph loads networkx.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np

from ..cluster.network import Network, NetworkKind
from ..cluster.nodes import Switch
from .distances import global_links_of
from .hilbert import grid
from .networks import fat_tree


def graph_of(network: Network) -> Any:
    """Return a network's graph; nodes are named as in it."""
    if network.kind is NetworkKind.TORUS:
        return torus_graph(network.sizes, network.members)
    if network.kind is NetworkKind.DRAGONFLY:
        return dragonfly_graph(network.sizes, network.members)
    if network.kind is NetworkKind.FAT_TREE:
        levels, radix = network.sizes
        return fat_tree_graph(levels, radix, network.members)
    return nx.Graph(network.links)


def torus_graph(shape: Sequence[int], members: Sequence[str]) -> Any:
    """Return a torus: each node linked to its neighbours along each dimension, and round its ends."""
    graph = nx.Graph()
    graph.add_nodes_from(members)
    points = grid(tuple(shape))
    for axis, length in enumerate(shape):
        further = points.copy()
        further[:, axis] = (further[:, axis] + 1) % length
        ends = np.ravel_multi_index(tuple(further.T), tuple(shape))
        graph.add_edges_from(
            (members[place], members[end]) for place, end in enumerate(ends.tolist()) if place != end
        )
    return graph


def dragonfly_graph(sizes: Sequence[int], members: Sequence[str]) -> Any:
    """Return a dragonfly's graph; a router is the vertex (group, router).

    All routers of a group are linked, and groups by global links (Kim et al., ISCA 2008).
    """
    groups, routers, per_router, _ = sizes
    graph = nx.Graph()
    graph.add_nodes_from(product(range(groups), range(routers)))
    for group in range(groups):
        graph.add_edges_from(combinations([(group, router) for router in range(routers)], 2))
    for one, other in global_links_of(sizes).tolist():
        graph.add_edge(divmod(one, routers), divmod(other, routers))
    for place, name in enumerate(members):
        graph.add_edge(divmod(place // per_router, routers), name)
    return graph


def fat_tree_graph(levels: int, radix: int, members: Sequence[str]) -> Any:
    """Return a fat tree's wiring; nodes are named as in ``fat_tree``, each link is an edge.

    A group of the tree at level l is (radix/2)^l switches here, each wired to one switch of every
    part of the group, so that any two nodes are as far apart as in the tree.
    """
    half = radix // 2
    graph = nx.Graph()
    graph.add_nodes_from(members)
    for switch in fat_tree(levels, radix, members):
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
