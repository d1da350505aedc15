"""How two processes find each other: addresses, connecting, and coming back after a loss."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Protocol

from ...cluster.errors import AucschedError, OptionError
from .framing import MESSAGE_BYTES, PeerLostError
from .handshake import Hello, Identity
from .socket import SocketTransport

_UNIX = "unix:"
_LARGEST_PORT = 2**16 - 1
#: How long somebody has to say who he is, and then to prove it; nobody else waits for him.
HANDSHAKE_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


class NobodyError(AucschedError):
    """The other party did not come, or did not come again, in time."""


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

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def address_of(text: str) -> PartyAddress:
    """Return the address in ``unix:PATH``, ``HOST:PORT`` or ``[IPv6]:PORT``; a text with ``/`` is a path.

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
        raise OptionError(f"{text!r} is no address: unix:PATH, HOST:PORT or [IPv6]:PORT")
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


class Link(Protocol):
    """Opens connections to the other party, one after another.

    Attributes:
        gives_up: whether connections that come to nothing, again and again, end it. A listener cannot choose
            who connects: it goes on, and the other gives up.
    """

    gives_up: bool

    def open(self, wait_s: float | None = None) -> tuple[SocketTransport, Hello]:
        """Return a connection on which both have said who they are, and the other's hello.

        Raises:
            NobodyError: the other did not come in ``wait_s`` seconds (those of the limits by default).
            RefusedError: one refuses the other for good.
        """
        ...

    def close(self) -> None:
        """Open no more."""
        ...


class Connector:
    """Connects to where the other party listens, again and again until it does."""

    gives_up = True

    def __init__(self, address: PartyAddress, identity: Identity, limits: LinkLimits) -> None:
        self.address = address
        self._identity, self._limits = identity, limits

    def open(self, wait_s: float | None = None) -> tuple[SocketTransport, Hello]:
        """Return a connection (see ``Link``)."""
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
    """Have messages sent at once: they are small and answered one by one, waiting would cost 40 ms."""
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
