"""iBSched: the batch scheduler's transition function (Nagendra, figure 6.1; algorithm 1 is in its mappers).

``step`` is pure: it takes the state and an event or a message, and returns the state after it and what is to
be sent. Whoever drives it owns the connection, the journal and the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

import msgspec

from ..cluster.errors import InputError
from ..runtime.records import JobReport, JobState, MapEntry, NodeCount
from .auction_map import auction_map
from .batch_state import BatchState, MapperName, Session
from .decision import DECISIONS, Memory
from .events import Connect, Disconnect, Event, Leave, Send, Submit
from .greedy import greedy_map
from .mapping import Away, Mapper, Offered, Place, Request
from .messages import (
    PROTOCOL_VERSION,
    Code,
    FromBatchBase,
    Message,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
    UrgentJob,
    UrgentJobResponse,
)
from .protocol import Phase, ProtocolError
from .ranges import CHOOSES_SIZE, relaxed_range

#: What ``--mapper`` names.
MAPPERS: dict[MapperName, Mapper] = {"greedy": greedy_map, "auction": auction_map}

Step = tuple[BatchState, tuple[Send, ...]]


class _Outlook(TypedDict):
    """What every message of the batch scheduler carries."""

    queued: int
    next_arrival_s: float | None
    next_urgent_s: float | None


_replace = msgspec.structs.replace


def step(state: BatchState, event: Event | Message, peer: str = "") -> Step:
    """Return the state after an event, or after a message of the runtime scheduler ``peer``.

    Raises:
        ProtocolError: the message may not come now; the state stays as it was.
        InputError: a submitted job has an id that is taken.
    """
    after, sends = _stepped(state, event, peer)
    for send in sends:
        if isinstance(send.message, FromBatchBase):
            # An empty Map says that nothing waits for this runtime scheduler.
            is_empty = isinstance(send.message, ResponseResourceOffer) and not send.message.map
            believed = 0 if is_empty else send.message.queued
            session = _replace(after.sessions[send.peer], believed=believed)
            after = _with_session(after, send.peer, session)
    return after, sends


def _stepped(state: BatchState, event: Event | Message, peer: str) -> Step:  # noqa: PLR0911 - a case each
    match event:
        case Submit():
            return _submitted(state, event)
        case Connect():
            return _connected(state, peer)
        case Disconnect():
            return _disconnected(state, peer), ()
        case Leave():
            return _leaving(state, peer, event.text)
        case NegotiationStartResponse():
            return _started(state, event, peer)
        case ResourceOffer():
            return _offered(state, event, peer)
        case StatusReport():
            return _reported(state, event, peer)
        case UrgentJobResponse():
            return _urgent_answered(state, event, peer)
        case NegotiationEnd() | NegotiationEndResponse():
            return _ended(state, event, peer)
        case _:
            raise ProtocolError(f"{type(event).__name__} is no message to a batch scheduler")


# What comes from outside.


def _submitted(state: BatchState, event: Submit) -> Step:
    for job in event.jobs:
        if state.knows(job.job):
            raise InputError(f"{job.job!r} is queued or was", path="job")
    came_s = {**state.came_s, **{job.job: state.now_s for job in event.jobs}}
    state = _replace(state, came_s=came_s)
    return _pursue(_with_jobs(state, event.jobs, urgent=event.urgent))


def _connected(state: BatchState, peer: str) -> Step:
    state = _arrived(_disconnected(state, peer))
    state = _with_session(state, peer, Session(phase=Phase.STARTING))
    settings = state.settings
    start = NegotiationStart(
        version=PROTOCOL_VERSION,
        max_attempts=settings.max_attempts,
        interval_s=settings.interval_s,
        started=sum(1 for away in state.away.values() if away.peer == peer),
        **_outlook(state),
    )
    return state, (Send(peer, start),)


def _disconnected(state: BatchState, peer: str) -> BatchState:
    """Void what is open with a peer; urgent jobs that it did not answer will be sent again."""
    urgent = {job: (None if to == peer else to, entry) for job, (to, entry) in state.urgent.items()}
    return _with_session(_replace(state, urgent=urgent), peer, Session())


def _leaving(state: BatchState, peer: str, text: str) -> Step:
    session = _session(state, peer)
    return _with_session(state, peer, _void(session, Phase.ENDING)), (Send(peer, NegotiationEnd(text)),)


# What the runtime scheduler says.


def _started(state: BatchState, message: NegotiationStartResponse, peer: str) -> Step:
    session = _session(state, peer, Phase.STARTING)
    if message.code is Code.REJECT or message.version != PROTOCOL_VERSION:
        text = message.text or f"version {message.version} is not {PROTOCOL_VERSION}"
        raise ProtocolError(f"the runtime scheduler refuses: {text}")
    session = _replace(session, phase=Phase.WAITING, place=Place.of(message.partitions))
    return _replace(_with_session(state, peer, session), now_s=message.time_s), ()


def _reported(state: BatchState, message: StatusReport, peer: str) -> Step:
    _open_session(state, peer)
    state = _told(_replace(state, now_s=max(state.now_s, message.time_s)), message.reports, peer)
    if message.complete:
        named = {report.job for report in message.reports}
        lost = [job for job, away in state.away.items() if away.peer == peer and job not in named]
        state = _queued_again(state, lost)
    return _pursue(_arrived(state))


def _offered(state: BatchState, message: ResourceOffer, peer: str) -> Step:
    if _session(state, peer).phase is Phase.ENDING:
        return state, ()  # it crossed the end
    session = _in_order(_open_session(state, peer), message)
    state = _arrived(_replace(state, now_s=max(state.now_s, message.time_s)))
    if message.negotiation == 0:
        closed = _void(session, Phase.WAITING)
        return _pursue(_with_session(state, peer, closed))
    if any(to is None for to, _ in state.urgent.values()):
        # The urgent jobs void the transaction; the runtime scheduler offers again when they run.
        return _pursue(_with_session(state, peer, _void(session, Phase.WAITING)))
    state = _with_session(state, peer, session)
    entries = _candidates(state, session, peer)
    if not entries:
        empty = ResponseResourceOffer(
            transaction=message.transaction,
            attempt=message.attempt,
            code=Code.ACCEPT,
            text="nothing waits",
            **_outlook(state),
        )
        return _with_session(state, peer, _void(session, Phase.WAITING)), (Send(peer, empty),)
    return _answered(state, message, peer, entries)


def _answered(state: BatchState, message: ResourceOffer, peer: str, entries: list[MapEntry]) -> Step:
    """Map the queue to an offer, decide, and answer."""
    settings, session = state.settings, state.sessions[peer]
    later = {entry.job: entry.start_s for entry in message.reservations if not entry.node_count}
    relaxed = dict(session.relaxed)
    if session.memory.relaxes:
        for job in later:
            relaxed[job] = relaxed.get(job, 0) + 1
    request = Request(
        queue=[(entry, _range(entry, settings.max_attempts, relaxed)) for entry in entries],
        offered=_as_offered(state, message, session, peer, later),
        depth=settings.depth,
        switches=settings.switches,
        came_s=state.came_s,
        patience_s=settings.patience_s,
    )
    slots = MAPPERS[settings.mapper](request)
    code = DECISIONS[settings.decision](request, slots, session.memory, settings.third_of)
    if message.attempt >= settings.max_attempts:
        code = Code.ACCEPT
    answer = ResponseResourceOffer(
        transaction=message.transaction,
        attempt=message.attempt,
        code=code,
        map=tuple(slot.to_entry(session.place) for slot in slots),
        atomic=settings.atomic,
        **_outlook(state),
    )
    session = _replace(
        session,
        phase=Phase.NEGOTIATING,
        transaction=message.transaction,
        attempt=message.attempt,
        relaxed=relaxed,
        forwarded=frozenset(slot.entry.job for slot in slots),
        memory=session.memory.after(code, slots),
    )
    return _with_session(state, peer, session), (Send(peer, answer),)


def _urgent_answered(state: BatchState, message: UrgentJobResponse, peer: str) -> Step:
    _open_session(state, peer)
    to, entry = state.urgent.get(message.job, (None, None))
    if entry is None and message.job in state.away:
        return state, ()
    if entry is None or to != peer:
        raise ProtocolError(f"{message.job!r} is no urgent job that waits for an answer")
    urgent = {job: value for job, value in state.urgent.items() if job != message.job}
    state = _replace(state, urgent=urgent, now_s=max(state.now_s, message.time_s))
    if message.code is Code.ACCEPT:
        report = JobReport(
            job=message.job,
            state=JobState.RUNNING,
            node_count=len(message.nodes),
            nodes=message.nodes,
            start_s=message.time_s,
            run_time_s=0.0,
            end_s=message.time_s + entry.time_at_min_s,
        )
        away = {**state.away, message.job: Away(peer=peer, entry=entry, report=report)}
        return _pursue(_believing(_replace(state, away=away), peer, -1))
    first = max((waiting.priority for waiting in state.queue.values()), default=0) + 1
    entry = _replace(entry, priority=max(entry.priority, first))
    return _with_queue(state, {**state.queue, entry.job: entry}), ()


def _ended(state: BatchState, message: NegotiationEnd | NegotiationEndResponse, peer: str) -> Step:
    session = _session(state, peer)
    if isinstance(message, NegotiationEndResponse):
        if session.phase is not Phase.ENDING:
            raise ProtocolError("nobody has ended the negotiation")
        return _with_session(state, peer, Session()), ()
    return _disconnected(state, peer), (Send(peer, NegotiationEndResponse()),)


# How the state changes.


def _with_session(state: BatchState, peer: str, session: Session) -> BatchState:
    return _replace(state, sessions={**state.sessions, peer: session})


def _void(session: Session, phase: Phase) -> Session:
    """Return a session without a transaction."""
    return _replace(session, phase=phase, relaxed={}, forwarded=frozenset(), memory=Memory())


def _with_queue(state: BatchState, queue: dict[str, MapEntry]) -> BatchState:
    """Return the state with a queue put into its order."""
    return _replace(state, queue=dict(sorted(queue.items(), key=lambda item: -item[1].priority)))


def _with_jobs(state: BatchState, jobs: Sequence[MapEntry], *, urgent: bool) -> BatchState:
    """Return the state with jobs that have come; urgent ones wait to be sent."""
    if urgent:
        return _replace(state, urgent={**state.urgent, **{job.job: (None, job) for job in jobs}})
    return _with_queue(state, {**state.queue, **{job.job: job for job in jobs}})


def _arrived(state: BatchState) -> BatchState:
    """Return the state with the jobs that have come by now."""
    arrived = state.arrived
    while arrived < len(state.arrivals) and state.arrivals[arrived].time_s <= state.now_s:
        arrived += 1
    if arrived == state.arrived:
        return state
    come = state.arrivals[state.arrived : arrived]
    came_s = {**state.came_s, **{entry.job.job: entry.time_s for entry in come}}
    state = _replace(state, arrived=arrived, came_s=came_s)
    state = _with_jobs(state, [entry.job for entry in come if entry.urgent], urgent=True)
    return _with_jobs(state, [entry.job for entry in come if not entry.urgent], urgent=False)


def _pursue(state: BatchState) -> Step:
    """Send what has to be sent now: urgent jobs, a request to who believes the queue empty, the end."""
    peers = [peer for peer, session in state.sessions.items() if session.is_open]
    if not peers:
        return state, ()
    unsent = [(job, entry) for job, (to, entry) in state.urgent.items() if to is None]
    waiting = [peer for peer in peers if state.sessions[peer].phase is Phase.WAITING]
    asks = [peer for peer in waiting if state.queue and not state.sessions[peer].believed]
    sends: list[Send] = []
    for job, entry in unsent:
        peer = _peer_for(state, peers, entry)
        state = _replace(state, urgent={**state.urgent, job: (peer, entry)})
        sends.append(Send(peer, UrgentJob(job=entry, **_outlook(state))))
    for peer in asks:
        jobs = _first_entries(state, peer)
        sends.append(Send(peer, RequestResourceOffer(jobs=jobs, **_outlook(state))))
    if state.settings.ends_when_done and state.is_finished:
        for peer in waiting:
            state, more = _leaving(state, peer, "all jobs are done")
            sends.extend(more)
    return state, _marked(sends)


def _marked(sends: list[Send]) -> tuple[Send, ...]:
    """Mark each message that another one to the same peer follows."""
    last = {send.peer: place for place, send in enumerate(sends)}
    return tuple(
        send
        if place == last[send.peer] or isinstance(send.message, NegotiationEnd)
        else Send(send.peer, _replace(send.message, more=True))
        for place, send in enumerate(sends)
    )


def _peer_for(state: BatchState, peers: list[str], entry: MapEntry) -> str:
    """Return the runtime scheduler with the job's partition, the first when none has it."""
    having = [peer for peer in peers if entry.partition in state.sessions[peer].place.partitions]
    return (having or peers)[0]


