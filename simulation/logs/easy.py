"""EASY backfilling: one reservation, for the head of the queue (Chapter 3; Lifka's EASY).

One pass: start from the head while it fits. Then the head's shadow time is the earliest estimated end
(start + estimate) of a running job by which enough processors are free, and *extra* the processors free
at the shadow time, every estimated end at or before it counted, less the head's need. Once over the rest
in queue order: a job starts if it fits now and either its estimate ends by the shadow time (equal
counts) or it needs at most *extra*, which then shrinks by its size.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from math import ulp

from ..log_columns import Requests
from .backlog import BLOCK, Backlog
from .orderings import Resort
from .running import WaitingSizes

#: A queue deeper than this is searched by array operations (backlog.py),
DEEP = 256
#: until it is this shallow again.
SHALLOW = 64
#: A shadow time not computed yet: estimated ends are above 0.
UNKNOWN = -1.0


class Easy:
    """EASY over a queue sorted by job number, or by ``resort`` before each pass.

    Between two ends the head's reservation stands: starts that respect it move neither the shadow time nor,
    beyond what they use, *extra*; and a job that could not start cannot until a job ends. So a pass without
    ends looks at the new arrivals only. Nothing of this changes an answer; tests compare with the plain rule.

    """

    def __init__(
        self,
        requests: Requests,
        resort: Resort | None = None,
        *,
        deep: int = DEEP,
        shallow: int = SHALLOW,
        block: int = BLOCK,
    ) -> None:
        self._requests = requests
        self._size = requests.size
        self._estimate = requests.estimate
        self._resort = resort
        self._deep = deep
        self._shallow = shallow
        self._block = block
        self._free = requests.processors
        self._queue: list[int] = []
        # Made when the queue first grows deep, then kept; it holds the queue while it is not empty.
        self._backlog: Backlog | None = None
        # Running jobs: their estimated ends, sorted, with the sizes beside them.
        self._ends: list[float] = []
        self._sizes: list[int] = []
        self._end_of: dict[int, float] = {}
        # Of a queue that is sorted before each pass: no order matters while nobody fits.
        self._waiting_sizes = WaitingSizes(requests.size)
        # The head's reservation, UNKNOWN until it is asked for.
        self._shadow: float = UNKNOWN
        self._extra = 0

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort or self._deep != DEEP else "easy"

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        if ended:
            self._release(ended)
        if self._backlog:
            return self._deep_step(now, self._backlog, arrived, all_jobs=bool(ended))
        if self._resort:
            return self._sorted_step(now, self._resort, arrived)
        queue = self._queue
        started: list[int] = []
        if ended or not queue or (arrived and arrived[0] < queue[0]):
            self._merge(arrived)
            if queue:
                self._start_head(now, started)
            candidates: Sequence[int] = queue
            self._shadow = UNKNOWN
        else:
            self._merge(arrived)
            candidates = arrived
        if queue and self._free:
            self._backfill(now, candidates, started)
        if len(queue) > self._deep:
            self._go_deep()
        return started

    def _release(self, ended: Sequence[int]) -> None:
        ends, sizes = self._ends, self._sizes
        for job in ended:
            size = self._size[job]
            self._free += size
            place = bisect_left(ends, self._end_of.pop(job))
            while sizes[place] != size:
                place += 1
            del ends[place], sizes[place]

    def _start(self, job: int, estimated_end: float) -> None:
        size = self._size[job]
        self._free -= size
        self._end_of[job] = estimated_end
        place = bisect_right(self._ends, estimated_end)
        self._ends.insert(place, estimated_end)
        self._sizes.insert(place, size)

    def _sorted_step(self, now: float, resort: Resort, arrived: Sequence[int]) -> list[int]:
        """Make the pass over a queue whose order changes with time."""
        started: list[int] = []
        self._queue.extend(arrived)
        self._waiting_sizes.add(arrived)
        if self._waiting_sizes.least > self._free:
            return started
        resort(now, self._queue)
        self._start_head(now, started)
        self._shadow = UNKNOWN
        if self._queue and self._free:
            self._backfill(now, self._queue, started)
        self._waiting_sizes.remove(started)
        return started

    def _merge(self, arrived: Sequence[int]) -> None:
        queue = self._queue
        if arrived and queue and arrived[0] < queue[-1]:
            for job in arrived:
                insort(queue, job)
        else:
            queue.extend(arrived)

    def _start_head(self, now: float, started: list[int]) -> None:
        queue, size = self._queue, self._size
        count = 0
        for job in queue:
            if size[job] > self._free:
                break
            self._start(job, now + self._estimate[job])
            count += 1
        if count:
            started.extend(queue[:count])
            del queue[:count]

    def _backfill(self, now: float, candidates: Sequence[int], started: list[int]) -> None:
        """Start what fits beside the head's reservation; the head itself never fits."""
        size, estimate, free = self._size, self._estimate, self._free
        fitting = [job for job in candidates if size[job] <= free]
        if not fitting:
            return
        if self._shadow == UNKNOWN:
            self._reserve(size[self._queue[0]])
        for job in fitting:
            if size[job] <= self._free and self._allowed(now + estimate[job], size[job]):
                self._start(job, now + estimate[job])
                self._queue.remove(job)
                started.append(job)

    def _allowed(self, estimated_end: float, size: int) -> bool:
        """Say whether a job that fits now leaves the head its reservation; take its share of *extra*."""
        if estimated_end <= self._shadow:
            return True
        if size > self._extra:
            return False
        self._extra -= size
        return True

    def _reserve(self, need: int) -> None:
        """Compute the shadow time and *extra* of a head of that size."""
        ends, sizes = self._ends, self._sizes
        free = self._free
        count = 0
        while free < need:
            free += sizes[count]
            count += 1
        self._shadow = ends[count - 1]
        free += sum(sizes[count : bisect_right(ends, self._shadow)])
        self._extra = free - need

    def _go_deep(self) -> None:
        if self._backlog is None:
            self._backlog = Backlog(self._requests.size, self._requests.estimate, self._block)
        self._backlog.add(self._queue)
        self._queue = []

    def _deep_step(
        self, now: float, backlog: Backlog, arrived: Sequence[int], *, all_jobs: bool
    ) -> list[int]:
        """Make the same pass over a deep queue."""
        head = backlog.head
        backlog.add(arrived)
        started: list[int] = []
        if all_jobs or backlog.head != head:
            self._shadow = UNKNOWN
            while backlog and self._size[backlog.head] <= self._free:
                started.append(backlog.head)
                self._take(backlog, backlog.head, now)
            if backlog and self._free:
                self._deep_backfill(now, backlog, started)
        elif arrived and self._free:
            self._deep_arrivals(now, backlog, arrived, started)
        if len(backlog) <= self._shallow:
            self._queue = backlog.drain()
        return started

    def _take(self, backlog: Backlog, job: int, now: float) -> None:
        backlog.remove(job)
        self._start(job, now + self._estimate[job])

    def _deep_arrivals(
        self, now: float, backlog: Backlog, arrived: Sequence[int], started: list[int]
    ) -> None:
        if self._shadow == UNKNOWN:
            self._reserve(self._size[backlog.head])
        for job in arrived:
            estimated_end, size = now + self._estimate[job], self._size[job]
            if size <= self._free and self._allowed(estimated_end, size):
                self._take(backlog, job, now)
                started.append(job)

    def _deep_backfill(self, now: float, backlog: Backlog, started: list[int]) -> None:
        size, estimate = self._size, self._estimate
        self._reserve(size[backlog.head])
        # One unit in the last place more: now + estimate may round to the shadow time itself.
        slack = self._shadow - now + ulp(self._shadow)
        job = backlog.head
        while self._free:
            found = backlog.next_fit(job, self._free, self._extra, slack)
            if found is None:
                return
            job = found
            if self._allowed(now + estimate[job], size[job]):
                self._take(backlog, job, now)
                started.append(job)
