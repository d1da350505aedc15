"""JSON in: decoded strictly, every refusal one line that names the path and the value."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from ..cluster.errors import InputError

T = TypeVar("T")

_TYPE_NAMES = {
    "int": "an integer",
    "str": "a text",
    "bool": "true or false",
    "float": "a number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_AT = re.compile(r" - at `(?:key in )?`?\$?(?P<path>[^`]*)`?$")
_GOT = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<length> of length \d+)?(?:, got `(?P<got>[^`]+)`)?")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|\.?([^.\[\]]+)")


def decode(text: bytes, as_type: type[T]) -> T:
    """Return ``text`` decoded as ``as_type``; untyped fractions become Decimal, exactly as written.

    Raises:
        InputError: it is no JSON, holds NaN or an infinity, names a member twice, or a member is
            missing, unknown or of another type; the path says where.
    """
    try:
        _refuse_repeats(text)
        return msgspec.json.Decoder(as_type, float_hook=Decimal).decode(text)
    except msgspec.ValidationError as error:
        raise _refused(error, text) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(text, error) from error


def _refused(error: msgspec.ValidationError, text: bytes) -> InputError:
    try:
        return _explained(str(error), text)
    except (ValueError, RecursionError) as worse:
        # Behind the wrong type the text is no JSON, or lists in lists in lists that nobody reads to their
        # ground: the decoder stopped before it came there.
        return _malformed(text, worse)


class _RepeatError(ValueError):
    """A member stands twice in one object."""


def _refuse_repeats(text: bytes) -> None:
    """Refuse an object with a member twice: every decoder would drop one of them in silence."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _RepeatError as error:
        raise InputError(f"the member {error.args[0]!r} stands twice in one object") from error
    except (ValueError, RecursionError):
        return  # not JSON: the caller's decoder says so


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _RepeatError(name)
            seen.add(name)
    return members


def _malformed(text: bytes, error: Exception) -> InputError:
    """Explain text that is no JSON; NaN and infinities, which many writers emit, are named in place."""
    found: list[str] = []
    try:
        loose = json.loads(text, parse_constant=lambda name: found.append(name) or _Constant(name))  # type: ignore[func-returns-value]
    except (ValueError, RecursionError):
        return InputError(f"not JSON: {str(error).removeprefix('JSON is malformed: ')}")
    if not found:
        return InputError(f"not JSON: {error}")
    path = _find(loose, "") or ""
    return InputError(f"{found[0]} is not a finite number", path=path)


class _Constant:
    """Stands where NaN or an infinity stood."""

    def __init__(self, name: str) -> None:
        self.name = name


def _find(value: Any, path: str) -> str | None:
    """Return the path of the first _Constant below ``value``."""
    if isinstance(value, _Constant):
        return path
    if isinstance(value, dict):
        steps = ((child, f"{path}.{name}" if path else name) for name, child in value.items())
    elif isinstance(value, list):
        steps = ((child, f"{path}[{index}]") for index, child in enumerate(value))
    else:
        return None
    return next((place for child, step in steps if (place := _find(child, step)) is not None), None)


def _explained(message: str, text: bytes) -> InputError:
    """Turn msgspec's message into ours: the value beside what was expected, and its full path."""
    at = _AT.search(message)
    problem, path = (message[: at.start()], at["path"]) if at else (message, "")
    got = _GOT.match(problem)
    value, place = _value_at(
        json.loads(text, parse_int=_whole), path.lstrip("."), got["got"] if got else None
    )
    if unknown := re.match(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        return InputError(f"unknown member {unknown[1]!r}", path=place)
    if missing := re.match(r"Object missing required field `(.*)`", problem):
        return InputError(f"the member {missing[1]!r} is missing", path=place)
    if got and got["length"]:
        return InputError(
            f"{_shown(value)} is not a list{got['length'].replace(' length', '')} entries", path=place
        )
    if got:
        names = [_TYPE_NAMES.get(name.strip(), name.strip()) for name in got["expected"].split("|")]
        wanted = " or ".join(name for name in names if name != "null")
        return InputError(f"{_shown(value)} is not {wanted}", path=place)
    return InputError(f"{_shown(value)}: {problem}", path=place)


def _whole(digits: str) -> int | str:
    """Return an integer, or its digits where Python refuses to convert so many."""
    return int(digits) if len(digits) < 4000 else digits  # noqa: PLR2004 - the interpreter's limit is 4300


def _value_at(value: Any, path: str, got: str | None) -> tuple[Any, str]:
    """Follow msgspec's path; its ``[...]`` is the member whose value is of the JSON type ``got``."""
    place = ""
    for index, name in _STEP.findall(path):
        if index == "...":
            name, value = _member(value, got)  # noqa: PLW2901 - the member it stands for
            place = f"{place}.{name}" if place else name
        elif index:
            value, place = value[int(index)], f"{place}[{index}]"
        else:
            value, place = value[name], f"{place}.{name}" if place else name
    return value, place


_JSON_TYPES = {"int": int, "str": str, "bool": bool, "float": float, "array": list, "object": dict}


def _member(members: dict[str, Any], got: str | None) -> tuple[str, Any]:
    wanted = _JSON_TYPES.get(got or "", object)
    for name, value in members.items():
        if got == "null" and value is None:
            return name, value
        if type(value) is wanted:
            return name, value
    return next(iter(members.items()))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - an error is one line
