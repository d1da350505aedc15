"""Limits over sets of jobs: in every model, beside running jobs, in plans and simulations, and in words."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_document
from support.build import ALONE, document, snapshot

from aucsched import AwardError, InputError, Job, Node, Request, Snapshot, Span, schedule, simulate
from aucsched.auction.check import check_schedule
from aucsched.auction.explain.explanation import explain
from aucsched.auction.explain.snapshot_report import report_on
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.planning.plan import plan as make_plan
from aucsched.auction.state import state_of
from aucsched.cluster.limits import JobSet, Limit
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.formats.native.cluster_file import (
    parse_snapshot,
    parse_workload,
    snapshot_to_json,
    workload_to_json,
)
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play

NODES = [{"name": "n[1-8]", "cores": 4, "gres": {"gpu:a": 2}}]
RUNNING = [
    {
        "id": "r1",
        "nodes": {"n1": {"cores": 4, "gres": {"gpu:a": 1}}},
        "qos": "normal",
        "user": "ann",
        "account": "physics",
        "end_time": "2026-11-20T09:31:40Z",
    }
]
ANN = {"cores": 4, "nodes": 1, "qos": "normal", "user": "ann", "account": "physics", "time_limit_s": 100}
BOB = {**ANN, "user": "bob"}
HIGH = {**ANN, "qos": "high"}


def limited(jobs: list[dict[str, Any]], *limits: dict[str, Any]) -> Snapshot:
    return snapshot(NODES, jobs, running=RUNNING, limits=list(limits))


def started(cluster: Snapshot, model: Any = "aucsched3") -> list[str]:
    return [award.job for award in schedule(cluster, model=model, work_limit=20).started]


NORMAL = {"qos": "normal"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("most", "expected"),
    [
        ({"cores": 8}, ["J1", "J3"]),
        ({"cores": 11}, ["J1", "J3"]),
        ({"nodes": 2}, ["J1", "J3"]),
        ({"jobs": 1}, ["J3"]),
        ({"jobs": 2, "cores": 100}, ["J1", "J3"]),
        # r1 holds 4 cores for 100 s more.
        ({"core_seconds": 799}, ["J3"]),
        ({"core_seconds": 800}, ["J1", "J3"]),
        ({"core_seconds": 1200}, ["J1", "J2", "J3"]),
        ({"cores": 2}, ["J3"]),
    ],
)
def test_a_limit_counts_running_jobs_and_winners_of_its_set_only(
    model: str, most: dict[str, int], expected: list[str]
) -> None:
    cluster = limited([ANN, BOB, HIGH], {"name": "qos normal", "jobs": NORMAL, "max": most})
    assert started(cluster, model) == expected


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("what", "left"), [("gres/gpu", 1), ("gres/gpu:a", 1), ("gres/gpu:b", 3)])
def test_gres_count_by_name_or_by_type(model: str, what: str, left: int) -> None:
    jobs = [{**ANN, "cores": 1, "gres_per_node": {"gpu": 1}} for _ in range(3)]
    cluster = limited(jobs, {"name": "gpus", "max": {what: 2}})
    assert len(started(cluster, model)) == left


@pytest.mark.parametrize("model", MODELS)
def test_all_types_on_a_node_count(model: Any) -> None:
    nodes = [{"name": f"n{place}", "cores": 4, "gres": {"gpu:a": 2, "gpu:b": 1}} for place in range(2)]
    job = {"nodes": 1, "cores": 1, "gres_per_node": {"gpu:a": 2, "gpu:b": 1}}
    cluster = snapshot(nodes, [job, {**job, "cores": 2}], limits=[{"name": "gpus", "max": {"gres/gpu": 5}}])
    found = schedule(cluster, model=model, work_limit=20, **ALONE)
    assert [award.job for award in found.started] == ["J1"]
    assert [(job.job, job.reason) for job in found.pending] == [("J2", "limit")]


@pytest.mark.parametrize("model", MODELS)
def test_per_counts_each_by_itself(model: str) -> None:
    cluster = limited([ANN, ANN, BOB, BOB], {"name": "users", "per": "user", "max": {"jobs": 2}})
    assert started(cluster, model) == ["J1", "J3", "J4"]


def test_all_members_of_a_set_must_match_and_one_name_of_each() -> None:
    both = {"qos": "normal", "account": ["physics", "biology"]}
    other = {**ANN, "account": "chemistry"}
    cluster = limited([ANN, other, HIGH], {"name": "both", "jobs": both, "max": {"jobs": 1}})
    assert started(cluster) == ["J2", "J3"]


def test_jobs_of_an_excepted_qos_are_not_in_the_set() -> None:
    """Of two names that a job has, as its partition's QOS, one is enough."""
    limit = {"name": "few", "jobs": {"account": "physics", "except_qos": "high"}, "max": {"jobs": 1}}
    cluster = limited([ANN, HIGH, {**ANN, "qos": "normal,high"}, BOB], limit)
    found = schedule(cluster, work_limit=20)
    assert [award.job for award in found.started] == ["J2", "J3"]
    assert [(job.job, job.reason) for job in found.pending] == [("J1", "limit"), ("J4", "limit")]
    assert report_on(cluster)["limits"] == {"few": "at most 1 job of account physics except qos high"}
    assert parse_snapshot(snapshot_to_json(cluster).encode()) == cluster
    every = Limit(name="few", jobs=JobSet(account=("physics",)), most={"jobs": 1})
    with pytest.raises(AwardError, match="limit few"):
        check_schedule(replace(cluster, limits=(every,)), found)


