"""Results' common interface: columns for table libraries, plain values, JSON, notebook tables."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from .errors import path_of
from .text import escaped

#: The package, below which rooms above this one are looked up when somebody asks.
_ROOT = __name__.split(".", maxsplit=1)[0]
#: Rows that a notebook shows, and lines of a summary; the others are counted.
_SHOWN, _LINES = 40, 8
#: Most characters of a cell and of a line in a summary.
_CELL, _LINE = 24, 100
#: Whole numbers below this one are shown with all their digits.
_LARGEST = 1e12


def report(name: str) -> Any:
    """Return a module of the room reports, which is above this one, loaded when somebody asks."""
    return import_module(f"{_ROOT}.reports.{name}")


def chart(path: str | Path | None, module: str, name: str) -> Callable[..., Any]:
    """Return what draws a chart into a file: it belongs to a room above, loaded when somebody asks.

    Raises:
        OptionError: matplotlib is missing, or the file's name has another end than a picture's.
    """
    target = None if path is None else path_of(path)
    report("canvas").check_drawing("plot", target)
    return partial(getattr(import_module(f"{_ROOT}.{module}"), name), path=target)


_Value = TypeVar("_Value")


class Deferred(Generic[_Value]):
    """A member that may be given as a function: it runs once, when it is first read."""

    def __init__(self, *default: _Value) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, owner: type | None = None) -> _Value:
        if record is None:
            if self._default:
                return self._default[0]
            raise AttributeError(self._name)
        value = vars(record)[self._name]  # read once: another thread may find it at the same time
        if callable(value):
            value = vars(record)[self._name] = value()
        return cast("_Value", value)

    def __set__(self, record: object, value: _Value | Callable[[], _Value]) -> None:
        vars(record)[self._name] = value


class Copied:
    """A frozen record with deferred members: a copy, or a pickle, has what they are."""

    __slots__ = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the members, all found."""
        return {name: getattr(self, name) for name in vars(self)}


class Tabular:
    """A result with a table of its own.

    ``columns`` is a mapping of equally long lists, which ``pandas.DataFrame(result.columns)`` and
    ``polars.DataFrame(result.columns)`` take as they are.
    """

    __slots__ = ()

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Return the result's rows by column."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain dicts, lists, numbers and text."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return ``to_dict`` as JSON."""
        return indented_json(self.to_dict())

    def save(self, path: str | Path) -> None:
        """Write the result: a table (``.csv``, ``.parquet``), all of it (``.json``), or ``.html``.

        Raises:
            InputError: the file cannot be written.
            OptionError: its name has another end, or pyarrow is missing.
        """
        report("table_files").save_result(self, path)

    def title(self) -> str:
        """Return the result in one line."""
        return type(self).__name__

    def summary(self) -> Mapping[str, Any]:
        """Return the summary below the title, at most eight figures; empty: the first rows."""
        return {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title()[:_LINE]}>"

    def __str__(self) -> str:
        figures = self.summary()
        if not figures:
            return "\n".join([self.title(), *text_rows(self.columns)])
        wide = max(len(name) for name in figures)
        return "\n".join([self.title(), *(f"  {name:<{wide}}  {_cut(one)}" for name, one in figures.items())])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the title and the first rows."""
        return html_table(self.columns, self.title())


def indented_json(document: Any) -> str:
    """Return a document as JSON, two blanks a level."""
    import msgspec  # noqa: PLC0415 - a type of this room alone loads nothing

    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return columns as a mapping for each row.

    Examples:
        >>> rows_of({"job": ["a", "b"], "cores": [1, 2]})
        [{'job': 'a', 'cores': 1}, {'job': 'b', 'cores': 2}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def html_table(columns: Mapping[str, Sequence[Any]], title: str = "") -> str:
    """Return columns as an HTML table with what stands in them escaped.

    Examples:
        >>> html_table({"job": ["<1>"]})
        '<table><thead><tr><th>job</th></tr></thead><tbody><tr><td>&lt;1&gt;</td></tr></tbody></table>'
    """
    rows = list(zip(*columns.values(), strict=True))
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:_SHOWN])
    more = f"<p>{len(rows) - _SHOWN} more rows</p>" if len(rows) > _SHOWN else ""
    caption = f"<p>{_text(title)}</p>" if title else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def text_rows(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the first rows of columns as lines of text, the names above them.

    Examples:
        >>> text_rows({"job": ["a", "b"], "cores": [1, 20]})
        ['job  cores', 'a    1', 'b    20']
    """
    rows = list(zip(*columns.values(), strict=True))
    cells = [list(columns), *([_cut(cell) for cell in row] for row in rows[: _LINES - 1])]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    more = [f"… {len(rows) - _LINES + 1} more rows"] if len(rows) >= _LINES else []
    return [line[:_LINE].rstrip() for line in lines] + more


def _cut(value: Any) -> str:
    text = _plain(value)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        # A time since the epoch has ten digits.
        return f"{value:.0f}" if value.is_integer() and abs(value) < _LARGEST else f"{value:.6g}"
    return "" if value is None else escaped(str(value))


def _text(value: Any) -> str:
    return escape(_plain(value))
