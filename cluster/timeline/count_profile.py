"""Free processors over the time to come: a step function that reservations are cut out of."""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from ..kernels.column_operations import first_from, insert, largest_before, remove
from ..kernels.harness import Floats, Ints, kernel


class ProfileColumns(NamedTuple):
    """Free processors as columns.

    Attributes:
        times: moments, rising; the first is the profile's beginning.
        free: so many processors are free from a moment to the next, from the last one for ever.
        steps: one entry: how many moments there are.
    """

    times: Floats
    free: Ints
    steps: Ints


@kernel
def add(profile: ProfileColumns, start: float, end: float, size: int) -> None:
    """Add free processors from ``start`` up to ``end``; a negative size takes them."""
    if start >= end:
        return
    first = _cut(profile, start)
    last = _cut(profile, end) if end < inf else profile.steps[0]
    free = profile.free
    for place in range(first, last):
        free[place] += size
    _join(profile, last)
    _join(profile, first)


@kernel
def _cut(profile: ProfileColumns, time: float) -> int:
    """Return the place of the step at a time, made when there is none."""
    steps = profile.steps[0]
    place = first_from(profile.times, steps, time)
    if place == steps or profile.times[place] != time:
        insert(profile.times, steps, place, time)
        insert(profile.free, steps, place, profile.free[place - 1])
        profile.steps[0] = steps + 1
    return place


@kernel
def _join(profile: ProfileColumns, place: int) -> None:
    """Remove a step that is none."""
    steps = profile.steps[0]
    if 0 < place < steps and profile.free[place] == profile.free[place - 1]:
        remove(profile.times, steps, place, place + 1)
        remove(profile.free, steps, place, place + 1)
        profile.steps[0] = steps - 1


@kernel
def advance(profile: ProfileColumns, now: float) -> None:
    """Forget the time before now."""
    times, steps = profile.times, profile.steps[0]
    first = 0
    while first + 1 < steps and times[first + 1] <= now:
        first += 1
    if first > 0:
        remove(times, steps, 0, first)
        remove(profile.free, steps, 0, first)
        profile.steps[0] = steps - first
    times[0] = now


@kernel
def earliest(
    profile: ProfileColumns,
    size: int,
    duration: float,
    after: float = -inf,
    before: float = inf,
    latest: float = inf,
) -> float:
    """Return the first time from which ``size`` processors stay free for a duration.

    Args:
        profile: what is free.
        size: processors.
        duration: seconds.
        after: no earlier time is tried.
        before: the search ends here: from then on the processors count as free.
        latest: only times before this one are tried; when none will do, ``before`` is returned.
    """
    times, free, steps = profile.times, profile.free, profile.steps[0]
    place = 0
    if after > times[0]:
        place = first_from(times, steps, after)
        if place == steps or times[place] > after:
            place -= 1
    start = before
    is_found = False
    while place < steps:
        time = times[place]
        if time >= before:
            break
        if is_found:
            if time >= start + duration:
                break
        elif time >= latest:
            break
        if free[place] < size:
            is_found = False
        elif not is_found:
            is_found = True
            start = max(time, after)
        place += 1
    return start if is_found else before


@kernel
def most(profile: ProfileColumns, until: float) -> int:
    """Return the largest number of processors free at any time before ``until``."""
    return largest_before(profile.times, profile.free, profile.steps[0], until)


@kernel
def runs(profile: ProfileColumns, size: int, latest: float) -> tuple[float, float]:
    """Return the length of the longest run begun before ``latest``; and the latest end of one."""
    times, free, steps = profile.times, profile.free, profile.steps[0]
    longest = reach = start = -1.0
    is_found = False
    place = 0
    while place < steps and (is_found or times[place] < latest):
        if free[place] < size:
            if is_found:
                longest, reach = max(longest, times[place] - start), times[place]
            is_found = False
        elif not is_found:
            is_found = True
            start = times[place]
        place += 1
    return (inf, inf) if is_found else (longest, reach)


class CountProfile(ProfileColumns):
    """The same as lists, with methods: free processors from a time on.

    Examples:
        >>> profile = CountProfile.flat(4)
        >>> profile.add(10, 20, -3)
        >>> profile.earliest(2, 15), profile.holds(2, 10)
        (20, True)
    """

    __slots__ = ()

    @classmethod
    def flat(cls, processors: int) -> "CountProfile":
        """Return the profile of so many processors that nobody holds."""
        return cls([0], [processors], [1])  # type: ignore[arg-type]

    @classmethod
    def of_running(cls, now: float, free: int, ends: Iterable[tuple[float, int]]) -> "CountProfile":
        """Return the profile that estimated ends, sorted, with the sizes they free leave."""
        times, counts = [now], [free]
        for end, size in ends:
            free += size
            if times[-1] == end:
                counts[-1] = free
            else:
                times.append(end)
                counts.append(free)
        return cls(times, counts, [len(times)])  # type: ignore[arg-type]

    def copy(self) -> "CountProfile":
        """Return another one, on which plans can be made."""
        return CountProfile(self.times[:], self.free[:], self.steps[:])

    advance = advance
    add = add
    earliest = earliest

    def holds(self, size: int, duration: float) -> bool:
        """Say whether ``size`` processors stay free for a duration from the profile's beginning."""
        end = self.times[0] + duration
        for time, free in zip(self.times, self.free, strict=True):
            if time >= end:
                return True
            if free < size:
                return False
        return True
