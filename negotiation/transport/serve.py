"""The parties as processes: read, make a transition, note it, send; after a loss again from START.

A connection that breaks, stalls, or brings what may not come is closed; the transaction that was
open is void, and nothing else changes. On the next one the runtime scheduler tells all it knows of
jobs before it offers anything.

To dynsched applications connect, say one thing, are answered, and go.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import msgspec

from ...cluster.errors import AucschedError, InputError, NobodyError
from ...formats.jsontext import decode
from ...formats.native.cluster_file import parse_snapshot, snapshot_to_json
from ..batch.batch_state import BatchState, Session
from ..evolving.dynamic_scheduler import DynamicState, Pending
from ..evolving.fairness import Accounts
from ..messages import (
    Connect,
    Disconnect,
    DynResponse,
    Leave,
    Message,
    ProtocolError,
    SessionPhase,
    Wake,
)
from ..pair import PATIENCE, StuckError
from ..runtime.irtsched import RuntimeState
from .framing import PeerLostError, one_line
from .handshake import Hello
from .link import SocketTransport
from .listener import Link
from .party import Party, StructCodec

#: Connections in a row that come to nothing before a party that connects gives up.
_FRUITLESS = 20
#: How long a party whose jobs are done looks for the other, to say so.
_FAREWELL_S = 5.0

Tell = Callable[[str], None]
Meet = Callable[[Hello], None]


class CutOffError(AucschedError):
    """The other party ended the negotiation before all was done."""


def serve_batch(party: Party[BatchState], link: Link, tell: Tell) -> None:
    """Be the batch scheduler until all jobs are done and the negotiation has ended.

    Raises:
        NobodyError: the runtime scheduler stays away while jobs are left.
        RefusedError: either refuses the other for good.
        CutOffError: the runtime scheduler has left.
        StuckError: jobs wait that nothing will start.
    """

    def talk(transport: SocketTransport) -> None:
        _send(transport, party.take(Connect()))
        while (phase := party.state.sessions.get("", Session()).phase) is not SessionPhase.CLOSED:
            state = party.state
            is_idle = phase is SessionPhase.WAITING and not (state.dispatched or state.urgent)
            if is_idle and state.queue and state.next_arrival_s() is None:
                _hear_or_leave(party, transport, len(state.queue))
            else:
                _take(party, transport, transport.receive())

    def has_ended() -> bool:
        if party.has_ended and not party.state.is_finished:
            raise CutOffError(f"the runtime scheduler has left before all jobs were done{party.last_words}")
        return party.has_ended

    def farewell_s() -> float | None:
        return _FAREWELL_S if party.state.is_finished else None

    try:
        _serve(party, link, tell, None, talk, has_ended, farewell_s)
    except NobodyError:
        # Every job is reported as done: nothing is left to be said but goodbye.
        if not party.state.is_finished:
            raise


def serve_runtime(party: Party[RuntimeState], link: Link, tell: Tell, meet: Meet | None = None) -> None:
    """Be the runtime scheduler, on a simulated clock, until the other ends the negotiation.

    Raises:
        NobodyError: the batch scheduler stays away.
        RefusedError: either refuses the other for good.
        StuckError: jobs wait that nothing will start.
    """

    def talk(transport: SocketTransport) -> None:
        idle = 0
        while not (party.has_ended and party.state.phase is SessionPhase.CLOSED):
            state = party.state
            time = state.next_wake_s()
            if time is None and (state.awaits_message() or not state.queued):
                _take(party, transport, transport.receive())
            elif time is None:
                _hear_or_leave(party, transport, state.queued)
            else:
                works = state.machine.running or state.next_arrival_s is not None
                idle = 0 if works else idle + 1
                if idle > PATIENCE:
                    _leave(party, transport, state.queued)
                _send(transport, party.take(Wake(time_s=time)))

    _serve(party, link, tell, meet, talk, lambda: party.has_ended, lambda: None)


def _hear_or_leave(party: Party[Any], transport: SocketTransport, waiting: int) -> None:
    """Give the other a last moment: no event known here will start the jobs that wait."""
    if transport.is_readable():
        _take(party, transport, transport.receive())
    else:
        _leave(party, transport, waiting)


def _leave(party: Party[Any], transport: SocketTransport, waiting: int) -> NoReturn:
    text = f"nothing happens any more, but jobs wait: {waiting}"
    _send(transport, party.take(Leave(text=text)))
    raise StuckError(text)


def _serve(
    party: Party[Any],
    link: Link,
    tell: Tell,
    meet: Meet | None,
    talk: Callable[[SocketTransport], None],
    has_ended: Callable[[], bool],
    farewell_s: Callable[[], float | None],
) -> None:
    """Talk over one connection after another until the negotiation has ended."""
    fruitless = 0
    if party.has_history and not has_ended():
        # This process is another than the one before: whatever was open is void.
        party.take(Disconnect())
    while not has_ended():
        transport, hello = link.open(farewell_s())
        before = _progress(party.state)
        try:
            if meet is not None:
                meet(hello)
            talk(transport)
        except PeerLostError as lost:
            tell(f"lost {hello.party}: {lost}")
            party.take(Disconnect())
            fruitless = 0 if _progress(party.state) != before else fruitless + 1
            if link.gives_up and fruitless >= _FRUITLESS:
                raise NobodyError(f"{fruitless} connections in a row came to nothing: {lost}") from lost
        finally:
            transport.close()
    party.close()


def _progress(state: BatchState | RuntimeState) -> tuple[object, ...]:
    """Return what tells whether jobs or the clock have gone on."""
    if isinstance(state, BatchState):
        return (state.now_s, state.arrived, len(state.queue), len(state.dispatched), len(state.done))
    machine = state.machine
    return (machine.now_s, len(machine.running), len(machine.suspended), len(machine.done))


def _take(party: Party[Any], transport: SocketTransport, message: Message) -> None:
    """Send what follows from a message; refuse one that may not come."""
    try:
        answers = party.take(message)
    except (ProtocolError, InputError) as error:
        transport.refuse(str(error))
        why = one_line(str(error))
        raise PeerLostError(f"{message.__struct_config__.tag} was refused: {why}") from error
    _send(transport, answers)


def _send(transport: SocketTransport, messages: tuple[Message, ...]) -> None:
    for message in messages:
        transport.send(message)


#: How long an application that has connected may take to say what it wants: others wait meanwhile.
_HEAR_S = 5.0
#: How often the clock goes on where nobody says anything, in seconds.
_TICK_S = 1.0
#: What both sides must say, so that no party of a negotiation is taken for an application.
TERMS = {"protocol": "dynamic"}


def serve_applications(
    party: Party[DynamicState],
    link: Link,
    clock: Callable[[], float],
    tell: Callable[[str], None],
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Answer applications until ``is_over``.

    Args:
        party: the state and its journal.
        link: where they connect.
        clock: seconds on the snapshot's clock; never back.
        tell: hears of those that were lost or refused.
        is_over: asked after each answer, and each second.
    """
    while not is_over():
        try:
            transport, _ = link.open(_TICK_S)
        except NobodyError:
            _wake(party, clock)
            continue
        try:
            message = transport.receive(_HEAR_S)
            _wake(party, clock)
            _take(party, transport, message)
        except PeerLostError as lost:
            tell(f"lost an application: {lost}")
        finally:
            transport.close()
    party.close()


def _wake(party: Party[DynamicState], clock: Callable[[], float]) -> None:
    party.take(Wake(time_s=max(clock(), party.state.now_s)))


class _Saved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state as a checkpoint has it: the snapshot as a file, other members as they are."""

    snapshot: msgspec.Raw
    accounts: Accounts
    pending: tuple[Pending, ...]
    answers: dict[str, DynResponse]
    changed: bool


class DynamicCodec(StructCodec[DynamicState]):
    """Writes and reads the states that follow from one; what never changes is taken from that."""

    def __init__(self, first: DynamicState) -> None:
        super().__init__(DynamicState)
        self._first = first

    def write(self, state: DynamicState) -> bytes:
        """Return a state as JSON."""
        members = {name: getattr(state, name) for name in _Saved.__struct_fields__}
        text = msgspec.json.format(snapshot_to_json(state.snapshot).encode(), indent=-1)
        return msgspec.json.encode(_Saved(**members | {"snapshot": msgspec.Raw(text)}))

    def read(self, text: bytes) -> DynamicState:
        """Return the state in that JSON."""
        members = msgspec.structs.asdict(decode(text, _Saved))
        return replace(self._first, **members | {"snapshot": parse_snapshot(bytes(members["snapshot"]))})
