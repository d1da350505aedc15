"""Slurm's topology units as networks: read, written, checked, put in groups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aucsched.cluster.errors import InputError
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.native.cluster_file import parse_snapshot, snapshot_to_json
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.topology_any import load_topology
from aucsched.topology.tree import topology_of

BLOCKS = [{"name": "b1", "nodes": "n[1-4]"}, {"name": "b2", "nodes": "n[5-8]"}]
RING = {"name": "r0", "nodes": "n[1-8]"}
TORUS = {
    "name": "t0",
    "dims": [2, 2, 2],
    "nodes": "n[1-8]",
    "placements": [{"dims": [2, 2, 1]}, {"dims": [1, 1, 1], "anchor_seed": [1, 0, 0]}],
}


def read(topology: dict[str, Any], nodes: str = "n[1-8]", **job: Any) -> Snapshot:
    document = {
        "format": "aucsched-snapshot/1",
        "nodes": [{"name": nodes, "cores": 4}],
        "topology": topology,
        "jobs": [{"id": "1", "priority": 3, "nodes": 4, "cores": 16, **job}] if job else [],
    }
    return parse_snapshot(json.dumps(document).encode())


@pytest.mark.parametrize(
    "topology",
    [
        {"kind": "blocks", "sizes": [4, 8], "blocks": BLOCKS},
        {"kind": "blocks", "blocks": [*BLOCKS[:1], {"name": "empty"}, BLOCKS[1]]},
        {"kind": "ring", "rings": [RING]},
        {"kind": "torus3d", "toruses": [TORUS]},
    ],
)
def test_units_are_written_as_they_were_read(topology: dict[str, Any]) -> None:
    snapshot = read(topology, segment=2, spread_segments=True, consolidate_segments=True)
    assert parse_snapshot(snapshot_to_json(snapshot).encode()) == snapshot


def test_groups_of_blocks_are_levels_and_count_empty_blocks() -> None:
    names = [{"name": f"b{place}", "nodes": f"n{place}"} for place in (1, 2, 4, 5)]
    listed = [*names[:2], {"name": "b3"}, *names[2:]]
    snapshot = read({"kind": "blocks", "sizes": [1, 2, 4], "blocks": listed}, "n[1-2],n[4-6]")
    switches = {switch.name: (switch.nodes, switch.switches) for switch in snapshot.switches or ()}
    assert switches["b1-b2"] == ((), ("b1", "b2"))
    assert switches["b1-b4"] == ((), ("b1-b2", "b4"))
    assert switches["(all)"] == ((), ("b1-b4", "b5"))
    assert switches["(no block)"] == (("n6",), ())
    assert topology_of(snapshot).max_level == 4


def test_sizes_on_a_line() -> None:
    laid = load_topology("blocks:3x18", None, Notes()).laid
    assert laid.network is not None
    assert laid.network.sizes == (18, 36, 72, 144, 288)
    assert [len(unit.nodes) for unit in laid.network.units] == [18, 18, 18]


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ({"sizes": [4, 12], "blocks": BLOCKS}, r"topology.sizes\[1\]: 12 is not 4 times a power of two"),
        ({"sizes": [4, 4 << 16], "blocks": BLOCKS}, r"sizes\[1\]: 262144 is not 4 times .* up to 2\^15"),
        ({"sizes": [0], "blocks": BLOCKS}, r"topology.sizes\[0\]: 0 is below 1"),
        ({"blocks": [{"name": "b1"}]}, "topology.blocks: none has a node"),
        ({"blocks": [BLOCKS[0], BLOCKS[0]]}, r"blocks\[1\].name: 'b1' is listed at blocks\[0\] already"),
        ({"blocks": [BLOCKS[0], {"name": "b", "nodes": "n4"}]}, r"\[1\].nodes: 'n4' is in 'b1' already"),
        ({"blocks": [{"name": "b", "nodes": "n9"}]}, r"'n9' is not a node of the cluster"),
        ({"blocks": [{"nodes": "n1"}]}, "name"),
        ({"blocks": BLOCKS, "nodes": "n1"}, "topology.nodes: a blocks has no nodes"),
        ({"kind": "ring", "rings": [{"name": "r"}, RING]}, r"topology.rings\[0\].nodes: it has no node"),
        ({"kind": "torus3d", "toruses": [{**TORUS, "dims": [2, 2]}]}, r"toruses\[0\].dims: 2 numbers"),
        ({"kind": "torus3d", "toruses": [{**TORUS, "dims": [2, 2, 3]}]}, "2x2x3 has 12 places, for 8 nodes"),
        (
            {"kind": "torus3d", "toruses": [{**TORUS, "placements": [{"dims": [3, 1, 1]}]}]},
            r"toruses\[0\].placements\[0\].dims: 3x1x1 is larger than the torus",
        ),
    ],
)
def test_what_is_no_topology_is_refused_by_its_path(topology: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({"kind": "blocks", **topology})


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"segment": 0}, r"jobs\[0\].segment: 0 is below 1"),
        ({"segment": 3}, r"jobs\[0\].segment: 3 does not divide the 4 nodes"),
        ({"spread_segments": True}, r"jobs\[0\].spread_segments: segment is not given"),
    ],
)
def test_segments_divide_a_job(job: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({"kind": "blocks", "blocks": BLOCKS}, **job)
