"""Passes at multiples of an interval, and starts that limits leave on fewer nodes."""

from math import nextafter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aucsched
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.events import turn_after, turn_at


def _arriving(
    name: str, arrival_s: float, *, cores: int = 1, run_s: float = 10, user: str = ""
) -> ArrivingJob:
    request = aucsched.Request(cores=cores)
    job = aucsched.Job(id=name, priority=5, request=request, time_limit_s=20, user=user)
    return ArrivingJob(job=job, arrival_s=arrival_s, run_time_s=run_s)


@given(st.integers(0, 10**7), st.sampled_from([0.001, 0.1, 0.3, 0.7, 1 / 3, 7.3, 60.0]), st.integers(-1, 1))
def test_a_turn_begins_at_a_multiple_and_never_before_it_is_asked_for(
    turn: int, every_s: float, ulps: int
) -> None:
    time = turn * every_s if ulps == 0 else nextafter(turn * every_s, ulps * float("inf"))
    expected = turn + 1 if ulps > 0 else turn
    if time >= 0:
        assert turn_at(time, every_s) == expected * every_s >= time
        assert turn_after(time, every_s) == (turn if ulps < 0 else turn + 1) * every_s > time


@pytest.mark.parametrize("policy", ["easy", "aucsched3", "backfill-slurm"])
def test_no_job_starts_before_it_arrives(policy: str) -> None:
    """239 373.6 over 0.3 is rounded down to 797 912, and 0.3 times that is less."""
    jobs = [_arriving("a", 0), _arriving("b", 239_373.6)]
    workload = ClusterWorkload(nodes=[aucsched.Node(name="n", cores=4)], jobs=jobs)
    run = aucsched.simulate(workload, policy, interval_s=0.3)
    assert run.wait.tolist() == [0, pytest.approx(0.3)]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "backfill-slurm", "backfill-planned"])
def test_a_job_starts_on_as_few_nodes_as_its_limit_leaves(policy: str) -> None:
    nodes = [aucsched.Node(name=name, cores=cores) for name, cores in (("n1", 2), ("n2", 2), ("n3", 4))]
    jobs = [_arriving("busy", 0, run_s=20), _arriving("limited", 2, cores=4, user="ann")]
    limit = aucsched.Limit(name="narrow", most={"nodes": 1}, per="user")
    run = aucsched.simulate(ClusterWorkload(nodes=nodes, jobs=jobs, limits=[limit]), policy)
    assert run.columns["start_s"] == [0, 2]
    assert run.columns["nodes"][1] == "n3"


@pytest.mark.parametrize("policy", ["easy", "backfill-slurm", "backfill-planned", "aucsched3"])
@pytest.mark.parametrize(("held_s", "ends_s"), [(0, 1), (0, 20), (2, 20)])
def test_a_reservation_or_plan_keeps_the_limits_that_running_jobs_leave(
    policy: str, held_s: int, ends_s: int
) -> None:
    """Beside ``held`` the limit leaves ``limited`` one node, n3, on which ``long`` would delay it."""
    sizes = (("n1", 2), ("n2", 2), ("n3", 4), ("n4", 1))
    nodes = [aucsched.Node(name=name, cores=cores) for name, cores in sizes]
    asked = [
        ("half", "tom", 0, ends_s, aucsched.Request(cores=2, required_nodes=["n3"], nodes=1)),
        ("held", "ann", held_s, 90, aucsched.Request(cores=1, required_nodes=["n4"])),
        ("limited", "ann", 2, 10, aucsched.Request(cores=4)),
        ("long", "bob", 2, 100, aucsched.Request(cores=2, required_nodes=["n3"], nodes=1)),
    ]
    jobs = [
        ArrivingJob(
            job=aucsched.Job(id=name, priority=1, request=request, time_limit_s=100, user=user),
            arrival_s=arrival_s,
            run_time_s=run_s,
        )
        for name, user, arrival_s, run_s, request in asked
    ]
    limit = aucsched.Limit(name="narrow", most={"nodes": 2}, per="user")
    of_policy = {"aucsched3": {"promise": "none", "reserve": 1}, "easy": {}}
    options: dict[str, Any] = of_policy.get(policy, {"backfill_interval_s": 1})
    workload = ClusterWorkload(nodes=nodes, jobs=jobs, limits=[limit])
    run = aucsched.simulate(workload, policy, interval_s=1, **options)
    start_s = max(2, ends_s)
    assert run.columns["start_s"] == [0, held_s, start_s, start_s + 10]
    assert run.columns["nodes"][2] == "n3"


@pytest.mark.parametrize("policy", ["backfill-slurm", "backfill-planned"])
@pytest.mark.parametrize(("licensed", "partition", "start_s"), [(1, "p", 2), (0, "q", 2), (0, "p", 30)])
def test_between_turns_slurm_goes_on_behind_a_job_that_lacks_a_licence_or_in_another_partition(
    policy: str, licensed: int, partition: str, start_s: float
) -> None:
    """Job blocked lacks the licence that job holder has, or else a core of a node."""
    licence = {"m": 1} if licensed else {}
    jobs = [
        ArrivingJob(
            job=aucsched.Job(id=name, priority=9, request=request, time_limit_s=limit_s, partition=part),
            arrival_s=arrival_s,
            run_time_s=limit_s,
        )
        for name, request, limit_s, part, arrival_s in (
            ("holder", aucsched.Request(cores=1, licenses=licence), 100, "p", 0),
            ("blocked", aucsched.Request(cores=2 - licensed, licenses=licence), 100, "p", 1),
            ("next", aucsched.Request(cores=1), 20, partition, 2),
        )
    ]
    nodes = [aucsched.Node(name="n", cores=2, partitions=["p", "q"])]
    licences = {"m": aucsched.License(total=1)}
    workload = ClusterWorkload(nodes=nodes, jobs=jobs, licenses=licences)
    run = aucsched.simulate(workload, policy, backfill_interval_s=30)
    assert run.columns["start_s"][2] == start_s