def _of_qos(name: str, qos: str, priority: int) -> Job:
    return Job(id=name, priority=priority, request=Request(cores=1), time_limit_s=100, qos=qos)


def test_a_job_of_an_excepted_qos_that_a_plan_starts_counts_while_it_runs() -> None:
    limits = [Limit(name="few", jobs=JobSet(except_qos=("high",)), most={"jobs": 1})]
    jobs = [_of_qos("a", "high", 9), _of_qos("b", "normal", 8), _of_qos("c", "high", 7)]
    found = make_plan(Snapshot(nodes=[Node(name="n", cores=8)], jobs=jobs, limits=limits))
    # Nothing keeps c back.
    assert found.columns["wait_s"] == [0, 100, 0]


@pytest.mark.parametrize("policy", ["easy", "backfill-slurm", "aucsched3"])
@pytest.mark.parametrize("most", [{"jobs": 1}, {"core_seconds": 199}])
def test_a_job_of_an_excepted_qos_that_a_simulation_starts_counts_while_it_runs(
    policy: str, most: dict[str, int]
) -> None:
    """Each ends after half of its time limit, and of its core-seconds the others are returned."""
    jobs = [
        ArrivingJob(job=_of_qos(name, qos, 5), arrival_s=arrival_s, run_time_s=50)
        for name, qos, arrival_s in (("a", "high", 0), ("b", "normal", 10), ("c", "high", 60))
    ]
    limits = [Limit(name="few", jobs=JobSet(except_qos=("high",)), most=most)]
    nodes = [Node(name="n", cores=8)]
    run = simulate(ClusterWorkload(nodes=nodes, jobs=jobs, limits=limits), policy)
    assert run.columns["start_s"] == [0, 50, 60]


def test_an_award_may_hold_a_job_of_an_excepted_qos_and_one_of_the_limit() -> None:
    """It counts from the next pass on: both start at once, in whatever order, and the third waits."""
    limits = [Limit(name="few", jobs=JobSet(except_qos=("high",)), most={"jobs": 1})]
    jobs = [
        ArrivingJob(
            job=replace(_of_qos(name, qos, priority), request=Request(cores=cores)),
            arrival_s=0,
            run_time_s=50,
        )
        for name, qos, priority, cores in (("c", "normal", 2, 2), ("b", "normal", 3, 4), ("a", "high", 4, 2))
    ]
    nodes = [Node(name=name, cores=4) for name in ("m", "n")]
    workload = ClusterWorkload(nodes=nodes, jobs=jobs, limits=limits)
    run = simulate(workload, "aucsched3", promise="none", reserve=0)
    assert dict(zip(run.columns["id"], run.columns["start_s"], strict=True)) == {"c": 50, "b": 0, "a": 0}


@pytest.mark.parametrize("policy", ["easy", "aucsched3"])
def test_the_rest_of_a_budget_comes_back_from_a_job_with_a_limit_by_nodes(policy: str) -> None:
    wide = Request(cores=4, nodes=Span.exactly(2))
    first = Job(id="a", priority=2, request=wide, limits_by_nodes_s={2: 50}, time_limit_s=400)
    second = Job(id="b", priority=1, request=Request(cores=4), time_limit_s=300)
    jobs = [
        ArrivingJob(job=first, arrival_s=0, run_time_s=30),
        ArrivingJob(job=second, arrival_s=100, run_time_s=30),
    ]
    limits = [Limit(name="budget", jobs=JobSet(), most={"core_seconds": 2000})]
    nodes = [Node(name=name, cores=4) for name in ("m", "n")]
    run = simulate(ClusterWorkload(nodes=nodes, jobs=jobs, limits=limits), policy)
    assert run.columns["start_s"] == [0, 100]


