"""Networks as networkx graphs: built, checked, and measured link by link.

A vertex is a node of the cluster (its name) or a switch. Only who looks at a graph loads networkx.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ..cluster.errors import InputError
from ..cluster.network import Network, NetworkKind
from ..cluster.nodes import Switch
from .fattree import fat_tree
from .hilbert import grid

#: Of more vertices than these no table of distances is made.
MOST_MEASURED = 5_000
MOST_VERTICES = 50_000

HopArray = npt.NDArray[np.int16]


def graph_of(network: Network) -> Any:
    """Return a network's graph; nodes are named as in it."""
    if network.kind is NetworkKind.TORUS:
        return torus_graph(network.sizes, network.members)
    if network.kind is NetworkKind.DRAGONFLY:
        return dragonfly_graph(network.sizes, network.members)
    if network.kind is NetworkKind.FAT_TREE:
        wiring = fat_tree_graph(*network.sizes)
        names, _ = fat_tree(*network.sizes)
        return nx.relabel_nodes(wiring, dict(zip(names, network.members, strict=True)))
    return linked_graph(network.links)


def linked_graph(links: Iterable[tuple[str, str]]) -> Any:
    """Return the graph of some links; links side by side are one."""
    graph = nx.Graph()
    graph.add_edges_from(links)
    return graph


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
    """Return a dragonfly's graph; a router is the vertex (group, router)."""
    _, routers, per_router, _ = sizes
    graph = router_graph(sizes)
    for place, name in enumerate(members):
        graph.add_edge(divmod(place // per_router, routers), name)
    return graph


def router_graph(sizes: Sequence[int]) -> Any:
    """Return a dragonfly's routers (Kim et al., ISCA 2008): all of a group linked, groups by global links.

    Global ports count through a group: router r has ports r·h to r·h + h − 1. Port k·(g − 1) + o − 1 leads to
    the o-th group after this one, to its port for the way back; ports beyond the last whole round stay free.
    """
    groups, routers, _, global_links = sizes
    graph = nx.Graph()
    graph.add_nodes_from(product(range(groups), range(routers)))
    for group in range(groups):
        graph.add_edges_from(combinations([(group, router) for router in range(routers)], 2))
    rounds = routers * global_links // (groups - 1) if groups > 1 else 0
    for group, further, turn in product(range(groups), range(1, groups), range(rounds)):
        port, back = turn * (groups - 1) + further - 1, turn * (groups - 1) + groups - further - 1
        graph.add_edge((group, port // global_links), ((group + further) % groups, back // global_links))
    return graph


def fat_tree_graph(levels: int, radix: int) -> Any:
    """Return a fat tree's wiring; nodes are named as in ``fat_tree``, each link is an edge.

    A group of the tree at level l is (radix/2)^l switches here, each wired to one switch of every part of
    the group, so that any two nodes are as far apart as in the tree.
    """
    nodes, switches = fat_tree(levels, radix)
    half = radix // 2
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    for switch in switches:
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


def check_trees(graph: Any, nodes: Sequence[str], path: str) -> int:
    """Return how many trees a graph of switches is, which no switch joins.

    Raises:
        InputError: a node is in none of them, or two ways lead to a node or switch.
    """
    for name in nodes:
        if name not in graph:
            raise InputError(f"node {name!r} has no link", path=path)
    if not nx.is_branching(graph):
        raise InputError("two ways lead to a node or switch: it is no tree", path=path)
    return int(nx.number_weakly_connected_components(graph))


def check_graph(graph: Any, nodes: Sequence[str], path: str) -> None:
    """Raise InputError unless every node stands in one connected graph without loops at a vertex."""
    for name in nodes:
        if name not in graph:
            raise InputError(f"node {name!r} has no link", path=path)
    if loop := next(nx.selfloop_edges(graph), None):
        raise InputError(f"{loop[0]!r} is linked to itself", path=path)
    reached = nx.node_connected_component(graph, nodes[0])
    if away := next((name for name in nodes if name not in reached), None):
        raise InputError(f"no way leads from {nodes[0]!r} to {away!r}", path=path)
    if stray := next((vertex for vertex in graph if vertex not in reached), None):
        raise InputError(f"no way leads from {nodes[0]!r} to {stray!r}", path=path)


def hop_table(graph: Any, vertices: Sequence[Any]) -> HopArray:
    """Return the fewest links between vertices of a connected graph, shape (vertices, vertices).

    Breadth first from all of them at once: a row of bits a vertex, who reaches it by now.

    Raises:
        InputError: they are more than MOST_MEASURED, or the graph's are more than MOST_VERTICES.
    """
    if len(vertices) > MOST_MEASURED or len(graph) > MOST_VERTICES:
        message = f"{len(vertices)} of {len(graph)} vertices: distances are known of {MOST_MEASURED} at most"
        raise InputError(message, path="topology")
    place = {vertex: index for index, vertex in enumerate(graph)}
    wanted = np.array([place[vertex] for vertex in vertices], np.int64)
    hops = np.full((len(vertices), len(vertices)), -1, np.int16)
    np.fill_diagonal(hops, 0)
    if len(graph) == 1:
        return hops
    neighbours = np.array([place[other] for vertex in graph for other in graph[vertex]], np.int64)
    starts = np.cumsum([0, *(len(graph[vertex]) for vertex in graph)])[:-1]
    reached = np.zeros((len(graph), (len(vertices) + 7) // 8), np.uint8)
    reached[wanted] = np.packbits(np.eye(len(vertices), dtype=np.uint8), axis=1)
    steps = 0
    while (hops < 0).any():
        steps += 1
        reached |= np.bitwise_or.reduceat(reached[neighbours], starts)
        now = np.unpackbits(reached[wanted], axis=1, count=len(vertices)).astype(bool)
        hops[now & (hops < 0)] = steps
    return hops
