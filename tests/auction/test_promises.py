"""Promised starts: no award puts one off, in a step and in simulations of nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.build import document, snapshot

from aucsched import Auction, InputError, OptionError, schedule
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of, worth_of
from aucsched.auction.reserve import Promise, StepReservations
from aucsched.auction.state import state_of
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from aucsched.formats.native.cluster_file import parse_snapshot, snapshot_to_json
from aucsched.simulation.nodes.node_policies import NodeOptions, play

NODES = [{"name": "n", "cores": 4, "free_cores": 2}]
RUNNING = [{"id": "R", "nodes": {"n": {"cores": 2}}, "end_time": "2026-11-20T09:31:40Z"}]
LONG = {"id": "long", "cores": 2, "time_limit_s": 200}
SHORT = {"id": "short", "cores": 2, "time_limit_s": 90}


def started(*jobs: dict[str, Any], **options: Any) -> list[str]:
    """Return who starts beside a job that holds half the node for 100 s more."""
    found = schedule(snapshot(NODES, jobs, running=RUNNING), **options)
    return sorted(award.job for award in found.started)


def wide(promised: str) -> dict[str, Any]:
    return {"id": "wide", "cores": 4, "time_limit_s": 50, "promised_start": f"2026-11-20T09:{promised}Z"}


def test_nothing_starts_that_would_put_a_promise_off() -> None:
    # When R ends, at 9:31:40, the node is the wide job's: the long one would still run, the short one not.
    assert started(LONG, wide("31:40")) == []
    assert started(SHORT, wide("31:40")) == ["short"]
    assert started(LONG, SHORT, wide("31:40")) == ["short"]
    # A later promise leaves room for it.
    assert started(LONG, wide("33:20")) == ["long"]
    assert started(LONG, wide("33:19")) == []


def test_promises_may_be_left_alone_and_are_not_made() -> None:
    assert started(LONG, wide("31:40"), promise="none") == ["long"]
    assert started(LONG, wide("31:40"), promise="plan") == []
    with pytest.raises(OptionError, match="'2d' is for simulations"):
        started(LONG, promise="2d")


def test_a_promise_behind_the_window_is_kept() -> None:
    assert started(LONG, wide("31:40"), window=1) == []


def test_whose_promise_has_come_is_in_the_window_and_first() -> None:
    late = {"id": "late", "cores": 2, "time_limit_s": 50, "promised_start": "2026-11-20T09:29:00Z"}
    assert started(LONG, SHORT, late, window=1) == ["late"]


@pytest.mark.parametrize("options", [{"balance": True}, {"balance": True, "reserve": 0}])
def test_a_balance_keeps_promises_of_jobs_beyond_their_share(options: dict[str, Any]) -> None:
    nodes = [{"name": f"n{place}", "cores": 3, "free_cores": 3 if place else 0} for place in range(3)]
    running = [{"id": "R", "nodes": {"n0": {"cores": 3}}, "end_time": "2026-11-20T09:30:50Z"}]
    asked = [(1, 1000), (3, 300), (2, 100), (2, 1000), (3, 50), (1, 40), (2, 1000)]
    jobs: list[dict[str, Any]] = [
        {"nodes": count, "cores_per_node": 3, "time_limit_s": limit} for count, limit in asked
    ]
    jobs[1]["promised_start"] = "2026-11-20T09:31:10Z"
    found = schedule(snapshot(nodes, jobs, running=running), **options)
    # J6 takes what its shape's share leaves to J2; beside it J1 would hold a node of J2's for 1000 s.
    assert [award.job for award in found.started] == ["J6"]


def test_a_promise_needs_the_snapshot_s_time() -> None:
    said = r"^jobs\[0\]\.promised_start: 1795167100 needs the snapshot's time$"
    with pytest.raises(InputError, match=said):
        snapshot(NODES, [wide("31:40")], time=None)
    auction, promised = Auction(snapshot(NODES, [], time=None)), snapshot(NODES, [wide("31:40")]).jobs
    with pytest.raises(InputError, match=r"^update\.arrived\[0\]\.promised_start: .* needs"):
        auction.update(arrived=promised)
    auction.update(time=1795167000, arrived=promised)


def test_a_promise_travels_through_files() -> None:
    one = snapshot(NODES, [wide("31:40")])
    assert parse_snapshot(snapshot_to_json(one).encode()).jobs[0].promised_start == one.jobs[0].promised_start
    assert document(NODES, [wide("31:40")])["jobs"][0]["promised_start"] == "2026-11-20T09:31:40Z"


def test_response_starts_what_a_wait_costs_most() -> None:
    assert started(LONG, SHORT, objective="response") == ["short"]
    assert started(LONG, SHORT) == ["long"]


def test_worth() -> None:
    def job(limit: int | None) -> Job:
        return Job(id="1", priority=1, request=Request(cores=1), time_limit_s=limit)

    assert worth_of(job(10), 0) == worth_of(job(1), 0) == 1_000_000
    assert worth_of(job(1000), 0) == 10_000
    assert worth_of(job(1000), 0, 0.25) == 40_000
    # Sixteen times its length of waiting make fifteen and one: the fourth root is 2.
    assert worth_of(job(1000), 15_000) == 20_000
    assert worth_of(job(None), 10**6) == worth_of(job(10**9), 0) == 1


def crowded(seed: int, jobs: int = 40) -> ClusterWorkload:
    """Return jobs that crowd 4 nodes; limits are a little to much longer than run times."""
    rng = random.Random(seed)
    amount = Resources(cores=4)
    nodes = [Node(name=f"n{place}", total=amount, free=amount) for place in range(4)]
    arrival = 0.0
    made = []
    for rank in range(jobs):
        arrival += rng.choice([0, 1, 5, 20])
        run = rng.choice([3, 10, 40, 100])
        limit = run * rng.choice([1, 1, 2, 5])
        request = Request(cores=rng.choice([1, 2, 4, 8, 16]))
        job = Job(id=str(rank), priority=basic_priority(rank), request=request, time_limit_s=limit)
        made.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=run))
    return ClusterWorkload(name="crowded", nodes=nodes, jobs=made)


def test_promises_follow_one_another_on_the_same_nodes() -> None:
    state = state_of(snapshot(NODES, [wide("31:40"), wide("31:41") | {"id": "next"}], running=RUNNING))
    first, second = queue_of(
        snapshot(NODES, [wide("31:40"), wide("31:41") | {"id": "next"}], running=RUNNING),
        state.reader,
        StepOptions(),
    ).window
    reservations = StepReservations(state, 0)
    ends = state.now + 100
    # The second, made first, leaves the first no room before it: it comes when that has ended.
    one = reservations.promise(Promise(second, ends + 1))
    other = reservations.promise(Promise(first, ends))
    assert one is not None
    assert other is not None
    assert (one.start, one.end) == (ends + 1, ends + 51)
    assert (other.start, other.end) == (ends + 51, ends + 101)
    # Known places are taken again as they are, in whatever order.
    again = StepReservations(state, 0)
    for promise in (
        Promise(first, other.start, other.allocation),
        Promise(second, one.start, one.allocation),
    ):
        kept = again.promise(promise)
        assert kept is not None
        assert kept.start == promise.start
        assert kept.allocation is promise.allocation
    assert [guard.time for guard in again.guards] == [other.start, one.start]
    # Each guard is beside the promises that hold at its start, and no others: the whole node is taken.
    assert [guard.room.cores.tolist() for guard in again.guards] == [[0], [0]]


def test_a_promise_moves_sooner_as_far_as_others_leave_it() -> None:
    cluster = snapshot(NODES, [wide("31:40"), wide("31:41") | {"id": "next"}], running=RUNNING)
    state = state_of(cluster)
    first, second = queue_of(cluster, state.reader, StepOptions()).window
    ends = state.now + 100
    reservations = StepReservations(state, 0)
    late = Promise(first, ends + 300)
    assert reservations.promise(late) is not None
    assert reservations.promise(Promise(second, ends + 10)) is not None
    # Before the other there is room for 10 s only, behind it from 60 s on.
    found = reservations.sooner(late, state.now)
    assert found is not None
    assert (found.start, found.end) == (ends + 60, ends + 110)
    assert [guard.time for guard in reservations.guards] == [ends + 60, ends + 10]
    assert reservations.sooner(Promise(first, ends + 60), state.now) is None
    # Not before the time that counts, though it could.
    found = reservations.sooner(Promise(second, ends + 10), ends + 5)
    assert found is not None
    assert found.start == ends + 5


def test_a_start_that_is_found_may_be_put_off() -> None:
    cluster = snapshot(NODES, [wide("31:40")], running=RUNNING)
    state = state_of(cluster)
    (demand,) = queue_of(cluster, state.reader, StepOptions()).window
    reservations = StepReservations(state, 0)
    assert reservations.promise(Promise(demand, state.now + 300)) is not None
    # It could start in 100 s: half as far again are 150, and three times as far is no sooner.
    assert reservations.sooner(Promise(demand, state.now + 300), state.now, lambda _: state.now + 300) is None
    found = reservations.sooner(Promise(demand, state.now + 300), state.now, lambda start: start + 50)
    assert found is not None
    assert found.start == state.now + 150
    # What is not found but asked for is not put off.
    found = reservations.sooner(Promise(demand, found.start), state.now + 120, lambda start: start + 5)
    assert found is not None
    assert found.start == state.now + 120


def test_a_known_place_that_is_taken_is_looked_for_anew() -> None:
    document = snapshot(NODES, [wide("31:40")], running=RUNNING)
    state = state_of(document)
    (demand,) = queue_of(document, state.reader, StepOptions()).window
    kept = StepReservations(state, 0).promise(Promise(demand, state.now + 100))
    assert kept is not None
    # R still runs then: the place is not free before it ends.
    late = StepReservations(state, 0).promise(Promise(demand, state.now + 50, kept.allocation))
    assert late is not None
    assert late.start == state.now + 100


@pytest.mark.parametrize("promise", ["plan", "30s", None])
@pytest.mark.parametrize("seed", range(2))
def test_simulations_keep_every_promise(seed: int, promise: str | None) -> None:
    options = NodeOptions(policy="aucsched3", strategy="greedy", objective="response", promise=promise)
    result = play(crowded(seed), options)
    assert len(result.played) == 40
    # Of 40 jobs most wait; those that follow the waits are promised one start to come after another.
    assert result.promises is not None
    assert len(result.promises) > (5 if promise is None else 20)
    starts = {one.demand.index: one.start_s for one in result.played}
    assert all(starts[job] <= promised for job, promised in result.promises.items())
    assert result.broken_promises() == {}


def test_without_promises_none_is_made() -> None:
    assert play(crowded(0), NodeOptions(policy="aucsched3", strategy="greedy")).promises is None


def test_a_plan_is_made_anew_when_a_job_has_ended() -> None:
    amount = Resources(cores=4)
    whole = Request(cores=4)
    arrivals = [(0.0, 100, 10), (1.0, 50, 50), (2.0, 50, 50)]
    jobs = [
        ArrivingJob(
            job=Job(id=str(rank), priority=basic_priority(rank), request=whole, time_limit_s=limit),
            arrival_s=arrival,
            run_time_s=run,
        )
        for rank, (arrival, limit, run) in enumerate(arrivals)
    ]
    made = ClusterWorkload(name="early", nodes=[Node(name="n", total=amount, free=amount)], jobs=jobs)
    result = play(made, NodeOptions(policy="aucsched3", strategy="greedy", promise="plan"))
    assert [one.start_s for one in result.played] == [0, 10, 60]
    # By estimates the last one was to start at 150; the first ended 90 s before its limit.
    assert result.promises is not None
    assert result.promises[2] == 60
