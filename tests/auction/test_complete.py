"""A step is complete: what an award leaves holds no job that waits, in the window or behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from second_pass import OTHERS, STRATEGIES, crowded, options_of, started_second
from support.build import ALONE, snapshot

from aucsched import ArrivingJob, ClusterWorkload, Job, Request, Snapshot, schedule
from aucsched.auction import complete as complete_module
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import run_step
from aucsched.auction.step_pass import StepPass
from aucsched.auction.strategies import AttemptResult
from aucsched.cluster.schedule import Reason
from aucsched.models.model import bid_weights
from aucsched.models.search.packing import packing_of
from aucsched.models.search.proving import best_among
from aucsched.models.solve.lexicographic import integer_weights
from aucsched.models.solve.solver import SolverOptions, solve
from aucsched.simulation.nodes.node_policies import NodeOptions, play


@pytest.mark.parametrize("part", range(5))
def test_a_second_pass_over_what_an_award_leaves_starts_nothing(part: int) -> None:
    for seed in range(part, 250, 5):
        cluster = crowded(seed)
        for place, strategy in enumerate(STRATEGIES):
            if (seed // 5 + place) % 3:
                continue
            options = options_of(strategy, OTHERS[(seed + place) % len(OTHERS)])
            assert started_second(cluster, options) == [], (seed, options)


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (94, StepOptions(model="aucsched1", strategy="greedy", reserve=1)),
        (108, StepOptions(model="aucsched3", strategy="exact", reserve=1, work_limit=3)),
        (120, StepOptions(model="aucsched3", strategy="greedy", reserve=1)),
    ],
)
def test_nothing_is_kept_for_a_job_that_starts(seed: int, options: StepOptions) -> None:
    # The job that nodes are reserved for starts on others.
    assert started_second(crowded(seed), options) == []


@pytest.mark.parametrize("model", MODELS)
def test_jobs_behind_the_window_start_on_what_it_leaves(model: str) -> None:
    jobs = [{"id": "wide", "cores": 8}, {"id": "small", "cores": 2}, {"id": "more", "cores": 2}]
    cluster = snapshot([{"name": "a", "cores": 10}], [{**job, "time_limit_s": 60} for job in jobs])
    found = run_step(cluster, StepOptions(model=model, window=1))  # type: ignore[arg-type]
    assert [award.job for award in found.started] == ["wide", "small"]
    assert [(one.job, one.reason) for one in found.pending] == [("more", Reason.WINDOW)]
    assert found.objective.priority == 1999


@pytest.mark.parametrize("model", MODELS)
def test_an_award_alone_starts_nobody_that_did_not_win(model: str) -> None:
    jobs = [{"id": "wide", "cores": 8}, {"id": "small", "cores": 2}]
    cluster = snapshot([{"name": "a", "cores": 10}], [{**job, "time_limit_s": 60} for job in jobs])
    found = run_step(cluster, StepOptions(model=model, window=1, award_alone=True))  # type: ignore[arg-type]
    assert [award.job for award in found.started] == ["wide"]
    # It was not looked for on what the award leaves, and nothing is said of that.
    assert [(one.job, one.reason) for one in found.pending] == [("small", Reason.WINDOW)]
    assert "nodeset" not in (found.pending[0].detail or "")


@pytest.mark.parametrize("alone", [False, True])
def test_a_simulation_starts_nobody_beside_an_award_alone(*, alone: bool) -> None:
    cluster = snapshot([{"name": "a", "cores": 10}], [])
    jobs = [(8, 2.0), (2, 1.0)]
    workload = ClusterWorkload(
        name="",
        nodes=cluster.nodes,
        jobs=tuple(
            ArrivingJob(
                job=Job(id=f"{cores}", priority=priority, time_limit_s=60, request=Request(cores=cores)),
                arrival_s=0,
                run_time_s=30,
            )
            for cores, priority in jobs
        ),
    )
    played = play(workload, NodeOptions(policy="aucsched2", window=1, award_alone=alone)).played
    assert [one.start_s for one in played] == ([0, 30] if alone else [0, 0])


def test_complete_steps_are_worth_as_much_as_awards_alone_and_more() -> None:
    more = 0
    for seed in range(60):
        options = StepOptions(model="aucsched1", work_limit=50, max_bids=12, max_bids_per_job=2, **ALONE)
        whole = run_step(crowded(seed), options)
        alone = run_step(crowded(seed), replace(options, award_alone=True))
        assert alone.objective.priority <= whole.objective.priority, seed
        assert len(alone.started) + len(alone.pending) == len(whole.started) + len(whole.pending)
        more += len(whole.started) - len(alone.started)
    assert more > 0


def _of_equals(seed: int) -> Snapshot:
    """Return jobs of nearly equal priorities: the best award of a window often has others beside it."""
    draw = np.random.default_rng(seed)
    nodes = [
        {"name": f"n{place}", "cores": 4, "free_cores": int(draw.choice([1, 2, 4])), "gres": {"gpu": 2}}
        for place in range(int(draw.integers(4, 9)))
    ]
    jobs: list[dict[str, Any]] = []
    for _ in range(14):
        job: dict[str, Any] = {"cores": int(draw.integers(1, 7))}
        if draw.random() < 0.5:
            job = {"nodes": int(draw.integers(1, 4)), "cores_per_node": int(draw.integers(1, 4))}
            job |= {"contiguous": bool(draw.random() < 0.5)}
            job |= {"gres_per_node": {"gpu": 1}} if draw.random() < 0.5 else {}
        jobs.append({"priority": 100 + int(draw.integers(9)), "time_limit_s": 600, **job})
    return snapshot(nodes, jobs)


def test_a_bound_holds_for_the_jobs_that_joined_the_auction(monkeypatch: pytest.MonkeyPatch) -> None:
    """With them no award is worth more: HiGHS says what the best is over all bids, theirs among them."""
    looked: list[tuple[AttemptResult, AttemptResult, StepPass]] = []
    lowered = complete_module._lowered  # noqa: SLF001 - what it does is not seen from outside

    def noted(joined: AttemptResult, base: AttemptResult, step: StepPass) -> AttemptResult:
        found = lowered(joined, base, step)
        looked.append((joined, found, step))
        return found

    monkeypatch.setattr(complete_module, "_lowered", noted)
    for seed in range(200):
        schedule(_of_equals(seed), window=3 + seed % 4, work_limit=5, promise="none", reserve=0)
    tighter = 0
    for joined, found, step in looked:
        table, columns = found.answer.table, step.cluster.columns
        packing = packing_of(table, columns, step.cluster.guards)
        program = packing.program(np.arange(len(table)), packing.capacity)
        weights, unit = integer_weights(bid_weights(table, "priority"))
        solved = solve(program.maximising(np.array(weights, np.float64)), SolverOptions(time_limit_s=10))
        assert solved.values is not None
        won = np.flatnonzero(solved.values > 0.5)
        best = sum(weights[bid] for bid in won.tolist()) * unit
        assert found.bound is not None
        assert joined.bound is not None
        assert found.bound >= best >= found.answer.priority
        assert found.proved == (found.bound == found.answer.priority)
        tighter += found.bound < joined.bound
    assert tighter > 3, len(looked)


@pytest.mark.parametrize("clock", [{}, {"time_limit_s": 60}])
def test_without_a_clock_a_bound_does_not_depend_on_what_is_loaded(
    clock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer looks were made where the compiled loop was not loaded yet: another bound from the same work."""
    waits: list[bool] = []

    def noted(*arguments: Any, may_wait: bool) -> Any:
        waits.append(may_wait)
        return best_among(*arguments, may_wait=may_wait)

    monkeypatch.setattr(complete_module, "best_among", noted)
    for seed in range(40):
        schedule(_of_equals(seed), window=3 + seed % 4, work_limit=5, promise="none", reserve=0, **clock)
    assert set(waits) == {not clock}
