"""The running jobs of a counts-only machine: their estimated ends, and what waiting jobs can count on."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from math import inf

from ...negotiation.runtime.node_profile import Profile
from ..log_columns import Requests


class Running:
    """Jobs that hold processors until their estimated end (start + estimate) at the latest.

    Attributes:
        free: processors that nobody holds.

    """

    def __init__(self, requests: Requests) -> None:
        self._size = requests.size
        self._estimate = requests.estimate
        self.free = requests.processors
        # Estimated ends with sizes, sorted.
        self._ends: list[tuple[float, int]] = []
        self._end_of: dict[int, float] = {}

    def start(self, job: int, now: float) -> None:
        """Let a job hold its processors from now on."""
        self.free -= self._size[job]
        self._end_of[job] = now + self._estimate[job]
        insort(self._ends, (self._end_of[job], self._size[job]))

    def release(self, jobs: Iterable[int]) -> None:
        """Take the processors of jobs back."""
        for job in jobs:
            self.free += self._size[job]
            del self._ends[bisect_left(self._ends, (self._end_of.pop(job), self._size[job]))]

    def shadow(self, need: int) -> tuple[float, int]:
        """Return when so many processors are free at the latest, and how many are free beyond them then.

        Every estimated end at the shadow time counts. For a need above what all jobs leave the answer is
        (inf, 0).
        """
        free, shadow = self.free, inf if need > self.free else 0.0
        for end, size in self._ends:
            if free >= need and end > shadow:
                break
            free += size
            shadow = end
        return (shadow, free - need) if free >= need else (inf, 0)

    def profile(self, now: float) -> Profile:
        """Return the free processors over the time from now on, as estimated ends leave them."""
        return Profile.of_running(now, self.free, self._ends)


class WaitingSizes:
    """The sizes of the waiting jobs: whether any fits is one comparison."""

    def __init__(self, size: Sequence[int]) -> None:
        self._size = size
        self._sorted: list[int] = []

    @property
    def least(self) -> float:
        """Processors of the smallest waiting job; infinite where none waits."""
        return self._sorted[0] if self._sorted else inf

    def add(self, jobs: Iterable[int]) -> None:
        """Let jobs wait."""
        for job in jobs:
            insort(self._sorted, self._size[job])

    def remove(self, jobs: Iterable[int]) -> None:
        """Let jobs wait no more."""
        for job in jobs:
            del self._sorted[bisect_left(self._sorted, self._size[job])]
