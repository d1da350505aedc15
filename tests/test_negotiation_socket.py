"""Both parties over a socket: the same schedule as in one process, whoever else connects or misbehaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.negotiation import check_jobs, machine, malleable, pair, rigid

from aucsched.cluster.errors import OptionError
from aucsched.negotiation import ibsched, irtsched
from aucsched.negotiation.batch_state import Arrival, BatchSettings, BatchState
from aucsched.negotiation.framing import framed
from aucsched.negotiation.handshake import Identity, PartyName, RefusedError
from aucsched.negotiation.irtsched import RuntimeState
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    Code,
    Message,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
)
from aucsched.negotiation.pair import StuckError
from aucsched.negotiation.party import Party
from aucsched.negotiation.serve import CutOffError, serve_batch, serve_runtime
from aucsched.negotiation.transport import PeerLostError
from aucsched.negotiation.transport_link import (
    Address,
    Connector,
    Limits,
    Link,
    Listener,
    NobodyError,
    address_of,
)
from aucsched.negotiation.transport_socket import SocketTransport, TooLongError
from aucsched.runtime.records import JobReport, JobState
from aucsched.runtime.settings import RuntimeSettings

NODES = 4
ARRIVALS = (
    Arrival(time_s=0.0, job=rigid("a", 3, 100)),
    Arrival(time_s=0.0, job=malleable("m", 1, 4, 90, priority=99)),
    Arrival(time_s=20.0, job=rigid("b", 4, 30, priority=98)),
    Arrival(time_s=40.0, job=rigid("z", 2, 7, priority=1), urgent=True),
    Arrival(time_s=400.0, job=malleable("c", 1, 2, 10, priority=97)),
)
LIMITS = Limits(timeout_s=20.0, wait_s=20.0)


def identity(party: PartyName, secret: bytes | None = None) -> Identity:
    return Identity(party=party, terms={"workload": "w"}, notes={}, secret=secret)


def batch_party(arrivals: tuple[Arrival, ...] = ARRIVALS) -> Party[BatchState]:
    return Party(BatchState(settings=BatchSettings(ends_when_done=True), arrivals=arrivals), ibsched.step)


def runtime_party(nodes: int = NODES) -> Party[RuntimeState]:
    return Party(RuntimeState(settings=RuntimeSettings(), machine=machine(nodes)), irtsched.step)


class Served(threading.Thread):
    """A party that is served in a thread; ``end`` waits for it and raises what it raised."""

    def __init__(self, serve: Callable[..., None], party: Party[Any], link: Link) -> None:
        super().__init__(daemon=True)
        self.party, self.told = party, list[str]()
        self._serve, self._link = serve, link
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Serve it."""
        try:
            self._serve(self.party, self._link, self.told.append)
        except BaseException as error:  # noqa: BLE001 - it is raised again by end
            self._error = error
        finally:
            self._link.close()

    def end(self) -> None:
        """Wait until it has ended."""
        self.join(30)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


@contextmanager
def listening(
    party: PartyName, limits: Limits = LIMITS, address: str = "127.0.0.1:0", secret: bytes | None = None
) -> Iterator[tuple[Listener, list[str]]]:
    """Give a listener, and what it tells of strangers."""
    told: list[str] = []
    listener = Listener(address_of(address), identity(party, secret), limits, told.append)
    try:
        yield listener, told
    finally:
        listener.close()


def check_done(batch: Party[BatchState], runtime: Party[RuntimeState]) -> None:
    """Assert that all jobs ran once, as both parties see it."""
    names = sorted(arrival.job.job for arrival in batch.state.arrivals)
    assert sorted(batch.state.done) == sorted(runtime.state.machine.done) == names
    assert not runtime.state.machine.running
    assert runtime.state.machine.idle == (1 << NODES) - 1
    check_jobs(batch.state, runtime.state.machine)


# The same schedule.


