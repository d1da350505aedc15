"""Jobs that ask for the same stand for each other: fewer bid, and everything starts as when all do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import all_bid

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Resources, Span
from aucsched.auction import decide
from aucsched.auction.attempt import attempt
from aucsched.auction.options import StepOptions
from aucsched.auction.step import take_step
from aucsched.bidgen.candidates import FreeView, GuardedViews, most_at_once
from aucsched.cluster.resources.demand import Demand
from aucsched.simulation.nodes.auction import NodeAuction
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_queue import NodeQueue


def arriving(place: int, request: Request, limit_s: int, at_s: float = 0, run_s: float = 10) -> ArrivingJob:
    job = Job(id=str(place), priority=1000 - place, request=request, time_limit_s=limit_s)
    return ArrivingJob(job=job, arrival_s=at_s, run_time_s=run_s)


def workload(*jobs: ArrivingJob, nodes: int = 4) -> ClusterWorkload:
    """Return nodes of 4 cores, 1000 MiB and 2 GPUs, and their jobs."""
    has = Resources(cores=4, memory_mib=1000, gres={"gpu": 2})
    named = tuple(Node(name=f"n{place}", total=has, free=has) for place in range(nodes))
    return ClusterWorkload(name="", nodes=named, jobs=jobs)


def played(of: ClusterWorkload, *, thinned: bool, reserve: int, window: int = 100) -> dict[str, Any]:
    machine = Machine(of)
    options = StepOptions(
        model="aucsched3", strategy="greedy", window=window, reserve=reserve, promise="plan"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "MANY", 0)
        if not thinned:
            patch.setattr(decide, "cap_identical_jobs", lambda _, could_start, *__, **___: could_start)
        run = NodeKernel(of, machine, NodeAuction(machine, options), NodeQueue()).played()
    assert len(run.played) + len(run.never) == len(of.jobs)
    return {one.demand.job.id: (one.start_s, one.allocation.nodes.tolist()) for one in run.played.values()}


KINDS = (
    Request(cores=1, memory_mib_per_node=300),
    Request(cores=3),
    Request(cores=8),
    Request(cores=4, nodes=Span.exactly(2), gres_per_node={"gpu": Span.exactly(1)}),
    Request(cores=4, nodes=Span.exactly(1), exclusive=True),
    Request(nodes=Span(minimum=1, maximum=2), cores_per_node=2),
)


@st.composite
def _queues(draw: st.DrawFn) -> ClusterWorkload:
    kinds = draw(st.sets(st.sampled_from(range(len(KINDS))), min_size=1, max_size=2))
    limits = draw(st.lists(st.integers(10, 60), min_size=1, max_size=2, unique=True))
    jobs = []
    for place in range(draw(st.integers(6, 18))):
        limit = draw(st.sampled_from(limits))
        run = draw(st.integers(1, limit))
        jobs.append(
            arriving(
                place, KINDS[draw(st.sampled_from(sorted(kinds)))], limit, at_s=2 * (place // 6), run_s=run
            )
        )
    return workload(*jobs)


@settings(max_examples=30, deadline=None)
@given(_queues(), st.integers(0, 2))
def test_everything_starts_when_it_does_if_all_bid(of: ClusterWorkload, reserve: int) -> None:
    few, all_ = (played(of, thinned=thinned, reserve=reserve) for thinned in (True, False))
    assert {job: start for job, (start, _) in few.items()} == {job: start for job, (start, _) in all_.items()}
    # Of jobs that ask for the same, one may stand where the other would.
    asked = {arriving.job.id: (repr(arriving.job.request), arriving.job.time_limit_s) for arriving in of.jobs}
    places = [
        sorted((asked[job], start, nodes) for job, (start, nodes) in found.items()) for found in (few, all_)
    ]
    assert places[0] == places[1]


@settings(max_examples=15, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([0, 1, 2, 3, 4]), min_size=4, max_size=10),
    limits=st.lists(st.integers(10, 60), min_size=10, max_size=10),
    ties=st.booleans(),
    model=st.sampled_from(["ipsched", "aucsched1", "aucsched2", "aucsched3"]),
    objective=st.sampled_from(["priority", "priority_cores"]),
)
def test_the_program_over_fewer_has_the_same_optimum(
    kinds: list[int], limits: list[int], ties: bool, model: str, objective: str
) -> None:
    jobs = [arriving(0 if ties else at, KINDS[kind], limits[at]) for at, kind in enumerate(kinds)]
    jobs = [replace(one, job=replace(one.job, id=str(at))) for at, one in enumerate(jobs)]
    machine = Machine(workload(*jobs))
    read = [machine.reader.read(one.job, at) for at, one in enumerate(jobs)]
    waiting = [demand for demand in read if isinstance(demand, Demand)]
    options = StepOptions(
        model=model,  # type: ignore[arg-type]
        strategy="exact",
        objective=objective,  # type: ignore[arg-type]
        reserve=0,
        work_limit=10_000,
        max_bids_per_job=None if model == "ipsched" else 200,
        promise="plan",
    )
    with all_bid():
        few, all_ = (
            decide.decide(machine.state(0), waiting, options, all_bid_up_to=most).best for most in (0, 100)
        )
    assert few is not None
    assert all_ is not None
    assert few.answer.value[0] == all_.answer.value[0]
    assert len(few.bids.table.demands) <= len(all_.bids.table.demands) == len(jobs)


def test_how_long_alike_jobs_run_matters_only_where_some_are_reserved_for() -> None:
    of = workload(*(arriving(place, KINDS[2], 60 + place) for place in range(20)))
    machine = Machine(of)
    read = [machine.reader.read(job.job, at) for at, job in enumerate(of.jobs)]
    waiting = [demand for demand in read if isinstance(demand, Demand)]
    with all_bid():
        most = {
            reserve: decide.decide(
                machine.state(0),
                waiting,
                StepOptions(work_limit=0, reserve=reserve, promise="plan"),
                all_bid_up_to=0,
            ).best
            for reserve in (0, 1)
        }
    asked = {reserve: len(best.bids.table.demands) for reserve, best in most.items() if best is not None}
    assert asked == {0: 2, 1: 20}


@pytest.mark.parametrize(
    ("request_", "most"),
    [
        (KINDS[0], 12),  # three by memory on each node
        (KINDS[1], 5),  # 16 cores in all: its cores may stand on several nodes
        (KINDS[2], 2),
        (KINDS[3], 4),  # 2 GPUs a node
        (KINDS[4], 4),
        (KINDS[5], 8),
    ],
)
def test_how_many_could_start_at_once(request_: Request, most: int) -> None:
    machine = Machine(workload())
    demand = machine.reader.read(arriving(0, request_, 60).job, 0)
    assert isinstance(demand, Demand)
    assert most_at_once(demand, FreeView(machine.columns, machine.columns.free)) == most


@given(st.integers(0, 10**6), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_whoever_could_start_alone_is_said_to(seed: int, reserve: int) -> None:
    """Of jobs that ask alike one is looked at, also where a reservation leaves them less for long."""
    cluster = random_snapshot(seed)
    jobs = [
        replace(job, id=f"{job.id}-{again}", time_limit_s=limit_s)
        for job in cluster.jobs
        for again, limit_s in enumerate((job.time_limit_s, 1, 10**6))
    ]
    step = take_step(cluster, StepOptions(strategy="greedy", reserve=reserve, promise="plan"))
    columns = step.state.columns
    demands = [demand for job in jobs if (demand := step.state.reader.demand(job)) is not None]
    guards = step.cluster.guards
    alone = {
        demand.job.id for demand in demands if GuardedViews(columns, columns.free, guards).could_start(demand)
    }
    assert GuardedViews(columns, columns.free, guards).startable(demands) == alone


def test_of_many_alike_only_a_few_bid(monkeypatch: pytest.MonkeyPatch) -> None:
    of = workload(*(arriving(place, KINDS[2], 60) for place in range(500)), arriving(500, KINDS[1], 60))
    asked: list[int] = []
    made = attempt

    def counted(demands: tuple[Demand, ...], *rest: Any, **more: Any) -> Any:
        asked.append(len(demands))
        return made(demands, *rest, **more)

    monkeypatch.setattr(decide, "attempt", counted)
    machine = Machine(of)
    options = StepOptions(window=501, work_limit=0, reserve=1, promise="plan", award_alone=True)
    policy = NodeAuction(machine, options)
    queue = NodeQueue()
    for number, job in enumerate(of.jobs):
        demand = machine.reader.read(job.job, number)
        assert isinstance(demand, Demand)
        queue.add(demand)
    started = policy.step(0, queue)
    # Two of the 500 could start, one more may be reserved for; the last job is of another kind.
    assert set(asked) == {4}
    assert sorted(start.demand.index for start in started) == [0, 1]
    assert np.unique(np.concatenate([start.allocation.nodes for start in started])).tolist() == [0, 1, 2, 3]
