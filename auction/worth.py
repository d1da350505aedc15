"""Objective ``response``: the worth of a start by the bounded slowdown that it saves."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from ..cluster.jobs import Job

#: Bounded slowdown counts shorter run times as this many seconds.
SHORTEST_S = 10.0
#: Worth of a second of the shortest job's wait: integers, as the auctions compare them exactly.
_STEPS = 1_000_000


def worth_of(job: Job, waited_s: float) -> int:
    """Return what a second less of a job's wait is worth, at least 1.

    It saves 1 / max(estimate, 10 s) of bounded slowdown. That grows with the fourth root of the slowdown that
    the job has by now, 1 + wait / estimate, so that equals are served by their waits. A job without a time
    limit is worth least.
    """
    if job.time_limit_s is None:
        return 1
    length = max(float(job.time_limit_s), SHORTEST_S)
    saved = sqrt(sqrt(1.0 + max(waited_s, 0.0) / length)) * SHORTEST_S / length
    return max(1, round(_STEPS * saved))


def valued(job: Job, now: float | None) -> Job:
    """Return a job of a queue whose priority is its worth; one without a submission has not waited."""
    waited = 0.0 if now is None or job.submit_time is None else now - job.submit_time
    return replace(job, priority=worth_of(job, waited))
