"""`aucsched plan`: a full schedule of a snapshot, against counting, brute force and the rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from random_snapshots import random_snapshot
from support.build import document, snapshot
from support.plain import J, earliest

from aucsched.auction.planning.plan import OVERDUE_S, ClusterTimeline, Plan
from aucsched.auction.planning.plan import plan as make_plan
from aucsched.bidgen.candidates import Candidates
from aucsched.cli import run
from aucsched.cluster.errors import InputError
from aucsched.cluster.resources.pools import Pools
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.formats.native.json_schema import schema_of

NOW = 1_795_167_000.0  # 2026-11-20T09:30:00Z, the time of support.build's snapshots
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "emulated-1408-full.json"


def held(job: str, end: float | None, **nodes: int) -> dict[str, Any]:
    """Return a running job that holds this many cores of nodes, and ends this many seconds from now."""
    use = {"id": job, "nodes": {name: {"cores": cores} for name, cores in nodes.items()}}
    return use if end is None else use | {"end_time": NOW + end}


def plan(
    nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], *running: dict[str, Any], **members: Any
) -> Plan:
    return make_plan(snapshot(nodes, jobs, running=list(running), **members))


def starts(found: Plan) -> dict[str, float]:
    return {one.job: one.start - found.time for one in found.planned}


# Against counting -----------------------------------------------------------------------------


@st.composite
def counted(draw: st.DrawFn) -> tuple[int, list[J], list[J]]:
    """A machine, what runs on it (``run`` is what is left of it) and a queue."""
    cores = draw(st.integers(1, 8))
    free, running = cores, []
    while free and draw(st.booleans()):
        size = draw(st.integers(1, free))
        free -= size
        left = draw(st.integers(1, 12))
        running.append(J(0, left, size, left))
    queue = [
        J(0, 1, draw(st.integers(1, cores)), draw(st.integers(1, 10)))
        for _ in range(draw(st.integers(1, 10)))
    ]
    return cores, running, queue


@settings(max_examples=100)
@given(counted())
def test_a_plan_of_one_node_is_that_of_counted_processors(case: tuple[int, list[J], list[J]]) -> None:
    """On one node only the cores count, as on the simulator's machine."""
    cores, running, queue = case
    found = plan(
        [{"name": "n1", "cores": cores, "free_cores": cores - sum(job.size for job in running)}],
        [{"cores": job.size, "time_limit_s": job.estimate} for job in queue],
        *(held(f"R{place}", job.estimate, n1=job.size) for place, job in enumerate(running)),
    )
    jobs, reserved = [*running, *queue], dict.fromkeys(range(len(running)), 0.0)
    for place in range(len(running), len(jobs)):
        reserved[place] = earliest(jobs, cores, reserved, place, 0)
    assert list(starts(found).values()) == list(reserved.values())[len(running) :]


# Against brute force --------------------------------------------------------------------------


def busy(found: Plan, cluster: Snapshot, jobs: list[str], time: float, node: str) -> int:
    """The cores that running and some planned jobs hold of a node at a time."""
    used = sum(
        job.nodes[node].cores
        for job in cluster.running
        if node in job.nodes and (job.end_time is None or max(job.end_time, found.time + OVERDUE_S) > time)
    )
    return used + sum(
        one.nodes[node].cores
        for one in found.planned
        if one.job in jobs and node in one.nodes and one.start <= time and (one.end is None or time < one.end)
    )


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Nodes of one or two cores; jobs of whole numbers of cores anywhere; some nodes reserved for a time."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=5))
    names = [f"n{place}" for place in range(1, len(sizes) + 1)]
    running, free = [], []
    for name, size in zip(names, sizes, strict=True):
        taken = draw(st.integers(0, size))
        free.append(size - taken)
        if taken:
            end = draw(st.sampled_from([-5, 2, 3, 5, 9, None]))
            running.append(held(f"R{name}", end, **{name: taken}))
    jobs = [
        {"cores": draw(st.integers(1, sum(sizes) + 1)), "time_limit_s": draw(st.integers(1, 8))}
        | ({"user": "u"} if draw(st.booleans()) else {})
        for _ in range(draw(st.integers(1, 6)))
    ]
    reserved = []
    if draw(st.booleans()):
        begin = draw(st.integers(0, 12))
        reserved = [
            {
                "name": "r",
                "nodes": ",".join(names[: draw(st.integers(1, len(names)))]),
                "start": NOW + begin,
                "end": NOW + begin + draw(st.integers(1, 6)),
                "users": ["u"],
            }
        ]
    nodes = [
        {"name": name, "cores": size, "free_cores": left}
        for name, size, left in zip(names, sizes, free, strict=True)
    ]
    return snapshot(nodes, jobs, running=running, reservations=reserved)


