"""The papers' objective: large weights are divided for HiGHS's tolerances where nodes are counted."""

from __future__ import annotations

import time

import numpy as np
import pytest
from support.build import ALONE, snapshot
from support.packings import knapsack

from aucsched import schedule
from aucsched.models.solve.lexicographic import SolveSettings, solve_weighted
from aucsched.models.solve.solver import SolverStatus


@pytest.mark.parametrize("nodes", [None, 1000])
def test_large_weights_have_the_same_award_and_a_bound_that_holds(nodes: int | None) -> None:
    sizes = [7, 5, 4, 3, 1]
    weights = np.array([4.2e9, 2.9e9, 2.4e9, 1.7e9, 0.6e9])
    settings = SolveSettings(time_limit_s=60, seed=0, clock=time.perf_counter, most_nodes=nodes)
    solution, bound = solve_weighted(knapsack(sizes, 10), np.arange(5), weights, np.zeros(5), settings)
    best = max(
        sum(weights[place] for place in range(5) if chosen >> place & 1)
        for chosen in range(32)
        if sum(sizes[place] for place in range(5) if chosen >> place & 1) <= 10
    )
    assert float(weights @ solution.values) == best
    assert bound is not None
    assert best <= bound <= best * (1 + 1e-7)
    # What was divided is no proof: HiGHS's tolerance is a few units of the weights.
    assert solution.proved == (nodes is None)
    assert (solution.status is SolverStatus.OPTIMAL) == (nodes is None)


def test_small_weights_are_proved_under_a_count_of_nodes_too() -> None:
    settings = SolveSettings(time_limit_s=60, seed=0, clock=time.perf_counter, most_nodes=1000)
    solution, _ = solve_weighted(
        knapsack([2, 2], 3), np.arange(2), np.array([5.0, 6.0]), np.zeros(2), settings
    )
    assert solution.proved
    assert solution.values.tolist() == [0.0, 1.0]


def test_a_step_with_slurm_s_priorities_is_worth_no_less_than_first_fit() -> None:
    nodes = [{"name": "n[1-6]", "cores": 12}]
    jobs = [{"cores": 17, "nodes": 3, "priority": 4_294_901_760 - rank} for rank in range(8)]
    result = schedule(snapshot(nodes, jobs), **ALONE, model="ipsched", weights="paper", work_limit=1)
    assert result.objective.priority >= sum(4_294_901_760 - rank for rank in range(4))
