"""The end that listens: handshakes with all who connect, side by side.

No silent, slow or wrong one keeps the others waiting. A listener cannot tell the other party from
others before it has proved its secret. So each connection gets a bounded time, and there are bounds
on how many may be open: of those that have said nothing yet, of those that have said a hello, and
of those that were refused and may still read why. Where there is no room the one that has stood
there the longest makes it. Nothing here waits for any one of them.
"""

import contextlib
import errno
import os
import selectors
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from time import monotonic, sleep

from ...cluster.errors import NobodyError, OptionError
from .framing import UNAUTHENTICATED_BYTES, Frames, FramingError, PeerLostError, framed
from .handshake import Handshake, Hello, Identity, RefusedByOtherError, RefusedError
from .link import (
    HANDSHAKE_S,
    LINGER_S,
    Connector,
    LinkLimits,
    PartyAddress,
    SocketTransport,
    connection_to,
    is_loopback,
    reason,
    refusal_frame,
    without_delay,
)

#: Connections that the kernel keeps unaccepted: more than a burst of unauthenticated peers.
_BACKLOG = 1024
_GONE = {errno.ECONNREFUSED, errno.ENOENT}
#: Connections of each stage at once: all of them fit below the usual limit of 1024 descriptors.
MOST_OPEN = 256
_CHUNK = 2**16
#: So many are accepted before those that are open are looked at again.
_ACCEPTED_AT_ONCE = 64
#: How long frames are looked at before who else connects or says something is.
_TURN_S = 0.01
#: How long a process waits that has no descriptor left, nor any to close.
_PAUSE_S = 0.05
#: Descriptors or memory are short: whoever stands there the longest makes room.
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class _Stage(Enum):
    """How far a connection has come; where all are short of room, those named first make it."""

    REFUSED = "refused"
    SILENT = "silent"
    MET = "met"


@dataclass(slots=True, kw_only=True, eq=False)
class _Peer:
    """A connection whose handshake is open.

    Attributes:
        until_s: when it is dropped, on the monotonic clock.
        payload: a frame that is whole and still to be looked at.
        dropped: bytes read since it was refused.
    """

    connection: socket.socket
    handshake: Handshake
    frames: Frames
    stage: _Stage = _Stage.SILENT
    until_s: float = 0.0
    payload: bytes | None = None
    dropped: int = 0


