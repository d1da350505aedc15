"""Plain readings of the policies' rules: slow, short, and nothing shared with what they check."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from hypothesis import strategies as st

from aucsched.simulation.backfilling.easy import Easy
from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.counts import CheckedPolicy, simulate_counts
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.stepping import CountPolicy, StoppedRun


@dataclass(frozen=True)
class J:
    """A job of the plain readings."""

    submit: int
    run: int
    size: int
    estimate: int


def workload_of(jobs: Sequence[J], processors: int) -> Workload:
    requests = Requests(
        processors=processors,
        submit=tuple(job.submit for job in jobs),
        size=tuple(job.size for job in jobs),
        estimate=tuple(job.estimate for job in jobs),
        user=tuple(number % 3 for number in range(len(jobs))),
        weight=tuple(1 + number % 2 for number in range(len(jobs))),
    )
    numbers = tuple(range(len(jobs)))
    return Workload(
        requests=requests, run=tuple(job.run for job in jobs), ids=numbers, row=numbers, rows=len(jobs)
    )


def in_units(whole: Workload, unit: float) -> Workload:
    """The same workload with every second as a fraction of one."""
    asked = whole.requests
    submit, estimate = (tuple(time * unit for time in times) for times in (asked.submit, asked.estimate))
    requests = replace(asked, submit=submit, estimate=estimate)
    return replace(whole, requests=requests, run=tuple(time * unit for time in whole.run))


def golden_case(path: Path) -> tuple[list[J], list[int]]:
    """A hand-made case of a published simulator: its jobs from 0 on, and when each ends."""
    lines = path.read_text().splitlines()
    rows = sorted(
        (line.split()[:5] for line in lines if line.strip() and not line.startswith("#")),
        key=lambda row: int(row[0]),
    )
    first = int(rows[0][0])
    numbers = [(int(row[0]) - first, int(row[4]), int(row[3]), int(row[2])) for row in rows]
    jobs = [J(submit, min(run, estimate), size, estimate) for submit, run, size, estimate in numbers]
    return jobs, [int(row[1].partition(".")[0]) - first for row in rows]


#: What a rule is asked: now, free processors, the queue, running jobs' starts; it returns who starts.
Choose = Callable[[float, int, list[int], dict[int, float]], list[int]]
#: From when to when so many processors are held.
Span = tuple[float, float, int]
#: What the queue is sorted by, at a time.
Key = Callable[[float, int], tuple[float | Fraction, ...]]


def plain(
    jobs: Sequence[J],
    processors: int,
    choose: Choose,
    key: Key = lambda _, job: (job,),
    also_at: Sequence[float] = (),
) -> list[float]:
    """Run a rule the slow way: at each time stamp all ends, all arrivals, one pass over the sorted queue."""
    starts = [math.inf] * len(jobs)
    queue: list[int] = []
    running: dict[int, float] = {}
    times: set[float] = {*(job.submit for job in jobs), *also_at}
    while times:
        now = min(times)
        times.remove(now)
        running = {job: start for job, start in running.items() if start + jobs[job].run != now}
        queue += [number for number, job in enumerate(jobs) if job.submit == now]
        queue.sort(key=lambda job: key(now, job))
        free = processors - sum(jobs[job].size for job in running)
        for job in choose(now, free, queue[:], running):
            queue.remove(job)
            running[job] = starts[job] = now
            times.add(now + jobs[job].run)
    return starts


def from_front(jobs: Sequence[J], free: int, queue: list[int]) -> tuple[list[int], int]:
    """Take the jobs that start from the queue's front; return them, and what is free then."""
    started = []
    while queue and jobs[queue[0]].size <= free:
        started.append(queue.pop(0))
        free -= jobs[started[-1]].size
    return started, free


def choose_fcfs(jobs: Sequence[J]) -> Choose:
    def choose(_: float, free: int, queue: list[int], __: dict[int, float]) -> list[int]:
        return from_front(jobs, free, queue)[0]

    return choose


def plain_fcfs(jobs: Sequence[J], processors: int, key: Key = lambda _, job: (job,)) -> list[float]:
    return plain(jobs, processors, choose_fcfs(jobs), key)


def choose_easy(jobs: Sequence[J]) -> Choose:
    """EASY word for word as the data's reading of traces has it."""

    def choose(now: float, free: int, queue: list[int], running: dict[int, float]) -> list[int]:
        started, free = from_front(jobs, free, queue)
        if not queue:
            return started
        need = jobs[queue[0]].size
        ends = [(start + jobs[job].estimate, jobs[job].size) for job, start in running.items()]
        ends += [(now + jobs[job].estimate, jobs[job].size) for job in started]

        def free_at(time: float) -> int:
            return free + sum(size for end, size in ends if end <= time)

        shadow = min(end for end, _ in ends if free_at(end) >= need)
        extra = free_at(shadow) - need
        for job in queue[1:]:
            if jobs[job].size > free:
                continue
            if now + jobs[job].estimate <= shadow:
                pass
            elif jobs[job].size <= extra:
                extra -= jobs[job].size
            else:
                continue
            free -= jobs[job].size
            started.append(job)
        return started

    return choose


