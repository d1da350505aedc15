"""The auction on a machine that counts: EASY's starts by priority, and promises that are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from operator import sub
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain import J, plain_easy, simulate_checked, starts_of, workload_of, workloads

import aucsched
from aucsched.cluster.errors import OptionError
from aucsched.cluster.kernels.column_operations import pop
from aucsched.cluster.promises import DEFAULT, promised_duration_s
from aucsched.formats.swf import load_swf
from aucsched.simulation.backfilling.deep_queue import DEEP
from aucsched.simulation.backfilling.easy import FREE
from aucsched.simulation.log_columns import workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import ORDERS, make_policy
from aucsched.simulation.promised import awards, log_auction
from aucsched.simulation.promised.awards import PLANNED
from aucsched.simulation.promised.log_auction import STEP, LogAuction, catch_up, longest_wait
from aucsched.simulation.promised.promise_plan import (
    COPY_NOW,
    NOBODY,
    WAITING,
    PromisedState,
    plan,
    promise_due,
)
from aucsched.simulation.simulate_options import PolicyOptions
from aucsched.simulation.stepping import Changes, CountPolicy


def is_overloaded(auction: LogAuction) -> bool:
    """Return whether jobs wait without promises, for more waits than the machine can do."""
    return bool(auction.stepping[2].backlog.queue.counts[DEEP])


def promises_of(auction: LogAuction) -> list[float]:
    """Return by job the start promised last; infinite where none was, or it was withdrawn under overload."""
    state = auction.stepping[2]
    if state.rules.follows:
        catch_up(state, inf)
    is_made = [not state.rules.follows or due <= state.copy.clock[COPY_NOW] for due in state.jobs.due]
    return [float(one) if made else inf for one, made in zip(state.jobs.promise, is_made, strict=True)]


LUBLIN = Path(__file__).resolve().parents[4] / "shared" / "data" / "swf" / "lublin_256.swf"
PROMISES = st.sampled_from(["plan", "auto", "3s", "20s"])
OBJECTIVES = st.sampled_from(sorted(DEFAULT))


class Watched(CountPolicy):
    """An auction whose promises are noted after each step."""

    def __init__(self, auction: LogAuction) -> None:
        self.auction = auction
        self.first: dict[int, float] = {}
        self.last: dict[int, float] = {}
        self.promised_at: dict[int, tuple[float, float]] = {}

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Step, and compare what is promised with what was."""
        started = self.auction.step(now, seen)
        promises = promises_of(self.auction)
        for job in seen[1]:
            self.first[job] = self.last[job] = promises[job]
        for job, before in self.last.items():
            # Under overload ``auto`` withdraws what it has promised.
            assert promises[job] <= before or (is_overloaded(self.auction) and promises[job] == inf)
            self.last[job] = promises[job]
            if promises[job] < inf:
                self.promised_at.setdefault(job, (now, promises[job]))
        return started


def played(jobs: Sequence[J], processors: int, objective: str, promise: str) -> tuple[list[float], Watched]:
    workload = workload_of(jobs, processors)
    watched = Watched(LogAuction(workload.requests, None, objective=objective, promise=promise))
    return simulate_checked(workload, watched), watched


@settings(max_examples=200)
@given(workloads())
def test_priority_without_promises_is_easy_job_by_job(case: tuple[list[J], int]) -> None:
    assert starts_of(*case, "promised") == plain_easy(*case)


@given(workloads(), st.sampled_from(ORDERS))
def test_priority_is_easy_in_every_order(case: tuple[list[J], int], order: str) -> None:
    assert starts_of(*case, "promised", order=order) == starts_of(*case, "easy", order=order)


@given(workloads())
def test_response_without_promises_starts_the_shorter_of_two_that_fit(case: tuple[list[J], int]) -> None:
    jobs, processors = case
    at_once = [replace(job, submit=0, size=processors) for job in jobs]
    options = PolicyOptions(objective="response", promise="none")
    starts = starts_of(at_once, processors, "promised", options=options)
    in_order = sorted(range(len(jobs)), key=starts.__getitem__)
    # All together are submitted once: the queue is served by what a wait costs, 10 s at least.
    assert at_once[in_order[0]].estimate <= max(10, min(job.estimate for job in at_once))


@settings(max_examples=300)
@given(workloads(), OBJECTIVES, PROMISES)
def test_promises_are_kept_and_only_ever_bettered(
    case: tuple[list[J], int], objective: str, promise: str
) -> None:
    jobs, processors = case
    starts, watched = played(jobs, processors, objective, promise)
    assert all(start <= watched.last[job] for job, start in enumerate(starts))
    assert all(start < float("inf") for start in starts)


@given(workloads(), OBJECTIVES)
def test_a_duration_promises_no_earlier_than_that_and_no_later_than_it_or_the_plan(
    case: tuple[list[J], int], objective: str
) -> None:
    jobs, processors = case
    _, watched = played(jobs, processors, objective, "20s")
    for job, promise in watched.first.items():
        assert promise >= jobs[job].submit + 20
        # All that is ahead of it, one after another.
        others = sum(one.estimate for number, one in enumerate(jobs) if number != job)
        assert promise <= jobs[job].submit + 20 + others + max(one.estimate for one in jobs)


