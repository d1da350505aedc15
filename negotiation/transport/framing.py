"""Messages as bytes and back: frames of JSON, checked before anybody acts on them.

A frame says how many bytes follow (four bytes, the most significant first), then come that many bytes of
JSON. What comes from outside is decoded or refused, and never more than one line of it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from struct import Struct
from typing import TypeVar, cast

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import AucschedError, InputError
from ...formats.jsontext import decode
from ..messages import (
    DynRelease,
    DynRequest,
    DynResponse,
    DynStatus,
    JobReport,
    MapEntry,
    Message,
    NegotiationStart,
    NegotiationStartResponse,
    OfferReservation,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
    UrgentJob,
    UrgentJobResponse,
)
from ..runtime.settings import LEAST_INTERVAL_S
from ..runtime.speedup import curve

_LENGTH = Struct(">I")
#: The largest payload that a length can state.
LARGEST_BYTES = 2**32 - 1
#: Largest payload of a message, by default.
MESSAGE_BYTES = 16 * 2**20
#: Largest payload from somebody who has yet to say who he is.
UNAUTHENTICATED_BYTES = 64 * 2**10


class PeerLostError(AucschedError):
    """The other party is gone, stalled, or said what no party may say; the negotiation is void."""


class FramingError(AucschedError):
    """What comes in is no frame that may come."""


def framed(payload: bytes, limit: int) -> bytes:
    """Return a payload as a frame.

    Raises:
        FramingError: it is empty or longer than ``limit`` bytes.
    """
    _check(len(payload), limit)
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Cuts a stream of bytes into payloads; never holds more than one payload that is too long to come.

    Attributes:
        limit: longest payload, in bytes; it may be changed between payloads.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._bytes = bytearray()

    @property
    def is_inside(self) -> bool:
        """Whether a frame has begun and is not whole."""
        return bool(self._bytes)

    def feed(self, received: bytes) -> None:
        """Take bytes as they came."""
        self._bytes += received

    def next(self) -> bytes | None:
        """Return the next payload, None while it is not whole.

        Raises:
            FramingError: its length is 0 or above the limit; known before the payload has come.
        """
        if len(self._bytes) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes)
        _check(length, self.limit)
        end = _LENGTH.size + length
        if len(self._bytes) < end:
            return None
        payload = bytes(self._bytes[_LENGTH.size : end])
        del self._bytes[:end]
        return payload


def _check(length: int, limit: int) -> None:
    if not length:
        raise FramingError("a frame is empty")
    if length > limit:
        raise FramingError(f"a frame of {length} bytes is above the limit of {limit}")


T = TypeVar("T")

#: The longest text from outside that is shown or sent back, in characters.
_SHOWN = 240


def one_line(text: str) -> str:
    """Return a text that names from outside may stand in: short, its control characters written out."""
    # Cut before as well: a message may be megabytes long.
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def glanced(text: bytes, as_type: type[T]) -> T:
    """Return what came, if it looks right: a text that is not is refused without the work of explaining it.

    Raises:
        InputError: it cannot be decoded. Members that stand twice are not looked for: ``decoded`` does that.
    """
    try:
        return msgspec.json.decode(text, type=as_type)
    except Exception as error:
        raise InputError(one_line(str(error) or type(error).__name__)) from error


def decoded(text: bytes, as_type: type[T]) -> T:
    """Return what came, decoded.

    Raises:
        InputError: it cannot be decoded, whatever the reason: no bytes of a peer may end the process.
    """
    try:
        return decode(text, as_type)
    except InputError as error:
        raise InputError(one_line(error.message), path=one_line(error.path)) from error
    except Exception as error:
        raise InputError(one_line(f"not JSON: {error or type(error).__name__}")) from error


_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode_message(message: Message) -> bytes:
    """Return a message's JSON: one object, its ``message`` member names its kind."""
    return _ENCODER.encode(message)


def decode_message(text: bytes) -> Message:
    """Return the message in a JSON text.

    Raises:
        InputError: it is no JSON, no message, or a value cannot be; names the path and the value.
    """
    message = cast("Message", decoded(text, cast("type[object]", Message)))
    try:
        check_message(message)
    except InputError as error:
        raise InputError(one_line(error.message), path=one_line(error.path)) from error
    return message


def check_message(message: Message) -> None:  # noqa: C901, PLR0912 - one case a kind
    """Refuse counts, ranges and times that no party may say.

    Raises:
        InputError: names the path and the value.
    """
    if isinstance(message, DynRequest | DynRelease | DynStatus | DynResponse):
        _dynamic(message)
        return
    match message:
        case NegotiationStart():
            _within(message.max_attempts, 1, "max_attempts")
            if not (isfinite(message.interval_s) and message.interval_s >= LEAST_INTERVAL_S):
                least = f"{LEAST_INTERVAL_S:g}"
                raise InputError(f"{message.interval_s:g} is not a time from {least} s on", path="interval_s")
        case RequestResourceOffer():
            _entries(message.jobs, "jobs")
        case ResponseResourceOffer():
            _within(message.transaction, 1, "transaction")
            _within(message.attempt, 1, "attempt")
            _entries(message.map, "map")
        case UrgentJob():
            _entries((message.job,), "job")
        case ResourceOffer():
            _offer(message)
        case StatusReport():
            for place, report in enumerate(message.reports):
                _report(report, f"reports[{place}]")
            _unique((report.job for report in message.reports), "reports")
        case NegotiationStartResponse():
            for name, nodes in message.partitions.items():
                _unique(nodes, f"partitions.{name}")
        case UrgentJobResponse():
            _unique(message.nodes, "nodes")
        case _:
            return
    _times(message)