def plain_easy(jobs: Sequence[J], processors: int, key: Key = lambda _, job: (job,)) -> list[float]:
    return plain(jobs, processors, choose_easy(jobs), key)


def first_fit(spans: Sequence[Span], processors: int, job: J, now: float) -> float:
    """The first time from which a job fits for its estimate beside spans of processors."""
    for start in sorted({now, *(end for _, end, _ in spans if end > now)}):
        end = start + job.estimate
        moments = [start, *(begin for begin, _, _ in spans if start < begin < end)]
        used = [sum(size for begin, stop, size in spans if begin <= time < stop) for time in moments]
        if max(used) + job.size <= processors:
            return start
    raise AssertionError


def earliest(jobs: Sequence[J], processors: int, held: dict[int, float], job: int, now: float) -> float:
    """The first time from which a job fits for its estimate beside what is held from given times on."""
    spans = [(start, start + jobs[other].estimate, jobs[other].size) for other, start in held.items()]
    return first_fit(spans, processors, jobs[job], now)


def first_promise(jobs: Sequence[J], processors: int) -> tuple[int, float] | None:
    """The first job that must wait under EASY, and the reservation that it gets; None: none waits."""
    easy = plain_easy(jobs, processors)
    first = next((n for n, job in enumerate(jobs) if easy[n] > job.submit), None)
    if first is None:
        return None
    running = {n: easy[n] for n in range(first) if easy[n] + jobs[n].run > jobs[first].submit}
    return first, earliest(jobs, processors, running, first, jobs[first].submit)


def plain_reservations(jobs: Sequence[J], processors: int, count: int) -> list[float]:
    def choose(now: float, _: int, queue: list[int], running: dict[int, float]) -> list[int]:
        held, left, started = dict(running), count, []
        for job in queue:
            start = earliest(jobs, processors, held, job, now)
            if start == now:
                started.append(job)
                held[job] = now
            elif left:
                held[job] = start
                left -= 1
        return started

    return plain(jobs, processors, choose)


def plain_conservative(jobs: Sequence[J], processors: int) -> list[float]:
    reserved: dict[int, float] = {}
    before: dict[int, float] = {}

    def choose(now: float, _: int, queue: list[int], running: dict[int, float]) -> list[int]:
        ended = [job for job in before if job not in running]
        moving = any(before[job] + jobs[job].estimate > now for job in ended)
        while moving:
            moving = False
            for job in [job for job in queue if job in reserved]:
                held = {**running, **{other: at for other, at in reserved.items() if other != job}}
                start = earliest(jobs, processors, held, job, now)
                assert start <= reserved[job]
                moving |= start < reserved[job]
                reserved[job] = start
        for job in queue:
            if job not in reserved:
                reserved[job] = earliest(jobs, processors, {**running, **reserved}, job, now)
        started = [job for job in queue if reserved[job] <= now]
        for job in started:
            assert reserved.pop(job) == now
        before.clear()
        before.update(running)
        before.update(dict.fromkeys(started, now))
        return started

    return plain(jobs, processors, choose)


@st.composite
def workloads(draw: st.DrawFn, most: int = 24) -> tuple[list[J], int]:
    """Small crowded machines: gaps of zero, equal times, estimates that end at shadow times."""
    processors = draw(st.integers(1, 8))
    submit, jobs = 0, []
    for number in range(draw(st.integers(1, most))):
        submit += draw(st.integers(0, 3)) if number else 0
        run = draw(st.integers(1, 8))
        estimate = run + draw(st.sampled_from([0, 0, 1, 2, 5, 20]))
        jobs.append(J(submit, run, draw(st.integers(1, processors)), estimate))
    return jobs, processors


class DeepEasy(Easy):
    """EASY that looks up a queue deeper than a number in its index, until it is as shallow as another."""

    def __init__(self, requests: Requests, deeper: int, shallow: int) -> None:
        super().__init__(requests)
        self._state.depth[:] = [deeper, shallow]


def simulate_checked(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Start times under a policy whose every answer is checked."""
    return simulate_counts(workload, CheckedPolicy(policy, workload.requests), progress, stopped)


def starts_of(jobs: Sequence[J], processors: int, policy: str, **choice: object) -> list[float]:
    """Start times from both kernels, which must agree, under the checking wrapper in one of them."""
    workload = workload_of(jobs, processors)

    def new() -> object:
        return make_policy(policy, workload.requests, **choice)  # type: ignore[arg-type]

    fast = simulate_counts(workload, new())  # type: ignore[arg-type]
    assert fast == simulate_checked(workload, new())  # type: ignore[arg-type]
    return fast
