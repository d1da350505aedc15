"""On nodes of one core an auction by default starts EASY's jobs, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.contended import contended
from support.plain import J, workload_of

from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.simulate_options import PolicyOptions


def starts(
    workload: ClusterWorkload, policy: str, interval_s: float | None, promise: str | None = None, **more: int
) -> list[float]:
    options = NodeOptions(policy=policy, interval_s=interval_s, promise=promise, **more)  # type: ignore[arg-type]
    return [one.start_s for one in play(workload, options).played]


@pytest.mark.parametrize("reserve", [1, 2, 4])
def test_some_reservations_start_the_jobs_of_a_log_with_as_many(reserve: int) -> None:
    """A later reservation counts the ends of earlier ones: held for ever, they left it no time at all."""
    differ = 0
    for seed in range(12):
        workload = contended(seed)
        cores = len(workload.nodes)
        whole = Resources(cores=cores)
        # Nodes that are reserved are fixed, processors are not: on one node both are the same.
        workload = replace(workload, nodes=(Node(name="n", total=whole, free=whole),))
        first = workload.jobs[0].arrival_s
        jobs = [
            J(
                int(one.arrival_s - first),
                int(one.run_time_s),
                one.job.request.fewest_cores,
                one.job.time_limit_s or 0,
            )
            for one in workload.jobs
        ]
        log = play_log(
            workload_of(jobs, cores),
            "reservations",
            options=PolicyOptions(reservations=reserve),
        )
        counted = [first + start for start in log.start]
        assert starts(workload, "reservations", None, reserve=reserve) == counted, seed
        assert starts(workload, "aucsched3", None, reserve=reserve) == counted, seed
        differ += starts(workload, "easy", None) != counted
    assert (differ > 1) == (reserve > 1)


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


@pytest.mark.parametrize(
    ("policy", "promise"),
    [("reservations", None), ("aucsched3", "backfill"), ("aucsched3", "none"), ("aucsched3", "plan")],
)
def test_a_reservation_made_later_lessens_the_room_beside_earlier_ones(
    policy: str, promise: str | None
) -> None:
    """A is reserved at 100 s and B, behind it, at 50 s: from 100 s on X, of two cores, has no room."""
    amount = Resources(cores=10)
    asked = [("r1", 4, 50), ("r2", 4, 100), ("A", 7, 1000), ("B", 3, 1000), ("X", 2, 1000)]
    jobs = [
        ArrivingJob(
            job=Job(id=name, priority=9 - rank, request=Request(cores=cores), time_limit_s=limit),
            arrival_s=float(rank > 1),
            run_time_s=limit,
        )
        for rank, (name, cores, limit) in enumerate(asked)
    ]
    workload = ClusterWorkload(name="w", nodes=[Node(name="n", total=amount, free=amount)], jobs=jobs)
    assert starts(workload, policy, None, promise, reserve=2) == [0, 0, 100, 50, 1050]
