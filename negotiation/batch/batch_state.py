"""The batch scheduler's state: who waits, who runs where, each negotiation; and its answers.

Jobs come, reports are believed, transactions end: each returns the state after it. An answer says
who may be mapped, asks the mapper, decides, and makes the Map.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from ...cluster.jobs import JobKind
from ..job_records import (
    JobReport,
    JobState,
    Known,
    MapEntry,
    Measured,
    NodeCount,
    informed,
    is_pressing,
    learned,
    needed_count,
)
from ..messages import Code, ProtocolError, ResourceOffer, ResponseResourceOffer, Send, SessionPhase
from ..runtime.share import step_size
from .auction_map import auction_map
from .mapping import (
    DECISIONS,
    BatchSettings,
    Dispatched,
    LastAttempt,
    Mapper,
    MapperName,
    MapRequest,
    Place,
    greedy_map,
)

_replace = msgspec.structs.replace


class Arrival(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that is known to come, as in a simulation."""

    time_s: float
    job: MapEntry
    urgent: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How things stand with one runtime scheduler.

    Attributes:
        relaxed: how often each job's range was opened in this transaction, by job.
        forwarded: jobs of the last Map, in order; no other runtime scheduler gets them meanwhile.
        memory: what the transaction remembers of its attempts.
        believed: how many jobs the runtime scheduler believes to wait here: with none, no offer.
        hears_s: when it stops its clock to hear of a job that comes, None: it knows of none.
        most: how many jobs an atomic Map may map, half the last refused one's; None: any number.
    """

    phase: SessionPhase = SessionPhase.CLOSED
    place: Place = Place()
    transaction: int = 0
    attempt: int = 0
    relaxed: dict[str, int] = {}
    forwarded: tuple[str, ...] = ()
    memory: LastAttempt = LastAttempt()
    believed: int = 0
    hears_s: float | None = None
    most: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the parties talk to each other."""
        return self.phase in {SessionPhase.WAITING, SessionPhase.NEGOTIATING}


