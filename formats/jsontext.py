"""JSON in: decoded strictly, every refusal one line that names the path and the value."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from math import inf, isfinite
from typing import Any, TypeVar

import msgspec

from ..cluster.errors import InputError
from .file_kinds import instead
from .reading import content_of

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
#: Ends of the paths of hostlists.
_HOSTS = ("nodes", "switches")
_AT = " - at `"
_UNKNOWN = "Object contains unknown field `"
_KEY = "key` in `"
_PATH = re.compile(rf"(?:{_KEY})?\$?(?P<path>[^`]*)`?")
_GOT = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<bounds>[^,]*)")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|\.?([^.\[\]]+)")


def decode(text: bytes | str, as_type: type[T], file_format: str = "") -> T:
    """Return ``text`` decoded as ``as_type``; untyped fractions become Decimal, exactly as written.

    Raises:
        InputError: it is no JSON, holds NaN or an infinity, names a member twice, or a member is
            missing, unknown or of another type; the path says where. Or it is of another format.
    """
    content = content_of(text)
    try:
        return _decoded(content, as_type, file_format)
    except InputError as error:
        wanted = file_format.removeprefix("aucsched-").partition("/")[0]
        raise (instead(content, wanted, error) if wanted else error) from error


def _decoded(text: bytes, as_type: type[T], file_format: str) -> T:
    decoder = msgspec.json.Decoder(as_type, float_hook=_decimal)
    try:
        _refuse_repeats(text)
        found = decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _refused(error, text, decoder.decode) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(text, error) from error
    if file_format and (said := getattr(found, "format", "")) != file_format:
        raise InputError(f"{said!r} is not {file_format!r}", path="format")
    return found


def _decimal(text: str) -> Decimal:
    """Return a fraction exactly as written; if no Decimal holds it, one that no member accepts."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal(str(float(text))) or Decimal("1E-99999999")


def _refused(error: msgspec.ValidationError, text: bytes, read: Callable[[str], object]) -> InputError:
    try:
        return _explained(str(error), text, read)
    except (ValueError, RecursionError) as worse:
        # Behind the wrong type the text is no JSON, or lists in lists in lists that nobody reads to
        # their ground: the decoder stopped before it came there.
        return _malformed(text, worse)


def _refuse_repeats(text: bytes) -> None:
    """Refuse an object with a member twice: every decoder would drop one of them in silence."""
    try:
        json.loads(text, object_pairs_hook=_unique, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return  # not JSON: the caller's decoder says so


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a repeat; nothing is kept of the object, which the decoder reads again."""
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise InputError(f"the member {name!r} is listed twice in one object")
            seen.add(name)


def _malformed(text: bytes, error: Exception) -> InputError:
    """Explain text that is no JSON; NaN and infinities, which many emit, are named in place."""
    try:
        # These alone become floats.
        loose = json.loads(text, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return InputError(f"not JSON: {str(error).removeprefix('JSON is malformed: ')}")
    for path, value in values_in(loose):
        if isinstance(value, float):
            return InputError(f"{json.dumps(value)} is not a finite number", path=path)
    return InputError(f"not JSON: {error}")


def values_in(document: Any, most_levels: float = inf) -> Iterator[tuple[str, Any]]:
    """Yield each value of a document with its path; objects and lists are walked without recursion.

    Raises:
        InputError: they stand in each other more than ``most_levels`` deep.
    """
    waiting: list[tuple[str, Any, int]] = [("", document, 0)]
    while waiting:
        path, value, level = waiting.pop()
        if level > most_levels:
            raise InputError(f"it is more than {most_levels} levels deep", path=path)
        if isinstance(value, dict):
            prefix = f"{path}." if path else ""
            below = [(f"{prefix}{name}", one, level + 1) for name, one in value.items()]
        elif isinstance(value, list):
            below = [(f"{path}[{place}]", one, level + 1) for place, one in enumerate(value)]
        else:
            yield path, value
            continue
        waiting += reversed(below)


def _explained(message: str, text: bytes, read: Callable[[str], object]) -> InputError:
    """Turn msgspec's message into ours: the value beside what was expected, and its full path."""
    problem, path = _taken_apart(message)
    got = _GOT.match(problem)
    document = json.loads(text, parse_int=_whole, parse_float=_fraction)

    def fails() -> bool:
        try:
            read(json.dumps(document))
        except msgspec.ValidationError as error:
            return str(error) == message
        return False

    try:
        value, place = _value_at(document, path.lstrip("."), fails)
        if _AT + _KEY in message:
            value = next(name for name in value if not name.isdecimal())
    except (LookupError, TypeError, AttributeError, StopIteration):
        # Written again, the document is refused otherwise: its numbers have too many digits.
        return InputError(problem, path=path.lstrip("."))
    if unknown := re.match(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        return InputError(f"unknown member {unknown[1]!r}", path=place)
    if missing := re.match(r"Object missing required field `(.*)`", problem):
        return InputError(f"the member {missing[1]!r} is missing", path=place)
    if got:
        names = [_TYPE_NAMES.get(name.strip(), name.strip()) for name in got["expected"].split("|")]
        wanted = " or ".join(name for name in names if name != "null")
        is_hosts = wanted == "a text" and isinstance(value, list) and place.endswith(_HOSTS)
        hosts = ' of names with commas and ranges: "n[1-4],n7"'
        form = hosts if is_hosts else re.sub(r"length (\d+)$", r"\1 entries", got["bounds"])
        return InputError(f"{shown(value)} is not {wanted}{form}", path=place)
    return InputError(f"{shown(value)}: {problem}", path=place)


def _taken_apart(message: str) -> tuple[str, str]:
    """Return what msgspec says is wrong, and where."""
    problem, at, rest = message.rpartition(_AT)
    path = _PATH.fullmatch(rest)
    # An unknown member's name may hold this mark too: then its closing mark is not before this one.
    apart = at and path and rest.endswith("`") and not (problem.startswith(_UNKNOWN) and problem[-1:] != "`")
    return (problem, path["path"]) if apart and path else (message, "")


def _whole(digits: str) -> int | str:
    """Return an integer, or its digits where there are more than Python converts."""
    return int(digits) if len(digits) < 4000 else digits  # noqa: PLR2004 - Python's limit is 4300


def _fraction(text: str) -> float | str:
    """Return a number, or its text where a float would be infinite."""
    number = float(text)
    return number if isfinite(number) else text


def _value_at(value: Any, path: str, fails: Callable[[], bool]) -> tuple[Any, str]:
    """Follow msgspec's path; its ``[...]`` is the first member with which a document ``fails``."""
    place = ""
    for index, name in _STEP.findall(path):
        if index.isdecimal():
            value, place = value[int(index)], f"{place}[{index}]"
            continue
        name = name or _first_wrong(value, fails)  # noqa: PLW2901 - the member that [...] means
        value, place = value[name], f"{place}.{name}" if place else name
    return value, place


def _first_wrong(members: dict[str, Any], fails: Callable[[], bool]) -> str:
    every = list(members.items())

    def fails_with(count: int) -> bool:
        members.clear()
        members.update(every[:count])
        return fails()

    names = list(members)
    wrong = names[bisect_left(range(1, len(names) + 1), True, key=fails_with)]
    members.update(every)
    return wrong


def shown(value: Any) -> str:
    """Return a decoded value as an error shows it: as JSON, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return "a value too deep to show"
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - an error is one line
