"""What the members of this room's types hold, stated once for Python, files and their schemas.

A type names each member with its default and its value type: ``cores: OptionalInteger =
member(Integer(1), default=None)``. From that follow what a constructor takes (numpy's integers,
lists, single names), what it refuses and by which path, and, in formats/native/forms.py, how a file
holds the member and what its schema says.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import inf
from operator import attrgetter, index
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

from .checks import LARGEST_COUNT, all_of_type, all_plain, at_least, named, of_type, plain
from .errors import InputError
from .text import shown

#: One name, or several in any collection.
Names: TypeAlias = str | Iterable[str]

#: A priority's digits: Slurm's are 32-bit integers, a multifactor sum may have a float's 17.
PRIORITY_DIGITS = 40
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda n: as_number(n, ""))
_BEYOND_PRIORITIES = 10 ** (PRIORITY_DIGITS + 1)
_VALUE_TYPE = "value type"
#: Seconds since the epoch at which years get a fifth digit, which ISO 8601 times have not.
YEAR_10000 = 253_402_300_800

T = TypeVar("T")
_Setter = Callable[..., None]
InputT_contra = TypeVar("InputT_contra", contravariant=True)


class Coerced(Generic[T, InputT_contra]):
    """The type of a member that is read as T, and that a constructor takes as another type.

    While a program runs an annotation is T itself: msgspec decodes these classes as it does others.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: tuple[Any, Any]) -> Any:
            """Return what the member is read as."""
            return types[0]

    @overload
    def __get__(self, instance: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...
    def __get__(self, instance: object | None, owner: Any) -> Any:
        """Return the member; slots do this while a program runs."""

    def __set__(self, instance: object, value: InputT_contra) -> None:
        """Set the member; slots do this while a program runs."""


IntLike: TypeAlias = Coerced[int, SupportsIndex]
OptionalIntLike: TypeAlias = Coerced[int | None, SupportsIndex | None]
IntLikeByName: TypeAlias = Coerced[Mapping[str, int], Mapping[str, SupportsIndex]]
NameTuple: TypeAlias = Coerced[tuple[str, ...], Names]
NameFrozenSet: TypeAlias = Coerced[frozenset[str], Names]
#: Values of one class.
Many: TypeAlias = Coerced[tuple[T, ...], Collection[T]]
OptionalMany: TypeAlias = Coerced[tuple[T, ...] | None, Collection[T] | None]


def member(
    value_type: ValueType, *, default: Any = MISSING, default_factory: Any = MISSING, file: str = ""
) -> Any:
    """Return a dataclass' field; ``file`` is its name in files where that is another."""
    metadata = {_VALUE_TYPE: value_type, "file": file}
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(member,))
def value_class(cls: type[T]) -> type[T]:
    """Make a class with members a frozen dataclass of keywords and slots."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def value_type_of(stated: Field[Any]) -> ValueType:
    """Return what a field holds."""
    found: ValueType = stated.metadata[_VALUE_TYPE]
    return found


def assign(target: object, **members: Any) -> None:
    """Set members of a frozen object that is being constructed."""
    for name, value in members.items():
        object.__setattr__(target, name, value)


def copied(target: T, **members: Any) -> T:
    """Return a frozen object with other members, taken as they are: nothing is checked again."""
    cls: Any = type(target)
    values, setters, slots = _slots(cls)
    made: T = object.__new__(cls)
    for place, value in zip(setters, values(target)):  # noqa: B905 - one for each
        place(made, value)
    for name, value in members.items():
        slots[name](made, value)
    return made


@cache
def _slots(cls: type[Any]) -> tuple[attrgetter[tuple[Any, ...]], tuple[_Setter, ...], dict[str, _Setter]]:
    """Return what reads all members of a frozen class, what sets each, and the same by name."""
    slots = {one.name: getattr(cls, one.name).__set__ for one in fields(cls)}
    return attrgetter(*slots), tuple(slots.values()), slots


def coerce_members(target: Any) -> None:
    """Let each member of a frozen object that is being constructed be of its type.

    Raises:
        InputError: a value cannot be, or is out of bounds; the path is the member's name.
    """
    for name, default, coerced in _coercions(target.__class__):
        value = getattr(target, name)
        if value is not default and (made := coerced(value, name)) is not value:
            object.__setattr__(target, name, made)


@cache
def _coercions(cls: type[Any]) -> tuple[tuple[str, Any, Callable[[Any, str], Any]], ...]:
    """Return name, default and conversion of those members that need one."""
    return tuple(
        (one.name, one.default, value_type_of(one).coerced)
        for one in fields(cast(Any, cls))
        if _VALUE_TYPE in one.metadata
    )


@dataclass(frozen=True, slots=True)
class ValueType(ABC):
    """What a member holds."""

    @abstractmethod
    def coerced(self, value: Any, path: str) -> Any:
        """Return a value that was given as the type it is kept in.

        Raises:
            InputError: it cannot be, or is out of bounds; names ``path``.
        """


@dataclass(frozen=True, slots=True)
class Anything(ValueType):
    """Whatever JSON holds."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as JSON is read: lists for tuples, Python's numbers for numpy's."""
        try:
            return json.loads(_JSON.encode(value).encode())
        except (TypeError, ValueError, RecursionError, InputError):
            raise InputError(f"{shown(value)} is not a value of JSON", path=path) from None


