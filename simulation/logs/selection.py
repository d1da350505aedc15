"""Job selection (Chapter 3, scheduling policies): the front of the queue, or whoever fits.

Nobody has a reservation.

The queue's order says where the search begins; each selection chooses among the waiting jobs that need at
most the processors that are free now, again and again until none does:

- ``first-fit``: the first in the queue's order.
- ``best-fit``: the one that leaves the fewest processors idle; of equal ones the first.
- ``next-fit``: the first behind the job that was started last, around the end of the queue to its beginning.

*Front*, first come, first served (``fcfs``), waits for the first job. With any of the others a job that
needs many processors may wait for ever: small ones pass it as long as they come.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from heapq import heappop, heappush

from ..log_columns import Requests
from ..stepping import Resort


class Fcfs:
    """Selection *front* (Chapter 3) over a queue in any order."""

    def __init__(self, requests: Requests, resort: Resort | None = None) -> None:
        self._size = requests.size
        self._free = requests.processors
        # A heap of job numbers; with ``resort``, a list sorted before each pass.
        self._queue: list[int] = []
        self._resort = resort

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Start jobs from the front of the queue while they fit."""
        size, queue = self._size, self._queue
        for job in ended:
            self._free += size[job]
        if self._resort is not None:
            queue.extend(arrived)
            self._resort(now, queue)
            return self._from_sorted()
        for job in arrived:
            heappush(queue, job)
        started = []
        while queue and size[queue[0]] <= self._free:
            self._free -= size[queue[0]]
            started.append(heappop(queue))
        return started

    def _from_sorted(self) -> Sequence[int]:
        started = []
        for job in self._queue:
            if self._size[job] > self._free:
                break
            self._free -= self._size[job]
            started.append(job)
        del self._queue[: len(started)]
        return started


class _Fitting:
    """A queue sorted by job number, or by ``resort`` before each pass; subclasses say who starts."""

    def __init__(self, requests: Requests, resort: Resort | None = None) -> None:
        self._size = requests.size
        self._free = requests.processors
        self._resort = resort
        self._queue: list[int] = []

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Start who fits, one after another."""
        for job in ended:
            self._free += self._size[job]
        for job in arrived:
            insort(self._queue, job)
        if self._resort is not None:
            self._resort(now, self._queue)
        started = self._select()
        if started:
            gone = set(started)
            self._queue = [job for job in self._queue if job not in gone]
        return started

    def _select(self) -> list[int]:
        raise NotImplementedError

    def _take(self, jobs: Sequence[int]) -> list[int]:
        """Start the jobs that fit, in the order given: free processors only ever get fewer in a pass."""
        started = []
        for job in jobs:
            if self._size[job] <= self._free:
                self._free -= self._size[job]
                started.append(job)
        return started


class FirstFit(_Fitting):
    """The first job that fits, in the queue's order."""

    def _select(self) -> list[int]:
        return self._take(self._queue)


class BestFit(_Fitting):
    """The job that leaves the fewest processors idle: the largest that fits, the first of equal ones."""

    def _select(self) -> list[int]:
        # Sorted once: what is larger than what is free now will not fit later in the pass either.
        return self._take(sorted(self._queue, key=lambda job: -self._size[job]))


class NextFit(_Fitting):
    """The first job that fits behind the one that was started last."""

    def __init__(self, requests: Requests, resort: Resort | None = None) -> None:
        super().__init__(requests, resort)
        self._last = -1

    def _select(self) -> list[int]:
        place = self._place()
        started = self._take([*self._queue[place:], *self._queue[:place]])
        if started:
            self._last = started[-1] if self._resort is None else self._behind(started)
        return started

    def _place(self) -> int:
        """Return where the search begins."""
        if self._resort is None:
            return bisect_right(self._queue, self._last)
        # Where orders change with time a job that has left has no place: that of the job behind it counts.
        return self._queue.index(self._last) if self._last in self._queue else 0

    def _behind(self, started: Sequence[int]) -> int:
        gone = set(started)
        place = self._queue.index(started[-1])
        around = (*self._queue[place:], *self._queue[:place])
        return next((job for job in around if job not in gone), -1)
