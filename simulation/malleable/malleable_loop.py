"""The loop of events on arrays: plain Python that numba compiles as it stands (compiled.py).

At one time stamp: all ends, one decision over them, then the arrivals in order, a decision each.
"""

from __future__ import annotations

from math import inf

from ...negotiation.malleable.application_columns import (
    LOGGED,
    RESIZES,
    Active,
    Context,
    Floats,
    Ints,
    JobColumns,
)
from ...negotiation.malleable.deciding import on_arrival, on_end, remember, remove
from ...negotiation.malleable.execution import begin, resize


def play(
    context: Context,
    processors: int,
    active: Active,
    starts: Floats,
    ends: Floats,
    harvests: Ints,
    log: Floats,
) -> None:
    """Play a trace.

    Args:
        context: the jobs in order of submission, the policy, and a tally of zeros, which is filled.
        processors: of the machine; no job's least is above.
        active: empty, for as many applications as can run at once.
        starts: filled, an entry a job; as are ``ends`` and ``harvests``.
        ends: filled.
        harvests: filled.
        log: rows (time, job, processors from then on), as many as it holds; the tally counts all.
    """
    jobs, tally = context.jobs, context.tally
    coming = len(jobs.submit)
    running, free, head, tail = 0, processors, 0, 0
    while tail < coming or running > 0:
        next_end = inf
        for place in range(running):
            next_end = min(next_end, active.end[place])
        next_arrival = jobs.submit[tail] if tail < coming else inf
        now = min(next_end, next_arrival)
        if next_end == now:
            place = 0
            while place < running:
                if active.end[place] == now:
                    free += active.held[place]
                    ends[active.job[place]] = now
                    harvests[active.job[place]] = active.harvests[place]
                    record(log, tally, now, active.job[place], 0)
                    remove(active, running, place)
                    running -= 1
                else:
                    place += 1
            remember(active, running)
            running, free, head = on_end(active, running, free, head, tail, now, context)
            settle(active, running, now, context, starts, log)
        while tail < coming and jobs.submit[tail] == now:
            tail += 1
            if head == tail - 1:
                remember(active, running)
                before = running
                running, free = on_arrival(active, running, free, head, now, context)
                head += running - before
                settle(active, running, now, context, starts, log)


def settle(active: Active, running: int, now: float, context: Context, starts: Floats, log: Floats) -> None:
    """Let work begin or go on where a decision changed a count."""
    jobs, model, tally = context.jobs, context.rules.model, context.tally
    for place in range(running):
        before, count, job = active.before[place], active.held[place], active.job[place]
        if before == count:
            continue
        if before == 0:
            begin(active, place, jobs.run[job], now, model)
            starts[job] = now
        else:
            resize(active, place, jobs.data[job], now, model)
            tally[RESIZES] += 1
        record(log, tally, now, job, count)


def record(log: Floats, tally: Ints, now: float, job: int, count: int) -> None:
    """Keep a change of size."""
    at = tally[LOGGED]
    if at < log.shape[0]:
        log[at, 0] = now
        log[at, 1] = job
        log[at, 2] = count
    tally[LOGGED] += 1


def play_backfill(
    jobs: JobColumns,
    processors: int,
    ends: Floats,
    starts: Floats,
    queue: Ints,
    run_end: Floats,
    run_size: Ints,
) -> None:
    """Play a trace under IDEAL-BACKFILL: EASY, each job on its ideal processors, run times known.

    Args:
        jobs: in order of submission.
        processors: of the machine.
        ends: filled, an entry a job.
        starts: filled.
        queue: scratch, as long as there are jobs.
        run_end: scratch, for as many jobs as can run at once: their ends, rising.
        run_size: scratch: their processors.
    """
    coming = len(jobs.submit)
    running, free, waiting, tail = 0, processors, 0, 0
    while tail < coming or running > 0:
        next_end = run_end[0] if running > 0 else inf
        next_arrival = jobs.submit[tail] if tail < coming else inf
        now = min(next_end, next_arrival)
        running, freed = _leave(run_end, run_size, running, now)
        free += freed
        while tail < coming and jobs.submit[tail] == now:
            queue[waiting] = tail
            waiting += 1
            tail += 1
        # From the head while it fits; then those behind it that leave it its reservation.
        kept, shadow, extra, is_blocked = 0, inf, 0, False
        for at in range(waiting):
            job = queue[at]
            size = jobs.ideal[job]
            starts_now = size <= free
            if starts_now and is_blocked and now + jobs.run[job] > shadow:
                starts_now = size <= extra
                if starts_now:
                    extra -= size
            if starts_now:
                free -= size
                starts[job] = now
                ends[job] = now + jobs.run[job]
                _insert(run_end, run_size, running, ends[job], size)
                running += 1
                continue
            queue[kept] = job
            kept += 1
            if not is_blocked:
                is_blocked = True
                shadow, extra = reservation(run_end, run_size, running, free, size)
        waiting = kept


def _leave(run_end: Floats, run_size: Ints, running: int, now: float) -> tuple[int, int]:
    """Take those out that end now; return how many run on, and the processors that came free."""
    gone, freed = 0, 0
    while gone < running and run_end[gone] == now:
        freed += run_size[gone]
        gone += 1
    if gone > 0:
        for at in range(running - gone):
            run_end[at] = run_end[at + gone]
            run_size[at] = run_size[at + gone]
    return running - gone, freed


def _insert(run_end: Floats, run_size: Ints, running: int, end: float, size: int) -> None:
    at = running
    while at > 0 and run_end[at - 1] > end:
        run_end[at] = run_end[at - 1]
        run_size[at] = run_size[at - 1]
        at -= 1
    run_end[at] = end
    run_size[at] = size


def reservation(run_end: Floats, run_size: Ints, running: int, free: int, size: int) -> tuple[float, int]:
    """Return when the head fits, and what is free beyond its need then, all ends at that time counted."""
    shadow = inf
    for at in range(running):
        if free >= size and run_end[at] > shadow:
            break
        free += run_size[at]
        if free >= size and shadow == inf:
            shadow = run_end[at]
    return shadow, free - size
