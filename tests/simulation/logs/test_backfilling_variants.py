"""Lookahead, slack, selective and partitioned backfilling against plain readings of their rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.plain import (
    J,
    earliest,
    first_promise,
    from_front,
    golden_case,
    plain,
    plain_easy,
    starts_of,
    workloads,
)

from aucsched.cli import run
from aucsched.cluster.errors import OptionError
from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import Requests, Workload, workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.logs.reservations import Candidate, class_limits, fullest
from aucsched.simulation.result import Simulation
from aucsched.simulation.simulate_options import PolicyOptions

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
GOLDEN = DATA / "easy_golden" / "pyss_golden"
SMALL = str(Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf")
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")

Case = tuple[list[J], int]


def shadow_of(jobs: Sequence[J], free: int, running: dict[int, float], need: int) -> tuple[float, int]:
    """The earliest estimated end by which so many are free, and how many are free beyond them then."""
    ends = sorted((start + jobs[job].estimate, jobs[job].size) for job, start in running.items())
    for time, _ in ends:
        then = free + sum(size for end, size in ends if end <= time)
        if then >= need:
            return time, then - need
    raise AssertionError


# Lookahead ------------------------------------------------------------------------------------


@st.composite
def selections(draw: st.DrawFn) -> tuple[list[Candidate], int, int]:
    free = draw(st.integers(1, 12))
    extra = draw(st.integers(0, 14))
    sizes = draw(st.lists(st.tuples(st.integers(1, free), st.booleans()), max_size=9))
    unit, rest = draw(st.integers(1, 3)), draw(st.integers(0, 1))
    found = [Candidate(10 + number, unit * size, long) for number, (size, long) in enumerate(sizes)]
    return found, unit * free + rest, unit * extra + rest


def by_brute_force(candidates: Sequence[Candidate], free: int, extra: int) -> list[int]:
    """Every selection that is allowed: the fullest, and of those the one with the earliest candidates."""
    allowed = [
        chosen
        for count in range(len(candidates) + 1)
        for chosen in combinations(candidates, count)
        if sum(one.size for one in chosen) <= free and sum(one.size for one in chosen if one.long) <= extra
    ]

    def key(chosen: tuple[Candidate, ...]) -> tuple[int, list[bool]]:
        return sum(one.size for one in chosen), [one in chosen for one in candidates]

    return [one.job for one in max(allowed, key=key)]


@settings(max_examples=400)
@given(selections())
def test_the_fullest_selection_is_that_of_brute_force(case: tuple[list[Candidate], int, int]) -> None:
    """The chapter: lookahead."""
    assert fullest(*case) == by_brute_force(*case)


def test_a_table_too_large_to_keep_looks_at_the_first_only(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Candidate(0, 7, False), Candidate(1, 5, False), Candidate(2, 4, False)]
    assert fullest(many, 10, 0) == [1, 2]
    monkeypatch.setattr("aucsched.simulation.logs.reservations.MOST_BITS", 22)
    assert fullest(many, 10, 0) == [0]


def test_a_selection_of_thousands_on_a_large_machine_is_exact() -> None:
    many = [Candidate(job, 1000 + job % 7, bool(job % 2)) for job in range(5000)]
    chosen = fullest(many, 100_003, 30_000)
    assert sum(many[job].size for job in chosen) == 100_003
    assert sum(many[job].size for job in chosen if many[job].long) <= 30_000


def plain_lookahead(jobs: Sequence[J], processors: int) -> list[float]:
    def choose(now: float, free: int, queue: list[int], running: dict[int, float]) -> list[int]:
        started, free = from_front(jobs, free, queue)
        held = {**running, **dict.fromkeys(started, now)}
        if not queue:
            return started
        shadow, extra = shadow_of(jobs, free, held, jobs[queue[0]].size)
        fitting = [
            Candidate(job, jobs[job].size, now + jobs[job].estimate > shadow)
            for job in queue[1:]
            if jobs[job].size <= free
        ]
        return started + by_brute_force(fitting, free, extra)

    return plain(jobs, processors, choose)


@settings(max_examples=200)
@given(workloads(most=12))
def test_lookahead_is_its_plain_rule(case: Case) -> None:
    assert starts_of(*case, "lookahead") == plain_lookahead(*case)


def test_lookahead_packs_what_easy_leaves_idle() -> None:
    """The Chapter's sixth parameter: jobs taken one at a time lose processors to fragmentation.

    Of 10 processors 5 are free, and the head needs 7. EASY takes the job of 3, after which neither 4 nor 2
    that is left lets the job of 4 in; the whole queue at once shows that 4 and 1 fill the machine.
    """
    jobs = [J(0, 10, 5, 10), J(1, 5, 7, 5), J(1, 4, 3, 4), J(1, 4, 4, 4), J(1, 4, 1, 4)]
    assert starts_of(jobs, 10, "easy") == [0, 10, 1, 5, 1]
    assert starts_of(jobs, 10, "lookahead") == [0, 10, 5, 1, 1]
    one = PolicyOptions(lookahead_depth=1)
    assert starts_of(jobs, 10, "lookahead", options=one)[2] == 1, "the first after the head only"


def test_lookahead_prefers_early_or_late_jobs_among_equals() -> None:
    jobs = [J(0, 10, 9, 10), J(1, 5, 10, 5), *(J(2, 3, 1, 3) for _ in range(3))]
    assert starts_of(jobs, 10, "lookahead") == [0, 10, 2, 5, 15]
    last = PolicyOptions(lookahead_ties="last")
    assert starts_of(jobs, 10, "lookahead", options=last) == [0, 10, 15, 5, 2]


@needs_data
@pytest.mark.parametrize("number", range(14))
def test_lookahead_on_golden_cases(number: int) -> None:
    """Hand-made cases of a published simulator, whose ties go to the jobs submitted last."""
    jobs, ends = golden_case(GOLDEN / f"look_ahead.{number}")
    starts = starts_of(jobs, 100, "lookahead", options=PolicyOptions(lookahead_ties="last"))
    assert [start + job.run for start, job in zip(starts, jobs, strict=True)] == ends


@needs_data
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2", "SDSC-SP2-1998-4-first5k"])
def test_lookahead_uses_no_less_than_easy_on_public_logs(name: str) -> None:
    workload = workload_from_swf(load_swf(DATA / "swf" / f"{name}.swf"))
    easy, lookahead = (figures(workload, policy) for policy in ("easy", "lookahead"))
    assert float(lookahead["cpu_utilization"] or 0) >= float(easy["cpu_utilization"] or 0)
    assert float(lookahead["loss_of_capacity"] or 0) < float(easy["loss_of_capacity"] or 0)


def figures(workload: Workload, policy: str) -> dict[str, float | None]:
    starts = simulate_counts(workload, make_policy(policy, workload.requests))
    result = Simulation(workload=workload, policy=policy, order="fcfs", starts=tuple(starts), seconds=0)
    return result.metrics


# Slack ----------------------------------------------------------------------------------------


def plain_slack(jobs: Sequence[J], processors: int, factor: float) -> list[float]:
    promise: dict[int, float] = {}

    def choose(now: float, free: int, queue: list[int], running: dict[int, float]) -> list[int]:
        started, free = from_front(jobs, free, queue)
        held = {**running, **dict.fromkeys(started, now)}
        if not queue:
            return started
        head, need = queue[0], jobs[queue[0]].size
        now_promised = shadow_of(jobs, free, held, need)[0]
        promise[head] = min(promise.get(head, now_promised), now_promised)
        for job in queue[1:]:
            if jobs[job].size > free:
                continue
            with_it = {**held, job: now}
            later = shadow_of(jobs, free - jobs[job].size, with_it, need)[0]
            if later <= promise[head] + factor * jobs[head].estimate:
                held, free = with_it, free - jobs[job].size
                started.append(job)
        return started

    return plain(jobs, processors, choose)


@settings(max_examples=200)
@given(workloads(), st.sampled_from([0, 0.25, 0.5, 1, 3]))
def test_slack_is_its_plain_rule(case: Case, factor: float) -> None:
    """The chapter: slack."""
    assert starts_of(*case, "slack", options=PolicyOptions(slack=factor)) == plain_slack(*case, factor)


@given(workloads())
def test_no_slack_is_easy(case: Case) -> None:
    assert starts_of(*case, "slack", options=PolicyOptions(slack=0)) == plain_easy(*case)


#: The two-second job that comes at 1 is the head while the one of both processors waits.
DISPLACED = [J(0, 1, 2, 1), *[J(0, 1, 1, 1)] * 5, J(0, 2, 1, 2), J(1, 2, 1, 2)]


@example((DISPLACED, 2), "ljf")
@given(workloads(), st.sampled_from(["sjf", "ljf", "widest", "wfp3", "unicep", "multifactor"]))
def test_no_slack_is_easy_in_every_order(case: Case, order: str) -> None:
    no_slack = starts_of(*case, "slack", order=order, options=PolicyOptions(slack=0))
    assert no_slack == starts_of(*case, "easy", order=order)


@given(workloads(), st.sampled_from([0.5, 2.0]))
def test_nobody_is_put_off_beyond_the_slack(case: Case, factor: float) -> None:
    """The first job that must wait starts by the reservation that EASY gives it, and its slack."""
    if (found := first_promise(*case)) is not None:
        first, promised = found
        starts = starts_of(*case, "slack", options=PolicyOptions(slack=factor))
        assert starts[first] <= promised + factor * case[0][first].estimate


def test_slack_lets_a_job_violate_the_reservation_by_its_slack() -> None:
    """The Chapter's second parameter, on its figure: jobs 1 and 2 run, job 3 waits, job 4 would delay it.

    Job 3 is promised 10, its estimate is 8. Job 4 ends at 13 by its estimate: within a slack of half the
    estimate, 14, and not within a quarter, 12.
    """
    jobs = [J(0, 10, 5, 10), J(0, 6, 3, 6), J(1, 8, 10, 8), J(2, 11, 2, 11)]
    assert starts_of(jobs, 10, "easy") == [0, 0, 10, 18]
    assert starts_of(jobs, 10, "slack", options=PolicyOptions(slack=0.25)) == [0, 0, 10, 18]
    assert starts_of(jobs, 10, "slack", options=PolicyOptions(slack=0.5)) == [0, 0, 13, 2]


# Selective ------------------------------------------------------------------------------------


def plain_selective(jobs: Sequence[J], processors: int, threshold: float) -> list[float]:
    def choose(now: float, _: int, queue: list[int], running: dict[int, float]) -> list[int]:
        def overdue(job: int) -> bool:
            return now - jobs[job].submit + jobs[job].estimate >= threshold * jobs[job].estimate

        held, started = dict(running), []
        for job in sorted(queue, key=lambda job: not overdue(job)):
            start = earliest(jobs, processors, held, job, now)
            if start == now:
                started.append(job)
            if start == now or overdue(job):
                held[job] = start
        return started

    return plain(jobs, processors, choose)


@settings(max_examples=200)
@given(workloads(), st.sampled_from([1, 1.5, 2, 5, 1e9]))
def test_selective_is_its_plain_rule(case: Case, threshold: float) -> None:
    """The chapter: selective."""
    options = PolicyOptions(expansion_factor=threshold)
    assert starts_of(*case, "selective", options=options) == plain_selective(*case, threshold)


@given(workloads())
def test_selective_from_one_on_reserves_for_all(case: Case) -> None:
    everybody = PolicyOptions(expansion_factor=1, reservations=10**6)
    reserved = starts_of(*case, "reservations", options=everybody)
    assert starts_of(*case, "selective", options=everybody) == reserved


def test_selective_reserves_for_a_job_that_waited_too_long() -> None:
    """The Chapter's second parameter: a job that others have delayed by too much is given a reservation.

    Jobs of half the machine pass job 1, of all of it, as long as it has no reservation: until its
    expansion factor (wait + 4) / 4 is 3, at 9. Then job 4, which would run until 13, waits.
    """
    jobs = [J(0, 6, 1, 6), J(1, 4, 2, 4), J(2, 6, 1, 6), J(6, 6, 1, 6), J(8, 6, 1, 6), J(9, 6, 1, 6)]
    assert starts_of(jobs, 2, "easy") == [0, 6, 10, 10, 16, 16]
    late = PolicyOptions(expansion_factor=3)
    assert starts_of(jobs, 2, "selective", options=late) == [0, 14, 2, 6, 8, 18]
    never = PolicyOptions(expansion_factor=100)
    assert starts_of(jobs, 2, "selective", options=never) == [0, 18, 2, 6, 8, 12]


# Partitioned ----------------------------------------------------------------------------------


def plain_partitioned(jobs: Sequence[J], processors: int, limits: Sequence[float]) -> list[float]:
    classes = range(len(limits) + 1)
    turn = 0

    def class_of(job: int) -> int:
        return sum(jobs[job].estimate > limit for limit in limits)

    def choose(now: float, _: int, queue: list[int], running: dict[int, float]) -> list[int]:
        nonlocal turn
        held, started, blocked = dict(running), [], set()
        for job in queue[:]:
            if class_of(job) in blocked:
                continue
            held[job] = earliest(jobs, processors, held, job, now)
            queue.remove(job)
            if held[job] == now:
                started.append(job)
            else:
                blocked.add(class_of(job))
        used = sum(jobs[job].size for job, start in held.items() if start <= now)
        if len(blocked) < 1 or used == processors:
            return started
        idle = 0
        while idle < len(classes) and used < processors:
            turn = (turn + 1) % len(classes)
            mine = (job for job in queue if class_of(job) == turn)
            found = next((job for job in mine if earliest(jobs, processors, held, job, now) == now), None)
            idle += 1
            if found is not None:
                idle = 0
                held[found] = now
                used += jobs[found].size
                queue.remove(found)
                started.append(found)
        return started

    return plain(jobs, processors, choose)


@settings(max_examples=200)
@given(workloads(), st.sampled_from([(), (4.0,), (2.0, 6.0), (1.0, 3.0, 9.0)]))
def test_partitioned_is_its_plain_rule(case: Case, limits: tuple[float, ...]) -> None:
    """The chapter: partitioned reservations."""
    options = PolicyOptions(class_limits_s=limits)
    assert starts_of(*case, "partitioned", options=options) == plain_partitioned(*case, limits)


@given(workloads())
def test_one_partition_is_easy(case: Case) -> None:
    assert starts_of(*case, "partitioned", options=PolicyOptions(class_limits_s=())) == plain_easy(*case)


def test_partitions_keep_a_short_job_from_being_delayed_by_a_long_one() -> None:
    """The Chapter's fourth parameter: each class of run times has its own queue and reservation.

    Job 1 is long and waits for 10; job 2, short, could start beside it then. EASY keeps no place for job
    2 and lets the long job 3 pass; as the head of its own class job 2 has a reservation at 10.
    """
    jobs = [J(0, 10, 3, 10), J(1, 20, 2, 20), J(2, 4, 2, 4), J(3, 30, 1, 30)]
    assert starts_of(jobs, 4, "easy") == [0, 10, 30, 3]
    split = PolicyOptions(class_limits_s=(5.0,))
    assert starts_of(jobs, 4, "partitioned", options=split) == [0, 10, 10, 14]


def test_partitions_take_turns() -> None:
    """Where both heads are blocked, candidates come from the classes in turn."""
    jobs = [J(0, 20, 4, 20), J(1, 20, 6, 20), J(1, 2, 3, 2)]
    jobs += [J(2, 2, 1, 2), J(2, 2, 1, 2), J(2, 12, 1, 12), J(2, 12, 1, 12)]
    split = starts_of(jobs, 6, "partitioned", options=PolicyOptions(class_limits_s=(10.0,)))
    assert starts_of(jobs, 6, "easy")[3:] == [2, 2, 4, 4]
    assert split[3:] == [2, 14, 2, 4]


# Values and the command -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("lookahead", {"lookahead_depth": 0}, "--lookahead-depth 0"),
        ("lookahead", {"lookahead_ties": "middle"}, "--lookahead-ties 'middle'"),
        ("slack", {"slack": -1}, "--slack -1"),
        ("slack", {"slack": float("nan")}, "--slack nan"),
        ("selective", {"expansion_factor": 0.5}, "--expansion-factor 0.5"),
        ("selective", {"expansion_factor": float("inf")}, "--expansion-factor inf"),
        ("partitioned", {"class_limits_s": (2.0, 2.0)}, "--class-limits '2,2'"),
        ("partitioned", {"class_limits_s": (1234567.0, 1234566.5)}, "--class-limits '1234567,1234566.5'"),
    ],
)
def test_values_that_cannot_be_are_refused(policy: str, options: dict[str, object], message: str) -> None:
    requests = Requests(processors=1, submit=(0,), size=(1,), estimate=(1,), user=(1,), weight=(1,))
    with pytest.raises(OptionError, match=message):
        make_policy(policy, requests, options=PolicyOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", "x", "0", "-1,2", "3,2", "nan", "1,inf"])
def test_class_limits_refuse_what_they_cannot_use(wrong: str) -> None:
    requests = Requests(processors=1, submit=(0,), size=(1,), estimate=(1,), user=(1,), weight=(1,))
    with pytest.raises(OptionError, match="--class-limits"):
        make_policy("partitioned", requests, options=PolicyOptions(class_limits_s=class_limits(wrong)))


@pytest.mark.parametrize(
    ("option", "value", "policy"),
    [
        ("--lookahead-depth", "5", "lookahead"),
        ("--lookahead-ties", "last", "lookahead"),
        ("--slack", "0.25", "slack"),
        ("--expansion-factor", "3", "selective"),
        ("--class-limits", "10,100", "partitioned"),
    ],
)
def test_options_are_read_or_refused(
    option: str, value: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", SMALL, "--policy", policy, option, value, "--format", "json"]) == 0
    assert f'"{option[2:].replace("-", "_")}' in capsys.readouterr().out
    assert run(["simulate", SMALL, option, value]) == 2
    assert capsys.readouterr().err == f"aucsched: {option} needs --policy {policy}, not easy\n"
