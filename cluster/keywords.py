"""Keywords of the Python API: a record names them and their types for editors, mypy and calls.

What a call is given is checked against the same types: a misspelt name or a value of another type
is one line that names the option.
"""

import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Real
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from .errors import OptionError
from .option_fields import Option, alternatives, options_in
from .text import did_you_mean, not_one_of, shown
from .value_types import as_int

_Call = TypeVar("_Call", bound=Callable[..., Any])
_WIDTH = 100
_INDENTED: Any = {"initial_indent": " " * 4, "subsequent_indent": " " * 8, "break_on_hyphens": False}
#: An option as the command line spells it.
_OPTION = re.compile(r"--([a-z][a-z-]*)")


def as_keywords(text: str, known: Container[str]) -> str:
    """Return a text with keywords in place of the command's flags."""

    def keyword(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return f"{name}_s" if f"{name}_s" in known else name

    return _OPTION.sub(keyword, text)


def with_keywords(
    keywords: Callable[..., object], *, names_errors: bool = True
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that names a record's options in a function's signature and help text."""
    every = options_in(keywords).items()
    texts = {
        name: one.said(before=f"{one.unit}: " if one.is_text and one.unit else "") for name, one in every
    }
    return with_names(texts, names_errors=names_errors)


def with_names(texts: Mapping[str, str], *, names_errors: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return the same for keywords by name; errors may name them, too, which takes a frame."""

    def named(call: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(call)
        kept = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in texts]
        told = [
            part
            for name, text in texts.items()
            for part in wrap(f"{name}: {as_keywords(text, texts)}", _WIDTH, **_INDENTED)
        ]
        before, mark, examples = inspect.cleandoc(call.__doc__ or "").partition("Examples:\n")
        call.__doc__ = "\n".join([before.rstrip(), "", "Options:", *told, "", mark + examples])
        call.__dict__["__signature__"] = signature.replace(parameters=[*kept, *own])
        return _naming(call, texts) if names_errors else call

    return named


def _naming(call: Callable[..., Any], known: Container[str]) -> Callable[..., Any]:
    """Return a function whose OptionErrors name its keywords."""

    @wraps(call)
    def naming(*args: Any, **given: Any) -> Any:
        try:
            return call(*args, **given)
        except OptionError as error:
            error.args = (as_keywords(str(error), known),)
            raise

    return naming


def refuses_unknown(call: _Call) -> _Call:
    """Return a public function that refuses an unknown keyword; its OptionErrors name keywords."""
    known, name = inspect.signature(call).parameters, call.__name__
    named = _naming(call, known)

    @wraps(call)
    def refusing(*args: Any, **given: Any) -> Any:
        if bad := [one for one in given if one not in known]:
            raise OptionError(f"{bad[0]}: {name} has no such option{did_you_mean(bad[0], known)}")
        return named(*args, **given)

    return cast("_Call", refusing)


def checked(given: Mapping[str, Any], keywords: Callable[..., object], call: str) -> dict[str, Any]:
    """Return the options that a call is given, without those of None, numpy's numbers as Python's.

    Raises:
        OptionError: there is no such option, or its value is of another type or out of range.

    Examples:
        >>> from .option_table import AuctionOptions
        >>> checked({"reserve": 2, "seed": None}, AuctionOptions, "simulate")
        {'reserve': 2}
    """
    known = options_in(keywords)
    for name in given:
        if name not in known:
            raise OptionError(f"{name}: {call} has no such option{did_you_mean(name, known)}")
    found = {name: _of_option(known[name], value) for name, value in given.items() if value is not None}
    for name, value in found.items():
        known[name].check(value)
    return found


def _of_option(option: Option[Any], value: Any) -> Any:
    """Return a value of an option's type, or the texts that the command line takes for it."""
    hint = option.hint
    if option.is_text:
        hint |= str | Path if option.unit == "FILE" else str
    if option.is_multiple:
        hint |= Sequence[str]
    found = of_type(option.name, value, hint)
    return (found,) if option.is_multiple and isinstance(found, str) else found


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return an integer within a range; ``high`` None: without an end.

    Raises:
        OptionError: it is none; names the option.
    """
    number: int = of_type(name, value, int)
    if high is not None and not low <= number <= high:
        raise OptionError(f"{name}: {shown(number)} is not from {low} to {high}")
    if number < low:
        raise OptionError(f"{name}: {shown(number)} is below {low}")
    return number


def of_type(name: str, value: Any, hint: Any) -> Any:
    """Return a value of a type: numpy's numbers as Python's, a list as a tuple.

    Raises:
        OptionError: it is none; names the option.
    """
    value = as_int(value)
    every = list(alternatives(hint))
    hints = [one for one in every if one is not NoneType]
    if any(_is_one(value, one) for one in every):
        if float in hints and type(value) not in (int, float, NoneType):
            return float(value)
        if not isinstance(value, (list, tuple)):
            return value
        of = [part for one in hints if get_origin(one) is Sequence for part in get_args(one)]
        return tuple(of_type(name, part, Union[tuple(of or [object])]) for part in value)  # noqa: UP007
    names = [text for one in hints if get_origin(one) is Literal for text in get_args(one)]
    if names and (isinstance(value, str) or len(hints) == 1):
        raise OptionError(f"{name}: {not_one_of(value, names)}")
    words = filter(None, (_WORDS.get(get_origin(one) or one) for one in hints))
    raise OptionError(f"{name}: {shown(value)} is not {' or '.join(dict.fromkeys(words)) or 'what it takes'}")


#: Type -> what a value should be, for people.
_WORDS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "True or False",
    str: "a text",
    Literal: "a text",
    Path: "a file's name",
    Mapping: "a mapping",
    Sequence: "a list",
    Iterable: "a list",
    Callable: "a class or function",
}


def _is_one(value: Any, hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind is Literal:
        return value in get_args(hint) if isinstance(value, str) else False
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is Sequence:
        return isinstance(value, (tuple, list))
    if not isinstance(kind, type):
        return callable(value)
    return isinstance(value, kind)
