"""iBSched: the batch scheduler's transition function (Nagendra, figure 6.1; mapping: algorithm 1).

``step`` is pure: it takes the state and an event or a message, and returns the state after it and
what is to be sent. Whoever drives it owns the connection, the journal and the clock.
"""

import msgspec

from ...cluster.errors import InputError
from ..job_records import JobReport, JobState, MapEntry, run_time_s
from ..messages import (
    PROTOCOL_VERSION,
    Code,
    Connect,
    Disconnect,
    Event,
    FromBatchBase,
    Leave,
    Message,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    ProtocolError,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    Send,
    SessionPhase,
    StatusReport,
    Submit,
    UrgentJob,
    UrgentJobResponse,
)
from .batch_state import (
    BatchState,
    Session,
    abort,
    admit,
    answered,
    candidates,
    first_entries,
    has_room,
    outlook,
    queued_again,
    queued_for,
    set_estimate,
    with_jobs,
    with_queue,
    with_reports,
    with_session,
)
from .mapping import Dispatched, Place

Step = tuple[BatchState, tuple[Send, ...]]
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
            # When the runtime scheduler that hears this waits to hear of a job that comes.
            times = [send.message.next_urgent_s, None if send.message.queued else send.message.next_arrival_s]
            hears_s = min((time for time in times if time is not None), default=None)
            session = _replace(after.sessions[send.peer], believed=believed, hears_s=hears_s)
            after = with_session(after, send.peer, session)
    return after, sends


def _stepped(state: BatchState, event: Event | Message, peer: str) -> Step:  # noqa: PLR0911 - cases
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
            raise ProtocolError(f"{type(event).__name__} is not a message to a batch scheduler")


# What comes from outside.


def _submitted(state: BatchState, event: Submit) -> Step:
    for job in event.jobs:
        if state.knows(job.job):
            raise InputError(f"{job.job!r} is queued or was", path="job")
    came_s = {**state.came_s, **{job.job: state.now_s for job in event.jobs}}
    state = _replace(state, came_s=came_s)
    return _pursue(with_jobs(state, event.jobs, urgent=event.urgent))


def _connected(state: BatchState, peer: str) -> Step:
    state = admit(_disconnected(state, peer))
    state = with_session(state, peer, Session(phase=SessionPhase.STARTING))
    settings = state.settings
    start = NegotiationStart(
        version=PROTOCOL_VERSION,
        max_attempts=settings.max_attempts,
        interval_s=settings.interval_s,
        started=sum(1 for dispatched in state.dispatched.values() if dispatched.peer == peer),
        **outlook(state, peer),
    )
    return state, (Send(peer, start),)


def _disconnected(state: BatchState, peer: str) -> BatchState:
    """Void what is open with a peer; urgent jobs that it did not answer will be sent again."""
    urgent = {job: (None if to == peer else to, entry) for job, (to, entry) in state.urgent.items()}
    return with_session(_replace(state, urgent=urgent), peer, Session())


def _leaving(state: BatchState, peer: str, text: str) -> Step:
    session = _session(state, peer)
    return with_session(state, peer, abort(session, SessionPhase.ENDING)), (Send(peer, NegotiationEnd(text)),)


# What the runtime scheduler says.


def _started(state: BatchState, message: NegotiationStartResponse, peer: str) -> Step:
    session = _session(state, peer, SessionPhase.STARTING)
    if message.code is Code.REJECT or message.version != PROTOCOL_VERSION:
        text = message.text or f"version {message.version} is not {PROTOCOL_VERSION}"
        raise ProtocolError(f"the runtime scheduler refuses: {text}")
    session = _replace(session, phase=SessionPhase.WAITING, place=Place.of(message.partitions))
    return _replace(with_session(state, peer, session), now_s=message.time_s), ()


def _reported(state: BatchState, message: StatusReport, peer: str) -> Step:
    _open_session(state, peer)
    state = _replace(state, now_s=max(state.now_s, message.time_s))
    if message.complete:
        # A batch scheduler that has lost its journal hears of jobs that have yet to come to it.
        state = admit(state)
    state = with_reports(state, message.reports, peer)
    if message.complete:
        named = {report.job for report in message.reports}
        lost = [
            job
            for job, dispatched in state.dispatched.items()
            if dispatched.peer == peer and job not in named
        ]
        state = queued_again(state, lost)
    state, sends = _pursue(admit(state))
    session = state.sessions[peer]
    waits = (
        session.phase is SessionPhase.WAITING
        and session.hears_s is not None
        and session.hears_s <= state.now_s
    )
    if waits and all(send.peer != peer for send in sends):
        # It waits to hear of a job that went elsewhere, or started there before this party came.
        sends = (*sends, Send(peer, RequestResourceOffer(jobs=(), **outlook(state, peer))))
    return state, sends


