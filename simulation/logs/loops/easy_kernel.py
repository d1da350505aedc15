"""EASY over a whole log as one loop: the rule and the starts of ``simulation/logs/easy.py``."""

from __future__ import annotations

from math import inf

from .deep import add, class_below, next_fit, remove
from .loop_state import (
    ARRIVED,
    DEEP,
    DONE,
    EXTRA,
    FREE,
    HEAD,
    KNOWN,
    PAUSED,
    QUEUED,
    RUNNING,
    WANTS_INDEX,
    Index,
    LogJobs,
    LogMachine,
)
from .running_kernel import arrive, end_first, may_start, reserve, start, wait

#: A queue deeper than this is searched by its index,
DEEPER = 256
#: until it is this shallow again.
SHALLOW = 64
#: More than one unit in the last place.
ROUNDED = 4e-16


def play(
    jobs: LogJobs, machine: LogMachine, index: Index, until: int, deep: int = DEEPER, shallow: int = SHALLOW
) -> int:
    """Play until so many jobs have arrived; return PAUSED, DONE where all have ended, or WANTS_INDEX.

    Args:
        jobs: the log; takes the starts.
        machine: as the last call left it.
        index: of the deep queue; an empty one is asked for again when the queue gets deep.
        until: a number of jobs.
        deep: a queue deeper than this goes into the index,
        shallow: until it is this shallow again.
    """
    counts, submit, end = machine.counts, jobs.submit, machine.end
    while counts[ARRIVED] < until:
        next_end = end[0] if counts[RUNNING] > 0 else inf
        now = min(submit[counts[ARRIVED]], next_end)
        if now == inf:
            return DONE
        has_ended = next_end == now
        while counts[RUNNING] > 0 and end[0] == now:
            end_first(jobs, machine)
        new = arrive(jobs, machine, now)
        if counts[DEEP] > 0:
            _deep_pass(jobs, machine, index, now, has_ended, new)
            if counts[DEEP] <= shallow:
                _leave_index(machine, index)
        else:
            _pass(jobs, machine, now, has_ended, new)
            if counts[QUEUED] > deep:
                if len(index.lowest) == 0:
                    return WANTS_INDEX
                for place in range(counts[QUEUED]):
                    add(index, counts, machine.queue[place], jobs.estimate[machine.queue[place]])
                counts[QUEUED] = 0
    return PAUSED


def _pass(jobs: LogJobs, machine: LogMachine, now: float, has_ended: bool, new: int) -> None:
    """Make a pass over a short queue."""
    counts, queue = machine.counts, machine.queue
    if has_ended or counts[QUEUED] == 0 or (new > 0 and machine.arrived[0] < queue[0]):
        for place in range(new):
            wait(machine, machine.arrived[place])
        _whole_pass(jobs, machine, now)
        return
    # No job has ended and the head is the same: nobody else can start.
    for place in range(new):
        job = machine.arrived[place]
        if jobs.size[job] <= counts[FREE] and may_start(jobs, machine, now, job, jobs.size[queue[0]]):
            start(jobs, machine, now, job)
        else:
            wait(machine, job)


def _whole_pass(jobs: LogJobs, machine: LogMachine, now: float) -> None:
    counts, queue, size = machine.counts, machine.queue, jobs.size
    count = counts[QUEUED]
    counts[KNOWN] = 0
    place = 0
    while place < count and size[queue[place]] <= counts[FREE]:
        start(jobs, machine, now, queue[place])
        place += 1
    if place == count:
        counts[QUEUED] = 0
        return
    kept = 0
    need = size[queue[place]]
    if place == 0:
        # Most passes start nobody: look before anything moves.
        free = counts[FREE]
        if free == 0:
            return
        place = 1
        while place < count and size[queue[place]] > free:
            place += 1
        kept = place
    while place < count:
        job = queue[place]
        place += 1
        if size[job] <= counts[FREE] and may_start(jobs, machine, now, job, need):
            start(jobs, machine, now, job)
        else:
            queue[kept] = job
            kept += 1
        if counts[FREE] == 0 and kept == place:
            return
    counts[QUEUED] = kept


def _deep_pass(
    jobs: LogJobs,
    machine: LogMachine,
    index: Index,
    now: float,
    has_ended: bool,
    new: int,
) -> None:
    """Make the same pass over a deep queue."""
    counts = machine.counts
    head = counts[HEAD]
    for place in range(new):
        add(index, counts, machine.arrived[place], jobs.estimate[machine.arrived[place]])
    if has_ended or counts[HEAD] != head:
        counts[KNOWN] = 0
        while counts[DEEP] > 0 and jobs.size[counts[HEAD]] <= counts[FREE]:
            job = counts[HEAD]
            remove(index, counts, job)
            start(jobs, machine, now, job)
        if counts[DEEP] > 0 and counts[FREE] > 0:
            _deep_backfill(jobs, machine, index, now)
        return
    for place in range(new):
        job = machine.arrived[place]
        if jobs.size[job] <= counts[FREE] and may_start(jobs, machine, now, job, jobs.size[head]):
            remove(index, counts, job)
            start(jobs, machine, now, job)


def _deep_backfill(jobs: LogJobs, machine: LogMachine, index: Index, now: float) -> None:
    counts = machine.counts
    head = job = counts[HEAD]
    reserve(machine, jobs.size[head])
    # A little more: now + estimate may round to the shadow time itself.
    slack = machine.shadow[0] - now + machine.shadow[0] * ROUNDED
    while counts[FREE] > 0:
        free, extra = counts[FREE], min(counts[EXTRA], counts[FREE])
        fits = class_below(index, free)
        if fits < 0:
            return
        job = next_fit(index, job, fits, slack, class_below(index, extra), jobs.size, free, extra)
        if job == len(jobs.size):
            return
        if may_start(jobs, machine, now, job, jobs.size[head]):
            remove(index, counts, job)
            start(jobs, machine, now, job)


def _leave_index(machine: LogMachine, index: Index) -> None:
    counts = machine.counts
    while counts[DEEP] > 0:
        machine.queue[counts[QUEUED]] = counts[HEAD]
        counts[QUEUED] += 1
        remove(index, counts, counts[HEAD])
