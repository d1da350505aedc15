"""Frames: how many bytes follow (four bytes, the most significant first), then that many bytes of JSON."""

from __future__ import annotations

from struct import Struct

from ...cluster.errors import AucschedError

_LENGTH = Struct(">I")
#: The largest payload that a length can state.
LARGEST_BYTES = 2**32 - 1
#: Largest payload of a message, by default.
MESSAGE_BYTES = 16 * 2**20
#: Largest payload from somebody who has yet to say who he is.
UNAUTHENTICATED_BYTES = 64 * 2**10


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
