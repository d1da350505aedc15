"""``aucsched explain``: what is said of a job that starts, and of one that waits for each reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, document, snapshot
from support.run import aucsched, refused

from aucsched import InputError, Job, License, Node, Request, Resources, Snapshot, schedule
from aucsched.auction.explain.explanation import Explanation, explain
from aucsched.auction.explain.words import duration, request_words
from aucsched.auction.options import MODELS, StepOptions
from aucsched.cluster.schedule import Reason

EXAMPLE = Path(__file__).parents[3] / "examples" / "emulated-1408-full.json"
NOW = 1_795_167_000.0  # 2026-11-20T09:30:00Z, the time of support.build's snapshots

NODES: list[dict[str, Any]] = [
    {"name": "n[1-2]", "cores": 8},
    {"name": "n3", "cores": 8, "state": "allocated"},
    {"name": "n4", "cores": 8, "state": "drained"},
    {"name": "n5", "cores": 8, "partitions": ["debug"]},
    {"name": "n6", "cores": 8},
]
RUNNING = [
    {"id": "R1", "nodes": {"n3": {"cores": 8}}, "end_time": NOW + 600},
    {"id": "R2", "nodes": {"n6": {"cores": 6}}, "end_time": NOW + 60},
]


def explained(cluster: Snapshot, job: str, **options: Any) -> Explanation:
    return explain(cluster, job, StepOptions(**{**ALONE, **options}))


def groups(found: Explanation) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {group.what: (group.nodes, group.held_by) for group in found.groups}


def crowded() -> Snapshot:
    jobs: list[dict[str, Any]] = [
        {"nodes": 2, "cores_per_node": 6, "time_limit_s": 300},
        {"nodes": 2, "cores_per_node": 4, "contiguous": True, "excluded_nodes": "n5"},
    ]
    return snapshot(NODES, jobs, running=RUNNING)


def test_a_job_that_starts_tells_which_bid_won() -> None:
    found = explained(crowded(), "J1")
    assert found.award is not None
    assert found.refusal is None
    assert (found.place, found.queued) == (1, 2)
    assert [bid.nodes for bid in found.bids if bid.won] == [tuple(found.award.nodes)]
    assert found.groups == ()


@pytest.mark.parametrize("seed", [34, 40])
def test_bids_in_parts_are_shown_with_the_preferences_that_awards_have(seed: int) -> None:
    # The award's own table has other bids than were made at first.
    cluster = random_snapshot(seed)
    awards = {award.job: award.bid.preference for award in schedule(cluster, part_nodes=4, **ALONE).started}
    for job in cluster.jobs:
        won = [bid.preference for bid in explained(cluster, job.id, part_nodes=4).bids if bid.won]
        assert won in ([], [awards.get(job.id)])


def test_a_job_that_is_outbid_tells_by_whom_on_which_nodes() -> None:
    found = explained(crowded(), "J2")
    assert found.refusal is not None
    assert found.refusal.reason is Reason.OUTBID
    assert [bid.nodes for bid in found.bids] == [("n1", "n2")]
    (lack,) = found.bids[0].lacks
    assert (lack.what, lack.held_by) == ("cores", ("J1",))
    assert set(lack.nodes) <= {"n1", "n2"}


def test_the_nodes_are_sorted_out_with_those_who_hold_them() -> None:
    jobs = [
        {"cores": 20, "nodes": 2, "excluded_nodes": "n5", "priority": 1},
        {"nodes": 1, "cores_per_node": 8, "required_nodes": "n1"},
    ]
    found = explained(snapshot(NODES, jobs, running=RUNNING), "J1")
    assert groups(found) == {
        "free for it": (("n2", "n6"), ()),
        "taken by jobs that start now": (("n1",), ("J2",)),
        "allocated": (("n3",), ("R1",)),
        "drained": (("n4",), ()),
        "not of its partition or features, or excluded": (("n5",), ()),
    }


def test_busy_and_reserved_nodes_name_their_holders() -> None:
    entry = {"name": "weekly", "nodes": "n2", "start": NOW, "end": NOW + 900, "users": ["ann"]}
    jobs = [{"cores_per_node": 4, "nodes": 3, "excluded_nodes": "n5"}]
    found = explained(snapshot(NODES, jobs, running=RUNNING, reservations=[entry]), "J1")
    assert groups(found)["too little is free"] == (("n6",), ("R2",))
    assert groups(found)["reserved"] == (("n2",), ("weekly",))


def test_only_the_jobs_on_the_short_nodes_hold_them() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 1, "cores_per_node": 8, "required_nodes": "n1"},
        {"cores": 2, "required_nodes": "n2"},
        {"nodes": 2, "cores_per_node": 5, "required_nodes": "n[1-2]"},
    ]
    found = explained(snapshot(NODES, jobs), "J3")
    assert [(lack.nodes, lack.held_by) for lack in found.bids[0].lacks] == [(("n1",), ("J1",))]


def test_a_reservation_of_the_jobs_own_user_is_no_hindrance() -> None:
    entry = {"name": "weekly", "nodes": "n2", "start": NOW, "end": NOW + 900, "users": ["ann"]}
    jobs = [{"cores_per_node": 4, "nodes": 9, "user": user} for user in ("ann", "bob")]
    cluster = snapshot(NODES, jobs, reservations=[entry])
    assert "reserved" not in groups(explained(cluster, "J1"))
    assert "n2" in groups(explained(cluster, "J1"))["free for it"][0]
    assert groups(explained(cluster, "J2"))["reserved"] == (("n2",), ("weekly",))


def test_when_it_could_start_at_the_latest_alone_and_after_the_award() -> None:
    found = explained(crowded(), "J2")
    assert found.alone is not None
    assert (found.alone.time, found.alone.at_once) == (NOW, True)
    # R1's node is freed after 600 s, but n2 by the awarded job after 300 s.
    assert found.after_award is not None
    assert (found.after_award.time, found.after_award.nodes) == (NOW + 300, ("n1", "n2"))


def test_a_reservation_for_a_blocked_job_is_in_the_way() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores_per_node": 3, "time_limit_s": 600},
        {"nodes": 2, "cores_per_node": 2, "time_limit_s": 600},
        {"nodes": 1, "cores_per_node": 1, "time_limit_s": 600, "priority": 1},
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": NOW + 100}]
    cluster = snapshot([{"name": "n[1-4]", "cores": 4}], jobs, running=running)
    assert explained(cluster, "J2").award is not None
    found = explained(cluster, "J2", reserve=1)
    assert found.refusal is not None
    assert found.refusal.reason is Reason.RESERVATION
    assert groups(found)["kept for jobs that --reserve protects"] == (("n2", "n3", "n4"), ("J1",))
    assert found.changes is not None
    assert [change.words for change in found.changes][1:] == [
        ("a time limit of 1 min 40 s instead of 10 min",)
    ]
    head = explained(cluster, "J1", reserve=1)
    assert head.reserved is not None
    assert (head.reserved.time, head.reserved.nodes) == (NOW + 100, ("n1", "n2", "n3", "n4"))
    assert explained(cluster, "J1").reserved is None


def test_a_bid_that_would_delay_a_reservation_says_so() -> None:
    jobs: list[dict[str, Any]] = [
        {"nodes": 4, "cores": 12, "time_limit_s": 600, "min_cores_per_node": 3},
        *({"cores": 1, "nodes": 1, "time_limit_s": 600, "required_nodes": "n2"} for _ in range(2)),
    ]
    running = [{"id": "r", "nodes": {"n1": {"cores": 4}}, "end_time": NOW + 100}]
    cluster = snapshot([{"name": "n[1-4]", "cores": 4}], jobs, running=running)
    found = explained(cluster, "J3", reserve=1)
    assert [(lack.what, lack.nodes, lack.held_by) for bid in found.bids for lack in bid.lacks] == [
        ("room next to the reservation", ("n2",), ("J1",))
    ]


def test_licences_are_a_lack_without_nodes() -> None:
    jobs = [{"cores": 1, "licenses": {"matlab": 2}}, {"cores": 1, "licenses": {"matlab": 1}}]
    cluster = snapshot(NODES, jobs, licenses={"matlab": {"total": 2, "free": 2}})
    found = explained(cluster, "J2")
    assert [(lack.what, lack.nodes, lack.held_by) for lack in found.bids[0].lacks] == [
        ("matlab licences", (), ("J1",))
    ]


@pytest.mark.parametrize(
    ("job", "reason", "words"),
    [
        ({"cores": 1, "hold": "JobHeldUser"}, "held", "JobHeldUser"),
        ({"cores": 1, "priority": 0}, "held", "priority 0"),
        ({"cores": 1, "hold": "BeginTime"}, "not_eligible", "BeginTime"),
        ({"cores": 1, "unsupported": ["burst buffer"]}, "not_expressible", "burst buffer"),
        ({"cores": 1, "partition": "nowhere"}, "ineligible", "nowhere"),
        ({"cores": 999}, "ineligible", "it asks for 999 cores, there are"),
        ({"cores": 32, "priority": 1}, "window", "1 job of the window is ahead of it"),
    ],
)
def test_jobs_that_make_no_bid_have_a_clear_statement(job: dict[str, Any], reason: str, words: str) -> None:
    cluster = snapshot(NODES, [{"id": "first", "cores": 1, "priority": 2000}, {"id": "it", **job}])
    found = explained(cluster, "it", window=1 if reason == "window" else 100)
    assert found.refusal is not None
    assert found.refusal.reason.value == reason
    assert words in found.refusal.detail
    assert found.bids == ()


@given(st.integers(0, 10**6), st.sampled_from(MODELS))
@settings(max_examples=15, deadline=None)
def test_an_explanation_agrees_with_the_schedule(seed: int, model: Any) -> None:
    cluster = random_snapshot(seed)
    result = schedule(cluster, model=model, work_limit=50, reserve=0)
    for job in cluster.jobs[:5]:
        found = explained(cluster, job.id, model=model, work_limit=50)
        started = {award.job: award for award in result.started}
        assert (found.award is None) is (job.id not in started)
        assert (found.award is None) is (found.refusal is not None)
        if found.award is not None and model in {"aucsched2", "aucsched3"}:
            assert any(bid.won and not bid.lacks for bid in found.bids)
        if found.refusal is not None and found.refusal.reason is Reason.OUTBID and model != "ipsched":
            assert found.bids
            assert all(bid.lacks for bid in found.bids), "what fits beside the award would have started"
        names = [name for group in found.groups for name in group.nodes]
        assert set(names) <= {node.name for node in cluster.nodes}
        json.dumps(found.to_dict())


def test_every_part_of_a_request_is_said() -> None:
    job = {
        "nodes": [2, 3], "cores": 12, "min_cores_per_node": 2, "cores_per_task": 2, "contiguous": True,
        "gres_per_node": {"gpu:a": [0, 1]}, "gres_total": {"fpga": 2}, "memory_mib_per_core": 10,
        "exclusive": True, "max_switches": 1, "features": ["x", "y"], "required_nodes": "n1",
        "excluded_nodes": "n2", "licenses": {"matlab": 1}, "partition": "debug", "time_limit_s": 5400,
    }  # fmt: skip
    cluster = snapshot(NODES, [job], licenses={"matlab": {"total": 1}})
    assert request_words(cluster.jobs[0]) == [
        "2 to 3 empty nodes", "12 cores", "at least 2 cores a node", "2 cores a task", "0 to 1 gpu:a a node",
        "2 fpga in all", "10 MiB a core", "1 matlab licence", "consecutive nodes", "at most 1 leaf switch",
        "features x and y", "with n1", "without n2", "partition debug", "for at most 1 h 30 min",
    ]  # fmt: skip


def test_durations_are_short() -> None:
    assert [duration(seconds) for seconds in (0, 59.6, 61, 3600, 90_061)] == [
        "0 s", "1 min", "1 min 1 s", "1 h", "1 d 1 h",
    ]  # fmt: skip


def test_a_job_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="'J9' is not a pending job"):
        explained(crowded(), "J9")
    assert refused("explain", EXAMPLE, "999").endswith(
        "full.json: jobs: '999' is not a pending job of this snapshot"
    )
    assert refused("explain", EXAMPLE, "5").endswith("'5' is running already")
    assert "'--window': 0 is not in the range 1<=x" in refused("explain", EXAMPLE, "33", "--window", "0")


@pytest.mark.parametrize(
    ("name", "task"), [("13", "13_7"), ("13_[7,9]", "13_7"), ("13_[6-9] (4 tasks)", "13_6"), ("13_9", "13_9")]
)
def test_an_array_is_its_first_task_that_waits(name: str, task: str) -> None:
    ids = ("13_6", "13_7", "13_9", "130_1")
    jobs = [{"id": one, "cores": 1, "priority": 5 + (one == "13_7")} for one in ids]
    cluster = snapshot(NODES, jobs, running=RUNNING)
    assert explained(cluster, name).job.id == task
    for other in ("1", "13_[8-9]", "130_", "13_"):
        with pytest.raises(InputError, match="is not a pending job"):
            explained(cluster, other)
    with pytest.raises(InputError, match=r"'13\+7' is not a pending job of this snapshot: did you mean 13_7"):
        explained(cluster, "13+7")


def test_a_part_of_a_heterogeneous_job_is_found_as_squeue_prints_it() -> None:
    whole = {"cores": 1, "unsupported": ["a heterogeneous job"]}
    cluster = snapshot(NODES, [{"id": "23", **whole}, {"id": "24", "cores": 1}], running=RUNNING)
    assert explained(cluster, "22+1").job.id == "23"
    for other in ("22+2", "22+0", "x+1"):
        with pytest.raises(InputError, match="is not a pending job"):
            explained(cluster, other)


def test_a_job_above_a_limit_never_starts_and_both_the_text_and_the_page_say_so(tmp_path: Path) -> None:
    page, file = tmp_path / "job.html", tmp_path / "made.json"
    jobs = [{"id": "1", "cores": 6, "account": "a", "time_limit_s": 60}]
    limits = [{"name": "acct", "jobs": {"account": ["a"]}, "max": {"cores": 4}}]
    node = {"name": "n1", "cores": 8}
    file.write_text(json.dumps(document([node], jobs, limits=limits)))
    assert "could start  never: see why it waits\n" in aucsched("explain", file, "1", "--html", page).stdout
    assert "never: see why it waits" in page.read_text()
    # One that waits for an end that is not known may start.
    running = [{"id": "R", "nodes": {"n1": {"cores": 8}}}]
    file.write_text(json.dumps(document([node], jobs, running=running)))
    assert "not to be foreseen" in aucsched("explain", file, "1").stdout


def test_an_exclusive_job_over_a_limit_waits_for_it_with_all_cores_of_its_nodes() -> None:
    limits = [{"name": "high", "max": {"cores": 100}, "jobs": {"qos": "high"}}]
    asked = {"cores_per_node": 1, "exclusive": True, "qos": "high", "time_limit_s": 600}
    jobs = [{"nodes": count, **asked} for count in (1, 2, 3)]
    cluster = snapshot([{"name": "n[1-4]", "cores": 48}], jobs, limits=limits)
    for reserve in (0, 1):
        second, third = (explained(cluster, name, reserve=reserve) for name in ("J2", "J3"))
        assert second.refusal is not None
        assert third.refusal is not None
        assert second.refusal.reason is third.refusal.reason is Reason.LIMIT
        assert "the limit high: cores" in second.refusal.detail
        assert "144 cores, the limit high: cores is 100: it can never start" in third.refusal.detail
        assert second.after_award is not None
        assert second.after_award.time == NOW + 600


@pytest.mark.parametrize(
    ("asked", "members"),
    [
        (
            {"cores": 60, "qos": "high"},
            {"limits": [{"name": "h", "max": {"cores": 100}, "jobs": {"qos": "high"}}]},
        ),
        ({"cores": 1, "licenses": {"m": 3}}, {"licenses": {"m": {"total": 5, "free": 5}}}),
    ],
)
def test_what_starts_now_gives_limits_and_licences_back_at_its_end(asked: Any, members: Any) -> None:
    jobs = [{**asked, "time_limit_s": limit} for limit in (600, 300)]
    found = explained(snapshot([{"name": "n[1-4]", "cores": 48}], jobs, **members), "J2")
    assert found.alone is not None
    assert found.after_award is not None
    assert (found.alone.time, found.after_award.time) == (NOW, NOW + 600)


def test_the_first_end_that_leaves_enough_counts_and_limits_are_those_of_the_nodes() -> None:
    jobs = [
        Job(id=name, priority=priority, request=Request(cores=1, licenses={"m": 1}), **limits)
        for name, priority, limits in (
            ("long", 9, {"time_limit_s": 900}),
            ("short", 8, {"time_limit_s": 5000, "limits_by_nodes_s": {1: 300}}),
            ("last", 7, {"time_limit_s": 60}),
        )
    ]
    node = Node(name="n", total=Resources(cores=8))
    cluster = Snapshot(nodes=[node], jobs=jobs, time=NOW, licenses={"m": License(total=2)})
    found = explained(cluster, "last").after_award
    assert found is not None
    assert found.time == NOW + 300


def test_no_cap_is_blamed_for_a_limit_that_every_bid_breaks() -> None:
    nodes = [{"name": f"n{place}", "cores": 4, "free_cores": free} for place, free in enumerate((1, 1, 0, 2))]
    limits = [{"name": "one", "max": {"nodes": 1}, "jobs": {}}]
    found = explained(snapshot(nodes, [{"cores": 4}], limits=limits), "J1").refusal
    assert found is not None
    assert found.reason is Reason.LIMIT


def test_the_command_explains_a_real_queue() -> None:
    done = aucsched("explain", EXAMPLE, "70", "--seed", "0", "--reserve", "0")
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "asks for",
        "outbid by ",
        "could start",
        "bids, in the order",
        "taken by jobs that start",
    ):
        assert words in done.stdout
    answer = json.loads(aucsched("explain", EXAMPLE, "33", "--reserve", "0", "--format", "json").stdout)
    assert answer["waits"]["reason"] == "no_fit"
    assert answer["latest_start"]["alone"]["time"] > NOW
    assert answer["expected_start_time"] == 1_795_169_669


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("114", ", only if it is released and no nodes were kept for others and nothing else"),
        ("64", ", only if no nodes were kept for others and nothing else starts before it"),
        (
            "113",
            ", only if it is released and no nodes were kept for others and nothing else starts before it",
        ),
    ],
)
def test_when_a_job_could_start_says_what_would_have_to_be_otherwise(job: str, words: str) -> None:
    said = aucsched("explain", EXAMPLE, job, "--work-limit", "5").stdout
    assert words in " ".join(said.split())
    assert "it is released" not in aucsched("explain", EXAMPLE, "33", "--work-limit", "5").stdout


def test_explain_and_compare_take_reservations() -> None:
    jobs = [{"nodes": 2, "cores_per_node": 8, "time_limit_s": 60}, {"cores": 8, "time_limit_s": 60}]
    nodes = [{"name": "n[1-2]", "cores": 8}]
    running = [{"id": "R", "nodes": {"n1": {"cores": 8}}, "end_time": NOW + 10}]
    text = json.dumps(document(nodes, jobs, running=running))
    plain, reserved = (
        aucsched("explain", "-", "J2", *given, stdin=text).stdout
        for given in (("--reserve", "0"), ("--promise", "plan", "--reserve", "1"))
    )
    assert "starts" in plain
    assert "reservation: it would delay job J1" in reserved
    assert (
        "reserved" in aucsched("explain", "-", "J1", "--promise", "plan", "--reserve", "1", stdin=text).stdout
    )
    plain, reserved = (
        json.loads(aucsched("compare", "-", "--format", "json", *given, stdin=text).stdout)
        for given in (("--reserve", "0"), ("--promise", "plan", "--reserve", "1"))
    )
    assert [plain["totals"]["auction"]["jobs"], reserved["totals"]["auction"]["jobs"]] == [1, 0]
    assert "'--reserve': -1 is not" in refused("compare", "-", "--reserve", "-1", stdin=text)


def test_ipsched_has_no_bids_and_says_so() -> None:
    text = json.dumps(document(NODES, [{"cores": 1}]))
    assert "There are no bids" in aucsched("explain", "-", "J1", "--model", "ipsched", stdin=text).stdout


def test_standard_input_is_read() -> None:
    text = json.dumps(document(NODES, [{"cores": 1}]))
    assert "starts" in aucsched("explain", "-", "J1", stdin=text).stdout
