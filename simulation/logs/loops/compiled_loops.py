"""The loops compiled by numba where it is installed, and what of a log they play."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...compiling import Loop, compile_loops
from ...log_columns import LogColumns, Workload
from ...promised import heaps
from ...stepping import REPORT_EVERY, CountPolicy, loop_of
from . import conservative_kernel, count_profile, deep, easy_kernel, running_kernel
from .loop_state import DONE, WANTS_INDEX, LogJobs, index_of, machine_of, no_index, plan_of

#: Jobs that take a policy longer in plain Python than numba takes to be loaded.
MANY = {"easy": 200_000, "conservative": 10_000}
#: The policies that loops play.
LOOPS = tuple(MANY)
_MODULES = (heaps, count_profile, deep, running_kernel, easy_kernel, conservative_kernel)


@cache
def compiled_loops() -> dict[str, Loop] | None:
    """Return the compiled loops by policy, None without a numba that works."""
    loops = compile_loops(_MODULES, _entries, allocates=False)
    return None if loops is None else dict(zip(MANY, loops, strict=True))


def loop_for(policy: CountPolicy, jobs: int) -> tuple[str, Loop] | None:
    """Return the loop that gives a policy's starts, and its name; None for none, or none that pays."""
    name = loop_of(policy)
    if name is None:
        return None
    is_loaded = compiled_loops.cache_info().currsize > 0
    loops = compiled_loops() if is_loaded or jobs >= MANY[name] else None
    return None if loops is None else (name, loops[name])


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
    found = loop_for(policy, len(workload))
    columns = None if found is None else workload.columns()
    if found is None or columns is None:
        return None
    jobs = jobs_of(columns, getattr(policy, "job_at", None))
    play_jobs(*found, jobs, workload.requests.processors, progress)
    start = jobs.start[jobs.place]
    starts: list[float] = (start.astype(np.int64) if columns.is_whole else start).tolist()
    return starts


def play_jobs(
    name: str,
    loop: Loop,
    jobs: LogJobs,
    processors: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Play jobs by a loop, compiled or not; ``jobs.start`` takes the answer."""
    count = len(jobs.size)
    machine = machine_of(count, processors)
    rest = no_index() if name == "easy" else plan_of(jobs.size, processors)
    until = step = REPORT_EVERY if progress else count + 1
    while (status := loop(jobs, machine, rest, until)) != DONE:
        if status == WANTS_INDEX:
            rest = index_of(jobs.size)
            continue
        if progress:
            progress(min(until, count))
        until += step


def jobs_of(columns: LogColumns, job_at: Sequence[int] | None) -> LogJobs:
    """Return the jobs by their places; ``job_at`` has the job of each, None: in order of submission."""
    submit, size, estimate, run, _ = columns
    count = len(size)
    place = np.arange(count)
    if job_at is not None:
        order = np.array(job_at, np.int64)
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        size, estimate, run = size[order], estimate[order], run[order]
    return LogJobs(submit=submit, place=place, size=size, estimate=estimate, run=run, start=np.empty(count))


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, ...]:
    """Return compiled entries; numba's cache key holds what they close over, the version."""
    play_easy, play_conservative = easy_kernel.play, conservative_kernel.play

    @compile_
    def easy_entry(jobs, machine, index, until):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return play_easy(jobs, machine, index, until) if version else DONE

    @compile_
    def conservative_entry(jobs, machine, plan, until):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return play_conservative(jobs, machine, plan, until) if version else DONE

    return easy_entry, conservative_entry


def main() -> int:
    """Compile, so that no later run has to; without numba there is nothing to do."""
    one = np.ones(1)
    for name, loop in (compiled_loops() or {}).items():
        columns = LogColumns(np.array([0.0, np.inf]), np.ones(1, np.int64), one, one, is_whole=False)
        play_jobs(name, loop, jobs_of(columns, None), 1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
