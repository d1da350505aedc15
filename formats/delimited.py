"""Files with a header and one row on each line, fields separated by commas or bars."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..cluster.checks import plain
from ..cluster.errors import InputError
from .reading import text_of

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

T = TypeVar("T")
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """A line, its values by column."""

    line: int
    values: Mapping[str, str]

    def text(self, column: str) -> str:
        """Return a field without blanks around it."""
        text = self.values[column].strip()
        plain(text, column)
        return text

    def number(self, column: str) -> int:
        """Return a whole number; an empty field is 0."""
        text = self.text(column) or "0"
        # Public files write 427061.0 where a table program has been at them.
        if not _NUMBER.fullmatch(text.removesuffix(".0")):
            raise InputError(f"{text!r} is not a whole number", path=column)
        return int(text.removesuffix(".0"))

    def made(self, build: Callable[[Row], T]) -> T:
        """Return what is made of the row; errors name its line."""
        try:
            return build(self)
        except InputError as error:
            path = f"line {self.line}" + (f": {error.path}" if error.path else "")
            raise InputError(error.message, path=path) from error


@dataclass(frozen=True, slots=True)
class FileTable:
    """A file's columns in order, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(content: bytes, delimiter: str = ",") -> FileTable:
    """Return a file's rows.

    Raises:
        InputError: not UTF-8, no header, a column twice, or a row of another length.
    """
    text = text_of(content)
    lines = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE,
    )
    try:
        header = tuple(name.strip() for name in next(lines, []))
        if not any(header):
            raise InputError("there is no header", path="line 1")
        if twice := [name for name, count in Counter(header).items() if name and count > 1]:
            raise InputError(f"the column {twice[0]!r} is listed twice", path="line 1")
        return FileTable(header, tuple(_rows(lines, header)))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}") from error


def _rows(lines: CsvReader, header: tuple[str, ...]) -> Iterator[Row]:
    for fields in lines:
        if not "".join(fields).strip() and len(fields) < len(header):
            continue
        if len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields where the header has {len(header)}", path=f"line {lines.line_num}"
            )
        yield Row(lines.line_num, dict(zip(header, fields, strict=True)))
