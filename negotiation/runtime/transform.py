"""Transformations of running jobs, for those of a Map or an urgent job.

For a Map it is DBES made negotiable (Nagendra, algorithm 5). An urgent job gets room at once: by
shrinking, then by suspending or killing (Nagendra, chapter 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...cluster.text import plural
from ..job_records import JobReport, JobState, MapEntry, OfferReservation, run_time_s
from ..messages import Code, UrgentJobResponse
from .placement_constraints import has_constraints, in_parts, start_nodes, touched, usable
from .runtime_machine import MachineState, RunRecord, bits_of, report, started, union_of
from .settings import RuntimeSettings, Urgency
from .share import Shrinking, equipartition, shrink
from .tentative import (
    Planned,
    TentativeState,
    holders_of,
    plan,
    resume_count,
    update_dependencies,
    waiting_first,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """What a transformation comes to.

    Attributes:
        machine: as it would be once committed, idle nodes shared out.
        started: jobs that would start, in order; none of an atomic Map that cannot start whole.
        idle: nodes left idle before they are shared out: what an offer offers.
        reservations: of the forwarded jobs, in the order of the Map.
        is_accepted: this party's decision, and why.
    """

    machine: MachineState
    started: tuple[str, ...]
    idle: int
    reservations: tuple[OfferReservation, ...]
    is_accepted: bool
    why: str


def transform(
    machine: MachineState,
    entries: Sequence[MapEntry],
    settings: RuntimeSettings,
    *,
    attempt: int,
    atomic: bool = False,
    rejected_with: int | None = None,
) -> Transformation:
    """Return the transformation of one attempt, from the state at the beginning of the transaction.

    Args:
        machine: that state; it stays as it is.
        entries: the Map, in nodes; entries of jobs that started here already are ignored.
        settings: the limit of attempts, which dependencies count.
        attempt: from 1; the steps grow with it.
        atomic: all mapped entries start, or nothing does.
        rejected_with: see ``accepts``.
    """
    fresh = [in_parts(entry, machine.parts) for entry in entries if not machine.knows(entry.job)]
    draft = TentativeState(machine)
    reserved = _serve(draft, fresh, settings, attempt)
    # Whether every mapped entry starts, on as many nodes as it is mapped to.
    starts_whole = all(
        entry.job in draft.starts and draft.starts[entry.job][1].bit_count() == entry.node_cnt
        for entry in fresh
        if entry.node_cnt
    )
    reservations, idle = _reservations(draft, fresh, reserved), draft.idle
    if atomic and not starts_whole:
        return Transformation(
            machine=machine,
            started=(),
            idle=idle,
            reservations=reservations,
            is_accepted=False,
            why="the Map is atomic and not all of it can start",
        )
    is_accepted, why = accepts(
        draft, reserved, settings, forwarded=len(fresh), attempt=attempt, rejected_with=rejected_with
    )
    equipartition(draft, with_starts=settings.equipartition == "all")
    return Transformation(
        machine=draft.committed(at_minimum=settings.start_at_minimum),
        started=tuple(draft.starts),
        idle=idle,
        reservations=reservations,
        is_accepted=is_accepted,
        why=why,
    )


def _serve(
    draft: TentativeState, entries: Sequence[MapEntry], settings: RuntimeSettings, attempt: int
) -> list[Planned]:
    """Algorithm 5, lines 1-20: plan, shrink for reserved jobs, plan, expand holders, backfill."""
    bits = bits_of(draft.machine.names)
    # Names that are no nodes here do not bind.
    wanted = {one.job: sum(bits.get(name, 0) for name in one.nodes) for one in entries if one.nodes}
    shrinking = Shrinking(draft, attempt, settings.max_attempts, settings.shrink, settings.steps)
    reserved = plan(draft, entries, wanted)
    update_dependencies(draft, reserved, settings.dependencies)
    if _shrink_for_reserved(draft, reserved, shrinking, wanted):
        reserved = plan(draft, entries, wanted)
        update_dependencies(draft, reserved, settings.dependencies)
    if _expand_holders(draft, reserved, shrinking) and settings.last_backfill:
        reserved = plan(draft, entries, wanted)
        update_dependencies(draft, reserved, settings.dependencies)
    return reserved


def _shrink_for_reserved(
    draft: TentativeState, reserved: Sequence[Planned], shrinking: Shrinking, wanted: dict[str, int]
) -> bool:
    """Lines 6-9: shrink running jobs where that lets a reserved job start now.

    Where a job that may not use every node gets none that it may use, nobody has shrunk for it.
    """
    any_started = False
    room = {name: shrinking.can_give(name) for name in draft.machine.partitions}
    for planned in reserved:
        entry = planned.entry
        idle = usable(entry, draft.machine, draft.idle).bit_count()
        count = entry.node_cnt or planned.count
        need = count - idle
        # At need <= 0 the plan holds back enough idle nodes for a job before this one.
        if not 0 < need <= room[entry.partition]:
            continue
        before = draft.saved()
        shrinking.take(entry.partition, need, entry.job)
        if not draft.start(entry, count, wanted.get(entry.job, 0) if has_constraints(entry) else 0):
            draft.restore(before)
            continue
        room[entry.partition] = shrinking.can_give(entry.partition)
        any_started = True
    return any_started


def _expand_holders(draft: TentativeState, reserved: Sequence[Planned], shrinking: Shrinking) -> bool:
    """Lines 16-20: expand the jobs that a reserved job waits for, also at the expense of others."""
    any_grown = False
    claimed = set(draft.holds_for.values())
    for planned in reserved:
        waiting = planned.entry.job
        if waiting not in claimed:
            continue
        for job in holders_of(draft, waiting):
            most = draft.machine.running[job].entry.max_nodes
            partition = planned.entry.partition
            missing = most - draft.count[job] - draft.idle_in(partition).bit_count()
            if missing > 0:
                shrinking.take(partition, missing, waiting, spare=tuple(holders_of(draft, waiting)))
            before = draft.count[job]
            draft.resize(job, min(most, before + draft.idle_in(partition).bit_count()))
            if draft.count[job] > before:
                draft.grown_for[job] = waiting
                any_grown = True
    return any_grown


def _reservations(
    draft: TentativeState, entries: Sequence[MapEntry], reserved: Sequence[Planned]
) -> tuple[OfferReservation, ...]:
    """Return what the offer says of each forwarded job, in the order of the Map."""
    later = {planned.entry.job: planned for planned in reserved}
    found = []
    # A node that others share, or that an entry before has named, is none for the batch scheduler.
    named = union_of(draft.nodes.values())
    for entry in entries:
        if entry.job in draft.starts:
            found.append(_now(draft, entry, named))
            named |= draft.starts[entry.job][1]
        elif entry.job in later and later[entry.job].start_s < float("inf"):
            planned = later[entry.job]
            found.append(
                OfferReservation(job=entry.job, node_count=0, start_s=planned.start_s, end_s=planned.end_s)
            )
    return tuple(found)


def _now(draft: TentativeState, entry: MapEntry, named: int) -> OfferReservation:
    """Return the reservation of a job that starts; on a shared node it has no nodes of its own."""
    nodes = draft.starts[entry.job][1]
    count = nodes.bit_count()
    names = () if entry.parts and touched(draft.machine, nodes) & named else draft.machine.names_of(nodes)
    return OfferReservation(
        job=entry.job,
        node_count=len(names),
        nodes=names,
        start_s=draft.now_s,
        end_s=draft.now_s + run_time_s(entry, count),
    )


# Whether the runtime scheduler accepts a Map (5.2.2, decision logic).


def accepts(
    draft: TentativeState,
    reserved: Sequence[Planned],
    settings: RuntimeSettings,
    *,
    forwarded: int,
    attempt: int,
    rejected_with: int | None,
) -> tuple[bool, str]:
    """Return the decision about a Map that the transformation would serve, and why.

    Args:
        draft: the transformation, before equipartition.
        reserved: forwarded jobs that would not start.
        settings: the limit of attempts, and for which idle nodes to reject.
        forwarded: how many jobs the Map holds.
        attempt: from 1; the last one accepts.
        rejected_with: how many jobs would have started at this transaction's last rejection here.
    """
    starting, attempts = len(draft.starts), settings.max_attempts
    if attempt >= attempts:
        return True, "last attempt"
    if rejected_with is not None and starting <= rejected_with:
        return False, f"{plural(starting, 'job')} would start, no more than before"
    if starting == 1 and forwarded > 1 and 2 * attempt <= attempts:
        return False, "only one of the jobs would start"
    if settings.reject_idle == "any" and draft.idle:
        return False, "nodes would stay idle"
    if _idle_is_useful(draft, reserved):
        return False, "nodes would stay idle that a job could use"
    return True, plural(starting, "job", "starts")


def _idle_is_useful(draft: TentativeState, reserved: Sequence[Planned]) -> bool:
    """Say whether idle nodes remain that a forwarded job or a growing one could use.

    The thesis rejects while nodes are idle (``reject_idle``): rigid loads reach the last attempt.
    """
    for partition in draft.machine.partitions:
        idle = draft.idle_in(partition).bit_count()
        if not idle:
            continue
        if any(
            p.entry.partition == partition
            and p.entry.min_nodes <= usable(p.entry, draft.machine, draft.idle).bit_count()
            for p in reserved
        ):
            return True
        if any(draft.count[job.entry.job] < draft.reach(job.entry.job) for job in draft.elastic(partition)):
            return True
    return False


def start_urgent(
    machine: MachineState, entry: MapEntry, urgency: Urgency
) -> tuple[MachineState, UrgentJobResponse, tuple[JobReport, ...]]:
    """Return the machine with a job started now, the answer, and the reports of killed jobs.

    It takes idle nodes, then those of malleable jobs down to their minimum, then those of jobs that
    are suspended or killed, lowest priority first. Urgent jobs give nothing. Where it cannot start
    the machine is as before.
    """
    entry = in_parts(entry, machine.parts)
    draft = TentativeState(machine)
    total = machine.partitions.get(entry.partition, 0).bit_count()
    count = entry.node_cnt or min(entry.node_count.max, total)
    why = ""
    if machine.knows(entry.job):
        why = "it has started already"
    elif not entry.min_nodes <= count <= total:
        why = f"the partition has {total // machine.parts} nodes"
    if why:
        return machine, _refusal(machine, entry, why), ()
    named = set(entry.nodes)
    wanted = sum(bits for name, bits in bits_of(machine.names).items() if name in named)
    elastic = draft.elastic(entry.partition)
    least = {job.entry.job: job.entry.min_nodes for job in elastic}
    shrunk = shrink(draft, elastic, least, count - draft.idle_in(entry.partition).bit_count())
    after = draft.committed()
    victims = _victims(after, entry, count, urgency)
    idle = after.idle & after.partitions[entry.partition]
    if idle.bit_count() + sum(job.count for job in victims) < count:
        return machine, _refusal(machine, entry, "running jobs may not give that many nodes"), ()
    after, losses = _removed(after, victims, urgency)
    nodes = start_nodes(entry, after, after.idle, count, wanted)
    if not nodes:
        return machine, _refusal(machine, entry, "it may not use the nodes that can be had"), ()
    job = msgspec.structs.replace(started(entry, nodes, machine.now_s), is_urgent=True)
    after = msgspec.structs.replace(
        after, running={**after.running, entry.job: job}, idle=after.idle & ~nodes
    )
    gone = {victim.entry.job for victim in victims}
    answer = UrgentJobResponse(
        time_s=machine.now_s,
        job=entry.job,
        code=Code.ACCEPT,
        nodes=machine.names_of(nodes),
        shrunk=tuple(name for name in shrunk if name not in gone),
        suspended=tuple(name for name in after.suspended if name in gone),
        killed=tuple(loss.job for loss in losses),
    )
    return after, answer, losses


def _refusal(machine: MachineState, entry: MapEntry, why: str) -> UrgentJobResponse:
    """Return why an urgent job does not start; one that runs already is accepted once more."""
    running = machine.running.get(entry.job)
    return UrgentJobResponse(
        time_s=machine.now_s,
        job=entry.job,
        code=Code.REJECT if running is None else Code.ACCEPT,
        nodes=() if running is None else machine.names_of(running.nodes),
        text=why,
    )


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
        and (urgency == "kill" or (job.entry.can_suspend and job.entry.max_switches is None))
    ]
    victims: list[RunRecord] = []
    for job in waiting_first(jobs):
        if idle >= count:
            break
        victims.append(job)
        idle += job.count
    # One that was not needed stays: the last ones taken may be larger than what was missing.
    for job in list(victims):
        if idle - job.count >= count:
            victims.remove(job)
            idle -= job.count
    return victims


def _removed(
    machine: MachineState, victims: list[RunRecord], urgency: Urgency
) -> tuple[MachineState, tuple[JobReport, ...]]:
    """Return the machine without some jobs: suspended with their progress, or killed and queued."""
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
    return after, tuple(losses)


def resumed(machine: MachineState) -> tuple[MachineState, tuple[str, ...]]:
    """Return the machine with each suspended job running again whose nodes are idle, in order."""
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
