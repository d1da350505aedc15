"""Torus, dragonfly, fat trees and any graph: their orders, groups and distances against networkx."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched import InputError, Snapshot
from aucsched.formats.native.read import parse_snapshot
from aucsched.formats.native.write import snapshot_to_json
from aucsched.topology.graphs import graph_of, hop_table, linked_graph
from aucsched.topology.hilbert import curve_place, grid
from aucsched.topology.networks import torus
from aucsched.topology.tree import topology_of


def made(count: int, topology: dict[str, Any], **members: Any) -> Snapshot:
    nodes = [{"name": f"n[0-{count - 1}]" if count > 1 else "n0", "cores": 4}]
    document = {"format": "aucsched-snapshot/1", "nodes": nodes, "jobs": [], "topology": topology}
    return parse_snapshot(json.dumps(document | members).encode())


def same_distances(snapshot: Snapshot, graph: nx.Graph) -> None:
    topology = topology_of(snapshot)
    names = [node.name for node in snapshot.nodes]
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    first, last = (
        np.array(ends) for ends in zip(*itertools.product(range(len(names)), repeat=2), strict=True)
    )
    expected = [lengths[names[one]][names[other]] for one, other in zip(first, last, strict=True)]
    assert topology.hops(first, last).tolist() == expected


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2)])
def test_a_curve_visits_every_point_by_single_steps_cube_by_cube(dimensions: int, bits: int) -> None:
    points = grid((2**bits,) * dimensions)
    place = curve_place(points, bits)
    assert sorted(place.tolist()) == list(range(len(points)))
    way = points[np.argsort(place)]
    assert (np.abs(np.diff(way, axis=0)).sum(axis=1) == 1).all()
    for level in range(1, bits):
        cubes = {tuple(cube) for cube in np.column_stack([place >> (dimensions * level), points >> level])}
        assert len(cubes) == 2 ** (dimensions * (bits - level))


def test_the_curve_of_the_plane_is_hilberts() -> None:
    points = grid((2, 2))
    way = points[np.argsort(curve_place(points, 1))].tolist()
    assert way == [[0, 0], [0, 1], [1, 1], [1, 0]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_torus_has_the_distances_of_networkx_and_nested_groups(shape: list[int]) -> None:
    count = int(np.prod(shape))
    snapshot = made(count, {"kind": "torus", "shape": shape})
    if count > 1:
        wheel = nx.grid_graph(dim=[max(1, length) for length in reversed(shape)], periodic=True)
        if len(shape) == 1:
            wheel = nx.relabel_nodes(wheel, {place: (place,) for place in range(count)})
        number = {point: f"n{place}" for place, point in enumerate(itertools.product(*map(range, shape)))}
        reference = nx.relabel_nodes(wheel, number)
        reference.remove_edges_from(list(nx.selfloop_edges(reference)))
        assert snapshot.network is not None
        assert nx.utils.graphs_equal(nx.Graph(reference), graph_of(snapshot.network))
        same_distances(snapshot, reference)
    nested(snapshot)


def nested(snapshot: Snapshot) -> None:
    """Every switch's nodes are consecutive, and what is written reads equal."""
    topology = topology_of(snapshot)
    assert topology.in_snapshot_order
    assert parse_snapshot(snapshot_to_json(snapshot).encode()) == snapshot


def test_the_groups_of_a_torus_are_cubes_of_the_curve() -> None:
    topology = topology_of(made(1024, {"kind": "torus", "shape": [16, 8, 8]}))
    levels = [int((topology.level == level).sum()) for level in range(topology.max_level + 1)]
    assert levels == [128, 16, 2, 1]
    neighbours = topology.hops(np.arange(1023), np.arange(1, 1024))
    assert neighbours.tolist() == [1] * 1023


def test_a_torus_may_keep_its_numbering() -> None:
    snapshot = made(16, {"kind": "torus", "shape": [4, 4], "order": "members"})
    assert [node.name for node in snapshot.nodes] == [f"n{place}" for place in range(16)]
    nested(snapshot)


@pytest.mark.parametrize("sizes", [(9, 4, 2, 2), (5, 2, 1, 2), (3, 4, 2, 1), (1, 3, 2, 1), (2, 1, 4, 1)])
def test_a_dragonfly_has_the_distances_of_its_graph(sizes: tuple[int, ...]) -> None:
    names = ("groups", "routers", "nodes_per_router", "global_links")
    count = sizes[0] * sizes[1] * sizes[2]
    snapshot = made(count, {"kind": "dragonfly", **dict(zip(names, sizes, strict=True))})
    assert snapshot.network is not None
    graph = graph_of(snapshot.network)
    same_distances(snapshot, graph)
    nested(snapshot)
    groups, routers, _, links = sizes
    for vertex in graph:
        if not isinstance(vertex, str):
            away = [other for other in graph[vertex] if not isinstance(other, str) and other[0] != vertex[0]]
            assert len(away) <= links
    assert all(
        any(
            other[0] == to
            for router in range(routers)
            for other in graph[here, router]
            if not isinstance(other, str)
        )
        for here, to in itertools.permutations(range(groups), 2)
    )