def room(found: Plan, cluster: Snapshot, before: list[str], job: Any, time: float) -> int:
    """The cores that a job could have from a time until its end, beside those planned before it."""
    end = time + job.time_limit_s
    closed = {
        name
        for one in cluster.reservations
        for name in one.nodes
        if job.user not in one.users and one.start < end and time < one.end
    }
    moments = [time, *(moment for moment in all_moments(found, cluster) if time < moment < end)]
    return sum(
        min(node.total.cores - busy(found, cluster, before, moment, node.name) for moment in moments)
        for node in cluster.nodes
        if node.name not in closed
    )


def all_moments(found: Plan, cluster: Snapshot) -> Iterator[float]:
    yield found.time
    for job in cluster.running:
        if job.end_time is not None:
            yield max(job.end_time, found.time + OVERDUE_S)
    for one in found.planned:
        yield from (one.start, one.end or one.start)
    for reservation in cluster.reservations:
        yield from (max(reservation.start, found.time), max(reservation.end, found.time))


@settings(max_examples=200)
@given(clusters())
def test_every_job_has_the_earliest_start_that_those_before_it_leave(cluster: Snapshot) -> None:
    found = make_plan(cluster)
    planned = {one.job: one for one in found.planned}
    assert {*planned, *(one.job for one in found.unplanned)} == {job.id for job in cluster.jobs}
    before: list[str] = []
    for job in cluster.jobs:
        earlier = sorted({*all_moments(found, cluster)})
        cores = job.request.cores or 0
        fitting = [time for time in earlier if room(found, cluster, before, job, time) >= cores]
        assert (planned[job.id].start if job.id in planned else None) == next(iter(fitting), None)
        before.append(job.id)
    for time in all_moments(found, cluster):
        for node in cluster.nodes:
            assert busy(found, cluster, before, time, node.name) <= node.total.cores


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_a_plan_of_any_snapshot_never_gives_anything_twice(seed: int) -> None:
    """Cores, memory, gres and licences at every start, whatever jobs ask for."""
    cluster = random_snapshot(seed)
    found = make_plan(cluster)
    Draft202012Validator(schema_of("plan")).validate(json.loads(found.to_json()))
    assert sorted([one.job for one in found.planned] + [one.job for one in found.unplanned]) == sorted(
        job.id for job in cluster.jobs
    )
    nodes = {node.name: node for node in cluster.nodes}
    licenses = {job.id: job.request.licenses for job in cluster.jobs}
    for moment in {one.start for one in found.planned}:
        now = [one for one in found.planned if one.start <= moment and (one.end is None or moment < one.end)]
        gone = [job for job in cluster.running if job.end_time is not None and job.end_time <= moment]
        for name, node in nodes.items():
            uses = [one.nodes[name] for one in now if name in one.nodes]
            back = [job.nodes[name] for job in gone if name in job.nodes]
            cores = node.free.cores + sum(use.cores for use in back)
            assert sum(use.cores for use in uses) <= min(cores, node.total.cores)
            for kind, count in node.free.gres.items():
                given_back = sum(use.gres.get(kind, 0) for use in back)
                assert sum(use.gres.get(kind, 0) for use in uses) <= count + given_back
            if node.free.memory_mib is not None:
                memory = node.free.memory_mib + sum(use.memory_mib or 0 for use in back)
                assert sum(use.memory_mib or 0 for use in uses) <= memory
        for name, entry in cluster.licenses.items():
            assert sum(licenses[one.job].get(name, 0) for one in now) <= entry.free


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_counting_never_hides_a_place(seed: int) -> None:
    """What is left out because it cannot fit would not have fitted."""
    cluster = random_snapshot(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Candidates, "could_hold", lambda *_: True)
        patch.setattr(
            ClusterTimeline,
            "possible",
            lambda self, _, __, since: np.flatnonzero(self.times >= since),
        )
        tried = make_plan(cluster)
    found = make_plan(cluster)
    assert found.planned == tried.planned
    # Counting also says which jobs can never run.
    assert [one.job for one in found.unplanned] == [one.job for one in tried.unplanned]