def _plain_award(state: PromisedState, now: float, longest: float) -> None:
    """Plan in every pass in which anybody waits."""
    if state.rules.follows and state.machine.counts[WAITING] > 0:
        promise_due(state, now, longest, is_whole=True)
    awards.award(state, now, longest)


def _plain_keeping(state: PromisedState, now: float, _longest: float, _is_planned: bool, count: int) -> None:
    """Ask the plan of the others about every start."""
    scratch = state.scratch
    while count > 0:
        place = scratch.place[0]
        count = pop(scratch.key, scratch.place, count)
        job = state.machine.waiting[place]
        free = state.machine.easy.counts[FREE]
        if state.jobs.size[job] <= free and plan(state, now, place, True) == NOBODY:
            awards.run_from(state, now, job)


@settings(max_examples=300, deadline=None)
@given(workloads(most=30), OBJECTIVES, PROMISES)
def test_a_plan_that_is_not_made_would_have_changed_nothing(
    case: tuple[list[J], int], objective: str, promise: str
) -> None:
    jobs, processors = case
    starts, watched = played(jobs, processors, objective, promise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_auction, "_award", _plain_award)
        patch.setattr(awards, "_keeping", _plain_keeping)
        plain, plainly_watched = played(jobs, processors, objective, promise)
    assert starts == plain
    for job, promised in plainly_watched.promised_at.items():
        # Who starts in that pass needs no promise.
        assert starts[job] <= promised[0] or watched.promised_at[job] == promised


def test_the_first_job_of_an_empty_machine_is_promised_now() -> None:
    _, watched = played([J(0, 5, 2, 9), J(1, 5, 3, 9), J(1, 1, 1, 2)], 4, "response", "plan")
    # Job 0 runs on two of four until 9 by its estimate, job 1 needs three; job 2 ends long before.
    assert watched.first == {0: 0, 1: 9, 2: 1}
    starts, _ = played([J(0, 5, 2, 9), J(1, 5, 3, 9), J(1, 1, 1, 2)], 4, "response", "plan")
    assert starts == [0, 5, 1]


def test_a_wide_job_is_not_starved_by_short_ones() -> None:
    narrow = [J(time, 10, 1, 10) for time in range(0, 400, 5)]
    wide = J(1, 10, 4, 10)
    jobs = sorted([*narrow, wide], key=lambda job: (job.submit, job.size))
    place = jobs.index(wide)
    for promise, latest in (("plan", 12), ("60s", 61), ("100s", 101)):
        starts, _ = played(jobs, 4, "response", promise)
        assert starts[place] <= latest
    unbounded, _ = played(jobs, 4, "response", "100s")
    assert unbounded[place] > 12


#: EASY's longest wait is 100 s: job 0 holds the machine, job 1 needs all of it.
_A_WAIT = [J(0, 100, 4, 100), J(0, 10, 4, 10)]


def test_auto_promises_no_start_before_a_job_is_due() -> None:
    # Two jobs of 60 s each hold half of the machine from 110 on; job 4 needs three processors.
    jobs = [*_A_WAIT, J(110, 60, 2, 60), J(110, 60, 2, 60), J(111, 30, 3, 30)]
    # Due after 55 % of 100 s, less (3/4)^6 of them; others arrive before and after, so that there are passes.
    passes = [*jobs, J(150, 1, 4, 1), J(160, 1, 4, 1)]
    _, watched = played(passes, 4, "response", "auto")
    due = 111 + 55 * (1 - 0.75**6)
    assert 150 < due < 160
    assert watched.first[4] == inf
    # Promised at 160: the plan's start is 171, behind job 5 of all processors, which was due at once, and
    # the 11 s count 1.8 times.
    now, promised = watched.promised_at[4]
    assert now == 160
    assert promised == pytest.approx(160 + 1.8 * 11)


def test_auto_tries_those_first_that_have_waited_for_most_of_the_longest_wait() -> None:
    # From 110 to 180 all processors are taken; then job 3, of 40 s, has waited for 60 s of 100.
    jobs = [*_A_WAIT, J(110, 70, 4, 70), J(120, 40, 4, 40), J(150, 5, 4, 5)]
    starts, _ = played(jobs, 4, "response", "auto")
    assert starts[3:] == [180, 220]
    # One that has waited for 20 s comes by what it is worth.
    jobs[3] = J(160, 40, 4, 40)
    jobs[3], jobs[4] = jobs[4], jobs[3]
    starts, _ = played(jobs, 4, "response", "auto")
    assert starts[3:] == [180, 185]


