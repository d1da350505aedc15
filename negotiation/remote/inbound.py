"""What comes from outside: decoded or refused, and never more than one line to show of it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ...cluster.errors import InputError
from ...formats.jsontext import decode

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
