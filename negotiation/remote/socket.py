"""Messages over a socket: framed JSON, limits of size and time, and refusals that the other end can read."""

from __future__ import annotations

import contextlib
import select
import socket
from time import monotonic

import msgspec

from ...cluster.errors import AucschedError, InputError
from ..messages import Message
from .codec import decode_message, encode_message
from .framing import MESSAGE_BYTES, STRANGER_BYTES, Frames, FramingError, framed
from .handshake import Hello, Identity, Refusal, RefusedError, refusal_in
from .transport import PeerLostError

_CHUNK = 2**16
#: How long a party that was refused is given to read why, in seconds.
_LINGER_S = 1.0
_REFUSAL = b'"REFUSAL"'


class TooLongError(AucschedError):
    """A message of this party's own is above the limit."""


class SocketTransport:
    """One end of a connected socket (see ``Transport``).

    Args:
        connection: it; owned from now on.
        timeout_s: how long sending may take, and receiving unless told.
        limit: longest message, in bytes.
    """

    def __init__(self, connection: socket.socket, *, timeout_s: float, limit: int = MESSAGE_BYTES) -> None:
        self._socket = connection
        self._timeout_s, self._limit = timeout_s, limit
        self._frames = Frames(min(limit, STRANGER_BYTES))

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            PeerLostError: the other end is gone, or does not read.
            TooLongError: the message is above the limit.
        """
        try:
            frame = framed(encode_message(message), self._limit)
        except FramingError as error:
            raise TooLongError(f"{message.__struct_config__.tag}: {error}") from error
        self._send(frame)

    def receive(self, timeout_s: float | None = None) -> Message:
        """Return the next message.

        Raises:
            PeerLostError: the other end is gone, silent for too long, refuses, or sent what is no message.
        """
        payload = self._receive(self._timeout_s if timeout_s is None else timeout_s)
        try:
            return decode_message(payload)
        except InputError as error:
            why = refusal_in(payload) if _REFUSAL in payload else None
            if why is not None:
                raise PeerLostError(f"the other party refuses: {why}") from error
            self.refuse(f"no message: {error}")
            raise PeerLostError(f"what came is no message: {error}") from error

    def is_readable(self) -> bool:
        """Whether anything comes, or the end of all, before half of the other's patience is over."""
        return self._frames.is_inside or bool(select.select([self._socket], [], [], self._timeout_s / 2)[0])

    def patience(self, timeout_s: float) -> None:
        """Set how long sending may take, and receiving unless told."""
        self._timeout_s = timeout_s

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def refuse(self, text: str) -> None:
        """Say why, and close; the other end is given a moment to read it."""
        with contextlib.suppress(OSError):
            self._write(framed(msgspec.json.encode(Refusal(text=text)), STRANGER_BYTES))
            self._socket.shutdown(socket.SHUT_WR)
            self._drain()
        self.close()

    def shake_hands(self, identity: Identity, *, first: bool) -> Hello:
        """Say who is there, hear who the other is, and prove the secret; then longer messages may come.

        Args:
            identity: this party's.
            first: whether this end speaks first, as who connects does.

        Raises:
            RefusedError: either refuses the other; both know why.
            PeerLostError: the other end is gone or silent.
        """
        try:
            hello = self._hands(identity, first=first)
        except _RefusedByOtherError as error:
            self.close()
            raise RefusedError(f"the other party refuses: {error}") from error
        except RefusedError as error:
            self.refuse(str(error))
            raise
        self._frames.limit = self._limit
        return hello

    def _hands(self, identity: Identity, *, first: bool) -> Hello:
        mine = identity.hello()
        if first:
            self._send(framed(mine, STRANGER_BYTES))
        theirs = self._hand()
        hello = identity.met(theirs)
        if not first:
            self._send(framed(mine, STRANGER_BYTES))
        proof = framed(identity.proof(mine, theirs), STRANGER_BYTES)
        if first:
            self._send(proof)
        identity.check_proof(self._hand(), hello, mine, theirs)
        if not first:
            self._send(proof)
        return hello

    def _hand(self) -> bytes:
        payload = self._receive(self._timeout_s)
        why = refusal_in(payload) if _REFUSAL in payload else None
        if why is not None:
            raise _RefusedByOtherError(why)
        return payload

    def _send(self, frame: bytes) -> None:
        try:
            self._write(frame)
        except OSError as error:
            raise PeerLostError(self._last_words() or f"the other party is gone: {_why(error)}") from error

    def _write(self, frame: bytes) -> None:
        self._socket.settimeout(self._timeout_s)
        self._socket.sendall(frame)

    def _last_words(self) -> str | None:
        """Return what the other end said before it closed, None when it said nothing."""
        try:
            payload = self._receive(_LINGER_S)
        except AucschedError:
            return None
        why = refusal_in(payload)
        return None if why is None else f"the other party refuses: {why}"

    def _receive(self, timeout_s: float) -> bytes:
        """Return the next payload; all of it must come within the time."""
        until = monotonic() + timeout_s
        try:
            while (payload := self._frames.next()) is None:
                self._read_some(until)
        except FramingError as error:
            self.refuse(str(error))
            raise PeerLostError(f"what came is no message: {error}") from error
        except TimeoutError as error:
            self.refuse(f"no message came within {timeout_s:g} s")
            raise PeerLostError(f"no message came within {timeout_s:g} s") from error
        except OSError as error:
            raise PeerLostError(f"the other party is gone: {_why(error)}") from error
        return payload

    def _read_some(self, until: float) -> None:
        """Read what is there, waiting for it as long as there is time."""
        left = until - monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        received = self._socket.recv(_CHUNK)
        if not received:
            where = " inside a message" if self._frames.is_inside else ""
            raise PeerLostError(f"the other party closed the connection{where}")
        self._frames.feed(received)

    def _drain(self) -> None:
        """Read and drop what comes: unread bytes would take the refusal away from the other end."""
        until = monotonic() + _LINGER_S
        while (left := until - monotonic()) > 0:
            self._socket.settimeout(left)
            if not self._socket.recv(_CHUNK):
                return


class _RefusedByOtherError(RefusedError):
    """The other end has refused: there is nothing left to tell it."""


def _why(error: OSError) -> str:
    return "it does not read" if isinstance(error, TimeoutError) else error.strerror or str(error)
