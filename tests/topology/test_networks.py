"""Torus, dragonfly, fat trees and any graph: their orders, groups and distances against networkx."""

from __future__ import annotations

import itertools
import json
import random
import tracemalloc
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched import InputError, Snapshot
from aucsched.auction.explain.snapshot_report import network_report
from aucsched.formats.native.cluster_file import parse_snapshot, snapshot_to_json
from aucsched.topology import distances
from aucsched.topology.distances import MOST_LINKS, hop_table
from aucsched.topology.hilbert import curve_place, grid
from aucsched.topology.networks import dragonfly, extent, graph_of, torus
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
    """Soner: torus by a Hilbert curve (9.1), dragonfly."""
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
    """Soner: torus by a Hilbert curve (9.1), dragonfly."""
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
    links = np.array([[0, 1], [1, 2], [2, 3], [4, 4]])
    assert hop_table(links, 5, np.array([3, 0])).tolist() == [[0, 3], [3, 0]]
    assert hop_table(links, 5, np.array([0, 4])).tolist() == [[0, -1], [-1, 0]]


@pytest.mark.parametrize("kind", ["path", "lollipop", "sparse", "dense"])
def test_steps_of_few_and_of_many_pairs_find_the_distances_of_networkx(kind: str) -> None:
    graph = {
        "path": nx.path_graph(300),
        "lollipop": nx.lollipop_graph(60, 200),
        "sparse": nx.connected_watts_strogatz_graph(200, 4, 0.1, seed=3),
        "dense": nx.gnp_random_graph(80, 0.5, seed=3),
    }[kind]
    wanted = np.arange(0, len(graph), 2)
    found = hop_table(np.array(graph.edges()), len(graph), wanted)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    assert found.tolist() == [[lengths[one][other] for other in wanted] for one in wanted]


def test_a_long_way_follows_each_link_of_each_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[int] = []
    kept = distances.BreadthFirst.reach

    def note(search: Any, pairs: Any, steps: int) -> None:
        followed.append(len(pairs))
        kept(search, pairs, steps)

    monkeypatch.setattr(distances.BreadthFirst, "reach", note)
    count = 2000
    links = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    assert hop_table(links, count, np.arange(count)).max() == count - 1
    # Every pair once: no step was one over all links and vertices.
    assert sum(followed) == count * count


def test_a_graph_of_too_many_links_is_refused_before_they_are_made() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=f"more than {MOST_LINKS} links"):
            made(2, {"kind": "graph", "links": [["a[1-10000]", "b[1-10000]"]]})
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_a_dragonfly_is_described_without_its_millions_of_links() -> None:
    names = tuple(f"n{place}" for place in range(40_000))
    network = dragonfly(20, 2000, 1, 1, members=names)
    tracemalloc.start()
    try:
        report = network_report(names, None, network)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    assert report.links == 40_000 + 20 * (2000 * 1999 // 2) + 190 * (2000 // 19)


@pytest.mark.parametrize(
    "topology",
    [
        *({"kind": "torus", "shape": shape} for shape in ([16], [2, 8], [4, 4, 1], [2, 2, 2, 2])),
        {"kind": "dragonfly", "groups": 2, "routers": 2, "nodes_per_router": 4, "global_links": 3},
        {"kind": "dragonfly", "groups": 4, "routers": 4, "nodes_per_router": 1, "global_links": 2},
        {"kind": "fat-tree", "levels": 3, "radix": 4},
        {"kind": "graph", "links": [["n[0-15]", "s"], ["n0", "n1"]]},
    ],
)
def test_vertices_and_links_are_those_of_the_graph(topology: dict[str, Any]) -> None:
    network = made(16, topology).network
    assert network is not None
    graph = graph_of(network)
    assert extent(network) == (len(graph), graph.number_of_edges())


def test_means_of_levels_are_those_of_all_pairs() -> None:
    snapshot = made(
        72, {"kind": "dragonfly", "groups": 9, "routers": 4, "nodes_per_router": 2, "global_links": 2}
    )
    report = network_report([node.name for node in snapshot.nodes], snapshot.switches, snapshot.network)
    topology = topology_of(snapshot)
    for level in report.levels:
        links = [
            int(topology.hops(np.array([one]), np.array([other]))[0])
            for switch in np.flatnonzero(topology.level == level.level)
            for one, other in itertools.combinations(
                topology.order[topology.low[switch] : topology.high[switch]].tolist(), 2
            )
        ]
        assert (level.mean_hops, level.most_hops) == (sum(links) / len(links), max(links))


def test_groups_of_many_distances_nest() -> None:
    """Nodes at the ends of a comb whose teeth all end equally deep: each tooth is a group beside the next."""
    teeth = 12
    links = []
    for tooth in range(teeth):
        way = [f"s{tooth}", *(f"t{tooth}-{step}" for step in range(tooth)), f"n{tooth}"]
        links += [list(pair) for pair in itertools.pairwise(way)]
        links += [[f"s{tooth}", f"s{tooth + 1}"]] if tooth + 1 < teeth else []
    topology = topology_of(made(teeth, {"kind": "graph", "links": links}))
    sizes = topology.high - topology.low
    assert sorted(set(sizes.tolist())) == list(range(1, teeth + 1))


def test_switches_too_deep_for_any_cluster_are_refused() -> None:
    rows = [{"name": f"s{place}", "switches": f"s{place + 1}"} for place in range(20_000)]
    switches = [*rows, {"name": "s20000", "nodes": "n0"}]
    with pytest.raises(InputError, match="101 switches are one above another, more than 100"):
        made(1, {"kind": "tree", "switches": switches})
    with pytest.raises(InputError, match="loop") as caught:
        made(1, {"kind": "tree", "switches": [*rows, {"name": "s20000", "switches": "s0"}]})
    assert len(str(caught.value)) < 300


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
        "'n16' is not a node of the cluster",
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
    with pytest.raises(InputError, match="is listed twice"):
        torus([2], ["a", "a"])
    network = made(4, {"kind": "torus", "shape": [4]}).network
    tree = made(4, {"kind": "tree", "switches": [{"name": "s", "nodes": "n[0-3]"}]})
    with pytest.raises(InputError, match="groups of its own"):
        Snapshot(nodes=tree.nodes, switches=tree.switches, network=network)
