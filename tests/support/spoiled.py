"""A good snapshot and a good workload, and the ways in which tests spoil them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": "2026-11-20T09:30:00Z",
    "nodes": [
        {
            "name": "n[01-16]",
            "cores": 8,
            "memory_mib": 48000,
            "gres": {"gpu:a100": 2},
            "partitions": ["batch"],
        },
        {"name": "n17", "cores": 8, "free_cores": 3, "gres": {"gpu:a100": 2}, "free_gres": {"gpu:a100": 0}},
    ],
    "topology": {
        "kind": "tree",
        "switches": [
            {"name": "leaf1", "nodes": "n[01-16]"},
            {"name": "leaf2", "nodes": "n17"},
            {"name": "core", "switches": "leaf[1-2]"},
        ],
    },
    "jobs": [
        {"id": "1", "priority": 100, "cores": 64},
        {"id": "2", "priority": 99, "nodes": 4, "cores_per_node": 2, "gres_per_node": {"gpu": 1}},
        {"id": "3", "priority": 98, "nodes": [2, 8], "cores": 16, "gres_per_node": {"gpu:a100": [1, 2]}},
    ],
    "running": [
        {
            "id": "9",
            "nodes": {"n17": {"cores": 5, "gres": {"gpu:a100": 2}}},
            "end_time": "2026-11-20T11:00:00Z",
        }
    ],
    "licenses": {"matlab": {"total": 4, "free": 2}},
    "partitions": [{"name": "batch", "nodes": "n[01-17]", "max_nodes": 8}],
    "reservations": [
        {
            "name": "r",
            "nodes": "n01",
            "start": "2026-11-20T12:00:00Z",
            "end": "2026-11-20T13:00:00Z",
            "users": ["ann"],
        }
    ],
    "notes": ["made by hand"],
}

WORKLOAD: dict[str, Any] = {
    "format": "aucsched-workload/1",
    "name": "by hand",
    "nodes": [
        {"name": "n[01-04]", "cores": 8, "memory_mib": 48000, "gres": {"gpu": 2}},
        {"name": "n05", "cores": 8, "state": "drained", "features": ["nvme"], "partitions": ["batch"]},
    ],
    "topology": {
        "kind": "tree",
        "switches": [
            {"name": "leaf1", "nodes": "n[01-03]"},
            {"name": "leaf2", "nodes": "n[04-05]"},
            {"name": "core", "switches": "leaf[1-2]"},
        ],
    },
    "jobs": [
        {"id": "1", "priority": 100, "cores": 16, "arrival_s": 0, "run_time_s": 60, "time_limit_s": 90},
        {
            "id": "2",
            "priority": 99,
            "nodes": [1, 2],
            "cores": 4,
            "gres_per_node": {"gpu": [1, 2]},
            "licenses": {"matlab": 1},
            "user": "ann",
            "arrival_s": 12.5,
            "run_time_s": 600.25,
            "gres_run_time_factor": 0.75,
        },
    ],
    "licenses": {"matlab": {"total": 4}},
    "partitions": [{"name": "batch", "nodes": "n[01-05]"}],
    "notes": ["made by hand"],
}

Spoil = Callable[[dict[str, Any]], object]


def put(path: str, value: Any) -> Spoil:
    """Return a spoiler that sets the member at a path like jobs/2/nodes."""

    def spoil(document: dict[str, Any]) -> None:
        place, last = _found(document, path)
        place[last] = value

    return spoil


def _found(document: dict[str, Any], path: str) -> tuple[Any, str | int]:
    """Return what holds the member at a path, and its name or place there."""
    *way, last = (int(step) if step.isdigit() else step for step in path.split("/"))
    place: Any = document
    for step in way:
        place = place[step]
    return place, last


def drop(path: str) -> Spoil:
    def spoil(document: dict[str, Any]) -> None:
        place, last = _found(document, path)
        del place[last]

    return spoil


WRONG_GRES = {"n1": {"cores": 1}, "n2": {"cores": 1, "gres": {"a": 1, "b": "x"}}}
MALFORMED: list[tuple[Spoil, str, str]] = [
    (put("format", "aucsched-snapshot/9"), "format", "'aucsched-snapshot/9'"),
    (drop("nodes"), "", "'nodes' is missing"),
    (put("nodes", []), "nodes", "at least one node"),
    (put("jobs/0/colour", "red"), "jobs[0]", "unknown member 'colour'"),
    (put("licenses", {"a": {"total": 1}, "b": {"x": 1}}), "licenses.b:", "unknown member 'x'"),
    (put("licenses", {"a": {"total": 1}, "b": {}, "c": {}}), "licenses.b:", "'total' is missing"),
    (put("licenses", {"a": {"total": 1}, "b": {"total": "x"}}), "licenses.b.total:", '"x" is not an integer'),
    (put("running/0/nodes", WRONG_GRES), "running[0].nodes.n2.gres.b:", '"x" is not an integer'),
    (put("jobs/0/cores", "many"), "jobs[0].cores", '"many" is not an integer'),
    (put("jobs/0/cores", 2.5), "jobs[0].cores", "2.5 is not an integer"),
    (put("jobs/0/cores", 0), "jobs[0].cores", "0 is below 1"),
    (put("jobs/0/cores", 10**15), "jobs[0].cores", "above"),
    (put("jobs/0/contiguous", 1), "jobs[0].contiguous", "1 is not true or false"),
    (put("jobs/0/id", 1), "jobs[0].id", "1 is not a text"),
    (drop("jobs/0/id"), "jobs[0]", "'id' is missing"),
    (drop("jobs/0/priority"), "jobs[0]", "'priority' is missing"),
    (put("jobs/0/priority", "7"), "jobs[0].priority", "'7' is not a number"),
    (put("jobs/0/priority", -1), "jobs[0].priority", "-1 is below 0"),
    (put("jobs/0/priority", float("nan")), "jobs[0].priority", "NaN is not a finite number"),
    (put("jobs/0/priority", float("inf")), "jobs[0].priority", "Infinity is not a finite number"),
    (put("jobs/0/time_limit_s", float("-inf")), "jobs[0].time_limit_s", "-Infinity is not a finite number"),
    (drop("jobs/0/cores"), "jobs[0]", "needs cores"),
    (put("jobs/1/id", "1"), "jobs[1].id", "'1' is listed at jobs[0] already"),
    (put("jobs/1/id", "9"), "jobs[1].id", "'9' is running too"),
    (put("jobs/1/gres_per_node/gpu", -1), "jobs[1].gres_per_node.gpu", "-1 is below 1"),
    (put("jobs/1/gres_per_node/gpu", [3, 1]), "jobs[1].gres_per_node.gpu", "[3, 1] is empty"),
    (put("jobs/1/gres_per_node/gpu", [1]), "jobs[1].gres_per_node.gpu", "[1] is not a list of 2 entries"),
    (put("jobs/1/gres_per_node/gpu", "2"), "jobs[1].gres_per_node.gpu", '"2" is not'),
    (put("jobs/2/nodes", [0, 2]), "jobs[2].nodes[0]", "0 is below 1"),
    (put("jobs/2/cores", 1), "jobs[2].cores", "1 is below the 2 nodes"),
    (put("jobs/1/cores", 9), "jobs[1].cores", "9 is not a multiple of cores_per_node 2"),
    (put("jobs/0/cores_per_task", 7), "jobs[0].cores", "64 is not a multiple of cores_per_task 7"),
    (put("jobs/0/required_nodes", "n99"), "jobs[0].required_nodes", "'n99' is not a node"),
    (put("jobs/0/excluded_nodes", "n[1-"), "jobs[0].excluded_nodes", "'n[1-' is not a hostlist"),
    (put("jobs/0/required_nodes", "@all"), "jobs[0].required_nodes", "'@all' is not a hostlist"),
    (put("jobs/0/licenses", {"maple": 1}), "jobs[0].licenses.maple", "'maple' is not a licence"),
    (put("jobs/0/submit_time", "yesterday"), "jobs[0].submit_time", "'yesterday' is not an ISO 8601 time"),
    (put("jobs/0/kind", "liquid"), "jobs[0].kind", "'liquid' is not one of rigid, moldable"),
    (put("nodes/0/name", "n[1-999999999]"), "nodes[0].name", "999999999 names"),
    (put("nodes/0/name", "n[16-01]"), "nodes[0].name", "counts backwards"),
    (put("nodes/0/name", "n[01-03,02]"), "nodes[0].name", "twice"),
    (put("nodes/0/name", "n[01-17]"), "nodes[1].name", "'n17' is listed at nodes[0] already"),
    (put("nodes/0/state", "asleep"), "nodes[0].state", "'asleep' is not one of idle, mixed"),
    (put("nodes/0/cores", 0), "nodes[0].cores", "0 is below 1"),
    (put("nodes/1/free_cores", 9), "nodes[1].free_cores", "9 is above the node's 8"),
    (put("nodes/1/free_cores", 4), "nodes[1].free_cores", "4 is above the 3 that running jobs leave"),
    (put("nodes/1/free_gres", {"gpu:a100": 3}), "nodes[1].free_gres.gpu:a100", "3 is above the node's 2"),
    (put("nodes/1/free_gres", {"gpu:v100": 1}), "nodes[1].free_gres.gpu:v100", "no such gres"),
    (put("nodes/1/free_memory_mib", 5), "nodes[1].free_memory_mib", "without memory_mib"),
    (put("topology/kind", "trous"), "topology.kind", "'trous' is not one of linear, tree, torus, dragonfly"),
    (put("topology/order", "curve"), "topology.order", "'curve' is not one of hilbert, members"),
    (
        put("topology/switches/2/switches", ["leaf1", "leaf2"]),
        "topology.switches[2].switches",
        '["leaf1", "leaf2"] is not a text of names with commas and ranges: "n[1-4],n7"',
    ),
    (put("topology/switches/0/nodes", "n[01-15]"), "topology.switches", "'n16' is on no leaf"),
    (
        put("topology/switches/1/nodes", "n[16-17]"),
        "topology.switches[1].nodes",
        "'n16' is on leaf 'leaf1'",
    ),
    (put("topology/switches/1/nodes", "n[17-18]"), "topology.switches[1].nodes", "'n18' is not a node"),
    (
        put("topology/switches/2/switches", "leaf[1-3]"),
        "topology.switches[2].switches",
        "'leaf3' is not a switch",
    ),
    (put("topology/switches/1", {"name": "leaf2", "switches": "core"}), "topology.switches", "loop"),
    (put("topology/switches/1/name", "leaf1"), "topology.switches[1].name", "'leaf1' is listed at"),
    (put("running/0/nodes/n17/cores", 9), "running[0].nodes.n17.cores", "hold 9 cores of 8"),
    (put("running/0/nodes/n17/gres", {"gpu:a100": 3}), "running[0].nodes.n17.gres.gpu:a100", "hold 3 of 2"),
    (put("running/0/nodes", {"n99": {"cores": 1}}), "running[0].nodes.n99", "'n99' is not a node"),
    (put("running/0/nodes", {}), "running[0].nodes", "no node"),
    (put("licenses/matlab/free", 5), "licenses.matlab.free", "5 is above the total 4"),
    (put("partitions/0/nodes", "n[01-99]"), "partitions[0].nodes", "'n18' is not a node"),
    (put("reservations/0/end", "2026-11-20T12:00:00Z"), "reservations[0].end", "not after the start"),
]
