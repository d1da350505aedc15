"""Policies against plain readings of their rules, golden cases and public logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched.cluster.errors import OptionError
from aucsched.formats.swf import read_swf
from aucsched.simulation.checked import simulate_checked
from aucsched.simulation.counts import simulate_counts
from aucsched.simulation.easy import Easy
from aucsched.simulation.orderings import Multifactor, MultifactorWeights
from aucsched.simulation.policy import ORDERS, POLICIES, PolicyOptions, make_policy, weights_by_queue
from aucsched.simulation.workload import Requests, Workload, workload_from_swf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GOLDEN = DATA / "easy_golden" / "pyss_golden"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")


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


def plain(
    jobs: Sequence[J],
    processors: int,
    choose: Callable[[float, int, list[int], dict[int, float]], list[int]],
    key: Callable[[float, int], tuple[float | Fraction, ...]] = lambda _, job: (job,),
) -> list[float]:
    """Run a rule the slow way: at each time stamp all ends, all arrivals, one pass over the sorted queue."""
    starts = [math.inf] * len(jobs)
    queue: list[int] = []
    running: dict[int, float] = {}
    times = {job.submit for job in jobs}
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


def plain_fcfs(
    jobs: Sequence[J], processors: int, **order: Callable[..., tuple[float | Fraction, ...]]
) -> list[float]:
    def choose(_: float, free: int, queue: list[int], __: dict[int, float]) -> list[int]:
        count = 0
        while count < len(queue) and sum(jobs[job].size for job in queue[: count + 1]) <= free:
            count += 1
        return queue[:count]

    return plain(jobs, processors, choose, **order)


def plain_easy(
    jobs: Sequence[J], processors: int, **order: Callable[..., tuple[float | Fraction, ...]]
) -> list[float]:
    """EASY word for word as the data's reading of traces has it."""

    def choose(now: float, free: int, queue: list[int], running: dict[int, float]) -> list[int]:
        started: list[int] = []
        while queue and jobs[queue[0]].size <= free:
            started.append(queue.pop(0))
            free -= jobs[started[-1]].size
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

    return plain(jobs, processors, choose, **order)


def earliest(jobs: Sequence[J], processors: int, held: dict[int, float], job: int, now: float) -> float:
    """The first time from which a job fits for its estimate beside what is held from given times on."""
    spans = [(start, start + jobs[other].estimate, jobs[other].size) for other, start in held.items()]
    for start in sorted({now, *(end for _, end, _ in spans if end > now)}):
        end = start + jobs[job].estimate
        moments = [start, *(begin for begin, _, _ in spans if start < begin < end)]
        used = [sum(size for begin, stop, size in spans if begin <= time < stop) for time in moments]
        if max(used) + jobs[job].size <= processors:
            return start
    raise AssertionError


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


def starts_of(jobs: Sequence[J], processors: int, policy: str, **choice: object) -> list[float]:
    """Start times from both kernels, which must agree, under the checking wrapper in one of them."""
    workload = workload_of(jobs, processors)

    def new() -> object:
        return make_policy(policy, workload.requests, **choice)  # type: ignore[arg-type]

    fast = simulate_counts(workload, new())  # type: ignore[arg-type]
    assert fast == simulate_checked(workload, new())  # type: ignore[arg-type]
    return fast


@given(workloads())
def test_fcfs_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    assert starts_of(*case, "fcfs") == plain_fcfs(*case)


@settings(max_examples=400)
@given(workloads())
def test_easy_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    assert starts_of(*case, "easy") == plain_easy(*case)


