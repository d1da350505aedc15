"""A deep queue, indexed so that the next job that may start is found without looking at every one.

Overloaded traces make queues of many thousands of jobs, and every end asks for the first job in queue
order with size ≤ free whose estimate is short enough or whose size is at most *extra*. Jobs stand in
blocks of neighbours in queue order; inside a block they are sorted by size. For each block and each
distinct size the smallest estimate of the block's waiting jobs up to that size is kept: whether a block
holds a job that may start is then one comparison, made for all blocks at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

import numpy as np

#: Jobs of a block; more where sizes are so many that the index would outgrow the jobs.
BLOCK = 512


class Backlog:
    """Waiting jobs by number; the number is the place in the queue's order.

    Attributes:
        head: the smallest waiting number; the number of jobs there are at all when none waits.

    """

    def __init__(self, size: Sequence[int], estimate: Sequence[float], block: int = BLOCK) -> None:
        self._jobs = len(size)
        self._classes = sorted(set(size))
        self._block = block = max(block, len(self._classes))
        blocks = -(-self._jobs // block)
        # Jobs beyond the last are padding: larger than any machine, they never fit.
        padded = np.full(blocks * block, np.iinfo(np.int64).max)
        padded[: self._jobs] = size
        sizes = padded.reshape(blocks, block)
        by_size = np.argsort(sizes, axis=1, kind="stable")
        self._job_at = by_size + (np.arange(blocks) * block)[:, None]
        self._place = np.empty(blocks * block, dtype=np.int64)
        self._place[self._job_at.ravel()] = np.tile(np.arange(block), blocks)
        self._estimate = estimate
        #: Estimates by block and place, infinite where the job does not wait.
        self._waiting = np.full((blocks, block), inf)
        sorted_sizes = np.take_along_axis(sizes, by_size, axis=1)
        #: How many jobs of a block are of a class or smaller.
        self._upto = np.stack([np.searchsorted(row, self._classes, side="right") for row in sorted_sizes])
        #: The smallest waiting estimate by class (that size or smaller) and block.
        self._best = np.full((len(self._classes), blocks), inf)
        self._class_of = dict(zip(self._classes, range(len(self._classes)), strict=True))
        self._size = size
        self._count = 0
        self._last_block = 0
        self.head = self._jobs

    def __len__(self) -> int:
        return self._count

    def add(self, jobs: Sequence[int]) -> None:
        """Let jobs wait."""
        for job in jobs:
            block, estimate = job // self._block, self._estimate[job]
            self._waiting[block, self._place[job]] = estimate
            best = self._best[self._class_of[self._size[job]] :, block]
            np.minimum(best, estimate, out=best)
            self._last_block = max(self._last_block, block)
            self.head = min(self.head, job)
        self._count += len(jobs)

    def remove(self, job: int) -> None:
        """Let a job wait no more."""
        block = job // self._block
        row = self._waiting[block]
        row[self._place[job]] = inf
        upto = self._upto[block]
        smallest = np.minimum.accumulate(row)
        # A class of which the block has no job, nor any smaller, has no smallest estimate.
        self._best[:, block] = np.where(upto > 0, smallest[upto - 1], inf)
        self._count -= 1
        if job == self.head:
            self.head = self._next_waiting(job)

    def _next_waiting(self, after: int) -> int:
        found = self.next_fit(after, self._classes[-1], self._classes[-1], inf) if self._count else None
        return self._jobs if found is None else found

    def next_fit(self, after: int, free: int, extra: int, slack: float) -> int | None:
        """Return the first waiting job after another that may start, None when there is none.

        Args:
            after: a job number.
            free: processors; the job needs at most so many, and either
            extra: needs at most so many too, or
            slack: has an estimate of at most so many seconds.

        """
        fitting = bisect_right(self._classes, free)
        beside = bisect_right(self._classes, min(extra, free))
        if not fitting:
            return None
        first = after // self._block
        blocks = slice(first, self._last_block + 1)
        holds = self._best[fitting - 1, blocks] <= slack
        if beside:
            holds |= self._best[beside - 1, blocks] < inf
        for offset in np.flatnonzero(holds).tolist():
            job = self._first_in(first + offset, after, fitting, beside, slack)
            if job is not None:
                return job
        return None

    def _first_in(self, block: int, after: int, fitting: int, beside: int, slack: float) -> int | None:
        """Return a block's first job after ``after`` among those of the classes and estimates named."""
        waiting = self._waiting[block, : self._upto[block, fitting - 1]]
        allowed = (waiting <= slack) & (waiting < inf)
        if beside:
            count = self._upto[block, beside - 1]
            allowed[:count] |= waiting[:count] < inf
        jobs = self._job_at[block, : len(waiting)][allowed]
        jobs = jobs[jobs > after]
        return int(jobs.min()) if len(jobs) else None

    def drain(self) -> list[int]:
        """Let no job wait any more; return those that did, in queue order."""
        jobs = []
        while self._count:
            jobs.append(self.head)
            self.remove(self.head)
        return jobs
