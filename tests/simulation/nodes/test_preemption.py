"""Preemption with credits: who stops whom, what it costs, and that nothing is lost or held twice."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, OptionError, Request
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation
from aucsched.simulation.nodes.preemption import least_cost


def job(name: str, cores: int, seconds: int, at: float = 0, **members: Any) -> ArrivingJob:
    user = members.pop("user", f"u{name}")
    asked = Job(
        id=name, priority=members.pop("priority", 5), request=Request(cores=cores),
        time_limit_s=members.pop("limit", seconds), user=user,
    )  # fmt: skip
    return ArrivingJob(job=asked, arrival_s=at, run_time_s=seconds, **members)


def played(jobs: list[ArrivingJob], nodes: int = 1, **options: Any) -> NodeSimulation:
    machine = tuple(Node(name=f"n{place}", cores=4) for place in range(nodes))
    ordered = sorted(jobs, key=lambda one: one.arrival_s)
    workload = ClusterWorkload(name="w", nodes=machine, jobs=ordered)
    return play(workload, NodeOptions(policy="aucsched3", work_limit=0, **options))


def start_of(result: NodeSimulation, name: str) -> float:
    return next(one.start_s for one in result.played if one.demand.job.id == name)


def test_who_pays_more_stops_who_pays_less_and_pays_for_the_lost_work() -> None:
    """Soner: credits and preemption (9.1)."""
    jobs = [job("low", 4, 7200), job("high", 4, 3600, at=1800, credits_per_core_h=5)]
    waited, stopped = played(jobs), played(jobs, preempt=True)
    assert (start_of(waited, "high"), start_of(stopped, "high")) == (7200, 1800)
    assert start_of(stopped, "low") == 5400
    assert stopped.preemption_counts() == {
        "preemptions": 1, "preempted_jobs": 1, "preempted_core_s": 7200, "credits_paid": 2.0,
    }  # fmt: skip
    assert stopped.balance == {"ulow": 2.0, "uhigh": -2.0}
    assert "credits paid                    2.0000\n" in stopped.to_text("w")
    assert waited.balance is None


@pytest.mark.parametrize(
    ("high", "options"),
    [
        ({"credits_per_core_h": 1}, {}),  # it pays no more
        ({"credits_per_core_h": 1.2, "seconds": 600}, {}),  # 0.8 credits for 2.0 of lost work
        ({"credits_per_core_h": 5}, {"credits": 1.5}),  # its user cannot pay for it
        ({"credits_per_core_h": 5, "at": 0}, {}),  # both start at once: priority says who does
    ],
)
def test_nobody_is_stopped_where_it_does_not_pay(high: dict[str, Any], options: dict[str, Any]) -> None:
    given = {"seconds": 3600, "at": 1800, "priority": 1} | high
    jobs = [job("low", 4, 7200), job("high", 4, given.pop("seconds"), **given)]
    result = played(jobs, preempt=True, **options)
    assert start_of(result, "low") == 0
    assert result.preemption_counts()["preemptions"] == 0


def test_the_cheapest_make_room_and_no_more_than_need_be() -> None:
    jobs = [job("old", 4, 7200), job("new", 4, 7200, at=3000), job("dear", 4, 7200, credits_per_core_h=9)]
    jobs.append(job("high", 4, 3600, at=3600, credits_per_core_h=5))
    result = played(jobs, nodes=3, preempt=True)
    assert [result.cluster.jobs[stop.job].job.id for stop in result.record.preempted] == ["new"]


def test_ones_own_job_is_stopped_for_nothing() -> None:
    jobs = [job("low", 4, 7200, user="ann"), job("high", 4, 3600, at=1800, credits_per_core_h=5, user="ann")]
    result = played(jobs, preempt=True, credits=0)
    assert start_of(result, "high") == 1800
    assert not any(result.balance.values()) if result.balance else True


def test_a_job_is_stopped_three_times_at_most() -> None:
    jobs = [job("low", 4, 4000)]
    jobs += [job(f"h{place}", 4, 100, at=500 * (place + 1), credits_per_core_h=50) for place in range(6)]
    result = played(jobs, preempt=True)
    assert result.preemption_counts()["preemptions"] == 3


@given(st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_no_job_is_lost_and_credits_only_change_hands(seed: int) -> None:
    rng = random.Random(seed)
    jobs = [
        job(
            str(number), rng.randint(1, 8), rng.randint(1, 500), at=rng.randint(0, 1000),
            limit=500, credits_per_core_h=rng.choice([0, 1, 1, 4]), user=rng.choice("abc"),
        )
        for number in range(25)
    ]  # fmt: skip
    result = played(jobs, nodes=3, preempt=True, credits=rng.choice([0.0, 0.05, 100.0]))
    assert len(result.played) == 25
    assert result.balance is not None
    assert abs(sum(result.balance.values())) < 1e-6
    for stop in result.record.preempted:
        rates = [result.cluster.jobs[number].credits_per_core_h for number in (stop.job, stop.by)]
        assert rates[0] < rates[1]


def test_options_that_contradict_are_refused() -> None:
    for options in (
        {"credits": 5.0},
        {"preempt": True, "promise": "plan"},
        {"preempt": True, "credits": -1.0},
    ):
        with pytest.raises(OptionError):
            NodeOptions(policy="aucsched3", **options)
    with pytest.raises(OptionError, match="needs --policy"):
        NodeOptions(policy="easy", preempt=True)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 50)), max_size=8),
    st.integers(-3, 40),
)
def test_the_least_that_missing_cores_cost(jobs: list[tuple[int, int]], missing: int) -> None:
    each = sorted(cost / cores for cores, cost in jobs for _ in range(cores))
    plain = sum(each[: max(missing, 0)]) if missing <= len(each) else inf
    cores, cost = (np.array([one[place] for one in jobs], np.int64) for place in (0, 1))
    assert least_cost(missing, cores, cost.astype(np.float64)) == pytest.approx(plain)