class Handshakes:
    """All handshakes that are open on a listening socket.

    Args:
        listening: the socket; from now on it does not block.
        identity: this party's.
        timeout_s: how long anybody has for a hello, and then for a proof.
        tell: hears of those who were refused.
    """

    def __init__(
        self, listening: socket.socket, identity: Identity, *, timeout_s: float, tell: Callable[[str], None]
    ) -> None:
        self._listening, self._identity = listening, identity
        self._timeout_s, self._tell = timeout_s, tell
        # A dictionary keeps its order: the first has been in a stage longest, and is late first.
        self._open: dict[_Stage, dict[_Peer, None]] = {stage: {} for stage in _Stage}
        # Frames to be looked at: bytes, a number that orders equal ones, whose.
        self._whole: list[tuple[int, int, _Peer]] = []
        self._numbers = count()
        self._selector = selectors.DefaultSelector()
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)

    def first(self, wait_s: float) -> _Peer | None:
        """Return the first that proves its secret, now the caller's; None: none does in time.

        Raises:
            OSError: nobody can connect any more.
        """
        until_s = monotonic() + wait_s
        while True:
            # Who is late first comes first in its stage.
            heads = (next(iter(peers)).until_s for peers in self._open.values() if peers)
            wake_s = 0.0 if self._whole else min((until_s, *heads))
            for key, _ in self._selector.select(max(wake_s - monotonic(), 0.0)):
                peer: _Peer | None = key.data
                if peer is None:
                    self._accept()
                elif self._is_open(peer):  # else it was dropped for another of the same moment
                    self._read(peer)
            greeted = self._looked()
            if greeted is not None:
                return greeted
            self._drop_late()
            if monotonic() >= until_s:
                return None

    def close(self) -> int:
        """Close all that are open; return how many of them had not said who they are."""
        silent = sum(len(self._open[stage]) for stage in (_Stage.SILENT, _Stage.MET))
        for peers in self._open.values():
            for peer in list(peers):
                self._close(peer)
        self._selector.close()
        return silent

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, _address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _SHORT:
                    raise
                self._make_room(reason(error))
                return
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        peer = _Peer(
            connection=connection,
            handshake=Handshake(self._identity, first=False),
            frames=Frames(UNAUTHENTICATED_BYTES),
        )
        try:
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, peer)
        except OSError as error:
            connection.close()
            self._make_room(reason(error))
            return
        self._enter(peer, _Stage.SILENT, self._timeout_s)

    def _enter(self, peer: _Peer, stage: _Stage, timeout_s: float) -> None:
        self._open[peer.stage].pop(peer, None)
        peer.stage, peer.until_s = stage, monotonic() + timeout_s
        self._open[stage][peer] = None
        if len(self._open[stage]) > MOST_OPEN:
            self._drop(next(iter(self._open[stage])), "too many others connect")

    def _make_room(self, why: str) -> None:
        """Drop one where no descriptor or memory is left."""
        for peers in self._open.values():
            if peers:
                self._drop(next(iter(peers)), why)
                return
        sleep(_PAUSE_S)

    def _read(self, peer: _Peer) -> None:
        """Read what is there, unless a frame is still to be looked at."""
        if peer.payload is not None:
            return
        with self._judged(peer):
            received = peer.connection.recv(_CHUNK)
            if peer.stage is _Stage.REFUSED:
                # What comes is dropped: unread bytes would discard the refusal before it is read.
                peer.dropped += len(received)
                if not received or peer.dropped > UNAUTHENTICATED_BYTES:
                    self._close(peer)
                return
            if not received:
                where = " inside a message" if peer.frames.is_inside else ""
                raise PeerLostError(f"the other party closed the connection{where}")
            peer.frames.feed(received)
            self._cut(peer)

    def _cut(self, peer: _Peer) -> None:
        """Keep the next frame to be looked at, if it is whole."""
        peer.payload = peer.frames.next()
        if peer.payload is not None:
            heappush(self._whole, (len(peer.payload), next(self._numbers), peer))

    def _looked(self) -> _Peer | None:
        """Look at frames for a moment, the shortest first; return the first that proves the secret.

        Decoding 64 KiB of the worst kind takes some ms; what parties say is short and comes before.
        """
        until_s = monotonic() + _TURN_S
        while self._whole and monotonic() < until_s:
            peer = heappop(self._whole)[-1]
            if self._is_open(peer) and self._heard(peer):
                self._forget(peer)
                return peer
        return None

    def _heard(self, peer: _Peer) -> bool:
        """Answer a frame, and return whether it was the proof."""
        handshake = peer.handshake
        payload, peer.payload = peer.payload or b"", None
        with self._judged(peer):
            answer = handshake.heard(payload)
            if answer is not None:
                self._send(peer, framed(answer, UNAUTHENTICATED_BYTES))
            if handshake.is_done:
                return True
            self._enter(peer, _Stage.MET, self._timeout_s)
            self._cut(peer)
        return False

    @contextlib.contextmanager
    def _judged(self, peer: _Peer) -> Iterator[None]:
        """Refuse or drop a connection for what goes wrong with it."""
        try:
            yield
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._drop(peer, f"the other party is gone: {reason(error)}")
        except (PeerLostError, RefusedByOtherError) as error:
            self._drop(peer, str(error))
        except (RefusedError, FramingError) as error:
            self._refuse(peer, str(error))

    def _is_open(self, peer: _Peer) -> bool:
        return peer in self._open[peer.stage]

    def _send(self, peer: _Peer, frame: bytes) -> None:
        """Send a frame at once: a new connection has room for it, or is not waited for."""
        try:
            sent = peer.connection.send(frame)
        except BlockingIOError:
            sent = 0
        if sent < len(frame):
            raise PeerLostError("the other party does not read")

    def _refuse(self, peer: _Peer, text: str) -> None:
        """Say why, and give the other end a moment to read it."""
        self._tell(f"refused a connection: {text}")
        with contextlib.suppress(OSError, PeerLostError):
            self._send(peer, refusal_frame(text))
            peer.connection.shutdown(socket.SHUT_WR)
        self._enter(peer, _Stage.REFUSED, LINGER_S)

    def _drop_late(self) -> None:
        now = monotonic()
        for stage, peers in self._open.items():
            while peers and (late := next(iter(peers))).until_s <= now:
                if stage is _Stage.REFUSED:
                    self._close(late)
                else:
                    self._refuse(late, f"no message came within {self._timeout_s:g} s")

    def _drop(self, peer: _Peer, why: str) -> None:
        if peer.stage is not _Stage.REFUSED:
            self._tell(f"refused a connection: {why}")
        self._close(peer)

    def _close(self, peer: _Peer) -> None:
        self._forget(peer)
        with contextlib.suppress(OSError):
            # Unread bytes would reset the connection, and discard what was sent to the other end.
            peer.connection.recv(_CHUNK)
        peer.connection.close()

    def _forget(self, peer: _Peer) -> None:
        self._open[peer.stage].pop(peer, None)
        self._selector.unregister(peer.connection)


