"""Backfilling with K reservations (Chapter 3: the number of reservations, as in Maui).

One pass in queue order over a profile of the running jobs' estimated ends: a job that can start now, and
stay for its estimate beside the reservations made so far in this pass, starts; a job that cannot is
given a reservation at its earliest time while fewer than K have been given; later ones wait.
Reservations hold for one pass, as EASY's does: K = 1 is EASY exactly.

Until a job ends they would be made again as they are: each begins where a running job ends at the latest, and
what starts leaves them alone. So a pass without ends looks at new arrivals only, where they stand at the
queue's end. And while no waiting job fits, no order of the queue matters.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from ...cluster.errors import OptionError
from ...cluster.timeline.count_profile import CountProfile
from ..backfilling.easy import WaitingSizes
from ..log_columns import Requests
from ..stepping import Resort
from .front import FrontFirst


class Reservations(FrontFirst):
    """K reservations over a queue sorted by job number, or by ``resort`` before each pass."""

    def __init__(self, requests: Requests, resort: Resort | None, reservations: int) -> None:
        if reservations < 1:
            raise OptionError(f"--reservations {reservations} is below 1")
        super().__init__(requests, resort)
        self._reservations = reservations
        self._sizes = WaitingSizes(requests.size)
        # What the last pass left of the profile and of the reservations, and whether it still holds.
        self._profile = CountProfile.flat(0, requests.processors)
        self._left = reservations
        self._is_known = False

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        queue = self._queue
        is_behind = not self._resort and (not queue or not arrived or arrived[0] > queue[-1])
        self._is_known = self._is_known and not ended and is_behind
        self._running.release(ended)
        self._sizes.add(arrived)
        for job in arrived:
            insort(queue, job)
        if self._sizes.least > self._running.free:
            self._is_known = self._is_known and not arrived
            return []
        if self._resort:
            self._resort(now, queue)
        started = self._pass(now, arrived)
        self._sizes.remove(started)
        return started

    def _pass(self, now: float, arrived: Sequence[int]) -> list[int]:
        if self._is_known:
            self._profile.advance(now)
            return self._leave(self._serve(now, arrived))
        started = self._from_front(now)
        if self._queue and self._running.free:
            self._profile, self._left = self._running.profile(now), self._reservations
            started += self._leave(self._serve(now, self._queue))
            self._is_known = True
        return started

    def _serve(self, now: float, jobs: Sequence[int]) -> list[int]:
        """Give reservations on the way through the jobs, and start what fits beside them."""
        size, estimate, running, profile = self._size, self._estimate, self._running, self._profile
        started: list[int] = []
        for job in jobs:
            if not self._left and self._sizes.least > running.free:
                break
            if size[job] <= running.free and profile.holds(size[job], estimate[job]):
                running.start(job, now)
                started.append(job)
                profile.add(now, now + estimate[job], -size[job])
            elif self._left:
                start = profile.earliest(size[job], estimate[job])
                profile.add(start, start + estimate[job], -size[job])
                self._left -= 1
        return started
