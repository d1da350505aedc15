"""Backfilling with K reservations (Chapter 3: the number of reservations, as in Maui).

One pass in queue order over a profile of the running jobs' estimated ends: a job that can start now, and
stay for its estimate beside the reservations made so far in this pass, starts; a job that cannot is
given a reservation at its earliest time while fewer than K have been given; later ones wait.
Reservations hold for one pass, as EASY's does: K = 1 is EASY exactly.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from ..cluster.errors import OptionError
from .orderings import Resort
from .profile import Profile
from .workload import Requests


class Reservations:
    """K reservations over a queue sorted by job number, or by ``resort`` before each pass."""

    def __init__(self, requests: Requests, resort: Resort | None, reservations: int) -> None:
        if reservations < 1:
            raise OptionError(f"--reservations {reservations} is below 1")
        self._size = requests.size
        self._estimate = requests.estimate
        self._resort = resort
        self._reservations = reservations
        self._free = requests.processors
        self._queue: list[int] = []
        # Running jobs: estimated ends with sizes, sorted.
        self._ends: list[tuple[float, int]] = []
        self._end_of: dict[int, float] = {}

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        for job in ended:
            self._free += self._size[job]
            del self._ends[bisect_left(self._ends, (self._end_of.pop(job), self._size[job]))]
        for job in arrived:
            insort(self._queue, job)
        if self._resort:
            self._resort(now, self._queue)
        started = self._from_head(now)
        if self._queue and self._free:
            started += self._backfill(now)
        return started

    def _start(self, job: int, now: float) -> None:
        self._free -= self._size[job]
        self._end_of[job] = now + self._estimate[job]
        insort(self._ends, (self._end_of[job], self._size[job]))

    def _from_head(self, now: float) -> list[int]:
        """Start jobs in order while they fit: no reservation stands in their way yet."""
        started = []
        for job in self._queue:
            if self._size[job] > self._free:
                break
            self._start(job, now)
            started.append(job)
        del self._queue[: len(started)]
        return started

    def _backfill(self, now: float) -> list[int]:
        size, estimate = self._size, self._estimate
        profile = Profile.of_running(now, self._free, self._ends)
        started: list[int] = []
        left = self._reservations
        for job in self._queue:
            if size[job] <= self._free and profile.holds(size[job], estimate[job]):
                self._start(job, now)
                started.append(job)
                profile.add(now, now + estimate[job], -size[job])
            elif left:
                start = profile.earliest(size[job], estimate[job])
                profile.add(start, start + estimate[job], -size[job])
                left -= 1
            elif not self._free:
                break
        if started:
            gone = set(started)
            self._queue = [job for job in self._queue if job not in gone]
        return started
