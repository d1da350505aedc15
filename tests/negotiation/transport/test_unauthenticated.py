"""Strangers at a listener: silent, slow, wrong, many; the true party is served beside them.

No test measures time: those that are silent may be so for longer than a test lasts, so a listener that waits
for any of them never serves the other party.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import socket
import threading
import time
from pathlib import Path

import pytest
import socket_garbage
from attack_sockets import Load, crowd, said_after, said_before
from socket_listener import ENDPOINTS, Endpoint, Listening, play_in, small_workload
from socket_listener import listening as process
from support.parties import LIMITS, Served, batch_party, check_done, identity, listening, runtime_party

from aucsched.cluster.errors import NobodyError
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    NegotiationStart,
    NegotiationStartResponse,
    ProtocolError,
    ResourceOffer,
)
from aucsched.negotiation.transport import listener as module
from aucsched.negotiation.transport.framing import PeerLostError, framed
from aucsched.negotiation.transport.handshake import Handshake, Identity, RefusedError
from aucsched.negotiation.transport.link import Connector, LinkLimits, address_of
from aucsched.negotiation.transport.listener import Listener, RateLimitedLog
from aucsched.negotiation.transport.party import Party
from aucsched.negotiation.transport.serve import serve_batch, serve_runtime
from aucsched.simulation.negotiated.negotiated_run import batch_notes, batch_settings_in

#: Longer than any test: a listener that waits for one silent connection serves nobody.
PATIENT = LinkLimits(timeout_s=600.0, wait_s=120.0)
ANYWHERE = address_of("127.0.0.1:0")
#: Every sequence that has ended processes, and some drawn.
SEQUENCES = tuple(socket_garbage.sequences(60, random.Random(5)))


def stranger(listener: Listener, first: bytes = b"") -> socket.socket:
    """Return a connection that has sent some bytes."""
    address = listener.address
    connection = socket.socket(socket.AF_UNIX if address.path else socket.AF_INET)
    connection.settimeout(30)
    connection.connect(address.path or (address.host, address.port))
    connection.sendall(first)
    return connection


def ending(connection: socket.socket) -> bytes:
    """Return what comes until the other end closes."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while received := connection.recv(2**16):
            found += received
    return found


def is_open(connection: socket.socket) -> bool:
    """Whether the other end has neither said anything nor closed."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) is None
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.fixture
def patient_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a silent connection be silent for longer than a test lasts."""
    monkeypatch.setattr("aucsched.negotiation.transport.listener.HANDSHAKE_S", 600.0)


