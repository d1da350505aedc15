"""A copy of the machine on which EASY plays the same jobs: how long would they have waited?

It is the yardstick of the promises that follow a log's own waits. A job's run time is known to it once the
job has ended on the real machine; until then it runs up to its estimate. EASY is that of backfilling/easy.py.
"""

from __future__ import annotations

from math import inf

from ...cluster.kernels.harness import Ints, kernel
from ..backfilling.deep_queue import DEEP, HEAD
from ..backfilling.easy import QUEUED, RUNNING, step
from .promise_state import COPY_NOW, LONGEST, NEXT_END, PromisedState


@kernel
def longest_wait(state: PromisedState, now: float) -> float:
    """Return the longest wait on the copy up to now, of jobs that wait on it as well."""
    longest: float = state.copy.clock[LONGEST]
    easy = state.copy.easy
    if easy.deep.counts[DEEP] > 0:
        longest = max(longest, now - state.jobs.submit[easy.deep.counts[HEAD]])
    elif easy.counts[QUEUED] > 0:
        longest = max(longest, now - state.jobs.submit[easy.queue[0]])
    return longest


@kernel
def follow(state: PromisedState, now: float) -> None:
    """Play the copy up to now."""
    clock = state.copy.clock
    while clock[NEXT_END] <= now:
        clock[COPY_NOW] = max(clock[COPY_NOW], clock[NEXT_END])
        ends = _take_ended(state, clock[NEXT_END])
        make_pass(state, clock[COPY_NOW], ends, state.copy.ended[:0])
    clock[COPY_NOW] = now


@kernel
def end_of(state: PromisedState, job: int) -> float:
    """Return when a job ends on the copy, as far as is known."""
    run = state.jobs.run[job]
    end: float = state.copy.start[job] + (run if run >= 0 else state.jobs.estimate[job])
    return end


@kernel
def _take_ended(state: PromisedState, until: float) -> int:
    """Take the jobs that have ended off those that run; return how many, ``copy.ended`` has them."""
    copy = state.copy
    kept = ended = 0
    copy.clock[NEXT_END] = inf
    for place in range(copy.easy.counts[RUNNING]):
        job = copy.running[place]
        end = end_of(state, job)
        if end <= until:
            copy.ended[ended] = job
            ended += 1
        else:
            copy.running[kept] = job
            copy.clock[NEXT_END] = min(copy.clock[NEXT_END], end)
            kept += 1
    return ended


@kernel
def make_pass(state: PromisedState, now: float, ends: int, arrived: Ints) -> None:
    """Make EASY's pass on the copy; ``copy.ended`` has those that end."""
    copy = state.copy
    running = copy.easy.counts[RUNNING] - ends
    for place in range(step(copy.easy, now, copy.ended, ends, arrived, len(arrived))):
        job = copy.easy.started[place]
        copy.start[job] = now
        copy.clock[LONGEST] = max(copy.clock[LONGEST], now - state.jobs.submit[job])
        copy.clock[NEXT_END] = min(copy.clock[NEXT_END], end_of(state, job))
        copy.running[running + place] = job
