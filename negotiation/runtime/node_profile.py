"""Free processors over the time to come: a step function that reservations are cut out of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf


class Profile:
    """Free processors from a time on, as running jobs' estimated ends and reservations leave them.

    ``free[i]`` processors are free from ``times[i]`` up to ``times[i + 1]``, the last without end.

    """

    def __init__(self, now: float, processors: int) -> None:
        self.times: list[float] = [now]
        self.free: list[int] = [processors]

    @classmethod
    def of_running(cls, now: float, free: int, ends: Iterable[tuple[float, int]]) -> Profile:
        """Return the profile that estimated ends, sorted, with the sizes they free leave."""
        profile = cls(now, free)
        for end, size in ends:
            free += size
            if profile.times[-1] == end:
                profile.free[-1] = free
            else:
                profile.times.append(end)
                profile.free.append(free)
        return profile

    def copy(self) -> Profile:
        """Return another one with the same steps."""
        other = Profile(0.0, 0)
        other.times, other.free = self.times.copy(), self.free.copy()
        return other

    def advance(self, now: float) -> None:
        """Forget the time before now."""
        first = bisect_right(self.times, now) - 1
        if first > 0:
            del self.times[:first], self.free[:first]
        self.times[0] = now

    def add(self, start: float, end: float, size: int) -> None:
        """Add ``size`` free processors from ``start`` up to ``end``; a negative size takes them."""
        if start >= end:
            return
        first, last = self._cut(start), self._cut(end)
        free = self.free
        for place in range(first, last):
            free[place] += size
        self._join(last)
        self._join(first)

    def _cut(self, time: float) -> int:
        """Return the place of the step at a time, made when there is none."""
        place = bisect_left(self.times, time)
        if place == len(self.times) or self.times[place] != time:
            self.times.insert(place, time)
            self.free.insert(place, self.free[place - 1])
        return place

    def _join(self, place: int) -> None:
        """Remove a step that is none."""
        if 0 < place < len(self.free) and self.free[place] == self.free[place - 1]:
            del self.times[place], self.free[place]

    def earliest(
        self,
        size: int,
        duration: float,
        *,
        after: float = -inf,
        before: float = inf,
        latest: float = inf,
    ) -> float:
        """Return the first time from which ``size`` processors stay free for a duration.

        Args:
            size: processors.
            duration: seconds.
            after: no earlier time is tried.
            before: the search ends here: from then on the processors count as free.
            latest: only times before this one are tried; when none will do, ``before`` is returned.
        """
        times, free = self.times, self.free
        start: float | None = None
        for place in range(max(bisect_right(times, after) - 1, 0), len(times)):
            time = times[place]
            if time >= before:
                break
            if start is None:
                if time >= latest:
                    break
            elif time >= start + duration:
                break
            if free[place] < size:
                start = None
            elif start is None:
                start = max(time, after)
        return before if start is None else start

    def most(self, until: float) -> int:
        """Return the largest number of processors free at any time before ``until``."""
        return max(self.free[: max(bisect_left(self.times, until), 1)])

    def holds(self, size: int, duration: float) -> bool:
        """Say whether ``size`` processors stay free for a duration from the profile's first time on."""
        end = self.times[0] + duration
        for time, free in zip(self.times, self.free, strict=True):
            if time >= end:
                return True
            if free < size:
                return False
        return True
