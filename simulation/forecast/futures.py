"""Many futures of one moment: its queue is played from now on, with run times that are drawn.

The functions below ``starts_of`` are kernels, compiled by numba where it is installed.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from ...cluster.kernels.harness import Entry, Floats, Ints, kernel
from ...cluster.timeline.count_profile import CountProfile, ProfileColumns
from ..run_times import BINS, ShareTable, mixed_shares, run_time_at
from .futures_kernel import COUNTED, NUMBERS, FutureJobs, FutureMachine, FutureRules, Targets, play_future

#: Jobs times futures from which on a second thread pays.
_MANY = 50_000
#: In place of a random number: the job runs to its limit.
_LIMIT = 2.0


class Past(NamedTuple):
    """Jobs that came before now, copied by those to come, and where each future begins to copy.

    Attributes:
        jobs: in order of submission.
        moment: by future, a time before now.
    """

    jobs: FutureJobs
    moment: Floats


def starts_of(
    table: ShareTable, free: Ints, jobs: FutureJobs, rules: FutureRules, past: Past, targets: Ints
) -> tuple[Floats, Floats]:
    """Return seconds from now until some jobs start: by target and future, and by limits alone.

    Infinite where a job never starts.

    Args:
        table: run times that were learnt.
        free: cores by pool now.
        jobs: those that run or wait, without places for those to come.
        rules: how the queue is served.
        past: what came before.
        targets: places of jobs.
    """
    # The last future is the plan by limits, to which nobody comes.
    jobs = jobs._replace(chance=np.column_stack([jobs.chance, np.full(len(jobs.size), _LIMIT)]))
    past = past._replace(moment=np.append(past.moment, inf))
    futures = jobs.chance.shape[1]
    parts = 2 if len(jobs.size) * futures >= _MANY and (cpu_count() or 1) > 1 else 1
    play, is_compiled = PLAY_FUTURES.for_jobs(1)
    starts = np.zeros((len(targets), futures))
    edges = np.linspace(0, futures, parts + 1).astype(int)

    def play_part(first: int, last: int) -> None:
        wanted = Targets(job=targets, start=np.zeros((len(targets), last - first)))
        some = _with_places(jobs, rules.arrivals, first, last)
        own = past._replace(moment=past.moment[first:last].copy())
        machine = _machine_of(free, len(some.size), is_compiled=is_compiled)
        play(table, some, machine, rules, own, wanted)
        starts[:, first:last] = wanted.start

    if parts == 1:
        play_part(0, futures)
    else:
        with ThreadPoolExecutor(parts) as threads:
            list(threads.map(play_part, edges[:-1].tolist(), edges[1:].tolist()))
    found = np.where(starts < 0, np.inf, np.maximum(starts - rules.now, 0.0))
    return found[:, :-1], found[:, -1]


def _with_places(jobs: FutureJobs, more: int, first: int, last: int) -> FutureJobs:
    """Return the jobs, with places for those to come, in some futures; a thread changes its own."""
    columns = ("size", "limit", "submit", "start", "run", "length", "pools", "rank")
    longer = {name: np.pad(getattr(jobs, name), (0, more)) for name in columns}
    chance = np.ascontiguousarray(jobs.chance[:, first:last])
    return jobs._replace(chance=chance, drawn=np.zeros(chance.shape), **longer)


def _machine_of(free: Ints, jobs: int, *, is_compiled: bool) -> FutureMachine:
    pools = len(free)
    known: Any = (np.zeros(jobs + 1), *np.zeros((2, jobs + 1), np.int64)) if is_compiled else ([], [], [])
    return FutureMachine(
        counts=np.zeros(COUNTED, np.int64),
        numbers=np.zeros(NUMBERS),
        free=free,
        spare=np.zeros(pools, np.int64),
        end=np.zeros(jobs + 1),
        ending=np.zeros(jobs + 1, np.int64),
        known_end=known[0],
        known=known[1],
        queue=known[2],
        key=np.zeros(jobs + 1),
        start=np.full(jobs, -1.0),
        is_wanted=np.zeros(jobs, np.int64),
        taken=np.zeros((jobs, pools), np.int64),
        share=np.zeros(BINS + 1),
        profile=ProfileColumns(np.zeros(2 * jobs + 4), np.zeros(2 * jobs + 4, np.int64), np.ones(1, np.int64))
        if is_compiled
        else CountProfile.flat(0),
    )


@kernel
def play_futures(
    table: ShareTable,
    jobs: FutureJobs,
    machine: FutureMachine,
    rules: FutureRules,
    past: Past,
    targets: Targets,
) -> None:
    """Play one future for each column of ``targets.start``.

    A future draws one run time for each job that runs or waits, at the job's own random number for
    that future, so that futures differ by nothing else when a request changes.
    """
    futures = targets.start.shape[1]
    for job in range(rules.live):
        mixed_shares(table, jobs.rows[job], machine.share)
        elapsed = max(rules.now - jobs.start[job], 0.0) if jobs.start[job] >= 0.0 else 0.0
        for future in range(futures):
            chance, limit = jobs.chance[job, future], jobs.limit[job]
            run = limit if chance == _LIMIT else run_time_at(machine.share, chance, limit, elapsed)
            jobs.drawn[job, future] = run
    for future in range(futures):
        for job in range(rules.live):
            jobs.run[job] = jobs.drawn[job, future]
        count = rules.live + _copy_arrivals(jobs, rules, past, past.moment[future])
        play_future(jobs, machine, rules, count, targets)
        for place in range(len(targets.job)):
            targets.start[place, future] = machine.start[targets.job[place]]


@kernel
def _copy_arrivals(jobs: FutureJobs, rules: FutureRules, past: Past, moment: float) -> int:
    """Let jobs come as they came after a past moment; return how many."""
    came = past.jobs
    known = len(came.submit)
    if known == 0 or moment > rules.now:
        return 0
    low, high = 0, known
    while low < high:
        middle = (low + high) // 2
        if came.submit[middle] > moment:
            high = middle
        else:
            low = middle + 1
    shift = rules.now - moment
    for job in range(rules.live, rules.live + rules.arrivals):
        if low == known:
            # The record ends now: what follows is taken from its beginning.
            low = 0
            shift += max(rules.now - came.submit[0], 1.0)
        jobs.size[job] = came.size[low]
        jobs.limit[job] = came.limit[low]
        jobs.run[job] = came.run[low]
        jobs.submit[job] = came.submit[low] + shift
        jobs.start[job] = -1.0
        jobs.length[job] = came.length[low]
        jobs.pools[job] = came.pools[low]
        jobs.rank[job] = came.rank[low]
        low += 1
    return rules.arrivals


PLAY_FUTURES = Entry(play_futures, "forecasts")
