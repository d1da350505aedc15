"""Policies against plain readings of their rules, golden cases and public logs."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain import (
    DeepEasy,
    J,
    earliest,
    golden_case,
    in_units,
    plain_conservative,
    plain_easy,
    plain_fcfs,
    plain_reservations,
    simulate_checked,
    starts_of,
    workload_of,
    workloads,
)

from aucsched.cluster.errors import OptionError
from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.orderings import Multifactor, MultifactorWeights
from aucsched.simulation.logs.policies import ORDERS, POLICIES, make_policy, weights_by_queue
from aucsched.simulation.simulate_options import PolicyOptions

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
GOLDEN = DATA / "easy_golden" / "pyss_golden"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")


@given(workloads())
def test_fcfs_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    assert starts_of(*case, "fcfs") == plain_fcfs(*case)


@settings(max_examples=400)
@given(workloads())
def test_easy_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    """Soner: FCFS, EASY (2.1)."""
    assert starts_of(*case, "easy") == plain_easy(*case)


@settings(max_examples=300)
@given(workloads(most=40), st.integers(1, 6))
def test_easy_over_a_deep_queue_is_its_plain_rule(case: tuple[list[J], int], deep: int) -> None:
    jobs, processors = case
    workload = workload_of(jobs, processors)
    policy = DeepEasy(workload.requests, deeper=deep, shallow=deep // 2)
    assert simulate_checked(workload, policy) == plain_easy(jobs, processors)


@given(workloads(), st.integers(1, 4))
def test_k_reservations_are_their_plain_rule(case: tuple[list[J], int], count: int) -> None:
    """The chapter: K reservations."""
    options = PolicyOptions(reservations=count)
    assert starts_of(*case, "reservations", options=options) == plain_reservations(*case, count)


@given(workloads())
def test_one_reservation_is_easy(case: tuple[list[J], int]) -> None:
    one = PolicyOptions(reservations=1)
    assert starts_of(*case, "reservations", options=one) == starts_of(*case, "easy")


@settings(max_examples=200)
@given(workloads(most=16))
def test_conservative_is_its_plain_rule(case: tuple[list[J], int]) -> None:
    """The chapter: EASY, conservative."""
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
    "f1": lambda job, _: math.log10(job.estimate) * job.size + 870 * math.log10(max(job.submit, 1)),
    "f2": lambda job, _: math.sqrt(job.estimate) * job.size + 25_600 * math.log10(max(job.submit, 1)),
    "f3": lambda job, _: job.estimate * job.size + 6_860_000 * math.log10(max(job.submit, 1)),
    "f4": lambda job, _: job.estimate * math.sqrt(job.size) + 530_000 * math.log10(max(job.submit, 1)),
}
#: What the queue is sorted by, of its wait so far.
WAITING_KEYS: dict[str, Callable[[J, float], float]] = {
    "slowdown": lambda job, wait: -wait / job.estimate,
    "wfp3": lambda job, wait: -((wait / job.estimate) ** 3) * job.size,
    "unicep": lambda job, wait: -wait / (max(math.log2(job.size), 1e-15) * job.estimate),
}


@pytest.mark.parametrize("order", KEYS)
@given(case=workloads())
def test_every_order_sorts_the_queue_before_each_pass(order: str, case: tuple[list[J], int]) -> None:
    """The chapter: orders: FCFS, SJF, LJF, area, weight, Smith ratio."""

    def key(_: float, job: int) -> tuple[float | Fraction, ...]:
        return (KEYS[order](case[0][job], job), job)

    assert starts_of(*case, "easy", order=order) == plain_easy(*case, key=key)
    assert starts_of(*case, "fcfs", order=order) == plain_fcfs(*case, key=key)


@pytest.mark.parametrize("order", WAITING_KEYS)
@given(case=workloads())
def test_orders_that_change_sort_the_queue_by_the_waits_so_far(order: str, case: tuple[list[J], int]) -> None:
    def key(now: float, job: int) -> tuple[float, ...]:
        return (WAITING_KEYS[order](case[0][job], now - case[0][job].submit), job)

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
    workload = in_units(workload_of(*case), unit)
    requests = workload.requests
    starts = simulate_checked(workload, make_policy(policy, requests))
    assert min(starts) == 0
    deep = DeepEasy(requests, deeper=3, shallow=1)
    assert simulate_checked(workload, deep) == simulate_counts(workload, make_policy("easy", requests))


def test_multifactor_adds_age_size_and_fair_share() -> None:
    """The chapter: fair share, multifactor priority."""
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
def test_a_queue_is_sorted_by_the_sum_of_age_size_and_fair_share(case: tuple[list[J], int], now: int) -> None:
    requests, weights = workload_of(*case).requests, MultifactorWeights()
    priorities = Multifactor(requests, weights)
    priorities.changed(0, range(0, len(requests), 3), +1)
    queue, time = list(range(len(requests))), requests.submit[-1] + now
    priorities.sort(time, queue)
    users = sorted(set(requests.user))
    total = priorities.usage(time, len(users))

    def priority(job: int) -> float:
        age = min((time - requests.submit[job]) / weights.age_max_s, 1)
        used = priorities.usage(time, users.index(requests.user[job])) if total else 0.0
        share: float = weights.fairshare * 2.0 ** (-len(users) * used / (total or 1.0))
        return weights.age * age + weights.size * (requests.size[job] / requests.processors) + share

    assert queue == sorted(queue, key=lambda job: (-priority(job), job))


@pytest.mark.parametrize(
    "wrong", ["age", "age=x", "speed=1", "age=-1", "half_life_s=0", "age=nan", "size=inf", "", "age=1,age=2"]
)
def test_multifactor_weights_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--multifactor"):
        MultifactorWeights.from_text(wrong)


@pytest.mark.parametrize("wrong", ["1", "a=1", "1=x", "1=0", "1=-2", "1=inf", "", "1=2,01=3"])
def test_queue_weights_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--queue-weights"):
        weights_by_queue(wrong)


def test_unknown_names_are_refused() -> None:
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    with pytest.raises(OptionError, match="policy 'esay' is not one of"):
        make_policy("esay", requests)
    with pytest.raises(OptionError, match="order 'up' is not one of"):
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
    jobs, ends = golden_case(GOLDEN / name)
    starts = starts_of(jobs, 100, policy)
    assert [start + job.run for start, job in zip(starts, jobs, strict=True)] == ends


# Public logs ----------------------------------------------------------------------------------


@needs_data
def test_kth_reference_means() -> None:
    workload = workload_from_swf(load_swf(DATA / "swf" / "KTH-SP2-1996-2.swf"))
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
def test_easy_equals_its_plain_rule_on_public_logs(name: str) -> None:
    workload = workload_from_swf(load_swf(DATA / "swf" / f"{name}.swf"))
    requests = workload.requests
    columns = zip(requests.submit, workload.run, requests.size, requests.estimate, strict=True)
    jobs = [J(int(s), int(r), p, int(e)) for s, r, p, e in columns][:1500]
    part = workload_of(jobs, requests.processors)
    expected = plain_easy(jobs, requests.processors)
    assert simulate_counts(part, make_policy("easy", part.requests)) == expected
    assert simulate_counts(part, DeepEasy(part.requests, deeper=8, shallow=2)) == expected
