"""When passes begin: every interval, and early where a job has come or ended."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from aucsched.cluster.errors import InputError
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.passes import job_counts
from aucsched.slurm.live.ticker import Ticker

SDIAG = (
    "*******************************\nsdiag output at Mon Jan 12 13:46:40 1970 (1000000000)\n"
    "Server thread count:  1\nJobs submitted: {0}\nJobs started:   {1}\nJobs completed: {2}\n"
    "Jobs canceled:  0\nJobs failed:    0\nJob states ts:  Mon Jan 12 13:46:40 1970\nJobs pending:   4\n"
)


@dataclass
class Clock(threading.Event):
    """A clock that goes on while somebody waits; passes take so long as they are told."""

    now: float = 0.0
    asked: list[float] = field(default_factory=list)
    changes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__init__()

    def wait(self, timeout: float | None = None) -> bool:
        """Let the time pass."""
        assert timeout is not None
        assert timeout >= 0
        self.now += timeout
        return False

    def news(self) -> int:
        """Return how often something has happened by now."""
        self.asked.append(self.now)
        return sum(change <= self.now for change in self.changes)


def begins(clock: Clock, *, passes: int, took_s: float, hears: bool = True) -> list[float]:
    ticker = Ticker(interval_s=10, passes=passes, clock=lambda: clock.now, stopping=clock)
    ticker.news = clock.news if hears else None
    found = []
    for _ in ticker:
        found.append(clock.now)
        clock.now += took_s
    return found


def test_without_news_a_pass_begins_every_interval() -> None:
    assert begins(Clock(changes=(3,)), passes=3, took_s=1, hears=False) == [0, 10, 20]
    assert begins(Clock(), passes=3, took_s=1) == pytest.approx([0, 10, 20])
    assert begins(Clock(), passes=3, took_s=12) == [0, 12, 24]


def test_what_happens_begins_a_pass_within_a_fifth_of_the_interval() -> None:
    clock = Clock(changes=(3, 17))
    assert begins(clock, passes=4, took_s=0.5) == pytest.approx([0, 4, 14, 18])
    # Each pass asks once as it begins, then every two seconds.
    assert len(clock.asked) < 4 + 5 * 4


def test_what_happens_in_a_pass_begins_the_next_one_after_a_rest_of_half_of_it() -> None:
    """Slurm answers others too: passes take two thirds of the time at most."""
    assert begins(Clock(changes=(0.5, 6.5)), passes=3, took_s=3) == pytest.approx([0, 4.5, 9])
    assert begins(Clock(changes=(0.5,)), passes=2, took_s=0.1) == pytest.approx([0, 2])
    assert begins(Clock(changes=(0.5,)), passes=2, took_s=8) == [0, 10]


def test_news_are_jobs_that_have_come_or_ended() -> None:
    told = {"text": SDIAG.format(7, 5, 3)}

    def ask(command: Command) -> bytes:
        assert command == ("sdiag",)
        if not told["text"]:
            raise InputError("slurmctld does not answer")
        return told["text"].encode()

    before = job_counts(ask)
    assert len(before) == 4
    told["text"] = SDIAG.format(7, 6, 3).replace("(1000000000)", "(1000000009)").replace("4\n", "5\n")
    assert job_counts(ask) == before, "the loop's own starts are none"
    told["text"] = SDIAG.format(7, 6, 4)
    assert job_counts(ask) != before
    told["text"] = SDIAG.format(8, 6, 3)
    assert job_counts(ask) != before
    told["text"] = ""
    assert job_counts(ask) == ()
