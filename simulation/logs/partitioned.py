"""Partitioned reservations: one queue and one reservation per class of run time.

Chapter 3, the fourth parameter; after Lawson and Smirni's multiple-queue backfilling. Jobs fall into
classes by estimate. Each class has its own queue and its own reservation; idle processors move between the
classes as they are needed, so that only the reservations stand between them. One pass:

1. The heads of the classes in queue order: a head starts if it fits beside the reservations made so far,
   and the next of its class becomes a head; else it is given a reservation at its earliest time.
2. The classes in turn, beginning after the one that had the last turn: each starts its first job that fits
   beside all reservations, until no class has one.

A short job waits for the heads of the other classes, but never behind their queues. The first job of the
whole queue has the first reservation, as in EASY; with one class the policy is EASY exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from ...cluster.errors import OptionError
from ...cluster.timeline.count_profile import CountProfile
from ..log_columns import Requests
from ..stepping import Resort
from .front import FrontFirst


def class_limits(text: str) -> tuple[float, ...]:
    """Return the limits between classes that e.g. ``100,1000,10000`` names, in seconds.

    Raises:
        OptionError: they are no rising numbers above 0.

    """
    try:
        limits = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--class-limits {text!r} is not SECONDS,…") from None
    _check(limits, text)
    return limits


def _check(limits: tuple[float, ...], text: str) -> None:
    if not all(low < high for low, high in pairwise((0.0, *limits, float("inf")))):
        raise OptionError(f"--class-limits {text!r}: not rising from above 0")


class Partitioned(FrontFirst):
    """One queue and one reservation per class, over a queue sorted by job number, or by ``resort``.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass.
        limits_s: the longest estimate of each class but the last, rising; none: one class.

    """

    def __init__(self, requests: Requests, resort: Resort | None, limits_s: tuple[float, ...]) -> None:
        _check(limits_s, ",".join(f"{limit:g}" for limit in limits_s))
        super().__init__(requests, resort)
        self._classes = len(limits_s) + 1
        self._class_of = [bisect_left(limits_s, estimate) for estimate in requests.estimate]
        self._turn = 0

    def backfill(self, now: float) -> list[int]:
        """Give each class's head its reservation; then the classes start jobs in turn."""
        profile = self._running.profile(now)
        started: list[int] = []
        blocked: set[int] = set()
        waiting: list[list[int]] = [[] for _ in range(self._classes)]
        for job in self._queue:
            its_class = self._class_of[job]
            if its_class in blocked:
                if self._size[job] <= self._running.free:
                    waiting[its_class].append(job)
            elif self._starts(job, now, profile):
                started.append(job)
            else:
                start = profile.earliest(self._size[job], self._estimate[job])
                profile.add(start, start + self._estimate[job], -self._size[job])
                blocked.add(its_class)
        return started + self._in_turn(now, profile, waiting)

    def _starts(self, job: int, now: float, profile: CountProfile) -> bool:
        """Start a job if it fits beside the reservations; say whether it did."""
        size, estimate = self._size[job], self._estimate[job]
        if size > self._running.free or not profile.holds(size, estimate):
            return False
        self._running.start(job, now)
        profile.add(now, now + estimate, -size)
        return True

    def _in_turn(self, now: float, profile: CountProfile, waiting: list[list[int]]) -> list[int]:
        """Let the classes start their first fitting job in turn.

        What does not fit once fits no more in this pass: each job is looked at once.
        """
        queues = [iter(queue) for queue in waiting]
        started: list[int] = []
        idle = 0
        while idle < self._classes and self._running.free:
            self._turn = (self._turn + 1) % self._classes
            found = next((job for job in queues[self._turn] if self._starts(job, now, profile)), None)
            if found is None:
                idle += 1
            else:
                started.append(found)
                idle = 0
        return started