# Particulars ----------------------------------------------------------------------------------

FOUR = [{"name": "n[1-4]", "cores": 8}]


def test_the_plan_of_an_example_by_hand() -> None:
    """Four nodes: the wide job waits for both running ones; short ones go before it, the long one after."""
    nodes = [
        {"name": "n[1-2]", "cores": 8, "free_cores": 0},
        {"name": "n[3-4]", "cores": 8},
    ]
    jobs = [
        {"id": "wide", "nodes": 4, "cores_per_node": 8, "time_limit_s": 100},
        {"id": "short", "nodes": 2, "cores_per_node": 8, "time_limit_s": 60},
        {"id": "long", "nodes": 2, "cores_per_node": 8, "time_limit_s": 61},
        {"id": "one", "cores": 8, "time_limit_s": 30},
    ]
    found = plan(nodes, jobs, held("A", 30, n1=8), held("B", 60, n2=8))
    assert starts(found) == {"wide": 60, "short": 0, "long": 160, "one": 30}
    where = {one.job: list(one.nodes) for one in found.planned}
    assert where["short"] == ["n3", "n4"]
    assert where["one"] == ["n1"]
    assert found.planned[0].end == NOW + 160


def test_jobs_without_a_time_limit_never_give_back() -> None:
    jobs = [{"id": "endless", "cores": 20}, {"id": "small", "cores": 12}, {"id": "large", "cores": 13}]
    found = plan(FOUR, jobs)
    assert starts(found) == {"endless": 0, "small": 0}
    assert found.planned[0].end is None
    assert [(one.job, one.reason.value) for one in found.unplanned] == [("large", "no_fit")]


def test_running_jobs_past_their_end_or_without_one_are_named() -> None:
    nodes = [{"name": "n[1-2]", "cores": 8, "free_cores": 0}]
    job = [{"id": "J", "nodes": 1, "cores": 8, "time_limit_s": 9}, {"id": "K", "nodes": 2, "cores": 16}]
    found = plan(nodes, job, held("late", -100, n1=8), held("ever", None, n2=8))
    assert starts(found) == {"J": OVERDUE_S}
    assert (found.overdue, found.endless) == (("late",), ("ever",))
    assert [one.job for one in found.unplanned] == ["K"]


def test_licences_are_held_until_the_end() -> None:
    job = {"cores": 1, "licenses": {"matlab": 2}, "time_limit_s": 10}
    found = plan(FOUR, [job, job, {**job, "licenses": {"matlab": 1}}], licenses={"matlab": {"total": 3}})
    assert starts(found) == {"J1": 0, "J2": 10, "J3": 0}


def test_reservations_let_only_their_users_in() -> None:
    reserved = [
        {"name": "r", "nodes": "n[1-4]", "start": NOW + 50, "end": NOW + 90, "users": ["ann"]},
    ]
    job = {"nodes": 4, "cores_per_node": 8}
    jobs = [
        {**job, "id": "fits", "time_limit_s": 50},
        {**job, "id": "bob", "time_limit_s": 51, "user": "bob"},
        {**job, "id": "ann", "time_limit_s": 40, "user": "ann"},
    ]
    assert starts(plan(FOUR, jobs, reservations=reserved)) == {"fits": 0, "bob": 90, "ann": 50}


def test_jobs_that_cannot_be_planned_say_why() -> None:
    jobs = [
        {"id": "held", "cores": 1, "hold": "JobHeldUser"},
        {"id": "feature", "cores": 1, "features": ["gold"]},
        {"id": "big", "nodes": 5, "cores_per_node": 1},
        {"id": "down", "cores": 1, "required_nodes": "d1"},
        {"id": "fine", "cores": 1},
    ]
    found = plan([*FOUR, {"name": "d1", "cores": 8, "state": "down"}], jobs)
    assert {one.job: one.reason.value for one in found.unplanned} == {
        "held": "held",
        "feature": "ineligible",
        "big": "no_fit",
        "down": "no_fit",
    }
    assert [one.job for one in found.planned] == ["fine"]