def test_under_overload_a_short_job_need_not_wait_for_the_long_ones_before_it() -> None:
    # Five of all processors for 100 s wait at 1, and one of 5 s that came later: nobody has waited yet.
    jobs = [J(0, 100, 4, 100), *[J(1, 100, 4, 100)] * 5, J(90, 5, 4, 5)]
    starts, watched = played(jobs, 4, "response", "auto")
    assert starts == [0, 100, 205, 305, 405, 505, 200]
    # At 100 wait² / estimate is 99² / 100 and 10² / 5, at 200 it is 199² / 100 and 110² / 5.
    assert promises_of(watched.auction)[6] == inf


@pytest.mark.skipif(not LUBLIN.exists(), reason="the shared data are not here")
def test_under_overload_nobody_waits_for_much_longer_than_under_easy() -> None:
    log = workload_from_swf(load_swf(LUBLIN), processors=256)
    options = PolicyOptions(objective="response")
    ours = simulate_counts(log, make_policy("promised", log.requests, options=options))
    easy = simulate_counts(log, make_policy("easy", log.requests))
    longest = [max(map(sub, starts, log.requests.submit)) for starts in (ours, easy)]
    # Who has waited 1.6 times the longest wait under EASY so far has the reservation. Without that: 2.3.
    assert longest[0] <= 1.6 * longest[1]


def test_a_queue_too_long_to_plan_is_overload() -> None:
    _, watched = played([J(0, 9, 1, 9), J(0, 9, 1, 9)] * (PLANNED // 2 + 1), 1, "response", "auto")
    assert not is_overloaded(watched.auction)
    queued = LogAuction(workload_of([J(0, 1, 1, 1)] * (PLANNED + 2), 1).requests, None, objective="response")
    queued.step(0, ([], range(PLANNED + 2)))
    assert is_overloaded(queued)


def test_under_overload_jobs_that_came_at_once_start_at_once() -> None:
    # EASY's longest wait is 10 s; then nobody waits until more come than are planned.
    before = [J(0, 10, PLANNED, 10)] * 2
    starts, _ = played([*before, *[J(100, 5, 1, 9)] * (PLANNED + 8)], PLANNED, "response", "auto")
    assert starts == [0, 10, *[100] * PLANNED, *[105] * 8]


@given(workloads())
def test_the_copy_plays_easy_where_estimates_are_exact(case: tuple[list[J], int]) -> None:
    jobs, processors = case
    exact = [replace(job, run=job.estimate) for job in jobs]
    workload = workload_of(exact, processors)
    policy = LogAuction(workload.requests, None, objective="response")
    starts = simulate_checked(workload, policy)
    policy.step(10.0**9, ([], []))
    waits = [start - job.submit for start, job in zip(plain_easy(exact, processors), exact, strict=True)]
    state = policy.stepping[2]
    assert longest_wait(state.jobs, state.copy, 10.0**9) == max(waits)
    assert len(starts) == len(exact)


@settings(max_examples=20, deadline=None)
@given(workloads(), OBJECTIVES, PROMISES)
def test_compiled_and_plain_steps_are_equal_to_the_bit(
    case: tuple[list[J], int], objective: str, promise: str
) -> None:
    pytest.importorskip("numba")
    jobs, processors = case
    plain, _ = played(jobs, processors, objective, promise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(STEP, "many", 0)
        fast, watched = played(jobs, processors, objective, promise)
    assert watched.auction.stepping[1]
    assert fast == plain


def test_without_numba_the_step_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STEP, "_loaded", [None])
    assert STEP.for_jobs(10**6) == (log_auction.step, False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("plan", 0), ("90", 90), ("90s", 90), ("1.5h", 5400), ("2d", 172_800), ("1w", 604_800), ("5min", 300)],
)
def test_durations(text: str, seconds: float) -> None:
    assert promised_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1d", "1e9d", "2 d", "1y", "٣d", "99999999999999d", "nan"])
def test_no_durations(text: str) -> None:
    with pytest.raises(OptionError, match="--promise"):
        promised_duration_s(text)


def test_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    with pytest.raises(OptionError, match="--objective"):
        make_policy("promised", requests, options=PolicyOptions(objective="priority_cores"))
    log = tmp_path / "small.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("promised", {"objective": "response"}),
        ("promised:objective=response", {}),
    )
    for policy, options in cases:
        with pytest.raises(OptionError, match="by worth"):
            aucsched.simulate(log, policy, order="sjf", **options)
        with pytest.raises(OptionError, match="by worth"):
            aucsched.sweep(log, policy=policy, order="sjf", **options)


def test_the_old_name_works_and_says_the_new_one(tmp_path: Path) -> None:
    log = tmp_path / "small.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n2 1 -1 10 2 -1 -1 2 10\n")
    told = "on a log --policy aucsched3 holds no auction: it is called promised; the old name goes with 0.3"
    with pytest.warns(FutureWarning, match=told):
        found = aucsched.simulate(log, "aucsched3", objective="response")
    assert found.to_dict()["policy"] == "promised"
    call = [sys.executable, "-m", "aucsched", "simulate", str(log), "--policy", "easy,aucsched3"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stderr == f"aucsched: {told}\n"
    assert "promised" in done.stdout
