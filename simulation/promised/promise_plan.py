"""The plan that keeps promises: waiting jobs one after another in the order of their promises.

Each job starts when its processors are free by estimates, and no job before the one ahead of it.
When jobs end before their estimates, all of a plan's starts come earlier or stay: starts are sums
and maxima of ends. So a plan that keeps every promise goes on keeping them, and a start is allowed
where the plan of the others still does. A plan that lets jobs pass each other has no such property.
Nobody may start now who would put somebody off beyond what the plan leaves him (``verdict``).

Promises may follow the log: a job is promised a start when it is due (``promise_due``). Until then
its place in the plan is behind all due jobs, with as much room as a promise made now: starts now
may put it off so far, and no farther. A job that becomes due is behind those due before, and none
comes between them later, so the plan goes on keeping their promises.
"""

from math import inf

from ...cluster.kernels.column_operations import pop, push
from ...cluster.kernels.harness import Entry, kernel
from ..backfilling.easy import FREE, RUNNING
from .promise_state import LIMITS, PROMISED, WAITING, PromisedState

#: No job, no place.
NOBODY = -1
#: So many jobs take plain Python longer than numba takes to compile the loops of promises.
MANY = 2_000
#: The job may start; it may not; nor may it, as is known of one no wider and no longer.
ALLOWED, REFUSED, KNOWN = 0, 1, 2


@kernel
def plan(state: PromisedState, now: float, spared: int, is_test: bool) -> int:
    """Plan what waits; return the first place whose job would start after its promise, else NOBODY.

    Args:
        state: ``machine.planned`` takes the starts.
        now: in seconds.
        spared: a place whose job starts now instead of in its turn; NOBODY for none.
        is_test: stop at the first job that would be late.
    """
    jobs, machine, easy = state.jobs, state.machine, state.machine.easy
    ends, sizes = state.scratch.end, state.scratch.size
    running, free = easy.counts[RUNNING], easy.counts[FREE]
    # What runs ends in order; a heap has the ends of what is planned.
    count = ended = 0
    if spared >= 0:
        job = machine.waiting[spared]
        free -= jobs.size[job]
        count = push(ends, sizes, count, now + jobs.estimate[job], jobs.size[job])
    start = now
    for place in range(machine.counts[WAITING]):
        job = machine.waiting[place]
        if jobs.start[job] >= 0.0 or place == spared:
            continue
        size = jobs.size[job]
        while True:
            if ended < running and (count == 0 or easy.ends[ended] <= ends[0]):
                if free >= size and easy.ends[ended] > start:
                    break
                start = max(start, easy.ends[ended])
                free += easy.held[ended]
                ended += 1
            elif free >= size and (count == 0 or ends[0] > start):
                break
            else:
                start = max(start, ends[0])
                free += sizes[0]
                count = pop(ends, sizes, count)
        machine.planned[place] = start
        if is_test and start > jobs.promise[job]:
            return place
        free -= size
        count = push(ends, sizes, count, start + jobs.estimate[job], size)
    return NOBODY


@kernel
def promise(state: PromisedState, now: float, job: int, earliest: float) -> None:
    """Let a job wait; promise it ``earliest`` if all others keep theirs, else a start behind."""
    jobs, machine = state.jobs, state.machine
    count = machine.counts[WAITING]
    place = count
    while place > 0 and jobs.promise[machine.waiting[place - 1]] > earliest:
        machine.waiting[place] = machine.waiting[place - 1]
        place -= 1
    machine.waiting[place] = job
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


@kernel
def verdict(state: PromisedState, now: float, place: int, refused: int) -> int:
    """Say whether the job at a place of the queue may start beside all that has started.

    Args:
        state: its scratch takes what is refused.
        now: in seconds.
        place: in the queue.
        refused: how many have been refused since anything started, less those that were known.
    """
    jobs, scratch = state.jobs, state.scratch
    job = state.machine.waiting[place]
    size, estimate = jobs.size[job], jobs.estimate[job]
    # It makes the same job late as a narrower, shorter one does, unless it stands before that job.
    for other in range(refused):
        if size >= scratch.wide[other] and estimate >= scratch.long[other] and place > scratch.behind[other]:
            return KNOWN
    late = plan(state, now, place, True)
    if late == NOBODY:
        return ALLOWED
    scratch.wide[refused] = size
    scratch.long[refused] = estimate
    scratch.behind[refused] = late
    return REFUSED


@kernel
def promise_due(state: PromisedState, now: float, longest: float, is_whole: bool) -> None:
    """Promise starts to whom is due; better promises where the plan has come nearer.

    Args:
        state: its queue is in the order of its promises, then as it was.
        now: in seconds.
        longest: the longest wait on the copy.
        is_whole: plan all; else up to the first that is not due and cannot start now.
    """
    jobs, machine, rules = state.jobs, state.machine, state.rules
    _sort(state, now, longest)
    behind = plan(state, now, NOBODY, not is_whole)
    for place in range(machine.counts[WAITING] if behind == NOBODY else behind):
        job = machine.waiting[place]
        planned = machine.planned[place]
        put_off = min(now + rules.looseness * (planned - now), jobs.submit[job] + longest)
        better = max(jobs.due[job], planned, put_off)
        if place < machine.counts[PROMISED]:
            jobs.promise[job] = min(jobs.promise[job], better)
        else:
            jobs.promise[job] = better
            machine.counts[PROMISED] += int(jobs.due[job] <= now)


@kernel
def _sort(state: PromisedState, now: float, longest: float) -> None:
    """Sort the jobs that have no promise by when they are due; most are in order already.

    Who is not due yet may be left nothing until the plan says what: a test stops there.
    """
    due, waiting, rules = state.jobs.due, state.machine.waiting, state.rules
    first = state.machine.counts[PROMISED]
    for place in range(first, state.machine.counts[WAITING]):
        job = waiting[place]
        if due[job] == inf:
            share = state.jobs.size[job] / rules.processors
            after = window(rules.share * longest, state.jobs.estimate[job], share)
            due[job] = state.jobs.submit[job] + after
        when = due[job]
        state.jobs.promise[job] = now if when > now else inf
        behind = place
        while behind > first and (when, job) < (due[waiting[behind - 1]], waiting[behind - 1]):
            waiting[behind] = waiting[behind - 1]
            behind -= 1
        waiting[behind] = job


@kernel
def window(latest: float, estimate: float, share: float) -> float:
    """Return how long after its submission a job of a share of the machine is due (s).

    It is at most some estimates of the job: short jobs are due soon. One of nearly the whole
    machine is due at once: it needs a drain, and waits for the plan anyway.
    """
    cube = share * share * share
    found: float = min(latest, LIMITS * estimate) * (1.0 - cube * cube)
    return found


#: What nodes ask of the plan, as the entry of awards.py.
PROMISE_DUE = Entry(promise_due, "the plan of promises", many=MANY)
