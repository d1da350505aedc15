"""Conservative backfilling: every job has a reservation (Chapter 3; Feitelson's conservative backfilling).

A job is given its reservation on arrival: the earliest time from which its processors stay free for its
estimate beside all running jobs and all earlier reservations. Jobs that arrive together are served in
queue order. When a job ends before its estimate the schedule is compressed: in queue order each waiting
job moves to the earliest time that all others leave it, never a later one; rounds are made until no job
moves. A job starts when its reservation comes.

Since no job can move alone, a reservation begins now or where another job's estimated end frees
processors, and by induction such an end is an event: no start waits for a timer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from math import inf

from ...negotiation.runtime.node_profile import Profile
from ..log_columns import Requests
from .orderings import Resort
from .start_rules import StartRules


class Conservative:
    """Conservative backfilling over a queue sorted by job number, or by ``resort``.

    Args:
        requests: the jobs.
        resort: sorts jobs before they are given reservations.
        rules: when jobs may start beyond processors; who passes any must ask for a step at planned starts.

    """

    def __init__(
        self, requests: Requests, resort: Resort | None = None, rules: StartRules | None = None
    ) -> None:
        self._size = requests.size
        self._estimate = requests.estimate
        self._resort = resort
        self._rules = rules
        self._profile = Profile(0, requests.processors)
        self._queue: list[int] = []
        # Where a waiting job's reservation begins, and where a running job began.
        self._start_of: dict[int, float] = {}

    @property
    def loop(self) -> str | None:
        """The compiled loop that gives the same starts."""
        return None if self._resort or self._rules else "conservative"

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Release, compress, reserve for the arrivals, start what is due."""
        freed_until = self._release(now, ended)
        self._profile.advance(now)
        queue = self._queue
        if freed_until > now:
            if self._resort:
                self._resort(now, queue)
            self._compress(now, freed_until)
        for job in self._in_order(now, arrived):
            self._reserve(job, self._earliest(job, now))
            insort(queue, job)
        return self._due(now)

    def _due(self, now: float) -> list[int]:
        """Return the jobs whose reservations have come; they leave the queue."""
        started = [job for job in self._queue if self._start_of[job] <= now]
        if started:
            self._queue = [job for job in self._queue if self._start_of[job] > now]
        return started

    def _in_order(self, now: float, arrived: Sequence[int]) -> Sequence[int]:
        if self._resort is None or len(arrived) == 1:
            return arrived
        jobs = list(arrived)
        self._resort(now, jobs)
        return jobs

    def _release(self, now: float, ended: Sequence[int]) -> float:
        """Give back what ended jobs held of their estimates; return until when anything was given."""
        freed_until = now
        for job in ended:
            estimated_end = self._start_of.pop(job) + self._estimate[job]
            self._hold(job, now, estimated_end, +1)
            freed_until = max(freed_until, estimated_end)
        return freed_until

    def _compress(self, now: float, freed_until: float) -> None:
        """Move waiting jobs in queue order as early as the others allow, round after round until none moves.

        Before, none could move. So one can only move to a time before the end of what has been freed
        since, and only if it is no larger than the most processors free until then: most jobs are known
        by one comparison.
        """
        profile, size, estimate = self._profile, self._size, self._estimate
        most = profile.most(freed_until)
        moved = True
        while moved:
            moved = False
            for job in self._queue:
                if size[job] > most:
                    continue
                # Its own processors are free to it from its reservation on: the search may end there.
                current = self._start_of[job]
                start = self._earliest(job, now, before=current, latest=freed_until)
                if start < current:
                    self._hold(job, current, current + estimate[job], +1)
                    self._reserve(job, start)
                    freed_until = max(freed_until, current + estimate[job])
                    most = profile.most(freed_until)
                    moved = True

    def _earliest(self, job: int, now: float, *, before: float = inf, latest: float = inf) -> float:
        """Return a job's earliest start beside all others (Profile.earliest)."""
        if self._rules is not None:
            return self._rules.earliest(self._profile, job, now, before=before, latest=latest)
        return self._profile.earliest(self._size[job], self._estimate[job], before=before, latest=latest)

    def _reserve(self, job: int, start: float) -> None:
        self._start_of[job] = start
        self._hold(job, start, start + self._estimate[job], -1)

    def _hold(self, job: int, start: float, end: float, sign: int) -> None:
        """Give back (+1) or take (−1) what a job holds over a time."""
        self._profile.add(start, end, sign * self._size[job])
        if self._rules is not None:
            self._rules.add(job, start, end, sign)
