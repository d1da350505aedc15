"""A step is complete: what an award leaves holds no job that waits, in the window or behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from second_pass import OTHERS, STRATEGIES, crowded, options_of, started_second
from support.build import ALONE, snapshot

from aucsched import ArrivingJob, ClusterWorkload, Job, Request
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import run_step
from aucsched.cluster.schedule import Reason
from aucsched.simulation.nodes.node_policies import NodeOptions, play


@pytest.mark.parametrize("part", range(5))
def test_a_second_pass_over_what_an_award_leaves_starts_nothing(part: int) -> None:
    for seed in range(part, 500, 5):
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
