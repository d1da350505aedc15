"""The batch scheduler's answer to an offer: who may be mapped, the mapper, the decision, the Map."""

from __future__ import annotations

from typing import Any

import msgspec

from ...cluster.jobs import JobKind
from ..job_records import MapEntry, NodeCount
from ..messages import Code, ResourceOffer, ResponseResourceOffer
from ..protocol import Send, SessionPhase
from ..runtime.performance import is_pressing, needed_count
from ..runtime.shrink import step_size
from .auction_map import auction_map
from .batch_state import BatchState, Session, with_session
from .greedy import greedy_map
from .mapping import DECISIONS, BatchSettings, Mapper, MapperName, MapRequest, Offered

#: Kinds with a size that may be chosen at their start.
CHOOSES_SIZE = frozenset({JobKind.MOLDABLE, JobKind.MALLEABLE})
#: What ``--mapper`` names.
MAPPERS: dict[MapperName, Mapper] = {"greedy": greedy_map, "auction": auction_map}

_replace = msgspec.structs.replace


def outlook(state: BatchState, peer: str) -> dict[str, Any]:
    """Return what every message to a peer tells of the queue and the jobs to come (``FromBatchBase``).

    Only of jobs that can run there: a runtime scheduler that believes others to wait, or to come first,
    offers nothing anew when one of its own comes.
    """
    session = state.sessions[peer]
    urgent = [to == peer or (to is None and has_room(entry, session)) for to, entry in state.urgent.values()]
    return {
        "queued": len(queued_for(state, peer)) + sum(urgent),
        "next_arrival_s": next_arrival_s(state, peer),
        "next_urgent_s": next_arrival_s(state, peer, urgent=True),
    }


def queued_for(state: BatchState, peer: str) -> list[tuple[MapEntry, int]]:
    """Return the queued jobs that a peer has room for when all is free, and how many nodes each may have."""
    session = state.sessions[peer]
    there = [(entry, _size_for(entry, session)) for entry in state.queue.values()]
    return [(entry, size) for entry, size in there if size >= entry.min_nodes]


def next_arrival_s(state: BatchState, peer: str, *, urgent: bool = False) -> float | None:
    """Return when the next job, or urgent job, comes that a peer has room for; None: none is known."""
    session, arrivals = state.sessions[peer], state.arrivals
    to_come = (arrivals[place] for place in range(state.arrived, len(arrivals)))
    there = (entry for entry in to_come if has_room(entry.job, session))
    return next((entry.time_s for entry in there if entry.urgent or not urgent), None)


def has_room(entry: MapEntry, session: Session) -> bool:
    """Whether a job could run with a peer when all its nodes are free."""
    return _size_for(entry, session) >= entry.min_nodes


def candidates(state: BatchState, peer: str) -> list[MapEntry]:
    """Return the jobs that may be forwarded to a peer, in queue order."""
    taken = {job for other, theirs in state.sessions.items() if other != peer for job in theirs.forwarded}
    there = queued_for(state, peer)
    return _pressing_first([_within(entry, size) for entry, size in there if entry.job not in taken], state)


def _pressing_first(entries: list[MapEntry], state: BatchState) -> list[MapEntry]:
    """Put jobs first that are about to miss their deadline, above all priorities, the earliest first."""
    pressing = [entry for entry in entries if is_pressing(entry, state.now_s)]
    if not pressing:
        return entries
    above = max(entry.priority for entry in entries) + 1
    first = sorted(pressing, key=lambda entry: entry.deadline_s or 0.0)
    names = {entry.job for entry in first}
    return [
        *(_replace(entry, priority=above) for entry in first),
        *(entry for entry in entries if entry.job not in names),
    ]


def _size_for(entry: MapEntry, session: Session) -> int:
    """Return how many nodes a job could have together in its partition there.

    A runtime scheduler that has not said what it holds could have them all.
    """
    if session.phase is SessionPhase.STARTING:
        return entry.max_nodes
    nodes = session.place.partitions.get(entry.partition, 0)
    if not entry.eligible or not nodes:
        return nodes.bit_count()
    return max((session.place.mask(names) & nodes).bit_count() for names in entry.eligible)


