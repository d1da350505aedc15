"""How messages travel: a protocol that every transport keeps, and the one inside a process."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ...cluster.errors import AucschedError
from ..messages import Message


class PeerLostError(AucschedError):
    """The other party is gone, stalled, or said what no party may say; the negotiation is void."""


class Transport(Protocol):
    """One end of a connection between two parties; messages arrive whole and in order."""

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            PeerLostError: the other end is gone.
        """
        ...

    def receive(self, timeout_s: float | None = None) -> Message:
        """Return the next message, waiting at most ``timeout_s`` seconds.

        Raises:
            PeerLostError: the other end is gone or silent for too long, or sent what is no message.
        """
        ...

    def close(self) -> None:
        """Close this end; the other's ``receive`` raises once it has read what was sent."""
        ...


class _InProcess:
    """An end whose messages are handed over as they are."""

    def __init__(self, outgoing: deque[Message], incoming: deque[Message], is_open: list[bool]) -> None:
        self._outgoing, self._incoming, self._is_open = outgoing, incoming, is_open

    def send(self, message: Message) -> None:
        if not self._is_open[0]:
            raise PeerLostError("the connection is closed")
        self._outgoing.append(message)

    def receive(self, timeout_s: float | None = None) -> Message:  # noqa: ARG002 - nobody can stall here
        if not self._incoming:
            raise PeerLostError("there is no message, and nobody else to send one")
        return self._incoming.popleft()

    def close(self) -> None:
        self._is_open[0] = False


def in_process() -> tuple[Transport, Transport]:
    """Return both ends of a connection inside this process."""
    there: deque[Message] = deque()
    back: deque[Message] = deque()
    is_open = [True]
    return _InProcess(there, back, is_open), _InProcess(back, there, is_open)
