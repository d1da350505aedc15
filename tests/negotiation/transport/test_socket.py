"""Both parties over a socket: the same schedule as in one process, however either misbehaves."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.negotiation import pair, rigid
from support.parties import (
    ARRIVALS,
    LIMITS,
    NODES,
    Served,
    batch_party,
    check_done,
    identity,
    listening,
    runtime_party,
)

from aucsched.negotiation.batch.batch_state import Arrival
from aucsched.negotiation.job_records import JobReport, JobState
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
from aucsched.negotiation.transport.framing import PeerLostError, framed
from aucsched.negotiation.transport.handshake import PartyName
from aucsched.negotiation.transport.link import Connector, LinkLimits, SocketTransport, TooLongError
from aucsched.negotiation.transport.listener import Link
from aucsched.negotiation.transport.serve import CutOffError, serve_batch, serve_runtime

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
    "steps without end": (
        _says(NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=1e-9)),
        "interval_s: 1e-09 is not a time of at least 1 s",
    ),
}
OFFER = ResourceOffer(time_s=0.0, negotiation=1, transaction=1, attempt=1, idle=("n1", "n2", "n3", "n4"))
UNKNOWN = JobReport(job="x", state=JobState.RUNNING, node_count=0, start_s=0, run_time_s=0, end_s=1)
TO_BATCH = MALFORMED | {
    "an offer again": (_says(OFFER), r"offer 1.1 does not follow 1.1"),
    "a later attempt": (_says(msgspec.structs.replace(OFFER, attempt=3)), r"offer 1.3 does not follow 1.1"),
    "its own message": (_says(MAP), "not a message to a batch scheduler"),
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
    with listening("irtsched", LinkLimits(timeout_s=0.5, wait_s=20.0)) as (listener, _):
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
    with listening("ibsched", LinkLimits(timeout_s=0.5, wait_s=20.0)) as (listener, _):
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
    limits = LinkLimits(timeout_s=1.0, wait_s=20.0)
    with listening("irtsched", limits) as (listener, _):
        runtime = Served(serve_runtime, runtime_party(), listener)
        batch = Served(
            serve_batch, batch_party(never), Connector(listener.address, identity("ibsched"), limits)
        )
        with pytest.raises(StuckError, match="nothing happens any more, but jobs wait: 1"):
            batch.end()
        runtime.end()
    assert not runtime.party.state.machine.done
    assert runtime.party.last_words.endswith("jobs wait: 1")


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
