"""The anytime strategy: the same program, awards as good as the exact ones, better with more steps."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, snapshot, tiny

from aucsched import OptionError, Schedule, Snapshot, schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.options import StepOptions
from aucsched.auction.queue import queue_of
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.columns import Columns
from aucsched.cluster.resources.demand import DemandReader
from aucsched.cluster.schedule import Seconds
from aucsched.models.auction_model import Aucsched3
from aucsched.models.model import ModelInput
from aucsched.models.search.bounding import find_prices, runs_of
from aucsched.models.search.packing import Packing, packing_of
from aucsched.models.solve.solver import SolverOptions, solve
from aucsched.topology.tree import topology_of

SEEDS = st.integers(0, 10**6)


def table_of(cluster: Snapshot) -> tuple[BidTable, Columns]:
    columns, topology = columns_of(cluster), topology_of(cluster)
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions()).window
    return generate_bids(window, Cluster(columns, topology), BidOptions(max_bids_per_job=8)).table, columns


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_the_fast_path_has_the_same_solutions_and_optimum_as_the_pulp_model(seed: int) -> None:
    cluster = random_snapshot(seed)
    table, columns = table_of(cluster)
    if not len(table):
        return
    rng = np.random.default_rng(seed)
    worth = rng.integers(1, 100, len(table)).astype(np.float64)
    given = ModelInput(table=table, columns=columns, topology=topology_of(cluster))
    printed = Aucsched3(given).program.maximising(worth)
    packing = packing_of(table, columns)
    fast = packing.program(np.arange(len(table)), packing.capacity).maximising(worth)
    options = SolverOptions(time_limit_s=30, absolute_gap=0.5)
    assert solve(printed, options).objective == solve(fast, options).objective
    for _ in range(20):
        chosen = (rng.random(len(table)) < rng.choice([0.02, 0.1, 0.3])).astype(np.float64)
        assert holds(printed, chosen) == holds(fast, chosen)


def holds(program: Any, values: Any) -> bool:
    row = np.repeat(np.arange(program.rows), np.diff(program.indptr))
    sums = np.bincount(row, weights=program.value * values[program.index], minlength=program.rows)
    return bool((sums <= program.row_upper + 1e-9).all() and (sums >= program.row_lower - 1e-9).all())


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_prices_bound_every_award(seed: int) -> None:
    table, columns = table_of(tiny(seed))
    if not len(table):
        return
    worth = np.array([float(table.demands[job].job.priority) for job in table.job.tolist()])
    packing = packing_of(table, columns)
    found = find_prices(packing, worth, 0.0, 60, lambda: False)
    best = solve(
        packing.program(np.arange(len(table)), packing.capacity).maximising(worth),
        SolverOptions(time_limit_s=30),
    )
    assert best.objective is not None
    assert found.bound >= best.objective - 1e-6


@given(SEEDS, st.sampled_from(["aucsched2", "aucsched3"]))
@example(seed=482278, model="aucsched2")
@example(seed=1116, model="aucsched2")
@example(seed=823, model="aucsched2")
@example(seed=1068, model="aucsched3")
@example(seed=793304, model="aucsched3")
@example(seed=608794, model="aucsched2")
@example(seed=787801, model="aucsched2")
@settings(max_examples=25, deadline=None)
def test_small_windows_are_solved_as_exactly(seed: int, model: Any) -> None:
    cluster = random_snapshot(seed)
    # The oracle has time: on a busy machine a minute did not prove each preference.
    exact = schedule(cluster, model=model, strategy="exact", time_limit_s=600, **ALONE)
    anytime = schedule(cluster, model=model, strategy="anytime", time_limit_s=60, **ALONE)
    awarded, reference = (one.attempts[-1].priority if one.attempts else 0 for one in (anytime, exact))
    if anytime.sizes.bids > exact.sizes.bids or exact.objective.priority > reference:
        # Jobs bid anew, or start on what one of several equal awards leaves: no award over the bids that both
        # have is worth more than either's.
        assert awarded >= reference
        assert anytime.status in {"optimal", exact.status}
        return
    assert anytime.objective.priority == exact.objective.priority
    assert anytime.objective.preference == pytest.approx(exact.objective.preference)
    assert {one.status for one in (*anytime.attempts, *exact.attempts)} <= {"optimal"}
    # Of a window of which a job without a bid starts on what is left no optimum is said.
    assert anytime.status == exact.status


def crowded(jobs: int = 50) -> Snapshot:
    """A window of too many bids to be given to the solver whole."""
    rng = random.Random(3)
    nodes = [{"name": f"n{place:03d}", "cores": 12, "free_cores": rng.randint(0, 12)} for place in range(150)]
    asked: list[dict[str, Any]] = [
        {"nodes": rng.randint(2, 9), "cores_per_node": rng.randint(2, 9), "priority": rng.randint(1, 10**6)}
        for _ in range(jobs)
    ]
    return snapshot(nodes, asked)


def without_seconds(result: Schedule) -> dict[str, Any]:
    document = result.to_dict()
    del document["seconds"]
    for one in document["window"]["attempts"]:
        del one["seconds"]
    return document


def test_more_steps_are_never_worse_and_the_same_steps_are_the_same() -> None:
    cluster = crowded(80)
    values: list[tuple[Any, float]] = []
    for steps in (0, 4, 8, 12):
        result = schedule(cluster, **ALONE, strategy="anytime", work_limit=steps, max_bids_per_job=60)
        assert result.sizes.bids > 3000
        values.append((result.objective.priority, result.objective.preference or 0.0))
    assert values == sorted(values)
    assert values[-1] > values[0]
    again = [schedule(cluster, **ALONE, strategy="anytime", work_limit=6, seed=7) for _ in range(2)]
    assert without_seconds(again[0]) == without_seconds(again[1])


def test_few_steps_beat_first_fit_and_stay_below_the_bound() -> None:
    cluster = crowded(80)
    result = schedule(cluster, **ALONE, strategy="anytime", work_limit=8)
    assert result.objective.priority > first_fit_by_priority(cluster, 100).priority
    assert result.objective.bound is not None
    assert result.objective.bound >= result.objective.priority


def test_a_clock_that_has_run_out_ends_the_search_with_the_award_at_hand() -> None:
    ticks = iter(range(10**9))
    cluster = crowded(80)
    result = schedule(cluster, **ALONE, strategy="anytime", time_limit_s=1, clock=lambda: float(next(ticks)))
    assert result.objective.priority >= first_fit_by_priority(cluster, 100).priority


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "anytime", "model": "ipsched"},
        {"strategy": "anytime", "weights": "paper"},
        {"strategy": "anytime", "model": "aucsched1"},
        {"strategy": "anytime", "work_limit": -1},
    ],
)
def test_combinations_that_would_be_ignored_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        schedule(crowded(2), **options)


def test_reservations_hold_under_the_search_too() -> None:
    jobs: list[dict[str, Any]] = [{"nodes": 4, "cores": 16, "priority": 100}]
    jobs += [{"nodes": 2, "cores": 8, "priority": 99 - place} for place in range(2)]
    cluster = snapshot([{"name": "n[1-4]", "cores": 4}], jobs)
    result = schedule(cluster, strategy="anytime", reserve=1)
    assert [award.job for award in result.started] == ["J1"]


@pytest.mark.parametrize(
    ("options", "searches"),
    [
        ({}, True),
        ({"model": "aucsched2"}, True),
        ({"model": "aucsched1"}, False),
        ({"model": "ipsched"}, False),
        ({"weights": "paper"}, False),
        ({"strategy": "exact"}, False),
    ],
)
def test_the_search_is_the_default_where_there_is_one(options: dict[str, Any], *, searches: bool) -> None:
    assert StepOptions(**options).is_anytime is searches


@pytest.mark.parametrize("model", ["ipsched", "aucsched1", "aucsched3"])
def test_nodes_limit_the_exact_strategy_where_no_clock_may(model: str) -> None:
    ticks = itertools.count(step=1000)
    options: dict[str, Any] = {
        **ALONE,
        "model": model,
        "strategy": "exact",
        "work_limit": 1,
        "on_timeout": "incumbent",
    }
    cluster = tiny(3)
    hurried = schedule(cluster, **options, clock=lambda: float(next(ticks)))
    assert hurried.started
    assert replace(hurried, seconds=Seconds(), attempts=()) == replace(
        schedule(cluster, **options), seconds=Seconds(), attempts=()
    )


def test_what_bids_cost_is_the_same_run_by_run() -> None:
    rng = np.random.default_rng(4)
    taken = [np.flatnonzero(rng.random(40) < share) for share in (0.0, 0.9, 0.5, 1.0, 0.0, 0.2, 0.0)]
    amount = [np.sort(rng.integers(1, 3, len(rows))) for rows in taken]
    packing = Packing(
        job=np.arange(len(taken)),
        first=np.arange(len(taken)),
        indptr=np.concatenate([[0], np.cumsum([len(rows) for rows in taken])]),
        row=np.concatenate(taken),
        amount=np.concatenate(amount),
        capacity=np.full(40, 3),
        origin=np.arange(40),
    )
    price = rng.random(40)
    runs = runs_of(packing)
    assert len(runs.first) < len(packing.row)
    assert runs.cost(price) == pytest.approx(packing.cost(price))
