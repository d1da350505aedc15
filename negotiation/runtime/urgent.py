"""Urgent jobs: room at once by shrinking, then by suspending or killing (Nagendra, chapter 4)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ..job_records import JobReport, JobState, MapEntry
from .backfill_plan import resume_count
from .placement_constraints import in_parts, start_nodes
from .runtime_machine import MachineState, RunRecord, bits_of, report, started
from .settings import Urgency
from .tentative import TentativeState, waiting_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The machine after room was made, who paid, and what iBSched must hear of killed jobs.

    ``machine`` is as before when the job cannot start.
    """

    machine: MachineState
    is_started: bool
    shrunk: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    losses: tuple[JobReport, ...] = ()
    why: str = ""


def start_urgent(machine: MachineState, entry: MapEntry, urgency: Urgency) -> Made:
    """Return the machine on which a job has started now.

    It takes idle nodes, then those of malleable jobs down to their minimum, then those of jobs that are
    suspended or killed, lowest priority first. Urgent jobs give nothing.
    """
    if machine.knows(entry.job):
        return Made(machine=machine, is_started=entry.job in machine.running, why="it has started already")
    entry = in_parts(entry, machine.parts)
    draft = TentativeState(machine)
    total = machine.partitions.get(entry.partition, 0).bit_count()
    count = entry.node_cnt or min(entry.node_count.max, total)
    if not entry.min_nodes <= count <= total:
        return Made(
            machine=machine, is_started=False, why=f"the partition has {total // machine.parts} nodes"
        )
    named = set(entry.nodes)
    wanted = sum(bits for name, bits in bits_of(machine.names).items() if name in named)
    shrunk = _shrink(draft, entry.partition, count)
    after = draft.committed()
    victims = _victims(after, entry, count, urgency)
    idle = after.idle & after.partitions[entry.partition]
    if idle.bit_count() + sum(job.count for job in victims) < count:
        return Made(machine=machine, is_started=False, why="running jobs may not give that many nodes")
    after, losses, killed = _removed(after, victims, urgency)
    nodes = start_nodes(entry, after, after.idle, count, wanted)
    if not nodes:
        return Made(machine=machine, is_started=False, why="it may not use the nodes that can be had")
    job = msgspec.structs.replace(started(entry, nodes, machine.now_s), is_urgent=True)
    after = msgspec.structs.replace(
        after, running={**after.running, entry.job: job}, idle=after.idle & ~nodes
    )
    gone = {victim.entry.job for victim in victims}
    return Made(
        machine=after,
        is_started=True,
        shrunk=tuple(name for name in shrunk if name not in gone),
        suspended=tuple(name for name in after.suspended if name in gone),
        killed=killed,
        losses=losses,
    )


def _shrink(draft: TentativeState, partition: str, count: int) -> list[str]:
    shrunk = []
    for job in waiting_first(draft.elastic(partition)):
        missing = count - draft.idle_in(partition).bit_count()
        give = min(missing, draft.count[job.entry.job] - job.entry.min_nodes)
        if give > 0:
            draft.resize(job.entry.job, draft.count[job.entry.job] - give)
            shrunk.append(job.entry.job)
    return shrunk


def _victims(machine: MachineState, entry: MapEntry, count: int, urgency: Urgency) -> list[RunRecord]:
    """Return the jobs that must leave, lowest priority first, no more than needed."""
    idle = (machine.idle & machine.partitions[entry.partition]).bit_count()
    if urgency == "shrink":
        return []
    jobs = [
        job
        for job in machine.running.values()
        if job.nodes & machine.partitions[entry.partition]
        and not job.is_urgent
        # Where it could go on below few switches only a Map could say.
        and (urgency == "kill" or job.entry.max_switches is None)
        and (urgency == "kill" or job.entry.can_suspend)
    ]
    victims: list[RunRecord] = []
    for job in waiting_first(jobs):
        if idle >= count:
            break
        victims.append(job)
        idle += job.count
    # One that turned out not to be needed stays: the last ones taken may be larger than what was missing.
    for job in list(victims):
        if idle - job.count >= count:
            victims.remove(job)
            idle -= job.count
    return victims


def _removed(
    machine: MachineState, victims: list[RunRecord], urgency: Urgency
) -> tuple[MachineState, tuple[JobReport, ...], tuple[str, ...]]:
    """Return the machine without some jobs: suspended with their progress, or killed and queued again."""
    running, suspended, idle = dict(machine.running), dict(machine.suspended), machine.idle
    losses: list[JobReport] = []
    for job in victims:
        name = job.entry.job
        del running[name]
        idle |= job.nodes
        at = job.brought_to(machine.now_s)
        if urgency == "suspend":
            suspended[name] = msgspec.structs.replace(at, nodes=0, holds_for="", grown_for="")
        else:
            lost = report(machine, at, JobState.QUEUED, machine.now_s)
            losses.append(
                msgspec.structs.replace(lost, node_count=0, nodes=(), lost_node_s=lost.node_s, node_s=0.0)
            )
    after = msgspec.structs.replace(machine, running=running, suspended=suspended, idle=idle)
    return after, tuple(losses), tuple(loss.job for loss in losses)


def resumed(machine: MachineState) -> tuple[MachineState, tuple[str, ...]]:
    """Return the machine with every suspended job running again that finds its nodes idle, in order."""
    running, suspended, idle = dict(machine.running), dict(machine.suspended), machine.idle
    names = []
    for name, job in machine.suspended.items():
        free = idle & machine.partitions[job.entry.partition]
        most, least = min(job.count, free.bit_count()), resume_count(job.entry, job.count)
        tried = (start_nodes(job.entry, machine, free, count) for count in range(most, least - 1, -1))
        nodes = next((nodes for nodes in tried if nodes), 0)
        if not nodes:
            continue
        count = nodes.bit_count()
        running[name] = msgspec.structs.replace(
            job, nodes=nodes, count=count, pace=count, since_s=machine.now_s
        )
        del suspended[name]
        idle &= ~nodes
        names.append(name)
    if not names:
        return machine, ()
    after = msgspec.structs.replace(machine, running=running, suspended=suspended, idle=idle)
    return after, tuple(names)
