"""Many futures of one moment, compiled by numba where it is installed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from ...cluster.kernels.harness import Floats, FloatTable, Ints, IntTable
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
        now: in seconds.
        free: cores by pool.
        size, limit, submit, start, length, pools, rank: by job that runs or waits, as in
        ``FutureJobs``.
        held: by job and pool.
        rows: of the table of run times, by level.
        chance: by job and future.
        past: what came before.
        cores: of the machine.
        depth: waiting jobs that a pass looks at.
        by_worth: as in ``FutureRules``.
        longest: seconds of the longest wait so far.
        arrivals: how many jobs come in each future at most.
    """

    now: float
    free: Ints
    size: Ints
    limit: Floats
    submit: Floats
    start: Floats
    length: Floats
    pools: Ints
    rank: Floats
    held: IntTable
    rows: IntTable
    chance: FloatTable
    past: Past
    cores: int
    depth: int
    by_worth: bool
    longest: float
    arrivals: int


def starts_of(table: ShareTable, moment: Moment, targets: Ints) -> tuple[Floats, Floats]:
    """Return seconds from now until the jobs at some places start: by target and future, and by limits alone.

    Infinite where a job never starts.
    """
    futures = moment.chance.shape[1]
    parts = 2 if len(moment.size) * futures >= _MANY and (cpu_count() or 1) > 1 else 1
    (play, _), (plan, _) = PLAY_FUTURES.for_jobs(1), PLAY_PLAN.for_jobs(1)
    starts = np.zeros((len(targets), futures))
    edges = np.linspace(0, futures, parts + 1).astype(int)

    def play_part(first: int, last: int) -> None:
        wanted = Targets(job=targets, start=np.zeros((len(targets), last - first)))
        jobs = _jobs_of(moment, first, last)
        past = moment.past._replace(moment=np.ascontiguousarray(moment.past.moment[first:last]))
        play(table, jobs, _machine_of(moment), _rules_of(moment), past, wanted)
        starts[:, first:last] = wanted.start

    if parts == 1:
        play_part(0, futures)
    else:
        with ThreadPoolExecutor(parts) as threads:
            list(threads.map(play_part, edges[:-1].tolist(), edges[1:].tolist()))
    by_limits = Targets(job=targets, start=np.zeros((len(targets), 1)))
    still = moment._replace(arrivals=0)
    plan(_jobs_of(still, 0, 0), _machine_of(still), _rules_of(still), by_limits)
    return _from_now(starts, moment.now), _from_now(by_limits.start[:, 0], moment.now)


def _from_now(starts: Floats, now: float) -> Floats:
    return np.where(starts < 0, np.inf, np.maximum(starts - now, 0.0))


def _rules_of(moment: Moment) -> FutureRules:
    return FutureRules(
        now=float(moment.now),
        live=len(moment.size),
        arrivals=moment.arrivals,
        depth=moment.depth,
        by_worth=int(moment.by_worth),
        begins=int(bool((moment.submit > moment.now).any())),
        longest=float(moment.longest),
        cores=float(moment.cores),
    )


def _jobs_of(moment: Moment, first: int, last: int) -> FutureJobs:
    """Return the jobs with room for those to come; a thread changes its own."""
    more = moment.arrivals

    def longer(column: Any) -> Any:
        return np.concatenate([column, np.zeros(more, column.dtype)])

    return FutureJobs(
        size=longer(moment.size),
        limit=longer(moment.limit),
        submit=longer(moment.submit),
        start=longer(moment.start),
        run=np.zeros(len(moment.size) + more),
        length=longer(moment.length),
        pools=longer(moment.pools),
        rank=longer(moment.rank),
        held=moment.held,
        rows=moment.rows,
        chance=np.ascontiguousarray(moment.chance[:, first:last]),
        drawn=np.zeros((len(moment.size), last - first)),
    )


def _machine_of(moment: Moment) -> FutureMachine:
    jobs, pools = len(moment.size) + moment.arrivals, len(moment.free)
    return FutureMachine(
        counts=np.zeros(COUNTED, np.int64),
        numbers=np.zeros(NUMBERS),
        free=moment.free,
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
