"""TOML in: tables of texts, finite numbers and lists, no deeper than a configuration."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, time
from math import isfinite
from typing import Any

from ..cluster.errors import InputError
from .reading import text_of

#: More than any configuration holds; the parser is plain Python.
_MOST_BYTES = 2**20
_MOST_LEVELS = 20
#: Larger integers are no option's.
_LARGEST = 2**64
#: The parser's time is the square of a name's parts.
_PART = rb"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(
    rb"(?:^|[{,\[])[ \t]*+%b(?:[ \t]*+\.[ \t]*+%b){%d}" % (_PART, _PART, _MOST_LEVELS), re.MULTILINE
)
_LONG_NUMBER = re.compile(rb"[0-9_]{4300,}")


def toml_tables(content: bytes) -> dict[str, Any]:
    """Return a TOML file's tables.

    Raises:
        InputError: it is no TOML, too large or too deep, or a number is none that an option takes; the path
            or the line says where.
    """
    if len(content) > _MOST_BYTES:
        raise InputError(f"not TOML of options: it holds more than {_MOST_BYTES} bytes")
    if found := _LONG_NAME.search(content):
        raise InputError(f"it is more than {_MOST_LEVELS} levels deep", path=_line(content, found))
    try:
        tables = tomllib.loads(text_of(content))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}") from error
    except RecursionError as error:
        raise InputError(f"it is more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:  # Python reads no integer of so many digits
        found = _LONG_NUMBER.search(content)
        path = _line(content, found) if found else ""
        raise InputError(f"an integer is beyond {_LARGEST}", path=path) from error
    for path, value in _values(tables):
        _check(value, path)
    return tables


def _line(content: bytes, found: re.Match[bytes]) -> str:
    line = content.count(b"\n", 0, found.end()) + 1
    return f"line {line}"


def _values(tables: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value with its path; lists and tables of them are walked without recursion."""
    waiting: list[tuple[str, Any, int]] = [("", tables, 0)]
    while waiting:
        path, value, level = waiting.pop()
        if level > _MOST_LEVELS:
            raise InputError(f"it is more than {_MOST_LEVELS} levels deep", path=path)
        if isinstance(value, dict):
            prefix = f"{path}." if path else ""
            waiting += ((f"{prefix}{name}", below, level + 1) for name, below in value.items())
        elif isinstance(value, list):
            waiting += ((f"{path}[{place}]", below, level + 1) for place, below in enumerate(value))
        else:
            yield path, value


def _check(value: Any, path: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{value} is not a finite number", path=path)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"an integer is beyond {_LARGEST}", path=path)
    if isinstance(value, (date, datetime, time)):
        raise InputError(f"{value} is a date or a time: write it as a text", path=path)
