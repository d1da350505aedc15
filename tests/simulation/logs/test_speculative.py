"""Speculative backfilling against a plain reading of its rule: bets, won and lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain import (
    J,
    earliest,
    first_promise,
    plain_easy,
    simulate_checked,
    starts_of,
    workload_of,
    workloads,
)

from aucsched.cli import run
from aucsched.cluster.errors import OptionError
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import ORDERS, make_policy
from aucsched.simulation.result import Simulation
from aucsched.simulation.simulate_options import PolicyOptions
from aucsched.simulation.stepping import StoppedRun

Case = tuple[list[J], int]
_LOG = "; MaxProcs: 10\n" + "".join(
    f"{job} {submit} -1 {run_s} {size} -1 -1 {size} {estimate} -1 1 1 1 1 1 1 -1 -1\n"
    for job, submit, run_s, size, estimate in [
        (1, 0, 10, 5, 10),
        (2, 0, 6, 3, 6),
        (3, 1, 8, 10, 8),
        (4, 2, 11, 2, 16),
    ]
)


class Plain:
    """The rule the slow way: who runs surely, who bets, and when each would end."""

    def __init__(self, jobs: Sequence[J], processors: int, share: float, stops: int) -> None:
        self.jobs, self.processors, self.share, self.stops = jobs, processors, share, stops
        self.now: float = 0
        self.starts: dict[int, float] = {}
        self.sure: dict[int, float] = {}
        self.bets: dict[int, float] = {}
        self.queue: list[int] = []
        self.stopped: list[StoppedRun] = []
        self.against: set[int] = set()
        self.ends: set[tuple[float, int]] = set()

    def run(self) -> tuple[list[float], list[StoppedRun]]:
        """Return the starts and the stopped runs."""
        times = {job.submit for job in self.jobs}
        while times or self.ends:
            self.now = min([*times, *(time for time, _ in self.ends)])
            times.discard(self.now)
            for time, job in sorted(self.ends):
                if time == self.now:
                    self.ends.remove((time, job))
                    self.sure.pop(job, None)
                    self.bets.pop(job, None)
            self.queue += [n for n, job in enumerate(self.jobs) if job.submit == self.now]
            self.queue.sort()
            self._from_head()
            if self.queue:
                self._behind_head()
        return [self.starts[job] for job in range(len(self.jobs))], self.stopped

    def _size(self, held: Iterable[int]) -> int:
        return sum(self.jobs[job].size for job in held)

    def _fits(self, job: int) -> bool:
        return self.jobs[job].size <= self.processors - self._size(self.sure) - self._size(self.bets)

    def _begin(self, job: int, held: dict[int, float]) -> None:
        self.queue.remove(job)
        held[job] = self.starts[job] = self.now
        self.ends.add((self.now + self.jobs[job].run, job))

    def _from_head(self) -> None:
        while self.queue and self.jobs[self.queue[0]].size <= self.processors - self._size(self.sure):
            head = self.queue[0]
            off = self._called_off(
                self.jobs[head].size + self._size(self.sure) + self._size(self.bets) - self.processors
            )
            for job in off:
                self.stopped.append(StoppedRun(job, self.bets[job], self.now))
                self.ends.remove((self.bets.pop(job) + self.jobs[job].run, job))
            self._begin(head, self.sure)
            self.queue = sorted([*self.queue, *off])
            if off or head in self.against:
                self.sure.update(self.bets)
                self.bets.clear()
                self.against.clear()

    def _called_off(self, over: int) -> list[int]:
        off: list[int] = []
        for job in reversed(self.bets):
            if self._size(off) < over:
                off.append(job)
        for job in off[:]:
            if self._size(off) - self.jobs[job].size >= over:
                off.remove(job)
        return off

    def _behind_head(self) -> None:
        head, jobs = self.queue[0], self.jobs
        shadow = earliest(jobs, self.processors, self.sure, head, self.now)
        beside = [job for job, start in self.sure.items() if start + jobs[job].estimate > shadow]
        extra = self.processors - self._size(beside) - jobs[head].size
        for job in self.queue[1:]:
            long = self.now + jobs[job].estimate > shadow
            if self._fits(job) and not (long and jobs[job].size > extra):
                extra -= jobs[job].size * long
                self._begin(job, self.sure)
        for job in self.queue[1:]:
            before = sum(one.job == job for one in self.stopped)
            lucky = shadow - self.now >= self.share * jobs[job].estimate
            if self._fits(job) and before < self.stops and lucky:
                self._begin(job, self.bets)
                self.against.add(head)


def both_kernels(case: Case, **choice: object) -> tuple[list[float], list[StoppedRun]]:
    workload = workload_of(*case)
    answers = []
    for simulate in (simulate_counts, simulate_checked):
        stopped: list[StoppedRun] = []
        policy = make_policy("speculative", workload.requests, **choice)  # type: ignore[arg-type]
        answers.append((simulate(workload, policy, None, stopped), stopped))
    assert answers[0] == answers[1]
    return answers[0]


@settings(max_examples=300)
@given(workloads(), st.sampled_from([0.1, 0.25, 0.5, 0.9]), st.integers(1, 3))
def test_speculative_is_its_plain_rule(case: Case, share: float, stops: int) -> None:
    """The chapter: speculative."""
    options = PolicyOptions(speculation=share, stops=stops)
    assert both_kernels(case, options=options) == Plain(*case, share, stops).run()


@given(workloads())
def test_a_bet_that_needs_no_luck_is_easy(case: Case) -> None:
    assert both_kernels(case, options=PolicyOptions(speculation=1)) == (plain_easy(*case), [])


@given(workloads(), st.sampled_from(ORDERS), st.integers(1, 2))
def test_stopped_jobs_start_again_and_no_more_often_than_allowed(case: Case, order: str, stops: int) -> None:
    jobs, _ = case
    options = PolicyOptions(speculation=0.1, stops=stops)
    starts, stopped = both_kernels(case, order=order, options=options)
    assert all(start >= job.submit for start, job in zip(starts, jobs, strict=True))
    assert max(Counter(one.job for one in stopped).values(), default=0) <= stops
    assert all(one.start < one.end <= starts[one.job] for one in stopped)


@given(workloads())
def test_bets_never_delay_the_head(case: Case) -> None:
    """The first job that must wait starts by the reservation it would have had if nobody bet."""
    if (found := first_promise(*case)) is not None:
        first, promised = found
        assert both_kernels(case, options=PolicyOptions(speculation=0.1))[0][first] <= promised


@pytest.mark.parametrize(
    ("run_s", "expected", "stopped"),
    [(5, [0, 0, 10, 2], []), (11, [0, 0, 10, 18], [StoppedRun(3, 2, 10)])],
)
def test_a_bet_is_won_or_lost(run_s: int, expected: list[float], stopped: list[StoppedRun]) -> None:
    """The Chapter's seventh parameter, on its figure: jobs 1 and 2 run, job 3 waits, job 4 would delay it.

    Job 4's estimate of 16 passes the shadow time 10 by 8. It bets to end before: after 5 seconds it has,
    and nobody was delayed; or it runs 11, is stopped at 10 for job 3, and starts again after it.
    """
    jobs = [J(0, 10, 5, 10), J(0, 6, 3, 6), J(1, 8, 10, 8), J(2, run_s, 2, 16)]
    assert starts_of(jobs, 10, "easy") == [0, 0, 10, 18]
    assert both_kernels((jobs, 10)) == (expected, stopped)
    braver = PolicyOptions(speculation=0.6)
    assert both_kernels((jobs, 10), options=braver) == ([0, 0, 10, 18], [])


def test_what_a_lost_bet_used_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "figure.swf"
    log.write_text(_LOG)
    assert run(["simulate", str(log), "--policy", "speculative", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["stopped_runs"], document["stopped_processor_s"]) == (1, 16)
    assert (document["speculation"], document["stops"]) == (0.5, 1)
    assert run(["simulate", str(log), "--policy", "speculative"]) == 0
    assert "stopped runs" in capsys.readouterr().out
    assert run(["simulate", str(log), "--format", "json"]) == 0
    assert "stopped_runs" not in json.loads(capsys.readouterr().out)


def test_processors_of_a_lost_bet_are_used_not_idle() -> None:
    jobs = [J(0, 10, 5, 10), J(0, 6, 3, 6), J(1, 8, 10, 8), J(2, 11, 2, 16)]
    starts, stopped = both_kernels((jobs, 10))
    result = Simulation(
        workload=workload_of(jobs, 10),
        policy="speculative",
        order="fcfs",
        starts=tuple(starts),
        seconds=0,
        stopped=tuple(stopped),
    )
    timeline = result.timeline
    used = dict(zip(timeline.times.tolist(), timeline.used.tolist(), strict=True))
    waiting = dict(zip(timeline.times.tolist(), timeline.waiting.tolist(), strict=True))
    assert (used[2], used[6], used[10], used[18], used[29]) == (10, 7, 10, 2, 0)
    assert (waiting[1], waiting[2], waiting[10], waiting[18]) == (1, 1, 1, 0)
    # Idle while somebody waits: 2 from 1 to 2, 3 from 6 to 10; of 10 processors for 29 s.
    assert result.metrics["loss_of_capacity"] == pytest.approx((2 * 1 + 3 * 4) / 290)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speculation": 0}, "--speculation 0"),
        ({"speculation": 1.5}, "--speculation 1.5"),
        ({"stops": 0}, "--stops 0"),
    ],
)
def test_values_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    with pytest.raises(OptionError, match=message):
        make_policy("speculative", requests, options=PolicyOptions(**options))  # type: ignore[arg-type]
