"""Speculative backfilling: a job that may delay the head starts on the bet that it ends early.

Chapter 3, the seventh parameter; what becomes of a lost bet is its simplest alternative, after
Lawson and Smirni: the job is stopped and started again later.

docs/policies.md (speculative) says what a pass does. EASY's shadow time and *extra* count the
processors of bets as free. A job that was not stopped runs on like any other.

So the head starts no later than if nobody had bet since it was blocked. F = 1 is EASY exactly: a
bet would need no luck.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf

from ..backfilling.easy import EXTRA, FREE, IS_KNOWN, STARTED, may_start, shadow_time, start
from ..log_columns import Requests
from ..simulate_options import PolicyOptions
from ..stepping import Changes, Resort
from .selection import QueuePolicy


class Speculative(QueuePolicy):
    """Speculative backfilling over a queue sorted by job number, or before a pass by ``resort``."""

    stopped: Sequence[int] = ()

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        # All running jobs but the bets are in ``_state``; its free processors count those of bets.
        super().__init__(requests, resort, options)
        # Bets by job: when each started, in the order in which they were made.
        self._bets: dict[int, float] = {}
        self._in_bets = 0
        # The jobs that were the head when a bet was made.
        self._against: set[int] = set()
        self._stopped_before: Counter[int] = Counter()

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Make one pass; see the module's text for the rule."""
        self.stopped = ()
        return super().step(now, seen)

    def backfill(self, now: float) -> None:
        """Start what EASY would, then bet."""
        state, counts, need = self._state, self._counts, self._size[self._queue[0]]
        state.shadow[0], counts[EXTRA] = shadow_time(self._state, need)
        counts[IS_KNOWN] = 1
        for job in self._queue[1:]:
            if self._size[job] <= self._unused() and may_start(state, now, job, need):
                start(state, now, job)
        self._bet(now, state.shadow[0])

    def _release(self, now: float, ended: Iterable[int]) -> None:
        for job in ended:
            if self._bets.pop(job, None) is None:
                super()._release(now, (job,))
            else:
                self._in_bets -= self._size[job]

    def _unused(self) -> int:
        return int(self._counts[FREE]) - self._in_bets

    def _from_front(self, now: float) -> None:
        """Start from the head while it fits, in the last resort by calling bets off."""
        while self._queue and self._size[self._queue[0]] <= self._counts[FREE]:
            head = self._queue.pop(0)
            if self._size[head] > self._unused():
                called = self._call_off(self._size[head] - self._unused())
                self._win()
                self._wait(now, called)
            start(self._state, now, head)
            if head in self._against:
                self._win()

    def _call_off(self, need: int) -> list[int]:
        """Stop bets until so many processors are free: the latest first, none without need."""
        size = self._size
        called: list[int] = []
        for job in reversed(self._bets):
            if need <= 0:
                break
            called.append(job)
            need -= size[job]
        stopped: list[int] = []
        for job in called:
            if need + size[job] <= 0:
                need += size[job]
                continue
            self._stop(job)
            stopped.append(job)
        return stopped

    def _stop(self, job: int) -> None:
        del self._bets[job]
        self._in_bets -= self._size[job]
        self._stopped_before[job] += 1
        self.stopped = (*self.stopped, job)

    def _win(self) -> None:
        """Let the bets that still run be jobs like all others."""
        for job, begun in self._bets.items():
            start(self._state, begun, job)
        # They started in the step that bet on them.
        self._counts[STARTED] -= len(self._bets)
        self._bets.clear()
        self._in_bets = 0
        self._against.clear()

    def _bet(self, now: float, shadow: float) -> None:
        """Start what has enough of its estimate left until the shadow time."""
        counts, started, stops = self._counts, self._state.started, self._options.stops
        gone = set(started[: counts[STARTED]])
        for job in self._queue[1:]:
            if self._size[job] > self._unused() or job in gone or self._stopped_before[job] >= stops:
                continue
            if shadow - now >= self._needed(job):
                self._bets[job] = now
                self._in_bets += self._size[job]
                self._against.add(self._queue[0])
                started[counts[STARTED]] = job
                counts[STARTED] += 1

    def _needed(self, job: int) -> float:
        """Return how long a job must have until the shadow time, to start."""
        return self._options.speculation * self._estimate[job]


class TrialRuns(Speculative):
    """Speculative backfilling by short test runs (Chapter 3; Perkovic and Keleher).

    A bet is a test of so many seconds, begun only if it is over by the shadow time. A job that has
    not ended then is stopped and waits again. The test tightens its estimate from below: it runs
    longer, so its next test is twice as long. While nobody waits tests are jobs like all others.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        super().__init__(requests, resort, options)
        self._seconds = options.test_run_s or inf
        # Tests that are over in this step.
        self._over: list[int] = []

    @property
    def alarm(self) -> float:
        """When the first of the tests is over."""
        return min((start + self._needed(job) for job, start in self._bets.items()), default=inf)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Stop the tests that are over, then make the pass."""
        ended, _ = seen
        self._over = [
            job for job, start in self._bets.items() if job not in ended and start + self._needed(job) <= now
        ]
        started = super().step(now, seen)
        if not self._queue:
            # Nobody waits for what they hold.
            super()._win()
        return started

    def _wait(self, now: float, jobs: Iterable[int]) -> None:
        over, self._over = self._over, []
        for job in over:
            self._stop(job)
        super()._wait(now, [*over, *jobs])

    def _win(self) -> None:
        """Tests stay tests."""

    def _needed(self, job: int) -> float:
        """Return the length of a job's next test, or of the one that runs."""
        return self._seconds * float(2 ** self._stopped_before[job])