def test_limits_are_searched_once_for_the_jobs_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    holds, calls = JobSet.holds, Counter[str]()

    def counted(self: JobSet, job: Any) -> bool:
        calls[job.user] += 1
        return holds(self, job)

    monkeypatch.setattr(JobSet, "holds", counted)
    limits = [{"name": f"of {user}", "jobs": {"user": str(user)}, "max": {"jobs": 3}} for user in range(20)]
    jobs = [{"cores": 1, "user": str(place % 5), "time_limit_s": 60 + place} for place in range(60)]
    assert len(schedule(snapshot(NODES, jobs, limits=limits)).started) == 15
    assert set(calls.values()) == {1}


def test_whole_nodes_of_an_exclusive_job_count() -> None:
    job = {"nodes": 1, "cores": 1, "exclusive": True, "qos": "normal"}
    for model in MODELS:
        assert started(limited([job], {"name": "few", "jobs": NORMAL, "max": {"cores": 7}}), model) == []
        assert started(limited([job], {"name": "few", "jobs": NORMAL, "max": {"cores": 8}}), model) == ["J1"]


def test_a_job_without_a_time_limit_has_core_seconds_without_end() -> None:
    endless = {**HIGH, "time_limit_s": None}
    limit = {"name": "budget", "jobs": {"qos": "high"}, "max": {"core_seconds": 10**12}}
    found = schedule(limited([endless], limit), work_limit=5)
    assert found.started == ()
    assert "no time limit" in found.pending[0].detail


def test_the_reason_names_the_limit_and_who_uses_it_up() -> None:
    cluster = limited([ANN, BOB], {"name": "qos normal", "jobs": NORMAL, "max": {"cores": 8}})
    (waits,) = schedule(cluster, work_limit=20).pending
    assert waits.reason == "limit"
    (waits,) = schedule(cluster, work_limit=20, **ALONE).pending
    assert waits.reason == "limit"
    assert waits.detail == "the limit qos normal: cores is used up by running r1, J1"
    told = explain(cluster, "J2", StepOptions(work_limit=20, **ALONE))
    lacks = {(lack.what, lack.held_by) for bid in told.bids for lack in bid.lacks}
    assert ("the limit qos normal: cores", ("r1", "J1")) in lacks
    full = limited([ANN], {"name": "qos normal", "jobs": NORMAL, "max": {"jobs": 1}})
    (waits,) = schedule(full, work_limit=20).pending
    assert waits.reason == "limit"
    assert "qos normal" in waits.detail
    assert "r1" in waits.detail


@given(st.integers(0, 10**6), st.sampled_from(MODELS))
@settings(max_examples=15, deadline=None)
def test_limits_hold_on_random_snapshots_and_wide_ones_change_nothing(seed: int, model: Any) -> None:
    told = random_document(seed)
    for place, job in enumerate(told["jobs"]):
        job["user"] = f"u{place % 3}"
    wide = {"name": "wide", "max": {"cores": 10**9, "nodes": 10**9, "jobs": 10**9, "gres/gpu": 10**9}}
    tight = {"name": "tight", "per": "user", "max": {"cores": 8, "nodes": 2, "jobs": 1, "gres/gpu": 2}}
    plain, same, less = (
        schedule(parse(told | {"limits": limits}), model=model, work_limit=20)
        for limits in ([], [wide], [tight])
    )
    assert plain.objective.priority == same.objective.priority
    # auction/check.py has looked at the tight award; here once more, by hand.
    users = [next(job["user"] for job in told["jobs"] if job["id"] == award.job) for award in less.started]
    assert len(users) == len(set(users))
    assert all(sum(use.cores for use in award.nodes.values()) <= 8 for award in less.started)


def parse(told: dict[str, Any]) -> Snapshot:
    return parse_snapshot(msgspec.json.encode(told))


