"""Options as typed fields of a record: what else names an option is derived from its field.

A record is a dataclass whose fields are ``name: Option[type] = Option("help", …)``. Reading a field
of an instance gives what was given, or the default. The annotation says the type, whether None is a
value, and the choices. Click options, axes of sweeps, members of the configuration file, keywords
of Python, checks and docs/options.md come from the same field. No numpy here: ``--help`` reads it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import FrozenInstanceError, dataclass, field
from functools import cache, cached_property
from importlib import import_module
from math import inf
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from .errors import OptionError
from .text import not_one_of, shown

T = TypeVar("T")


@dataclass(eq=False, kw_only=True)
class Option(Generic[T]):
    """An option of a record: a field that knows all that is said about it.

    Attributes:
        help: a sentence or two, for ``--help`` and the reference.
        default: where nothing is said; a text describes one that depends on something.
        other_defaults: the defaults of readers that ask another question, the reason in
            brackets; commands that decide on a queue (schedule, simulate, …) share one default.
        low, high: the least and the greatest number it may be; a fraction is above ``low``.
        unit: of the number, as the command line shows it; FILE or TOPOLOGY: a file is read.
        includes_low: a fraction may be ``low`` itself.
        check_text: raises OptionError where a text is none; None: it is no text of its own form.
        is_text: the command line gives a text, which is made a value where the option is read.
        is_multiple: the command line may give it several times.
        elsewhere: the module below aucsched with its type, if that is too much for ``--help``.
        readers: which commands take it.
        policies: the policies that read it, where not all do.
        parameter: its name in a policy (``--policy slack:factor=2``); empty: its flag's.
        spelling: its name on the command line, where that is not the field's.
        is_swept: it is an axis of sweeps.
    """

    help: str = field(kw_only=False)
    default: Any = None
    other_defaults: Mapping[str, object] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    unit: str = ""
    includes_low: bool = False
    check_text: Callable[[str], None] | None = None
    is_text: bool = False
    is_multiple: bool = False
    elsewhere: str = ""
    readers: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    parameter: str = ""
    spelling: str = ""
    is_swept: bool = False

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.owner = name, owner

    @overload
    def __get__(self, record: None, owner: type) -> "Option[T]": ...
    @overload
    def __get__(self, record: object, owner: type) -> T: ...
    def __get__(self, record: object | None, owner: type) -> Any:
        # Without a record a dataclass asks for the default of its own parameter: nothing is given.
        value = None if record is None else record.__dict__[self.name]
        return self._unsaid if value is None and record is not None else value

    def __set__(self, record: object, value: T | None) -> None:
        if self.name in record.__dict__:
            raise FrozenInstanceError(f"cannot assign to field {self.name!r}")
        record.__dict__[self.name] = value

    @cached_property
    def hint(self) -> Any:
        """The type of its values."""
        package = __name__.split(".", maxsplit=1)[0]
        known = vars(import_module(f"{package}.{self.elsewhere}")) if self.elsewhere else {}
        annotated = SimpleNamespace(__annotations__={self.name: self.owner.__annotations__[self.name]})
        hints = get_type_hints(annotated, vars(sys.modules[self.owner.__module__]), known)
        return get_args(hints[self.name])[0]

    @cached_property
    def _types(self) -> tuple[Any, ...]:
        return tuple(alternatives(self.hint))

    @cached_property
    def _unsaid(self) -> Any:
        """What a record without it has: None for a value that code resolves from others."""
        return None if NoneType in self._types else self.default

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The texts it may be; empty where it is a number, a file or a switch."""
        if self.is_text:
            return ()
        return tuple(text for one in self._types if get_origin(one) is Literal for text in get_args(one))

    def limited_to(self, choices: Iterable[str]) -> "Option[T]":
        """Return the same option with fewer choices."""
        limited = copy(self)
        limited.choices = tuple(choices)
        return limited

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return not self.is_text and bool in self._types

    @property
    def is_path(self) -> bool:
        """Whether it names a file to write."""
        return not self.is_text and Path in self._types

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.is_whole or (not self.is_text and float in self._types)

    @property
    def is_whole(self) -> bool:
        """Whether it is an integer."""
        return not self.is_text and int in self._types

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.spelling}" if self.spelling else flag_of(self.name)

    def said(self, reader: str = "", before: str = "") -> str:
        """Return what people read about it: its help, and its default for a reader."""
        default = self.default_of(reader)
        if isinstance(default, tuple):
            default = ",".join(f"{one:g}" if isinstance(one, float) else str(one) for one in default)
        is_plain = (
            default is not None and default is not False and default not in ("", ()) and not callable(default)
        )
        ending = f" Default: {default}." if is_plain else ""
        return f"{before}{self.help}{ending}"

    def default_of(self, reader: str) -> object:
        """Return a reader's default, in words if it depends on something; None: there is none."""
        return self.other_defaults.get(reader, self.default)

    def read(self, texts: Sequence[str], name: str) -> Any:
        """Return the value that texts give, the last where it is one; in a text ``+`` is a comma.

        Raises:
            OptionError: it gives none; names the option as it was typed.
        """
        if self.is_multiple:
            return tuple(texts)
        text = texts[-1].replace("+", ",") if self.is_text else texts[-1]
        if self.is_switch:
            if text not in ("on", "off"):
                raise OptionError(f"{name}: {text!r} is neither on nor off")
            return text == "on"
        if self.choices and text not in self.choices:
            raise OptionError(f"{name}: {not_one_of(text, self.choices)}")
        if not self.is_number:
            return text
        try:
            number = int(text) if self.is_whole else float(text)
        except ValueError:
            kind = "an integer" if self.is_whole else "a number"
            raise OptionError(f"{name}: {text!r} is not {kind}") from None
        if words := self._beyond(number):
            raise OptionError(f"{name}: {text} is {words}")
        return number

    def _beyond(self, number: float) -> str:
        """Return how a number is beyond the range; empty: it is within it."""
        includes_low = self.is_whole or self.includes_low
        if not -inf < number < inf and not number == self.high == inf:
            return "not a number"
        if self.low is not None and (number < self.low or (number == self.low and not includes_low)):
            return f"{'below' if includes_low else 'not above'} {self.low:g}"
        return "" if self.high is None or number <= self.high else f"above {self.high:.15g}"

    def check(self, value: Any, called: str = "") -> None:
        """Raise OptionError where a value is none of its; the message calls it so, or by name."""
        name = called or f"{self.name}:"
        if self.choices:
            if value not in self.choices:
                raise OptionError(f"{name} {not_one_of(value, self.choices)}")
        elif self.is_number:
            if isinstance(value, bool) or not isinstance(value, int if self.is_whole else (int, float)):
                kind = "an integer" if self.is_whole else "a number"
                raise OptionError(f"{name} {value!r} is not {kind}")
            if words := self._beyond(value):
                raise OptionError(f"{name} {shown(value)} is {words}")
        elif self.check_text is not None:
            self.check_text(value)


