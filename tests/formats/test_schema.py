"""The published JSON Schemas: good files pass, malformed ones fail wherever a schema can tell."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from random_snapshots import random_document, random_snapshot
from support.build import tiny
from support.run import aucsched, refused
from support.spoiled import MALFORMED, Spoil, drop, put
from support.spoiled import SNAPSHOT as GOOD

from aucsched import InputError, load_snapshot, schedule
from aucsched.cluster.schedule import FORMAT, Reason, Status
from aucsched.formats.native.cluster_file import parse_snapshot, snapshot_to_json
from aucsched.formats.native.json_schema import SCHEMAS, schema_of
from aucsched.formats.native.schedule_file import parse_schedule

EXAMPLES = Path(__file__).parents[2] / "examples"
SNAPSHOT = Draft202012Validator(schema_of("snapshot"))
SCHEDULE = Draft202012Validator(schema_of("schedule"))

#: What only reading the whole file tells.
NOT_IN_SCHEMA = [
    "is listed at",
    "is running too",
    "[3, 1] is empty",
    "is below the 2 nodes",
    "is not a multiple",
    "is not a node",
    "is not a licence",
    "is not a switch",
    "is not an ISO 8601 time",
    "999999999 names",
    "counts backwards",
    "twice",
    "is above the node's",
    "that running jobs leave",
    "no such gres",
    "without memory_mib",
    "is on ",
    "loop",
    "hold ",
    "is above the total",
    "not after the start",
]


@pytest.mark.parametrize("name", SCHEMAS)
def test_they_are_schemas_and_the_command_prints_them(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(name))
    done = aucsched("schema", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == schema_of(name)
    assert "snapshot" in refused("schema", "award")


def test_every_object_is_closed_and_said() -> None:
    for schema in (schema_of("snapshot"), schema_of("schedule")):
        for name, entry in schema["$defs"].items():
            assert entry["additionalProperties"] is False, name
            assert entry["description"], name


SNAPSHOTS = [path for path in sorted(EXAMPLES.glob("*.json")) if "aucsched-snapshot/1" in path.read_text()]


def test_there_are_examples() -> None:
    assert len(SNAPSHOTS) >= 2


@pytest.mark.parametrize("path", SNAPSHOTS, ids=[path.name for path in SNAPSHOTS])
def test_the_examples_and_their_schedules_pass(path: Path) -> None:
    SNAPSHOT.validate(json.loads(path.read_text()))
    result = schedule(load_snapshot(path), time_limit_s=1, on_timeout="incumbent")
    SCHEDULE.validate(json.loads(result.to_json()))


def test_the_good_document_passes() -> None:
    SNAPSHOT.validate(GOOD)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_random_snapshots_pass_as_made_and_as_written(seed: int) -> None:
    SNAPSHOT.validate(random_document(seed))
    SNAPSHOT.validate(json.loads(snapshot_to_json(random_snapshot(seed))))


@pytest.mark.parametrize("model", ["ipsched", "aucsched1", "aucsched2", "aucsched3"])
def test_schedules_of_every_model_pass(model: Any) -> None:
    for seed in range(3):
        for cluster in (random_snapshot(seed), tiny(seed)):
            SCHEDULE.validate(json.loads(schedule(cluster, model=model).to_json()))


@pytest.mark.parametrize(("spoil", "path", "message"), MALFORMED)
def test_what_reading_refuses_the_schema_refuses_where_it_can(spoil: Spoil, path: str, message: str) -> None:
    document = copy.deepcopy(GOOD)
    spoil(document)
    if "finite" in message:
        return  # no JSON at all
    is_refused = not SNAPSHOT.is_valid(document)
    assert is_refused is not any(text in message for text in NOT_IN_SCHEMA), path


REFUSED_BY_BOTH: list[Spoil] = [
    put("jobs/0/memory_mib_per_node", -1),
    put("jobs/0/gres_total", {"": 1}),
    put("jobs/0/gres_total", {"gpu": 0}),
    put("jobs/0/gres_total", {"gpu": [-1, 1]}),
    put("jobs/0/required_nodes", ""),
    put("jobs/0/expected_start_time", -(10**12)),
    put("jobs/0/submit_time", 10**15),
    put("jobs/0/licenses", {"matlab": 0}),
    put("jobs/0/priority", None),
    put("jobs/0/priority", "7"),
    put("jobs/0/priority", "1/0"),
    put("jobs/0/priority", "-1/3"),
    put("jobs/0/priority", "1/" + "9" * 5000),
    put("jobs/0/limits_by_nodes_s", {"0": 5}),
    put("jobs/0/limits_by_nodes_s", {"x": 5}),
    put("jobs/0/limits_by_nodes_s", {"01": 5}),
    put("jobs/0/limits_by_nodes_s", {"2": -1}),
    put("jobs/0/limits_by_nodes_s", {"2": None}),
    put("jobs/0/limits_by_nodes_s", [5]),
    put("jobs/0/features", "nvme"),
    drop("jobs/1/cores_per_node"),
    drop("jobs/1/nodes"),
    put("nodes/0/name", ""),
    put("nodes/0/gres", {"gpu": -1}),
    put("topology/switches", []),
    put("topology/switches/0", {"name": "leaf1"}),
    put("topology/switches/0", {"name": "leaf1", "nodes": "n[01-16]", "switches": "leaf2"}),
    put("topology/kind", "linear"),
    put("running/0/nodes", {"n[1-": {"cores": 1}}),
    put("running/0/nodes/n17/cores", -1),
    put("partitions/0/state", "sideways"),
    put("partitions/0/max_nodes", 0),
    put("reservations/0/start", None),
    put("licenses/matlab/total", -1),
    put("time", []),
]


@pytest.mark.parametrize("place", range(len(REFUSED_BY_BOTH)))
def test_more_that_both_refuse(place: int) -> None:
    document = copy.deepcopy(GOOD)
    REFUSED_BY_BOTH[place](document)
    assert not SNAPSHOT.is_valid(document)
    with pytest.raises(InputError):
        parse_snapshot(json.dumps(document).encode())


def test_a_quotient_ends_where_it_ends() -> None:
    document = copy.deepcopy(GOOD)
    put("jobs/0/priority", "1/3\n")(document)
    with pytest.raises(InputError, match=r"jobs\[0\].priority: .* is not a number"):
        parse_snapshot(json.dumps(document).encode())


ACCEPTED_BY_BOTH: list[Spoil] = [
    put("jobs/0/cores_per_node", None),
    put("jobs/0/submit_time", 1_795_167_000.5),
    put("jobs/0/priority", 0.25),
    put("jobs/0/priority", "1/3"),
    put("jobs/0/limits_by_nodes_s", {"1": 100, "2": 50.5}),
    put("jobs/0/limits_by_nodes_s", {}),
    put("jobs/0/gres_total", {"gpu": [0, 4]}),
    put("jobs/0/speedup", {"model": "linear", "at": [1, 2]}),
    put("partitions/0/state", "UP"),
    put("partitions/0/nodes", None),
    put("topology", None),
    put("topology", {"kind": "linear", "switches": []}),
    put("topology/switches/0", {"name": "leaf1", "nodes": "n[01-16]", "switches": None}),
    put("nodes/1/state", "drained"),
    put("time", None),
]


@pytest.mark.parametrize("place", range(len(ACCEPTED_BY_BOTH)))
def test_what_reading_accepts_the_schema_accepts(place: int) -> None:
    document = copy.deepcopy(GOOD)
    ACCEPTED_BY_BOTH[place](document)
    parse_snapshot(json.dumps(document).encode())
    SNAPSHOT.validate(document)


def test_memory_that_is_not_counted_is_left_out_of_a_schedule_and_is_no_null() -> None:
    document = json.loads(schedule(tiny(0)).to_json())
    assert parse_schedule(json.dumps(document).encode()).started[0].nodes
    uses = next(iter(document["started"][0]["nodes"].values()))
    uses["memory_mib"] = None
    assert not SCHEDULE.is_valid(document)
    with pytest.raises(InputError, match="memory_mib: null is not an integer"):
        parse_schedule(json.dumps(document).encode())


def test_the_schedule_schema_names_every_reason_and_status() -> None:
    types = schema_of("schedule")["$defs"]
    assert set(types["Pending"]["properties"]["reason"]["enum"]) == {reason.value for reason in Reason}
    assert set(types["Schedule"]["properties"]["status"]["enum"]) == {status.value for status in Status}
    assert types["Schedule"]["properties"]["format"]["enum"] == [FORMAT]


BROKEN_SCHEDULES: list[tuple[str, Any]] = [
    ("status", "perfect"),
    ("started/0/bid/class", "D"),
    ("started/0/bid/level", -1),
    ("started/0/nodes", {}),
    ("started/0/job", ""),
    ("pending", {}),
    ("objective/priority", None),
    ("objective/gap", -0.5),
    ("window/size", 1.5),
    ("seconds/total", "1 s"),
    ("colour", "red"),
]


@pytest.mark.parametrize(("path", "value"), BROKEN_SCHEDULES)
def test_broken_schedules_fail(path: str, value: Any) -> None:
    document = json.loads(schedule(parse_snapshot(json.dumps(GOOD).encode())).to_json())
    assert math.isfinite(document["objective"]["priority"])
    SCHEDULE.validate(document)
    put(path, value)(document)
    assert not SCHEDULE.is_valid(document)
