"""Traces played: work done, processors kept, minima held, the same compiled and plain, EASY as elsewhere."""

from __future__ import annotations

from collections import defaultdict
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.cluster.kernels.harness import SWITCH, Floats
from aucsched.negotiation.malleable.application_columns import EVENTS, EXECUTION_MODELS, overhead_s, speed
from aucsched.negotiation.malleable.harvesting import DISTRIBUTIONS, HARVESTS
from aucsched.negotiation.malleable.malleable_policies import (
    BASELINES,
    IschedulerPolicy,
)
from aucsched.simulation import malleable_run
from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.malleable_run import Outcome, jobs_of, simulate_malleable


def trace(rows: list[tuple[float, int, float]], processors: int) -> Workload:
    """Return jobs by the time since the one before, ideal processors and run time."""
    gaps, ideal, seconds = zip(*rows, strict=True)
    numbers = tuple(range(len(rows)))
    requests = Requests(
        processors=processors,
        submit=tuple(np.cumsum([0, *gaps[1:]]).astype(np.float64).tolist()),
        size=ideal,
        estimate=seconds,
        user=(0,) * len(rows),
        weight=(1.0,) * len(rows),
    )
    return Workload(requests=requests, run=seconds, ids=numbers, row=numbers, rows=len(rows))


PROCESSORS = 12
rows = st.lists(
    st.tuples(st.integers(0, 40).map(float), st.integers(1, PROCESSORS), st.integers(1, 200).map(float)),
    min_size=1,
    max_size=25,
)
policies = st.builds(
    IschedulerPolicy,
    admission=st.sampled_from([None, 0, 1, 2, 4]),
    harvest=st.sampled_from(sorted(HARVESTS)),
    distribution=st.sampled_from(sorted(DISTRIBUTIONS)),
    max_harvests=st.sampled_from([None, 0, 2]),
    protected_s=st.sampled_from([0.0, 20.0]),
    weighs=st.booleans(),
    is_ideal=st.booleans(),
)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malleable_run.PLAY, "_loaded", [None])


def check(
    found: Outcome, policy: IschedulerPolicy, model: str, share: float, data: Floats | None = None
) -> None:
    """Follow every change of size: bounds, the machine, arrivals in order, and the model's integral."""
    jobs = jobs_of(found.workload, share, is_ideal=policy.is_ideal, data=data)
    held: dict[int, int] = defaultdict(int)
    since: dict[int, float] = {}
    done: dict[int, float] = defaultdict(float)
    now = -inf
    moments = [row.tolist() for row in found.sizes]
    for place, (time, number, size) in enumerate(moments):
        job, count = int(number), int(size)
        assert time >= now
        now = time
        if held[job]:
            passed = max(0.0, time - since[job])
            done[job] += passed * speed(EXECUTION_MODELS.index(model), held[job], int(jobs.ideal[job]))
            since[job] = max(time, since[job]) + (overhead_s(jobs.data[job], held[job]) if count else 0.0)
        else:
            since[job] = time
            assert time == found.start[job] >= found.submit[job]
        if count:
            assert jobs.least[job] <= count <= jobs.ideal[job]
        else:
            assert time == found.end[job]
            assert done[job] == pytest.approx(jobs.run[job], rel=1e-9)
        held[job] = count
        if place + 1 == len(moments) or moments[place + 1][0] > time:
            assert 0 <= sum(held.values()) <= found.workload.requests.processors
    assert not any(held.values())
    assert len(done) == len(found.workload)
    if not policy.backfills:
        assert (np.diff(found.start) >= 0).all()


@given(
    rows,
    policies,
    st.sampled_from(sorted(EXECUTION_MODELS)),
    st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    st.booleans(),
)
def test_bounds_processors_and_work_hold_whatever_the_policy(
    jobs: list[tuple[float, int, float]], policy: IschedulerPolicy, model: str, share: float, costs: bool
) -> None:
    made, data = trace(jobs, PROCESSORS), np.full(len(jobs), 20_000.0) if costs else None
    found = simulate_malleable(made, policy, model=model, min_of_ideal=share, data=data)
    check(found, policy, model, share, data)
    assert found.tally[EVENTS] == found.harvests.sum()
    if policy.harvest == "never" or policy.max_harvests == 0:
        assert found.tally[EVENTS] == 0