@pytest.mark.parametrize("what", ["cores", "nodes", "jobs", "core_seconds"])
def test_the_check_of_awards_refuses_what_breaks_a_limit(what: str) -> None:
    free = limited([ANN, BOB])
    award = schedule(free, work_limit=20)
    assert len(award.started) == 2
    most = {"cores": 11, "nodes": 2, "jobs": 2, "core_seconds": 1199}[what]
    tight = limited([ANN, BOB], {"name": "t", "jobs": NORMAL, "max": {what: most}})
    with pytest.raises(AwardError, match="limit t"):
        check_schedule(tight, award)
    check_schedule(limited([ANN, BOB], {"name": "t", "jobs": NORMAL, "max": {what: most + 1}}), award)


def test_the_check_of_awards_counts_a_job_in_each_of_its_qos() -> None:
    jobs = [one | {"qos": "other,normal"} for one in (ANN, BOB)]
    award = schedule(limited(jobs), work_limit=20)
    with pytest.raises(AwardError, match="limit t"):
        check_schedule(limited(jobs, {"name": "t", "jobs": NORMAL, "max": {"jobs": 1}}), award)


def test_a_plan_waits_for_the_ends_of_running_and_planned_jobs() -> None:
    found = make_plan(limited([ANN, BOB, HIGH], {"name": "l", "jobs": NORMAL, "max": {"jobs": 1}}))
    assert [(one.job, one.start - found.time) for one in found.planned] == [
        ("J1", 100),
        ("J2", 200),
        ("J3", 0),
    ]
    budget = {"name": "l", "jobs": NORMAL, "max": {"core_seconds": 800}}
    spent = make_plan(limited([ANN, BOB], budget))
    assert [one.job for one in spent.planned] == ["J1"]


def workload(*limits: dict[str, Any], run_time_s: float = 50) -> bytes:
    jobs = [{**ANN, "user": f"u{place % 2}", "arrival_s": 0, "run_time_s": run_time_s} for place in range(6)]
    told = document(NODES, jobs, name="w", limits=list(limits))
    del told["time"]
    return msgspec.json.encode(told | {"format": "aucsched-workload/1"})


@pytest.mark.parametrize("policy", NODE_POLICIES)
def test_every_policy_of_simulations_honours_limits(policy: str) -> None:
    told = parse_workload(workload({"name": "two", "jobs": NORMAL, "max": {"jobs": 2}}))
    result = play(told, NodeOptions(policy=policy))
    assert sorted(start.start_s for start in result.played) == [0, 0, 50, 50, 100, 100]


#: Nodes, the most of a limit, and a job that is within it on some of the nodes only, or on few.
LARGE, SMALL = {"name": "a[1-2]", "cores": 4, "gres": {"gpu": 4}}, {"name": "b[1-3]", "cores": 2}
TYPED = [{"name": name, "cores": 4, "gres": {f"gpu:{name}": 4}} for name in "ab"]
APART = [{**LARGE, "partitions": ["a"]}, {**SMALL, "partitions": ["b"]}]
WITHIN_ON_FEW = [
    ([SMALL, {**LARGE, "name": "a1"}], {"nodes": 1}, {"cores": 4}),
    ([LARGE, SMALL], {"nodes": 3}, {"nodes": [2, 4], "cores_per_node": 1}),
    ([LARGE, SMALL], {"cores": 3}, {"nodes": [2, 4], "cores_per_node": 1}),
    ([LARGE], {"gres/gpu": 3}, {"nodes": [1, 2], "cores_per_node": 1, "gres_per_node": {"gpu": 2}}),
    (TYPED, {"gres/gpu:a": 1}, {"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": 2}}),
    (TYPED, {"gres/gpu:a": 1}, {"nodes": 1, "cores_per_node": 1, "gres_total": {"gpu": 2}}),
    ([LARGE, SMALL], {"cores": 2}, {"nodes": 1, "cores_per_node": 1, "exclusive": True}),
    ([LARGE, SMALL], {"cores": 4}, {"nodes": 2, "cores_per_node": 1, "exclusive": True}),
    ([LARGE, SMALL], {"gres/gpu": 2}, {"nodes": [2, 5], "cores_per_node": 1, "exclusive": True}),
    (APART, {"gres/gpu": 2}, {"nodes": 1, "cores_per_node": 1, "exclusive": True, "partition": "a,b"}),
]


