"""A step is complete: what an award leaves holds no job that waits, in the window or behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from random_snapshots import random_snapshot
from support.build import snapshot
from support.second_pass import after

from aucsched import Snapshot
from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import run_step
from aucsched.cluster.schedule import Reason

#: Every strategy with the models that have it.
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"model": "ipsched", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched1", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched1", "strategy": "greedy"},
    {"model": "aucsched2", "strategy": "anytime", "work_limit": 3},
    {"model": "aucsched3", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched3", "strategy": "anytime", "work_limit": 3},
    {"model": "aucsched3", "strategy": "greedy"},
)
OTHERS: tuple[dict[str, Any], ...] = (
    {},
    {"window": 3},
    {"reserve": 1},
    {"max_bids": 8, "max_bids_per_job": 2},
    {"reserve": 2, "window": 4},
)


def crowded(seed: int) -> Snapshot:
    """Return a random cluster; of every other one the jobs wait three times over."""
    found = random_snapshot(seed)
    if seed % 2:
        return found
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(3) for job in found.jobs)
    return replace(found, jobs=jobs)


@pytest.mark.parametrize("part", range(5))
def test_a_second_pass_over_what_an_award_leaves_starts_nothing(part: int) -> None:
    for seed in range(part, 500, 5):
        cluster = crowded(seed)
        for place, strategy in enumerate(STRATEGIES):
            if (seed // 5 + place) % 3:
                continue
            options = StepOptions(**strategy, **OTHERS[(seed + place) % len(OTHERS)])
            first = run_step(cluster, options)
            second = run_step(after(cluster, first), options)
            assert [award.job for award in second.started] == [], (seed, options)


@pytest.mark.parametrize("model", MODELS)
def test_jobs_behind_the_window_start_on_what_it_leaves(model: str) -> None:
    jobs = [{"id": "wide", "cores": 8}, {"id": "small", "cores": 2}, {"id": "more", "cores": 2}]
    cluster = snapshot([{"name": "a", "cores": 10}], [{**job, "time_limit_s": 60} for job in jobs])
    found = run_step(cluster, StepOptions(model=model, window=1))
    assert [award.job for award in found.started] == ["wide", "small"]
    assert [(one.job, one.reason) for one in found.pending] == [("more", Reason.WINDOW)]
    assert found.objective.priority == 1999
