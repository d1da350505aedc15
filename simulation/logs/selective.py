"""Selective reservations: who has waited too long for its length has one (Chapter 3, the second parameter).

After Srinivasan, Kettimuthu, Subramani and Sadayappan. A job's expansion factor is (wait + estimate) /
estimate. One pass over a profile of the running jobs' estimated ends: first, in queue order, the jobs
whose expansion factor has reached the threshold: each starts, or is given a reservation at the earliest time
that leaves those before it theirs. Then the others in queue order: each starts if it fits beside all
reservations. Reservations hold for one pass; whoever has had one has one in every later pass, for the
expansion factor of a waiting job only grows. A threshold of 1 gives every job one, as ``reservations``
does with K as large as the queue; a huge one gives none: first fit.
"""

from __future__ import annotations

from math import isfinite

from ...cluster.errors import OptionError
from ..log_columns import Requests
from ..stepping import Resort
from .front import FrontFirst


class Selective(FrontFirst):
    """Selective reservations over a queue sorted by job number, or by ``resort`` before each pass.

    Args:
        requests: the jobs.
        resort: sorts the queue before each pass.
        threshold: the expansion factor from which on a job has a reservation, at or above 1.

    """

    def __init__(self, requests: Requests, resort: Resort | None, threshold: float) -> None:
        if not (isfinite(threshold) and threshold >= 1):
            raise OptionError(f"--expansion-factor {threshold:g} is no number from 1 on")
        super().__init__(requests, resort)
        self._submit = requests.submit
        self._threshold = threshold

    def _from_front(self, now: float) -> list[int]:  # noqa: ARG002 - a later job's reservation may come first
        return []

    def backfill(self, now: float) -> list[int]:
        """Make the reservations that are due, then start what fits beside them."""
        size, estimate, running = self._size, self._estimate, self._running
        if min(size[job] for job in self._queue) > running.free:
            return []
        profile = running.profile(now)
        started: list[int] = []
        overdue = [job for job in self._queue if self._is_overdue(job, now)]
        for job in [*overdue, *self._others(overdue)]:
            if not running.free:
                break
            if size[job] <= running.free and profile.holds(size[job], estimate[job]):
                running.start(job, now)
                started.append(job)
                profile.add(now, now + estimate[job], -size[job])
            elif self._is_overdue(job, now):
                start = profile.earliest(size[job], estimate[job])
                profile.add(start, start + estimate[job], -size[job])
        return started

    def _is_overdue(self, job: int, now: float) -> bool:
        return now - self._submit[job] + self._estimate[job] >= self._threshold * self._estimate[job]

    def _others(self, overdue: list[int]) -> list[int]:
        if not overdue:
            return self._queue
        first = set(overdue)
        return [job for job in self._queue if job not in first]
