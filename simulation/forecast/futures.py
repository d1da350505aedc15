"""Many futures of one moment, compiled by numba where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import run_times
from ..compiling import Loop, compile_loops
from ..promised import heaps
from ..run_times import BINS, ShareTable
from . import futures_kernel
from .futures_kernel import (
    COUNTED,
    NUMBERS,
    FutureJobs,
    FutureMachine,
    FutureRules,
    Past,
    Targets,
    play_futures,
    play_plan,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Jobs times futures from which on a second thread pays.
_MANY = 50_000
_MODULES = (heaps, run_times, futures_kernel)


class Moment(NamedTuple):
    """The machine and its queue now, and what may come.

    Attributes:
        now: in seconds.
        free: cores by pool.
        size, limit, submit, start, length, pools, rank: by job that runs or waits, as in ``FutureJobs``.
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
    held: Ints
    rows: Ints
    chance: Floats
    past: Past
    cores: int
    depth: int
    by_worth: bool
    longest: float
    arrivals: int


@cache
def compiled_futures() -> tuple[Loop, ...] | None:
    """Return the loops compiled, None without a numba that works."""
    return compile_loops(_MODULES, _entries, allocates=False)


def starts_of(table: ShareTable, moment: Moment, targets: Ints) -> tuple[Floats, Floats]:
    """Return seconds from now until the jobs at some places start: by target and future, and by limits alone.

    Infinite where a job never starts.
    """
    futures = moment.chance.shape[1]
    parts = 2 if len(moment.size) * futures >= _MANY and (cpu_count() or 1) > 1 else 1
    play, plan = compiled_futures() or (play_futures, play_plan)
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


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, ...]:
    """Return the compiled entries; numba's cache key holds what they close over, the version."""
    futures, plan = play_futures, play_plan

    @compile_
    def futures_entry(table, jobs, machine, rules, past, targets):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            futures(table, jobs, machine, rules, past, targets)

    @compile_
    def plan_entry(jobs, machine, rules, targets):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            plan(jobs, machine, rules, targets)

    return futures_entry, plan_entry
