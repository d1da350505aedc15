"""The loop of events on arrays: plain Python that numba compiles as it stands (cluster/kernels).

At one time stamp: all ends, one decision over them, then the arrivals in order, a decision each.
"""

from __future__ import annotations

from math import inf

from ...cluster.kernels.harness import Entry, Floats, FloatTable, Ints, kernel
from ...negotiation.malleable.application_columns import LOGGED, RESIZES, Active, Context
from ...negotiation.malleable.deciding import on_arrival, on_end, remember, remove
from ...negotiation.malleable.execution import begin, resize


@kernel
def play(
    context: Context,
    processors: int,
    active: Active,
    starts: Floats,
    ends: Floats,
    harvests: Ints,
    log: FloatTable,
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


@kernel
def settle(
    active: Active, running: int, now: float, context: Context, starts: Floats, log: FloatTable
) -> None:
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


@kernel
def record(log: FloatTable, tally: Ints, now: float, job: int, count: int) -> None:
    """Keep a change of size."""
    at = tally[LOGGED]
    if at < log.shape[0]:
        log[at, 0] = now
        log[at, 1] = job
        log[at, 2] = count
    tally[LOGGED] += 1


#: With so many jobs plain Python takes longer than numba takes to compile the loop.
PLAY = Entry(play, "integrated scheduling", many=300_000)