@pytest.fixture(params=["tcp", "unix"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where to listen."""
    return "127.0.0.1:0" if request.param == "tcp" else f"unix:{tmp_path / 's'}"


SECRETS = pytest.mark.parametrize("secret", [None, b"open sesame"], ids=["no secret", "secret"])


# Crowds.


@SECRETS
@pytest.mark.usefixtures("patient_handshakes")
def test_the_true_party_is_served_while_others_are_silent(address: str, secret: bytes | None) -> None:
    with listening("irtsched", PATIENT, address, secret) as (listener, told), contextlib.ExitStack() as stack:
        runtime = Served(serve_runtime, runtime_party(), listener)
        silent = [stack.enter_context(stranger(listener)) for _ in range(60)]
        halves = [stack.enter_context(stranger(listener, b"\x00\x00\x00\x09{")) for _ in range(20)]
        text = framed(b'{"message":1, oops', 99)
        wrong = [stack.enter_context(stranger(listener, text)) for _ in range(20)]
        for one in wrong:
            assert b"REFUSAL" in ending(one)
        assert all(is_open(one) for one in silent + halves)
        connector = Connector(listener.address, identity("ibsched", secret), PATIENT)
        batch = Served(serve_batch, batch_party(), connector)
        batch.end()
        runtime.end()
        assert not any(is_open(one) for one in silent + halves)
    check_done(batch.party, runtime.party)
    assert "closed 80 connections that had not said who they are" in told
    assert sum(line.startswith("refused a connection") for line in told) == 20


@pytest.mark.usefixtures("patient_handshakes")
def test_where_there_is_no_room_who_waits_longest_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 4)
    hello = framed(identity("ibsched", b"s").hello(), 10_000)
    with listening("irtsched", PATIENT, secret=b"s") as (listener, told), contextlib.ExitStack() as stack:
        runtime = Served(serve_runtime, runtime_party(), listener)
        met = []
        for _ in range(5):
            met.append(stack.enter_context(stranger(listener, hello)))
            assert json.loads(met[-1].recv(10_000)[4:])["message"] == "HELLO"
        # Silence takes no room from those that have said a hello: only the first of five of them was dropped.
        silent = [stack.enter_context(stranger(listener)) for _ in range(7)]
        for dropped in silent[:3]:
            assert ending(dropped) == b""
        assert all(is_open(one) for one in silent[3:])
        assert [is_open(one) for one in met] == [False, True, True, True, True]
        connector = Connector(listener.address, identity("ibsched", b"s"), PATIENT)
        batch = Served(serve_batch, batch_party(), connector)
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert told.count("refused a connection: too many others connect") >= 4


@pytest.mark.usefixtures("patient_handshakes")
def test_what_takes_long_to_decode_is_looked_at_last() -> None:
    """Two hundred frames of the worst kind are a second of decoding; the true party came after them."""
    worst = framed(socket_garbage.crowded_hello(), 2**16)
    true, listens = Handshake(identity("ibsched", b"s"), first=True), identity("irtsched", b"s")
    told: list[str] = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(contextlib.closing(Listener(ANYWHERE, listens, PATIENT, told.append)))
        for _ in range(200):
            stack.enter_context(stranger(listener, worst))
        connection = stack.enter_context(stranger(listener, framed(true.mine, 10_000)))

        def prove() -> None:
            connection.sendall(framed(true.heard(connection.recv(10_000)[4:]) or b"", 10_000))

        proves = threading.Thread(target=prove)
        proves.start()
        transport, hello = listener.open()
        proves.join()
        transport.close()
    assert hello.party == "ibsched"
    assert "closed" in told[-1]
    assert int(told[-1].split()[1]) > 0


def test_who_connects_during_a_negotiation_costs_it_nothing() -> None:
    with listening("irtsched", secret=b"s") as (listener, told), contextlib.ExitStack() as stack:
        runtime = Served(serve_runtime, runtime_party(), listener)
        first, _ = Connector(listener.address, identity("ibsched", b"s"), LIMITS).open()
        first.send(NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=2))
        assert isinstance(first.receive(), NegotiationStartResponse)
        for _ in range(300):
            stack.enter_context(stranger(listener, b"garbage"))
        # The kernel keeps them: nobody has looked at one, and messages go on as before.
        assert isinstance(first.receive(), ResourceOffer)
        assert told == []
        first.close()
        # They stand before the other party when it comes again.
        batch = Served(
            serve_batch, batch_party(), Connector(listener.address, identity("ibsched", b"s"), LIMITS)
        )
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    refused = [line for line in told if line.startswith("refused a connection")]
    assert 0 < len(refused) <= 20
    assert any(line.endswith("more remarks of that kind") for line in told)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
def test_a_crowd_of_450_is_borne(endpoint: Endpoint, tmp_path: Path) -> None:
    """The benchmark's load, on a process; the crowd is still there when the true party has been served."""
    workload = small_workload(tmp_path, 1)
    with (
        process(endpoint, play_in(workload), workload) as listener,
        crowd(listener, Load(), random.Random(1)),
    ):
        listener.served_s()
        listener.check_alive(b"a crowd")
        assert left_silent(listener) >= 100


def left_silent(listener: Listening) -> int:
    """Return how many connections were open, without having said anything, when the true party came."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for line in listener.said().splitlines():
            if line.endswith("connections that had not said who they are"):
                return int(line.split()[2])
        time.sleep(0.05)
    return 0


def test_a_listener_without_descriptors_left_serves_the_true_party(tmp_path: Path) -> None:
    workload = small_workload(tmp_path, 1)
    with process(ENDPOINTS[1], play_in(workload), workload) as listener, contextlib.ExitStack() as stack:
        resource.prlimit(listener.process.pid, resource.RLIMIT_NOFILE, (40, 40))
        for _ in range(100):
            stack.enter_context(listener.stranger())
        listener.served_s()
        listener.negotiate()
        assert "Too many open files" in listener.said()


# Garbage.


@SECRETS
def test_no_bytes_of_a_stranger_end_a_listener(address: str, secret: bytes | None) -> None:
    """Nagendra: phases of the protocol (ch. 4): initialisation, finalisation."""
    with listening("irtsched", address=address, secret=secret) as (listener, told):
        runtime = Served(serve_runtime, runtime_party(), listener)
        for text in SEQUENCES:
            with stranger(listener, text) as connection:
                connection.shutdown(socket.SHUT_WR)
                ending(connection)
            assert runtime.is_alive(), text
        connector = Connector(listener.address, identity("ibsched", secret), LIMITS)
        batch = Served(serve_batch, batch_party(), connector)
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert told
    assert all(line.isprintable() and len(line) < 1000 for line in told)


@SECRETS
def test_no_bytes_after_the_handshake_end_a_listener(address: str, secret: bytes | None) -> None:
    """Also more of them in a row than a party bears that could choose whom it connects to."""
    with listening("ibsched", address=address, secret=secret) as (listener, _):
        batch = Served(serve_batch, batch_party(), listener)
        for text in SEQUENCES:
            bad, _hello = Connector(listener.address, identity("irtsched", secret), LIMITS).open()
            assert isinstance(bad.receive(), NegotiationStart)
            bad._socket.sendall(text)  # noqa: SLF001 - past its own checks
            bad._socket.shutdown(socket.SHUT_WR)  # noqa: SLF001
            with pytest.raises(PeerLostError):
                bad.receive(30.0)
            bad.close()
            assert batch.is_alive(), text
        connector = Connector(listener.address, identity("irtsched", secret), LIMITS)
        runtime = Served(serve_runtime, runtime_party(), connector)
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    lost = [line for line in batch.told if line.startswith("lost irtsched: ")]
    assert len(lost) == len(SEQUENCES)
    assert all(line.isprintable() and len(line) < 1000 for line in lost)


@pytest.mark.parametrize("party", ["irtsched", "ibsched"])
def test_a_process_bears_garbage_and_prints_no_traceback(party: str, tmp_path: Path) -> None:
    endpoint = next(one for one in ENDPOINTS if one.party == party and one.has_secret)
    workload, generator = small_workload(tmp_path, 1), random.Random(2)
    with process(endpoint, play_in(workload), workload) as listener:
        assert said_before(listener, 25, generator) == said_after(listener, 25, generator) == 25
        listener.negotiate()
        assert "lost " in listener.said()


def test_a_name_too_long_for_a_refusal_is_refused_all_the_same() -> None:
    with listening("irtsched") as (listener, _):
        runtime = Served(serve_runtime, runtime_party(), listener)
        bad, _hello = Connector(listener.address, identity("ibsched"), LIMITS).open()
        bad._socket.sendall(framed(b'{"message":"' + b"x\x7f" * 100_000 + b'"}', 10**6))  # noqa: SLF001
        with pytest.raises(PeerLostError, match=r"the other party refuses: .*\.\.\."):
            bad.receive(30.0)
        bad.close()
        Served(
            serve_batch, batch := batch_party(), Connector(listener.address, identity("ibsched"), LIMITS)
        ).end()
        runtime.end()
    check_done(batch, runtime.party)
    assert all(line.isprintable() and len(line) < 1000 for line in runtime.told)


def test_a_message_that_a_transition_cannot_bear_is_refused_and_changes_nothing() -> None:
    def fails(*happening: object) -> tuple[str, tuple[()]]:
        raise KeyError(happening)

    party = Party("as it was", fails)
    with pytest.raises(ProtocolError, match="it leads nowhere: KeyError"):
        party.take(NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0))
    assert party.state == "as it was"
    assert not party.has_history


def test_who_connects_gives_up_when_all_comes_to_nothing() -> None:
    ends = runtime_party()
    with listening("ibsched", secret=b"s") as (listener, _):

        def greet(_party: object, link: Listener, *_rest: object) -> None:
            with contextlib.suppress(NobodyError):
                while True:
                    link.open(2.0)[0].close()

        other = Served(greet, batch_party(), listener)
        with pytest.raises(NobodyError, match="20 connections in a row came to nothing"):
            serve_runtime(ends, Connector(listener.address, identity("irtsched", b"s"), LIMITS), print)
        other.end()


# Notes.


def test_bad_notes_are_refused_and_never_fatal() -> None:
    good = batch_notes(BatchSettings(ends_when_done=True))
    terms = {"workload": "w"}
    listens = Identity(party="irtsched", terms=terms, notes={}, check_notes=batch_settings_in)
    told: list[str] = []
    listener = Listener(ANYWHERE, listens, LIMITS, told.append)
    met: list[dict[str, str]] = []
    with contextlib.closing(listener):
        runtime = Served(
            lambda party, link, tell: serve_runtime(party, link, tell, lambda hello: met.append(hello.notes)),
            runtime_party(),
            listener,
        )
        for notes, why in (
            ({}, "has not sent its settings"),
            ({"batch": "{"}, "not JSON"),
            ({"batch": '{"depth":1, oops'}, "the notes of ibsched"),
            ({"batch": '{"depth":0}'}, "depth"),
            ({"batch": '{"depth":"\\u001b[2J"}'}, "depth"),
            ({"batch": "[" * 20_000}, "the notes of ibsched"),
            ({**good, "more": "x"}, "unknown note 'more'"),
        ):
            who = Identity(party="ibsched", terms=terms, notes=notes)
            with pytest.raises(RefusedError, match=why):
                Connector(listener.address, who, LIMITS).open()
            assert runtime.is_alive(), notes
        who = Identity(party="ibsched", terms=terms, notes=good)
        batch = Served(serve_batch, batch_party(), Connector(listener.address, who, LIMITS))
        batch.end()
        runtime.end()
    check_done(batch.party, runtime.party)
    assert met == [good]
    assert all(line.isprintable() for line in told)


# RateLimitedLog.


def test_a_log_is_not_filled() -> None:
    told: list[str] = []
    remarks = RateLimitedLog(told.append)
    for number in range(100):
        remarks.add(f"remark {number}")
    assert told == [f"remark {number}" for number in range(20)]
    remarks.flush()
    remarks.flush()
    assert told[20:] == ["80 more remarks of that kind"]
