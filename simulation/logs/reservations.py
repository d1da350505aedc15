"""Backfilling with K reservations (Chapter 3: the number of reservations, as in Maui).

One pass in queue order over a profile of the running jobs' estimated ends: a job that can start now, and
stay for its estimate beside the reservations made so far in this pass, starts; a job that cannot is
given a reservation at its earliest time while fewer than K have been given; later ones wait.
Reservations hold for one pass, as EASY's does: K = 1 is EASY exactly.
"""

from __future__ import annotations

from ...cluster.errors import OptionError
from ..requests import Requests
from .front import FrontFirst
from .orderings import Resort


class Reservations(FrontFirst):
    """K reservations over a queue sorted by job number, or by ``resort`` before each pass."""

    def __init__(self, requests: Requests, resort: Resort | None, reservations: int) -> None:
        if reservations < 1:
            raise OptionError(f"--reservations {reservations} is below 1")
        super().__init__(requests, resort)
        self._reservations = reservations

    def backfill(self, now: float) -> list[int]:
        """Give K reservations on the way through the queue, and start what fits beside them."""
        size, estimate, running = self._size, self._estimate, self._running
        profile = running.profile(now)
        started: list[int] = []
        left = self._reservations
        for job in self._queue:
            if size[job] <= running.free and profile.holds(size[job], estimate[job]):
                running.start(job, now)
                started.append(job)
                profile.add(now, now + estimate[job], -size[job])
            elif left:
                start = profile.earliest(size[job], estimate[job])
                profile.add(start, start + estimate[job], -size[job])
                left -= 1
            elif not running.free:
                break
        return started
