"""Whole logs as one compiled loop of events: ends, arrivals, then a step of EASY or conservative backfilling.

``simulate_counts`` plays every policy in plain Python by the same rules (logs/counts.py); this loop
plays the kernels that numba compiles, where that is possible and pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...cluster.kernels.column_operations import pop, push
from ...cluster.kernels.harness import Column, Entry, Floats, Ints, kernel
from ..log_columns import LogColumns, Workload
from ..stepping import REPORT_EVERY, CountPolicy, loop_of
from .conservative import ConservativeState, conservative_columns
from .conservative import step as step_conservative
from .deep_queue import deep_queue_of
from .easy import QUEUED, EasyState, easy_columns
from .easy import step as step_easy

#: What a loop returns: there is more to play, all have ended, it needs the deep queue's index.
PAUSED, DONE, WANTS_INDEX = 0, 1, 2
#: Places of ``counts``: jobs that have arrived, running ones; jobs that end now, and that arrive
#: now.
ARRIVED, RUNNING, ENDS, ARRIVALS, COUNTED = 0, 1, 2, 3, 4


class LogEvents(NamedTuple):
    """A log and what runs of it; jobs are numbered by their place in the queue's order.

    Attributes:
        submit: in order of submission, then infinity.
        place: in order of submission, each job's number.
        run: run times by number.
        start: by number; the answer.
        counts: see above.
        end, ending: a heap of true ends with their jobs.
        ended: jobs that end at one time.
        arrived: jobs that arrive at one time, by rising number.
    """

    submit: Floats
    place: Ints
    run: Floats
    start: Floats
    counts: Ints
    end: Floats
    ending: Ints
    ended: Ints
    arrived: Ints


@kernel
def next_event(log: LogEvents) -> float:
    """Take the next ends and arrivals off the log; return their time, infinite where there are none."""
    counts, submit, arrived = log.counts, log.submit, log.arrived
    now: float = submit[counts[ARRIVED]]
    if counts[RUNNING] > 0:
        now = min(now, log.end[0])
    ends = arrivals = 0
    if now < inf:
        while counts[RUNNING] > 0 and log.end[0] == now:
            log.ended[ends] = log.ending[0]
            ends += 1
            counts[RUNNING] = pop(log.end, log.ending, counts[RUNNING])
        while submit[counts[ARRIVED]] == now:
            job = log.place[counts[ARRIVED]]
            place = arrivals
            while place > 0 and arrived[place - 1] > job:
                arrived[place] = arrived[place - 1]
                place -= 1
            arrived[place] = job
            counts[ARRIVED] += 1
            arrivals += 1
    counts[ENDS], counts[ARRIVALS] = ends, arrivals
    return now


@kernel
def let_run(log: LogEvents, now: float, started: Column, count: int) -> None:
    """Let jobs run from now on."""
    for place in range(count):
        job = started[place]
        log.start[job] = now
        log.counts[RUNNING] = push(log.end, log.ending, log.counts[RUNNING], now + log.run[job], job)


@kernel
def play_easy(log: LogEvents, state: EasyState, until: int) -> int:
    """Play EASY until so many jobs have arrived; return PAUSED, DONE where all have ended, or WANTS_INDEX."""
    counts = log.counts
    while counts[ARRIVED] < until:
        now = next_event(log)
        if now == inf:
            return DONE
        started = step_easy(state, now, log.ended, counts[ENDS], log.arrived, counts[ARRIVALS])
        let_run(log, now, state.started, started)
        if state.counts[QUEUED] > state.depth[0] and len(state.deep.lowest) == 0:
            return WANTS_INDEX
    return PAUSED


@kernel
def play_conservative(log: LogEvents, state: ConservativeState, until: int) -> int:
    """Play conservative backfilling until so many jobs have arrived; return PAUSED or DONE."""
    counts = log.counts
    while counts[ARRIVED] < until:
        now = next_event(log)
        if now == inf:
            return DONE
        started = step_conservative(state, now, log.ended, counts[ENDS], log.arrived, counts[ARRIVALS])
        let_run(log, now, state.started, started)
    return PAUSED


#: The policies that loops play.
LOOPS = {
    "easy": Entry(play_easy, "EASY", many=200_000),
    "conservative": Entry(play_conservative, "conservative backfilling", many=10_000),
}


def play_compiled(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
) -> list[float] | None:
    """Return the starts of a log's jobs under a policy; None where no loop plays it, or does not pay.

    Args:
        workload: the log.
        policy: a fresh one.
        progress: called now and then with the number of jobs that have arrived.
    """
    name = loop_of(policy)
    loop, is_compiled = (None, False) if name is None else LOOPS[name].for_jobs(len(workload))
    columns = workload.columns() if is_compiled else None
    if name is None or loop is None or columns is None:
        return None
    start = play_columns(name, loop, columns, workload.requests.processors, policy, progress)
    starts: list[float] = (start.astype(np.int64) if columns.is_whole else start).tolist()
    return starts


def play_columns(
    name: str,
    loop: Callable[..., int],
    columns: LogColumns,
    processors: int,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
) -> Floats:
    """Return the starts in order of submission that a loop gives, compiled or not."""
    job_at: Sequence[int] | None = getattr(policy, "job_at", None)
    submit, size, estimate, run, _ = columns
    jobs = len(size)
    place = np.arange(jobs)
    if job_at is not None:
        order = np.array(job_at, np.int64)
        place[order] = np.arange(jobs)
        size, estimate, run = size[order], estimate[order], run[order]
    log = _events(submit, place, run, processors)
    state: Any
    if name == "easy":
        state = easy_columns(processors, size, estimate, is_compiled=True)
    else:
        state = conservative_columns(processors, size, estimate, is_compiled=True)
    until = step = REPORT_EVERY if progress else jobs + 1
    while (status := loop(log, state, until)) != DONE:
        if status == WANTS_INDEX:
            state = state._replace(deep=deep_queue_of(size, is_compiled=True))
            continue
        if progress:
            progress(min(until, jobs))
        until += step
    return log.start[place]


def _events(submit: Floats, place: Ints, run: Floats, processors: int) -> LogEvents:
    jobs = len(place)
    running = min(jobs, processors) + 1
    return LogEvents(
        submit=submit,
        place=place,
        run=run,
        start=np.empty(jobs),
        counts=np.zeros(COUNTED, np.int64),
        end=np.zeros(running),
        ending=np.zeros(running, np.int64),
        ended=np.zeros(running, np.int64),
        arrived=np.zeros(jobs + 1, np.int64),
    )
