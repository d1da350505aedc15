"""iRTSched: the runtime scheduler's transition function (Nagendra, figure 6.2; algorithm 4).

``step`` is pure, as iBSched's is. A state's machine never has a transformation that was not agreed
on: an open transaction works on ``base``, and to void it is to forget that (the thesis's INIT).
"""

from dataclasses import replace

import msgspec

from ...cluster.errors import OptionError
from ..messages import (
    PROTOCOL_VERSION,
    Code,
    Disconnect,
    Event,
    FromBatchBase,
    FromRuntime,
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
    UrgentJob,
    Wake,
)
from .placement_constraints import whole_nodes
from .runtime_machine import MachineState, advanced, reports
from .settings import RuntimeSettings
from .share import full_transformation, partial_transformation, settled
from .transform import Transformation, resumed, start_urgent, transform

_replace = msgspec.structs.replace


class RuntimeState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything the runtime scheduler knows.

    Attributes:
        machine: nodes and jobs, as committed.
        base: the state that the open transaction's transformations start from, None without one.
        transaction, attempt: of the last offer.
        rejected_with: how many jobs would have started at this transaction's last rejection here.
        voided: the last transaction that an urgent job aborted; a Map may still come for it.
        queued, next_arrival_s, next_urgent_s: as the batch scheduler sent last.
        awaits_more: the batch scheduler has said that another message follows.
        next_step_s: when the next periodic step comes; ``offers_next``: whether it has an offer.
    """

    settings: RuntimeSettings
    machine: MachineState
    phase: SessionPhase = SessionPhase.CLOSED
    base: MachineState | None = None
    transaction: int = 0
    attempt: int = 0
    rejected_with: int | None = None
    voided: int = 0
    queued: int = 0
    next_arrival_s: float | None = None
    next_urgent_s: float | None = None
    awaits_more: bool = False
    next_step_s: float = 0.0
    offers_next: bool = False

    def awaits_message(self) -> bool:
        """Whether the batch scheduler is going to send something before the clock may go on."""
        if (
            self.phase in {SessionPhase.CLOSED, SessionPhase.ENDING, SessionPhase.NEGOTIATING}
            or self.awaits_more
        ):
            return True
        now = self.machine.now_s
        if self.next_urgent_s is not None and self.next_urgent_s <= now:
            return True
        return not self.queued and self.next_arrival_s is not None and self.next_arrival_s <= now

    def next_wake_s(self) -> float | None:
        """Return the next time at which something happens here; None: only a message changes it."""
        if self.awaits_message():
            return None
        times = [self.machine.next_end_s(), self.next_urgent_s]
        if self.machine.running or self.machine.suspended or self.queued:
            times.append(self.next_step_s)
        if not self.queued:
            times.append(self.next_arrival_s)
        due = [time for time in times if time is not None]
        # A step that fell due while a transaction was open is made now.
        return max(self.machine.now_s, min(due)) if due else None


Step = tuple[RuntimeState, tuple[Send, ...]]
Messages = list[FromRuntime]


def step(state: RuntimeState, event: Event | Message, peer: str = "") -> Step:
    """Return the state after an event, or a message of the batch scheduler, and what to send.

    Raises:
        ProtocolError: the message may not come now; the state stays as it was.
    """
    state, messages = _stepped(state, event)
    return state, tuple(Send(peer, message) for message in messages)


def _stepped(state: RuntimeState, event: Event | Message) -> tuple[RuntimeState, Messages]:  # noqa: PLR0911 - a case each
    match event:
        case Wake():
            return _woken(state, event.time_s)
        case Disconnect():
            return _replace(_abort(state), phase=SessionPhase.CLOSED), []
        case Leave():
            return _replace(_abort(state), phase=SessionPhase.ENDING), [NegotiationEnd(event.text)]
        case NegotiationStart():
            return _started(_with_outlook(state, event), event)
        case RequestResourceOffer():
            return _requested(_with_outlook(_open(state), event), event)
        case ResponseResourceOffer():
            return _answered(_with_outlook(_open(state), event), event)
        case UrgentJob():
            return _urgent(_with_outlook(_open(state), event), event)
        case NegotiationEnd():
            return _replace(_abort(_open(state)), phase=SessionPhase.CLOSED), [NegotiationEndResponse()]
        case NegotiationEndResponse() if state.phase is SessionPhase.ENDING:
            return _replace(state, phase=SessionPhase.CLOSED), []
        case _:
            raise ProtocolError(f"{type(event).__name__} may not come to a runtime scheduler now")


# The clock.


def _woken(state: RuntimeState, now_s: float) -> tuple[RuntimeState, Messages]:
    """Let time pass: jobs end, suspended ones go on, a step is made, and the peer hears of it."""
    if now_s < state.machine.now_s:
        raise ProtocolError(f"the clock is at {state.machine.now_s:g} s, not before {now_s:g} s")
    machine, ended = advanced(state.machine, now_s)
    machine, back = resumed(machine) if ended else (machine, ())
    is_due = now_s >= state.next_step_s
    # An open transaction goes on from the state as it is now.
    state = _replace(state, machine=machine, base=None if state.base is None else machine)
    if state.phase not in {SessionPhase.WAITING, SessionPhase.NEGOTIATING}:
        return state, []
    changed = [*ended, *back]
    messages: Messages = []
    if changed or state.awaits_message():
        messages.append(StatusReport(time_s=now_s, reports=reports(machine, changed)))
    if state.base is not None or not (ended or is_due) or state.awaits_message():
        return state, messages
    state = _replace(state, next_step_s=now_s + state.settings.interval_s, machine=settled(machine))
    state, more = _made_step(state, is_periodic=is_due and not ended)
    return state, [*messages, *more]


def _made_step(state: RuntimeState, *, is_periodic: bool) -> tuple[RuntimeState, Messages]:
    """Make one step: an offer where jobs wait, or a transformation; periodic ones alternate."""
    if state.queued and not is_periodic:
        return _offer_idle(state)
    if state.queued and state.offers_next:
        state = _replace(state, offers_next=False)
        settings = state.settings
        shrunk = partial_transformation(state.machine, settings.max_attempts, settings.steps)
        return _offer_idle(state, shrunk)
    return _transformed(_replace(state, offers_next=True))


def _transformed(state: RuntimeState) -> tuple[RuntimeState, Messages]:
    """Make a full transformation, and report the jobs that it changed."""
    machine = full_transformation(state.machine)
    changed = [
        name for name, job in machine.running.items() if job.count != state.machine.running[name].count
    ]
    state = _replace(state, machine=machine)
    if not changed:
        return state, []
    return state, [StatusReport(time_s=machine.now_s, reports=reports(machine, changed))]


def _offer_idle(state: RuntimeState, base: MachineState | None = None) -> tuple[RuntimeState, Messages]:
    """Open a transaction with what is idle; with nothing idle there is nothing to talk about."""
    base = base or state.machine
    if not base.idle:
        return state, []
    state = _opened(state, base)
    return state, [_offer(state, idle=base.idle)]


def _opened(state: RuntimeState, base: MachineState) -> RuntimeState:
    """Return the state with a new transaction, whose transformations start from ``base``."""
    return _replace(
        state,
        base=base,
        transaction=state.transaction + 1,
        attempt=1,
        rejected_with=None,
        phase=SessionPhase.NEGOTIATING,
    )


def _offer(
    state: RuntimeState, *, idle: int, done: Transformation | None = None, closes: bool = False
) -> ResourceOffer:
    return ResourceOffer(
        time_s=state.machine.now_s,
        negotiation=0 if closes else 1,
        transaction=state.transaction,
        attempt=state.attempt,
        idle=state.machine.names_of(whole_nodes(state.machine, idle)),
        # A Map that starts nothing at the last attempt leaves no promises.
        reservations=() if done is None or (closes and not done.is_accepted) else done.reservations,
        code=Code.ACCEPT if done is None or done.is_accepted else Code.REJECT,
        text="" if done is None else done.why,
    )


# The batch scheduler's messages.


def _started(state: RuntimeState, message: NegotiationStart) -> tuple[RuntimeState, Messages]:
    """Open the negotiation, or open it again: tell all that is known of jobs, then offer."""
    machine = state.machine
    partitions = {name: machine.names_of(nodes) for name, nodes in machine.partitions.items()}
    if message.version != PROTOCOL_VERSION:
        refusal = NegotiationStartResponse(
            time_s=machine.now_s,
            version=PROTOCOL_VERSION,
            code=Code.REJECT,
            text=f"version {message.version} is not {PROTOCOL_VERSION}",
        )
        return _replace(_abort(state), phase=SessionPhase.CLOSED), [refusal]
    try:
        settings = replace(state.settings, max_attempts=message.max_attempts, interval_s=message.interval_s)
    except OptionError as error:
        raise ProtocolError(str(error)) from error
    state = _replace(_abort(state), phase=SessionPhase.WAITING, settings=settings)
    agreed = NegotiationStartResponse(
        time_s=machine.now_s, version=PROTOCOL_VERSION, code=Code.ACCEPT, partitions=partitions
    )
    known = StatusReport(time_s=machine.now_s, reports=reports(machine), complete=True)
    has_history = bool(known.reports) or message.started > 0
    state = _replace(state, next_step_s=machine.now_s + settings.interval_s)
    state, offer = _offer_idle(state)
    return state, [agreed, *([known] if has_history else []), *offer]


def _requested(state: RuntimeState, message: RequestResourceOffer) -> tuple[RuntimeState, Messages]:
    """Offer what the jobs of a request could have: the first attempt's transformation for them."""
    if state.phase is SessionPhase.NEGOTIATING or state.awaits_more:
        # It crossed an offer, whose answer will map these jobs; or an urgent job comes first.
        return state, []
    state = _opened(state, state.machine)
    done = transform(state.machine, message.jobs, state.settings, attempt=1)
    return state, [_offer(state, idle=done.idle, done=done)]