def _dynamic(message: DynRequest | DynRelease | DynStatus | DynResponse) -> None:
    """Check what an application says, or hears."""
    _unique((message.job,), "job")
    match message:
        case DynRequest():
            _request(message)
        case DynRelease():
            _within(message.serial, 1, "serial")
            _cores(message.nodes, "nodes")
        case DynResponse():
            _within(message.serial, 0, "serial")
            _cores(message.nodes, "nodes")
            _cores(message.held, "held")
            _times(message)
        case _:
            return


def _request(message: DynRequest) -> None:
    _within(message.serial, 1, "serial")
    for name in ("cores", "nodes", "cores_per_node"):
        value = getattr(message, name)
        if value is not None:
            _within(value, 1, name)
    if (message.cores is None) == (message.nodes is None):
        raise InputError("either cores or nodes are asked for", path="cores")
    if (message.nodes is None) != (message.cores_per_node is None):
        raise InputError("nodes and cores_per_node need each other", path="cores_per_node")
    if not (isfinite(message.timeout_s) and message.timeout_s >= 0):
        raise InputError(f"{message.timeout_s:g} is no time from 0 on", path="timeout_s")


def _cores(nodes: dict[str, int], path: str) -> None:
    _unique(nodes, path)
    for name, count in nodes.items():
        _within(count, 1, f"{path}.{name}")


def _times(message: Message) -> None:
    for name in ("time_s", "next_arrival_s", "next_urgent_s", "earliest_s"):
        value = getattr(message, name, None)
        if value is not None and not (isfinite(value) and value >= 0):
            raise InputError(f"{value:g} is no time from 0 on", path=name)
    _within(getattr(message, "queued", 0), 0, "queued")


def _within(value: int, least: int, path: str) -> None:
    if not least <= value <= LARGEST_COUNT:
        raise InputError(f"{value} is not from {least} to {LARGEST_COUNT}", path=path)


def _unique(names: Iterable[str], path: str) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise InputError("a name is empty", path=path)
        if name in seen:
            raise InputError(f"{name!r} stands there twice", path=path)
        seen.add(name)


def _entries(entries: tuple[MapEntry, ...], path: str) -> None:
    """Check a Map: its entries, no job twice, no node twice."""
    for place, entry in enumerate(entries):
        check_entry(entry, f"{path}[{place}]")
    _unique((entry.job for entry in entries), path)
    _unique((node for entry in entries for node in entry.nodes), path)


def check_entry(entry: MapEntry, path: str) -> None:
    """Raise InputError where an entry says what cannot be; ``path`` is where it stands."""
    _within(entry.min_nodes, 1, f"{path}.min_nodes")
    _within(entry.max_nodes, entry.min_nodes, f"{path}.max_nodes")
    low, high = entry.node_count.min, entry.node_count.max
    if not entry.min_nodes <= low <= high <= entry.max_nodes:
        message = f"[{low}, {high}] is no range within [{entry.min_nodes}, {entry.max_nodes}]"
        raise InputError(message, path=f"{path}.node_count")
    if entry.node_cnt and not entry.min_nodes <= entry.node_cnt <= entry.max_nodes:
        raise InputError(
            f"{entry.node_cnt} is not within [{entry.min_nodes}, {entry.max_nodes}]", path=f"{path}.node_cnt"
        )
    if entry.nodes and len(entry.nodes) != entry.node_cnt:
        raise InputError(f"{len(entry.nodes)} nodes are not node_cnt {entry.node_cnt}", path=f"{path}.nodes")
    for name in ("time_at_min_s", "true_time_at_min_s"):
        value = getattr(entry, name)
        if value is not None and not (isfinite(value) and value > 0):
            raise InputError(f"{value:g} is no time above 0", path=f"{path}.{name}")
    part, whole = entry.node_share
    if not 0 < part <= whole <= LARGEST_COUNT:
        raise InputError(f"{part} of {whole} is no share of a node", path=f"{path}.node_share")
    if entry.parts:
        raise InputError("it is no message's", path=f"{path}.parts")
    if entry.priority < 0:
        raise InputError(f"{entry.priority} is below 0", path=f"{path}.priority")
    try:
        curve(entry.speedup)
    except InputError as error:
        raise error.under(path) from error


def _offer(offer: ResourceOffer) -> None:
    _within(offer.transaction, 1, "transaction")
    _within(offer.attempt, 1, "attempt")
    if offer.negotiation not in {0, 1}:
        raise InputError(f"{offer.negotiation} is neither 0 nor 1", path="negotiation")
    for place, reservation in enumerate(offer.reservations):
        _reservation(reservation, f"reservations[{place}]")
    _unique((reservation.job for reservation in offer.reservations), "reservations")
    held = (node for reservation in offer.reservations for node in reservation.nodes)
    _unique((*offer.idle, *held), "idle")


def _reservation(reservation: OfferReservation, path: str) -> None:
    _within(reservation.node_count, 0, f"{path}.node_count")
    if len(reservation.nodes) != reservation.node_count:
        message = f"{len(reservation.nodes)} nodes are not node_count {reservation.node_count}"
        raise InputError(message, path=f"{path}.nodes")
    if not (isfinite(reservation.start_s) and reservation.end_s >= reservation.start_s):
        raise InputError(f"[{reservation.start_s:g}, {reservation.end_s:g}] is no time span", path=path)


def _report(report: JobReport, path: str) -> None:
    _within(report.node_count, 0, f"{path}.node_count")
    for name in ("start_s", "run_time_s", "end_s", "node_s", "lost_node_s"):
        value = getattr(report, name)
        if not (isfinite(value) and value >= 0):
            raise InputError(f"{value:g} is not from 0 on", path=f"{path}.{name}")
    _unique(report.nodes, f"{path}.nodes")