class TextOption(Option[T]):
    """An option whose values are made of texts: a caller gives either."""

    def __set__(self, record: object, value: T | str | Path | Sequence[str] | None) -> None:
        super().__set__(record, value)  # type: ignore[arg-type]


def alternatives(hint: Any) -> Iterator[Any]:
    """Yield the types of a union."""
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from alternatives(part)
    else:
        yield hint


def numbers_text(value: Any, between: str = ":") -> str:
    """Return a value as it is typed; a mapping is ``NAME=NUMBER``, several with that between."""
    is_table = isinstance(value, Mapping)
    return between.join(f"{name}={one}" for name, one in value.items()) if is_table else str(value)


def flag_of(name: str) -> str:
    """Return a name as the command line has it: ``--time-limit`` for ``time_limit_s``."""
    return f"--{name.removesuffix('_s').replace('_', '-')}"


def refuse_given(
    options: Mapping[str, Any], names: Iterable[str] | Mapping[str, Option[Any]], message: str
) -> None:
    """Refuse the first given one of some options: a message follows its flag, its own if known.

    A name alone is a flag that is false unless it is given.

    Raises:
        OptionError: one is.
    """
    for name in names:
        value, is_known = options[name], isinstance(names, Mapping)
        if not (value is None or value == () or (value is False and not is_known)):
            flag = names[name].flag if isinstance(names, Mapping) else flag_of(name)
            raise OptionError(f"{flag} {message}")


def options_in(*records: Any) -> dict[str, Option[Any]]:
    """Return the options of records by name, in the order in which they are written."""
    found: dict[str, Option[Any]] = {}
    for record in records:
        found |= _options_of(record)
    return found


@cache
def _options_of(record: Any) -> Mapping[str, Option[Any]]:
    return {
        name: one
        for base in reversed(record.__mro__)
        for name, one in vars(base).items()
        if isinstance(one, Option)
    }


def given_in(record: object) -> dict[str, Any]:
    """Return the options that a record was given, without those that have their defaults."""
    given, kind = vars(record), record.__class__
    return {name: given[name] for name in options_in(kind) if given[name] is not None}


_Record = TypeVar("_Record")


def taken_from(record: Callable[..., _Record], given: Mapping[str, Any]) -> _Record:
    """Return a record of those of its options that are given, whatever else is."""
    return record(**{name: given[name] for name in options_in(record) if given.get(name) is not None})