def _answered(state: RuntimeState, message: ResponseResourceOffer) -> tuple[RuntimeState, Messages]:
    """Algorithm 4: repeat an accepted offer's transformation and decide, else offer again."""
    if state.phase is not SessionPhase.NEGOTIATING or message.transaction != state.transaction:
        if message.transaction <= state.voided:
            return state, []
        raise ProtocolError(f"there is no open transaction {message.transaction}")
    if message.attempt != state.attempt:
        raise ProtocolError(f"the answer is to attempt {message.attempt}, not {state.attempt}")
    base = state.base or state.machine
    if not message.map:
        # Nothing waits: what is idle goes to those who run, until a request comes.
        return _transformed(_replace(_abort(state), queued=0))
    is_last = state.attempt >= state.settings.max_attempts
    if message.code is Code.ACCEPT or is_last:
        done = _transformation(state, base, message, state.attempt)
        if done.is_accepted or is_last:
            return _committed(state, message, done)
        state = _replace(state, rejected_with=len(done.started))
    attempt = state.attempt + 1
    done = _transformation(state, base, message, attempt)
    state = _replace(state, attempt=attempt)
    return state, [_offer(state, idle=done.idle, done=done)]


def _transformation(
    state: RuntimeState, base: MachineState, message: ResponseResourceOffer, attempt: int
) -> Transformation:
    return transform(
        base,
        message.map,
        state.settings,
        attempt=attempt,
        atomic=message.atomic,
        rejected_with=state.rejected_with,
    )


