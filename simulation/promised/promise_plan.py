"""The plan that keeps promises: waiting jobs one after another in the order of their promises.

Each job starts when its processors are free by estimates, and no job before the one ahead of it. When jobs
end before their estimates, all of a plan's starts come earlier or stay: starts are sums and maxima of ends.
So a plan that keeps every promise goes on keeping them, and a start is allowed where the plan of the others
still does. A plan that lets jobs pass each other has no such property.
"""

from __future__ import annotations

from .heaps import pop, push
from .promise_state import FREE, RUNNING, WAITING, PromisedState

#: No job, no place.
NOBODY = -1


def plan(state: PromisedState, now: float, spared: int, is_test: bool) -> int:
    """Plan what waits; return the first place whose job would start after its promise, else NOBODY.

    Args:
        state: ``machine.planned`` takes the starts.
        now: in seconds.
        spared: a place whose job starts now instead of in its turn; NOBODY for none.
        is_test: stop at the first job that would be late.
    """
    jobs, machine, scratch = state.jobs, state.machine, state.scratch
    ends, sizes = scratch.end, scratch.size
    count = machine.counts[RUNNING]
    free = machine.counts[FREE]
    # Sorted ends are a heap.
    for place in range(count):
        ends[place] = machine.end[place]
        sizes[place] = machine.size[place]
    if spared >= 0:
        job = machine.waiting[spared]
        free -= jobs.size[job]
        count = push(ends, sizes, count, now + jobs.estimate[job], jobs.size[job])
    start = now
    for place in range(machine.counts[WAITING]):
        if machine.gone[place] or place == spared:
            continue
        job = machine.waiting[place]
        while free < jobs.size[job] or (count > 0 and ends[0] <= start):
            start = max(start, ends[0])
            free += sizes[0]
            count = pop(ends, sizes, count)
        machine.planned[place] = start
        if is_test and start > jobs.promise[job]:
            return place
        free -= jobs.size[job]
        count = push(ends, sizes, count, start + jobs.estimate[job], jobs.size[job])
    return NOBODY


def promise(state: PromisedState, now: float, job: int, earliest: float) -> None:
    """Let a job wait; promise it ``earliest`` where all others keep theirs, else a start behind them."""
    jobs, machine = state.jobs, state.machine
    count = machine.counts[WAITING]
    place = count
    while place > 0 and jobs.promise[machine.waiting[place - 1]] > earliest:
        machine.waiting[place] = machine.waiting[place - 1]
        place -= 1
    machine.waiting[place] = job
    machine.gone[count] = 0
    machine.counts[WAITING] = count + 1
    jobs.promise[job] = earliest
    if plan(state, now, NOBODY, True) == NOBODY:
        return
    for behind in range(place, count):
        machine.waiting[behind] = machine.waiting[behind + 1]
    machine.waiting[count] = job
    plan(state, now, NOBODY, False)
    promised = max(machine.planned[count], earliest)
    if count > 0:
        promised = max(promised, jobs.promise[machine.waiting[count - 1]])
    jobs.promise[job] = promised
