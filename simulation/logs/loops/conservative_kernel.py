"""Conservative backfilling over a whole log as one loop: the rule of ``simulation/logs/conservative.py``."""

from __future__ import annotations

from math import inf

from ...promised.heaps import pop, push
from .count_profile import add, advance, earliest, most, runs
from .loop_state import ARRIVED, DONE, PAUSED, QUEUED, RUNNING, ConservativePlan, LogJobs, LogMachine
from .running_kernel import arrive, wait

#: Of a time, more than what one sum and one difference round.
ROUNDED = 4e-16


def play(jobs: LogJobs, machine: LogMachine, plan: ConservativePlan, until: int) -> int:
    """Play until so many jobs have arrived; return PAUSED, or DONE where all have ended.

    Args:
        jobs: the log; takes the starts.
        machine: as the last call left it.
        plan: as the last call left it.
        until: a number of jobs.
    """
    counts = machine.counts
    while counts[ARRIVED] < until:
        next_end = machine.end[0] if counts[RUNNING] > 0 else inf
        now = min(jobs.submit[counts[ARRIVED]], next_end)
        if now == inf:
            return DONE
        freed_until = now
        while counts[RUNNING] > 0 and machine.end[0] == now:
            job = machine.ending[0]
            counts[RUNNING] = pop(machine.end, machine.ending, counts[RUNNING])
            known_end = plan.start[job] + jobs.estimate[job]
            add(plan, counts, now, known_end, jobs.size[job])
            freed_until = max(freed_until, known_end)
        advance(plan, counts, now)
        if freed_until > now:
            _compress(jobs, machine, plan, freed_until)
        new = arrive(jobs, machine, now)
        for place in range(new):
            job = machine.arrived[place]
            start = earliest(plan, counts, jobs.size[job], jobs.estimate[job], inf, inf)
            _reserve(jobs, machine, plan, job, start)
            wait(machine, job)
        _start_due(jobs, machine, plan, now)
    return PAUSED


def _reserve(jobs: LogJobs, machine: LogMachine, plan: ConservativePlan, job: int, start: float) -> None:
    plan.start[job] = start
    add(plan, machine.counts, start, start + jobs.estimate[job], -jobs.size[job])


def _start_due(jobs: LogJobs, machine: LogMachine, plan: ConservativePlan, now: float) -> None:
    """Start the jobs whose reservations have come."""
    counts, queue = machine.counts, machine.queue
    kept = 0
    for place in range(counts[QUEUED]):
        job = queue[place]
        if plan.start[job] > now:
            queue[kept] = job
            kept += 1
            continue
        jobs.start[job] = now
        counts[RUNNING] = push(machine.end, machine.ending, counts[RUNNING], now + jobs.run[job], job)
    counts[QUEUED] = kept


def _compress(jobs: LogJobs, machine: LogMachine, plan: ConservativePlan, freed_until: float) -> None:
    """Move waiting jobs in queue order as early as the others allow, round after round until none moves."""
    counts, queue = machine.counts, machine.queue
    plan.known[:] = 0
    largest = most(plan, counts, freed_until)
    has_moved = True
    while has_moved:
        has_moved = False
        for place in range(counts[QUEUED]):
            job = queue[place]
            size = jobs.size[job]
            if size > largest or not _could_move(jobs, machine, plan, job, freed_until):
                continue
            current = plan.start[job]
            start = earliest(plan, counts, size, jobs.estimate[job], current, freed_until)
            if start < current:
                add(plan, counts, current, current + jobs.estimate[job], size)
                _reserve(jobs, machine, plan, job, start)
                freed_until = max(freed_until, current + jobs.estimate[job])
                largest = most(plan, counts, freed_until)
                plan.known[:] = 0
                has_moved = True


def _could_move(
    jobs: LogJobs, machine: LogMachine, plan: ConservativePlan, job: int, freed_until: float
) -> bool:
    """Say whether any run of free processors is long enough for a job, or reaches its reservation.

    Jobs of one size ask the same until one moves.
    """
    one = plan.size_class[job]
    if plan.known[one] == 0:
        longest, reach = runs(plan, machine.counts, jobs.size[job], freed_until)
        plan.known[one] = 1
        plan.longest[one] = longest + reach * ROUNDED
        plan.reach[one] = reach
    return bool(jobs.estimate[job] <= plan.longest[one] or plan.start[job] <= plan.reach[one])
