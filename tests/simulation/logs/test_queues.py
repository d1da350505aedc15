"""Queueing systems: queues with limits and hours, and the choice among their heads (table 3.1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plain import J, starts_of, workloads

from aucsched.cli import run
from aucsched.cluster.errors import OptionError
from aucsched.simulation.logs.hours import QueueLimits
from aucsched.simulation.logs.policies import ORDERS
from aucsched.simulation.simulate_options import PolicyOptions

SMALL = str(Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf")
Case = tuple[list[J], int]
HOUR = 3600


def queued(jobs: list[J], processors: int, *queues: str, heads: str = "priority") -> list[float]:
    options = PolicyOptions(queue=tuple(map(QueueLimits.from_text, queues)), heads=heads)  # type: ignore[arg-type]
    return starts_of(jobs, processors, "queues", options=options)


@given(workloads(), st.sampled_from(ORDERS))
def test_one_queue_for_all_is_first_come_first_served(case: Case, order: str) -> None:
    assert starts_of(*case, "queues", order=order) == starts_of(*case, "fcfs", order=order)


@given(workloads())
def test_a_queue_for_each_user_of_the_machine_starts_all(case: Case) -> None:
    starts = queued(*case, "short: estimate=5", "narrow: processors=2", "rest:", heads="best-fit")
    assert all(start >= job.submit for start, job in zip(starts, case[0], strict=True))


def test_the_short_do_not_wait_behind_the_long() -> None:
    """Job 1, of all processors, heads its queue; job 2, short, has a queue of its own."""
    jobs = [J(0, 10, 3, 10), J(1, 20, 4, 20), J(2, 3, 1, 3)]
    assert queued(jobs, 4) == [0, 10, 30]
    assert queued(jobs, 4, "short: estimate=5", "long:") == [0, 10, 2]


def test_heads_are_chosen_by_priority_or_by_best_fit() -> None:
    """At 10 four processors come free: the heads are job 1 (1, of the higher priority) and job 2 (4).

    The chapter: several queues, limits, hours, choice of heads, table 3.1.
    """
    jobs = [J(0, 10, 4, 10), J(1, 5, 1, 5), J(2, 9, 4, 9)]
    two = ("narrow: processors=2 priority=1", "wide:")
    assert queued(jobs, 4, *two) == [0, 10, 15]
    assert queued(jobs, 4, *two, heads="best-fit") == [0, 19, 10]
    assert queued(jobs, 4, "narrow: processors=2", "wide: priority=1") == [0, 19, 10]


def test_a_queue_starts_jobs_within_its_hours_only() -> None:
    """The wide queue is active at night; nothing else happens at 18:00. It is Monday, 00:00, at first.

    The chapter: several queues, limits, hours, choice of heads, table 3.1.
    """
    queues = ("narrow: processors=2", "wide: hours=mon-fri 18:00-08:00,sat,sun")
    jobs = [J(0, HOUR, 1, HOUR), J(9 * HOUR, HOUR, 4, HOUR), J(10 * HOUR, HOUR, 2, HOUR)]
    assert queued(jobs, 4, *queues) == [0, 18 * HOUR, 10 * HOUR]


def test_a_job_that_no_queue_takes_is_refused() -> None:
    with pytest.raises(OptionError, match="none takes a job of 3 processors for 9 s"):
        queued([J(0, 9, 3, 9)], 4, "narrow: processors=2")
    with pytest.raises(OptionError, match="named twice"):
        queued([J(0, 9, 3, 9)], 4, "one:", "one:")


@pytest.mark.parametrize(
    "wrong",
    [
        *("", ": processors=1", "a: cores=5", "a: processors=x", "a: processors=0", "a: hours=noon"),
        "a: priority=1 priority=2",
    ],
)
def test_queues_refuse_what_they_cannot_use(wrong: str) -> None:
    with pytest.raises(OptionError, match="--queue"):
        QueueLimits.from_text(wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("a: processors=-12345678", "'processors=-12345678' is not above 0"),
        ("a: hours", "'hours' is none of processors, estimate, priority, hours="),
    ],
)
def test_a_refusal_of_a_queue_names_what_is_wrong(wrong: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        QueueLimits.from_text(wrong)


def test_the_command_takes_queues(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["simulate", SMALL, "--policy", "queues", "--queue", "all: priority=2", "--format", "json"]
    assert run(given) == 0
    assert '"all: priority=2"' in capsys.readouterr().out
    given = ["simulate", SMALL, "--policy", "queues", "--queue", "all: hours=wed", "--format", "json"]
    assert run(given) == 0
    waits = json.loads(capsys.readouterr().out)["metrics"]["wait_mean_s"]
    assert run([*given, "--log-begins", "tue 12:00"]) == 0
    assert waits - json.loads(capsys.readouterr().out)["metrics"]["wait_mean_s"] == pytest.approx(36 * HOUR)
    for text in ("noon", "wed 25:00", "wed noon"):
        assert run([*given, "--log-begins", text]) == 2
        assert f"--log-begins: {text!r} is not a DAY HH:MM" in capsys.readouterr().err
    assert run(["simulate", SMALL, "--queue", "all:"]) == 2
    assert "--queue needs --policy queues" in capsys.readouterr().err
