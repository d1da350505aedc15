"""``aucsched check``: every figure against a count of its own, and the lines a person reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import document, snapshot, tree
from support.run import aucsched, refused

from aucsched import load_snapshot
from aucsched.auction.explain.snapshot_report import report_on

EXAMPLE = Path(__file__).parents[3] / "examples" / "emulated-1408-full.json"

NODES: list[dict[str, Any]] = [
    {"name": "n[1-2]", "cores": 8, "memory_mib": 100, "gres": {"gpu:a": 2}, "partitions": ["batch"]},
    {"name": "n3", "cores": 8, "gres": {"gpu:b": 1}, "state": "drained"},
    {"name": "n4", "cores": 4, "state": "mixed"},
]
JOBS: list[dict[str, Any]] = [
    {"cores": 1, "hold": "JobHeldUser"},
    {"cores": 2, "nodes": 2, "contiguous": True},
    {"cores_per_node": 2, "nodes": 2, "gres_per_node": {"gpu": 1}, "exclusive": True, "time_limit_s": 60},
    {"cores": 1, "unsupported": ["burst buffer"], "expected_start_time": "2026-11-20T12:00:00Z"},
    {"cores": 1, "unsupported": ["burst buffer", "tmp disk"]},
    {"cores": 1, "priority": 0},
    {"cores": 1, "hold": "BeginTime"},
]
MEMBERS: dict[str, Any] = {
    "running": [
        {"id": "R1", "nodes": {"n4": {"cores": 3}}},
        {"id": "R2", "nodes": {"n1": {"cores": 2, "gres": {"gpu:a": 1}}}, "end_time": "2026-11-20T11:00:00Z"},
    ],
    "licenses": {"matlab": {"total": 4, "free": 3}},
    "partitions": [{"name": "night", "nodes": "n[3-4]", "state": "down"}],
    "reservations": [
        {"name": "r", "nodes": "n[1-2]", "start": "2026-11-20T12:00:00Z", "end": "2026-11-20T13:00:00Z"}
    ],
    "notes": ["made by hand", "and kept"],
    "topology": tree(["n1", "n2", "n3", "n4"], 2),
}


def test_every_figure() -> None:
    report = report_on(snapshot(NODES, JOBS, **MEMBERS))
    assert report["nodes"]["by_state"] == {"idle": 2, "drained": 1, "mixed": 1}
    assert report["amounts"] == {
        "cores": {"total": 28, "free": 15},
        "memory_mib": {"total": 200, "free": 200},
        "gpu:a": {"total": 4, "free": 3},
        "gpu:b": {"total": 1, "free": 0},
    }
    assert report["switches_by_level"] == {"0": 2, "1": 1}
    assert report["partitions"] == {
        "night": {"nodes": 2, "state": "down"},
        "batch": {"nodes": 2, "state": "up"},
    }
    assert report["jobs"]["by_type"] == {"cores": 5, "nodes and cores": 1, "nodes and cores per node": 1}
    present = {name: count for name, count in report["jobs"]["by_member"].items() if count}
    assert present == {
        "held": 2,
        "not eligible": 1,
        "contiguous": 1,
        "exclusive": 1,
        "gres": 1,
        "no time limit": 6,
        "expected_start_time": 1,
    }
    assert report["jobs"]["unsupported"] == {"burst buffer": 2, "tmp disk": 1}
    assert report["running"] == {"count": 2, "without_end": 1}
    assert report["licenses"] == {"matlab": {"total": 4, "free": 3}}
    assert report["reservations"] == {"r": "n[1-2]"}
    assert report["notes"] == ["made by hand", "and kept"]


def test_what_a_person_reads() -> None:
    done = aucsched("check", "-", stdin=json.dumps(document(NODES, JOBS, **MEMBERS)))
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "nodes            4: 2 idle, 1 drained, 1 mixed",
        "cores            15 of 28 free on nodes that take jobs",
        "gpu:b            0 of 1 free on nodes that take jobs",
        "switches         2 leaves, 1 at level 1",
        "partitions       night (2 nodes, down), batch (2 nodes)",
        "running          2 jobs, 1 of them without an estimated end",
        "not expressible  burst buffer (2 jobs)",
        "note             and kept",
    ):
        assert line in done.stdout.splitlines()


def test_what_no_node_has_is_named_with_its_jobs() -> None:
    nodes = [{"name": "n1", "cores": 8, "gres": {"gpu:a": 2}, "features": ["ib"], "partitions": ["p"]}]
    jobs: list[dict[str, Any]] = [
        {"cores": 1, "gres_per_node": {"gpu:h100": 1}},
        {"cores": 1, "features": ["fast"]},
        {"cores": 1, "features": ["fast"], "priority": 0},
        {"cores": 1, "partition": "q"},
        {"cores": 1, "partition": "p", "features": ["ib"], "gres_per_node": {"gpu": 1}},
    ]
    given = document(nodes, jobs, partitions=[{"name": "p"}, {"name": "q"}])
    found = json.loads(aucsched("check", "-", "--format", "json", stdin=json.dumps(given)).stdout)
    assert found["jobs"]["ineligible"] == {
        "no node has the features fast": 2,
        "no node that it may use has the gres gpu:h100": 1,
        "no node is in partition q": 1,
    }
    lines = aucsched("check", "-", stdin=json.dumps(given)).stdout.splitlines()
    assert "ineligible  no node has the features fast (2 jobs)" in lines


def test_a_linear_snapshot_without_anything() -> None:
    done = aucsched("check", "-", stdin=json.dumps(document([{"name": "n1", "cores": 1}], [])))
    assert "none: nodes in a row" in done.stdout
    assert "note        none" in done.stdout


def test_the_example_and_its_json() -> None:
    answer = json.loads(aucsched("check", EXAMPLE, "--format", "json").stdout)
    assert answer == json.loads(json.dumps(report_on(load_snapshot(EXAMPLE))))
    assert answer["nodes"] == {"count": 1408, "by_state": {"allocated": 1402, "mixed": 6}}
    assert answer["amounts"]["cores"] == {"total": 16896, "free": 32}
    assert answer["switches_by_level"] == {"0": 88, "1": 11, "2": 1}
    assert answer["jobs"]["pending"] == 66


@given(st.integers(0, 10**6))
def test_random_snapshots_add_up(seed: int) -> None:
    cluster = random_snapshot(seed)
    report = report_on(cluster)
    assert sum(report["nodes"]["by_state"].values()) == len(cluster.nodes)
    assert sum(report["jobs"]["by_type"].values()) == len(cluster.jobs)
    assert report["amounts"]["cores"]["total"] == sum(node.total.cores for node in cluster.nodes)
    assert all(amount["free"] <= amount["total"] for amount in report["amounts"].values())


def test_bad_input_is_refused() -> None:
    assert "jobs[0]" in refused("check", "-", stdin=json.dumps(document(NODES, [{"cores": 0}])))
    assert refused("check", "absent.json") == "absent.json: No such file or directory"