class BatchState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the batch scheduler knows.

    Attributes:
        queue: jobs that wait, highest priority first; among equals, first come.
        urgent: unanswered urgent jobs, by job, with the peer they were sent to, None before.
        dispatched: jobs that run or are suspended.
        done: jobs that ended, with their last report.
        sessions: by runtime scheduler.
        came_s: when each job came.
        arrivals: jobs to come, by time; ``arrived`` of them have come.
        now_s: the latest time that a runtime scheduler has sent.
        lost_node_s: work that kills have lost.
        known: what runs of each name took, by node count (negotiation/job_records.py).
    """

    settings: BatchSettings
    queue: dict[str, MapEntry] = {}
    urgent: dict[str, tuple[str | None, MapEntry]] = {}
    dispatched: dict[str, Dispatched] = {}
    done: dict[str, JobReport] = {}
    sessions: dict[str, Session] = {}
    came_s: dict[str, float] = {}
    arrivals: tuple[Arrival, ...] = ()
    arrived: int = 0
    now_s: float = 0.0
    lost_node_s: float = 0.0
    known: Known = {}

    def next_arrival_s(self) -> float | None:
        """Return when the next job comes, None when none is known."""
        return self.arrivals[self.arrived].time_s if self.arrived < len(self.arrivals) else None

    def knows(self, job: str) -> bool:
        """Whether a job of this id has come."""
        return job in self.queue or job in self.urgent or job in self.dispatched or job in self.done

    @property
    def is_finished(self) -> bool:
        """Whether nothing waits, runs or is to come."""
        is_empty = not (self.queue or self.urgent or self.dispatched)
        return is_empty and self.arrived == len(self.arrivals)


def with_session(state: BatchState, peer: str, session: Session) -> BatchState:
    """Return the state with how things stand with a peer."""
    return _replace(state, sessions={**state.sessions, peer: session})


def abort(session: Session, phase: SessionPhase) -> Session:
    """Return a session without a transaction."""
    return _replace(session, phase=phase, relaxed={}, forwarded=(), memory=LastAttempt())


def with_queue(state: BatchState, queue: dict[str, MapEntry]) -> BatchState:
    """Return the state with a queue put into its order."""
    return _replace(state, queue=dict(sorted(queue.items(), key=lambda item: -item[1].priority)))


def with_jobs(state: BatchState, jobs: Sequence[MapEntry], *, urgent: bool) -> BatchState:
    """Return the state with jobs that have come; urgent ones wait to be sent.

    What runs of their names took is used from then on.
    """
    jobs = [informed(job, state.known) for job in jobs]
    if urgent:
        return _replace(state, urgent={**state.urgent, **{job.job: (None, job) for job in jobs}})
    return with_queue(state, {**state.queue, **{job.job: job for job in jobs}})


def admit(state: BatchState) -> BatchState:
    """Return the state with the jobs that have come by now."""
    arrived = state.arrived
    while arrived < len(state.arrivals) and state.arrivals[arrived].time_s <= state.now_s:
        arrived += 1
    if arrived == state.arrived:
        return state
    come = state.arrivals[state.arrived : arrived]
    came_s = {**state.came_s, **{entry.job.job: entry.time_s for entry in come}}
    state = _replace(state, arrived=arrived, came_s=came_s)
    state = with_jobs(state, [entry.job for entry in come if entry.urgent], urgent=True)
    return with_jobs(state, [entry.job for entry in come if not entry.urgent], urgent=False)


def with_reports(state: BatchState, reports: Sequence[JobReport], peer: str) -> BatchState:
    """Return the state that reports of jobs lead to."""
    queue, urgent = dict(state.queue), dict(state.urgent)
    waited = len(queue) + len(urgent)
    dispatched, done, lost = dict(state.dispatched), dict(state.done), state.lost_node_s
    measured: list[Measured] = []
    for report in reports:
        job = report.job
        if job in done:
            continue
        known = (
            dispatched[job].entry
            if job in dispatched
            else queue.get(job) or (urgent[job][1] if job in urgent else None)
        )
        if known is None:
            raise ProtocolError(f"a report names {job!r}, which was never submitted")
        for place in (queue, urgent, dispatched):
            place.pop(job, None)
        if report.state is JobState.QUEUED:
            queue[job] = known
            lost += report.lost_node_s
        elif report.state is JobState.DONE:
            done[job] = report
            measured += [(known.name, count, seconds) for count, seconds in report.measured]
        else:
            dispatched[job] = Dispatched(peer=peer, entry=known, report=report)
    state = _replace(state, urgent=urgent, dispatched=dispatched, done=done, lost_node_s=lost)
    if measured:
        state = _replace(state, known=learned(state.known, measured))
        names = {name for name, _, _ in measured}
        queue = {
            job: informed(entry, state.known) if entry.name in names else entry
            for job, entry in queue.items()
        }
    state = set_estimate(state, peer, len(queue) + len(urgent) - waited)
    is_back = any(report.state is JobState.QUEUED for report in reports)
    return with_queue(state, queue) if is_back else _replace(state, queue=queue)


def set_estimate(state: BatchState, peer: str, change: int) -> BatchState:
    """Follow what a runtime scheduler believes of the queue once it started or killed jobs."""
    session = state.sessions[peer]
    return with_session(state, peer, _replace(session, believed=max(0, session.believed + change)))


def queued_again(state: BatchState, jobs: list[str]) -> BatchState:
    """Return the state with jobs queued that their runtime scheduler does not know."""
    if not jobs:
        return state
    queue = {**state.queue, **{job: state.dispatched[job].entry for job in jobs}}
    dispatched = {job: entry for job, entry in state.dispatched.items() if job not in jobs}
    return with_queue(_replace(state, dispatched=dispatched), queue)


#: Kinds with a size that may be chosen at their start.
CHOOSES_SIZE = frozenset({JobKind.MOLDABLE, JobKind.MALLEABLE})
#: What ``--mapper`` names.
MAPPERS: dict[MapperName, Mapper] = {"greedy": greedy_map, "auction": auction_map}


def outlook(state: BatchState, peer: str) -> dict[str, Any]:
    """Return what each message to a peer tells of the queue and jobs to come (``FromBatchBase``).

    Only of jobs that can run there: a runtime scheduler that believes others to wait, or to come
    first, offers nothing anew when one of its own comes.
    """
    session = state.sessions[peer]
    urgent = [to == peer or (to is None and has_room(entry, session)) for to, entry in state.urgent.values()]
    return {
        "queued": len(queued_for(state, peer)) + sum(urgent),
        "next_arrival_s": next_arrival_s(state, peer),
        "next_urgent_s": next_arrival_s(state, peer, urgent=True),
    }


def queued_for(state: BatchState, peer: str) -> list[tuple[MapEntry, int]]:
    """Return the queued jobs that a peer has room for when empty, and each one's most nodes."""
    session = state.sessions[peer]
    there = [(entry, _size_for(entry, session)) for entry in state.queue.values()]
    return [(entry, size) for entry, size in there if size >= entry.min_nodes]