@pytest.mark.parametrize(("nodes", "most", "job"), WITHIN_ON_FEW)
def test_a_job_starts_where_it_is_within_its_limits(
    nodes: list[dict[str, Any]], most: dict[str, int], job: dict[str, Any]
) -> None:
    limits, job = [{"name": "all", "max": most}], {**job, "time_limit_s": 10}
    cluster = snapshot(nodes, [job], limits=limits)
    models = [model for model in MODELS if model != "ipsched" or set(job) == {"cores", "time_limit_s"}]
    for model in models:
        assert started(cluster, model) == ["J1"]
    assert [one.start for one in make_plan(cluster).planned] == [cluster.time]
    told = document(nodes, [{**job, "arrival_s": 0, "run_time_s": 5}], name="w", limits=limits)
    del told["time"]
    plays = parse_workload(msgspec.json.encode(told | {"format": "aucsched-workload/1"}))
    for policy in NODE_POLICIES.keys() - (set(MODELS) - set(models)):
        assert len(play(plays, NodeOptions(policy=policy)).played) == 1, policy
    assert len(play(plays, NodeOptions(policy="easy", selection="best")).played) == 1


@pytest.mark.parametrize(("nodes", "most", "job"), [WITHIN_ON_FEW[place] for place in (0, 1, 7)])
def test_a_job_starts_where_it_is_within_what_running_jobs_leave_of_its_limits(
    nodes: list[dict[str, Any]], most: dict[str, int], job: dict[str, Any]
) -> None:
    full = {"name": "full", "cores": 1, "free_cores": 0}
    running = [{"id": "r", "nodes": {"full": {"cores": 1}}}]
    limits = [{"name": "all", "max": {what: count + 1 for what, count in most.items()}}]
    cluster = snapshot([*nodes, full], [{**job, "time_limit_s": 10}], limits=limits, running=running)
    for promise in ("backfill", "none"):
        assert [award.job for award in schedule(cluster, promise=promise).started] == ["J1"]
    assert [one.start for one in make_plan(cluster).planned] == [cluster.time]


def test_licences_which_others_give_back_take_no_nodes_from_a_request() -> None:
    job = {"cores": 4, "licenses": {"m": 2}}
    state = state_of(snapshot([LARGE, SMALL], [job], licenses={"m": {"total": 2, "free": 1}}))
    demand = state.reader.demand(state.snapshot.jobs[0])
    assert demand is not None
    assert [one.max_nodes for one in demand.variants] == [5]


def test_where_only_fewer_nodes_are_within_a_limit_the_reason_names_it() -> None:
    nodes = [{"name": f"n{place}", "cores": 4, "free_cores": free} for place, free in enumerate((1, 1, 0, 2))]
    limits = [{"name": "one", "max": {"nodes": 1}}]
    [refusal] = schedule(snapshot(nodes, [{"cores": 4}], limits=limits), work_limit=0).pending
    assert refusal.reason == "limit"
    free = "4 cores are free on 3 nodes it may use"
    assert refusal.detail == f"no nodeset within the limit one: nodes holds 4 cores; {free}"


@pytest.mark.parametrize(
    ("nodes", "ask", "limit"),
    [
        ([{"cores": 4, "free_cores": 0}, {"cores": 16}], {"cores": 1, "exclusive": True}, {"cores": 8}),
        (
            [
                {"cores": 4, "gres": {"gpu:v": 1}, "free_gres": {"gpu:v": 0}},
                {"cores": 4, "gres": {"gpu:a": 1}},
            ],
            {"nodes": 1, "cores_per_node": 1, "gres_per_node": {"gpu": 1}},
            {"gres/gpu:a": 0},
        ),
    ],
)
def test_a_limit_that_takes_the_free_nodes_away_is_named(nodes: Any, ask: Any, limit: dict[str, int]) -> None:
    named = [{"name": f"n{place}", **node} for place, node in enumerate(nodes)]
    cluster = snapshot(named, [ask], limits=[{"name": "one", "max": limit}])
    [refusal] = schedule(cluster, work_limit=0).pending
    assert refusal.reason == "no_fit"
    assert refusal.detail.startswith(f"no nodeset within the limit one: {next(iter(limit))} holds ")


@pytest.mark.parametrize("policy", ["easy", "backfill-slurm", "aucsched3"])
def test_a_budget_is_used_up_by_what_has_run(policy: str) -> None:
    # Each may run 100 s on 4 cores and uses 200 core-seconds of them.
    told = parse_workload(workload({"name": "b", "jobs": NORMAL, "max": {"core_seconds": 800}}))
    result = play(told, NodeOptions(policy=policy))
    # Two at once, 400 used; one more has 400 left, 600 used; no other fits into 200.
    assert len(result.played) == 3


