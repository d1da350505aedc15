"""Numbers for counted processors, which charts and Batsim's tools need."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from .requests import Workload
from .stepping import NEVER

#: Runs of processors: first number and how many.
Runs = tuple[tuple[int, int], ...]


def place_lowest_first(workload: Workload, starts: Sequence[float]) -> dict[int, Runs]:
    """Return the processors of each started job: the lowest-numbered that are free when it starts.

    A schedule that never uses more processors than there are can always be numbered so. Nothing in a
    simulation depends on the numbers; jobs that start together take theirs in order of submission.
    """
    free = FreeRuns(workload.requests.processors)
    # Ends come before starts at one time.
    events: list[tuple[float, int, int]] = []
    for job, start in enumerate(starts):
        if start != NEVER:
            events += [(start, 1, job), (start + workload.run[job], 0, job)]
    placed: dict[int, Runs] = {}
    for _, starting, job in sorted(events):
        if starting:
            placed[job] = free.take(workload.requests.size[job])
        else:
            free.give(placed[job])
    return placed


class FreeRuns:
    """Free processors as sorted runs that never touch."""

    def __init__(self, processors: int) -> None:
        self._first = [0]
        self._count = [processors]

    def take(self, wanted: int) -> Runs:
        """Return the lowest ``wanted`` free numbers; at least that many are free."""
        taken: list[tuple[int, int]] = []
        whole = 0
        while wanted >= self._count[whole]:
            taken.append((self._first[whole], self._count[whole]))
            wanted -= self._count[whole]
            whole += 1
            if not wanted:
                break
        else:
            taken.append((self._first[whole], wanted))
            self._first[whole] += wanted
            self._count[whole] -= wanted
        del self._first[:whole], self._count[:whole]
        return tuple(taken)

    def give(self, runs: Iterable[tuple[int, int]]) -> None:
        """Free numbers that were taken."""
        for first, count in runs:
            place = bisect_left(self._first, first)
            self._first.insert(place, first)
            self._count.insert(place, count)
            self._join(place)
            self._join(place - 1)

    def _join(self, place: int) -> None:
        """Join a run with the one after it when they touch."""
        if not 0 <= place < len(self._first) - 1:
            return
        if self._first[place] + self._count[place] == self._first[place + 1]:
            self._count[place] += self._count[place + 1]
            del self._first[place + 1], self._count[place + 1]