def _told(state: BatchState, reports: Iterable[JobReport], peer: str) -> BatchState:
    """Return the state with what reports say of jobs."""
    queue, urgent = dict(state.queue), dict(state.urgent)
    waited = len(queue) + len(urgent)
    away, done, lost = dict(state.away), dict(state.done), state.lost_node_s
    for report in reports:
        job = report.job
        if job in done:
            continue
        known = (
            away[job].entry if job in away else queue.get(job) or (urgent[job][1] if job in urgent else None)
        )
        if known is None:
            raise ProtocolError(f"a report names {job!r}, which was never submitted")
        for place in (queue, urgent, away):
            place.pop(job, None)
        if report.state is JobState.QUEUED:
            queue[job] = known
            lost += report.lost_node_s
        elif report.state is JobState.DONE:
            done[job] = report
        else:
            away[job] = Away(peer=peer, entry=known, report=report)
    state = _replace(state, urgent=urgent, away=away, done=done, lost_node_s=lost)
    state = _believing(state, peer, len(queue) + len(urgent) - waited)
    return _with_queue(state, queue) if len(queue) > len(state.queue) else _replace(state, queue=queue)


def _believing(state: BatchState, peer: str, change: int) -> BatchState:
    """Follow what a runtime scheduler must believe of the queue once it has started or killed jobs."""
    session = state.sessions[peer]
    return _with_session(state, peer, _replace(session, believed=max(0, session.believed + change)))


