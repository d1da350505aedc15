"""A step is complete: what an award leaves holds no job that waits, in the window or behind it."""

from __future__ import annotations

import pytest
from second_pass import OTHERS, STRATEGIES, crowded, started_second
from support.build import snapshot

from aucsched.auction.options import MODELS, StepOptions
from aucsched.auction.step import run_step
from aucsched.cluster.schedule import Reason


@pytest.mark.parametrize("part", range(5))
def test_a_second_pass_over_what_an_award_leaves_starts_nothing(part: int) -> None:
    for seed in range(part, 500, 5):
        cluster = crowded(seed)
        for place, strategy in enumerate(STRATEGIES):
            if (seed // 5 + place) % 3:
                continue
            options = StepOptions(**strategy, **OTHERS[(seed + place) % len(OTHERS)])
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
    found = run_step(cluster, StepOptions(model=model, window=1))
    assert [award.job for award in found.started] == ["wide", "small"]
    assert [(one.job, one.reason) for one in found.pending] == [("more", Reason.WINDOW)]
    assert found.objective.priority == 1999
