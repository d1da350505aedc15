"""How the batch scheduler's state changes: jobs come, reports are believed, transactions end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..mappers.decision import LastAttempt
from ..mappers.mapping import Dispatched
from ..protocol import ProtocolError, SessionPhase
from ..runtime.performance import Measured, informed, learned
from ..runtime.records import JobReport, JobState, MapEntry
from .batch_state import BatchState, Session

_replace = msgspec.structs.replace


def with_session(state: BatchState, peer: str, session: Session) -> BatchState:
    """Return the state with how things stand with a peer."""
    return _replace(state, sessions={**state.sessions, peer: session})


def voided(session: Session, phase: SessionPhase) -> Session:
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


def arrived(state: BatchState) -> BatchState:
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
    state = believing(state, peer, len(queue) + len(urgent) - waited)
    return with_queue(state, queue) if len(queue) > len(state.queue) else _replace(state, queue=queue)


def believing(state: BatchState, peer: str, change: int) -> BatchState:
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
