"""Whole logs as one loop: the starts of the policies in plain Python, to the last digit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain import J, workload_of, workloads

from aucsched.formats.swf import read_swf
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts, simulate_plain
from aucsched.simulation.logs.loops import conservative_kernel, deep, easy_kernel
from aucsched.simulation.logs.loops.compiled_loops import (
    MANY,
    compiled_loops,
    jobs_of,
    loop_for,
    play_compiled,
    play_jobs,
)
from aucsched.simulation.logs.loops.loop_state import BLOCK, COUNTED, DEEP, HEAD, index_of, machine_of
from aucsched.simulation.logs.policies import make_policy

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "swf"
LOGS = ("HPC2N-first", "KTH-SP2-1996-2", "SDSC-SP2-1998-4-first5k", "lublin_256", "theta_2023")
DAYS = Path(__file__).resolve().parents[3] / "examples" / "days.swf"
LOOPS: dict[str, Callable[..., Any]] = {"easy": easy_kernel.play, "conservative": conservative_kernel.play}
ORDERS = ("fcfs", "sjf", "smith", "widest", "flexible")
Case = tuple[list[J], int]


def by_lines(workload: Workload, name: str, order: str) -> list[float]:
    """Play the loop as it stands, without numba."""
    columns = workload.columns()
    assert columns is not None
    policy = make_policy(name, workload.requests, order=order)
    jobs = jobs_of(columns, getattr(policy, "job_at", None))
    play_jobs(name, LOOPS[name], jobs, workload.requests.processors)
    starts: list[float] = jobs.start[jobs.place].tolist()
    return starts


@settings(max_examples=200)
@given(workloads(most=40), st.sampled_from(sorted(LOOPS)), st.sampled_from(ORDERS))
def test_a_loop_gives_the_policys_starts(case: Case, name: str, order: str) -> None:
    workload = workload_of(*case)
    policy = make_policy(name, workload.requests, order=order)
    assert by_lines(workload, name, order) == simulate_plain(workload, policy)


@settings(max_examples=100)
@given(case=workloads(most=40), unit=st.sampled_from([0.1, 0.3, 1 / 3]), name=st.sampled_from(sorted(LOOPS)))
def test_a_loop_rounds_fractions_of_seconds_as_the_policy_does(case: Case, unit: float, name: str) -> None:
    whole = workload_of(*case)
    requests = replace(
        whole.requests,
        submit=tuple(time * unit for time in whole.requests.submit),
        estimate=tuple(time * unit for time in whole.requests.estimate),
    )
    workload = replace(whole, requests=requests, run=tuple(time * unit for time in whole.run))
    assert by_lines(workload, name, "fcfs") == simulate_plain(workload, make_policy(name, requests))


@settings(max_examples=150)
@given(workloads(most=60), st.integers(1, 6), st.sampled_from(ORDERS))
def test_a_deep_queue_is_searched_by_its_index(case: Case, deeper: int, order: str) -> None:
    workload = workload_of(*case)
    columns = workload.columns()
    assert columns is not None
    policy = make_policy("easy", workload.requests, order=order)
    jobs = jobs_of(columns, getattr(policy, "job_at", None))
    machine, index = machine_of(len(workload), case[1]), index_of(jobs.size)
    until = 0
    while not easy_kernel.play(jobs, machine, index, until, deeper, deeper // 2):
        until += 5
    assert jobs.start[jobs.place].tolist() == simulate_plain(workload, policy)


@settings(max_examples=25)
@given(st.data())
def test_the_index_finds_the_first_that_may_start(data: st.DataObject) -> None:
    """Against a look at every job, over several blocks, while jobs come and go."""
    count = data.draw(st.integers(1, 3 * BLOCK))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    size = draw.integers(1, data.draw(st.sampled_from([3, 40, 5000])), count)
    estimate = draw.integers(1, 9, count).astype(float)
    index, counts = index_of(size), np.zeros(COUNTED, np.int64)
    counts[HEAD] = count
    waiting: set[int] = set()
    for job in draw.permutation(count).tolist():
        deep.add(index, counts, job, estimate[job])
        waiting.add(job)
        if draw.random() < 0.6:
            gone = int(draw.choice(sorted(waiting)))
            deep.remove(index, counts, gone)
            waiting.remove(gone)
        assert counts[DEEP] == len(waiting)
        if not waiting:
            continue
        assert counts[HEAD] == min(waiting)
        free, extra = int(draw.integers(0, size.max() + 2)), int(draw.integers(0, size.max() + 1))
        after, slack = int(draw.integers(-1, count)), float(draw.integers(0, 9))
        expected = [
            one
            for one in sorted(waiting)
            if one > after and size[one] <= free and (estimate[one] <= slack or size[one] <= min(extra, free))
        ]
        fits = deep.class_below(index, free)
        if fits < 0:
            assert not expected
            continue
        beside = deep.class_below(index, min(extra, free))
        found = deep.next_fit(index, after, fits, slack, beside, size, free, min(extra, free))
        assert found == (expected[0] if expected else count)


def test_numbers_that_floats_do_not_hold_are_played_in_python() -> None:
    huge = workload_of([J(0, 10**15, 1, 10**15)] * 10, 1)
    assert huge.columns() is None
    mixed = replace(huge, run=(0.5, *huge.run[1:]))
    assert mixed.columns() is None
    starts = simulate_counts(huge, make_policy("easy", huge.requests))
    assert starts == [number * 10**15 for number in range(10)]


def test_only_logs_that_pay_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    monkeypatch.setenv("AUCSCHED_NUMBA", "0")
    compiled_loops.cache_clear()
    try:
        assert loop_for(make_policy("easy", requests), 10**9) is None
        assert loop_for(make_policy("fcfs", requests), 10**9) is None
        assert loop_for(make_policy("easy", requests, order="multifactor"), 10**9) is None
    finally:
        compiled_loops.cache_clear()
    assert set(MANY) == set(LOOPS)


@pytest.mark.skipif(os.environ.get("AUCSCHED_NUMBA") == "0", reason="numba is switched off")
@pytest.mark.parametrize("path", [DAYS, *(DATA / f"{name}.swf" for name in LOGS)], ids=lambda one: one.stem)
def test_compiled_loops_give_the_same_starts_on_logs(path: Path) -> None:
    pytest.importorskip("numba")
    if not path.exists():
        pytest.skip("the shared data are not here")
    assert compiled_loops() is not None
    log = read_swf(path)
    for processors in (None, 60) if path.stem == "KTH-SP2-1996-2" else (None,):
        workload = workload_from_swf(log, processors=processors)
        for name, order in (("easy", "fcfs"), ("easy", "smith"), ("conservative", "fcfs")):
            if name == "conservative" and (processors or path.stem in {"lublin_256", "theta_2023"}):
                continue
            compiled = play_compiled(workload, make_policy(name, workload.requests, order=order))
            plain = simulate_plain(workload, make_policy(name, workload.requests, order=order))
            assert compiled == plain
            assert compiled is not None
            assert {type(start) for start in compiled} == {type(start) for start in plain}


def test_progress_is_told_on_the_way() -> None:
    pytest.importorskip("numba")
    if compiled_loops() is None:
        pytest.skip("numba cannot be used")
    workload = workload_of([J(10 * number, 5, 1, 5) for number in range(40_000)], 2)
    told: list[int] = []
    starts = play_compiled(workload, make_policy("easy", workload.requests), told.append)
    assert starts == [10 * number for number in range(40_000)]
    assert told == [4096 * (number + 1) for number in range(9)]
