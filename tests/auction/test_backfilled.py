"""Promise ``backfill``: what plain backfilling would start starts, and the auction says where."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_snapshots import random_snapshot
from support.build import snapshot
from support.run import aucsched

from aucsched import OptionError, Snapshot, load_workload, schedule
from aucsched.auction.decide import decide
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.state import state_of
from aucsched.auction.step import run_step
from aucsched.cluster.schedule import Reason
from aucsched.formats.native.cluster_file import snapshot_to_json
from aucsched.simulation.nodes import auction
from aucsched.simulation.nodes.node_policies import NodeOptions, play

EXAMPLE = Path(__file__).parents[2] / "examples" / "overtaken.json"
NODES = [{"name": "n", "cores": 8, "free_cores": 5}]
RUNNING: list[dict[str, Any]] = [
    {"id": "R", "nodes": {"n": {"cores": 3}}, "end_time": "2026-11-20T09:31:40Z"}
]
#: The first fits and the second does not; three small ones are worth more than the first.
JOBS: list[dict[str, Any]] = [
    {"id": "first", "cores": 5, "time_limit_s": 50},
    {"id": "blocked", "cores": 8, "time_limit_s": 50},
    *({"id": name, "cores": 2, "time_limit_s": 50} for name in ("a", "b")),
]


def started(jobs: list[dict[str, Any]], **options: Any) -> list[str]:
    return sorted(award.job for award in schedule(snapshot(NODES, jobs, running=RUNNING), **options).started)


@pytest.mark.parametrize("model", MODELS)
def test_jobs_before_the_blocked_one_start_whatever_others_are_worth(model: str) -> None:
    assert started(JOBS, model=model, reserve=0) == ["a", "b"]
    assert started(JOBS, model=model) == ["first"]
    assert started(JOBS, model=model, reserve=1, promise="backfill") == ["first"]
    assert started(JOBS[1:], model=model, reserve=1, promise="backfill") == ["a", "b"]


def test_what_outlasts_the_reservation_does_not_start_behind_it() -> None:
    jobs = [JOBS[1], {"id": "long", "cores": 5, "time_limit_s": 200}, *JOBS[2:]]
    assert started(jobs, reserve=1, promise="backfill") == ["a", "b"]
    # Without a reservation they start in order.
    assert started(jobs, promise="backfill", reserve=0) == ["long"]


def test_who_is_passed_is_said() -> None:
    found = schedule(snapshot(NODES, JOBS, running=RUNNING), reserve=1, promise="backfill")
    why = {one.job: one for one in found.pending}
    assert why["a"].reason is Reason.OUTBID
    assert why["a"].detail.startswith("jobs ahead of it start first, as in backfilling: no nodeset")


def test_what_jobs_behind_take_blocks_nobody() -> None:
    jobs = [
        {"id": "a", "cores": 8, "user": "ann"},
        {"id": "c", "cores": 8, "user": "ann", "licenses": {"m": 2}},
        {"id": "d", "cores": 8, "user": "bob", "licenses": {"m": 1}},
        {"id": "e", "cores": 8, "user": "eve", "licenses": {"m": 2}},
    ]
    limits = [{"name": "one", "jobs": {"user": "ann"}, "max": {"jobs": 1}}]
    nodes = [{"name": f"n{place}", "cores": 8} for place in range(3)]
    found = schedule(snapshot(nodes, jobs, limits=limits, licenses={"m": {"total": 2}}), reserve=1)
    why = {one.job: (one.reason, one.detail) for one in found.pending}
    assert why["c"] == (Reason.LIMIT, "it asks for 1 job, the limit one: jobs leaves 0 of 1")
    assert why["e"][1].endswith("it asks for 2 m licences, 1 free")


def test_what_only_jobs_behind_lack_room_for_is_said_of_the_limit() -> None:
    """j9 would fit on what is left, but for the limit, which j8 behind it used up."""
    sizes = {"n0": 4, "n1": 8, "n2": 8, "n3": 2, "n4": 4}
    nodes: list[dict[str, Any]] = [{"name": name, "cores": cores} for name, cores in sizes.items()]
    nodes[3]["free_cores"] = 1
    running = [{"id": "R0", "user": "a", "nodes": {"n3": {"cores": 1}}, "end_time": "2026-11-20T09:50:00Z"}]
    rows: list[tuple[str, str, int, dict[str, Any]]] = [
        ("j1", "b", 300, {"cores": 5, "nodes": 3}),
        ("j2", "b", 3600, {"cores": 11}),
        ("j3", "a", 60, {"cores": 12}),
        ("j4", "b", 300, {"cores": 8, "nodes": 2, "licenses": {"x": 1}}),
        ("j7", "a", 900, {"cores": 11, "nodes": 1, "licenses": {"x": 2}}),
        ("j6", "b", 900, {"cores": 10, "licenses": {"x": 2}}),
        ("j9", "a", 3600, {"cores": 8, "nodes": 3}),
        ("j8", "a", 3600, {"cores": 1}),
        ("j5", "b", 900, {"cores": 12, "nodes": 1}),
    ]
    jobs = [dict(asks, id=name, user=user, time_limit_s=time) for name, user, time, asks in rows]
    limits = [{"name": "two", "per": "user", "max": {"jobs": 2}}]
    licenses = {"x": {"total": 4, "free": 1}}
    made = snapshot(nodes, jobs, licenses=licenses, limits=limits, running=running)
    found = schedule(made, reserve=2, work_limit=1)
    assert {one.job for one in found.started} == {"j1", "j2", "j8"}
    why = {one.job: (one.reason, one.detail) for one in found.pending}
    used = "it asks for 1 job, the limit two: jobs of user a leaves 0 of 2; held by running R0"
    assert why["j9"] == (Reason.LIMIT, used)


def test_a_promised_start_comes_before() -> None:
    wide = {"id": "wide", "cores": 8, "time_limit_s": 50, "promised_start": "2026-11-20T09:31:40Z"}
    long = {"id": "long", "cores": 5, "time_limit_s": 200}
    assert started([long, wide], reserve=1, promise="backfill") == []
    assert started([long, wide], reserve=1, promise="none") == ["long"]


def crowded(seed: int) -> Snapshot:
    """Return a random cluster; of every other one the jobs wait three times over."""
    found = random_snapshot(seed)
    if seed % 2 == 0:
        return found
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(3) for job in found.jobs)
    return replace(found, jobs=jobs)


@pytest.mark.parametrize("part", range(2))
def test_whatever_backfilling_starts_starts(part: int) -> None:
    """Or a job in its place that asks for the same: it may be the other that has the reservation."""
    more = 0
    for seed in range(part, 120, 2):
        cluster = crowded(seed)
        options = StepOptions(
            reserve=seed % 3,
            promise="backfill",
            model="aucsched3" if seed % 4 else "aucsched2",
            strategy=("anytime", "greedy")[seed % 5 == 0],
            work_limit=2 if seed % 5 else None,
        )
        waiting = queue_of(cluster, state_of(cluster).reader, options).waiting
        kind = {demand.job.id: demand.kind for demand in waiting}
        wanted = Counter(
            kind[job] for job in first_fit_by_priority(cluster, options.window, options.reservations).started
        )
        found = Counter(kind[award.job] for award in run_step(cluster, options).started)
        assert not wanted - found, seed
        more += (found - wanted).total()
    # Completing a step finds places that first-fit does not look at.
    assert more > 0


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"balance": True}, "classes"),
        ({"weights": "paper"}, "lexicographic weights only"),
        ({"bid_order": "figure-4.5"}, "bid_order"),
        ({"award_alone": True}, "award_alone starts none"),
    ],
)
def test_what_would_break_it_is_refused(other: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        StepOptions(promise="backfill", **other)


def test_it_is_what_simulations_do_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(state: Any, queue: Any, options: StepOptions, **more: Any) -> Any:
        asked.append(options.chosen_promise)
        return decide(state, queue, options, **more)

    monkeypatch.setattr(auction, "decide", noted)
    contended = load_workload(EXAMPLE)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "backfill"),
        ({"reserve": 0}, "none"),
        ({"balance": True}, "none"),
        ({"objective": "priority_cores"}, "none"),
        ({"promise": "none"}, "none"),
        ({"preempt": True}, "none"),
        ({"reserve": 0, "promise": "backfill"}, "backfill"),
    )
    for options, promise in cases:
        asked.clear()
        play(contended, NodeOptions(policy="aucsched3", **options))
        assert set(asked) == {promise}, options


def test_as_a_user_asks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    path.write_text(snapshot_to_json(snapshot(NODES, JOBS, running=RUNNING)))
    done = aucsched("schedule", path, "--reserve", "1", "--promise", "backfill", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["job"] for one in json.loads(done.stdout)["started"]] == ["first"]
    for word, words in (
        ("backfil", "is not plan, auto, backfill, none"),
        ("auto", "is for simulations; for one queue give none, backfill or plan"),
    ):
        done = aucsched("schedule", path, "--promise", word)
        assert done.returncode == 2
        assert words in done.stderr


MAINTENANCE = {"name": "maint", "start": "2026-11-20T10:00:00Z", "end": "2026-11-20T12:20:00Z"}


@pytest.mark.parametrize(
    ("nodes", "job", "members", "reason"),
    [
        (
            [{"name": "n[1-8]", "cores": 8}],
            {"cores": 48, "time_limit_s": 7200},
            {"reservations": [{**MAINTENANCE, "nodes": "n[1-6]"}]},
            Reason.RESERVATION,
        ),
        (
            [{"name": f"g{kind}", "cores": 8, "gres": {f"gpu:{kind}": 2}} for kind in "ab"],
            {"nodes": 2, "cores_per_node": 1, "gres_per_node": {"gpu": 2}},
            {},
            Reason.INELIGIBLE,
        ),
    ],
)
def test_a_job_that_fits_nowhere_alone_is_not_outbid(
    nodes: list[dict[str, Any]], job: dict[str, Any], members: dict[str, Any], reason: Reason
) -> None:
    cluster = snapshot(nodes, [job], **members)
    [usual] = schedule(cluster, work_limit=0).pending
    [alone] = schedule(cluster, work_limit=0, promise="none").pending
    assert usual == alone
    assert usual.reason is reason
    # Nor is it beside a job that starts.
    small = {"cores": 1, "time_limit_s": 60}
    found = schedule(snapshot(nodes, [small, {**job, "id": "late"}], **members), work_limit=0)
    assert [one.reason for one in found.pending if one.job == "late"] == [reason]
    assert found.started