@given(rows)
def test_backfill_is_easy_with_known_run_times(jobs: list[tuple[float, int, float]]) -> None:
    made = trace(jobs, PROCESSORS)
    found = simulate_malleable(made, BASELINES["ideal-backfill"])
    check(found, BASELINES["ideal-backfill"], "linear", 0.3)
    assert found.start.tolist() == _logs_starts(made, "easy")


@given(rows)
def test_ideal_only_is_first_come_first_served(jobs: list[tuple[float, int, float]]) -> None:
    made = trace(jobs, PROCESSORS)
    assert simulate_malleable(made, BASELINES["ideal-only"]).start.tolist() == _logs_starts(made, "fcfs")


def _logs_starts(made: Workload, policy: str) -> list[float]:
    return list(simulate_counts(made, make_policy(policy, made.requests)))


def test_figure_3_example_played() -> None:
    made = trace([(0, 4, 100), (0, 4, 100), (10, 4, 20), (5, 4, 30)], 8)
    policy = IschedulerPolicy(harvest="even", distribution="favor_queued")
    found = simulate_malleable(made, policy, min_of_ideal=0.5)
    # J3 (least 2 of 4) takes one from each; J4 two more.
    assert found.start.tolist() == [0, 0, 10, 15]
    assert found.harvests.tolist()[:2] == [2, 2]


def test_who_has_just_started_has_its_whole_run_left() -> None:
    """At 100 s the third starts on its least, 2 of 6, and the second, with less left, gets the other two."""
    made = trace([(0, 4, 100), (1, 8, 200), (2, 6, 1000)], 8)
    policy = IschedulerPolicy(harvest="short", distribution="favor_running", admission=2)
    found = simulate_malleable(made, policy, min_of_ideal=0.3)
    # 1 600 processor-seconds: 99 s on four from 1 s on, then on six.
    assert found.end[1] == pytest.approx(100 + (1600 - 99 * 4) / 6)


def test_an_adaptation_costs_its_seconds() -> None:
    """Weissman: adaptation model (4.3)."""
    # STEN with N = 128 on four processors: 2 · 128² · 8 / 4 bytes, 6.9 s (4.1).
    assert overhead_s(2 * 128**2 * 8, 4) == pytest.approx(6.898, abs=1e-3)
    made, data = trace([(0, 4, 100), (10, 4, 1000)], 4), np.full(2, 2 * 128.0**2 * 8)
    found = simulate_malleable(made, IschedulerPolicy(harvest="even"), min_of_ideal=0.5, data=data)
    # 10 s of work done, 6.9 s of adapting, 90 s of work at half the speed.
    assert found.end[0] == pytest.approx(10 + 6.89824 + 180)


def test_compiled_and_plain_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(malleable_run.PLAY, "_loaded", [])
    assert malleable_run.PLAY.compiled() is not None
    random = np.random.default_rng(7)
    sizes = random.choice([1, 2, 4, 8, 16, 32], 400)
    gaps, run = random.exponential(250, 400), 1 + 3000 * random.weibull(0.5, 400)
    made = trace(list(zip(gaps.tolist(), sizes.tolist(), run.tolist(), strict=True)), 64)
    data = np.full(400, 1e5)
    chosen = [IschedulerPolicy(admission=m, harvest=h) for h in HARVESTS for m in (3, None)]
    chosen += [*BASELINES.values(), IschedulerPolicy(weighs=True)]
    for policy in chosen:
        for model in EXECUTION_MODELS:
            outcomes = []
            for is_plain in (False, True):
                with pytest.MonkeyPatch.context() as patch:
                    if is_plain:
                        patch.setattr(malleable_run.PLAY, "_loaded", [None])
                    played = simulate_malleable(made, policy, model=model, data=data)
                    outcomes.append(played)
            first, second = outcomes
            assert first.end.tobytes() == second.end.tobytes()
            assert first.start.tobytes() == second.start.tobytes()
            assert first.sizes.tobytes() == second.sizes.tobytes()
            assert first.tally.tolist() == second.tally.tolist()


def test_a_machine_far_larger_than_its_jobs_costs_no_memory() -> None:
    made = trace([(0, 4, 100), (1, 10**6, 5)], 10**9)
    for policy in (IschedulerPolicy(), BASELINES["ideal-backfill"]):
        assert simulate_malleable(made, policy, min_of_ideal=1.0).start.tolist() == [0, 1]
    with pytest.raises(InputError, match="not within 1 and 1000000"):
        jobs_of(trace([(0, 10**6 + 1, 100)], 10**9), 0.3)