def test_a_part_of_a_core_second_that_a_job_used_counts_as_a_whole_one() -> None:
    told = json.loads(workload({"name": "b", "max": {"core_seconds": 3}}))
    every = {"cores": 1, "time_limit_s": 1, "run_time_s": 0.25}
    told["jobs"] = [
        {"id": f"J{place}", "priority": 1, "arrival_s": 10 * place, **every} for place in range(5)
    ]
    assert len(play(parse_workload(msgspec.json.encode(told)), NodeOptions(policy="fcfs")).played) == 3


def test_a_job_behind_one_whose_limit_is_used_up_starts() -> None:
    told = json.loads(workload({"name": "none", "jobs": {"user": "u0"}, "max": {"jobs": 0}}))
    result = play(parse_workload(msgspec.json.encode(told)), NodeOptions(policy="fcfs"))
    assert len(result.played) == 3


def test_files_with_limits_are_read_as_written() -> None:
    limits = [
        {"name": "a", "jobs": {"qos": "normal", "account": ["x", "y"]}, "max": {"cores": 0, "gres/gpu": 3}},
        {"name": "b", "max": {"jobs": 1}, "per": "user"},
    ]
    cluster = limited([ANN], *limits)
    assert parse_snapshot(snapshot_to_json(cluster).encode()) == cluster
    assert json.loads(snapshot_to_json(cluster))["limits"] == limits
    assert json.loads(snapshot_to_json(cluster))["running"][0]["account"] == "physics"
    told = parse_workload(workload(*limits))
    assert parse_workload(workload_to_json(told).encode()) == told
    assert report_on(cluster)["limits"] == {
        "a": "at most 0 cores, 3 gres/gpu of account x or y and qos normal",
        "b": "at most 1 job of all jobs, for each user",
    }


@pytest.mark.parametrize(
    ("limit", "path", "message"),
    [
        ({"name": "", "max": {"jobs": 1}}, "limits[0].name", "'' is empty"),
        ({"name": "a", "max": {}}, "limits[0].max", "nothing is limited"),
        ({"name": "a", "max": {"cpus": 1}}, "limits[0].max", "'cpus' is not one of"),
        ({"name": "a", "max": {"cores": -1}}, "limits[0].max.cores", "-1 is below 0"),
        ({"name": "a", "max": {"jobs": 1}, "per": "node"}, "limits[0].per", "'node' is not one of"),
        ({"name": "a", "max": {"jobs": 1}, "jobs": {"user": ""}}, "limits[0].jobs.user", "'' is empty"),
    ],
)
def test_a_wrong_limit_is_named(limit: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        limited([ANN], limit)
    assert caught.value.path == path
    assert message in caught.value.message


@pytest.mark.parametrize("what", ["cores", "nodes"])
def test_more_than_a_limit_can_never_start_whoever_runs(what: str) -> None:
    job = {"nodes": 4, "cores": 16, "user": "ann", "account": "physics", "time_limit_s": 100}
    most = {"cores": 8, "nodes": 2}[what]
    limit = {"name": "physics", "jobs": {"account": "physics"}, "max": {what: most}}
    [refusal] = schedule(limited([job], limit), work_limit=0).pending
    asks = {"cores": 16, "nodes": 4}[what]
    assert (
        refusal.detail
        == f"it asks for {asks} {what}, the limit physics: {what} is {most}: it can never start"
    )
    [waits] = schedule(limited([job], {**limit, "max": {what: asks}}), work_limit=0).pending
    assert waits.detail.endswith("held by running r1")


def test_one_core_is_asked_for_in_the_singular_and_a_budget_names_who_runs() -> None:
    limit = {"name": "l", "jobs": {"user": "ann"}, "max": {"cores": 0}}
    job = {"cores": 1, "user": "ann", "time_limit_s": 100}
    [refusal] = schedule(snapshot([{"name": "a", "cores": 8}], [job], limits=[limit]), work_limit=0).pending
    assert refusal.detail.startswith("it asks for 1 core, the limit")
    budget = {"name": "l", "jobs": {"account": "physics"}, "max": {"core_seconds": 500}}
    job = {"cores": 8, "account": "physics", "time_limit_s": 100}
    [refusal] = schedule(limited([job], budget), work_limit=0).pending
    assert refusal.detail.endswith("leaves 100 of 500; held by running r1")
