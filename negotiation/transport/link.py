"""How two processes find each other and talk: addresses, reconnection, framed messages.

Messages have limits of size and time, and a refusal is one that the other end can read.
"""

import contextlib
import ipaddress
import select
import socket
from dataclasses import dataclass
from time import monotonic, sleep

import msgspec

from ...cluster.errors import AucschedError, InputError, NobodyError, OptionError
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
            PeerLostError: the other is gone, silent too long, refuses, or sent what is no message.
        """
        payload = self._receive(self.timeout_s if timeout_s is None else timeout_s)
        try:
            return decode_message(payload)
        except InputError as error:
            if (refusal := refusal_in(payload)) is not None:
                raise PeerLostError(refusal) from error
            self.refuse(f"no message: {error}")
            raise PeerLostError(f"what came is not a message: {error}") from error

    def is_readable(self) -> bool:
        """Whether something comes, or the end, before half of the other's patience is over."""
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
            until = monotonic() + LINGER_S
            # Unread bytes would discard the refusal before the other end reads it: drain them.
            while (left := until - monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(_CHUNK):
                    break
        self.close()

    def shake_hands(self, identity: Identity) -> Hello:
        """Say hello, hear the other's, and prove the secret; then longer messages may come.

        This is the end that connects; ``Handshakes`` is the one that listens.

        Raises:
            RefusedError: either refuses the other; both know why.
            PeerLostError: the other end is gone or silent.
        """
        handshake = Handshake(identity, first=True)
        said: bytes | None = handshake.mine
        try:
            while not handshake.is_done or handshake.hello is None:
                if said is not None:
                    self._send(framed(said, UNAUTHENTICATED_BYTES))
                said = handshake.heard(self._receive(self.timeout_s))
        except RefusedByOtherError as error:
            self.close()
            raise RefusedError(str(error)) from error
        except RefusedError as error:
            self.refuse(str(error))
            raise
        self._frames.limit = self._limit
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
            return refusal_in(self._receive(LINGER_S))
        except AucschedError:
            return None

    def _receive(self, timeout_s: float) -> bytes:
        """Return the next payload; all of it must come within the time."""
        until = monotonic() + timeout_s
        try:
            while (payload := self._frames.next()) is None:
                self._read_some(until)
        except FramingError as error:
            self.refuse(str(error))
            raise PeerLostError(f"what came is not a message: {error}") from error
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


def refusal_frame(text: str) -> bytes:
    """Return the frame that says why this party refuses."""
    return framed(msgspec.json.encode(Rejection(text=one_line(text))), UNAUTHENTICATED_BYTES)


def reason(error: OSError) -> str:
    """Return why a socket failed."""
    return "it does not read" if isinstance(error, TimeoutError) else error.strerror or str(error)


_UNIX = "unix:"
_LARGEST_PORT = 2**16 - 1
#: How long somebody has to say who he is, and then to prove it; nobody else waits for him.
HANDSHAKE_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this host's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyAddress:
    """Where a party listens: a unix socket's path, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.path:
            return f"{_UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str) -> PartyAddress:
    """Return the address in ``unix:PATH``, ``HOST:PORT`` or ``[IPv6]:PORT``; a ``/`` makes a path.

    Raises:
        OptionError: it is none.
    """
    if text.startswith(_UNIX) or "/" in text:
        path = text.removeprefix(_UNIX)
        if not path:
            raise OptionError(f"{text!r} names no socket file")
        return PartyAddress(path=path)
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _LARGEST_PORT:
        raise OptionError(
            f"{text!r} is not an address: unix:PATH, HOST:PORT or [IPv6]:PORT up to {_LARGEST_PORT}"
        )
    return PartyAddress(host=host, port=int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimits:
    """How long and how much a party bears.

    Attributes:
        timeout_s: silence where the other should speak, and how long sending may take.
        wait_s: how long the other may stay away.
        message_bytes: of the longest message.
    """

    timeout_s: float = 60.0
    wait_s: float = 60.0
    message_bytes: int = MESSAGE_BYTES


class Connector:
    """Connects to where the other party listens, again and again until it does."""

    #: Connections that come to nothing, again and again, end it.
    gives_up = True

    def __init__(self, address: PartyAddress, identity: Identity, limits: LinkLimits) -> None:
        self.address = address
        self._identity, self._limits = identity, limits

    def open(self, wait_s: float | None = None) -> tuple[SocketTransport, Hello]:
        """Return a connection on which both have said who they are, and the other's hello.

        Raises:
            NobodyError: the other did not come in ``wait_s`` seconds (by default the limits').
            RefusedError: one refuses the other for good.
        """
        wait_s = self._limits.wait_s if wait_s is None else wait_s
        until = monotonic() + wait_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return self._connected()
            except (OSError, PeerLostError) as error:
                why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                if monotonic() + pause > until:
                    raise NobodyError(f"{self.address}: {why}, for {wait_s:g} s") from error
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _connected(self) -> tuple[SocketTransport, Hello]:
        connection, limits = connection_to(self.address, HANDSHAKE_S), self._limits
        without_delay(connection)
        transport = SocketTransport(
            connection, timeout_s=min(limits.timeout_s, HANDSHAKE_S), limit=limits.message_bytes
        )
        try:
            hello = transport.shake_hands(self._identity)
        except BaseException:
            transport.close()
            raise
        transport.timeout_s = limits.timeout_s
        return transport, hello

    def close(self) -> None:
        """Nothing is open between connections."""


def without_delay(connection: socket.socket) -> None:
    """Have messages sent at once: they are small and answered singly, waiting would cost 40 ms."""
    if connection.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):  # it is gone already: reading will say so
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def connection_to(address: PartyAddress, timeout_s: float) -> socket.socket:
    """Return a connection to where a party listens."""
    if not address.path:
        return socket.create_connection((address.host, address.port), timeout=timeout_s)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(address.path)
    except BaseException:
        connection.close()
        raise
    return connection