@pytest.mark.parametrize(("levels", "radix"), [(1, 4), (2, 6), (3, 4)])
def test_a_fat_tree_is_its_tree_and_has_the_distances_of_its_wiring(levels: int, radix: int) -> None:
    count = 2 * (radix // 2) ** levels
    snapshot = made(count, {"kind": "fat-tree", "levels": levels, "radix": radix})
    assert snapshot.network is not None
    same_distances(snapshot, graph_of(snapshot.network))
    nested(snapshot)


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_any_graph_has_the_distances_of_networkx(seed: int) -> None:
    rng = random.Random(seed)
    count, switches = rng.randint(1, 30), rng.randint(1, 6)
    vertices = [*(f"n{place}" for place in range(count)), *(f"s{place}" for place in range(switches))]
    rng.shuffle(vertices)
    links = [[vertex, rng.choice(vertices[:place])] for place, vertex in enumerate(vertices) if place]
    links += [rng.sample(vertices, 2) for _ in range(rng.randint(0, 20))]
    snapshot = made(count, {"kind": "graph", "links": links})
    same_distances(snapshot, nx.Graph(links))
    nested(snapshot)


def test_a_wiring_given_as_a_graph_gets_the_fat_trees_own_groups() -> None:
    whole = made(16, {"kind": "fat-tree", "levels": 3, "radix": 4})
    assert whole.network is not None
    wires = [[str(one), str(other)] for one, other in graph_of(whole.network).edges()]
    names = {name: f"x{place}" for place, name in enumerate(sorted({end for wire in wires for end in wire}))}
    names |= {node.name: node.name for node in whole.nodes}
    again = made(16, {"kind": "graph", "links": [[names[one], names[other]] for one, other in wires]})
    groups = [
        {tuple(sorted(below(one, switch.name))) for switch in one.switches or ()} for one in (whole, again)
    ]
    assert groups[0] == groups[1]


def below(snapshot: Snapshot, name: str) -> list[str]:
    topology = topology_of(snapshot)
    place = topology.names.index(name)
    return [snapshot.nodes[node].name for node in topology.order[topology.low[place] : topology.high[place]]]


def test_a_graph_without_groups_is_halved_into_parts_of_neighbours() -> None:
    ring = [[f"n{place}", f"n{(place + 1) % 64}"] for place in range(64)]
    topology = topology_of(made(64, {"kind": "graph", "links": ring}))
    sizes = topology.high - topology.low
    assert [sorted(set(sizes[topology.level == level].tolist())) for level in (0, 1)] == [[8], [64]]
    for switch in np.flatnonzero(topology.level == 0):
        nodes = topology.order[topology.low[switch] : topology.high[switch]]
        first, last = np.triu_indices(8, 1)
        assert topology.hops(nodes[first], nodes[last]).max() <= 7


def test_a_table_of_hops_takes_any_vertices() -> None:
    graph = linked_graph([("a", "b"), ("b", "c"), ("c", "d")])
    assert hop_table(graph, ["d", "a"]).tolist() == [[0, 3], [3, 0]]


REFUSED = [
    ({"kind": "torus", "shape": [4, 5]}, "topology", "4x5 has 20 places, for 16 nodes"),
    ({"kind": "torus", "shape": [0, 4]}, "topology.shape[0]", "0 is below 1"),
    ({"kind": "torus", "shape": [2] * 7}, "topology.shape", "7 dimensions are not 1 to 6"),
    ({"kind": "torus"}, "topology.shape", "a torus needs shape"),
    ({"kind": "torus", "shape": [4, 4], "links": [["n0", "n1"]]}, "topology.links", "a torus has no links"),
    ({"kind": "torus", "shape": [4, 4], "nodes": "n[1-16]"}, "topology", "'n0' has no place on the torus"),
    (
        {"kind": "torus", "shape": [17], "nodes": "n[0-16]"},
        "topology.nodes",
        "'n16' is no node of the cluster",
    ),
    (
        {"kind": "dragonfly", "groups": 8, "routers": 2, "nodes_per_router": 1, "global_links": 3},
        "topology.global_links",
        "2 routers with 3 global links reach 6 groups, not the other 7",
    ),
    ({"kind": "fat-tree", "levels": 3, "radix": 5}, "topology.radix", "5 is not an even number of ports"),
    ({"kind": "fat-tree", "levels": 10**9, "radix": 2}, "topology.levels", "is above 32"),
    ({"kind": "graph", "links": []}, "topology.links", "a graph needs links"),
    ({"kind": "graph", "links": [["n[0-15]", "n0"]]}, "topology.links", "'n0' is linked to itself"),
    ({"kind": "graph", "links": [["n[0-14]", "s"]]}, "topology.links", "node 'n15' has no link"),
    (
        {"kind": "graph", "links": [["n[0-14]", "s"], ["n15", "t"]]},
        "topology.links",
        "no way leads from 'n0' to 'n15'",
    ),
    ({"kind": "linear", "shape": [16]}, "topology.shape", "the linear topology has no shape"),
]


@pytest.mark.parametrize(("topology", "path", "message"), REFUSED)
def test_what_is_no_network_is_refused_by_its_place(
    topology: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        made(16, topology)
    assert caught.value.path == path
    assert message in str(caught.value)


def test_a_node_stands_once_and_switches_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match="stands twice"):
        torus([2], ["a", "a"])
    network = made(4, {"kind": "torus", "shape": [4]}).network
    tree = made(4, {"kind": "tree", "switches": [{"name": "s", "nodes": "n[0-3]"}]})
    with pytest.raises(InputError, match="groups of its own"):
        Snapshot(nodes=tree.nodes, switches=tree.switches, network=network)
