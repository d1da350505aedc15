"""The sum of weights first and exactly, then preference: against every award of tiny auctions."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aucsched.cluster.resources.capacity import FloatArray
from aucsched.models.solve.lexicographic import SolveSettings, exact_stages, exact_sum, solve_lexicographic
from aucsched.models.solve.program import IntegerProgram
from aucsched.models.solve.solver import SolverStatus

JOBS, CHOICES, NODES = 7, 4, 4


def auction(rng: np.random.Generator) -> tuple[IntegerProgram, FloatArray]:
    """A few bids a job, each of some cores on some nodes, and the rows of jobs and nodes, dense."""
    bids = JOBS * CHOICES
    rows = np.zeros((JOBS + NODES, bids))
    rows[np.repeat(np.arange(JOBS), CHOICES), np.arange(bids)] = 1
    rows[JOBS:] = rng.integers(0, 4, (NODES, bids)) * (rng.random((NODES, bids)) < 0.6)
    upper = np.concatenate([np.ones(JOBS), rng.integers(3, 9, NODES)])
    held = rows != 0
    return (
        IntegerProgram(
            objective=np.zeros(bids),
            lower=np.zeros(bids),
            upper=np.ones(bids),
            is_integer=np.ones(bids, np.bool_),
            row_lower=np.full(len(rows), -np.inf),
            row_upper=upper.astype(np.float64),
            indptr=np.concatenate([[0], np.cumsum(held.sum(axis=1))]),
            index=np.nonzero(held)[1],
            value=rows[held],
        ),
        rows,
    )


def best_of_all(
    rows: FloatArray, capacity: FloatArray, weights: list[int], liked: FloatArray
) -> tuple[int, float]:
    """The greatest sum of weights over every award, and the most that one of that sum is liked."""
    picked = np.indices((CHOICES + 1,) * JOBS).reshape(JOBS, -1)
    use, joy = np.zeros((NODES, picked.shape[1])), np.zeros(picked.shape[1])
    for job, choice in enumerate(picked):
        own = slice(job * CHOICES, (job + 1) * CHOICES)
        use += np.column_stack([rows[JOBS:, own], np.zeros(NODES)])[:, choice]
        joy += np.append(liked[own], 0.0)[choice]
    fits = (use <= capacity[:, None]).all(axis=0)
    won = ((picked[:, fits] < CHOICES) * (1 << np.arange(JOBS))[:, None]).sum(axis=0)
    sums = {
        jobs: sum(weight for job, weight in enumerate(weights) if jobs >> job & 1)
        for jobs in set(won.tolist())
    }
    best = max(sums.values())
    return best, max(float(joy[fits][won == jobs].max()) for jobs, total in sums.items() if total == best)


@given(st.integers(0, 2**32 - 1))
@example(596)
@settings(max_examples=40, deadline=None)
def test_what_is_called_the_best_is(seed: int) -> None:
    """Weights near 4·10⁹ beside fractions, as integers: no base splits most of them."""
    rng, drawn = np.random.default_rng(seed), random.Random(seed)
    program, rows = auction(rng)
    kinds = [
        lambda: 4 * 10**25 + drawn.randint(0, 9) * 10**16,
        lambda: drawn.randint(1, 100) * 10**16,
        lambda: drawn.randint(1, 10**16),
    ]
    weights = [drawn.choice(kinds)() for _ in range(JOBS)]
    counts = [weight for weight in weights for _ in range(CHOICES)]
    liked, job = rng.integers(1, 50, len(counts)) / 7, np.repeat(np.arange(JOBS), CHOICES)
    if seed == 596:
        assert exact_stages(job, counts) is None
    best, joy = best_of_all(rows, program.row_upper[JOBS:], weights, liked)
    settings_ = SolveSettings(time_limit_s=60, seed=0, clock=time.perf_counter)
    solution = solve_lexicographic(program, job, counts, liked, np.zeros(len(counts)), settings_)
    assert solution.status is SolverStatus.OPTIMAL
    assert exact_sum(counts, solution.values) == solution.bound == best
    assert liked @ solution.values == pytest.approx(joy)
