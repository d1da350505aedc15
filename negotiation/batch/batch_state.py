"""The batch scheduler's state: who waits, who runs where, how each negotiation stands, and how it changes.

Jobs come, reports are believed, transactions end: each returns the state after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..job_records import JobReport, JobState, MapEntry
from ..protocol import ProtocolError, SessionPhase
from ..runtime.performance import Known, Measured, informed, learned
from .mapping import BatchSettings, Dispatched, LastAttempt, Place


class Arrival(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that is known to come, as in a simulation."""

    time_s: float
    job: MapEntry
    urgent: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How things stand with one runtime scheduler.

    Attributes:
        relaxed: how often each job's range was opened in this transaction, by job.
        forwarded: jobs of the last Map, in its order; no other runtime scheduler is given them meanwhile.
        memory: what the transaction remembers of its attempts.
        believed: how many jobs the runtime scheduler believes to wait here: with none it makes no offer.
        hears_s: when it stops its clock to hear of a job that comes, None: it knows of none.
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

    @property
    def is_open(self) -> bool:
        """Whether the parties talk to each other."""
        return self.phase in {SessionPhase.WAITING, SessionPhase.NEGOTIATING}


class BatchState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the batch scheduler knows.

    Attributes:
        queue: jobs that wait, highest priority first; among equals, first come.
        urgent: urgent jobs that were not answered, by job, with the peer they were sent to, None before.
        dispatched: jobs that run or are suspended.
        done: jobs that ended, with their last report.
        sessions: by runtime scheduler.
        came_s: when each job came.
        arrivals: jobs to come, by time; ``arrived`` of them have come.
        now_s: the latest time that a runtime scheduler has sent.
        lost_node_s: work that kills have lost.
        known: what runs of each name took, by node count (negotiation/speedup.py).
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


_replace = msgspec.structs.replace


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


def with_reports(state: BatchState, reports: Iterable[JobReport], peer: str) -> BatchState:
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
    return with_queue(state, queue) if len(queue) > len(state.queue) else _replace(state, queue=queue)


def set_estimate(state: BatchState, peer: str, change: int) -> BatchState:
    """Follow what a runtime scheduler must believe of the queue once it has started or killed jobs."""
    session = state.sessions[peer]
    return with_session(state, peer, _replace(session, believed=max(0, session.believed + change)))


def queued_again(state: BatchState, jobs: list[str]) -> BatchState:
    """Return the state with jobs queued that their runtime scheduler does not know."""
    if not jobs:
        return state
    queue = {**state.queue, **{job: state.dispatched[job].entry for job in jobs}}
    dispatched = {job: entry for job, entry in state.dispatched.items() if job not in jobs}
    return with_queue(_replace(state, dispatched=dispatched), queue)
