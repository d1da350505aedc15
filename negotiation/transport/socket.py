"""Messages over a socket: framed JSON, limits of size and time, and refusals that the other end can read."""

from __future__ import annotations

import contextlib
import select
import socket
from time import monotonic

import msgspec

from ...cluster.errors import AucschedError, InputError
from ..messages import Message
from .framing import (
    MESSAGE_BYTES,
    UNAUTHENTICATED_BYTES,
    Frames,
    FramingError,
    PeerLostError,
    decode_message,
    encode_message,
    framed,
    one_line,
)
from .handshake import Handshake, Hello, Identity, RefusedByOtherError, RefusedError, Rejection, refusal_in

_CHUNK = 2**16
#: How long a party that was refused is given to read why, in seconds.
LINGER_S = 1.0


class TooLongError(AucschedError):
    """A message of this party's own is above the limit."""


class SocketTransport:
    """One end of a connected socket.

    Args:
        connection: it; owned from now on.
        timeout_s: how long sending may take, and receiving by default; it may be changed.
        limit: longest message, in bytes.
        frames: what was read from it already, by whom both parties have proved their secret to.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        timeout_s: float,
        limit: int = MESSAGE_BYTES,
        frames: Frames | None = None,
    ) -> None:
        self._socket = connection
        self.timeout_s, self._limit = timeout_s, limit
        self._frames = Frames(min(limit, UNAUTHENTICATED_BYTES)) if frames is None else frames
        if frames is not None:
            frames.limit = limit

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
        payload = self._receive(self.timeout_s if timeout_s is None else timeout_s)
        try:
            return decode_message(payload)
        except InputError as error:
            why = refusal_in(payload)
            if why is not None:
                raise PeerLostError(f"the other party refuses: {why}") from error
            self.refuse(f"no message: {error}")
            raise PeerLostError(f"what came is no message: {error}") from error

    def is_readable(self) -> bool:
        """Whether anything comes, or the end of all, before half of the other's patience is over."""
        if self._frames.is_inside:
            return True
        # Not select.select, which raises at a descriptor from 1024 on.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(self.timeout_s / 2 * 1000))

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def refuse(self, text: str) -> None:
        """Say why, and close; the other end is given a moment to read it."""
        with contextlib.suppress(OSError):
            self._write(refusal_frame(text))
            self._socket.shutdown(socket.SHUT_WR)
            self._drain()
        self.close()

    def shake_hands(self, identity: Identity) -> Hello:
        """Say who is there, hear who the other is, and prove the secret; then longer messages may come.

        This is the end that connects; ``Handshakes`` is the one that listens.

        Raises:
            RefusedError: either refuses the other; both know why.
            PeerLostError: the other end is gone or silent.
        """
        try:
            hello = self._exchange_hellos(Handshake(identity, first=True))
        except RefusedByOtherError as error:
            self.close()
            raise RefusedError(str(error)) from error
        except RefusedError as error:
            self.refuse(str(error))
            raise
        self._frames.limit = self._limit
        return hello

    def _exchange_hellos(self, handshake: Handshake) -> Hello:
        said = handshake.begin()
        while not handshake.is_done or handshake.hello is None:
            if said is not None:
                self._send(framed(said, UNAUTHENTICATED_BYTES))
            said = handshake.heard(self._receive(self.timeout_s))
        return handshake.hello

    def _send(self, frame: bytes) -> None:
        try:
            self._write(frame)
        except OSError as error:
            raise PeerLostError(self._last_words() or f"the other party is gone: {reason(error)}") from error

    def _write(self, frame: bytes) -> None:
        self._socket.settimeout(self.timeout_s)
        self._socket.sendall(frame)

    def _last_words(self) -> str | None:
        """Return what the other end said before it closed, None when it said nothing."""
        try:
            payload = self._receive(LINGER_S)
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
            raise PeerLostError(f"the other party is gone: {reason(error)}") from error
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
        until = monotonic() + LINGER_S
        while (left := until - monotonic()) > 0:
            self._socket.settimeout(left)
            if not self._socket.recv(_CHUNK):
                return


def refusal_frame(text: str) -> bytes:
    """Return the frame that says why this party refuses."""
    return framed(msgspec.json.encode(Rejection(text=one_line(text))), UNAUTHENTICATED_BYTES)


def reason(error: OSError) -> str:
    """Return why a socket failed."""
    return "it does not read" if isinstance(error, TimeoutError) else error.strerror or str(error)
