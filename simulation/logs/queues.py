"""A queueing system: queues with limits and hours, and a choice among their heads (Chapter 3, table 3.1).

A job waits in the first queue that takes it: queues limit processors and estimates (the run-time limits that
came because users need not estimate). A queue is active within its hours; outside of them it takes jobs, but
starts none. One pass: of the heads of the active queues, those that fit may start, and one of them does, by
priority or by best fit; then again, until no head fits. Nobody passes the head of its own queue, and nothing
is reserved: a queueing system plans nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from math import inf

from ...cluster.errors import OptionError
from ..log_columns import Requests
from ..simulate_options import PolicyOptions
from ..stepping import Changes, CountPolicy, Resort
from .hours import QueueLimits


class Queues(CountPolicy):
    """Several queues, each sorted by job number, or by ``resort`` before each pass.

    Args:
        requests: the jobs.
        resort: sorts each queue before each pass.
        options: the queues in the order in which they are offered a job, none for one that takes
            all; and which of their heads starts.

    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        self._limits = tuple(options.queue) or (QueueLimits(name="all"),)
        names = [one.name for one in self._limits]
        if len(set(names)) < len(names):
            raise OptionError(f"--queue: one of {', '.join(names)} is named twice")
        self._size = requests.size
        self._queue_of = [self._taken_by(requests, job) for job in range(len(requests))]
        self._resort = resort
        self._best_fit = options.heads == "best-fit"
        self._free = requests.processors
        self._queues: list[list[int]] = [[] for _ in self._limits]
        self._now: float = 0

    def _taken_by(self, requests: Requests, job: int) -> int:
        size, estimate = requests.size[job], requests.estimate[job]
        for place, one in enumerate(self._limits):
            if size <= one.processors and estimate <= one.estimate_s:
                return place
        raise OptionError(f"--queue: none takes a job of {size} processors for {estimate:g} s")

    @property
    def alarm(self) -> float:
        """When the first queue in which somebody waits becomes active."""
        opens = (
            one.hours.next(self._now)
            for one, queue in zip(self._limits, self._queues, strict=True)
            if queue and not one.hours.holds(self._now)
        )
        return min(opens, default=inf)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Start heads, one after another, until none fits."""
        ended, arrived = seen
        self._now = now
        for job in ended:
            self._free += self._size[job]
        for job in arrived:
            insort(self._queues[self._queue_of[job]], job)
        if self._resort is not None:
            for queue in self._queues:
                self._resort(now, queue)
        active = [place for place, one in enumerate(self._limits) if one.hours.holds(now)]
        started: list[int] = []
        while (place := self._chosen(active)) is not None:
            job = self._queues[place].pop(0)
            self._free -= self._size[job]
            started.append(job)
        return started

    def _chosen(self, active: Sequence[int]) -> int | None:
        """Return the queue whose head starts next, None where none fits."""
        fitting = [
            place
            for place in active
            if self._queues[place] and self._size[self._queues[place][0]] <= self._free
        ]
        return min(fitting, key=self._rank, default=None)

    def _rank(self, place: int) -> tuple[float, float, int]:
        """Return what a head is chosen by, the smallest first; equal ones in the order of the jobs."""
        job = self._queues[place][0]
        size = -self._size[job] if self._best_fit else 0
        return size, -self._limits[place].priority, job
