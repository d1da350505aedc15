"""Held jobs are told from jobs that wait for a time, another job or a limit."""

from __future__ import annotations

import pytest

from aucsched import Job, Request
from aucsched.cluster.jobs import hold_words, is_held, may_start


@pytest.mark.parametrize(
    ("priority", "hold", "starts", "held", "words"),
    [
        (5, None, True, False, None),
        (0, None, False, True, "priority 0"),
        (5, "JobHeldAdmin", False, True, "JobHeldAdmin"),
        (0, "JobHeldUser", False, True, "JobHeldUser"),
        (5, "SpecialExit", False, True, "SpecialExit"),
        (5, "", False, True, "held"),
        (5, "JobArrayTaskLimit", False, False, "JobArrayTaskLimit"),
        (5, "PartitionConfig", False, False, "PartitionConfig"),
        (0, "BeginTime", False, True, "priority 0; BeginTime"),
    ],
)
def test_a_job_is_held_by_its_priority_or_its_word(
    priority: int, hold: str | None, starts: bool, held: bool, words: str | None
) -> None:
    job = Job(id="7", priority=priority, request=Request(cores=1), hold=hold)
    assert (may_start(job), is_held(job)) == (starts, held)
    assert words is None or hold_words(job) == words
