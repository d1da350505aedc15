"""dynsched answers running applications that ask for more (Prabhakaran, figures 3 and 4).

``step`` is pure, as iBSched's and iRTSched's are: the nodes, the running jobs, the queue and what
was said to whom follow from the journal alone. Every message is numbered by its job: said once
more, it is answered as before and changes nothing, so that either side may die at any moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import msgspec

from ...cluster.jobs import RunningJob
from ...cluster.snapshot import Snapshot
from ..messages import (
    DynRelease,
    DynRequest,
    DynResponse,
    DynState,
    DynStatus,
    Event,
    Message,
    ProtocolError,
    Send,
    Wake,
)
from .fairness import Accounts, Fairness
from .iteration import Depths
from .requests import GrowthRequest, RequestBatch
from .serving import evolve
from .snapshots import held_less, parts_of, without


class Pending(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that waits, until when."""

    message: DynRequest
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicState:
    """What dynsched knows.

    Attributes:
        snapshot: the cluster now; its time is the clock.
        fairness, depths: of the extended iteration.
        accounts: delays so far.
        pending: requests that wait, first come first.
        answers: the last one to each job.
        changed: something was given back since the last iteration, or none was made yet.
    """

    snapshot: Snapshot
    fairness: Fairness
    depths: Depths
    accounts: Accounts
    pending: tuple[Pending, ...] = ()
    answers: Mapping[str, DynResponse] = field(default_factory=dict)
    changed: bool = True

    @property
    def now_s(self) -> float:
        """The clock."""
        return self.snapshot.time or 0.0

    def running(self, job: str) -> RunningJob | None:
        """Return a running job."""
        return next((one for one in self.snapshot.running if one.id == job), None)

    def held(self, job: str) -> dict[str, int]:
        """Return the cores that a job holds, by node."""
        found = self.running(job)
        return {} if found is None else {name: use.cores for name, use in found.nodes.items()}

    def asks(self, job: str) -> bool:
        """Whether a request of a job waits."""
        return any(one.message.job == job for one in self.pending)


Step = tuple[DynamicState, tuple[Send, ...]]


def step(state: DynamicState, happening: Event | Message, peer: str = "") -> Step:
    """Return the state after the clock went on or an application sent a message, and the answer.

    Raises:
        ProtocolError: the message may not come now; the state stays as it was.
    """
    match happening:
        case Wake():
            return _woken(state, happening.time_s), ()
        case DynRequest() | DynRelease():
            state, answer = _said(state, happening)
        case DynStatus():
            answer = _status(state, happening)
        case _:
            raise ProtocolError(f"{type(happening).__name__} may not come to dynsched")
    return state, (Send(peer, answer),)


def _woken(state: DynamicState, now_s: float) -> DynamicState:
    """Let time pass: walltimes end, what is free is shared out, requests run out of time."""
    if now_s < state.now_s:
        raise ProtocolError(f"the clock is at {state.now_s:g} s, not before {now_s:g} s")
    snapshot = replace(state.snapshot, time=now_s)
    over = [job.id for job in snapshot.running if job.end_time is not None and job.end_time <= now_s]
    state = replace(state, snapshot=without(snapshot, *over), changed=state.changed or bool(over))
    if state.changed or state.pending:
        state = _iterated(state)
    return _without_late(state)


def _iterated(state: DynamicState) -> DynamicState:
    """Make an extended iteration with all requests that wait; keep the answers."""
    waiting = [one for one in state.pending if state.running(one.message.job) is not None]
    asks = (
        GrowthRequest(job=one.job, cores=one.cores, nodes=one.nodes, cores_per_node=one.cores_per_node)
        for one in (pending.message for pending in waiting)
    )
    # From idle nodes only: nobody here could make another application leave what it holds.
    requests = RequestBatch(asks=tuple(asks))
    found = evolve(
        state.snapshot, requests, fairness=state.fairness, accounts=state.accounts, depths=state.depths
    )
    state = replace(state, snapshot=found.snapshot, accounts=found.accounts, changed=False)
    answers = dict(state.answers)
    left = [one for one in state.pending if one not in waiting]  # _without_late answers these
    by = {one.message.job: one for one in waiting}
    for answer in found.answers:
        one, grant = by[answer.request.job.id], answer.grant
        if grant is None:
            left.append(one)
        answers[one.message.job] = _response(
            state,
            one.message.job,
            one.message.serial,
            DynState.PENDING if grant is None else DynState.GRANTED,
            answer.why,
            nodes={} if grant is None else {name: use.cores for name, use in grant.nodes.items()},
            earliest_s=None if answer.earliest_s == inf else answer.earliest_s,
        )
    return replace(state, pending=tuple(left), answers=answers)


