"""Promises that give way: other places at the same starts, and what may start by that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.build import snapshot

from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.auction.reserve import Promise, StepReservations
from aucsched.auction.state import StepState, state_of
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.limits import JobSet, Limit
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.resources.demand import Demand
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from aucsched.simulation.nodes import auction
from aucsched.simulation.nodes.auction import given_way
from aucsched.simulation.nodes.node_policies import NodeOptions, play

NODES = [{"name": f"n{place}", "cores": 1, "free_cores": 1 - place // 2} for place in range(4)]
#: n2 and n3 are free in 100 s.
RUNNING = [{"id": "R", "nodes": {"n2": {"cores": 1}, "n3": {"cores": 1}}, "end_time": "2026-11-20T09:31:40Z"}]


def waiting(*jobs: dict[str, Any]) -> tuple[StepState, tuple[Demand, ...]]:
    cluster = snapshot(NODES, jobs, running=RUNNING)
    state = state_of(cluster)
    return state, queue_of(cluster, state.reader, StepOptions()).window


def promised(state: StepState, demand: Demand, after_s: float) -> Promise:
    promise = Promise(demand, state.now + after_s)
    kept = StepReservations(state, 0).promise(promise)
    assert kept is not None
    return promise._replace(allocation=kept.allocation)


def nodes_of(promise: Promise) -> list[int]:
    assert promise.allocation is not None
    return [int(node) for node in promise.allocation.nodes]


@pytest.mark.parametrize("has_promise", [False, True])
def test_a_promise_goes_where_nodes_are_free_by_then(*, has_promise: bool) -> None:
    state, (long, later) = waiting(
        {"id": "long", "cores": 2, "time_limit_s": 500}, {"id": "later", "cores": 2, "time_limit_s": 50}
    )
    first = promised(state, later, 100)
    assert nodes_of(first) == [0, 1]
    own = [promised(state, long, 150)] if has_promise else []
    before = state.columns.free.cores.tolist()
    moved, helped = given_way(state, [long, later], [first, *own])
    assert helped == {long.index}
    assert [(one.demand.job.id, one.start, nodes_of(one)) for one in moved] == [
        ("later", first.start, [2, 3])
    ]
    # What it was asked about is left as it was.
    assert state.columns.free.cores.tolist() == before
    assert len(state.holds) == 1


def test_no_promise_is_put_off() -> None:
    state, (long, later) = waiting(
        {"id": "long", "cores": 2, "time_limit_s": 500}, {"id": "later", "cores": 3, "time_limit_s": 50}
    )
    first = promised(state, later, 100)
    assert given_way(state, [long, later], [first]) == ([first], set())


def test_who_starts_beside_the_promises_moves_none() -> None:
    state, (short, later) = waiting(
        {"id": "short", "cores": 2, "time_limit_s": 100}, {"id": "later", "cores": 2, "time_limit_s": 50}
    )
    first = promised(state, later, 100)
    assert given_way(state, [short, later], [first]) == ([first], set())


def test_it_counts_what_those_before_it_took() -> None:
    state, (short, long, later) = waiting(
        {"id": "short", "cores": 1, "time_limit_s": 90},
        {"id": "long", "cores": 1, "time_limit_s": 500},
        {"id": "later", "cores": 3, "time_limit_s": 50},
    )
    first = promised(state, later, 100)
    # One of n0 and n1 goes to each, and the later job needs what the short one gives back.
    moved, helped = given_way(state, [short, long, later], [first])
    assert len(moved) == 1
    assert len(nodes_of(moved[0])) == 3
    assert helped <= {long.index}
    # Two long ones are one too many.
    state, (one, other, last) = waiting(
        {"id": "one", "cores": 1, "time_limit_s": 500},
        {"id": "other", "cores": 1, "time_limit_s": 500},
        {"id": "last", "cores": 3, "time_limit_s": 50},
    )
    _, helped = given_way(state, [one, other, last], [promised(state, last, 100)])
    assert other.index not in helped


def fragmented() -> ClusterWorkload:
    """Return half the nodes taken by a job that ends when a promised one starts; a long one comes then."""
    amount = Resources(cores=1)
    asked = [(0.0, 2, 100), (1.0, 4, 50), (2.0, 2, 500), (3.0, 2, 40), (4.0, 2, 30), (5.0, 1, 500)]
    jobs = [
        ArrivingJob(
            job=Job(
                id=str(rank), priority=basic_priority(rank), request=Request(cores=cores), time_limit_s=limit
            ),
            arrival_s=arrival,
            run_time_s=limit,
        )
        for rank, (arrival, cores, limit) in enumerate(asked)
    ]
    named = [Node(name=f"n{place}", total=amount, free=amount) for place in range(4)]
    return ClusterWorkload(name="fragmented", nodes=named, jobs=jobs)


@pytest.mark.parametrize("promise", ["plan", "auto", "60s"])
def test_simulations_keep_promises_that_moved(promise: str) -> None:
    options = NodeOptions(policy="aucsched3", strategy="greedy", objective="response", promise=promise)
    result = play(fragmented(), options)
    assert len(result.played) == 6
    assert result.broken_promises() == {}


def test_promises_give_way_to_a_job_behind_others_whose_limit_is_used_up() -> None:
    # n0 and n1 are free from 1 s on, n2 and n3 from 100 s on, and the wide job is promised the first three.
    asked = [(0.0, 2, 1, ""), (0.0, 2, 100, "ann"), (0.2, 3, 50, ""), (0.4, 1, 500, "")]
    asked[3:3] = [(0.3, 1, 60, "ann")] * 2
    jobs = [
        ArrivingJob(
            job=Job(
                id=str(rank),
                priority=basic_priority(rank),
                request=Request(cores=cores),
                time_limit_s=limit,
                user=user,
            ),
            arrival_s=arrival,
            run_time_s=limit,
        )
        for rank, (arrival, cores, limit, user) in enumerate(asked)
    ]
    machine = [Node(name=f"n{place}", cores=1) for place in range(4)]
    one_each = Limit(name="one each", per="user", jobs=JobSet(user=["ann"]), most={"jobs": 1})
    options = NodeOptions(policy="aucsched3", strategy="greedy", promise="plan", window=2)
    result = play(ClusterWorkload(name="", nodes=machine, jobs=jobs, limits=[one_each]), options)
    starts = {one.demand.job.id: one.start_s for one in result.played}
    assert (starts["2"], starts["5"]) == (100, 1)


def test_tries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [{"id": f"long{rank}", "cores": 2, "time_limit_s": 500 + rank} for rank in range(5)]
    state, (*long, later) = waiting(*jobs, {"id": "later", "cores": 3, "time_limit_s": 50})
    asked: list[StepState] = []
    plain = auction._moved  # noqa: SLF001 - what is counted

    def counted(state: StepState, promises: Sequence[Promise]) -> Any:
        asked.append(state)
        return plain(state, promises)

    monkeypatch.setattr(auction, "_moved", counted)
    given_way(state, [*long, later], [promised(state, later, 100)])
    assert len(asked) == auction.TRIES
