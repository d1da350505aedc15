"""When passes begin."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from aucsched.slurm.live.ticker import Ticker


@dataclass
class Clock(threading.Event):
    """A clock that goes on while somebody waits; passes take so long as they are told."""

    now: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    def wait(self, timeout: float | None = None) -> bool:
        """Let the time pass."""
        assert timeout is not None
        assert timeout >= 0
        self.now += timeout
        return False


def begins(clock: Clock, *, passes: int, took_s: float) -> list[float]:
    found = []
    for _ in Ticker(interval_s=10, passes=passes, clock=lambda: clock.now, stopping=clock):
        found.append(clock.now)
        clock.now += took_s
    return found


def test_a_pass_begins_every_interval() -> None:
    assert begins(Clock(), passes=3, took_s=1) == [0, 10, 20]


def test_a_pass_begins_at_once_after_a_longer_one() -> None:
    assert begins(Clock(), passes=3, took_s=12) == [0, 12, 24]


def test_what_is_loaded_is_frozen_once_after_the_first_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, frozen = Clock(), []
    monkeypatch.setattr("gc.freeze", lambda: frozen.append(clock.now))
    assert len(begins(clock, passes=3, took_s=1)) == 3
    assert frozen == [1]
