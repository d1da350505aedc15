"""dynsched as a process: applications connect, say one thing, are answered, and go."""

from __future__ import annotations

from collections.abc import Callable

from ...cluster.errors import InputError
from ..events import Wake
from ..parties.dynsched import DynamicState
from ..protocol import ProtocolError
from .link import Link, NobodyError
from .party import Party
from .socket import SocketTransport
from .transport import PeerLostError

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
