"""Many futures of one moment, compiled by numba where it is installed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import NamedTuple

import numpy as np

from ...cluster.kernels.harness import Floats, Ints
from ..run_times import BINS, ShareTable
from .futures_kernel import (
    COUNTED,
    NUMBERS,
    PLAY_FUTURES,
    PLAY_PLAN,
    FutureJobs,
    FutureMachine,
    FutureRules,
    Past,
    Targets,
)

#: Jobs times futures from which on a second thread pays.
_MANY = 50_000


class Moment(NamedTuple):
    """The machine and its queue now, and what may come.

    Attributes:
        free: cores by pool.
        jobs: those that run or wait, without places for those to come.
        rules: how the queue is served.
        past: what came before.
    """

    free: Ints
    jobs: FutureJobs
    rules: FutureRules
    past: Past


def starts_of(table: ShareTable, moment: Moment, targets: Ints) -> tuple[Floats, Floats]:
    """Return seconds from now until the jobs at some places start: by target and future, and by limits alone.

    Infinite where a job never starts.
    """
    jobs, rules = moment.jobs, moment.rules
    futures = jobs.chance.shape[1]
    parts = 2 if len(jobs.size) * futures >= _MANY and (cpu_count() or 1) > 1 else 1
    (play, _), (plan, _) = PLAY_FUTURES.for_jobs(1), PLAY_PLAN.for_jobs(1)
    starts = np.zeros((len(targets), futures))
    edges = np.linspace(0, futures, parts + 1).astype(int)

    def play_part(first: int, last: int) -> None:
        wanted = Targets(job=targets, start=np.zeros((len(targets), last - first)))
        some = _with_places(jobs, rules.arrivals, first, last)
        past = moment.past._replace(moment=np.ascontiguousarray(moment.past.moment[first:last]))
        play(table, some, _machine_of(moment.free, len(some.size)), rules, past, wanted)
        starts[:, first:last] = wanted.start

    if parts == 1:
        play_part(0, futures)
    else:
        with ThreadPoolExecutor(parts) as threads:
            list(threads.map(play_part, edges[:-1].tolist(), edges[1:].tolist()))
    by_limits = Targets(job=targets, start=np.zeros((len(targets), 1)))
    still = _with_places(jobs, 0, 0, 0)
    plan(still, _machine_of(moment.free, len(still.size)), rules._replace(arrivals=0), by_limits)
    return _from_now(starts, rules.now), _from_now(by_limits.start[:, 0], rules.now)


def _from_now(starts: Floats, now: float) -> Floats:
    return np.where(starts < 0, np.inf, np.maximum(starts - now, 0.0))


def _with_places(jobs: FutureJobs, more: int, first: int, last: int) -> FutureJobs:
    """Return the jobs with places for those to come, in some of the futures; a thread changes its own."""
    columns = ("size", "limit", "submit", "start", "run", "length", "pools", "rank")
    longer = {
        name: np.concatenate([column, np.zeros(more, column.dtype)])
        for name in columns
        for column in (getattr(jobs, name),)
    }
    chance = np.ascontiguousarray(jobs.chance[:, first:last])
    return jobs._replace(chance=chance, drawn=np.zeros(chance.shape), **longer)


def _machine_of(free: Ints, jobs: int) -> FutureMachine:
    pools = len(free)
    return FutureMachine(
        counts=np.zeros(COUNTED, np.int64),
        numbers=np.zeros(NUMBERS),
        free=free,
        spare=np.zeros(pools, np.int64),
        end=np.zeros(jobs + 1),
        ending=np.zeros(jobs + 1, np.int64),
        known_end=np.zeros(jobs + 1),
        known=np.zeros(jobs + 1, np.int64),
        queue=np.zeros(jobs + 1, np.int64),
        key=np.zeros(jobs + 1),
        start=np.full(jobs, -1.0),
        is_wanted=np.zeros(jobs, np.int64),
        taken=np.zeros((jobs, pools), np.int64),
        share=np.zeros(BINS + 1),
    )