def _without_late(state: DynamicState) -> DynamicState:
    """Refuse requests whose time is over, and forget those of jobs that ended."""
    answers, left = dict(state.answers), []
    for one in state.pending:
        job, runs = one.message.job, state.running(one.message.job) is not None
        if runs and one.deadline_s > state.now_s:
            left.append(one)
            continue
        before = answers.get(job)
        text, earliest_s = ("", None) if before is None else (before.text, before.earliest_s)
        text = text if runs else "the job has ended"
        serial = one.message.serial
        answers[job] = _response(state, job, serial, DynState.REFUSED, text, earliest_s=earliest_s)
    return replace(state, pending=tuple(left), answers=answers)


def _said(state: DynamicState, message: DynRequest | DynRelease) -> tuple[DynamicState, DynResponse]:
    known, job = _said_before(state, message), state.running(message.job)
    if known is not None:
        return state, known
    if job is None:
        return _answered(state, message, DynState.REFUSED, "no such job runs")
    if isinstance(message, DynRelease):
        return _released(state, message, job)
    if state.asks(message.job):
        return _answered(state, message, DynState.REFUSED, "a job has one request at a time")
    pending = Pending(message=message, deadline_s=state.now_s + message.timeout_s)
    state = _iterated(replace(state, pending=(*state.pending, pending)))
    state = _without_late(state)
    return state, state.answers[message.job]


def _released(state: DynamicState, message: DynRelease, job: RunningJob) -> tuple[DynamicState, DynResponse]:
    if state.asks(message.job):
        # Answers come in order of their numbers: what is said once more must not be done twice.
        return _answered(state, message, DynState.REFUSED, "its request is still pending")
    held = state.held(message.job)
    for name, count in message.nodes.items():
        if count > held.get(name, 0):
            text = f"{count} is above the {held.get(name, 0)} cores that it has on {name}"
            return _answered(state, message, DynState.REFUSED, text)
    given = parts_of(job, message.nodes)
    state = replace(state, snapshot=held_less(state.snapshot, job.id, given), changed=True)
    state = _without_late(_iterated(state))
    return _answered(state, message, DynState.RELEASED, "")


def _status(state: DynamicState, message: DynStatus) -> DynResponse:
    last = state.answers.get(message.job)
    if last is None and state.running(message.job) is None:
        return _response(state, message.job, 0, DynState.REFUSED, "no such job runs")
    return _response(state, message.job, 0 if last is None else last.serial, DynState.KNOWN, "")


def _said_before(state: DynamicState, message: DynRequest | DynRelease) -> DynResponse | None:
    """Return the answer to a message that came before, with the time and what the job holds now.

    Raises:
        ProtocolError: its number is of one before the last.
    """
    last = state.answers.get(message.job)
    if last is None or message.serial > last.serial:
        return None
    if message.serial < last.serial:
        raise ProtocolError(f"{message.serial} is not the {last.serial} that {message.job} said last")
    return msgspec.structs.replace(last, time_s=state.now_s, held=state.held(last.job))


def _response(
    state: DynamicState, job: str, serial: int, how: DynState, text: str, **more: Any
) -> DynResponse:
    """Return the answer to a message, with all that its job holds; ``more`` are other members."""
    held, now_s = state.held(job), state.now_s
    return DynResponse(time_s=now_s, job=job, serial=serial, state=how, held=held, text=text, **more)


def _answered(
    state: DynamicState, message: DynRequest | DynRelease, how: DynState, text: str
) -> tuple[DynamicState, DynResponse]:
    """Answer a message and keep the answer, unless a request of the job still waits for its own."""
    answer = _response(state, message.job, message.serial, how, text)
    if state.asks(message.job) and how is DynState.REFUSED:
        return state, answer
    return replace(state, answers={**state.answers, message.job: answer}), answer
