"""Which processors, or cores of its nodes, each job held, for charts and Batsim's tools.

Machines only count; a schedule that never uses more than there are can be numbered afterwards.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

#: Runs of processors: first number and how many.
Runs = tuple[tuple[int, int], ...]


class Stay(NamedTuple):
    """When a job runs, and how many cores it holds on which nodes, by number."""

    start: float
    end: float
    cores: Iterable[tuple[int, int]]


def lowest_first(cores: Sequence[int], stays: Mapping[int, Stay]) -> dict[int, Runs]:
    """Return the cores of each job in order of start: the lowest free ones on each of its nodes.

    Args:
        cores: of each node; they are numbered through all nodes in order.
        stays: by job; jobs that start together take theirs in order of their numbers.
    """
    free = [_FreeRuns(last - count, count) for count, last in zip(cores, accumulate(cores), strict=True)]
    # Ends come before starts at one time.
    events = [(stay.start, 1, job) for job, stay in stays.items()]
    events += [(stay.end, 0, job) for job, stay in stays.items()]
    taken: dict[int, list[tuple[int, Runs]]] = {}
    for _, starting, job in sorted(events):
        if starting:
            taken[job] = [(node, free[node].take(count)) for node, count in stays[job].cores if count]
        else:
            for node, runs in taken[job]:
                free[node].give(runs)
    return {job: _joined(sorted(run for _, runs in held for run in runs)) for job, held in taken.items()}


def _joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """Return sorted runs with those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, count in runs:
        if joined and sum(joined[-1]) == first:
            joined[-1] = joined[-1][0], joined[-1][1] + count
        else:
            joined.append((first, count))
    return tuple(joined)


class _FreeRuns:
    """Free processors as sorted runs that never touch."""

    def __init__(self, first: int, count: int) -> None:
        self._first = [first]
        self._count = [count]

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
