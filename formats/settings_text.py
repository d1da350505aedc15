"""Configuration in: TOML's tables and YAML's documents, of texts, numbers and lists, and not deep.

A YAML alias means what it names, and so on: a file of a kilobyte can mean a billion entries. Values
are built from the parser's events one by one, so that such a file is refused at its first alias.
"""

import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, time
from math import isfinite
from typing import Any

import yaml

from ..cluster.errors import InputError
from .jsontext import values_in
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
        InputError: it is no TOML, too large or too deep, or a number is none that an option takes;
            the path or the line says where.
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
    for path, value in values_in(tables, _MOST_LEVELS):
        _check(value, path)
    return tables


def _line(content: bytes, found: re.Match[bytes]) -> str:
    line = content.count(b"\n", 0, found.end()) + 1
    return f"line {line}"


def _check(value: Any, path: str) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{value} is not a finite number", path=path)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"an integer is beyond {_LARGEST}", path=path)
    if isinstance(value, (date, datetime, time)):
        raise InputError(f"{value} is a date or a time: write it as a text", path=path)


#: Beyond this no configuration file is one: the reader would take minutes over it.
_LONGEST = 16_000_000
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"!", "str", "int", "float", "bool", "null", "seq", "map"}
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


def yaml_value(text: str) -> Any:
    """Return the document in a text: lists, dicts, texts, true, false, None; numbers stay texts.

    Raises:
        InputError: no YAML, too long, too deep, an alias, a key that is no text or is listed twice.
    """
    if len(text) > _LONGEST:
        raise InputError(f"{len(text)} characters are above the limit of {_LONGEST}")
    value, is_second = None, False
    try:
        events = iter(yaml.parse(text, Loader=_LOADER))
        for event in events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if is_second:
                raise InputError("a second document begins", path=_yaml_line(event))
            value, is_second = _built(next(events), events, 0), True
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())[:200]}") from error
    return value


def _built(event: yaml.Event, events: Iterator[yaml.Event], level: int) -> Any:
    """Return the value that begins with an event; the parser's next ones follow."""
    if isinstance(event, yaml.AliasEvent):
        raise InputError(f"the alias *{event.anchor[:60]} is not read", path=_yaml_line(event))
    tag = getattr(event, "tag", None)
    if tag is not None and tag.removeprefix(_STANDARD) not in _TAGS:
        raise InputError(f"not YAML: the tag {tag[:60]!r} is not known")
    if isinstance(event, yaml.ScalarEvent):
        is_plain = event.style in (None, "") and tag is None
        return _WORDS.get(event.value, event.value) if is_plain else event.value
    if level >= _MOST_LEVELS:
        raise InputError(f"it is more than {_MOST_LEVELS} levels deep", path=_yaml_line(event))
    if isinstance(event, yaml.SequenceStartEvent):
        return [_built(item, events, level + 1) for item in _until(yaml.SequenceEndEvent, events)]
    found: dict[str, Any] = {}
    for begin in _until(yaml.MappingEndEvent, events):
        # A word such as null is a text where it is a key.
        value = _built(begin, events, level + 1)
        key = begin.value if isinstance(begin, yaml.ScalarEvent) else value
        if not isinstance(key, str):
            raise InputError("a key is a list or a mapping", path=_yaml_line(begin))
        if key in found:
            raise InputError(f"the member {key[:60]!r} is listed twice", path=_yaml_line(begin))
        found[key] = _built(next(events), events, level + 1)
    return found


def _until(end: type[yaml.Event], events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield the events up to an end; who takes them takes those of inner values."""
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _yaml_line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}"
