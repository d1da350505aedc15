"""What many placements hold, added at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aucsched.cluster.jobs import Job, Request, Span
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.resources.allocation import Allocation, add_allocation, add_allocations
from aucsched.cluster.resources.capacity import Capacity
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.simulation.nodes.node_policies import NodeOptions, play


@pytest.mark.parametrize("seed", range(20))
def test_many_allocations_at_once_are_each_one_after_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 6

    def amounts(count: int) -> np.ndarray:
        return rng.integers(0, 9, count)

    def allocation() -> Allocation:
        nodes = np.sort(rng.choice(size, int(rng.integers(1, size)), replace=False))
        gres = {kind: amounts(len(nodes)) for kind in ("gpu", "fpga") if rng.random() < 0.5}
        held = Capacity(cores=amounts(len(nodes)), memory=amounts(len(nodes)), gres=gres)
        return Allocation(nodes=nodes, held=held)

    gres = {"gpu": amounts(size), "fpga": amounts(size)}
    one = Capacity(cores=amounts(size), memory=amounts(size), gres=gres)
    many, limited = one.copy(), rng.random(size) < 0.5
    allocations = [allocation() for _ in range(int(rng.integers(0, 7)))]
    for each in allocations:
        add_allocation(one, each, 1, limited)
    add_allocations(many, allocations, limited)
    assert (many.cores == one.cores).all()
    assert (many.memory == one.memory).all()
    assert all((many.gres[kind] == one.gres[kind]).all() for kind in one.gres)


@pytest.mark.parametrize("options", [{}, {"strategy": "anytime", "work_limit": 2}, {"balance": True}])
def test_who_has_started_keeps_no_auction_in_memory(options: dict[str, Any]) -> None:
    """A view of a bid's columns would keep all bids of its auction for as long as the run is remembered."""
    nodes = tuple(Node(name=f"n{number}", total=Resources(cores=4, gres={"gpu": 2})) for number in range(6))
    jobs = tuple(
        ArrivingJob(
            job=Job(
                id=str(number),
                priority=9 - number,
                time_limit_s=60,
                request=Request(cores=4 + 3 * (number % 2), gres_total={"gpu": Span(minimum=1, maximum=1)}),
            ),
            arrival_s=float(number),
            run_time_s=50.0,
        )
        for number in range(8)
    )
    workload = ClusterWorkload(name="w", nodes=nodes, jobs=jobs)
    result = play(workload, NodeOptions(policy="aucsched3", **options))
    assert len(result.record.played) == len(jobs)
    for played in result.record.played.values():
        held = played.allocation.held
        for array in (played.allocation.nodes, held.cores, held.memory, *held.gres.values()):
            assert array.base is None or array.base.size == array.size
