"""``aucsched compare``, and the expected start times that Slurm's column is made from."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import document, snapshot
from support.run import aucsched

from aucsched import Snapshot, load_snapshot, schedule
from aucsched import compare as aucsched_compare
from aucsched.auction.explain.comparison import Comparison, Total, compare, first_fit_by_priority
from aucsched.formats.native.cluster_file import parse_snapshot, snapshot_to_json
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

EXAMPLES = Path(__file__).parents[3] / "examples"
NOW = 1_795_167_000.0  # 2026-11-20T09:30:00Z, the time of support.build's snapshots

#: First-fit takes the wide job, the auction the two narrow ones.
NODES: list[dict[str, Any]] = [{"name": "n[1-2]", "cores": 8}]
JOBS: list[dict[str, Any]] = [
    {"cores": 10, "priority": 100, "expected_start_time": NOW - 5},
    {"nodes": 1, "cores_per_node": 8, "priority": 90, "expected_start_time": NOW + 61},
    {"cores": 8, "priority": 80, "expected_start_time": NOW + 7200},
    {"cores": 16, "priority": 10},
]


def compared(cluster: Snapshot, within_s: int = 60) -> Comparison:
    return compare(cluster, schedule(cluster, reserve=0), first_fit_by_priority(cluster, 100), within_s)


def test_three_schedulers_beside_each_other() -> None:
    found = compared(snapshot(NODES, JOBS))
    assert [(line.auction, line.first_fit, line.planned_wait_s) for line in found.lines] == [
        (False, True, 0.0),
        (True, False, 61.0),
        (True, False, 7200.0),
        (False, False, None),
    ]
    assert found.auction == Total(jobs=2, cores=16, priority=170)
    assert found.first_fit == Total(jobs=1, cores=10, priority=100)
    assert found.slurm == Total(jobs=1, cores=10, priority=100)
    assert compared(snapshot(NODES, JOBS), within_s=61).slurm == Total(jobs=2, cores=18, priority=190)


def test_without_a_plan_or_a_time_nothing_is_made_up() -> None:
    bare = [{name: value for name, value in job.items() if name != "expected_start_time"} for job in JOBS]
    assert compared(snapshot(NODES, bare)).slurm is None
    timeless = compared(dataclasses.replace(snapshot(NODES, JOBS), time=None))
    assert [line.planned_wait_s for line in timeless.lines] == [None] * 4
    assert timeless.slurm == Total(jobs=0, cores=0, priority=0)


def test_cores_of_every_job_type() -> None:
    jobs: list[dict[str, Any]] = [
        {"cores": 5},
        {"nodes": [2, 4], "cores_per_node": 3},
        {"cores": 6, "cores_per_node": 3},
    ]
    assert [job.request.fewest_cores for job in snapshot(NODES, jobs).jobs] == [5, 6, 6]


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_totals_are_those_of_the_schedules(seed: int) -> None:
    cluster = random_snapshot(seed)
    result = schedule(cluster, reserve=0)
    baseline = first_fit_by_priority(cluster, 100)
    found = compare(cluster, result, baseline, 60)
    assert len(found.lines) == len(cluster.jobs)
    assert found.auction.jobs == len(result.started)
    assert found.auction.priority == result.objective.priority
    assert found.first_fit.jobs == len(baseline.started)
    assert found.first_fit.priority == baseline.priority
    json.dumps(found.to_dict())


@pytest.mark.parametrize(("options", "most"), [((), 3), (("--award-alone",), 1)])
def test_first_fit_sees_the_jobs_that_the_auction_sees(options: tuple[str, ...], most: int) -> None:
    text = json.dumps(document([{"name": "n1", "cores": 4}], [{"cores": 1}, {"cores": 1}, {"cores": 1}]))
    command = ("compare", "-", "--window", "1", "--reserve", "0", *options, "--format", "json")
    totals = json.loads(aucsched(*command, stdin=text).stdout)["totals"]
    assert totals["auction"]["jobs"] == totals["first_fit"]["jobs"] == most


def test_jobs_that_can_never_run_take_no_place_in_either_window() -> None:
    cluster = snapshot([{"name": "n1", "cores": 4}], [*[{"cores": 5}] * 3, {"cores": 4}])
    found = aucsched_compare(cluster, reserve=0, award_alone=True, window=2)
    assert [(line.auction, line.first_fit) for line in found.lines] == [(False, False)] * 3 + [(True, True)]


def test_the_command_prints_tables_and_json() -> None:
    text = json.dumps(document(NODES, JOBS))
    done = aucsched("compare", "-", "--reserve", "0", stdin=text)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["J2", "90", "8", "now", "waits", "2026-11-20T09:31:01Z", "(+1", "min", "1", "s)"] in lines
    assert "1 more job waits under all of them." in done.stdout
    assert lines[-1] == ["Slurm's", "plan", "starts", "within", "1", "min", "1", "10", "100"]
    answer = json.loads(
        aucsched("compare", "-", "--reserve", "0", "--within", "7200", "--format", "json", stdin=text).stdout
    )
    assert answer["totals"]["slurm"] == {"jobs": 3, "cores": 26, "priority": 270.0}
    assert answer["jobs"][0]["slurm_wait_s"] == 0.0


def test_a_snapshot_without_plans_says_so() -> None:
    done = aucsched("compare", "-", stdin=json.dumps(document(NODES, [{"cores": 1}])))
    assert "Slurm's plan is not known" in done.stdout
    assert "2026-" not in done.stdout


def test_expected_start_times_are_read_and_written() -> None:
    cluster = snapshot(NODES, JOBS)
    assert [job.expected_start_time for job in cluster.jobs] == [NOW - 5, NOW + 61, NOW + 7200, None]
    assert parse_snapshot(snapshot_to_json(cluster).encode()) == cluster


def test_no_award_depends_on_them() -> None:
    cluster = snapshot(NODES, JOBS)
    bare = dataclasses.replace(
        cluster, jobs=tuple(dataclasses.replace(job, expected_start_time=None) for job in cluster.jobs)
    )
    assert schedule(cluster, reserve=0).started == schedule(bare, reserve=0).started


def test_slurms_plan_is_imported() -> None:
    full = load_snapshot(EXAMPLES / "emulated-1408-full.json")
    planned = {job.id: job.expected_start_time for job in full.jobs if job.expected_start_time is not None}
    assert len(planned) == 20
    assert planned["33"] == 1_795_169_669


def test_of_an_arrays_tasks_the_next_has_the_plan() -> None:
    jobs = json.loads(gzip.decompress((EXAMPLES / "source" / "squeue.json.gz").read_bytes()))
    record = next(job for job in jobs["jobs"] if str(job["job_id"]) == "33")
    record |= {"array_job_id": 33, "array_task_id": None, "array_task_string": "3-5"}
    sources = SlurmSources(
        jobs=SlurmText(name="jobs", content=json.dumps({**jobs, "jobs": [record]}).encode()),
        nodes=SlurmText(
            name="nodes", content=gzip.decompress((EXAMPLES / "source" / "sinfo.json.gz").read_bytes())
        ),
    )
    imported, _ = import_slurm(sources)
    assert {job.id: job.expected_start_time for job in imported.jobs} == {
        "33_3": 1_795_169_669,
        "33_4": None,
        "33_5": None,
    }
