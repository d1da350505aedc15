"""Click's options, made from the fields of records; help in sections."""

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import reduce
from math import isfinite
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, options_in
from ..formats.writing import check_target, is_stream
from ..reports.canvas import check_drawing

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorated = Callable[..., Any]


class Decorator(Protocol):
    """What gives a command options, and leaves its type as it is."""

    def __call__(self, command: _Command, /) -> _Command:
        """Return the command with more options."""


#: What draws a picture.
_PICTURES = ("--plot", "--gantt")


#: Options by the names that they had in a command; in the file of ``--config`` as well.
_RENAMED = dict.fromkeys(("negotiate order", "ibsched order", "irtsched order"), "seed")
_RENAMED |= dict.fromkeys(("negotiate attempts", "ibsched attempts", "sweep attempts"), "max-attempts")


class FilePath(click.Path):
    """A file that a command reads or writes; what it could not write is refused before it runs.

    So are an output that is an input, or another output, and two inputs from standard input.
    One that is written ``in_place``, as long as a loop runs, is refused by what opens it.
    With ``beside`` a second file is written, its name longer by that.
    """

    def __init__(self, *, is_output: bool, in_place: bool = False, beside: str = "", **given: Any) -> None:
        super().__init__(**given)
        self.is_output, self.in_place, self.beside = is_output, in_place, beside

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raise OptionError or InputError where it cannot be used."""
        path: Any = super().convert(value, param, ctx)
        if ctx is not None and param is not None:
            name = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
            if name in _PICTURES:
                check_drawing(name, path)
            if not (self.is_output and (str(path) == "-" or is_stream(path))):
                for ending in dict.fromkeys(("", self.beside)):
                    self._check(f"{path}{ending}", name, ctx.meta.setdefault(__name__, []))
        return path

    def _check(self, path: str, name: str, others: list[tuple[bool, str, str]]) -> None:
        for is_output, other, its_name in others:
            if (self.is_output or is_output) and is_same_file(path, other):
                if self.is_output and is_output:
                    raise OptionError(f"{its_name} and {name} both write {path}")
                output = f"{name} {path}" if self.is_output else f"{its_name} {other}"
                raise OptionError(f"{output}: this file is the input")
            if path == other == "-":
                raise OptionError(f"only one of {its_name} and {name} can be standard input")
        if self.is_output and not self.in_place:
            check_target(path)
        others.append((self.is_output, path, name))


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one file, which need not exist; ``-`` is standard input."""
    first, second = ("/dev/stdin" if path == "-" else path for path in (one, other))
    try:
        return os.path.samefile(first, second)  # noqa: PTH121 - a path may be a text
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


#: A file to read, one that is no stream, one to write, one in place, one whose name is a text.
INPUT = FilePath(is_output=False, allow_dash=True, readable=False)
INPUT_FILE = FilePath(is_output=False, exists=True, dir_okay=False, path_type=Path)
OUTPUT = FilePath(is_output=True, dir_okay=False, path_type=Path)
IN_PLACE = FilePath(is_output=True, in_place=True, dir_okay=False, path_type=Path)
TEXT_OUTPUT = FilePath(is_output=True, allow_dash=True, readable=False)
#: A program to write, and next to it the table of its columns.
EXPORT = FilePath(is_output=True, beside=".csv", allow_dash=True, readable=False)


class WholeRange(click.IntRange):
    """Integers in a range: click's calls a number that it refuses no valid integer range."""

    name = "integer"