def next_arrival_s(state: BatchState, peer: str, *, urgent: bool = False) -> float | None:
    """Return when the next (urgent) job comes that a peer has room for; None: none is known."""
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
    """Put jobs about to miss their deadline first, above all priorities, the earliest first."""
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
    """Return a job as it may run on that many nodes: no range opens from beyond them."""
    if entry.max_nodes <= size:
        return entry
    return _replace(
        entry, max_nodes=size, node_count=NodeCount(min=min(entry.node_count.min, size), max=size)
    )


def first_entries(state: BatchState, peer: str) -> tuple[MapEntry, ...]:
    """Return the jobs of a request: the first of the queue, unmapped."""
    settings = state.settings
    entries = candidates(state, peer)[: settings.depth]
    return tuple(_replace(entry, node_count=_range(entry, settings, 0, state.now_s)) for entry in entries)


def _range(entry: MapEntry, settings: BatchSettings, times: int, now_s: float) -> NodeCount:
    """Return the range that a job stands at: no counts on which it would miss its deadline."""
    if entry.type not in CHOOSES_SIZE:
        return entry.node_count
    span = relaxed_range(entry, settings, times)
    return NodeCount(min=max(span.min, needed_count(entry, now_s)), max=span.max)


def relaxed_range(entry: MapEntry, settings: BatchSettings, times: int) -> NodeCount:
    """Return a job's range after so many relaxations (Nagendra 2016, 5.2.1, algorithm 1, and 6.3).

    A transaction begins with [max_nodes − step, max_nodes]. The step is at least 1, as algorithm 1
    has it. A step that is rounded up reaches ``min_nodes`` after ``max_attempts − 1`` relaxations.
    """
    step = max(1, step_size(entry.max_nodes - entry.min_nodes, settings.max_attempts, settings.steps))
    return NodeCount(min=max(entry.min_nodes, entry.max_nodes - step * (1 + times)), max=entry.max_nodes)


def answered(
    state: BatchState, message: ResourceOffer, peer: str, entries: list[MapEntry]
) -> tuple[BatchState, tuple[Send, ...]]:
    """Map the queue to an offer, decide, and answer."""
    settings, session = state.settings, state.sessions[peer]
    place = session.place
    later = {entry.job: entry.start_s for entry in message.reservations if not entry.node_count}
    opened = later if session.memory.relaxes else {}
    relaxed = session.relaxed | {job: session.relaxed.get(job, 0) + 1 for job in opened}
    request = MapRequest(
        queue=[
            (entry, _range(entry, settings, relaxed.get(entry.job, 0), message.time_s)) for entry in entries
        ],
        settings=settings,
        came_s=state.came_s,
        place=place,
        idle=place.mask(message.idle),
        promised={entry.job: place.mask(entry.nodes) for entry in message.reservations if entry.node_count},
        later=later,
        now_s=message.time_s,
        attempt=message.attempt,
        running={job: dispatched for job, dispatched in state.dispatched.items() if dispatched.peer == peer},
    )
    slots = MAPPERS[settings.mapper](request)
    dropped = [slot for slot in slots if slot.nodes][session.most :] if session.most is not None else []
    is_last = message.attempt >= settings.max_attempts
    if settings.atomic and is_last and message.attempt > 1:
        starts = {entry.job for entry in message.reservations if entry.start_s <= message.time_s}
        dropped += [slot for slot in slots if slot.entry.job not in starts]
    for slot in dropped:
        slot.nodes = 0
    code = Code.ACCEPT if is_last else DECISIONS[settings.decision](request, slots, session.memory)
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
