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

What a pass of promised starts works on are columns. The files of this room are plain Python over
columns, lists or arrays, that numba compiles as it stands: both give the same to the bit.
"""

from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from ...cluster.kernels.column_operations import pop, push
from ...cluster.kernels.harness import Column, Entry, Floats, Ints, kernel
from ...cluster.promises import AUTO, BACKFILL, DEFAULT, NONE, promised_duration_s
from ..backfilling.deep_queue import DeepQueue, deep_queue_of
from ..backfilling.easy import DEEPER, FREE, RUNNING, EasyState, easy_columns
from ..log_columns import LogColumns, Requests, zeros
from ..run_times import REMEMBERED, LastShares

#: Places of ``counts``: waiting jobs, and how many of them have been promised a start.
WAITING, PROMISED, COUNTED = 0, 1, 2
#: Places of ``clock``, in seconds: the copy's time, its longest wait so far, and its next job's
#: end; the last pass's longest wait, and the last skipped pass's time, below 0: none since a plan.
COPY_NOW, LONGEST, NEXT_END, LAST, SKIPPED = 0, 1, 2, 3, 4
#: How promises follow a log, the same where processors are counted and on nodes:
#: after which share of the longest wait under EASY a job is due,
SHARE = 0.55
#: after how many of its estimates at most: short jobs are promised near starts,
LIMITS = 4.0
#: by how much a plan's start is stretched, for estimates are long, up to that longest wait,
LOOSENESS = 1.8
#: and after which share of it a job precedes all that waited for less, with counted processors.
OVERDUE = 0.6


class PromisedJobs(NamedTuple):
    """Columns by job number; times in seconds.

    Attributes:
        submit: of each job.
        size: processors.
        estimate: seconds that the user asked for.
        start: when it started; below 0 where it has not.
        run: of those that ended; below 0 where it is not known yet.
        promise: by when the job starts as long as estimates hold; of one that has not been promised
            a start, what the present pass leaves it.
        due: when it is promised a start, where that is not on arrival.
        rank: of those that wait, their places in the queue's order, the first lowest.
        user: whose it is, counted from 0; -1: nobody's.
    """

    submit: Floats
    size: Ints
    estimate: Floats
    start: Floats
    run: Floats
    promise: Floats
    due: Floats
    rank: Ints
    user: Ints


class PromisedMachine(NamedTuple):
    """What waits and what runs.

    Attributes:
        counts: see above.
        waiting: jobs by their promises, behind them those that have none by when they are due;
            until a pass is over also those that it has started.
        planned: beside them, when the plan starts each.
        easy: what runs by estimates and what is free, the jobs that the present pass has started,
            and a queue for a pass of EASY's.
    """

    counts: Ints
    waiting: Ints
    planned: Floats
    easy: EasyState


class Copy(NamedTuple):
    """A copy of the machine on which EASY plays the same jobs; it learns run times as jobs end.

    Attributes:
        clock: its time, the longest wait on it, and its next end.
        start: of each job on it; below 0 where it has not started.
        end: of each job that has started on it, as far as is known.
        running: jobs that run on it, as many as ``easy`` counts.
        ended: those that end at one time.
        easy: its queue, in the order of submission, and its estimated ends.
    """

    clock: Floats
    start: Floats
    end: Floats
    running: Ints
    ended: Ints
    easy: EasyState


class Backlog(NamedTuple):
    """How much work waits: processors × seconds.

    Attributes:
        asked: by user, by estimates; the last entry is of jobs of nobody.
        learnt: one entry: of all, by what users' jobs ran for.
        head: one entry: the job that had the reservation last.
        queue: the jobs that wait under overload; then nobody waits elsewhere.
    """

    asked: Floats
    learnt: Floats
    head: Ints
    queue: DeepQueue


class Scratch(NamedTuple):
    """Heaps: of ends with sizes, and of keys with places; and what has been refused.

    Attributes:
        end, size: a heap of ends with the processors that they free.
        key, place: a heap of keys with places in the queue.
        long, wide, behind: of refused jobs: estimate, processors, the place of the job made late.
    """

    end: Floats
    size: Ints
    key: Floats
    place: Ints
    long: Floats
    wide: Ints
    behind: Ints


class PromiseRules(NamedTuple):
    """What is promised, and what a start is worth.

    Attributes:
        promises: whether any are made.
        follows: whether the window is a share of the longest wait on the copy, and jobs are
            promised starts when they are due; else ``window_s`` it is, and they are on arrival.
        window_s: a job is promised no start earlier than so long after its submission.
        response: whether starts are worth the slowdown they save; else the queue's order counts.
        processors: of the machine.
    """

    promises: int
    follows: int
    window_s: float
    response: int
    processors: int


def rules_of(processors: int, objective: str, promise: str | None) -> PromiseRules:
    """Return the rules that an objective and a promise make on a machine.

    Args:
        processors: of the machine.
        objective: ``priority`` or ``response``.
        promise: ``plan``, ``auto``, ``backfill``, ``none`` or a duration; None: the objective's.

    Raises:
        OptionError: no such promise.
    """
    promise = promise or DEFAULT[objective]
    is_auto = promise == AUTO
    has_promises = promise not in {BACKFILL, NONE}
    return PromiseRules(
        promises=int(has_promises),
        follows=int(is_auto),
        window_s=promised_duration_s(promise) if has_promises and not is_auto else 0.0,
        response=int(objective == "response"),
        processors=processors,
    )


class PromisedState(NamedTuple):
    """Everything that a pass reads and changes; the rules are the same in every pass."""

    rules: PromiseRules
    jobs: PromisedJobs
    machine: PromisedMachine
    copy: Copy
    shares: LastShares
    backlog: Backlog
    scratch: Scratch


def empty_state(
    rules: PromiseRules, asked: LogColumns | Requests, user: Column, *, is_compiled: bool
) -> PromisedState:
    """Return the state of an empty machine, as arrays or as lists.

    Args:
        rules: what is promised, and how many processors there are.
        asked: the jobs.
        user: whose each is, counted from 0; -1: nobody's.
        is_compiled: whether compiled code reads it, which wants arrays.
    """
    jobs, processors = len(asked.size), rules.processors
    running, ints = min(jobs, processors) + 1, partial(zeros, is_compiled=is_compiled)

    def floats(count: int, value: float = 0.0) -> Column:
        return (np.full(count, value) if value else np.zeros(count)) if is_compiled else [value] * count

    def column(values: Column, kind: type) -> Column:
        return np.asarray(values, np.float64 if kind is float else np.int64) if is_compiled else list(values)

    users = int(np.max(user, initial=-1)) + 1
    sizes, estimates = column(asked.size, int), column(asked.estimate, float)
    easy = easy_columns(processors, sizes, estimates, is_compiled=is_compiled)
    is_deep = is_compiled and jobs > DEEPER
    queue = deep_queue_of(sizes, is_compiled=is_compiled)
    return PromisedState(
        rules=rules,
        jobs=PromisedJobs(
            submit=column(asked.submit, float),
            size=sizes,
            estimate=estimates,
            start=floats(jobs, -inf),
            run=floats(jobs, -1.0),
            promise=floats(jobs, inf),
            due=floats(jobs, inf),
            rank=column(np.arange(jobs), int),
            user=column(user, int),
        ),
        machine=PromisedMachine(
            counts=ints(COUNTED),
            waiting=ints(jobs + 1),
            planned=floats(jobs + 1),
            easy=easy_columns(processors, sizes, estimates, is_compiled=is_compiled),
        ),
        copy=Copy(
            clock=column([0.0, 0.0, inf, 0.0, -1.0], float),
            start=floats(jobs, -1.0),
            end=floats(jobs),
            running=ints(running),
            ended=ints(running),
            easy=easy._replace(deep=DeepQueue._make(map(np.copy, queue))) if is_deep else easy,
        ),
        shares=LastShares(last=floats(users * REMEMBERED), ended=ints(users), mean=floats(users, 1.0)),
        backlog=Backlog(asked=floats(users + 1), learnt=floats(1), head=ints(1), queue=queue),
        scratch=Scratch(
            end=floats(running + jobs + 1),
            size=ints(running + jobs + 1),
            key=floats(jobs + 1),
            place=ints(jobs + 1),
            long=floats(jobs + 1),
            wide=ints(jobs + 1),
            behind=ints(jobs + 1),
        ),
    )


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
    jobs, machine = state.jobs, state.machine
    _sort(state, now, longest)
    behind = plan(state, now, NOBODY, not is_whole)
    for place in range(machine.counts[WAITING] if behind == NOBODY else behind):
        job = machine.waiting[place]
        planned = machine.planned[place]
        put_off = min(now + LOOSENESS * (planned - now), jobs.submit[job] + longest)
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
    due, waiting = state.jobs.due, state.machine.waiting
    first = state.machine.counts[PROMISED]
    for place in range(first, state.machine.counts[WAITING]):
        job = waiting[place]
        if due[job] == inf:
            share = state.jobs.size[job] / state.rules.processors
            after = window(SHARE * longest, state.jobs.estimate[job], share)
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
