"""A small machine of nodes of one core on which jobs wait for each other, and a policy that heeds nothing."""

from __future__ import annotations

import random

from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.resources.allocation import Allocation, StartingJob
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from aucsched.simulation.nodes.node_queue import NodePolicy, NodeQueue


def contended(
    seed: int, nodes: int = 6, jobs: int = 30, *, has_exact_limits: bool = False
) -> ClusterWorkload:
    """Return jobs that wait for each other; limits are a little to much longer than run times, or equal."""
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
            time_limit_s=run if has_exact_limits else run * rng.choice([1, 2, 5]),
        )
        made.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=run))
    named = [Node(name=f"n{place}", total=amount, free=amount) for place in range(nodes)]
    return ClusterWorkload(name="contended", nodes=named, jobs=made)


class OnOnePlace(NodePolicy):
    """Puts every job on the same nodes, whatever is free there."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation

    def step(self, now: float, queue: NodeQueue) -> list[StartingJob]:
        """Start the first job."""
        del now
        return [StartingJob(demand=demand, allocation=self.allocation) for demand in queue.first(1)]