#: RateLimitedLog printed in each period of that many seconds; the others are counted.
_MOST, _PERIOD_S = 20, 10.0


class RateLimitedLog:
    """Tells remarks that unauthenticated peers cause, but no more of them than a log can hold."""

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


class Listener:
    """Waits for the other party to connect, also after refusing unauthenticated peers.

    While the other party is connected, those who connect wait in the kernel, and cost it nothing.

    Args:
        address: where; port 0: any free one, ``address`` says which.
        identity: this party's.
        limits: see LinkLimits.
        tell: hears of those who were refused.

    Raises:
        OptionError: nobody can listen there, or everybody could connect and no secret is asked for.
    """

    #: It cannot choose who connects: it goes on, and the other gives up.
    gives_up = False

    def __init__(
        self, address: PartyAddress, identity: Identity, limits: LinkLimits, tell: Callable[[str], None]
    ) -> None:
        if identity.secret is None and not (address.path or is_loopback(address.host)):
            raise OptionError(
                f"other machines can reach {address}: a shared secret is needed (--secret-file)"
            )
        self._identity, self._limits, self._tell = identity, limits, tell
        self._remarks = RateLimitedLog(tell)
        self._socket = _listening(address)
        is_port = not address.path
        self.address = replace(address, port=self._socket.getsockname()[1]) if is_port else address

    def open(self, wait_s: float | None = None) -> tuple[SocketTransport, Hello]:
        """Return the next connection whose hello and proof are right (see ``Connector``)."""
        wait_s = self._limits.wait_s if wait_s is None else wait_s
        timeout_s, peer = min(self._limits.timeout_s, HANDSHAKE_S), None
        try:
            handshakes = Handshakes(self._socket, self._identity, timeout_s=timeout_s, tell=self._remarks.add)
            try:
                peer = handshakes.first(wait_s)
            finally:
                silent = handshakes.close()
                self._remarks.flush()
                if silent:
                    self._tell(f"closed {silent} connections that had not said who they are")
        except OSError as error:
            raise NobodyError(f"{self.address}: {error.strerror}") from error
        if peer is None or peer.handshake.hello is None:
            raise NobodyError(f"nobody connected to {self.address} within {wait_s:g} s")
        without_delay(peer.connection)
        transport = SocketTransport(
            peer.connection,
            timeout_s=self._limits.timeout_s,
            limit=self._limits.message_bytes,
            frames=peer.frames,
        )
        return transport, peer.handshake.hello

    def close(self) -> None:
        """Stop listening, and remove the socket's file."""
        self._socket.close()
        if self.address.path:
            Path(self.address.path).unlink(missing_ok=True)


#: Opens connections to the other party, one after another.
Link = Listener | Connector


def _listening(address: PartyAddress) -> socket.socket:
    family = socket.AF_UNIX if address.path else socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        if address.path:
            _remove_dead(address)
            mask = os.umask(0o177)  # only this user may connect
            try:
                listening.bind(address.path)
            finally:
                os.umask(mask)
        else:
            # A party that is killed and starts again must not wait until the kernel frees the port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
    except BaseException as error:
        listening.close()
        if isinstance(error, OSError):
            raise OptionError(f"cannot listen on {address}: {error.strerror or error}") from error
        raise
    return listening


def _remove_dead(address: PartyAddress) -> None:
    """Remove the socket file that a killed process left; refuse one where somebody listens."""
    if not os.path.lexists(address.path):
        return
    if not Path(address.path).is_socket():
        raise OptionError(f"cannot listen on {address}: the file is not a socket")
    try:
        connection_to(address, 1.0).close()
    except OSError as error:
        if error.errno not in _GONE:
            raise
        with contextlib.suppress(FileNotFoundError):
            Path(address.path).unlink()
        return
    raise OptionError(f"cannot listen on {address}: somebody listens there")