@dataclass(frozen=True, slots=True)
class Boolean(ValueType):
    """True or false."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as it is."""
        if value is not True and value is not False:
            raise InputError(f"{shown(value)} is not True or False", path=path)
        return value


@dataclass(frozen=True, slots=True)
class Integer(ValueType):
    """An integer, from ``least`` on."""

    least: int

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as Python's."""
        if type(value) is int and self.least <= value <= LARGEST_COUNT:
            return value
        number = as_int(value)
        at_least(number, self.least, path)
        return number


@dataclass(frozen=True, slots=True)
class IntegerList(ValueType):
    """Integers in their order, each from ``least`` on."""

    least: int

    def coerced(self, value: Any, path: str) -> Any:
        """Return them as a tuple of Python's."""
        kind = Integer(self.least)
        return tuple(kind.coerced(one, f"{path}[{place}]") for place, one in enumerate(value))


@dataclass(frozen=True, slots=True)
class CountMap(ValueType):
    """Counts by name, each of one type: integers, or ranges of them."""

    of: ValueType

    def coerced(self, value: Any, path: str) -> Any:
        """Return a copy with counts of that type."""
        if type(value) is dict and not value:
            return {}
        if not isinstance(value, Mapping):
            raise InputError(f"{shown(value)} is not a mapping of names to counts", path=path)
        for name in value:
            named(name, path)
        return {name: self.of.coerced(count, f"{path}.{name}") for name, count in value.items()}


@dataclass(frozen=True, slots=True)
class SecondsByCount(ValueType):
    """Run times in seconds by node count, from 1 node on."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return a copy with Python's numbers."""
        of_type(value, (Mapping,), path)
        nodes, time = Integer(1), Number("a run time in seconds", least=0)
        return {nodes.coerced(n, path): time.coerced(s, f"{path}.{n}") for n, s in value.items()}


@dataclass(frozen=True, slots=True)
class Number(ValueType):
    """A real number within bounds; ``wanted`` says which, for messages.

    ``is_short``: files write whole numbers as integers.
    """

    wanted: str
    least: float = -inf
    above: float = -inf
    most: float = inf
    is_short: bool = False

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as Python's."""
        number = value if type(value) is float or type(value) is int else as_number(value, path)
        if not (self.least <= number <= self.most and self.above < number < inf):
            said = shown(number) if isinstance(number, int) else f"{number:.15g}"
            raise InputError(f"{said} is not {self.wanted}", path=path)
        return number


@dataclass(frozen=True, slots=True)
class Timestamp(Number):
    """Seconds since the epoch; in files a text in ISO 8601 as well."""

    wanted: str = "a time in seconds since 1970"
    least: float = -YEAR_10000
    most: float = YEAR_10000 - 1e-3


@dataclass(frozen=True, slots=True)
class Text(ValueType):
    """A text, which may be empty, of characters that are seen."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as it is."""
        if type(value) is str and value.isprintable():
            return value
        plain(value, path)
        return str.__str__(value)  # numpy's too


@dataclass(frozen=True, slots=True)
class Name(ValueType):
    """A text that is not empty."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as it is."""
        if type(value) is str and value.isprintable() and value:
            return value
        named(value, path)
        return str.__str__(value)  # numpy's too


@dataclass(frozen=True, slots=True)
class NameList(ValueType):
    """Names in their order; a text is one name. ``plain``: hidden characters are looked for."""

    plain: bool = False

    def coerced(self, value: Any, path: str) -> Any:
        """Return them as a tuple."""
        names = several(value, path)
        if self.plain:
            all_plain(names, path)
        return names


@dataclass(frozen=True, slots=True)
class NameSet(NameList):
    """Names in no order."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return them as a set."""
        if type(value) is frozenset and not value:
            return value
        names = NameList.coerced(self, value, path)
        return value if type(value) is frozenset else frozenset(names)


@dataclass(frozen=True, slots=True)
class HostList(NameList):
    """Names of nodes in their order, which files write as a hostlist."""


@dataclass(frozen=True, slots=True)
class HostSet(NameSet):
    """Names of nodes in no order, which files write as a hostlist."""