def _queued_again(state: BatchState, jobs: list[str]) -> BatchState:
    """Return the state with jobs queued that their runtime scheduler does not know."""
    if not jobs:
        return state
    queue = {**state.queue, **{job: state.away[job].entry for job in jobs}}
    away = {job: entry for job, entry in state.away.items() if job not in jobs}
    return _with_queue(_replace(state, away=away), queue)


# What messages are checked against and made of.


def _session(state: BatchState, peer: str, phase: Phase | None = None) -> Session:
    session = state.sessions.get(peer, Session())
    if session.phase is Phase.CLOSED or (phase is not None and session.phase is not phase):
        raise ProtocolError(f"the negotiation is {session.phase}")
    return session


def _open_session(state: BatchState, peer: str) -> Session:
    session = _session(state, peer)
    if session.phase is Phase.STARTING:
        raise ProtocolError("the negotiation has not started")
    return session


def _in_order(session: Session, message: ResourceOffer) -> Session:
    """Return the session as an offer finds it: one of a new transaction voids the one before.

    Raises:
        ProtocolError: neither the next attempt of the transaction nor the first of a later one.
    """
    is_next = message.transaction == session.transaction and session.phase is Phase.NEGOTIATING
    if is_next and (message.attempt == session.attempt + 1 or message.negotiation == 0):
        return session
    if message.transaction > session.transaction and message.attempt == 1 and message.negotiation == 1:
        return _replace(_void(session, Phase.WAITING), transaction=message.transaction)
    number, before = f"{message.transaction}.{message.attempt}", f"{session.transaction}.{session.attempt}"
    raise ProtocolError(f"offer {number} does not follow {before}")