class NumberRange(click.FloatRange):
    """Numbers in a range: click's takes ``nan``, and infinity where the range has no end."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if not (isfinite(number) or number == self.max):
            self.fail(f"{value} is not a number", param, ctx)
        return number


class SectionCommand(click.Command):
    """A command that shows its options under headings, those without one first."""

    def make_parser(self, ctx: click.Context) -> Any:
        """Return a parser that knows old spellings of options; values have none."""
        of_options = copy(ctx)
        of_options.token_normalize_func = self.current_name
        return super().make_parser(of_options)

    def current_name(self, name: str) -> str:
        """Return an option's name; an old spelling is taken for the new one, with a note."""
        new, context = _RENAMED.get(f"{self.name} {name}"), click.get_current_context(silent=True)
        if new and not (context and context.resilient_parsing):
            click.echo(f"note: --{name} is the old spelling of --{new}", err=True)
        return new or name

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section, in the order in which they come."""
        sections: dict[str, list[tuple[str, str]]] = {"": []}
        for one in self.get_params(ctx):
            # An old spelling is hidden, but what replaced it is shown.
            record = one.__dict__.get("record") or one.get_help_record(ctx)
            if record is not None and isinstance(one, click.Option):
                sections.setdefault(one.__dict__.get("section", ""), []).append(record)
        for name, records in sections.items():
            with formatter.section(name or "Options"):
                formatter.write_dl(records)


def click_option(
    option: Option[Any],
    reader: str = "",
    *,
    before: str = "",
    also: str = "",
    **more: Any,
) -> _Decorated:
    """Return an option as a command takes it; not given it is None.

    Args:
        option: a record's field.
        reader: whose default ``--help`` names.
        before: said before its help.
        also: another spelling.
        more: arguments of ``click.option`` above those that follow from the field (``type``).
    """
    given: dict[str, Any] = {"default": None, "help": option.said(reader, before), **more}
    if option.is_multiple:
        given |= {"multiple": True, "default": ()}
    name = option.flag
    if option.is_switch:
        is_plain = not option.readers and not isinstance(option.default, str)
        name = name if is_plain else f"{name}/--no-{name.removeprefix('--')}"
        given = {"is_flag": True, **given}
        return click.option(name, option.name, **given)

    def checked(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if option.check_text is not None and value is not None:
            option.check_text(value)
        return value

    given = {"type": _type(option), "metavar": option.unit or None, "callback": checked, **given}
    return click.option(*filter(None, (name, also, option.name)), **given)


def in_order(options: Iterable[_Decorated]) -> Decorator:
    """Return one decorator for several, shown by ``--help`` in this order."""
    made = tuple(options)

    def decorated(command: _Command) -> _Command:
        return reduce(lambda one, option: option(one), reversed(made), command)

    return decorated


def in_section(
    section: str, *options: _Decorated, shown: Mapping[str, tuple[str, str]] | None = None
) -> Decorator:
    """Return one decorator for several options that ``SectionCommand`` shows under a heading."""
    every = in_order(options)

    def decorated(command: _Command) -> _Command:
        earlier = len(getattr(command, "__click_params__", ()))
        made = every(command)
        for one in made.__dict__["__click_params__"][earlier:]:
            one.__dict__["section"] = section
            one.__dict__["record"] = (shown or {}).get(one.name)
        return made

    return decorated


def record_options(
    *records: type, reader: str = "", more: Mapping[str, Mapping[str, Any]] | None = None
) -> Decorator:
    """Return a decorator that adds every option of records; ``more`` as in ``filled_options``."""
    every = options_in(*records).items()
    return in_order(click_option(option, reader, **(more or {}).get(name, {})) for name, option in every)


def filled_options(*records: type, **more: dict[str, Any]) -> Decorator:
    """Return a decorator that adds every option of records, with its default if it is not given.

    ``more`` has further arguments of ``click_option``, by option.
    """

    def filled(one: Option[Any]) -> dict[str, Any]:
        is_shown = not (one.is_switch or one.default is None)
        return {"default": one.default, "help": one.help, "show_default": is_shown} | more.get(one.name, {})

    return in_order(click_option(one, **filled(one)) for one in options_in(*records).values())


def _type(option: Option[Any]) -> Any:
    is_read = any(one in option.unit for one in ("FILE", "TOPOLOGY"))
    if is_read or option.is_text:
        return INPUT if is_read else None
    if option.choices:
        return click.Choice(list(option.choices))
    if not option.is_number:
        return OUTPUT if option.is_path else None
    if option.is_whole:
        low, high = (None if one is None else int(one) for one in (option.low, option.high))
        return WholeRange(low, high)
    return NumberRange(option.low, option.high, min_open=not option.includes_low)
