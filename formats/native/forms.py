"""How files hold each value type of ``cluster``: its JSON type, its schema, reading and writing.

Nothing here names a member. Only types are checked as JSON is decoded: limits stand in the schema,
and constructors check them, so that Python's users and files hear the same of a wrong value.
Classes with members are objects of these forms (file_objects.py).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.jobs import Range, RangeMap, Span
from ...cluster.limits import AMOUNTS, FilledNames, LimitMap
from ...cluster.text import utc
from ...cluster.value_types import (
    PRIORITY_DIGITS,
    YEAR_10000,
    Anything,
    Boolean,
    Choice,
    HostList,
    HostSet,
    Integer,
    IntegerList,
    IntegerMap,
    JobPriority,
    Name,
    NameList,
    NameSet,
    Number,
    SecondsByCount,
    Text,
    Timestamp,
    ValueType,
    shortest,
)
from ..hostlist import expand, join

#: A hostlist, as far as a short pattern tells: no groups, wildcards or set operators.
_HOSTLIST = {"minLength": 1, "pattern": r"^([A-Za-z0-9_.,-]|\[[0-9,-]+\])+$"}
#: JSON types with what their schemas say of them; decoding looks at the type only.
Hosts = Annotated[str, msgspec.Meta(extra_json_schema=_HOSTLIST)]
FromZero = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": LARGEST_COUNT})]
FromOne = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": LARGEST_COUNT})]
GresCounts = dict[Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})], FromZero]


def saying(kind: Any, **keywords: Any) -> Any:
    """Return a JSON type with keywords of its schema, which decoding does not look at."""
    return Annotated[kind, msgspec.Meta(extra_json_schema=keywords)]


def integers(least: int) -> Any:
    """Return the JSON type of integers from ``least`` on."""
    return saying(int, minimum=least, maximum=LARGEST_COUNT)


def _by_name(values: Any) -> Any:
    return GenericAlias(dict, (saying(str, minLength=1), values))


@dataclass(frozen=True, slots=True)
class Form:
    """How files hold a value.

    Attributes:
        json: its type as msgspec decodes it, with what its schema says.
        read: makes what a constructor takes of what was decoded and its path; None: nothing to make.
        write: makes what is encoded; None: nothing to make.
        is_optional: an empty value is left out or null.
        about: what its schema says of it.
    """

    json: Any
    read: Callable[[Any, str], Any] | None = None
    write: Callable[[Any], Any] | None = None
    is_optional: bool = False
    about: str | None = None


def _range(least: int) -> Any:
    """Return the JSON type of counts and ranges: ``4`` is exact, ``[2, 8]`` a range."""
    return integers(1) | GenericAlias(tuple, (integers(least), integers(1)))


def _written_span(span: Span) -> Any:
    return span.minimum if span.is_exact else (span.minimum, span.maximum)


def read_time(value: str | float, path: str) -> float:
    """Return a time in seconds since the epoch."""
    if isinstance(value, float):
        return shortest(Timestamp().coerced(value, path))
    try:
        moment = datetime.fromisoformat(value)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{value[:60]!r} is not an ISO 8601 time", path=path) from None
    if not 0 <= since < YEAR_10000:
        raise InputError(f"{value[:60]!r} is not a time from 1970 to 9999", path=path)
    return since


def _written_time(seconds: float) -> str | float:
    """Return a time as ISO 8601 in UTC, as a number before 1970 or with a fraction of a second."""
    if seconds != int(seconds) or seconds < 0:
        return seconds
    return utc(seconds)


def _read_priority(value: Any, path: str) -> Any:
    """Return a number as JSON has it: formats.jsontext decodes fractions as Decimal, exactly."""
    if value is None:
        raise InputError("null is not a number", path=path)
    return Fraction(value) if isinstance(value, str) and re.fullmatch(_QUOTIENT, value) else value


def _written_priority(value: int | Fraction) -> int | Decimal | str:
    if isinstance(value, int):
        return value
    with localcontext(prec=100):
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return decimal if -int(decimal.as_tuple().exponent) <= PRIORITY_DIGITS else str(value)


def _number(kind: Number) -> Form:
    bounds = {"minimum": kind.least, "exclusiveMinimum": kind.above, "maximum": kind.most}
    stated = {name: bound for name, bound in bounds.items() if abs(bound) != float("inf")}
    return Form(saying(float, **stated), write=shortest if kind.is_short else None)


def _choice(kind: Choice) -> Form:
    if not kind.any_case:
        return Form(saying(str, enum=[str(word) for word in kind.words]))
    words = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in word) for word in kind.words)
    return Form(saying(str, pattern=f"^({words})$"))


def _limits(kind: LimitMap) -> Form:
    names = saying(str, pattern=f"^({'|'.join(AMOUNTS)}|gres/[^/\\s]+)$")
    return Form(saying(GenericAlias(dict, (names, integers(kind.least))), minProperties=1), write=dict)


_NAME = saying(str, minLength=1)
_MOMENTS = {"exclusiveMinimum": -YEAR_10000, "exclusiveMaximum": YEAR_10000}
_TIMES = saying(str, minLength=1) | saying(float, **_MOMENTS)
_ABOUT_TIMES = "ISO 8601, UTC where it names no zone; or seconds since 1970."
_ABOUT_PRIORITY = 'Compared exactly as written; 0 is held. "1/3" is a quotient.'
_SECONDS = GenericAlias(dict, (int, saying(float, minimum=0)))
#: A priority that has no decimal of PRIORITY_DIGITS.
_QUOTIENT = r"^[0-9]{1,82}/[1-9][0-9]{0,40}$"
_PRIORITY = saying(Any, type=["number", "string"], minimum=0, pattern=_QUOTIENT)
#: How files hold each value type; file_objects.py adds those of classes with members.
FORMS: dict[type[ValueType], Callable[[Any], Form]] = {
    Anything: lambda _: Form(Any),
    Boolean: lambda _: Form(bool),
    Integer: lambda kind: Form(integers(kind.least)),
    IntegerList: lambda kind: Form(GenericAlias(list, (integers(kind.least),)), write=list),
    IntegerMap: lambda kind: Form(_by_name(integers(kind.least)), write=dict),
    LimitMap: _limits,
    Range: lambda kind: Form(_range(kind.least), write=_written_span),
    RangeMap: lambda _: Form(
        _by_name(_range(0)), write=lambda spans: {name: _written_span(span) for name, span in spans.items()}
    ),
    SecondsByCount: lambda _: Form(saying(_SECONDS, propertyNames={"pattern": "^[1-9][0-9]{0,12}$"})),
    Number: _number,
    Text: lambda _: Form(str),
    Name: lambda _: Form(_NAME),
    NameList: lambda _: Form(list[str], write=list),
    NameSet: lambda _: Form(list[str], write=sorted),
    FilledNames: lambda _: Form(
        _NAME | GenericAlias(list, _NAME), write=lambda names: names[0] if len(names) == 1 else list(names)
    ),
    HostList: lambda _: Form(Hosts, read=expand, write=join, is_optional=True),
    HostSet: lambda _: Form(Hosts, read=expand, write=lambda names: join(sorted(names)), is_optional=True),
    Choice: _choice,
    Timestamp: lambda _: Form(_TIMES, read=read_time, write=_written_time, about=_ABOUT_TIMES),
    JobPriority: lambda _: Form(_PRIORITY, _read_priority, _written_priority, about=_ABOUT_PRIORITY),
}
