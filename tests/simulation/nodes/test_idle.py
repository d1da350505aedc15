"""On a machine that is hardly used nobody waits longer under the auction than under EASY."""

from __future__ import annotations

import random

import pytest

from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from aucsched.simulation.nodes.node_policies import NodeOptions, play

#: Of the random workloads, those of a quarter are played by each case.
WORKLOADS, QUARTERS = 200, 4


def idle(seed: int) -> ClusterWorkload:
    """Return jobs that use a small part of 12 nodes with GPUs, many at once, all able to run side by side."""
    rng = random.Random(seed)
    amount = Resources(cores=16, gres={"gpu": 4})
    nodes = [Node(name=f"n{place:02}", total=amount, free=amount) for place in range(12)]
    made = []
    arrival = 0.0
    for rank in range(10):
        arrival += rng.choice([0, 0, 3, 40, 200])
        request = rng.choice(
            [
                Request(cores=rng.randint(1, 8)),
                Request(nodes=1, cores=rng.randint(1, 4), gres_per_node={"gpu": rng.randint(1, 2)}),
                Request(nodes=rng.randint(1, 2), cores_per_node=rng.randint(1, 8)),
            ]
        )
        run = rng.choice([20, 100, 500])
        job = Job(id=str(rank), priority=basic_priority(rank), request=request, time_limit_s=2 * run)
        made.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=run))
    return ClusterWorkload(name="idle", nodes=nodes, jobs=made)


def waits(workload: ClusterWorkload, **options: object) -> list[float]:
    result = play(workload, NodeOptions(interval_s=30.0, **options))  # type: ignore[arg-type]
    assert len(result.played) == len(workload.jobs)
    return [float(one) for one in result.wait]


@pytest.mark.parametrize(
    ("quarter", "objective"), [*((quarter, "priority") for quarter in range(QUARTERS)), (0, "response")]
)
def test_nobody_waits_longer_than_under_easy(quarter: int, objective: str) -> None:
    for seed in range(quarter, WORKLOADS, QUARTERS):
        workload = idle(seed)
        easy = waits(workload, policy="easy")
        ours = waits(workload, policy="aucsched3", objective=objective)
        assert all(mine <= theirs for mine, theirs in zip(ours, easy, strict=True)), seed