@settings(max_examples=300)
@given(workloads(most=40), st.integers(1, 6))
def test_easy_over_a_deep_queue_is_its_plain_rule(case: tuple[list[J], int], deep: int) -> None:
    jobs, processors = case
    workload = workload_of(jobs, processors)
    policy = Easy(workload.requests, deep=deep, shallow=deep // 2, block=4)
    assert simulate_checked(workload, policy) == plain_easy(jobs, processors)


@given(workloads(), st.integers(1, 4))
def test_k_reservations_are_their_plain_rule(case: tuple[list[J], int], count: int) -> None:
    options = PolicyOptions(reservations=count)
    assert starts_of(*case, "reservations", options=options) == plain_reservations(*case, count)


@given(workloads())
def test_one_reservation_is_easy(case: tuple[list[J], int]) -> None:
    one = PolicyOptions(reservations=1)
    assert starts_of(*case, "reservations", options=one) == starts_of(*case, "easy")


@settings(max_examples=200)
@given(workloads(most=16))
def test_conservative_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    assert starts_of(*case, "conservative") == plain_conservative(*case)


@given(workloads())
def test_conservative_with_exact_estimates_never_starts_later_than_reserved(
    case: tuple[list[J], int],
) -> None:
    """With exact estimates nothing is ever compressed: each start is the reservation made on arrival."""
    jobs = [J(job.submit, job.estimate, job.size, job.estimate) for job in case[0]]
    held: dict[int, float] = {}
    for number, job in enumerate(jobs):
        held[number] = earliest(jobs, case[1], held, number, job.submit)
    assert starts_of(jobs, case[1], "conservative") == list(held.values())


KEYS: dict[str, Callable[[J, int], float | Fraction]] = {
    "fcfs": lambda job, _: job.submit,
    "sjf": lambda job, _: job.estimate,
    "ljf": lambda job, _: -job.estimate,
    "area": lambda job, _: job.size * job.estimate,
    "weight": lambda _, number: -(1 + number % 2),
    "smith": lambda job, number: -Fraction(1 + number % 2, job.size * job.estimate),
}


@pytest.mark.parametrize("order", KEYS)
@given(case=workloads())
def test_every_order_sorts_the_queue_before_each_pass(order: str, case: tuple[list[J], int]) -> None:
    def key(_: float, job: int) -> tuple[float | Fraction, ...]:
        return (KEYS[order](case[0][job], job), job)

    assert starts_of(*case, "easy", order=order) == plain_easy(*case, key=key)
    assert starts_of(*case, "fcfs", order=order) == plain_fcfs(*case, key=key)


@given(case=workloads(), policy=st.sampled_from(sorted(POLICIES)), order=st.sampled_from(ORDERS))
def test_every_policy_in_every_order_starts_every_job_within_capacity(
    case: tuple[list[J], int], policy: str, order: str
) -> None:
    starts = starts_of(*case, policy, order=order)
    assert all(start >= job.submit for start, job in zip(starts, case[0], strict=True))


@given(
    case=workloads(most=40), unit=st.sampled_from([0.1, 0.3, 1 / 3]), policy=st.sampled_from(sorted(POLICIES))
)
def test_fractions_of_seconds_keep_the_rules(case: tuple[list[J], int], unit: float, policy: str) -> None:
    whole = workload_of(*case)
    requests = replace(
        whole.requests,
        submit=tuple(time * unit for time in whole.requests.submit),
        estimate=tuple(time * unit for time in whole.requests.estimate),
    )
    workload = replace(whole, requests=requests, run=tuple(time * unit for time in whole.run))
    starts = simulate_checked(workload, make_policy(policy, requests))
    assert min(starts) == 0
    deep = Easy(requests, deep=3, shallow=1, block=4)
    assert simulate_checked(workload, deep) == simulate_counts(workload, make_policy("easy", requests))


def test_multifactor_adds_age_size_and_fair_share() -> None:
    requests = workload_of([J(0, 10, 4, 10), J(0, 10, 1, 10), J(50, 10, 2, 10), J(50, 10, 4, 10)], 4).requests
    queue = [2, 3]
    Multifactor(requests, MultifactorWeights(age=0, fairshare=0)).sort(60, queue)
    assert queue == [3, 2], "the larger job first"
    older = [1, 2]
    Multifactor(requests, MultifactorWeights(size=0, fairshare=0)).sort(60, older)
    assert older == [1, 2], "the older job first"
    users = Multifactor(requests, MultifactorWeights(age=0, size=0))
    users.changed(0, [2], +1)
    shared = [2, 3]
    users.sort(60, shared)
    assert shared == [3, 2], "job 2's user has used processors, job 3's has not"


def test_multifactor_usage_halves_in_a_half_life() -> None:
    requests = workload_of([J(0, 10, 4, 10)], 4).requests
    users = Multifactor(requests, MultifactorWeights(half_life_s=100))
    users.changed(0, [0], +1)
    users.changed(10, [0], -1)
    used = users.usage(10, 0)
    # 4 processors for 10 s, each second weighed down from its own moment on.
    expected = 4 * sum(0.5 ** ((10 - s / 1000) / 100) for s in range(10_000)) / 1000
    assert used == pytest.approx(expected, rel=1e-4)
    assert users.usage(110, 0) == pytest.approx(used / 2)


@given(workloads(), st.integers(0, 200))
def test_long_queues_are_sorted_as_short_ones(case: tuple[list[J], int], now: int) -> None:
    requests = workload_of(*case).requests
    queues = []
    for vectorised_from in (2, 10**9):
        priorities = Multifactor(requests, MultifactorWeights(), vectorised_from=vectorised_from)
        priorities.changed(0, range(0, len(requests), 3), +1)
        queue = list(range(len(requests)))
        priorities.sort(requests.submit[-1] + now, queue)
        queues.append(queue)
    assert queues[0] == queues[1]


@pytest.mark.parametrize(
    "wrong", ["age", "age=x", "speed=1", "age=-1", "half_life_s=0", "age=nan", "size=inf", ""]
)
def test_multifactor_weights_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--multifactor"):
        MultifactorWeights.from_text(wrong)


@pytest.mark.parametrize("wrong", ["1", "a=1", "1=x", "1=0", "1=-2", "1=inf", ""])
def test_queue_weights_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--queue-weights"):
        weights_by_queue(wrong)


def test_unknown_names_are_refused() -> None:
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    with pytest.raises(OptionError, match="policy 'esay' is none of"):
        make_policy("esay", requests)
    with pytest.raises(OptionError, match="order 'up' is none of"):
        make_policy("easy", requests, order="up")
    with pytest.raises(OptionError, match="--reservations 0"):
        make_policy("reservations", requests, options=PolicyOptions(reservations=0))


# Hand-made cases with the expected finish in the job's name ------------------------------------

CASES = {
    "easy": ("basic_", "bf_", "easy_bf_", "extreme_"),
    "fcfs": ("basic_", "fcfs_", "extreme_"),
    "conservative": ("basic_", "cons_bf_"),
}


def golden_files() -> list[tuple[str, str]]:
    if not GOLDEN.exists():
        return []
    names = sorted(path.name for path in GOLDEN.iterdir())
    return [
        (policy, name) for policy, prefixes in CASES.items() for name in names if name.startswith(prefixes)
    ]


@needs_data
@pytest.mark.parametrize(("policy", "name"), golden_files())
def test_golden_case(policy: str, name: str) -> None:
    lines = (GOLDEN / name).read_text().splitlines()
    rows = sorted(
        (line.split()[:5] for line in lines if line.strip() and not line.startswith("#")),
        key=lambda row: int(row[0]),
    )
    first = int(rows[0][0])
    jobs = [J(int(row[0]) - first, int(row[4]), int(row[3]), int(row[2])) for row in rows]
    jobs = [J(job.submit, min(job.run, job.estimate), job.size, job.estimate) for job in jobs]
    starts = starts_of(jobs, 100, policy)
    ends = [start + job.run + first for start, job in zip(starts, jobs, strict=True)]
    assert ends == [int(row[1].partition(".")[0]) for row in rows]


# Public logs ----------------------------------------------------------------------------------


@needs_data
def test_kth_reference_means() -> None:
    workload = workload_from_swf(read_swf(DATA / "swf" / "KTH-SP2-1996-2.swf"))
    assert len(workload) == 28_481
    assert workload.requests.processors == 100
    easy = simulate_counts(workload, make_policy("easy", workload.requests))
    waits = [start - submit for start, submit in zip(easy, workload.requests.submit, strict=True)]
    slowdowns = [max(1, (w + run) / max(run, 10)) for w, run in zip(waits, workload.run, strict=True)]
    assert round(sum(waits) / len(waits), 4) == 6834.5873
    assert round(math.fsum(slowdowns) / len(slowdowns), 6) == 92.687654
    fcfs = simulate_counts(workload, make_policy("fcfs", workload.requests))
    assert round((sum(fcfs) - sum(workload.requests.submit)) / len(fcfs), 4) == 353776.4091


@needs_data
@pytest.mark.parametrize("name", ["HPC2N-first", "SDSC-SP2-1998-4-first5k", "lublin_256", "theta_2023"])
@pytest.mark.slow
def test_easy_equals_its_plain_rule_on_public_logs(name: str) -> None:
    workload = workload_from_swf(read_swf(DATA / "swf" / f"{name}.swf"))
    requests = workload.requests
    columns = zip(requests.submit, workload.run, requests.size, requests.estimate, strict=True)
    jobs = [J(int(s), int(r), p, int(e)) for s, r, p, e in columns][:1500]
    part = workload_of(jobs, requests.processors)
    expected = plain_easy(jobs, requests.processors)
    assert simulate_counts(part, make_policy("easy", part.requests)) == expected
    assert simulate_counts(part, Easy(part.requests, deep=8, shallow=2)) == expected
