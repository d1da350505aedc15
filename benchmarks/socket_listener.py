"""A party of a negotiation that listens in a process of its own, for attacks on it: loopback only."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_options import command_options

from aucsched.commands.negotiate import play_from
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.messages import PROTOCOL_VERSION, NegotiationStart, NegotiationStartResponse
from aucsched.negotiation.transport.handshake import Identity, PartyName
from aucsched.negotiation.transport.link import (
    Connector,
    LinkLimits,
    PartyAddress,
    SocketTransport,
    address_of,
)
from aucsched.simulation.negotiated.negotiated_run import batch_notes, terms_of
from aucsched.simulation.negotiated.plays import Play

_LIMITS = LinkLimits(timeout_s=30.0, wait_s=30.0)
_SECRET = "attack sockets"  # noqa: S105 - of this benchmark's own listeners
_OTHER: dict[PartyName, PartyName] = {"irtsched": "ibsched", "ibsched": "irtsched"}
#: No line of stderr is longer, whatever strangers say.
_LINE = 1000


class BrokenError(AssertionError):
    """A listener has ended, printed what it should not, or let the other party wait for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Which party listens, and how it is reached."""

    party: PartyName
    kind: str
    has_secret: bool

    def __str__(self) -> str:
        return f"{self.party} {self.kind} {'with a secret' if self.has_secret else 'no secret'}"


ENDPOINTS = tuple(
    Endpoint(party=party, kind=kind, has_secret=has_secret)
    for party in _OTHER
    for kind in ("tcp", "unix")
    for has_secret in (False, True)
)


class Listening:
    """A party that listens in a process of its own."""

    def __init__(self, endpoint: Endpoint, folder: Path, play: Play) -> None:
        self.endpoint, self._folder, self._play = endpoint, folder, play
        self._secret = ["--secret-file", "secret"] if endpoint.has_secret else []
        (folder / "secret").write_text(_SECRET)
        (folder / "secret").chmod(0o600)
        self._log = folder / f"{endpoint.party}.log"
        where = "unix:socket" if endpoint.kind == "unix" else "127.0.0.1:0"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own
                self._line(endpoint.party, ["--listen", where]),
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.address = self._heard_address()

    def _line(self, party: PartyName, where: Sequence[str]) -> list[str]:
        limits = ["--timeout", "30", "--wait", "120"]
        return [sys.executable, "-m", "aucsched", party, "workload.json", *where, *self._secret, *limits]

    def _heard_address(self) -> PartyAddress:
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            first, whole, _ = self._log.read_text().partition("\n")
            if whole:
                address = address_of(first.rpartition(" ")[2])
                return PartyAddress(path=str(self._folder / address.path)) if address.path else address
            time.sleep(0.02)
        raise BrokenError(f"{self.endpoint}: it does not listen: {self._log.read_text()[-500:]}")

    def identity(self) -> Identity:
        """Return who the true other party is."""
        party = _OTHER[self.endpoint.party]
        notes = batch_notes(BatchSettings(ends_when_done=True)) if party == "ibsched" else {}
        secret = _SECRET.encode() if self.endpoint.has_secret else None
        return Identity(party=party, terms=terms_of(self._play, "suspend"), notes=notes, secret=secret)

    def stranger(self) -> socket.socket:
        """Return a connection that has said nothing; refused by a full queue, it tries again for a while."""
        until = time.monotonic() + 10
        while True:
            connection = socket.socket(socket.AF_UNIX if self.address.path else socket.AF_INET)
            try:
                connection.settimeout(5)
                connection.connect(self.address.path or (self.address.host, self.address.port))
            except OSError:
                connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return connection

    def served_s(self) -> float:
        """Return how long the true party waits for the first answer to its first message, in seconds."""
        began = time.monotonic()
        transport, _ = Connector(self.address, self.identity(), _LIMITS).open()
        try:
            self._start(transport)
            return time.monotonic() - began
        finally:
            transport.close()

    def proved(self) -> SocketTransport:
        """Return a connection on which both have proved the secret, and the negotiation has begun."""
        transport, _ = Connector(self.address, self.identity(), _LIMITS).open()
        self._start(transport)
        return transport

    def _start(self, transport: SocketTransport) -> None:
        if self.endpoint.party == "irtsched":
            transport.send(
                NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=1)
            )
            answer: type = NegotiationStartResponse
        else:
            answer = NegotiationStart
        heard = transport.receive(30.0)
        if not isinstance(heard, answer):
            raise BrokenError(f"{self.endpoint}: it answers with {type(heard).__name__}")

    def negotiate(self) -> float:
        """Let the true other party negotiate to the end, and return how long it took, in seconds."""
        party = _OTHER[self.endpoint.party]
        address = "unix:socket" if self.address.path else str(self.address)
        began = time.monotonic()
        line = self._line(party, ["--connect", address])
        done = subprocess.run(  # noqa: S603 - our own
            line, cwd=self._folder, capture_output=True, text=True, check=False, timeout=300
        )
        took_s = time.monotonic() - began
        if done.returncode or self.process.wait(timeout=60):
            raise BrokenError(
                f"{self.endpoint}: no negotiation afterwards: {done.stderr}{self.said()[-500:]}"
            )
        return took_s

    def said(self) -> str:
        """Return what it wrote to stderr.

        Raises:
            BrokenError: a traceback, or a line that strangers made long or unprintable.
        """
        text = self._log.read_text(errors="surrogateescape")
        bad = [line for line in text.split("\n") if len(line) > _LINE or not line.isprintable()]
        if "Traceback" in text or bad:
            raise BrokenError(f"{self.endpoint}: it printed {(bad or [text[-2000:]])[0]!r}")
        return text

    def check_alive(self, after: bytes) -> None:
        """Refuse a listener that has ended, and what it should not have printed."""
        if self.process.poll() is not None:
            raise BrokenError(f"{self.endpoint}: ended with {self.process.returncode} at {after[:200]!r}")
        self.said()


@contextmanager
def listening(endpoint: Endpoint, play: Play, workload: Path) -> Iterator[Listening]:
    """Give a listener; it is killed if it has not ended."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "workload.json").write_bytes(workload.read_bytes())
        listener = Listening(endpoint, folder, play)
        try:
            yield listener
        finally:
            listener.process.kill()
            listener.process.wait()


def small_workload(folder: Path, seed: int) -> Path:
    """Write a workload of 30 jobs on six nodes, rigid and malleable."""
    generator = random.Random(seed)  # noqa: S311 - a workload, no secrets
    arrivals = sorted(generator.randint(0, 400) for _ in range(30))
    jobs = [
        {
            "id": f"j{number}",
            "priority": generator.randint(1, 9),
            "nodes": (size := generator.randint(1, 4)),
            "cores_per_node": 1,
            "arrival_s": arrival_s,
            "run_time_s": generator.randint(30, 400),
            **({"kind": "malleable", "min_nodes": 1, "max_nodes": size + 2} if number % 2 else {}),
        }
        for number, arrival_s in enumerate(arrivals)
    ]
    path = folder / "workload.json"
    nodes = [{"name": "n[1-6]", "cores": 1}]
    path.write_text(
        json.dumps({"format": "aucsched-workload/1", "name": "small", "nodes": nodes, "jobs": jobs})
    )
    return path


def play_in(workload: Path) -> Play:
    """Return the play of two parties that negotiate over a workload."""
    options = command_options("irtsched", [str(workload)])
    return play_from(options.pop("workload"), options)
