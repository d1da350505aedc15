"""Nodes shared among running malleable jobs: equipartition and the periodic transformations (5.2.2)."""

from __future__ import annotations

import msgspec

from .draft import Draft, waiting_first
from .machine import Machine, Running
from .shrink import step_size
from .speedup import speed


def equipartition(draft: Draft) -> None:
    """Give idle nodes to running malleable jobs and to those that start, one by one to the smallest share."""
    for partition in draft.machine.partitions:
        _share_out(draft, partition)


def _share_out(draft: Draft, partition: str) -> None:
    idle = draft.idle_in(partition).bit_count()
    if not idle:
        return
    room = {job.entry.job: job.entry.max_nodes for job in draft.elastic(partition)}
    held = {name: draft.count[name] for name in room}
    for name, (entry, nodes) in draft.starts.items():
        if entry.partition == partition and entry.type == "malleable":
            room[name], held[name] = entry.max_nodes, nodes.bit_count()
    before = dict(held)
    open_jobs = [name for name in held if held[name] < room[name]]
    while idle and open_jobs:
        name = min(open_jobs, key=held.__getitem__)
        held[name] += 1
        idle -= 1
        if held[name] == room[name]:
            open_jobs.remove(name)
    for name in held:
        if held[name] == before[name]:
            continue
        if name in draft.starts:
            draft.resize_start(name, held[name])
        else:
            draft.resize(name, held[name])


def full_transformation(machine: Machine) -> Machine:
    """Return the machine after a full transformation: idle nodes go to who makes most of them.

    Holders of dependencies come first, at the expense of jobs without; else nodes go by speedup: idle ones to
    the job that gains most by one more, and from the job that loses least while another gains more.
    """
    draft = Draft(machine)
    for partition in machine.partitions:
        jobs = draft.elastic(partition)
        holders = [job for job in jobs if job.entry.job in draft.holds_for]
        others = [job for job in jobs if job.entry.job not in draft.holds_for]
        for holder in holders:
            _expand_first(draft, holder, others)
        _by_speedup(draft, jobs, partition, movable=others if not holders else [])
    return draft.committed()


def _expand_first(draft: Draft, holder: Running, others: list[Running]) -> None:
    """Expand a holder to its maximum; jobs without dependencies shrink for it, at worst to their minimum."""
    name, most = holder.entry.job, holder.entry.max_nodes
    idle = draft.idle_in(draft.partition(name)).bit_count()
    missing = most - draft.count[name] - idle
    for job in waiting_first(others):
        give = min(missing, draft.count[job.entry.job] - job.entry.min_nodes)
        if give > 0:
            draft.resize(job.entry.job, draft.count[job.entry.job] - give)
            missing -= give
    idle = draft.idle_in(draft.partition(name)).bit_count()
    if draft.count[name] < most and idle:
        draft.resize(name, min(most, draft.count[name] + idle))
        draft.grown_for[name] = draft.holds_for[name]


def _by_speedup(draft: Draft, jobs: list[Running], partition: str, *, movable: list[Running]) -> None:
    """Hand idle nodes to the largest gain; move nodes while a gain is clearly above a loss."""
    if not jobs:
        return
    names = {job.entry.job: job for job in jobs}
    idle = draft.idle_in(partition).bit_count()
    count = dict(draft.count)

    def gain(name: str, at: int) -> float:
        """Return the work per second that one more node brings, in node-equivalents of its minimum."""
        job = names[name].entry
        return speed(job.speedup, at + 1) - speed(job.speedup, at)

    def left(name: str) -> float:
        return names[name].planned_end_s(count[name], draft.now_s)

    while idle:
        open_jobs = [name for name in names if count[name] < names[name].entry.max_nodes]
        if not open_jobs:
            break
        # Among equal gains the job that would end last: it is the one that others wait for.
        best = max(open_jobs, key=lambda name: (round(gain(name, count[name]), 9), left(name)))
        count[best] += 1
        idle -= 1
    for _ in range(sum(job.count for job in movable)):
        givers = [j.entry.job for j in movable if count[j.entry.job] > j.entry.min_nodes]
        takers = [name for name in names if count[name] < names[name].entry.max_nodes]
        if not givers or not takers:
            break
        giver = min(givers, key=lambda name: gain(name, count[name] - 1))
        taker = max(takers, key=lambda name: gain(name, count[name]))
        if gain(taker, count[taker]) <= 1.05 * gain(giver, count[giver] - 1):
            break
        count[giver], count[taker] = count[giver] - 1, count[taker] + 1
    for name in sorted(names, key=lambda name: count[name] - draft.count[name]):
        if count[name] != draft.count[name]:
            draft.resize(name, count[name])


def partial_transformation(machine: Machine, attempts: int) -> Machine:
    """Return the machine after a partial transformation: jobs above their equal share shrink by one step."""
    draft = Draft(machine)
    for partition in machine.partitions:
        jobs = draft.elastic(partition)
        if not jobs:
            continue
        nodes = sum(job.count for job in jobs) + draft.idle_in(partition).bit_count()
        share = nodes // len(jobs)
        for job in jobs:
            least = max(share, job.entry.min_nodes)
            if job.count > least:
                step = step_size(job.count - job.entry.min_nodes, attempts)
                draft.resize(job.entry.job, max(least, job.count - step))
    return draft.committed()


def settled(machine: Machine) -> Machine:
    """Return the machine with every job accounted at the nodes it holds: its first periodic step has come."""
    running = {
        name: job if job.pace == job.count else job.on(job.nodes, machine.now_s)
        for name, job in machine.running.items()
    }
    return msgspec.structs.replace(machine, running=running)
