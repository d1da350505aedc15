"""What the loops work on, as columns. Jobs are numbered by their place in the queue's order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: A column of numbers, one entry a job, a place or a running job.
Column = Any

#: Places of ``counts``: jobs that have arrived, free processors, running jobs, jobs of the short queue, those
#: of the deep one, its head, what a head leaves free at its shadow time, whether that is known, steps of the
#: profile.
ARRIVED, FREE, RUNNING, QUEUED, DEEP, HEAD, EXTRA, KNOWN, STEPS, COUNTED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

#: What a loop returns: there is more to play, all have ended, it needs the deep queue's index.
PAUSED, DONE, WANTS_INDEX = 0, 1, 2

#: Jobs of a block of the deep queue's index, and blocks of a group of them.
BLOCK = 64
#: Classes of sizes in the index at most.
CLASSES = 128


class LogJobs(NamedTuple):
    """The log; times in seconds as 64-bit floats.

    Attributes:
        submit: in order of submission, then infinity.
        place: in order of submission, each job's place in the queue's order.
        size: processors, by place.
        estimate: by place.
        run: by place.
        start: by place; the answer.
    """

    submit: Column
    place: Column
    size: Column
    estimate: Column
    run: Column
    start: Column


class LogMachine(NamedTuple):
    """Running jobs and the short queue.

    Attributes:
        counts: see above.
        end, ending: a heap of true ends with their jobs.
        known_end: by place, a running job's estimated end.
        estimated, held: estimated ends, rising, with the processors that they free.
        queue: waiting jobs by rising place, while they are few.
        arrived: the jobs of one event.
        shadow: one entry: the head's shadow time.
    """

    counts: Column
    end: Column
    ending: Column
    known_end: Column
    estimated: Column
    held: Column
    queue: Column
    arrived: Column
    shadow: Column


class Index(NamedTuple):
    """The deep queue: for each block and group of blocks the least estimate up to each class of sizes.

    Attributes:
        waiting: by place, the estimate of a job that waits here; infinite for any other.
        lowest: by class, its smallest size; rising.
        size_class: by place.
        block: one row a block.
        group: one row a group.
    """

    waiting: Column
    lowest: Column
    size_class: Column
    block: Column
    group: Column


class ConservativePlan(NamedTuple):
    """Conservative backfilling's plan.

    Attributes:
        time, free: the profile: so many processors are free from a time up to the next.
        start: by place, where a waiting job's reservation begins, and where a running job began.
        size_class: by place, which of the distinct sizes the job has.
        known: by class, whether the next two are as of now.
        longest: by class, the longest run of its processors that begins in what was freed.
        reach: by class, the latest end of such a run.
    """

    time: Column
    free: Column
    start: Column
    size_class: Column
    known: Column
    longest: Column
    reach: Column


def plan_of(size: Column, processors: int) -> ConservativePlan:
    """Return an empty plan for jobs of these sizes, by place."""
    distinct, size_class = np.unique(size, return_inverse=True)
    steps = 2 * len(size) + 4
    free = np.zeros(steps, np.int64)
    free[0] = processors
    return ConservativePlan(
        time=np.zeros(steps),
        free=free,
        start=np.zeros(len(size)),
        size_class=size_class,
        known=np.zeros(len(distinct), np.int64),
        longest=np.zeros(len(distinct)),
        reach=np.zeros(len(distinct)),
    )


def machine_of(jobs: int, processors: int) -> LogMachine:
    """Return an idle machine for so many jobs."""
    running = min(jobs, processors) + 1
    counts = np.zeros(COUNTED, np.int64)
    counts[FREE] = processors
    counts[HEAD] = jobs
    counts[STEPS] = 1
    return LogMachine(
        counts=counts,
        end=np.zeros(running),
        ending=np.zeros(running, np.int64),
        known_end=np.zeros(jobs),
        estimated=np.zeros(running),
        held=np.zeros(running, np.int64),
        queue=np.zeros(jobs + 1, np.int64),
        arrived=np.zeros(jobs + 1, np.int64),
        shadow=np.zeros(1),
    )


def no_index() -> Index:
    """Return an index that holds nothing."""
    none = np.zeros(0, np.int64)
    table = np.zeros((0, 0))
    return Index(waiting=np.zeros(0), lowest=none, size_class=none, block=table, group=table)


def index_of(size: Column) -> Index:
    """Return an empty index over jobs of these sizes, by place."""
    distinct = np.unique(size)
    lowest = np.ascontiguousarray(distinct[:: -(-len(distinct) // CLASSES)])
    blocks = -(-len(size) // BLOCK)
    # Places beyond the last job belong to no class.
    size_class = np.full(blocks * BLOCK, len(lowest))
    size_class[: len(size)] = np.searchsorted(lowest, size, side="right") - 1
    groups = -(-blocks // BLOCK)
    return Index(
        waiting=np.full(blocks * BLOCK, np.inf),
        lowest=lowest,
        size_class=size_class,
        block=np.full((groups * BLOCK, len(lowest)), np.inf),
        group=np.full((groups, len(lowest)), np.inf),
    )
