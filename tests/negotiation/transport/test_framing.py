"""Frames, hellos and messages from anybody: cut anywhere, too long, garbage, of another version."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.negotiation.messages import PROTOCOL_VERSION
from aucsched.negotiation.transport.framing import (
    Frames,
    FramingError,
    decode_message,
    encode_message,
    framed,
)
from aucsched.negotiation.transport.handshake import Hello, Identity, PartyName, Proof, RefusedError


def read_all(frames: Frames) -> list[bytes]:
    """Return the payloads that are whole."""
    return list(iter(frames.next, None))


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8), st.lists(st.integers(0, 2500), max_size=12))
def test_frames_cut_anywhere_give_the_payloads(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(framed(payload, 300) for payload in payloads)
    frames, found = Frames(300), []
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    for begin, end in pairwise(places):
        frames.feed(stream[begin:end])
        found += read_all(frames)
    assert found == payloads
    assert not frames.is_inside


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_payloads_within_the_limit_or_refused(text: bytes) -> None:
    frames = Frames(50)
    frames.feed(text)
    try:
        payloads = read_all(frames)
    except FramingError:
        return
    assert all(1 <= len(payload) <= 50 for payload in payloads)
    # What is left is the beginning of one frame that may come.
    assert sum(4 + len(payload) for payload in payloads) <= len(text)


def test_a_length_above_the_limit_is_refused_before_its_payload_comes() -> None:
    frames = Frames(50)
    frames.feed((51).to_bytes(4))
    with pytest.raises(FramingError, match="a frame of 51 bytes is above the limit of 50"):
        frames.next()
    with pytest.raises(FramingError, match="above the limit"):
        framed(b"x" * 51, 50)
    with pytest.raises(FramingError, match="empty"):
        framed(b"", 50)
    assert framed(b"x" * 50, 50)[:4] == (50).to_bytes(4)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KINDS = st.sampled_from(
    ["RESOURCE_OFFER", "RESPONSE_RESOURCE_OFFER", "STATUS_REPORT", "URGENT_JOB", "NEGOTIATION_START", "HELLO"]
)


@settings(deadline=None)
@given(
    st.binary(max_size=80)
    | _JSON.map(lambda value: json.dumps(value).encode())
    | st.tuples(_KINDS, st.dictionaries(st.text(max_size=8), _JSON, max_size=4)).map(
        lambda pair: json.dumps({**pair[1], "message": pair[0]}).encode()
    )
)
@example(b"[" * 100_000)
@example(b'{"message":"STATUS_REPORT","x":' + b"[" * 100_000)
@example(b'{"x":' + b'{"x":' * 100_000)
@example(b'{"message":"NEGOTIATION_START","version":1e400,"max_attempts":1,"interval_s":1}')
@example(b'{"message":"NEGOTIATION_START","version":1,"max_attempts":' + b"9" * 5000 + b',"interval_s":1}')
@example(b"\xff\xfe{}")
def test_any_payload_is_a_message_or_refused(text: bytes) -> None:
    try:
        message = decode_message(text)
    except InputError as error:
        refused = str(error)
    else:
        assert decode_message(encode_message(message)) == message
        return
    assert 0 < len(refused) < 500
    assert "\n" not in refused


# Hellos.


def identity(party: PartyName, secret: bytes | None = None, **terms: str) -> Identity:
    return Identity(party=party, terms=terms, notes={}, secret=secret)


def test_each_proves_the_secret_to_the_other() -> None:
    batch, runtime = identity("ibsched", b"s"), identity("irtsched", b"s")
    mine, theirs = batch.hello(), runtime.hello()
    runtime.check_proof(batch.proof(mine, theirs), runtime.met(mine), theirs, mine)
    batch.check_proof(runtime.proof(theirs, mine), batch.met(theirs), mine, theirs)
    assert b'"s"' not in mine + theirs
    assert "s'" not in repr(batch)


def test_a_proof_is_good_for_its_party_and_connection_only() -> None:
    batch, runtime = identity("ibsched", b"s"), identity("irtsched", b"s")
    mine, theirs = batch.hello(), runtime.hello()
    proof = batch.proof(mine, theirs)
    wrong = identity("ibsched", b"other").proof(mine, theirs)
    for said, own, hello in (
        (wrong, theirs, mine),  # another secret
        (runtime.proof(theirs, mine), theirs, mine),  # its own, sent back
        (proof, runtime.hello(), mine),  # heard on another connection
        (proof, theirs, batch.hello()),
        (msgspec.json.encode(Proof(digest="")), theirs, mine),
        (b"{}", theirs, mine),
    ):
        with pytest.raises(RefusedError):
            runtime.check_proof(said, runtime.met(hello), own, hello)


def test_a_hello_that_cannot_be_met_is_refused_by_name() -> None:
    runtime = identity("irtsched", workload="a")
    plain = msgspec.json.decode(identity("ibsched", workload="a").hello(), type=Hello)
    assert runtime.met(msgspec.json.encode(plain)) == plain
    for change, why in (
        ({"version": PROTOCOL_VERSION + 1}, "version 2 is not 1"),
        ({"party": "irtsched"}, "both parties are irtsched"),
        ({"has_secret": True}, "ibsched asks for a shared secret, and irtsched has none"),
        ({"terms": {"workload": "b"}}, "workload: irtsched has a, ibsched has b"),
        ({"terms": {}}, "workload: irtsched has a, ibsched has none"),
        ({"nonce": "00"}, "a nonce of 2 digits"),
    ):
        with pytest.raises(RefusedError, match=why):
            runtime.met(msgspec.json.encode(msgspec.structs.replace(plain, **change)))
    with pytest.raises(RefusedError, match="irtsched asks for a shared secret, and ibsched has none"):
        identity("irtsched", b"s", workload="a").met(msgspec.json.encode(plain))


def test_another_version_is_named_also_where_its_hello_has_other_members() -> None:
    with pytest.raises(RefusedError, match="version 9 is not 1"):
        identity("irtsched").met(b'{"message":"HELLO","version":9,"party":{"kind":"new"},"extra":[1]}')
    with pytest.raises(RefusedError, match="not a hello"):
        identity("irtsched").met(b"GET / HTTP/1.1")
