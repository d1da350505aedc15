"""What passes over a sorted queue have in common: ends, arrivals, then the front while it fits."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence

from ...cluster.kernels.column_operations import first_from, insert_pair, remove_pair
from ...cluster.timeline.count_profile import CountProfile
from ..backfilling.easy import shadow_time
from ..log_columns import Requests
from ..stepping import Resort


class Running:
    """Jobs that hold processors until their estimated end (start + estimate) at the latest.

    Attributes:
        free: processors that nobody holds.

    """

    def __init__(self, requests: Requests) -> None:
        self._size = requests.size
        self._estimate = requests.estimate
        self.free = requests.processors
        # Estimated ends, rising, and beside them processors.
        self._ends: list[float] = []
        self._held: list[int] = []
        self._end_of: dict[int, float] = {}

    def start(self, job: int, now: float) -> None:
        """Let a job hold its processors from now on."""
        size, end = self._size[job], now + self._estimate[job]
        self.free -= size
        self._end_of[job] = end
        insert_pair(self._ends, self._held, len(self._ends), end, size)

    def release(self, jobs: Iterable[int]) -> None:
        """Take the processors of jobs back."""
        for job in jobs:
            size = self._size[job]
            self.free += size
            place = first_from(self._ends, len(self._ends), self._end_of.pop(job))
            while self._held[place] != size:
                place += 1
            remove_pair(self._ends, self._held, len(self._ends), place)

    def shadow(self, need: int) -> tuple[float, int]:
        """Return when so many processors are free at the latest, and how many are free beyond them then."""
        return shadow_time(self._ends, self._held, len(self._ends), self.free, need)

    def profile(self, now: float) -> CountProfile:
        """Return the free processors over the time from now on, as estimated ends leave them."""
        return CountProfile.of_running(now, self.free, zip(self._ends, self._held, strict=True))


class FrontFirst:
    """A policy that starts from the front while it fits, then backfills past the first job that does not.

    The queue is sorted by job number, or by ``resort`` before each pass. Subclasses say what
    ``backfill`` does; it is asked only while processors are free and jobs wait.

    """

    def __init__(self, requests: Requests, resort: Resort | None) -> None:
        self._size = requests.size
        self._estimate = requests.estimate
        self._resort = resort
        self._running = Running(requests)
        self._queue: list[int] = []

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        self._enter(now, ended, arrived)
        started = self._from_front(now)
        if self._queue and self._running.free:
            started += self._leave(self.backfill(now))
        return started

    def backfill(self, now: float) -> list[int]:
        """Start jobs (``_start``) past the first, which does not fit; return them as they were chosen."""
        raise NotImplementedError

    def _enter(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> None:
        self._running.release(ended)
        for job in arrived:
            insort(self._queue, job)
        if self._resort:
            self._resort(now, self._queue)

    def _from_front(self, now: float) -> list[int]:
        """Start jobs in order while they fit: no reservation stands in their way yet."""
        count = 0
        for job in self._queue:
            if self._size[job] > self._running.free:
                break
            self._running.start(job, now)
            count += 1
        started = self._queue[:count]
        del self._queue[:count]
        return started

    def _leave(self, jobs: list[int]) -> list[int]:
        """Take started jobs out of the queue."""
        if jobs:
            gone = set(jobs)
            self._queue = [job for job in self._queue if job not in gone]
        return jobs
