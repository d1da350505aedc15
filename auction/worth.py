"""Objective ``response``: the worth of a start by the bounded slowdown that it saves."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import sqrt

from ..cluster.jobs import Job

#: Bounded slowdown counts shorter run times as this many seconds.
SHORTEST_S = 10.0
#: Worth of a second of the shortest job's wait: integers, as the auctions compare them exactly.
_STEPS = 1_000_000
#: Jobs of a user that tell how long the next one may run.
REMEMBERED = 20


class UsedShares:
    """What share of their time limits the last jobs of each user ran for."""

    def __init__(self) -> None:
        self._last: dict[str, deque[float]] = {}

    def note(self, user: str, share: float) -> None:
        """Remember a job that has ended; nobody's jobs are not remembered."""
        if user:
            self._last.setdefault(user, deque(maxlen=REMEMBERED)).append(share)

    def of(self, user: str) -> float:
        """Return the mean share of the last 20 jobs; 1 where none has ended."""
        last = self._last.get(user)
        return sum(last) / len(last) if last else 1.0


def worth_of(job: Job, waited_s: float, used_share: float = 1.0) -> int:
    """Return what a second less of a job's wait is worth, at least 1.

    It saves 1 / max(estimate, 10 s) of bounded slowdown. That grows with the fourth root of the slowdown that
    the job has by now, 1 + wait / estimate, so that equals are served by their waits. A job without a time
    limit is worth least.

    Args:
        job: its time limit counts.
        waited_s: so far.
        used_share: the share of its limit that is its estimate, above 0.
    """
    if job.time_limit_s is None:
        return 1
    length = max(job.time_limit_s * used_share, SHORTEST_S)
    saved = sqrt(sqrt(1.0 + max(waited_s, 0.0) / length)) * SHORTEST_S / length
    return max(1, round(_STEPS * saved))


def valued(job: Job, now: float | None) -> Job:
    """Return a job of a queue whose priority is its worth; one without a submission has not waited."""
    waited = 0.0 if now is None or job.submit_time is None else now - job.submit_time
    return replace(job, priority=worth_of(job, waited))
