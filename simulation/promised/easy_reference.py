"""A copy of the machine on which EASY plays the same jobs: how long would they have waited?

It is the yardstick of the promises that follow a log's own waits. A job's run time is known to it once the
job has ended on the real machine; until then it runs up to its estimate. EASY is that of easy.py.
"""

from __future__ import annotations

from .promise_state import COPY_FREE, COPY_NOW, COPY_RUNNING, COPY_WAITING, LONGEST, PromisedState


def longest_wait(state: PromisedState, now: float) -> float:
    """Return the longest wait on the copy up to now, of jobs that wait on it as well."""
    longest: float = state.copy.clock[LONGEST]
    if state.machine.counts[COPY_WAITING] > 0:
        longest = max(longest, now - state.jobs.submit[state.copy.waiting[0]])
    return longest


def follow(state: PromisedState, now: float) -> None:
    """Play the copy up to now."""
    counts, copy = state.machine.counts, state.copy
    while True:
        first = -1.0
        for place in range(counts[COPY_RUNNING]):
            end = _end(state, copy.job[place])
            if first < 0 or end < first:
                first = end
        if first < 0 or first > now:
            break
        copy.clock[COPY_NOW] = max(copy.clock[COPY_NOW], first)
        _release(state, first)
        make_pass(state, copy.clock[COPY_NOW])
    copy.clock[COPY_NOW] = now


def _end(state: PromisedState, job: int) -> float:
    """Return when a job ends on the copy, as far as is known."""
    run = state.jobs.run[job]
    end: float = state.copy.start[job] + (run if run >= 0 else state.jobs.estimate[job])
    return end


def _release(state: PromisedState, until: float) -> None:
    counts, copy = state.machine.counts, state.copy
    kept = 0
    for place in range(counts[COPY_RUNNING]):
        job = copy.job[place]
        if _end(state, job) <= until:
            counts[COPY_FREE] += state.jobs.size[job]
        else:
            copy.job[kept] = job
            copy.end[kept] = copy.end[place]
            kept += 1
    counts[COPY_RUNNING] = kept


def make_pass(state: PromisedState, now: float) -> None:
    """Make EASY's pass on the copy."""
    jobs, counts, copy = state.jobs, state.machine.counts, state.copy
    shadow = extra = 0.0
    has_head = False
    kept = 0
    for place in range(counts[COPY_WAITING]):
        job = copy.waiting[place]
        size, end = jobs.size[job], now + jobs.estimate[job]
        starts = size <= counts[COPY_FREE]
        if starts and has_head and end > shadow:
            starts = size <= extra
            extra -= size if starts else 0
        if starts:
            _start(state, now, job)
            continue
        copy.waiting[kept] = job
        kept += 1
        if not has_head:
            has_head = True
            free = counts[COPY_FREE]
            for running in range(counts[COPY_RUNNING]):
                if free >= size and copy.end[running] > shadow:
                    break
                shadow = copy.end[running]
                free += jobs.size[copy.job[running]]
            extra = free - size
    counts[COPY_WAITING] = kept


def _start(state: PromisedState, now: float, job: int) -> None:
    jobs, counts, copy = state.jobs, state.machine.counts, state.copy
    copy.start[job] = now
    copy.clock[LONGEST] = max(copy.clock[LONGEST], now - jobs.submit[job])
    counts[COPY_FREE] -= jobs.size[job]
    end = now + jobs.estimate[job]
    place = counts[COPY_RUNNING]
    while place > 0 and copy.end[place - 1] > end:
        copy.end[place] = copy.end[place - 1]
        copy.job[place] = copy.job[place - 1]
        place -= 1
    copy.end[place] = end
    copy.job[place] = job
    counts[COPY_RUNNING] += 1
