"""Sequences of bytes that hold no message of a negotiation: random, mutated, once fatal."""

from __future__ import annotations

import random
from collections.abc import Iterator

from aucsched.cluster.errors import InputError
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    Code,
    Message,
    NegotiationStart,
    NegotiationStartResponse,
    RequestResourceOffer,
    ResourceOffer,
    StatusReport,
)
from aucsched.negotiation.transport.framing import decode_message, encode_message, framed
from aucsched.negotiation.transport.handshake import Identity

#: What has ended processes, or could.
_KNOWN = (
    b'{"message":1, oops',
    b'{"message":"REFUSAL", oops',
    b'{"message":"REFUSAL","text":1, oops',
    b'{"message":"HELLO","version":"1", oops',
    b'{"message":"STATUS_REPORT","time_s":"x", oops',
    b'{"message":"STATUS_REPORT","time_s":1,"reports":[{}], oops',
    b'{"message":"\x1b[2J\x07","version":1}',
    b'{"message":"HELLO","version":1,"\\u001b[31m` - at `$.x`":1}',
    b'{"message":"\\ud800","version":1}',
    b'{"message":"HELLO","version":' + b"9" * 5000 + b"}",
    b'{"message":"HELLO","version":1e999999999}',
    b'{"message":"HELLO","version":1,"terms":{"":{}}}',
    b"[" * 30_000,
    b'{"a":' * 10_000,
    b'{"message":"NEGOTIATION_END","text":"' + b"x" * 30_000,
)


def _seeds() -> tuple[bytes, ...]:
    """Return texts to mutate: a hello, and messages of both parties."""
    hello = Identity(party="ibsched", terms={"workload": "w"}, notes={"batch": "{}"}).hello()
    said: tuple[Message, ...] = (
        NegotiationStart(version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0),
        NegotiationStartResponse(
            time_s=1.0, version=PROTOCOL_VERSION, code=Code.ACCEPT, partitions={"": ("n1",)}
        ),
        RequestResourceOffer(jobs=()),
        ResourceOffer(time_s=1.0, negotiation=1, transaction=1, attempt=1, idle=("n1", "n2")),
        StatusReport(time_s=1.0),
    )
    return (hello, *map(encode_message, said))


def sequences(count: int, generator: random.Random) -> Iterator[bytes]:
    """Give sequences of bytes that hold no message: random, mutated, and those that once ended processes."""
    seeds = _seeds()
    for number in range(count):
        if number < len(_KNOWN):
            yield framed(_KNOWN[number], 10**6)
            continue
        match generator.randrange(4):
            case 0:
                yield generator.randbytes(generator.randint(0, 400))
            case 1:
                yield framed(generator.randbytes(generator.randint(1, 400)), 400)
            case _:
                yield framed(_mutated(generator.choice(seeds), generator), 10**6)


def _mutated(text: bytes, generator: random.Random) -> bytes:
    """Return a text with bytes changed, cut out or repeated, that is no message any more."""
    changed = bytearray(text)
    for _ in range(generator.randint(1, 6)):
        place = generator.randrange(len(changed))
        match generator.randrange(4):
            case 0:
                changed[place] = generator.randrange(256)
            case 1:
                changed[place:place] = generator.choice(
                    [b'"', b"{", b"[", b"1e999", b"null", b", oops", b"\x00"]
                )
            case 2:
                changed[place:place] = changed[place : place + generator.randint(1, 20)]
            case _:
                del changed[place : place + generator.randint(1, 20)]
        changed = changed or bytearray(b"{")
    try:
        decode_message(bytes(changed))
    except InputError:
        return bytes(changed)
    return b"oops " + bytes(changed)


def garbage(generator: random.Random) -> bytes:
    """Return what a stranger says first; one of four says what takes the longest to decode."""
    if generator.random() < 0.25:
        return framed(_slowest(generator), 2**16)
    text = generator.randbytes(generator.randint(1, 200))
    return framed(text, 200) if generator.random() < 0.5 else text


def _slowest(generator: random.Random) -> bytes:
    """Return what takes long to decode: a list of many objects, or a hello with many terms."""
    if generator.random() < 0.5:
        return b'{"message":"HELLO","version":1,"x":[' + b'{"a":1},' * 8000 + b"1]}"
    return crowded_hello()


def crowded_hello() -> bytes:
    """Return a hello of 60 kB, in thousands of terms."""
    terms = {str(number): "x" for number in range(5000)}
    return Identity(party="ibsched", terms=terms, notes={}).hello()
