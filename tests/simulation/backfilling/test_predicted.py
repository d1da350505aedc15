"""EASY by predictions: with the user's estimates a plain rule, and what predictors say of small logs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from support.plain import J, simulate_checked, starts_of, workload_of, workloads

from aucsched.simulation.backfilling.predicted import PREDICTORS, LastTwo
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.simulate_options import PolicyOptions


def plain_shortest_behind_the_head(jobs: list[J], processors: int) -> list[float]:
    """EASY in order of submission, the shortest estimate first behind the head."""
    starts = [math.inf] * len(jobs)
    running: dict[int, float] = {}
    queue: list[int] = []
    times: set[float] = {job.submit for job in jobs}
    while times:
        now = min(times)
        times.discard(now)
        running = {job: end for job, end in running.items() if starts[job] + jobs[job].run > now}
        queue += [number for number, job in enumerate(jobs) if job.submit == now]
        free = processors - sum(jobs[job].size for job in running)
        while queue and jobs[queue[0]].size <= free:
            free -= jobs[queue[0]].size
            running[queue[0]] = now + jobs[queue[0]].estimate
            starts[queue.pop(0)] = now
        if queue:
            head, at, extra = jobs[queue[0]], now, free
            for end in sorted(set(running.values())):
                if extra >= head.size:
                    break
                at, extra = end, free + sum(jobs[job].size for job in running if running[job] <= end)
            extra -= head.size
            for job in sorted(queue[1:], key=lambda job: (jobs[job].estimate, job)):
                ends_by_then = now + jobs[job].estimate <= at
                if jobs[job].size > free or not (ends_by_then or jobs[job].size <= extra):
                    continue
                extra -= 0 if ends_by_then else jobs[job].size
                free -= jobs[job].size
                running[job], starts[job] = now + jobs[job].estimate, now
                queue.remove(job)
        times |= {starts[job] + jobs[job].run for job in running}
    return starts


@settings(max_examples=200)
@given(workloads(most=16))
def test_by_estimates_it_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    options = PolicyOptions(predictor="estimate")
    assert starts_of(*case, "predicted", options=options) == plain_shortest_behind_the_head(*case)


@pytest.mark.parametrize("by", PREDICTORS)
@given(case=workloads(most=16))
def test_it_starts_every_job_within_capacity(by: Any, case: tuple[list[J], int]) -> None:
    workload = workload_of(*case)
    policy = make_policy("predicted", workload.requests, options=PolicyOptions(predictor=by))
    starts = simulate_checked(workload, policy)
    assert all(start >= job.submit for start, job in zip(starts, case[0], strict=True))


def test_behind_the_head_the_shorter_job_starts() -> None:
    jobs = [J(0, 10, 4, 10), J(1, 10, 6, 10), J(2, 8, 2, 8), J(2, 5, 2, 5)]
    assert starts_of(jobs, 6, "predicted", options=PolicyOptions(predictor="estimate")) == [0, 10, 20, 2]
    assert starts_of(jobs, 6, "easy") == [0, 10, 2, 20]


def test_the_mean_of_the_last_two_is_known_once_two_have_ended() -> None:
    # Users of workload_of: the number modulo 3.
    requests = workload_of([J(0, 1, 1, 100)] * 7, 4).requests
    predictor = LastTwo(requests)
    predictor.end(10, 0, 10.0)
    assert predictor.predict(10, 6) == 100
    predictor.end(30, 3, 30.0)
    assert (predictor.predict(30, 6), predictor.predict(30, 4)) == (20, 100)


def test_who_outlives_a_prediction_is_given_a_minute_then_five() -> None:
    predictor = LastTwo(workload_of([J(0, 1, 1, 100)], 4).requests)
    assert [predictor.correct(0, 50.0, times) for times in (0, 1, 99)] == [110, 350, 360_050]