@pytest.mark.parametrize("listens", ["ibsched", "irtsched"])
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_the_schedule_is_that_of_one_process(listens: PartyName, kind: str, tmp_path: Path) -> None:
    both, _ = pair(NODES, ARRIVALS, ends_when_done=True)
    both.run()
    address = f"unix:{tmp_path / 's'}" if kind == "unix" else "127.0.0.1:0"
    with listening(listens, address=address, secret=b"x") as (listener, _told):
        other: PartyName = "irtsched" if listens == "ibsched" else "ibsched"
        connector = Connector(listener.address, identity(other, b"x"), LIMITS)
        links: dict[PartyName, Link] = {listens: listener, other: connector}
        batch = Served(serve_batch, batch_party(), links["ibsched"])
        runtime = Served(serve_runtime, runtime_party(), links["irtsched"])
        batch.end()
        runtime.end()
    assert batch.party.state == both.batch
    assert runtime.party.state == both.runtimes[""]
    assert batch.told == runtime.told == []


def test_a_unix_socket_is_private_and_goes_with_its_listener(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening("irtsched", address=f"unix:{path}") as (listener, _):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(OptionError, match="somebody listens there"):
            Listener(listener.address, identity("irtsched"), LIMITS, print)
    assert not path.exists()
    # What a killed process leaves is taken over; what is no socket is not.
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with listening("irtsched", address=f"unix:{path}"):
        pass
    path.write_text("a file")
    with pytest.raises(OptionError, match="the file is no socket"):
        Listener(Address(path=str(path)), identity("irtsched"), LIMITS, print)
    assert path.read_text() == "a file"


def test_addresses() -> None:
    assert address_of("unix:s") == Address(path="s") == address_of("unix:s")
    assert address_of("/run/s") == Address(path="/run/s")
    assert address_of("localhost:7000") == Address(host="localhost", port=7000)
    assert address_of("[::1]:0") == Address(host="::1", port=0)
    assert str(address_of("[::1]:7")) == "[::1]:7"
    for wrong in ("", "unix:", "7000", "host:", ":7000", "host:70000", "host:-1", "host:x"):
        with pytest.raises(OptionError):
            address_of(wrong)


def test_only_this_machine_may_connect_without_a_secret() -> None:
    with pytest.raises(OptionError, match=r"other machines can reach 0\.0\.0\.0:0"):
        Listener(address_of("0.0.0.0:0"), identity("irtsched"), LIMITS, print)
    Listener(address_of("0.0.0.0:0"), identity("irtsched", b"s"), LIMITS, print).close()


# Strangers.


def connected(address: Address) -> SocketTransport:
    plain = socket.create_connection((address.host, address.port), timeout=5)
    return SocketTransport(plain, timeout_s=5.0)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "above the limit"),
        ((2**31).to_bytes(4), "a frame of 2147483648 bytes is above the limit of 65536"),
        (framed(b"\x00\xff garbage", 100), "no hello of aucsched"),
        (framed(b'{"message":"HELLO","version":7}', 100), "version 7 is not 1"),
        (framed(b"[" * 60_000, 65536), "no hello of aucsched"),
        (b"\x00\x00", "no message came within 0.3 s"),
        (b"", "no message came within 0.3 s"),
    ],
)
def test_a_stranger_is_told_why_and_the_listener_goes_on(first: bytes, why: str) -> None:
    limits = Limits(timeout_s=0.3, wait_s=20.0)
    with listening("irtsched", limits) as (listener, told):
        runtime = Served(serve_runtime, runtime_party(), listener)
        with socket.create_connection((listener.address.host, listener.address.port), timeout=5) as stranger:
            stranger.sendall(first)
            refusal = b"".join(iter(lambda: stranger.recv(4096), b""))
        assert why.encode() in refusal
        Served(
            serve_batch, batch := batch_party(), Connector(listener.address, identity("ibsched"), LIMITS)
        ).end()
        runtime.end()
    check_done(batch, runtime.party)
    assert [line for line in told if "refused a connection" in line and why in line]