def _committed(
    state: RuntimeState, message: ResponseResourceOffer, done: Transformation
) -> tuple[RuntimeState, Messages]:
    """Let a transformation come true, report what started, and close the transaction."""
    ended: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    if state.settings.transaction_s:
        # The thesis counts a transaction's one or two seconds on the clock: jobs may end meanwhile,
        # and those that a periodic offer shrinks hold their nodes until then.
        settings = state.settings
        base, ended = advanced(state.machine, state.machine.now_s + settings.transaction_s)
        base, back = resumed(base) if ended else (base, ())
        if state.base != state.machine:
            base = partial_transformation(base, settings.max_attempts, settings.steps)
        done = _transformation(state, base, message, state.attempt)
    machine = done.machine
    before = state.machine.running
    changed = [
        name for name, job in machine.running.items() if name in before and job.nodes != before[name].nodes
    ]
    named = [*ended, *back, *done.started, *changed]
    state = _replace(
        _abort(state), machine=machine, queued=max(0, state.queued - len(done.started)), attempt=state.attempt
    )
    report = StatusReport(time_s=machine.now_s, reports=reports(machine, named))
    return state, [report, _offer(state, idle=machine.idle, done=done, closes=True)]


def _urgent(state: RuntimeState, message: UrgentJob) -> tuple[RuntimeState, Messages]:
    """Start an urgent job at once; an open transaction is void and its attempt does not count."""
    is_aborted = state.phase is SessionPhase.NEGOTIATING
    if is_aborted:
        state = _replace(_abort(state), voided=state.transaction)
    machine, answer, losses = start_urgent(state.machine, message.job, state.settings.urgency)
    queued = state.queued - (answer.code is Code.ACCEPT) + len(answer.killed)
    state = _replace(state, machine=machine, queued=max(0, queued))
    moved = reports(machine, [*answer.suspended, *answer.shrunk])
    messages: Messages = [answer]
    if moved or losses:
        messages.append(StatusReport(time_s=machine.now_s, reports=(*moved, *losses)))
    if state.queued and not state.awaits_message():
        state, offer = _offer_idle(state)
        messages.extend(offer)
    return state, messages


# The state.


def _open(state: RuntimeState) -> RuntimeState:
    if state.phase not in {SessionPhase.WAITING, SessionPhase.NEGOTIATING}:
        raise ProtocolError(f"the negotiation is {state.phase}")
    return state


def _with_outlook(state: RuntimeState, message: FromBatchBase) -> RuntimeState:
    """Return the state with the queue and the next arrivals that a message carries."""
    return _replace(
        state,
        queued=message.queued,
        next_arrival_s=message.next_arrival_s,
        next_urgent_s=message.next_urgent_s,
        awaits_more=message.more,
    )


def _abort(state: RuntimeState) -> RuntimeState:
    """Return the state without a transaction; the machine never carried its transformations."""
    return _replace(state, base=None, rejected_with=None, phase=SessionPhase.WAITING)
