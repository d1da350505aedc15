"""What a pass of the auction works on, as columns.

This file, heaps.py, plan.py, due.py, refusing.py, easy_reference.py, awards.py and stepping.py are plain
Python over columns, lists or arrays, that numba compiles as it stands (compiled.py): both give the same to
the bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: A column of numbers, one entry a job or a place: a list, or an array where the code is compiled.
Column = Any

#: Places of ``counts``.
WAITING, RUNNING, FREE, COPY_WAITING, COPY_RUNNING, COPY_FREE, PROMISED, COUNTED = 0, 1, 2, 3, 4, 5, 6, 7
#: Jobs of a user that tell how long the next one may run.
REMEMBERED = 20
#: Places of ``clock``: of the copy, in seconds, and the longest wait on it so far.
COPY_NOW, LONGEST, CLOCKS = 0, 1, 2


class PromisedJobs(NamedTuple):
    """Columns by job number; times in seconds.

    Attributes:
        submit: of each job.
        size: processors.
        estimate: seconds that the user asked for.
        start: when it started; below 0 where it has not.
        run: of those that ended; below 0 where it is not known yet.
        promise: by when the job starts as long as estimates hold; of one that has not been promised a start,
            what the present pass leaves it.
        due: when it is promised a start, where that is not on arrival.
        rank: of those that wait, their places in the queue's order, the first lowest.
        user: whose it is, counted from 0; -1: nobody's.
    """

    submit: Column
    size: Column
    estimate: Column
    start: Column
    run: Column
    promise: Column
    due: Column
    rank: Column
    user: Column


class PromisedMachine(NamedTuple):
    """What waits and what runs.

    Attributes:
        counts: how many places of the other columns are in use, and processors.
        waiting: jobs by their promises, behind them those that have none by when they are due.
        planned: beside them, when the plan starts each.
        gone: beside them, 1 for one that the present pass has started.
        end: estimated ends of what runs, rising.
        size: beside them, processors.
        job: beside them, which one.
    """

    counts: Column
    waiting: Column
    planned: Column
    gone: Column
    end: Column
    size: Column
    job: Column


class Copy(NamedTuple):
    """A copy of the machine on which EASY plays the same jobs; it knows run times once they are known.

    Attributes:
        clock: its time, and the longest wait on it.
        start: of each job on it.
        waiting: jobs in the order of their submission.
        end: estimated ends of what runs on it, rising.
        job: beside them, which one.
    """

    clock: Column
    start: Column
    waiting: Column
    end: Column
    job: Column


class RunTimeShares(NamedTuple):
    """What shares of their estimates the last jobs of each user ran for.

    Attributes:
        last: shares, ``REMEMBERED`` places a user, the oldest overwritten.
        count: by user, jobs that have ended.
    """

    last: Column
    count: Column


class Scratch(NamedTuple):
    """Heaps: of ends with sizes, and of keys with places; and what has been refused.

    Attributes:
        end, size: a heap of ends with the processors that they free.
        key, place: a heap of keys with places in the queue.
        long, wide, behind: of refused jobs: estimate, processors, and place of the job that would be late.
    """

    end: Column
    size: Column
    key: Column
    place: Column
    long: Column
    wide: Column
    behind: Column


class PromiseRules(NamedTuple):
    """What is promised, and what a start is worth.

    Attributes:
        promises: whether any are made.
        follows: whether the window is a share of the longest wait on the copy, and jobs are promised starts
            when they are due; else ``window_s`` it is, and they are on arrival.
        window_s: a job is promised no start earlier than so long after its submission.
        share: of the longest wait.
        limits: the window is at most so many estimates of the job.
        looseness: of a plan's start, as a multiple of its distance,
        latest: up to a wait of this share of the longest on the copy.
        overdue: jobs come first that have waited for this share of it.
        response: whether starts are worth what they save in slowdown; else the queue's order counts.
        processors: of the machine.
    """

    promises: int
    follows: int
    window_s: float
    share: float
    limits: float
    looseness: float
    latest: float
    overdue: float
    response: int
    processors: int


class PromisedState(NamedTuple):
    """Everything that a pass reads and changes."""

    jobs: PromisedJobs
    machine: PromisedMachine
    copy: Copy
    shares: RunTimeShares
    scratch: Scratch
