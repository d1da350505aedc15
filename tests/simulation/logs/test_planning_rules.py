"""Planning systems beyond advance reservations: requests on the way, unused ones, rules; test runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plain import J, simulate_checked, starts_of, workload_of, workloads

from aucsched.cli import run
from aucsched.cluster.errors import InputError, OptionError
from aucsched.simulation.events import DAY_S, WEEK_S
from aucsched.simulation.logs.hours import Hours, moment_of_week
from aucsched.simulation.logs.plan_constraints import Advance, StartRule
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.simulate_options import PolicyOptions
from aucsched.simulation.stepping import StoppedRun

SMALL = str(Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf")
Case = tuple[list[J], int]
HOUR = 3600


def planned(jobs: list[J], processors: int, **options: object) -> list[float]:
    return starts_of(jobs, processors, "planning", options=PolicyOptions(**options))  # type: ignore[arg-type]


def rules(*texts: str) -> tuple[StartRule, ...]:
    return tuple(map(StartRule.from_text, texts))


# Fixed-time requests --------------------------------------------------------------------------


def test_a_request_is_accepted_or_refused_when_it_is_submitted() -> None:
    """Of 4 processors job 0 has 3 until 10.

    At 2 somebody asks for 2 from 5 on: refused; at 3 for 4 from 12 on: accepted, and job 1 waits for its end.

    The chapter: fixed-time requests, unused reservations.
    """
    jobs = [J(0, 10, 3, 10), J(4, 5, 2, 5)]
    asked = (
        Advance(start_s=5, duration_s=5, processors=2, submit_s=2),
        Advance(start_s=12, duration_s=8, processors=4, submit_s=3),
    )
    requests = workload_of(jobs, 4).requests
    policy = make_policy("planning", requests, options=PolicyOptions(advance=asked))
    assert simulate_checked(workload_of(jobs, 4), policy) == [0, 20]
    assert policy.refused == ["5,5,2,2"]


def test_a_request_comes_before_jobs_that_wait_but_not_into_their_plans() -> None:
    """At 1 job 1 is planned at 10 for all; a request for 10 at 2 is refused, for 20 accepted."""
    jobs = [J(0, 10, 2, 10), J(1, 10, 2, 10), J(3, 10, 1, 10)]
    late = Advance(start_s=20, duration_s=10, processors=2, submit_s=2)
    early = Advance(start_s=10, duration_s=5, processors=1, submit_s=2)
    assert planned(jobs, 2, advance=(late, early)) == [0, 10, 30]


def test_an_unused_reservation_is_released() -> None:
    """All four are kept from 10 to 100; nobody comes, so that from 15 on jobs may have them."""
    jobs = [J(0, 5, 4, 5), J(6, 20, 4, 20)]
    kept = Advance(start_s=10, duration_s=90, processors=4, is_used=False)
    assert planned(jobs, 4, advance=(kept,)) == [0, 100]
    for replan in ("keep", "rebuild"):
        assert planned(jobs, 4, advance=(kept,), release_unused_s=5, replan=replan) == [0, 15]
    used = Advance(start_s=10, duration_s=90, processors=4)
    assert planned(jobs, 4, advance=(used,), release_unused_s=5) == [0, 100]


def test_requests_are_read() -> None:
    one = Advance.from_text("20,10,2,5,unused")
    assert (one.submit_s, one.is_used) == (5, False)
    assert Advance.from_text("20,10,2,unused").submit_s is None
    for wrong in ("2_0,10,2", "20,10,2_0"):
        with pytest.raises(InputError, match="is not START"):
            Advance.from_text(wrong)


# Hours ----------------------------------------------------------------------------------------


def test_hours_of_the_week() -> None:
    nights = Hours.from_text("mon-fri 18:00-08:00,sat,sun")
    assert not nights.holds(12 * HOUR)
    assert nights.holds(18 * HOUR)
    assert nights.holds(DAY_S + 7 * HOUR)
    assert nights.holds(5 * DAY_S + 12 * HOUR)
    assert nights.next(9 * HOUR) == 18 * HOUR
    assert nights.next(WEEK_S + 9 * HOUR) == WEEK_S + 18 * HOUR
    assert Hours.from_text("sun 20:00-06:00").holds(WEEK_S + HOUR), "into Monday"
    assert Hours.from_text("08:00-18:00", moment_of_week("wed 09:00")).holds(0)
    assert Hours.from_text("always").next(5.5) == 5.5


@given(st.floats(0, 10**9))
def test_the_next_moment_of_hours_is_within_them(time: float) -> None:
    nights = Hours.from_text("mon-fri 18:00-08:00,sat")
    moment = nights.next(time)
    assert nights.holds(moment)
    assert time <= moment < time + 2 * DAY_S


@pytest.mark.parametrize(
    "wrong", ["", "today", "mon 25:00-26:00", "fri-mon", "08:00", "8:5-9:0", "mon,", "mon-xx"]
)
def test_hours_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="is not a list of hours"):
        Hours.from_text(wrong)


# Rules ----------------------------------------------------------------------------------------


def test_large_jobs_start_at_night() -> None:
    """The Chapter's example: more than two thirds of the machine not in daytime; it is Monday, 00:00.

    The chapter: limits by time, kind, user and project in a plan.
    """
    night = rules("processors>66%: 18:00-08:00,sat,sun")
    jobs = [J(0, 9 * HOUR, 3, 9 * HOUR), J(8 * HOUR, HOUR, 3, HOUR), J(9 * HOUR, HOUR, 2, HOUR)]
    # Job 1 fits at 9:00 already, beside nobody, and is planned for 18:00; job 2 is small.
    assert planned(jobs, 4, start_rule=night) == [0, 18 * HOUR, 9 * HOUR]
    assert planned(jobs, 4, start_rule=night, replan="rebuild") == [0, 18 * HOUR, 9 * HOUR]


def test_a_job_that_runs_when_its_hours_end_runs_on() -> None:
    night = rules("estimate>3600: 18:00-08:00")
    jobs = [J(0, DAY_S, 1, DAY_S), J(HOUR, 10 * HOUR, 1, 10 * HOUR)]
    assert planned(jobs, 1, start_rule=night) == [0, DAY_S]


def test_so_many_of_a_kind_at_once() -> None:
    """Never three jobs of a third of the machine each.

    The chapter: limits by time, kind, user and project in a plan.
    """
    jobs = [J(0, 10, 2, 10)] * 3
    assert planned(jobs, 6) == [0, 0, 0]
    assert planned(jobs, 6, start_rule=rules("processors>=33%: 2")) == [0, 0, 10]


def test_a_user_has_a_smaller_machine() -> None:
    """Jobs 0 and 3 are user 0's, who may have 2 of 6 processors; a job of more than that is refused.

    The chapter: limits by time, kind, user and project in a plan.
    """
    jobs = [J(0, 10, 2, 10), J(0, 10, 1, 10), J(0, 10, 1, 10), J(0, 10, 1, 10)]
    assert planned(jobs, 6) == [0, 0, 0, 0]
    assert planned(jobs, 6, start_rule=rules("user=0: 2")) == [0, 0, 0, 10]
    with pytest.raises(OptionError, match="'user=0: 1': 2 processors never start"):
        planned(jobs, 6, start_rule=rules("user=0: 1"))


def test_a_project_has_a_smaller_machine(tmp_path: Path) -> None:
    """Groups of a log are its projects: 1 and 3 are of group 5, which may have 2 of 6 processors.

    The chapter: limits by time, kind, user and project in a plan.
    """
    log = tmp_path / "groups.swf"
    rows = [f"{job} 0 -1 10 {size} -1 -1 {size} 10 -1 1 1 {group} -1 1 -1 -1 -1"
            for job, size, group in ((1, 2, 5), (2, 3, 4), (3, 1, 5))]  # fmt: skip
    log.write_text("; MaxProcs: 6\n" + "\n".join(rows) + "\n")
    starts = {}
    for rule in ((), ("--start-rule", "group=5: 2")):
        out = tmp_path / "jobs.csv"
        options = ("--policy", "planning", *rule, "--jobs-out", str(out), "-o", str(tmp_path / "m.txt"))
        assert run(["simulate", str(log), *options]) == 0
        starts[rule] = [float(row.split(",")[2]) for row in out.read_text().splitlines()[1:]]
    assert list(starts.values()) == [[0, 0, 0], [0, 0, 10]]


@given(workloads(), st.sampled_from(["keep", "rebuild"]))
def test_rules_hold_at_every_moment(case: Case, replan: str) -> None:
    jobs, processors = case
    starts = planned(jobs, processors, start_rule=rules("estimate>5: 2"), replan=replan)
    for now in starts:
        at_once = [
            job
            for job, start in zip(jobs, starts, strict=True)
            if start <= now < start + job.run and job.estimate > 5
        ]
        assert len(at_once) <= 2


@given(workloads(), st.sampled_from(["keep", "rebuild"]))
def test_rules_that_never_bind_change_nothing(case: Case, replan: str) -> None:
    free = rules("processors>=1: always", "estimate>0: 1000", "user=1: 100000")
    assert planned(*case, start_rule=free, replan=replan) == planned(*case, replan=replan)


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "",
            "cores>1: sat",
            "processors>1",
            "user>1: 5",
            "group>1: 5",
            "estimate=5: sat",
            "estimate>5%: sat",
        ),
        *("processors>1: 0", "processors>1: noon", "processors>1.2.3: 4"),
    ],
)
def test_rules_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--start-rule"):
        StartRule.from_text(wrong)


# Test runs ------------------------------------------------------------------------------------

#: Of 10 processors: job 2 needs all and is promised 10; job 3 would end at 18 by its estimate.
TESTED = [J(0, 10, 5, 10), J(0, 6, 3, 6), J(1, 8, 10, 8)]


def with_tests(
    jobs: list[J], processors: int, seconds: float, stops: int = 1
) -> tuple[list[float], list[StoppedRun]]:
    workload = workload_of(jobs, processors)
    options = PolicyOptions(test_run_s=seconds, stops=stops)
    stopped: list[StoppedRun] = []
    policy = make_policy("speculative", workload.requests, options=options)
    return simulate_checked(workload, policy, stopped=stopped), stopped


def test_a_job_that_ends_in_its_test_has_started_early() -> None:
    assert with_tests([*TESTED, J(2, 3, 2, 16)], 10, 4) == ([0, 0, 10, 2], [])


def test_a_job_that_does_not_is_stopped_and_waits_again() -> None:
    """The head is not delayed; a second test would take 8 s, and at 6 only 4 are left."""
    assert with_tests([*TESTED, J(2, 11, 2, 16)], 10, 4, stops=3) == ([0, 0, 10, 18], [StoppedRun(3, 2, 6)])


def test_the_next_test_is_twice_as_long() -> None:
    """The chapter: speculation by test runs."""
    found = with_tests([*TESTED, J(2, 11, 2, 16)], 10, 2, stops=3)
    assert found == ([0, 0, 10, 18], [StoppedRun(3, 2, 4), StoppedRun(3, 4, 8)])


@given(workloads(), st.integers(1, 4), st.integers(1, 3))
def test_tests_last_as_long_as_they_may(case: Case, seconds: int, stops: int) -> None:
    starts, stopped = with_tests(*case, seconds, stops)
    for job in {one.job for one in stopped}:
        mine = [one for one in stopped if one.job == job]
        assert len(mine) <= stops
        for number, one in enumerate(mine):
            assert one.end - one.start <= seconds * 2**number
    assert all(start >= job.submit for start, job in zip(starts, case[0], strict=True))


# The command ----------------------------------------------------------------------------------


def test_the_command_says_which_requests_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["simulate", SMALL, "--policy", "planning", "--advance", "5,5,99999,0", "--format", "json"]
    assert run(given) == 0
    assert json.loads(capsys.readouterr().out)["refused_requests"] == ["5,5,99999,0"]
    assert run(["simulate", SMALL, "--policy", "planning", "--start-rule", "processors>1: noon"]) == 2
    assert "--start-rule: 'noon' is not a list of hours" in capsys.readouterr().err
    assert run(["simulate", SMALL, "--start-rule", "user=1: 5"]) == 2
    assert "--start-rule needs --policy planning" in capsys.readouterr().err
    assert run(["simulate", SMALL, "--policy", "speculative", "--test-run", "9", "--speculation", "0.5"]) == 2
    assert "none with --test-run" in capsys.readouterr().err
