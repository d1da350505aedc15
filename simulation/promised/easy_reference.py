"""A copy of the machine on which EASY plays the same jobs: how long would they have waited?

It is the yardstick of the promises that follow a log's own waits. A job's run time is known to it once the
job has ended on the real machine; until then it runs up to its estimate. EASY is that of backfilling/easy.py.
"""

from __future__ import annotations

from ...cluster.kernels.column_operations import insert
from ...cluster.kernels.harness import Ints, kernel
from ..backfilling.easy import QUEUED, RUNNING, STARTED, make_pass, release
from .promise_state import COPY_NOW, LONGEST, PromisedState


@kernel
def longest_wait(state: PromisedState, now: float) -> float:
    """Return the longest wait on the copy up to now, of jobs that wait on it as well."""
    longest: float = state.copy.clock[LONGEST]
    easy = state.copy.easy
    if easy.counts[QUEUED] > 0:
        longest = max(longest, now - state.jobs.submit[easy.queue[0]])
    return longest


@kernel
def follow(state: PromisedState, now: float) -> None:
    """Play the copy up to now."""
    copy = state.copy
    while True:
        first = -1.0
        for place in range(copy.easy.counts[RUNNING]):
            end = _end(state, copy.running[place])
            if first < 0 or end < first:
                first = end
        if first < 0 or first > now:
            break
        copy.clock[COPY_NOW] = max(copy.clock[COPY_NOW], first)
        _release(state, first)
        _make_pass(state, copy.clock[COPY_NOW])
    copy.clock[COPY_NOW] = now


@kernel
def _end(state: PromisedState, job: int) -> float:
    """Return when a job ends on the copy, as far as is known."""
    run = state.jobs.run[job]
    end: float = state.copy.start[job] + (run if run >= 0 else state.jobs.estimate[job])
    return end


@kernel
def arrive(state: PromisedState, now: float, jobs: Ints) -> None:
    """Let jobs come to the copy."""
    counts = state.copy.easy.counts
    for job in jobs:
        insert(state.copy.easy.queue, counts[QUEUED], counts[QUEUED], job)
        counts[QUEUED] += 1
    if len(jobs) > 0:
        _make_pass(state, now)


@kernel
def _release(state: PromisedState, until: float) -> None:
    copy = state.copy
    kept = 0
    for place in range(copy.easy.counts[RUNNING]):
        job = copy.running[place]
        if _end(state, job) <= until:
            release(copy.easy, job)
        else:
            copy.running[kept] = job
            kept += 1


@kernel
def _make_pass(state: PromisedState, now: float) -> None:
    """Make EASY's pass on the copy."""
    copy, counts = state.copy, state.copy.easy.counts
    running = counts[RUNNING]
    counts[STARTED] = 0
    make_pass(copy.easy, now)
    for place in range(counts[STARTED]):
        job = copy.easy.started[place]
        copy.start[job] = now
        copy.clock[LONGEST] = max(copy.clock[LONGEST], now - state.jobs.submit[job])
        copy.running[running + place] = job
