"""The planning policy: conservative backfilling without advance reservations, and a plan beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain import J, Span, first_fit, plain, starts_of, workload_of, workloads

from aucsched.cli import run
from aucsched.cluster.errors import InputError, OptionError
from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.plan_constraints import Advance, read_advance
from aucsched.simulation.logs.policies import ORDERS, make_policy
from aucsched.simulation.simulate_options import PolicyOptions

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SMALL = str(Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf")
DAYS = Path(__file__).resolve().parents[3] / "examples" / "days.swf"
Case = tuple[list[J], int]


def equal(path: Path) -> None:
    workload = workload_from_swf(load_swf(path))
    planned = simulate_counts(workload, make_policy("planning", workload.requests))
    assert planned == simulate_counts(workload, make_policy("conservative", workload.requests))


def test_planning_equals_conservative_on_a_log() -> None:
    equal(DAYS)


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2", "SDSC-SP2-1998-4-first5k"])
def test_planning_equals_conservative_on_public_logs(name: str) -> None:
    equal(DATA / "swf" / f"{name}.swf")


@given(workloads(), st.sampled_from(ORDERS))
def test_planning_equals_conservative_in_every_order(case: Case, order: str) -> None:
    assert starts_of(*case, "planning", order=order) == starts_of(*case, "conservative", order=order)


# Advance reservations -------------------------------------------------------------------------


@st.composite
def reservations(draw: st.DrawFn, processors: int) -> tuple[Advance, ...]:
    """Reservations that never overlap in time: any sizes fit."""
    found, now = [], 0
    for _ in range(draw(st.integers(0, 4))):
        now += draw(st.integers(0, 12))
        duration = draw(st.integers(1, 10))
        size = draw(st.integers(1, processors))
        found.append(Advance(start_s=now, duration_s=duration, processors=size))
        now += duration
    return tuple(found)


@st.composite
def reserved_cases(draw: st.DrawFn) -> tuple[list[J], int, tuple[Advance, ...]]:
    jobs, processors = draw(workloads(most=12))
    return jobs, processors, draw(reservations(processors))


def plain_planning(
    jobs: Sequence[J], processors: int, advance: Sequence[Advance], *, rebuild: bool
) -> list[float]:
    """Both ways of replanning, spelt out; the times at which reservations end are events too."""
    fixed = [(one.start_s, one.end_s, one.processors) for one in advance]
    planned: dict[int, float] = {}
    before: dict[int, float] = {}

    def span(job: int, start: float) -> Span:
        return start, start + jobs[job].estimate, jobs[job].size

    def choose(now: float, _: int, queue: list[int], running: dict[int, float]) -> list[int]:
        known = [job for job in queue if job in planned]
        ended = [job for job in before if job not in running]
        early = any(before[job] + jobs[job].estimate > now for job in ended)
        if rebuild and (early or len(known) < len(queue)):
            planned.clear()
        elif early:
            while True:
                moved = False
                for job in known:
                    others = [span(one, start) for one, start in planned.items() if one != job]
                    spans = [*fixed, *others, *(span(one, at) for one, at in running.items())]
                    start = first_fit(spans, processors, jobs[job], now)
                    moved |= start < planned[job]
                    planned[job] = min(start, planned[job])
                if not moved:
                    break
        for job in queue:
            if job not in planned:
                held = [span(one, at) for one, at in {**running, **planned}.items()]
                planned[job] = first_fit([*fixed, *held], processors, jobs[job], now)
        started = [job for job in queue if planned[job] <= now]
        assert all(planned.pop(job) == now for job in started)
        before.clear()
        before.update(running)
        before.update(dict.fromkeys(started, now))
        return started

    return plain(jobs, processors, choose, also_at=[one.end_s for one in advance])


@settings(max_examples=150)
@given(reserved_cases(), st.booleans())
def test_planning_is_its_plain_rule(case: tuple[list[J], int, tuple[Advance, ...]], rebuild: bool) -> None:
    """The chapter: queueing and planning systems, table 3.2."""
    jobs, processors, advance = case
    options = PolicyOptions(advance=advance, replan="rebuild" if rebuild else "keep")
    planned = starts_of(jobs, processors, "planning", options=options)
    assert planned == plain_planning(jobs, processors, advance, rebuild=rebuild)


@given(reserved_cases(), st.sampled_from(["keep", "rebuild"]), st.sampled_from(ORDERS))
def test_no_job_touches_what_is_reserved(
    case: tuple[list[J], int, tuple[Advance, ...]], replan: str, order: str
) -> None:
    """The chapter: advance reservations."""
    jobs, processors, advance = case
    options = PolicyOptions(advance=advance, replan=replan)  # type: ignore[arg-type]
    starts = starts_of(jobs, processors, "planning", order=order, options=options)
    spans = [(start, start + job.run, job.size) for start, job in zip(starts, jobs, strict=True)]
    spans += [(one.start_s, one.end_s, one.processors) for one in advance]
    for time, _, _ in spans:
        assert sum(size for start, end, size in spans if start <= time < end) <= processors


@given(workloads())
def test_rebuilding_with_exact_estimates_is_conservative(case: Case) -> None:
    """Nothing ends early, so nothing moves: both plan each job once."""
    jobs = [J(job.submit, job.estimate, job.size, job.estimate) for job in case[0]]
    rebuilt = starts_of(jobs, case[1], "planning", options=PolicyOptions(replan="rebuild"))
    assert rebuilt == starts_of(jobs, case[1], "conservative")


def test_a_reservation_cannot_be_shifted() -> None:
    """The Chapter's Fix-Time request: jobs are planned around it, and end before it by their estimates.

    Of 10 processors 8 are kept from 10 to 20. Job 0 would run into it and waits for its end, at which
    nothing else happens; job 1 is small enough to run through it; job 2 ends in time.
    """
    jobs = [J(0, 6, 5, 12), J(0, 15, 2, 15), J(1, 8, 5, 9)]
    advance = (Advance(start_s=10, duration_s=10, processors=8),)
    assert starts_of(jobs, 10, "planning", options=PolicyOptions(advance=advance)) == [20, 0, 1]
    assert starts_of(jobs, 10, "planning") == [0, 0, 6]


def test_rebuilding_may_break_a_promise() -> None:
    """The Chapter's replanning sorts all jobs anew; kept plans only ever move earlier.

    Job 2 is planned at 10, so that job 3 gets the gap from 6 on. Then job 0 ends at 4 instead of 10. Kept,
    job 3 moves to 4, and job 2 behind it to 8. Rebuilt, job 2 comes first, at 6, and job 3 after it.
    """
    jobs = [J(0, 4, 2, 10), J(0, 6, 2, 6), J(1, 10, 3, 10), J(2, 4, 2, 4)]
    kept = starts_of(jobs, 4, "planning")
    rebuilt = starts_of(jobs, 4, "planning", options=PolicyOptions(replan="rebuild"))
    assert kept == starts_of(jobs, 4, "conservative") == [0, 0, 8, 4]
    assert rebuilt == [0, 0, 6, 16]


# Values and the command -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", ["5,10", "x,10,3", "5,10,3.5", "5,10,0", "-1,10,3", "5,0,3", "nan,1,1", "1,inf,1", "1,2,3,4"]
)
def test_reservations_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--advance"):
        read_advance([wrong])


def test_reservations_beyond_the_machine_are_refused() -> None:
    requests = workload_of([J(0, 1, 1, 1)], 4).requests
    touching = (
        Advance(start_s=0, duration_s=5, processors=3),
        Advance(start_s=5, duration_s=5, processors=4),
    )
    make_policy("planning", requests, options=PolicyOptions(advance=touching))
    both = (*touching, Advance(start_s=9, duration_s=1, processors=1))
    with pytest.raises(OptionError, match="--advance: 5 of 4 processors are kept at 9 s"):
        make_policy("planning", requests, options=PolicyOptions(advance=both))
    with pytest.raises(OptionError, match="--replan 'never'"):
        make_policy("planning", requests, options=PolicyOptions(replan="never"))  # type: ignore[arg-type]


def test_reservations_are_read_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kept.csv"
    file.write_text("# start, duration, processors\n5,10,3\n\n30.5,1,4\n")
    found = read_advance([str(file), "100,1,1"])
    assert [one.start_s for one in found] == [5, 30.5, 100]
    assert run(["simulate", SMALL, "--policy", "planning", "--advance", str(file), "--format", "json"]) == 0
    assert '"start_s": 30.5' in capsys.readouterr().out
    file.write_text("5,10,3\n5,ten,3\n")
    with pytest.raises(InputError, match=r"kept\.csv:2: '5,ten,3' is not START"):
        read_advance([str(file)])
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"kept\.csv: not UTF-8 text"):
        read_advance([str(file)])


def test_options_of_planning_are_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", SMALL, "--advance", "1,1,1"]) == 2
    assert "--advance needs --policy planning" in capsys.readouterr().err
    assert run(["simulate", SMALL, "--policy", "conservative", "--replan", "keep"]) == 2
    assert "--replan needs --policy planning" in capsys.readouterr().err