@dataclass(frozen=True, slots=True)
class Choice(ValueType):
    """One of a few words; ``any_case``: in small letters or capitals."""

    words: type[StrEnum] | tuple[str, ...]
    any_case: bool = False

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as one of ``words``."""
        if type(value) is self.words:
            return value
        word = value.lower() if self.any_case and isinstance(value, str) else value
        if not isinstance(word, str) or word not in list(self.words):
            raise InputError(f"{shown(value)} is not one of {', '.join(self.words)}", path=path)
        return word if isinstance(self.words, tuple) else self.words(word)


@dataclass(frozen=True, slots=True)
class JobPriority(ValueType):
    """A number from 0 on, exactly as given, a float as its shortest decimal."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as an integer or a fraction."""
        if type(value) is not int and type(value) is not Fraction:
            is_exact = isinstance(value, (Decimal, float))
            value = exact_priority(value if is_exact else as_number(value, path))
        if not 0 <= value < _BEYOND_PRIORITIES or value.denominator > 10**PRIORITY_DIGITS:
            raise InputError(
                f"{shown(value)} {'is below 0' if value < 0 else 'has too many digits'}", path=path
            )
        return value


@dataclass(frozen=True, slots=True)
class Entries(ValueType):
    """Several values of one class, in their order."""

    of: type

    def coerced(self, value: Any, path: str) -> Any:
        """Return them as a tuple."""
        if not isinstance(value, Collection) or isinstance(value, (str, Mapping)):
            raise InputError(f"{shown(value)} is not a list", path=path)
        entries = tuple(value)
        all_of_type(entries, (self.of,), path)
        return entries


@dataclass(frozen=True, slots=True)
class EntryMap(ValueType):
    """Values of one class by name."""

    of: type

    def coerced(self, value: Any, path: str) -> Any:
        """Return a copy with the same values."""
        if type(value) is not dict:
            of_type(value, (Mapping,), path)
        for name, entry in value.items():
            if type(entry) is not self.of or type(name) is not str or not name.isprintable():
                plain(name, path)
                of_type(entry, (self.of,), f"{path}.{name}")
        return dict(value)


@dataclass(frozen=True, slots=True)
class HostMap(EntryMap):
    """Values of one class by node; in files several nodes of equal values are a hostlist."""


@dataclass(frozen=True, slots=True)
class Embedded(ValueType):
    """One value of a class; ``flat``: its members stand among those of the value that holds it.

    ``source`` says what makes one, where users do not.
    """

    of: type
    flat: bool = False
    source: str = ""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as it is."""
        if type(value) is not self.of:
            of_type(value, (self.of,), path, self.source)
        return value


def shortest(number: float) -> float:
    """Return a whole number as an integer, so that equal numbers are written alike."""
    return int(number) if float(number).is_integer() else number


def as_int(value: Any) -> Any:
    """Return an integer of whatever library as Python's; anything else as it is.

    Examples:
        >>> as_int(3), as_int(-1.5), as_int(True)
        (3, -1.5, True)
    """
    if type(value) is int or isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return value
    try:
        return index(value)
    except TypeError:
        return value


def as_number(value: Any, path: str) -> int | float:
    """Return a number of whatever library as Python's.

    Raises:
        InputError: it is none.
    """
    number = as_int(value)
    if type(number) is int:
        return number
    if isinstance(value, SupportsFloat) and not isinstance(value, bool):
        with suppress(OverflowError, TypeError, ValueError):
            return float(value)
    raise InputError(f"{shown(value)} is not a number", path=path)


def several(value: Names | None, path: str) -> tuple[str, ...]:
    """Return names as a tuple; a text is one name.

    Raises:
        InputError: it is neither.

    Examples:
        >>> several("n1", "nodes"), several(["n1", "n2"], "nodes")
        (('n1',), ('n1', 'n2'))
    """
    if isinstance(value, str):
        return (str.__str__(value),)  # numpy's too
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise InputError(f"{shown(value)} is not a list of names", path=path)
    names = tuple(value)
    all_of_type(names, (str,), path)
    return names


def exact_priority(value: Decimal | float | str) -> int | Fraction:
    """Return a priority exactly as written, an integer where it is one.

    Raises:
        InputError: it is not finite, or has more digits than a priority can mean.
    """
    number = Decimal(str(value))
    if not number.is_finite():
        raise InputError(f"{value} is not a finite number", path="priority")
    exponent = number.as_tuple().exponent
    # Fraction(1E+999999999) would fill the memory: its exponent refuses it before that.
    if number and (number.adjusted() > PRIORITY_DIGITS or int(exponent) < -PRIORITY_DIGITS):
        raise InputError(f"{value} has too many digits", path="priority")
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction
