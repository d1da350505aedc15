"""Slurm's backfill: plans for every job on whole nodes, strict order between turns."""

from __future__ import annotations

from dataclasses import replace
from math import nextafter
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import (
    ArrivingJob,
    ClusterWorkload,
    Job,
    License,
    Node,
    Request,
    Resources,
    Span,
    simulate,
)
from aucsched.auction.forecast import Forecast
from aucsched.simulation.events import turn_of
from aucsched.simulation.nodes.backfill import Backfill, PlannedBackfill
from aucsched.simulation.nodes.kernel import NodeKernel
from aucsched.simulation.nodes.node_machine import Machine
from aucsched.simulation.nodes.node_queue import NodePolicy, NodeQueue
from aucsched.simulation.nodes.select import SwitchFit
from aucsched.simulation.workloads.named_clusters import EvenCluster, make_workload, stream, uniform_arrivals
from aucsched.simulation.workloads.soner import ALL_KINDS, WorkloadMix, draw_jobs


def job(name: str, cores: int, limit_s: int, *, at_s: float = 0, run_s: float | None = None) -> ArrivingJob:
    request = Request(cores=cores)
    return ArrivingJob(
        job=Job(id=name, priority=1000 - int(at_s) - ord(name), request=request, time_limit_s=limit_s),
        arrival_s=at_s,
        run_time_s=limit_s if run_s is None else run_s,
    )


def workload(*jobs: ArrivingJob, nodes: int = 2, cores: int = 4) -> ClusterWorkload:
    amount = Resources(cores=cores)
    return ClusterWorkload(
        name="",
        nodes=tuple(Node(name=f"n{place}", total=amount, free=amount) for place in range(nodes)),
        jobs=jobs,
    )


def starts(
    played: ClusterWorkload, *, every_s: float = 30, depth: int = 100, planned: bool = True
) -> dict[str, float]:
    machine = Machine(played)
    selector = SwitchFit(machine.columns, machine.topology)
    policy: NodePolicy = (
        PlannedBackfill(machine, selector, depth=depth, every_s=every_s)
        if planned
        else Backfill(machine, selector, reservations=1, every_s=every_s)
    )
    run = NodeKernel(played, machine, policy, NodeQueue()).played()
    assert not run.never
    return {entry.demand.job.id: entry.start_s for entry in run.played.values()}


def test_a_plan_keeps_whole_nodes_where_easy_keeps_cores() -> None:
    # B waits for A and would leave 3 cores of a node free: EASY gives C one of them, a plan keeps the node.
    jobs = (job("A", 6, 100), job("B", 5, 100), job("C", 1, 150))
    assert starts(workload(*jobs)) == {"A": 0, "B": 100, "C": 100}
    assert starts(workload(*jobs), planned=False) == {"A": 0, "B": 100, "C": 0}


def test_what_ends_before_the_plan_begins_may_use_its_nodes() -> None:
    assert starts(workload(job("A", 6, 100), job("B", 5, 100), job("C", 1, 100))) == {
        "A": 0,
        "B": 100,
        "C": 0,
    }


def test_every_job_has_a_plan_and_not_the_first_only() -> None:
    """Soner: Slurm's backfill (7.1)."""
    # D would end before B needs its node, but C is planned on it before: at 50, when A2 ends.
    jobs = (job("A", 8, 100, run_s=100), job("B", 8, 100), job("C", 4, 60), job("D", 4, 60))
    assert starts(workload(*jobs, nodes=3)) == {"A": 0, "B": 100, "C": 0, "D": 60}


def test_between_turns_only_the_front_starts() -> None:
    # A holds one node; B, at the front, needs two. C could pass at once, and does so at the turn at 30.
    jobs = (job("A", 4, 40), job("B", 8, 100, at_s=1), job("C", 4, 10, at_s=2), job("D", 1, 10, at_s=30))
    assert starts(workload(*jobs)) == {"A": 0, "B": 40, "C": 30, "D": 140}


@pytest.mark.parametrize("policy", ["backfill-slurm", "backfill-planned"])
def test_there_is_a_turn_though_nothing_happens_between_passes_at_an_interval(policy: str) -> None:
    jobs = (job("A", 3, 1000), job("B", 4, 1000, at_s=5), job("C", 1, 500, at_s=12))
    result = simulate(workload(*jobs, nodes=1), policy, interval_s=10)
    assert result.columns["start_s"] == [0, 1000, 30]


@pytest.mark.parametrize(("run_s", "ends"), [(500, 50), (30, 30)])
def test_a_job_runs_for_its_limit_on_its_number_of_nodes(run_s: int, ends: int) -> None:
    request = Request(cores=4, nodes=Span.exactly(2))
    asked = Job(id="1", priority=1, request=request, limits_by_nodes_s={2: 50}, time_limit_s=400)
    played = replace(workload(), jobs=(ArrivingJob(job=asked, arrival_s=0, run_time_s=run_s),))
    assert simulate(played, "easy").columns["end_s"] == [ends]


def test_the_front_starts_between_turns() -> None:
    assert starts(workload(job("A", 4, 40), job("B", 4, 10, at_s=7))) == {"A": 0, "B": 7}


def test_jobs_beyond_the_depth_wait() -> None:
    jobs = (job("A", 8, 100), job("B", 8, 100), job("C", 8, 100), job("D", 4, 50))
    assert starts(workload(*jobs, nodes=3))["D"] == 0
    assert starts(workload(*jobs, nodes=3), depth=3)["D"] > 0


def test_licences_are_counted() -> None:
    def licensed(name: str) -> ArrivingJob:
        plain = job(name, 1, 60)
        request = Request(cores=1, licenses={"matlab": 1})
        return replace(plain, job=replace(plain.job, request=request))

    licences = {"matlab": License(total=1, free=1)}
    played = replace(workload(), licenses=licences, jobs=(licensed("A"), licensed("B")))
    assert starts(played) == {"A": 0, "B": 60}


@pytest.mark.parametrize("seed", range(3))
def test_every_job_of_a_mix_runs_and_the_front_is_never_passed_for_long(seed: int) -> None:
    cluster = EvenCluster(nodes=32)
    mix = WorkloadMix(
        kinds=ALL_KINDS, jobs=60, contiguous=0.3, divisors=(4, 8), ranges=False, most_whole_nodes=4
    )
    drafts = draw_jobs(mix, cluster, seed)
    arrivals = uniform_arrivals(60, 300, stream(seed, "arrivals"))
    played = make_workload("", cluster, list(zip(arrivals, drafts, strict=True)), ())
    found = starts(played)
    assert len(found) == 60
    # The first job that waits keeps its nodes from the first turn on: no longer than the longest limit.
    waits = {arriving.job.id: found[arriving.job.id] - arriving.arrival_s for arriving in played.jobs}
    first = next((name for name, wait in waits.items() if wait > 0), None)
    assert first is None or waits[first] <= 600 + 30


@given(st.floats(0.01, 100), st.integers(1, 10**6))
def test_a_turn_begins_at_its_multiple_to_the_bit(every_s: float, turn: int) -> None:
    begin = turn * every_s
    assert turn_of(begin, every_s) == turn
    assert turn_of(nextafter(begin, 0), every_s) == turn - 1


@pytest.mark.parametrize("planned", [True, False])
def test_turns_come_at_intervals_without_exact_multiples(planned: bool) -> None:
    # B, behind A, blocks; C could pass at the first turn after it came.
    jobs = (job("A", 4, 40), job("B", 8, 100, at_s=1), job("C", 4, 10, at_s=2))
    found = starts(workload(*jobs), every_s=19.155172413793103, planned=planned)
    assert found == {"A": 0, "B": 40, "C": 19.155172413793103}


@pytest.mark.parametrize("planned", [True, False])
@given(seed=st.integers(0, 2**32))
def test_turns_at_which_nothing_has_changed_are_passed_over(planned: bool, seed: int) -> None:
    random = Random(seed)
    jobs, at_s = [], 0.0
    for number in range(12):
        at_s += random.choice([0, 1, 29.5, 30, 31, 60]) * random.random()
        limit_s = random.choice([20, 60, 300, 1500])
        run_s = limit_s * random.choice([0.1, 0.5, 1])
        jobs.append(job(chr(65 + number), random.randint(1, 8), limit_s, at_s=at_s, run_s=run_s))
    played = workload(*jobs)
    found = starts(played, planned=planned)
    with patch.object(Backfill, "_repeats", return_value=False):
        assert starts(played, planned=planned) == found


def test_turns_behind_a_long_job_cost_nothing() -> None:
    played = workload(job("A", 8, 10**6), job("B", 8, 60))
    with patch.object(Forecast, "__init__", autospec=True, side_effect=Forecast.__init__) as forecasts:
        assert starts(played) == {"A": 0, "B": 10**6}
    assert forecasts.call_count < 10
