"""The common interface of results: columns for table libraries, plain values, JSON, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .text import escaped

#: Rows that a notebook shows; the others are counted.
_SHOWN = 40


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
        import msgspec  # noqa: PLC0415 - a type of this room alone loads nothing

        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2).decode() + "\n"

    def title(self) -> str:
        """Return the result in one line."""
        return type(self).__name__

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the title and the first rows."""
        return html_table(self.columns, self.title())


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


def _text(value: Any) -> str:
    shown = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return escape(escaped(shown))
