"""The parts of the search: each against what it must keep, on small windows."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import snapshot, tiny

from aucsched import Snapshot
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.cluster.resources.capacity import FloatArray, IntArray
from aucsched.cluster.resources.demand import DemandReader
from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.bounding import Relaxation
from aucsched.models.search.operators import ExchangeSearch
from aucsched.models.search.packing import Packing, Worth, packing_of
from aucsched.models.search.reductions import exclusions, violated_cliques
from aucsched.models.search.search_parameters import SearchLimits
from aucsched.models.solve.solver import RelaxedSolver, SolverOptions, solve
from aucsched.topology.tree import topology_of

SEEDS = st.integers(0, 10**6)
NOTHING = np.zeros(0, np.int64)


def window_of(cluster: Snapshot, per_job: int = 6) -> tuple[Packing, list[int], FloatArray]:
    columns, topology = columns_of(cluster), topology_of(cluster)
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions()).window
    table = generate_bids(window, Cluster(columns, topology), BidOptions(max_bids_per_job=per_job)).table
    weights = [round(table.demands[job].job.priority) for job in table.job.tolist()]
    liked = np.random.default_rng(1).random(len(table))
    return packing_of(table, columns), weights, liked


def crowded(seed: int) -> Snapshot:
    """A window of more bids than are given to the solver at once."""
    rng = random.Random(seed)
    nodes = [{"name": f"n{place:02d}", "cores": 8, "free_cores": rng.randint(0, 8)} for place in range(60)]
    jobs: list[dict[str, Any]] = [
        {"nodes": rng.randint(2, 6), "cores_per_node": rng.randint(2, 6), "priority": rng.randint(1, 9999)}
        for _ in range(60)
    ]
    return snapshot(nodes, jobs)


def fits(packing: Packing, award: IntArray) -> bool:
    jobs = packing.job[award]
    return len(set(jobs.tolist())) == len(jobs) and bool((packing.use(award) <= packing.capacity).all())


def optimum(packing: Packing, value: FloatArray) -> tuple[float, FloatArray]:
    program = packing.program(np.arange(len(packing)), packing.capacity).maximising(value)
    report = solve(program, SolverOptions(time_limit_s=30))
    assert report.objective is not None
    assert report.values is not None
    return report.objective, report.values


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_bids_exclude_each_other_exactly_when_no_award_can_hold_both(seed: int) -> None:
    packing, _, _ = window_of(random_snapshot(seed), per_job=4)
    excludes = exclusions(packing)
    assert not excludes.diagonal().any()
    for first in range(len(packing)):
        for second in range(first):
            pair = np.array([second, first])
            assert excludes[first, second] == excludes[second, first] == (not fits(packing, pair))


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_cliques_hold_in_every_award_and_cut_the_relaxed_solution_off(seed: int) -> None:
    packing, weights, _ = window_of(tiny(seed))
    if not len(packing):
        return
    value = np.array(weights, np.float64)
    _, best = optimum(packing, value)
    relaxed = np.random.default_rng(seed).random(len(packing))
    excludes = exclusions(packing)
    for clique in violated_cliques(excludes, relaxed):
        assert relaxed[clique].sum() > 1
        assert best[clique].sum() <= 1
        assert (excludes[np.ix_(clique, clique)] | np.eye(len(clique), dtype=bool)).all()


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_the_relaxation_bounds_every_award_with_and_without_cliques(seed: int) -> None:
    """Soner: LP relaxation as a heuristic (9.1)."""
    packing, weights, _ = window_of(tiny(seed), per_job=12)
    if not len(packing):
        return
    value = np.array(weights, np.float64)
    best, values = optimum(packing, value)
    winners = np.flatnonzero(values > 0.5)
    relaxation = Relaxation(packing, value)
    relaxed = relaxation.solve(30.0)
    before = float("inf")
    while relaxed is not None:
        assert best - 1e-6 <= relaxed.bound <= before + 1e-6
        # No bid of the best award may be thought to cost more than the bound leaves.
        assert (relaxed.loss[winners] <= relaxed.bound - best + 1e-6).all()
        before = relaxed.bound
        relaxed = None if relaxation.is_done else relaxation.tighten(30.0)


def test_a_relaxation_that_gets_no_time_or_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    packing, weights, _ = window_of(tiny(3))
    program = packing.program(np.arange(len(packing)), packing.capacity)
    program = program.maximising(np.array(weights, np.float64))
    assert not RelaxedSolver(program).solve(0.0)
    # By a clock that stands still no time is too short; by one that jumps any is.
    assert RelaxedSolver(program, lambda: 0.0).solve(0.0)
    assert not RelaxedSolver(program, count().__next__).solve(0.0)
    # An interior-point run failed under a clock that interrupts it, which ended a search.
    monkeypatch.setattr(highspy.Highs, "run", lambda _: highspy.HighsStatus.kError)
    assert not RelaxedSolver(program).solve(30.0)


@given(SEEDS, st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_moves_keep_an_award_that_fits_and_never_lose_the_best(seed: int, draw: int) -> None:
    packing, weights, liked = window_of(random_snapshot(seed), per_job=10)
    worth = Worth(weights=weights, value=np.array(weights, np.float64), preference=liked)
    moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, draw)
    best = moves.best
    for _ in range(6):
        moves.run(60, lambda: False)
        assert fits(packing, moves.award)
        assert worth.of(moves.award) == moves.best
        assert moves.best >= best
        best = moves.best


def test_moves_find_the_optimum_of_small_windows() -> None:
    reached = 0
    for seed in range(12):
        packing, weights, liked = window_of(tiny(seed), per_job=12)
        value = np.array(weights, np.float64)
        worth = Worth(weights=weights, value=value, preference=liked)
        moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 0)
        moves.run(400, lambda: False)
        reached += moves.best[0] == round(optimum(packing, value)[0])
    assert reached >= 11


@given(SEEDS)
@settings(max_examples=3, deadline=None)
def test_doubling_the_steps_is_never_worse_and_the_bound_never_looser(seed: int) -> None:
    packing, weights, liked = window_of(crowded(seed), per_job=20)
    before, bound = (-1, -1.0), None
    for steps in (0, 1, 2, 4, 8, 16, 32):
        limits = SearchLimits(deadline=None, steps=steps, seed=seed, clock=lambda: 0.0)
        found = AnytimeSearch(packing, Worth.scaled(weights, liked), NOTHING, limits).run()
        value = (sum(weights[bid] for bid in found.award.tolist()), round(float(liked[found.award].sum()), 9))
        assert fits(packing, found.award)
        assert value >= before
        assert found.bound is None or found.bound >= value[0]
        assert bound is None or (found.bound is not None and found.bound <= bound)
        before, bound = value, found.bound
