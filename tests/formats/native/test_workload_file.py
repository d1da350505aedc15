"""Workload files: what is written reads back equal, and malformed ones are one line that names the place."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from random_snapshots import random_snapshot
from support.run import aucsched
from support.spoiled import WORKLOAD as GOOD
from support.spoiled import Spoil, drop, put

from aucsched import ArrivingJob, ClusterWorkload, InputError, Job, Request, load_workload, save_workload
from aucsched.formats.native.cluster_file import parse_workload, workload_to_json
from aucsched.formats.native.json_schema import schema_of

SCHEMA = Draft202012Validator(schema_of("workload"))


def parsed(document: dict[str, Any]) -> ClusterWorkload:
    return parse_workload(json.dumps(document).encode())


def test_every_member_arrives() -> None:
    workload = parsed(GOOD)
    assert (workload.name, workload.notes) == ("by hand", ("made by hand",))
    assert [node.name for node in workload.nodes] == ["n01", "n02", "n03", "n04", "n05"]
    assert [switch.name for switch in workload.switches or ()] == ["leaf1", "leaf2", "core"]
    assert [partition.name for partition in workload.partitions] == ["batch"]
    assert workload.licenses["matlab"].free == 4
    first, second = workload.jobs
    assert (first.arrival_s, first.run_time_s, first.gres_run_time_factor) == (0, 60, None)
    assert (second.arrival_s, second.run_time_s, second.gres_run_time_factor) == (12.5, 600.25, 0.75)
    assert (second.job.user, second.job.request.gres_per_node["gpu"].maximum) == ("ann", 2)


def test_written_and_read_again_is_equal_and_compact(tmp_path: Path) -> None:
    workload = parsed(GOOD)
    save_workload(workload, tmp_path / "w.json")
    assert load_workload(tmp_path / "w.json") == workload
    text = (tmp_path / "w.json").read_text()
    assert text == workload_to_json(workload)
    assert '"name":"n[01-04]"' in text
    assert [line.count('"arrival_s"') for line in text.splitlines()].count(1) == 2


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_what_a_snapshot_holds_a_workload_holds_too(seed: int) -> None:
    snapshot = random_snapshot(seed)
    workload = ClusterWorkload(
        name=str(seed),
        nodes=tuple(_emptied(node) for node in snapshot.nodes),
        jobs=tuple(
            ArrivingJob(job=_unsubmitted(job), arrival_s=place / 3, run_time_s=1 + place)
            for place, job in enumerate(snapshot.jobs)
        ),
        switches=snapshot.switches,
        partitions=snapshot.partitions,
        licenses={
            name: type(entry)(total=entry.total, free=entry.total)
            for name, entry in snapshot.licenses.items()
        },
    )
    text = workload_to_json(workload)
    assert parse_workload(text.encode()) == workload
    assert workload_to_json(parse_workload(text.encode())) == text
    SCHEMA.validate(json.loads(text))


def _emptied(node: Any) -> Any:
    return replace(node, free=node.total)


def _unsubmitted(job: Job) -> Job:
    return replace(job, submit_time=None)


MALFORMED: list[tuple[Spoil, str, str]] = [
    (put("format", "aucsched-snapshot/1"), "format", "this is a snapshot, not a workload: aucsched schedule"),
    (put("colour", "red"), "", "unknown member 'colour'"),
    (put("jobs/0/colour", "red"), "jobs[0]", "unknown member 'colour'"),
    (put("running", []), "", "unknown member 'running'"),
    (drop("jobs/1/arrival_s"), "jobs[1]", "the member 'arrival_s' is missing"),
    (drop("jobs/1/run_time_s"), "jobs[1]", "the member 'run_time_s' is missing"),
    (put("jobs/1/arrival_s", -1), "jobs[1].arrival_s", "-1 is not a time from 0"),
    (put("jobs/1/arrival_s", 10**400), "jobs[1].arrival_s", "out of range"),
    (put("jobs/1/arrival_s", 1e300), "jobs[1].arrival_s", "1e+300 is not a time from 0"),
    (put("jobs/1/arrival_s", "soon"), "jobs[1].arrival_s", '"soon" is not a number'),
    (put("jobs/0/arrival_s", 13), "jobs[1].arrival_s", "12.5 is before 13: list jobs in order of arrival"),
    (put("jobs/1/run_time_s", 0), "jobs[1].run_time_s", "0 is not a time from 0.001 to"),
    (put("jobs/1/run_time_s", True), "jobs[1].run_time_s", "true is not a number"),
    (put("jobs/1/gres_run_time_factor", 0), "jobs[1].gres_run_time_factor", "0 is not above 0"),
    (put("jobs/1/submit_time", 5), "jobs[1].submit_time", "arrival_s says when the job comes"),
    (put("jobs/1/id", "1"), "jobs[1].id", "'1' is listed at jobs[0] already"),
    (put("jobs/1/gres_per_node/gpu", -1), "jobs[1].gres_per_node.gpu", "-1 is below 1"),
    (put("jobs/1/licenses", {"abaqus": 1}), "jobs[1].licenses.abaqus", "is not a licence"),
    (put("nodes/0/free_cores", 8), "nodes[0].free_cores", "everything free"),
    (put("nodes/0/free_gres", {"gpu": 1}), "nodes[0].free_gres", "everything free"),
    (put("licenses/matlab/free", 1), "licenses.matlab.free", "everything free"),
    (put("nodes", []), "nodes", "at least one node is needed"),
    (put("topology/switches/1/nodes", "n04"), "topology.switches", "'n05' is on no leaf"),
]
#: What only reading the whole file tells.
NOT_IN_SCHEMA = ["is before", "is listed at", "is on no leaf", "is not a licence"]


@pytest.mark.parametrize("place", range(len(MALFORMED)))
def test_malformed_ones_name_path_and_value(place: int) -> None:
    spoil, path, message = MALFORMED[place]
    document = copy.deepcopy(GOOD)
    spoil(document)
    with pytest.raises(InputError) as caught:
        parsed(document)
    assert caught.value.path == path
    assert message in caught.value.message
    is_refused = not SCHEMA.is_valid(document)
    assert is_refused is not any(text in message for text in NOT_IN_SCHEMA)


def test_the_good_one_passes_its_schema() -> None:
    SCHEMA.validate(GOOD)
    done = aucsched("schema", "workload")
    assert json.loads(done.stdout) == schema_of("workload")


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    path, text = tmp_path / "marked.json", json.dumps(GOOD)
    path.write_text(text, encoding="utf-8-sig")
    assert load_workload(path) == parse_workload("\ufeff" + text) == parsed(GOOD)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file") as caught:
        load_workload(tmp_path / "none.json")
    assert str(caught.value).startswith(str(tmp_path / "none.json"))


def test_a_type_made_by_hand_is_checked_too() -> None:
    job = Job(id="1", priority=1, request=Request(cores=1), submit_time=4.0)
    with pytest.raises(InputError, match="submit_time"):
        ArrivingJob(job=job, arrival_s=4, run_time_s=1)
