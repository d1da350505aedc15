"""Messages as bytes and back: frames of JSON, checked before anybody acts on them.

A frame is the number of bytes that follow (four bytes, the most significant first), and those bytes
of JSON. What comes from outside is decoded or refused, and at most one line of it is shown.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import TypeVar, cast

import msgspec

from ...cluster.errors import AucschedError, InputError
from ...formats.jsontext import decode
from ..message_rules import check
from ..messages import Message

_LENGTH = Struct(">I")
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
    """Cuts a stream of bytes into payloads; refuses a too long one by its length, before it comes.

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
    """Return a text, which may hold names from outside: short, with control characters escaped."""
    # Cut before as well: a message may be megabytes long.
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn any error in a peer's bytes into an InputError of a line: none may end the process."""
    try:
        yield
    except InputError as error:
        raise InputError(one_line(error.message), path=one_line(error.path)) from error
    except Exception as error:
        raise InputError(one_line(f"not JSON: {error or type(error).__name__}")) from error


def decoded(text: bytes, as_type: type[T]) -> T:
    """Return what an unauthenticated peer has sent, decoded.

    Raises:
        InputError: it cannot be decoded, whatever the reason. A text that does not look right is
            refused without the work of explaining it.
    """
    try:
        msgspec.json.decode(text, type=as_type)
    except Exception as error:
        raise InputError(one_line(str(error) or type(error).__name__)) from error
    with in_one_line():
        return decode(text, as_type)


_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode_message(message: Message) -> bytes:
    """Return a message's JSON: one object, its ``message`` member names its kind."""
    return _ENCODER.encode(message)


def decode_message(text: bytes) -> Message:
    """Return the message in a JSON text.

    Raises:
        InputError: it is no JSON, no message, or a value cannot be; names the path and the value.
    """
    with in_one_line():
        message = cast("Message", decode(text, cast("type[object]", Message)))
        check(message)
    return message