def test_another_secret_workload_or_the_same_party_is_refused_for_good() -> None:
    with listening("irtsched", secret=b"right") as (listener, told):
        runtime = Served(serve_runtime, runtime_party(), listener)
        for who, why in (
            (identity("ibsched", b"wrong"), "the shared secrets differ"),
            (identity("ibsched"), "irtsched asks for a shared secret, and ibsched has none"),
            (identity("irtsched", b"right"), "both parties are irtsched"),
            (
                Identity(party="ibsched", terms={"workload": "v"}, notes={}, secret=b"right"),
                "has w, ibsched has v",
            ),
        ):
            with pytest.raises(RefusedError, match=why):
                Connector(listener.address, who, LIMITS).open()
        batch = Served(
            serve_batch, batch_party(), Connector(listener.address, identity("ibsched", b"right"), LIMITS)
        )
        batch.end()
        runtime.end()
    assert len(told) == 4
    assert not any("right" in line or "wrong" in line for line in told)


def test_who_stays_away_is_waited_for_no_longer_than_told() -> None:
    with listening("irtsched") as (listener, _):
        with pytest.raises(NobodyError, match="nobody connected to 127"):
            listener.open(0.05)
        address = listener.address
    with pytest.raises(NobodyError, match="refused"):
        Connector(address, identity("ibsched"), LIMITS).open(0.05)


# A peer that misbehaves in the middle of a transaction. Each attack returns what it is refused with.

Attack = Callable[[SocketTransport], None]


def _says(message: Message) -> Attack:
    return lambda transport: transport.send(message)


def _sends(text: bytes) -> Attack:
    return lambda transport: transport._socket.sendall(text)  # noqa: SLF001 - past its own checks


def _waits(transport: SocketTransport) -> None:
    """Send nothing, and no end either."""


MALFORMED: dict[str, tuple[Attack, str]] = {
    "garbage": (_sends(framed(b"\x00garbage", 99)), "no message: not JSON"),
    "oversize": (_sends((2**30).to_bytes(4)), "a frame of 1073741824 bytes is above the limit"),
    "stall": (_waits, "no message came within 0.5 s"),
    "half": (_sends(b"\x00\x00\x00\x09{"), "no message came within 0.5 s"),
    "another kind": (_sends(framed(b'{"message":"HELLO"}', 99)), "no message"),
}
MAP = ResponseResourceOffer(
    transaction=1, attempt=1, code=Code.ACCEPT, map=(msgspec.structs.replace(rigid("a", 3, 100), node_cnt=3),)
)
TO_RUNTIME = MALFORMED | {
    "another transaction": (_says(msgspec.structs.replace(MAP, transaction=9)), "no open transaction 9"),
    "another attempt": (_says(msgspec.structs.replace(MAP, attempt=4)), "attempt 4, not 1"),
    "its own message": (_says(StatusReport(time_s=0.0)), "may not come to a runtime scheduler"),
    "an end that nobody asked for": (_says(NegotiationEndResponse()), "may not come"),
}
OFFER = ResourceOffer(time_s=0.0, negotiation=1, transaction=1, attempt=1, idle=("n1", "n2", "n3", "n4"))
UNKNOWN = JobReport(job="x", state=JobState.RUNNING, node_count=0, start_s=0, run_time_s=0, end_s=1)
TO_BATCH = MALFORMED | {
    "an offer again": (_says(OFFER), r"offer 1.1 does not follow 1.1"),
    "a later attempt": (_says(msgspec.structs.replace(OFFER, attempt=3)), r"offer 1.3 does not follow 1.1"),
    "its own message": (_says(MAP), "no message to a batch scheduler"),
    "a job never submitted": (_says(StatusReport(time_s=1.0, reports=(UNKNOWN,))), "never submitted"),
    "started again": (
        _says(NegotiationStartResponse(time_s=0.0, version=PROTOCOL_VERSION, code=Code.ACCEPT)),
        "the negotiation is",
    ),
}


def refused_with(transport: SocketTransport) -> str:
    """Return what the other end says before it closes."""
    try:
        while True:
            transport.receive(10.0)
    except PeerLostError as lost:
        return str(lost)


@pytest.mark.parametrize("attack", TO_RUNTIME)
def test_a_batch_scheduler_that_misbehaves_is_refused_and_nothing_is_lost(attack: str) -> None:
    act, why = TO_RUNTIME[attack]
    with listening("irtsched", Limits(timeout_s=0.5, wait_s=20.0)) as (listener, _):
        runtime = Served(serve_runtime, runtime_party(), listener)
        bad, _hello = Connector(listener.address, identity("ibsched"), LIMITS).open()
        bad.send(NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=2))
        assert isinstance(bad.receive(), NegotiationStartResponse)
        assert isinstance(bad.receive(), ResourceOffer)
        act(bad)
        assert why in refused_with(bad)
        bad.close()
        batch = Served(serve_batch, batch_party(), Connector(listener.address, identity("ibsched"), LIMITS))
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert [line for line in runtime.told if line.startswith("lost ibsched")]


