"""On nodes of one core an auction by default starts EASY's jobs, one by one."""

from __future__ import annotations

import random

import pytest

from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from aucsched.simulation.nodes.policies import NodeOptions, play


def contended(seed: int, nodes: int = 6, jobs: int = 30) -> ClusterWorkload:
    """Return jobs that wait for each other; limits are a little to much longer than run times."""
    rng = random.Random(seed)
    amount = Resources(cores=1)
    arrival = 0.0
    made = []
    for rank in range(jobs):
        arrival += rng.choice([0, 1, 5, 20])
        run = rng.choice([3, 10, 40, 100])
        request = Request(cores=rng.choice([1, 1, 2, 3, nodes]))
        job = Job(
            id=str(rank),
            priority=basic_priority(rank),
            request=request,
            time_limit_s=run * rng.choice([1, 2, 5]),
        )
        made.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=run))
    named = [Node(name=f"n{place}", total=amount, free=amount) for place in range(nodes)]
    return ClusterWorkload(name="contended", nodes=named, jobs=made)


def starts(
    workload: ClusterWorkload, policy: str, interval_s: float | None, promise: str | None = None
) -> list[float]:
    options = NodeOptions(policy=policy, interval_s=interval_s, promise=promise)
    return [one.start_s for one in play(workload, options).played]


@pytest.mark.parametrize("interval_s", [None, 7.0])
def test_the_default_starts_easy_s_jobs(interval_s: float | None) -> None:
    differ = 0
    for seed in range(5):
        workload = contended(seed)
        easy = starts(workload, "easy", interval_s)
        assert starts(workload, "aucsched3", interval_s) == easy, seed
        assert starts(workload, "aucsched2", interval_s) == easy, seed
        differ += starts(workload, "aucsched3", interval_s, "none") != easy
    # The greatest sum of priorities is another matter.
    assert differ > 2
