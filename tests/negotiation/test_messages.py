"""Messages on the wire: there and back, and what no party may say."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from support.negotiation import malleable, rigid

from aucsched.cluster.errors import InputError
from aucsched.negotiation.job_records import JobReport, JobState, OfferReservation
from aucsched.negotiation.messages import (
    PROTOCOL_VERSION,
    Code,
    Message,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
    UrgentJob,
    UrgentJobResponse,
)
from aucsched.negotiation.transport.framing import decode_message, encode_message

_REPORT = JobReport(
    job="A1", state=JobState.RUNNING, node_count=1, nodes=("n1",), start_s=0.1, run_time_s=0.2, end_s=257.1
)
_OFFER = ResourceOffer(
    time_s=12.345678,
    negotiation=1,
    transaction=3,
    attempt=2,
    idle=("n1", "n2"),
    reservations=(
        OfferReservation(job="A1", node_count=1, nodes=("n3",), start_s=12.345678, end_s=20.0),
        OfferReservation(job="B1", node_count=0, start_s=20.0, end_s=30.5),
    ),
    code=Code.REJECT,
    text="only one of the jobs would start",
)
_MAP = ResponseResourceOffer(
    transaction=3,
    attempt=2,
    code=Code.ACCEPT,
    map=(rigid("A1", 1, 257.0), malleable("B1", 2, 8, 100.0, speedup="amdahl:0.05")),
    atomic=True,
    queued=7,
    next_arrival_s=30.0,
)
#: One of each kind of figure 4.2.
EVERY: dict[str, Message] = {
    "NEGOTIATION_START": NegotiationStart(
        version=PROTOCOL_VERSION, max_attempts=5, interval_s=60.0, queued=50
    ),
    "RESPONSE_NEGOTIATION_START": NegotiationStartResponse(
        time_s=0.0, version=PROTOCOL_VERSION, code=Code.ACCEPT, partitions={"": ("n1", "n2")}
    ),
    "REQUEST_RESOURCE_OFFER": RequestResourceOffer(jobs=(rigid("A1", 1, 257.0),), queued=1),
    "RESOURCE_OFFER": _OFFER,
    "RESPONSE_RESOURCE_OFFER": _MAP,
    "STATUS_REPORT": StatusReport(time_s=1.5, reports=(_REPORT,), complete=True),
    "URGENT_JOB": UrgentJob(job=rigid("Z1", 16, 100.0), queued=3, more=True),
    "RESPONSE_URGENT_JOB": UrgentJobResponse(
        time_s=2.0, job="Z1", code=Code.ACCEPT, nodes=("n1",), suspended=("A1",)
    ),
    "NEGOTIATION_END": NegotiationEnd("all jobs are done"),
    "RESPONSE_NEGOTIATION_END": NegotiationEndResponse(),
}


@pytest.mark.parametrize("kind", EVERY)
def test_a_message_comes_back_as_it_was_sent(kind: str) -> None:
    """Nagendra: data structures (6.2), APIs (6.3)."""
    text = encode_message(EVERY[kind])
    assert json.loads(text)["message"] == kind
    assert decode_message(text) == EVERY[kind]
    assert encode_message(decode_message(text)) == text


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        _OFFER.attempt = 3  # type: ignore[misc]


def _changed(kind: str, **members: Any) -> bytes:
    return json.dumps({**json.loads(encode_message(EVERY[kind])), **members}).encode()


def _entry(**members: Any) -> list[dict[str, Any]]:
    return [{**json.loads(encode_message(EVERY["RESPONSE_RESOURCE_OFFER"]))["map"][1], **members}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"[1", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"{}", "the member 'message' is missing"),
        (b'{"message": "HELLO"}', "HELLO"),
        (_changed("RESOURCE_OFFER", time_s=-1), "time_s: -1 is not a time of at least 0"),
        (_changed("RESOURCE_OFFER", time_s="soon"), 'time_s: "soon" is not a number'),
        (_changed("RESOURCE_OFFER", colour="red"), "unknown member 'colour'"),
        (_changed("RESOURCE_OFFER", negotiation=2), "negotiation: 2 is neither 0 nor 1"),
        (_changed("RESOURCE_OFFER", transaction=0), "transaction: 0 is not from 1"),
        (_changed("RESOURCE_OFFER", idle=["n1", "n1"]), "idle: 'n1' is listed twice"),
        (_changed("RESOURCE_OFFER", idle=["n3"]), "idle: 'n3' is listed twice"),
        (_changed("RESPONSE_RESOURCE_OFFER", map=_entry() * 2), "map: 'B1' is listed twice"),
        (
            _changed("RESPONSE_RESOURCE_OFFER", map=_entry(node_cnt=9)),
            "map[0].node_cnt: 9 is not within [2, 8]",
        ),
        (
            _changed("RESPONSE_RESOURCE_OFFER", map=_entry(node_count={"min": 1, "max": 8})),
            "map[0].node_count",
        ),
        (
            _changed("RESPONSE_RESOURCE_OFFER", map=_entry(node_cnt=2, nodes=["a"])),
            "map[0].nodes: 1 nodes are not",
        ),
        (
            _changed("RESPONSE_RESOURCE_OFFER", map=_entry(speedup="magic")),
            "map[0].speedup: 'magic' is none of",
        ),
        (
            _changed("RESPONSE_RESOURCE_OFFER", map=_entry(time_at_min_s=0)),
            "map[0].time_at_min_s: 0 is not a time",
        ),
        (_changed("RESPONSE_RESOURCE_OFFER", map=_entry(priority=-1)), "map[0].priority: -1 is below 0"),
        (_changed("RESPONSE_RESOURCE_OFFER", queued=-1), "queued: -1 is not from 0"),
        (_changed("NEGOTIATION_START", max_attempts=0), "max_attempts: 0 is not from 1"),
        (_changed("NEGOTIATION_START", interval_s=0), "interval_s: 0 is not a time of at least 1 s"),
        (_changed("NEGOTIATION_START", interval_s=1e-9), "interval_s: 1e-09 is not a time of at least 1 s"),
    ],
)
def test_what_no_party_may_say_is_refused_in_one_line(text: bytes, said: str) -> None:
    """Nagendra: figure 4.2 messages."""
    with pytest.raises(InputError) as refused:
        decode_message(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_encoded_float_keeps_every_bit() -> None:
    third = 1 / 3
    again = decode_message(encode_message(msgspec.structs.replace(_OFFER, time_s=third)))
    assert isinstance(again, ResourceOffer)
    assert again.time_s == third