@pytest.mark.parametrize("attack", TO_BATCH)
def test_a_runtime_scheduler_that_misbehaves_is_refused_and_nothing_is_lost(attack: str) -> None:
    act, why = TO_BATCH[attack]
    with listening("ibsched", Limits(timeout_s=0.5, wait_s=20.0)) as (listener, _):
        batch = Served(serve_batch, batch_party(), listener)
        bad, _hello = Connector(listener.address, identity("irtsched"), LIMITS).open()
        assert isinstance(bad.receive(), NegotiationStart)
        nodes = tuple(f"n{number}" for number in range(1, NODES + 1))
        bad.send(
            NegotiationStartResponse(
                time_s=0.0, version=PROTOCOL_VERSION, code=Code.ACCEPT, partitions={"": nodes}
            )
        )
        bad.send(OFFER)
        assert isinstance(bad.receive(), ResponseResourceOffer)
        act(bad)
        assert why in refused_with(bad)
        bad.close()
        runtime = Served(
            serve_runtime, runtime_party(), Connector(listener.address, identity("irtsched"), LIMITS)
        )
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert [line for line in batch.told if line.startswith("lost irtsched")]


def test_a_peer_that_dies_mid_transaction_leaves_nothing_started() -> None:
    with listening("irtsched") as (listener, _):
        runtime = Served(serve_runtime, runtime_party(), listener)
        for _ in range(3):
            bad, _hello = Connector(listener.address, identity("ibsched"), LIMITS).open()
            bad.send(NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=2))
            bad.receive()
            assert isinstance(bad.receive(), ResourceOffer)
            bad.close()
        batch = Served(serve_batch, batch_party(), Connector(listener.address, identity("ibsched"), LIMITS))
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert len(runtime.told) == 3


def test_a_message_above_the_limit_is_not_sent() -> None:
    one, other = socket.socketpair()
    transport = SocketTransport(one, timeout_s=1.0, limit=100)
    with pytest.raises(TooLongError, match="STATUS_REPORT: a frame of"):
        transport.send(StatusReport(time_s=1.0, reports=(UNKNOWN,) * 5))
    transport.close()
    other.close()


def test_a_peer_that_does_not_read_is_given_up() -> None:
    one, other = socket.socketpair()
    transport = SocketTransport(one, timeout_s=0.1)
    many = StatusReport(time_s=1.0, reports=(UNKNOWN,) * 100_000)
    with pytest.raises(PeerLostError, match="does not read"):
        transport.send(many)
    transport.close()
    other.close()


def test_jobs_that_nothing_will_start_end_both_parties() -> None:
    never = (Arrival(time_s=0.0, job=rigid("big", NODES + 1, 10)),)
    limits = Limits(timeout_s=1.0, wait_s=20.0)
    with listening("irtsched", limits) as (listener, _):
        runtime = Served(serve_runtime, runtime_party(), listener)
        batch = Served(
            serve_batch, batch_party(never), Connector(listener.address, identity("ibsched"), limits)
        )
        with pytest.raises(StuckError, match="nothing happens any more, but 1 jobs wait"):
            batch.end()
        runtime.end()
    assert not runtime.party.state.machine.done
    assert runtime.party.last_words.endswith("1 jobs wait")


def test_a_runtime_scheduler_that_leaves_early_is_told_of() -> None:
    with listening("ibsched") as (listener, _):
        batch = Served(serve_batch, batch_party(), listener)
        leaving, _hello = Connector(listener.address, identity("irtsched"), LIMITS).open()
        leaving.receive()
        leaving.send(NegotiationEnd("maintenance"))
        assert isinstance(leaving.receive(), NegotiationEndResponse)
        leaving.close()
        with pytest.raises(CutOffError, match="before all jobs were done: maintenance"):
            batch.end()