def test_a_plan_needs_the_time_only_where_something_ends() -> None:
    content = document(FOUR, [{"cores": 1, "time_limit_s": 5}] * 2)
    del content["time"]

    assert starts(make_plan(parse_snapshot(json.dumps(content).encode()))) == {"J1": 0, "J2": 0}
    content["running"] = [held("A", 5, n1=1)]
    content["nodes"] = [{"name": "n1", "cores": 8, "free_cores": 7}]
    with pytest.raises(InputError, match="time: a plan compares"):
        make_plan(parse_snapshot(json.dumps(content).encode()))


# The command ----------------------------------------------------------------------------------


def test_the_command_prints_writes_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, chart = tmp_path / "plan.json", tmp_path / "plan.svg"
    arguments = ["plan", str(EXAMPLE), "--format", "json", "-o", str(out), "--gantt", str(chart)]
    assert run(arguments) == 0
    written = json.loads(out.read_text())
    assert written["format"] == "aucsched-plan/1"
    assert (len(written["planned"]), len(written["unplanned"])) == (64, 2)
    first = written["planned"][0]
    assert first["end"] > first["start"] >= written["time"]
    assert all(use["cores"] for use in first["nodes"].values())
    Draft202012Validator(schema_of("plan")).validate(written)
    assert chart.read_text().count("<path") > 60
    same = out.read_bytes(), chart.read_bytes()
    assert run(arguments) == 0
    assert (out.read_bytes(), chart.read_bytes()) == same
    assert capsys.readouterr().err == ""


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(EXAMPLE), "--jobs", "5"]) == 0
    out = capsys.readouterr().out
    assert "5 jobs planned" in out
    assert "--jobs leaves out 59 jobs." in out
    assert "2026-11-20T10:" in out


def test_what_cannot_be_planned_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(tmp_path / "none.json")]) == 2
    assert run(["plan", str(EXAMPLE), "--gantt", "plan.txt"]) == 2
    assert run(["plan", str(EXAMPLE), "--jobs", "0"]) == 2
    content = document([{"name": "n1", "cores": 8, "free_cores": 7}], [], running=[held("A", 5, n1=1)])
    del content["time"]
    timeless = tmp_path / "timeless.json"
    timeless.write_text(json.dumps(content))
    capsys.readouterr()
    assert run(["plan", str(timeless)]) == 2
    assert capsys.readouterr().err.startswith(f"{timeless}: time: a plan compares")


def test_jobs_that_take_of_no_pool_cost_no_look_at_every_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(count: int) -> int:
        calls: list[int] = []
        kept = Pools.spent

        def spent(*of: Any) -> Any:
            calls.append(1)
            return kept(*of)

        with monkeypatch.context() as patched:
            patched.setattr(Pools, "spent", spent)
            patched.setattr(Pools, "add", lambda *_: calls.append(1))
            jobs = [
                {"id": str(number), "priority": 1, "cores": 3, "time_limit_s": 10 + number}
                for number in range(count)
            ]
            assert len(plan([{"name": "n1", "cores": 4}], jobs).planned) == count
        return len(calls)

    assert asked(40) == 2 * asked(20)


def test_the_command_says_how_many_jobs_it_plans(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = [{"id": str(number), "priority": 9 - number, "cores": 1} for number in range(5)]
    file = document([{"name": "n1", "cores": 4}], jobs)
    path = tmp_path / "now.json"
    path.write_text(json.dumps(file))
    assert run(["plan", str(path), "--jobs", "3", "--format", "json"]) == 0
    told = capfd.readouterr()
    assert "the first 3 of 5 jobs are planned: --jobs plans more" in told.err
    assert len(json.loads(told.out)["planned"]) == 3
    assert run(["plan", str(path), "--jobs", "5"]) == 0
    assert capfd.readouterr().err == ""