def _within(entry: MapEntry, size: int) -> MapEntry:
    """Return a job as it may run where there are that many nodes: no range opens from beyond them."""
    if entry.max_nodes <= size:
        return entry
    return _replace(
        entry, max_nodes=size, node_count=NodeCount(min=min(entry.node_count.min, size), max=size)
    )


def first_entries(state: BatchState, peer: str) -> tuple[MapEntry, ...]:
    """Return the jobs of a request: the first of the queue, unmapped."""
    settings = state.settings
    entries = candidates(state, peer)[: max(1, settings.depth)]
    return tuple(_replace(entry, node_count=_range(entry, settings, 0, state.now_s)) for entry in entries)


def _range(entry: MapEntry, settings: BatchSettings, times: int, now_s: float) -> NodeCount:
    """Return the range that a job stands at: no counts on which it would miss its deadline."""
    if entry.type not in CHOOSES_SIZE:
        return entry.node_count
    span = relaxed_range(entry, settings, times)
    return NodeCount(min=max(span.min, needed_count(entry, now_s)), max=span.max)


def relaxed_range(entry: MapEntry, settings: BatchSettings, times: int) -> NodeCount:
    """Return a job's range after that many relaxations (Nagendra 2016, 5.2.1, algorithm 1, and 6.3).

    A transaction begins with [max_nodes − step, max_nodes]. The step is at least 1, as algorithm 1 has it. A
    step that is rounded up reaches ``min_nodes`` after ``max_attempts − 1`` relaxations.
    """
    step = max(1, step_size(entry.max_nodes - entry.min_nodes, settings.max_attempts, settings.steps))
    return NodeCount(min=max(entry.min_nodes, entry.max_nodes - step * (1 + times)), max=entry.max_nodes)


def _as_offered(
    state: BatchState, message: ResourceOffer, session: Session, peer: str, later: dict[str, float]
) -> Offered:
    place = session.place
    here = {job: dispatched for job, dispatched in state.dispatched.items() if dispatched.peer == peer}
    elastic: dict[str, int] = {}
    for dispatched in here.values():
        if dispatched.entry.type == "malleable":
            spare = max(0, dispatched.report.node_count - dispatched.entry.min_nodes)
            elastic[dispatched.entry.partition] = elastic.get(dispatched.entry.partition, 0) + spare
    return Offered(
        place=place,
        idle=place.mask(message.idle),
        promised={entry.job: place.mask(entry.nodes) for entry in message.reservations if entry.node_count},
        later=later,
        now_s=message.time_s,
        attempt=message.attempt,
        running=here,
        elastic=elastic,
    )


def answered(
    state: BatchState, message: ResourceOffer, peer: str, entries: list[MapEntry]
) -> tuple[BatchState, tuple[Send, ...]]:
    """Map the queue to an offer, decide, and answer."""
    settings, session = state.settings, state.sessions[peer]
    later = {entry.job: entry.start_s for entry in message.reservations if not entry.node_count}
    relaxed = dict(session.relaxed)
    if session.memory.relaxes:
        for job in later:
            relaxed[job] = relaxed.get(job, 0) + 1
    request = MapRequest(
        queue=[
            (entry, _range(entry, settings, relaxed.get(entry.job, 0), message.time_s)) for entry in entries
        ],
        offered=_as_offered(state, message, session, peer, later),
        settings=settings,
        came_s=state.came_s,
    )
    slots = MAPPERS[settings.mapper](request)
    code = DECISIONS[settings.decision](request, slots, session.memory)
    if message.attempt >= settings.max_attempts:
        code = Code.ACCEPT
    answer = ResponseResourceOffer(
        transaction=message.transaction,
        attempt=message.attempt,
        code=code,
        map=tuple(slot.to_entry(session.place) for slot in slots),
        atomic=settings.atomic,
        **outlook(state, peer),
    )
    session = _replace(
        session,
        phase=SessionPhase.NEGOTIATING,
        transaction=message.transaction,
        attempt=message.attempt,
        relaxed=relaxed,
        forwarded=tuple(slot.entry.job for slot in slots),
        memory=session.memory.after(code, slots),
    )
    return with_session(state, peer, session), (Send(peer, answer),)
