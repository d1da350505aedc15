"""What the loop decides on: pinned jobs hold their nodes, jobs outside the gate are Slurm's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...cluster.jobs import Job, RunningJob
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.snapshot import Snapshot, free_resources
from ..answers.reservation_records import ReservationFigures
from .actions import OWN
from .live_queue import LiveJob, names_of

#: Why a job that is not behind the gate does not take part.
OUTSIDE = "not behind the gate: Slurm starts it"


def is_pinned(job: LiveJob, licence: str) -> bool:
    """Whether a job waits for exactly the nodes that it was pinned to."""
    return job.is_waiting and job.mark is not None and job.mark.since > 0 and not job.needs(licence)


def with_claims(
    snapshot: Snapshot,
    queue: Mapping[str, LiveJob],
    licence: str,
    reserved: Iterable[ReservationFigures] = (),
) -> Snapshot:
    """Return the snapshot with pinned jobs as running ones, and jobs outside the gate not eligible.

    A claim is cut to what is free on a node: what the job itself will find there is Slurm's to say. Nodes
    that only the loop's own reservations reserve take other jobs on the cores that are left.
    """
    ours = _reserved_by_us(reserved)
    free = {node.name: node.free for node in snapshot.nodes}
    jobs: list[Job] = []
    claims: list[RunningJob] = []
    for job in snapshot.jobs:
        live = queue.get(job.id)
        if live is not None and is_pinned(live, licence):
            claims.extend(_claims(job, live, free, snapshot.time))
        elif live is not None and live.needs(licence):
            jobs.append(job)
        else:
            jobs.append(replace(job, hold=job.hold or OUTSIDE))
    return replace(
        snapshot,
        nodes=tuple(
            _seconds_left(node, free[node.name], is_ours=node.name in ours) for node in snapshot.nodes
        ),
        jobs=tuple(jobs),
        running=(*snapshot.running, *claims),
        # Their cores are claimed one by one.
        reservations=tuple(one for one in snapshot.reservations if not one.name.startswith(OWN)),
    )


def _reserved_by_us(reserved: Iterable[ReservationFigures]) -> set[str]:
    """Return the nodes of the loop's reservations that are in no other."""
    entries = list(reserved)
    ours = {name for entry in entries if entry.name.startswith(OWN) for name in entry.nodes}
    return ours - {name for entry in entries if not entry.name.startswith(OWN) for name in entry.nodes}


def _seconds_left(node: Node, free: Resources, *, is_ours: bool) -> Node:
    state = node.state
    if is_ours and state is NodeState.RESERVED:
        state = NodeState.IDLE if free == node.total else NodeState.MIXED
    return node if node.free is free and node.state is state else replace(node, free=free, state=state)


def _claims(job: Job, live: LiveJob, free: dict[str, Resources], now: float | None) -> Iterator[RunningJob]:
    held: dict[str, Resources] = {}
    for name, cores in zip(names_of(live.required), live.mark.cores if live.mark else (), strict=False):
        if name in free:
            held[name] = use = _use(job, live, cores, free[name])
            free[name] = free_resources(free[name], use)
    if held:
        end = None if now is None or job.time_limit_s is None else now + job.time_limit_s
        yield RunningJob(
            id=job.id,
            nodes=held,
            end_time=end,
            user=job.user,
            group=job.group,
            account=job.account,
            qos=job.qos,
            partition=job.partition,
        )


def _use(job: Job, live: LiveJob, cores: int, free: Resources) -> Resources:
    request = job.request
    memory = request.memory_mib_per_node or (request.memory_mib_per_core or 0) * cores
    gres = live.mark.gres if live.mark else {}
    return Resources(
        cores=free.cores if request.exclusive else min(cores, free.cores),
        memory_mib=None if free.memory_mib is None else min(memory, free.memory_mib),
        gres={name: min(count, free.gres[name]) for name, count in gres.items() if name in free.gres},
    )
