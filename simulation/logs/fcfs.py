"""First come, first served: the front of the queue starts when it fits, nobody passes it."""

from __future__ import annotations

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
