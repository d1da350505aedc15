"""Malformed snapshots and options: each one clear line that names the place, exit 2, nothing written."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.run import aucsched, refused

from aucsched import InputError, load_snapshot
from aucsched.formats.native import parse_snapshot

GOOD: dict[str, Any] = {
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


def test_the_good_one_is_good() -> None:
    snapshot = parse_snapshot(json.dumps(GOOD).encode())
    assert len(snapshot.nodes) == 17
    assert snapshot.nodes[16].free.cores == 3


Spoil = Callable[[dict[str, Any]], object]


def put(path: str, value: Any) -> Spoil:
    """Return a spoiler that sets the member at a path like jobs/2/nodes."""

    def spoil(document: dict[str, Any]) -> None:
        *way, last = path.split("/")
        place: Any = document
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        place[int(last) if last.isdigit() else last] = value

    return spoil


def drop(path: str) -> Spoil:
    def spoil(document: dict[str, Any]) -> None:
        *way, last = path.split("/")
        place: Any = document
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        del place[last]

    return spoil


#: (what is spoilt, where the line says it is, what it says)
MALFORMED: list[tuple[Spoil, str, str]] = [
    (put("format", "aucsched-snapshot/9"), "format", "'aucsched-snapshot/9'"),
    (drop("nodes"), "", "'nodes' is missing"),
    (put("nodes", []), "nodes", "at least one node"),
    (put("jobs/0/colour", "red"), "jobs[0]", "unknown member 'colour'"),
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
    (put("jobs/1/id", "1"), "jobs[1].id", "'1' stands at jobs[0] already"),
    (put("jobs/1/id", "9"), "jobs[1].id", "'9' is running too"),
    (put("jobs/1/gres_per_node/gpu", -1), "jobs[1].gres_per_node.gpu", "-1 is below 1"),
    (put("jobs/1/gres_per_node/gpu", [3, 1]), "jobs[1].gres_per_node.gpu", "[3, 1] is empty"),
    (put("jobs/1/gres_per_node/gpu", [1]), "jobs[1].gres_per_node.gpu", "[1] is not a list of 2 entries"),
    (put("jobs/1/gres_per_node/gpu", "2"), "jobs[1].gres_per_node.gpu", '"2" is not'),
    (put("jobs/2/nodes", [0, 2]), "jobs[2].nodes[0]", "0 is below 1"),
    (put("jobs/2/cores", 1), "jobs[2].cores", "1 is below the 2 nodes"),
    (put("jobs/1/cores", 9), "jobs[1].cores", "9 is no multiple of cores_per_node 2"),
    (put("jobs/0/cores_per_task", 7), "jobs[0].cores", "64 is no multiple of cores_per_task 7"),
    (put("jobs/0/required_nodes", "n99"), "jobs[0].required_nodes", "'n99' is no node"),
    (put("jobs/0/excluded_nodes", "n[1-"), "jobs[0].excluded_nodes", "'n[1-' is not a hostlist"),
    (put("jobs/0/required_nodes", "@all"), "jobs[0].required_nodes", "'@all' is not a hostlist"),
    (put("jobs/0/licenses", {"maple": 1}), "jobs[0].licenses.maple", "'maple' is no licence"),
    (put("jobs/0/submit_time", "yesterday"), "jobs[0].submit_time", "'yesterday' is not an ISO 8601 time"),
    (put("jobs/0/kind", "liquid"), "jobs[0].kind", "'liquid' is not one of rigid, moldable"),
    (put("nodes/0/name", "n[1-999999999]"), "nodes[0].name", "999999999 names"),
    (put("nodes/0/name", "n[16-01]"), "nodes[0].name", "counts backwards"),
    (put("nodes/0/name", "n[01-03,02]"), "nodes[0].name", "twice"),
    (put("nodes/0/name", "n[01-17]"), "nodes[1].name", "'n17' stands at nodes[0] already"),
    (put("nodes/0/state", "asleep"), "nodes[0].state", "'asleep' is not one of idle, mixed"),
    (put("nodes/0/cores", 0), "nodes[0].cores", "0 is below 1"),
    (put("nodes/1/free_cores", 9), "nodes[1].free_cores", "9 is above the node's 8"),
    (put("nodes/1/free_cores", 4), "nodes[1].free_cores", "4 is above the 3 that running jobs leave"),
    (put("nodes/1/free_gres", {"gpu:a100": 3}), "nodes[1].free_gres.gpu:a100", "3 is above the node's 2"),
    (put("nodes/1/free_gres", {"gpu:v100": 1}), "nodes[1].free_gres.gpu:v100", "no such gres"),
    (put("nodes/1/free_memory_mib", 5), "nodes[1].free_memory_mib", "without memory_mib"),
    (put("topology/kind", "torus"), "topology.kind", "torus"),
    (put("topology/switches/0/nodes", "n[01-15]"), "topology.switches", "'n16' stands on no leaf"),
    (
        put("topology/switches/1/nodes", "n[16-17]"),
        "topology.switches[1].nodes",
        "'n16' stands on leaf 'leaf1'",
    ),
    (put("topology/switches/1/nodes", "n[17-18]"), "topology.switches[1].nodes", "'n18' is no node"),
    (
        put("topology/switches/2/switches", "leaf[1-3]"),
        "topology.switches[2].switches",
        "'leaf3' is no switch",
    ),
    (put("topology/switches/1", {"name": "leaf2", "switches": "core"}), "topology.switches", "loop"),
    (put("topology/switches/1/name", "leaf1"), "topology.switches[1].name", "'leaf1' stands at"),
    (put("running/0/nodes/n17/cores", 9), "running[0].nodes.n17.cores", "hold 9 cores of 8"),
    (put("running/0/nodes/n17/gres", {"gpu:a100": 3}), "running[0].nodes.n17.gres.gpu:a100", "hold 3 of 2"),
    (put("running/0/nodes", {"n99": {"cores": 1}}), "running[0].nodes.n99", "'n99' is no node"),
    (put("running/0/nodes", {}), "running[0].nodes", "no node"),
    (put("licenses/matlab/free", 5), "licenses.matlab.free", "5 is above the total 4"),
    (put("partitions/0/nodes", "n[01-99]"), "partitions[0].nodes", "'n18' is no node"),
    (put("reservations/0/end", "2026-11-20T12:00:00Z"), "reservations[0].end", "not after the start"),
]


@pytest.mark.parametrize(("spoil", "path", "message"), MALFORMED)
def test_a_malformed_snapshot_is_one_line_with_file_path_and_value(
    spoil: Spoil, path: str, message: str, tmp_path: Path
) -> None:
    document = copy.deepcopy(GOOD)
    spoil(document)
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        load_snapshot(file)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{file}: {path}")
    assert message in line


#: What the command itself is asked, beside a few of the above.
OPTIONS: list[tuple[tuple[str, ...], str]] = [
    (("schedule",), "SNAPSHOT"),
    (("schedule", "absent.json"), "absent.json: No such file or directory"),
    (("schedule", "good.json", "--window", "0"), "window: 0 is below 1"),
    (("schedule", "good.json", "--window", "ten"), "--window"),
    (("schedule", "good.json", "--model", "aucsched9"), "--model"),
    (("schedule", "good.json", "--time-limit", "nan"), "time_limit_s: nan"),
    (("schedule", "good.json", "--time-limit", "-1"), "time_limit_s: -1"),
    (("schedule", "good.json", "--max-bids-per-job", "0"), "max_bids_per_job: 0"),
    (("schedule", "good.json", "--seed", "-3"), "seed: -3"),
    (("schedule", "good.json", "--windows", "3"), "--windows"),
    (("schedule", "good.json", "--format", "xml"), "--format"),
    (("schedule", "good.json", "-o", "no/such/folder/out.json"), "no/such/folder/out.json"),
    (("shedule", "good.json"), "shedule"),
    (("schedule", "truncated.json"), "truncated.json: not JSON"),
    (("schedule", "empty.json"), "empty.json: not JSON"),
    (("schedule", "list.json"), "list.json: "),
    (("schedule", "binary.json"), "binary.json: not JSON"),
    (("schedule", "twice.json"), "twice.json: the member 'cores' stands twice"),
    (("schedule", "nan.json"), "nan.json: jobs[0].priority: NaN is not a finite number"),
    (("schedule", "huge.json"), "huge.json: jobs: the window's weights sum to"),
    (("schedule", "."), ".: Is a directory"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("malformed")
    text = json.dumps(GOOD)
    (place / "good.json").write_text(text)
    (place / "truncated.json").write_text(text[:300])
    (place / "empty.json").write_text("")
    (place / "list.json").write_text("[]")
    (place / "binary.json").write_bytes(b"\xff\xfe\x00snapshot")
    (place / "twice.json").write_text(text.replace('"cores": 64', '"cores": 64, "cores": 6'))
    (place / "nan.json").write_text(text.replace('"priority": 100', '"priority": NaN'))
    (place / "huge.json").write_text(text.replace('"priority": 100', '"priority": 10000000000000001'))
    return place


@pytest.mark.parametrize(("arguments", "message"), OPTIONS)
def test_the_command_refuses_in_one_line(arguments: tuple[str, ...], message: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    assert message in refused(*arguments, cwd=folder)
    assert sorted(folder.rglob("*")) == before


def test_standard_input_is_named_when_it_is_wrong() -> None:
    assert refused("schedule", "-", stdin="{}").startswith("standard input: ")


def test_a_huge_hostlist_is_refused_at_once() -> None:
    document = copy.deepcopy(GOOD)
    document["nodes"][0]["name"] = "n[1-999999999]"
    began = time.perf_counter()
    with pytest.raises(InputError):
        parse_snapshot(json.dumps(document).encode())
    # Expanding it would take minutes and the memory of the machine.
    assert time.perf_counter() - began < 20


def test_an_unwritable_output_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "schedule.json"
    target.mkdir()
    done = aucsched("schedule", folder / "good.json", "-o", target)
    assert done.returncode == 2
    assert sorted(tmp_path.iterdir()) == [target]