def _offered(state: BatchState, message: ResourceOffer, peer: str) -> Step:
    if _session(state, peer).phase is SessionPhase.ENDING:
        return state, ()  # it crossed the end
    session = _in_order(_open_session(state, peer), message)
    state = admit(_replace(state, now_s=max(state.now_s, message.time_s)))
    if message.negotiation == 0 and state.settings.atomic:
        # The same Map would be refused again: of one job alone some Map starts once all is idle.
        is_refused = message.code is Code.REJECT
        session = _replace(session, most=max(1, session.memory.mapped // 2) if is_refused else None)
    # Urgent jobs void the transaction; the runtime scheduler offers again when they run.
    if message.negotiation == 0 or any(to == peer for to, _ in _unsent(state).values()):
        return _pursue(with_session(state, peer, abort(session, SessionPhase.WAITING)))
    state = with_session(state, peer, session)
    entries = candidates(state, peer)
    if not entries:
        empty = ResponseResourceOffer(
            transaction=message.transaction,
            attempt=message.attempt,
            code=Code.ACCEPT,
            text="nothing waits",
            **outlook(state, peer),
        )
        state = with_session(state, peer, abort(session, SessionPhase.WAITING))
        if not (state.settings.ends_when_done and state.is_finished):
            return state, (Send(peer, empty),)
        state, end = _leaving(state, peer, "all jobs are done")
        return state, (Send(peer, empty), *end)
    return answered(state, message, peer, entries)


def _urgent_answered(state: BatchState, message: UrgentJobResponse, peer: str) -> Step:
    _open_session(state, peer)
    to, entry = state.urgent.get(message.job, (None, None))
    if entry is None and message.job in state.dispatched:
        return state, ()
    if entry is None or to != peer:
        raise ProtocolError(f"{message.job!r} is not an urgent job that waits for an answer")
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
            end_s=message.time_s + run_time_s(entry, max(len(message.nodes), entry.min_nodes)),
        )
        dispatched = {**state.dispatched, message.job: Dispatched(peer=peer, entry=entry, report=report)}
        return _pursue(set_estimate(_replace(state, dispatched=dispatched), peer, -1))
    first = max((waiting.priority for waiting in state.queue.values()), default=0) + 1
    entry = _replace(entry, priority=max(entry.priority, first))
    return with_queue(state, {**state.queue, entry.job: entry}), ()


def _ended(state: BatchState, message: NegotiationEnd | NegotiationEndResponse, peer: str) -> Step:
    session = _session(state, peer)
    if isinstance(message, NegotiationEndResponse):
        if session.phase is not SessionPhase.ENDING:
            raise ProtocolError("nobody has ended the negotiation")
        return with_session(state, peer, Session()), ()
    return _disconnected(state, peer), (Send(peer, NegotiationEndResponse()),)


# What is sent, and what messages are checked against.


def _pursue(state: BatchState) -> Step:
    """Send what is due: urgent jobs, requests to peers that believe the queue empty, the end."""
    peers = [peer for peer, session in state.sessions.items() if session.is_open]
    if not peers:
        return state, ()
    waiting = [peer for peer in peers if state.sessions[peer].phase is SessionPhase.WAITING]
    asks = [peer for peer in waiting if not state.sessions[peer].believed and queued_for(state, peer)]
    sends: list[Send] = []
    for job, (peer, entry) in _unsent(state).items():
        state = _replace(state, urgent={**state.urgent, job: (peer, entry)})
        sends.append(Send(peer, UrgentJob(job=entry, **outlook(state, peer))))
    for peer in asks:
        jobs = first_entries(state, peer)
        sends.append(Send(peer, RequestResourceOffer(jobs=jobs, **outlook(state, peer))))
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


def _unsent(state: BatchState) -> dict[str, tuple[str, MapEntry]]:
    """Return the urgent jobs that can be sent now, and where: to a peer with room when empty.

    A job that no peer has room for goes to the first, which refuses it, once no other may come.
    """
    open_peers = [peer for peer, session in state.sessions.items() if session.is_open]
    is_meeting = any(session.phase is SessionPhase.STARTING for session in state.sessions.values())
    unsent: dict[str, tuple[str, MapEntry]] = {}
    for job, (to, entry) in state.urgent.items():
        if to is None:
            having = [peer for peer in open_peers if has_room(entry, state.sessions[peer])]
            if having or (open_peers and not is_meeting):
                unsent[job] = (having or open_peers)[0], entry
    return unsent


def _session(state: BatchState, peer: str, phase: SessionPhase | None = None) -> Session:
    session = state.sessions.get(peer, Session())
    if session.phase is SessionPhase.CLOSED or (phase is not None and session.phase is not phase):
        raise ProtocolError(f"the negotiation is {session.phase}")
    return session


def _open_session(state: BatchState, peer: str) -> Session:
    session = _session(state, peer)
    if session.phase is SessionPhase.STARTING:
        raise ProtocolError("the negotiation has not started")
    return session


def _in_order(session: Session, message: ResourceOffer) -> Session:
    """Return the session as an offer finds it: one of a new transaction voids the one before.

    Raises:
        ProtocolError: neither the next attempt of the transaction nor the first of a later one.
    """
    is_next = message.transaction == session.transaction and session.phase is SessionPhase.NEGOTIATING
    if is_next and (message.attempt == session.attempt + 1 or message.negotiation == 0):
        return session
    if message.transaction > session.transaction and message.attempt == 1 and message.negotiation == 1:
        return _replace(abort(session, SessionPhase.WAITING), transaction=message.transaction)
    number, before = f"{message.transaction}.{message.attempt}", f"{session.transaction}.{session.attempt}"
    raise ProtocolError(f"offer {number} does not follow {before}")
