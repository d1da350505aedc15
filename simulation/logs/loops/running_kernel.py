"""The running jobs of a loop: true ends as a heap, estimated ends in order, and what a head can count on."""

from __future__ import annotations

from ...promised.heaps import pop, push
from .loop_state import ARRIVED, EXTRA, FREE, KNOWN, QUEUED, RUNNING, LogJobs, LogMachine


def arrive(jobs: LogJobs, machine: LogMachine, now: float) -> int:
    """Sort the jobs that arrive now by place; return how many there are."""
    counts, arrived, submit = machine.counts, machine.arrived, jobs.submit
    new = 0
    while submit[counts[ARRIVED]] == now:
        job = jobs.place[counts[ARRIVED]]
        place = new
        while place > 0 and arrived[place - 1] > job:
            arrived[place] = arrived[place - 1]
            place -= 1
        arrived[place] = job
        counts[ARRIVED] += 1
        new += 1
    return new


def wait(machine: LogMachine, job: int) -> None:
    """Let a job wait in the short queue."""
    queue = machine.queue
    place = machine.counts[QUEUED]
    while place > 0 and queue[place - 1] > job:
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = job
    machine.counts[QUEUED] += 1


def start(jobs: LogJobs, machine: LogMachine, now: float, job: int) -> None:
    """Let a job run from now on."""
    counts = machine.counts
    jobs.start[job] = now
    counts[FREE] -= jobs.size[job]
    known_end = now + jobs.estimate[job]
    machine.known_end[job] = known_end
    place, estimated, held = counts[RUNNING], machine.estimated, machine.held
    while place > 0 and estimated[place - 1] > known_end:
        estimated[place] = estimated[place - 1]
        held[place] = held[place - 1]
        place -= 1
    estimated[place] = known_end
    held[place] = jobs.size[job]
    counts[RUNNING] = push(machine.end, machine.ending, counts[RUNNING], now + jobs.run[job], job)


def end_first(jobs: LogJobs, machine: LogMachine) -> None:
    """Let the job that ends first end."""
    counts = machine.counts
    job = machine.ending[0]
    size, known_end = jobs.size[job], machine.known_end[job]
    counts[FREE] += size
    estimated, held = machine.estimated, machine.held
    low, high = 0, counts[RUNNING]
    while low < high:
        middle = (low + high) // 2
        if estimated[middle] < known_end:
            low = middle + 1
        else:
            high = middle
    while held[low] != size:
        low += 1
    left = counts[RUNNING] = pop(machine.end, machine.ending, counts[RUNNING])
    for place in range(low, left):
        estimated[place] = estimated[place + 1]
        held[place] = held[place + 1]


def reserve(machine: LogMachine, need: int) -> None:
    """Find the shadow time and *extra* of a head of that size (easy.py)."""
    counts, estimated, held = machine.counts, machine.estimated, machine.held
    free, place, running = counts[FREE], 0, counts[RUNNING]
    while free < need:
        free += held[place]
        place += 1
    shadow = estimated[place - 1]
    while place < running and estimated[place] <= shadow:
        free += held[place]
        place += 1
    machine.shadow[0] = shadow
    counts[EXTRA] = free - need
    counts[KNOWN] = 1


def may_start(jobs: LogJobs, machine: LogMachine, now: float, job: int, need: int) -> bool:
    """Say whether a job that fits leaves a head of that size its reservation; take its part of *extra*."""
    counts = machine.counts
    if counts[KNOWN] == 0:
        reserve(machine, need)
    if now + jobs.estimate[job] <= machine.shadow[0]:
        return True
    if jobs.size[job] > counts[EXTRA]:
        return False
    counts[EXTRA] -= jobs.size[job]
    return True
