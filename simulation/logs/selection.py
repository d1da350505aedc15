"""Job selection (Chapter 3, scheduling policies), and what all passes over a queue have in common.

A pass takes what has ended and what has arrived, sorts the queue, starts from the front while it
fits, then backfills. Under a selection nobody has a reservation. Each chooses among the waiting
jobs that need at most the processors that are free now, again and again until none does.
docs/policies.md has the rules (first-fit, best-fit, next-fit), and those of a queueing system
(queues; table 3.1).
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from math import inf

from ...cluster.errors import OptionError
from ...cluster.text import plural
from ...cluster.timeline.count_profile import CountProfile
from ..backfilling.easy import FREE, STARTED, easy_columns, release, start
from ..log_columns import Requests
from ..simulate_options import PolicyOptions
from ..stepping import Changes, CountPolicy, Resort
from .hours import QueueLimits


class QueuePolicy(CountPolicy):
    """Starts the first job of the queue while it fits: selection *front*, the policy ``fcfs``.

    The queue is sorted by job number or, before each pass, by ``resort``. What runs is EASY's state
    (backfilling/easy.py). Subclasses say what else starts (``backfill``); they are asked only while
    processors are free and jobs wait.
    """

    def __init__(
        self, requests: Requests, resort: Resort | None = None, options: PolicyOptions | None = None
    ) -> None:
        self._requests, self._resort = requests, resort
        self._options = PolicyOptions() if options is None else options
        self._size, self._estimate = requests.size, requests.estimate
        self._state = easy_columns(requests.processors, requests.size, requests.estimate, is_compiled=False)
        self._counts = self._state.counts
        self._queue: list[int] = []

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        ended, arrived = seen
        self._counts[STARTED] = 0
        self._release(now, ended)
        self._wait(now, arrived)
        self._from_front(now)
        before = self._counts[STARTED]
        if self._queue and self._unused():
            self.backfill(now)
        started: list[int] = self._state.started[: self._counts[STARTED]]  # type: ignore[assignment]
        if gone := set(started[before:]):
            self._queue = [job for job in self._queue if job not in gone]
        return started

    def _unused(self) -> int:
        """Return the processors that no job holds."""
        return int(self._counts[FREE])

    def backfill(self, now: float) -> None:
        """Start jobs past the first, which does not fit: here none."""

    def _release(self, now: float, ended: Iterable[int]) -> None:  # noqa: ARG002 - others read it
        """Take the processors of jobs back."""
        for job in ended:
            release(self._state, job)

    def _wait(self, now: float, jobs: Iterable[int]) -> None:
        """Let jobs wait, and sort the queue."""
        for job in jobs:
            insort(self._queue, job)
        if self._resort:
            self._resort(now, self._queue)

    def _from_front(self, now: float) -> None:
        """Start jobs in order while they fit: no reservation stands in their way yet."""
        count = 0
        for job in self._queue:
            if self._size[job] > self._counts[FREE]:
                break
            start(self._state, now, job)
            count += 1
        del self._queue[:count]

    def _take(self, now: float, jobs: Sequence[int]) -> list[int]:
        """Start the jobs that fit, in the order given: within a pass processors only get fewer."""
        started = []
        for job in jobs:
            if self._size[job] <= self._counts[FREE]:
                start(self._state, now, job)
                started.append(job)
        return started

    def _profile(self, now: float) -> CountProfile:
        """Return the free processors over the time from now on, as estimated ends leave them."""
        ends = zip(self._state.ends, self._state.held, strict=True)
        return CountProfile.of_running(now, self._counts[FREE], ends)


class FirstFit(QueuePolicy):
    """The first job that fits, in the queue's order."""

    def backfill(self, now: float) -> None:
        """Start each job that fits."""
        self._take(now, self._queue)


class BestFit(QueuePolicy):
    """The job that leaves the fewest processors idle: the largest that fits, the first if equal."""

    def _from_front(self, now: float) -> None:
        """Start nobody: a later job may be larger."""

    def backfill(self, now: float) -> None:
        """Start the largest that fit."""
        # Sorted once: what is larger than what is free now will not fit later in the pass either.
        self._take(now, sorted(self._queue, key=lambda job: -self._size[job]))


class NextFit(QueuePolicy):
    """The first job that fits behind the one that was started last."""

    _last = -1

    def _from_front(self, now: float) -> None:
        """Start nobody: the search begins elsewhere."""

    def backfill(self, now: float) -> None:
        """Start each job that fits, once around the queue."""
        place = self._place()
        started = self._take(now, [*self._queue[place:], *self._queue[:place]])
        if started:
            self._last = started[-1] if self._resort is None else self._behind(started)

    def _place(self) -> int:
        """Return where the search begins."""
        if self._resort is None:
            return bisect_right(self._queue, self._last)
        # In changing orders a job that has left has no place: that of the job behind it counts.
        return self._queue.index(self._last) if self._last in self._queue else 0

    def _behind(self, started: Sequence[int]) -> int:
        gone = set(started)
        place = self._queue.index(started[-1])
        around = (*self._queue[place:], *self._queue[:place])
        return next((job for job in around if job not in gone), -1)


class Queues(QueuePolicy):
    """Several queues, each sorted by job number, or by ``resort`` before each pass.

    Args:
        options: the queues in the order in which they are offered a job, none for one that takes
            all; and which of their heads starts.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        self._limits = tuple(options.queue) or (QueueLimits(name="all"),)
        names = [one.name for one in self._limits]
        if len(set(names)) < len(names):
            raise OptionError(f"--queue: one of {', '.join(names)} is named twice")
        super().__init__(requests, resort, options)
        self._queue_of = [self._taken_by(requests, job) for job in range(len(requests))]
        self._queues: list[list[int]] = [[] for _ in self._limits]
        self._now: float = 0

    def _taken_by(self, requests: Requests, job: int) -> int:
        size, estimate = requests.size[job], requests.estimate[job]
        for place, one in enumerate(self._limits):
            if size <= one.processors and estimate <= one.estimate_s:
                return place
        raise OptionError(f"--queue: none takes a job of {plural(size, 'processor')} for {estimate:g} s")

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
        self._counts[STARTED] = 0
        self._release(now, ended)
        for job in arrived:
            insort(self._queues[self._queue_of[job]], job)
        if self._resort is not None:
            for queue in self._queues:
                self._resort(now, queue)
        active = [place for place, one in enumerate(self._limits) if one.hours.holds(now)]
        while (place := self._chosen(active)) is not None:
            start(self._state, now, self._queues[place].pop(0))
        return self._state.started[: self._counts[STARTED]]  # type: ignore[return-value]

    def _chosen(self, active: Sequence[int]) -> int | None:
        """Return the queue whose head starts next, None where none fits."""
        free = self._unused()
        fitting = [
            place for place in active if self._queues[place] and self._size[self._queues[place][0]] <= free
        ]
        return min(fitting, key=self._rank, default=None)

    def _rank(self, place: int) -> tuple[float, float, int]:
        """Return the key by which a head is chosen: the smallest, among equals the first job."""
        job = self._queues[place][0]
        size = -self._size[job] if self._options.heads == "best-fit" else 0
        return size, -self._limits[place].priority, job