def _candidates(state: BatchState, session: Session, peer: str) -> list[MapEntry]:
    """Return the jobs that may be forwarded to a peer, in queue order."""
    taken = {job for other, theirs in state.sessions.items() if other != peer for job in theirs.forwarded}
    sizes = {name: nodes.bit_count() for name, nodes in session.place.partitions.items()}
    return [
        _within(entry, sizes[entry.partition])
        for job, entry in state.queue.items()
        if job not in taken and sizes.get(entry.partition, 0) >= entry.min_nodes
    ]


def _within(entry: MapEntry, size: int) -> MapEntry:
    """Return a job as it may run where there are so many nodes: no range opens from beyond them."""
    if entry.max_nodes <= size:
        return entry
    return _replace(
        entry, max_nodes=size, node_count=NodeCount(min=min(entry.node_count.min, size), max=size)
    )


def _first_entries(state: BatchState, peer: str) -> tuple[MapEntry, ...]:
    """Return the jobs of a request: the first of the queue, unmapped."""
    entries = _candidates(state, state.sessions[peer], peer)[: max(1, state.settings.depth)]
    attempts = state.settings.max_attempts
    return tuple(_replace(entry, node_count=_range(entry, attempts, {})) for entry in entries)


def _range(entry: MapEntry, attempts: int, relaxed: dict[str, int]) -> NodeCount:
    if entry.type not in CHOOSES_SIZE:
        return entry.node_count
    return relaxed_range(entry, attempts, relaxed.get(entry.job, 0))


def _as_offered(
    state: BatchState, message: ResourceOffer, session: Session, peer: str, later: dict[str, float]
) -> Offered:
    place = session.place
    here = {job: away for job, away in state.away.items() if away.peer == peer}
    elastic: dict[str, int] = {}
    for away in here.values():
        if away.entry.type == "malleable":
            spare = max(0, away.report.node_count - away.entry.min_nodes)
            elastic[away.entry.partition] = elastic.get(away.entry.partition, 0) + spare
    return Offered(
        place=place,
        idle=place.mask(message.idle),
        promised={entry.job: place.mask(entry.nodes) for entry in message.reservations if entry.node_count},
        later=later,
        now_s=message.time_s,
        attempt=message.attempt,
        attempts=state.settings.max_attempts,
        running=here,
        elastic=elastic,
        next_arrival_s=state.next_arrival_s(),
    )


def _outlook(state: BatchState) -> _Outlook:
    """Return what every message tells of the queue and the jobs to come."""
    return {
        "queued": len(state.queue) + len(state.urgent),
        "next_arrival_s": state.next_arrival_s(),
        "next_urgent_s": state.next_urgent_s(),
    }
