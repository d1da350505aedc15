"""Fat trees built from equal switches: the tree that topology.conf describes, and the real wiring.

With switches of radix k and h levels, every switch below the top has k/2 ports down and k/2 up, a top
switch k down: 2·(k/2)^h nodes. Slurm's documentation advises to describe such a network by the plain tree
of its node groups; ``fat_tree`` builds that one, ``fat_tree_graph`` the redundant wiring it stands for.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx

from ..cluster.errors import OptionError
from ..cluster.nodes import Switch


def _check(levels: int, radix: int) -> None:
    if levels < 1:
        raise OptionError(f"levels: {levels} is below 1")
    if radix < 2 or radix % 2:  # noqa: PLR2004 - half the ports go up
        raise OptionError(f"radix: {radix} is not an even number of ports")


def _arities(levels: int, radix: int) -> list[int]:
    """Return how many parts every switch's node group has, leaves first."""
    return [radix // 2] * (levels - 1) + [radix]


def fat_tree(levels: int, radix: int) -> tuple[tuple[str, ...], tuple[Switch, ...]]:
    """Return node names and the switches of the tree that stands for a fat tree.

    Args:
        levels: switch levels, 1 or more; the root has level ``levels`` − 1.
        radix: ports of every switch, even.

    Returns:
        2·(radix/2)^levels node names ``n00…``, and switches ``s<level>-<number>``, leaves first.
    """
    _check(levels, radix)
    arities = _arities(levels, radix)
    count = 2 * (radix // 2) ** levels
    nodes = tuple(f"n{index:0{len(str(count - 1))}d}" for index in range(count))
    switches: list[Switch] = []
    below: list[str] = list(nodes)
    for level, arity in enumerate(arities):
        groups = [tuple(below[start : start + arity]) for start in range(0, len(below), arity)]
        below = [f"s{level}-{number}" for number in range(len(groups))]
        for name, group in zip(below, groups, strict=True):
            switches.append(
                Switch(name=name, nodes=group) if level == 0 else Switch(name=name, switches=group)
            )
    return nodes, tuple(switches)


def fat_tree_graph(levels: int, radix: int) -> Any:
    """Return the wiring as a networkx graph; nodes are named as in ``fat_tree``, each link is an edge.

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


def tree_graph(switches: tuple[Switch, ...]) -> Any:
    """Return a tree of switches as a networkx graph, edges from each switch to what is below it."""
    graph = nx.DiGraph()
    for switch in switches:
        graph.add_edges_from((switch.name, name) for name in (*switch.switches, *switch.nodes))
    return graph
