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
from support.plain import DeepEasy, J, in_units, workload_of, workloads

from aucsched.cluster.kernels.harness import Entry
from aucsched.formats.swf import load_swf
from aucsched.simulation.backfilling.deep_queue import (
    BLOCK,
    DEEP,
    HEAD,
    add_deep,
    class_below,
    deep_queue_of,
    next_fit,
    remove_deep,
)
from aucsched.simulation.backfilling.easy import Easy
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.counts import (
    LOOPS,
    play_columns,
    play_compiled,
    play_conservative,
    play_easy,
    play_promised,
    simulate_counts,
    simulate_plain,
)
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.simulate_options import PolicyOptions

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "swf"
LOGS = ("HPC2N-first", "KTH-SP2-1996-2", "SDSC-SP2-1998-4-first5k", "lublin_256", "theta_2023")
DAYS = Path(__file__).resolve().parents[3] / "examples" / "days.swf"
PLAIN: dict[str, Callable[..., Any]] = {
    "easy": play_easy,
    "conservative": play_conservative,
    "promised": play_promised,
}
ORDERS = ("fcfs", "sjf", "smith", "widest", "flexible")
Case = tuple[list[J], int]


def compiled_starts(workload: Workload, name: str, order: str) -> list[float] | None:
    """Play a log by the compiled loop."""
    columns, loop = workload.columns, LOOPS[name].compiled()
    assert columns is not None
    if loop is None:
        pytest.skip("numba cannot be used")
    policy = make_policy(name, workload.requests, order=order)
    starts: list[float] = play_columns(loop, columns, workload.requests.processors, policy).tolist()
    return starts


@settings(max_examples=200)
@given(workloads(most=40), st.sampled_from(sorted(PLAIN)), st.sampled_from(ORDERS))
def test_arrays_and_lists_give_the_same_starts(case: Case, name: str, order: str) -> None:
    workload = workload_of(*case)
    policy = make_policy(name, workload.requests, order=order)
    assert compiled_starts(workload, name, order) == simulate_plain(workload, policy)


@settings(max_examples=100)
@given(case=workloads(most=40), unit=st.sampled_from([0.1, 0.3, 1 / 3]), name=st.sampled_from(sorted(PLAIN)))
def test_fractions_of_seconds_are_rounded_alike(case: Case, unit: float, name: str) -> None:
    workload = in_units(workload_of(*case), unit)
    plain = simulate_plain(workload, make_policy(name, workload.requests))
    assert compiled_starts(workload, name, "fcfs") == plain


@settings(max_examples=150)
@given(workloads(most=60), st.integers(1, 6))
def test_a_deep_queue_is_searched_by_its_index(case: Case, deeper: int) -> None:
    workload = workload_of(*case)
    policy = DeepEasy(workload.requests, deeper=deeper, shallow=deeper // 2)
    assert simulate_plain(workload, policy) == simulate_plain(workload, Easy(workload.requests))


@settings(max_examples=25)
@given(st.data())
def test_the_index_finds_the_first_that_may_start(data: st.DataObject) -> None:
    """Against a look at every job, over several blocks, while jobs come and go."""
    count = data.draw(st.integers(1, 3 * BLOCK))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    size = draw.integers(1, data.draw(st.sampled_from([3, 40, 5000])), count)
    estimate = draw.integers(1, 9, count).astype(float)
    index = deep_queue_of(size, is_compiled=data.draw(st.booleans()))
    counts = index.counts
    waiting: set[int] = set()
    for job in draw.permutation(count).tolist():
        add_deep(index, job, estimate[job])
        waiting.add(job)
        if draw.random() < 0.6:
            gone = int(draw.choice(sorted(waiting)))
            remove_deep(index, gone)
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
        fits = class_below(index, free)
        if fits < 0:
            assert not expected
            continue
        beside = class_below(index, min(extra, free))
        found = next_fit(index, after, fits, slack, beside, size, free, min(extra, free))
        assert found == (expected[0] if expected else count)


def test_numbers_that_floats_do_not_hold_are_played_in_python() -> None:
    huge = workload_of([J(0, 10**15, 1, 10**15)] * 10, 1)
    assert not huge.columns.is_exact
    mixed = replace(huge, run=(0.5, *huge.run[1:]))
    assert not mixed.columns.is_exact
    assert replace(workload_of([J(3, 10, 1, 10)] * 2, 1), run=(0.5, 2)).columns.is_exact
    starts = simulate_counts(huge, make_policy("easy", huge.requests))
    assert starts == [number * 10**15 for number in range(10)]


def test_only_logs_that_pay_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUCSCHED_NUMBA", "0")
    for name, kernel in PLAIN.items():
        entry = Entry(kernel, name, many=10)
        assert entry.for_jobs(10**9) == (kernel, False)
    assert make_policy("easy", workload_of([J(0, 1, 1, 1)], 1).requests, order="slowdown").loop is None
    assert set(LOOPS) == set(PLAIN)


def test_a_deep_queue_of_few_jobs_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    if LOOPS["conservative"].compiled() is None:
        pytest.skip("numba cannot be used")
    monkeypatch.setattr(LOOPS["conservative"], "_loaded", [])
    workload = workload_of([J(0, 1, 1, 1)] * 200, 1)
    for name in ("conservative", "planning"):
        assert play_compiled(workload, make_policy(name, workload.requests)) == [*range(200)]


@pytest.mark.skipif(os.environ.get("AUCSCHED_NUMBA") == "0", reason="numba is switched off")
@pytest.mark.parametrize("path", [DAYS, *(DATA / f"{name}.swf" for name in LOGS)], ids=lambda one: one.stem)
def test_compiled_loops_give_the_same_starts_on_logs(path: Path) -> None:
    pytest.importorskip("numba")
    if not path.exists():
        pytest.skip("the shared data are not here")
    assert None not in [loop.compiled() for loop in LOOPS.values()]
    log = load_swf(path)
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
        ours = PolicyOptions(objective="response")
        policies = [make_policy("promised", workload.requests, options=ours) for _ in range(2)]
        assert play_compiled(workload, policies[0]) == simulate_plain(workload, policies[1])


def test_progress_is_told_on_the_way() -> None:
    pytest.importorskip("numba")
    if LOOPS["easy"].compiled() is None:
        pytest.skip("numba cannot be used")
    workload = workload_of([J(10 * number, 5, 1, 5) for number in range(40_000)], 2)
    told: list[int] = []
    starts = play_compiled(workload, make_policy("easy", workload.requests), told.append)
    assert starts == [10 * number for number in range(40_000)]
    assert told == [4096 * (number + 1) for number in range(9)]
