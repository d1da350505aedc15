"""Levels and distances against networkx, which knows nothing of our arrays."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import InputError, Switch
from aucsched.topology.networks import fat_tree, graph_of, tree_graph
from aucsched.topology.tree import NO_COMMON_SWITCH, Topology, linear, tree


def random_tree(seed: int) -> tuple[list[str], list[Switch]]:
    """A random tree: leaves at any depth, nodes of a leaf anywhere in the snapshot's order."""
    rng = random.Random(seed)
    nodes = [f"n{index}" for index in range(rng.randint(1, 30))]
    shuffled = rng.sample(nodes, len(nodes))
    switches: list[Switch] = []
    roots: list[str] = []
    while shuffled:
        size = rng.randint(1, min(4, len(shuffled)))
        switches.append(Switch(name=f"s{len(switches)}", nodes=tuple(shuffled[:size])))
        roots.append(switches[-1].name)
        del shuffled[:size]
    while len(roots) > 1:
        below = rng.sample(roots, rng.randint(1, min(3, len(roots))))
        switches.append(Switch(name=f"s{len(switches)}", switches=tuple(below)))
        roots = [name for name in roots if name not in below] + [switches[-1].name]
    rng.shuffle(switches)
    return nodes, switches


def level_by_definition(switches: dict[str, Switch], name: str) -> int:
    return 1 + max((level_by_definition(switches, child) for child in switches[name].switches), default=-1)


@given(st.integers(0, 2**32))
def test_common_switches_and_hops_equal_networkx(seed: int) -> None:
    nodes, switches = random_tree(seed)
    topology = tree(switches, nodes)
    graph = tree_graph(tuple(switches))
    by_name = {switch.name: switch for switch in switches}
    for first, last in itertools.combinations_with_replacement(range(len(nodes)), 2):
        ancestor = nx.lowest_common_ancestor(graph, nodes[first], nodes[last])
        if first == last:
            ancestor = next(graph.predecessors(nodes[first]))
        expected = ancestor[1]
        pair = np.array([first]), np.array([last])
        found = int(topology.common_switch(*pair)[0])
        assert topology.names[found] == expected
        assert topology.level[found] == level_by_definition(by_name, expected)
        hops = nx.shortest_path_length(graph.to_undirected(as_view=True), nodes[first], nodes[last])
        assert int(topology.hops(*pair)[0]) == hops


@given(st.integers(0, 2**32))
def test_sets_of_nodes_meet_at_the_switch_their_ancestors_share(seed: int) -> None:
    """Soner: figure 7.2 level of a job's switch."""
    nodes, switches = random_tree(seed)
    topology = tree(switches, nodes)
    graph = tree_graph(tuple(switches))
    rng = random.Random(seed)
    sets = [rng.sample(range(len(nodes)), rng.randint(1, len(nodes))) for _ in range(5)]
    indptr = np.cumsum([0, *(len(chosen) for chosen in sets)])
    found = topology.common_switch_of_sets(indptr, np.concatenate([np.array(chosen) for chosen in sets]))
    leaves = topology.leaf_counts(indptr, np.concatenate([np.array(chosen) for chosen in sets]))
    for chosen, switch, leaf_count in zip(sets, found, leaves, strict=True):
        shared = set.intersection(*(nx.ancestors(graph, nodes[node]) for node in chosen))
        lowest = min(shared, key=lambda name: len(nx.descendants(graph, name)))
        named = ("switch", topology.names[switch])
        assert len(nx.descendants(graph, named)) == len(nx.descendants(graph, lowest))
        assert leaf_count == len({next(graph.predecessors(nodes[node])) for node in chosen})


@pytest.mark.parametrize(("levels", "radix"), [(1, 4), (2, 4), (3, 4), (2, 6)])
def test_the_tree_of_a_fat_tree_keeps_the_distances_of_its_wiring(levels: int, radix: int) -> None:
    """Soner: figures 2.3, 6.1 fat tree, tree."""
    nodes = [f"n{place}" for place in range(2 * (radix // 2) ** levels)]
    network = fat_tree(levels, radix, members=nodes)
    switches = network.switches
    topology = tree(switches, nodes)
    assert topology.max_level == levels - 1
    graph = graph_of(network)
    degrees = [degree for name, degree in graph.degree() if not isinstance(name, str)]
    assert set(degrees) == {radix}
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for first, last in itertools.product(range(len(nodes)), repeat=2):
        assert topology.hops(np.array([first]), np.array([last]))[0] == lengths[nodes[first]][nodes[last]]


def test_a_linear_topology_measures_the_distance_in_the_order() -> None:
    topology: Topology = linear(5)
    assert topology.max_level == 0
    assert topology.hops(np.array([1]), np.array([4])).tolist() == [3]


def test_two_roots_meet_one_level_above_the_higher() -> None:
    switches = [
        Switch(name="a", nodes=("n1",)),
        Switch(name="b", switches=("a",)),
        Switch(name="c", nodes=("n2",)),
    ]
    topology = tree(switches, ["n1", "n2"])
    switch = topology.common_switch(np.array([0]), np.array([1]))[0]
    assert topology.names[switch] == NO_COMMON_SWITCH
    assert topology.level[switch] == 2


@pytest.mark.parametrize(("levels", "radix"), [(0, 4), (2, 3), (2, 0)])
def test_impossible_fat_trees_are_refused(levels: int, radix: int) -> None:
    with pytest.raises(InputError):
        fat_tree(levels, radix, members=["n0"])
