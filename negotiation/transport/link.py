"""How two processes find each other: addresses, listening, connecting, and coming back after a loss."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from ...cluster.errors import AucschedError, OptionError
from .framing import MESSAGE_BYTES, PeerLostError
from .handshake import Hello, Identity
from .handshakes import Greeted, Handshakes
from .socket import SocketTransport

_UNIX = "unix:"
_LARGEST_PORT = 2**16 - 1
#: How long somebody has to say who he is, and then to prove it; nobody else waits for him.
_HANDSHAKE_S = 10.0
#: Connections that the kernel keeps while nobody accepts them: more than a burst of unauthenticated peers.
_BACKLOG = 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
_GONE = {errno.ECONNREFUSED, errno.ENOENT}


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


#: RateLimitedLog printed in each period of that many seconds; the others are counted.
_MOST, _PERIOD_S = 20, 10.0


class RateLimitedLog:
    """Tells remarks that unauthenticated peers cause, but no more of them than a log can hold.

    Args:
        tell: prints one.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._until_s, self._left, self._omitted = 0.0, 0, 0

    def add(self, text: str) -> None:
        """Tell a remark, or count it."""
        if monotonic() >= self._until_s:
            self.flush()
            self._until_s, self._left = monotonic() + _PERIOD_S, _MOST
        if self._left:
            self._left -= 1
            self._tell(text)
        else:
            self._omitted += 1

    def flush(self) -> None:
        """Tell how many remarks were only counted."""
        omitted, self._omitted = self._omitted, 0
        if omitted:
            self._tell(f"{omitted} more remarks of that kind")


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


class Listener:
    """Waits for the other party to connect; unauthenticated peers are refused, and it goes on waiting.

    While the other party is connected, those who connect wait in the kernel, and cost it nothing.

    Args:
        address: where; port 0: any free one, ``address`` says which.
        identity: this party's.
        limits: see Limits.
        tell: hears of those who were refused.

    Raises:
        OptionError: nobody can listen there, or everybody could connect and no secret is asked for.
    """

    gives_up = False

    def __init__(
        self, address: PartyAddress, identity: Identity, limits: LinkLimits, tell: Callable[[str], None]
    ) -> None:
        if identity.secret is None and not address.is_local:
            raise OptionError(f"other machines can reach {address}: a shared secret is needed")
        self._identity, self._limits, self._tell = identity, limits, tell
        self._remarks = RateLimitedLog(tell)
        self._socket = _listening(address)
        self.address = _bound(self._socket, address)

    def open(self, wait_s: float | None = None) -> tuple[SocketTransport, Hello]:
        """Return the next connection whose hello and proof are right (see ``Link``)."""
        wait_s = self._limits.wait_s if wait_s is None else wait_s
        greeted = self._greeted(wait_s)
        if greeted is None:
            raise NobodyError(f"nobody connected to {self.address} within {wait_s:g} s")
        _without_delay(greeted.connection)
        transport = SocketTransport(
            greeted.connection,
            timeout_s=self._limits.timeout_s,
            limit=self._limits.message_bytes,
            frames=greeted.frames,
        )
        return transport, greeted.hello

    def _greeted(self, wait_s: float) -> Greeted | None:
        timeout_s = min(self._limits.timeout_s, _HANDSHAKE_S)
        try:
            handshakes = Handshakes(self._socket, self._identity, timeout_s=timeout_s, tell=self._remarks.add)
            try:
                return handshakes.first(wait_s)
            finally:
                silent = handshakes.close()
                self._remarks.flush()
                if silent:
                    self._tell(f"closed {silent} connections that had not said who they are")
        except OSError as error:
            raise NobodyError(f"{self.address}: {error.strerror}") from error

    def close(self) -> None:
        """Stop listening, and remove the socket's file."""
        self._socket.close()
        if self.address.path:
            Path(self.address.path).unlink(missing_ok=True)


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
        transport = _transport(_connection(self.address, _HANDSHAKE_S), self._limits)
        try:
            hello = transport.shake_hands(self._identity)
        except BaseException:
            transport.close()
            raise
        transport.patience(self._limits.timeout_s)
        return transport, hello

    def close(self) -> None:
        """Nothing is open between connections."""


def _transport(connection: socket.socket, limits: LinkLimits) -> SocketTransport:
    _without_delay(connection)
    return SocketTransport(
        connection, timeout_s=min(limits.timeout_s, _HANDSHAKE_S), limit=limits.message_bytes
    )


def _without_delay(connection: socket.socket) -> None:
    """Have messages sent at once: they are small and answered one by one, waiting would cost 40 ms."""
    if connection.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):  # it is gone already: reading will say so
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _connection(address: PartyAddress, timeout_s: float) -> socket.socket:
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


def _listening(address: PartyAddress) -> socket.socket:
    family = socket.AF_UNIX if address.path else socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        if address.path:
            _remove_dead(address)
            _bind_private(listening, address.path)
        else:
            # A party that was killed and starts again must not wait for the kernel to forget the port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise OptionError(f"cannot listen on {address}: {error.strerror or error}") from error
    except BaseException:
        listening.close()
        raise
    return listening


def _bind_private(listening: socket.socket, path: str) -> None:
    """Bind a unix socket that only this user may connect to."""
    mask = os.umask(0o177)
    try:
        listening.bind(path)
    finally:
        os.umask(mask)


def _remove_dead(address: PartyAddress) -> None:
    """Remove the socket file that a killed process left; refuse one where somebody listens."""
    if not os.path.lexists(address.path):
        return
    if not Path(address.path).is_socket():
        raise OptionError(f"cannot listen on {address}: the file is no socket")
    try:
        _connection(address, 1.0).close()
    except OSError as error:
        if error.errno not in _GONE:
            raise
        with contextlib.suppress(FileNotFoundError):
            Path(address.path).unlink()
        return
    raise OptionError(f"cannot listen on {address}: somebody listens there")


def _bound(listening: socket.socket, address: PartyAddress) -> PartyAddress:
    if address.path:
        return address
    return PartyAddress(host=address.host, port=listening.getsockname()[1])
