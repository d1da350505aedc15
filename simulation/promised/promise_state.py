"""What a pass of promised starts works on, as columns, and the same of an empty machine.

The files of this room are plain Python over columns, lists or arrays, that numba compiles as it
stands: both give the same to the bit.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ...cluster.kernels.harness import Column, Floats, Ints
from ...cluster.promises import AUTO, BACKFILL, DEFAULT, NONE, promised_duration_s
from ..backfilling.deep_queue import DeepQueue, deep_queue_of
from ..backfilling.easy import DEEPER, EasyState, easy_columns
from ..log_columns import LogColumns, Requests
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
        share: of the longest wait.
        looseness: of a plan's start, as a multiple of its distance.
        response: whether starts are worth the slowdown they save; else the queue's order counts.
        processors: of the machine.
    """

    promises: int
    follows: int
    window_s: float
    share: float
    looseness: float
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
        share=SHARE,
        looseness=LOOSENESS,
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
    running = min(jobs, processors) + 1

    def ints(count: int) -> Column:
        return np.zeros(count, np.int64) if is_compiled else [0] * count

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
