"""Who connects to whom: addresses, strangers, secrets, those who stay away."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.parties import (
    LIMITS,
    Served,
    batch_party,
    check_done,
    identity,
    listening,
    runtime_party,
)

from aucsched.cluster.errors import NobodyError, OptionError
from aucsched.negotiation.transport.framing import framed
from aucsched.negotiation.transport.handshake import Identity, RefusedError
from aucsched.negotiation.transport.link import Connector, LinkLimits, PartyAddress, address_of
from aucsched.negotiation.transport.listener import Listener
from aucsched.negotiation.transport.serve import serve_batch, serve_runtime


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
    with pytest.raises(OptionError, match="the file is not a socket"):
        Listener(PartyAddress(path=str(path)), identity("irtsched"), LIMITS, print)
    assert path.read_text() == "a file"


def test_addresses() -> None:
    assert address_of("unix:s") == PartyAddress(path="s") == address_of("unix:s")
    assert address_of("/run/s") == PartyAddress(path="/run/s")
    assert address_of("localhost:7000") == PartyAddress(host="localhost", port=7000)
    assert address_of("[::1]:0") == PartyAddress(host="::1", port=0)
    assert str(address_of("[::1]:7")) == "[::1]:7"
    for wrong in ("", "unix:", "7000", "host:", ":7000", "host:70000", "host:-1", "host:x"):
        with pytest.raises(OptionError):
            address_of(wrong)


def test_only_this_machine_may_connect_without_a_secret() -> None:
    with pytest.raises(OptionError, match=r"other machines can reach 0\.0\.0\.0:0"):
        Listener(address_of("0.0.0.0:0"), identity("irtsched"), LIMITS, print)
    Listener(address_of("0.0.0.0:0"), identity("irtsched", b"s"), LIMITS, print).close()


# Strangers.


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "above the limit"),
        ((2**31).to_bytes(4), "a frame of 2147483648 bytes is above the limit of 65536"),
        (framed(b"\x00\xff garbage", 100), "not a hello of aucsched"),
        (framed(b'{"message":"HELLO","version":7}', 100), "version 7 is not 1"),
        (framed(b"[" * 60_000, 65536), "not a hello of aucsched"),
        (b"\x00\x00", "no message came within 0.3 s"),
        (b"", "no message came within 0.3 s"),
    ],
)
def test_a_stranger_is_told_why_and_the_listener_goes_on(first: bytes, why: str) -> None:
    limits = LinkLimits(timeout_s=0.3, wait_s=20.0)
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
