"""dynsched as a process: applications connect, say one thing, are answered, and go.

``DynamicCodec`` writes its state into a checkpoint: a snapshot as its files have it, what was said and asked,
the delays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from ...cluster.errors import InputError
from ...formats.jsontext import decode
from ...formats.native.read import parse_snapshot
from ...formats.native.write import snapshot_to_json
from ..evolving.fairness import Accounts
from ..messages import DynRequest, DynResponse
from ..offer_events import Wake
from ..parties.dynamic_scheduler import DynamicState, Pending
from ..protocol import ProtocolError
from .framing import PeerLostError
from .link import Link, NobodyError
from .party import Party
from .socket import SocketTransport

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
            _answer(party, transport, clock)
        except PeerLostError as lost:
            tell(f"lost an application: {lost}")
        finally:
            transport.close()
    party.close()


def _wake(party: Party[DynamicState], clock: Callable[[], float]) -> None:
    party.take(Wake(time_s=max(clock(), party.state.now_s)))


def _answer(party: Party[DynamicState], transport: SocketTransport, clock: Callable[[], float]) -> None:
    message = transport.receive(_HEAR_S)
    _wake(party, clock)
    try:
        answers = party.take(message)
    except (ProtocolError, InputError) as error:
        transport.refuse(str(error))
        raise PeerLostError(f"it was refused: {error}") from error
    for answer in answers:
        transport.send(answer)


class _Saved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    snapshot: msgspec.Raw
    since_s: float
    targets: list[tuple[str, str, float]]
    singles: dict[str, float]
    pending: list[tuple[DynRequest, float]]
    answers: dict[str, DynResponse]
    changed: bool


class DynamicCodec:
    """Writes and reads the states that follow from one; what never changes is taken from that.

    Args:
        first: the state at the beginning.
    """

    def __init__(self, first: DynamicState) -> None:
        self._first = first

    def write(self, state: DynamicState) -> bytes:
        """Return a state as JSON."""
        accounts = state.accounts
        snapshot = snapshot_to_json(state.snapshot).encode()
        return msgspec.json.encode(
            _Saved(
                snapshot=msgspec.Raw(msgspec.json.format(snapshot, indent=-1)),
                since_s=accounts.since_s,
                targets=[(*name, seconds) for name, seconds in accounts.targets.items()],
                singles=dict(accounts.singles),
                pending=[(one.message, one.deadline_s) for one in state.pending],
                answers=dict(state.answers),
                changed=state.changed,
            )
        )

    def read(self, text: bytes) -> DynamicState:
        """Return the state in that JSON."""
        saved = decode(text, _Saved)
        return replace(
            self._first,
            snapshot=parse_snapshot(bytes(saved.snapshot)),
            accounts=Accounts(
                since_s=saved.since_s,
                targets={(kind, name): seconds for kind, name, seconds in saved.targets},
                singles=saved.singles,
            ),
            pending=tuple(Pending(message=message, deadline_s=end) for message, end in saved.pending),
            answers=saved.answers,
            changed=saved.changed,
        )
