"""The Standard Workload Format: logs of real machines, read and written.

A log is text: comment lines begin with ``;`` and may hold ``Label: value`` headers; every other
line is a job of 18 numbers, −1 for an unknown one. Source: Feitelson's Parallel Workloads Archive,
format version 2.2. simulation/log_columns.py says what a simulation makes of a row.
"""

from __future__ import annotations

import gzip
import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..cluster.errors import InputError
from ..cluster.text import escaped, shown
from ..cluster.value_types import shortest
from .file_kinds import LOG, instead
from .reading import content_of, numbered_lines, read_document
from .writing import write_bytes

#: Fields of a row.
WIDTH = 18
#: A log may leave out the fields after the requested time, if it does so in every row.
NARROWEST = 9
_LABEL = re.compile(r"[A-Za-z][\w ]*")
#: ``1,024`` too: headers are written by people.
_LEADING_INTEGER = re.compile(r"\s*+([+-]?(?:\d{1,3}(?:,\d{3})+|\d+))")
#: As C reads one: no underscores as Python's has.
_NUMBER = re.compile(rb"(?i)[+-]?(?:(?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?|nan|inf(?:inity)?)")
#: No count has more digits.
_MOST_DIGITS = 18


class SwfField(IntEnum):
    """The columns of a row, counted from 0 (the format's text counts from 1); times in seconds."""

    JOB = 0
    SUBMIT = 1
    WAIT = 2
    RUN = 3
    ALLOCATED_PROCESSORS = 4
    CPU_TIME = 5
    MEMORY = 6
    REQUESTED_PROCESSORS = 7
    REQUESTED_TIME = 8
    REQUESTED_MEMORY = 9
    STATUS = 10
    USER = 11
    GROUP = 12
    EXECUTABLE = 13
    QUEUE = 14
    PARTITION = 15
    PRECEDING_JOB = 16
    THINK_TIME = 17


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SwfLog:
    r"""A log as its file holds it: nothing dropped, nothing sorted.

    Attributes:
        comments: the comment lines in file order, without the leading ``;``.
        table: one row for each job, 18 columns (see ``SwfField``), float64; −1 is not known.

    Examples:
        >>> log = parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
        >>> log.header_count("MaxProcs"), log.column(SwfField.RUN).tolist()
        (4, [10.0])
    """

    comments: tuple[str, ...]
    table: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwfLog):
            return NotImplemented
        return self.comments == other.comments and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.comments, self.table.shape))

    def column(self, field: SwfField) -> NDArray[np.float64]:
        """Return one column of the table."""
        values: NDArray[np.float64] = self.table[:, field]
        return values

    def header(self, label: str) -> str | None:
        """Return the first value of a header such as ``Computer``, None where the log has none."""
        for comment in self.comments:
            name, colon, value = comment.partition(":")
            name = name.strip()
            if colon and name.casefold() == label.casefold() and _LABEL.fullmatch(name):
                return value.strip()
        return None

    def header_count(self, label: str) -> int | None:
        """Return a header's leading integer when it is above 0, else None (logs write −1 or words).

        Raises:
            InputError: it has more digits than any count.
        """
        match = _LEADING_INTEGER.match(self.header(label) or "")
        digits = match[1].replace(",", "") if match else "0"
        if len(digits) > _MOST_DIGITS:
            raise InputError(f"{shown(digits)} is not a count", path=label)
        count = int(digits)
        return count if count > 0 else None


def load_swf(path: str | Path) -> SwfLog:
    r"""Read a log, plain or gzip (recognised by its content); ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read, is cut short or is no SWF; names the file and the line.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("days.swf").write_text("; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
        >>> load_swf("days.swf").header("MaxProcs")
        '4'
    """
    return read_document(path, parse_swf)


def parse_swf(content: bytes | str) -> SwfLog:
    r"""Return the log in a file's content; ends of lines may be LF, CRLF or CR.

    Raises:
        InputError: a row has another number of fields than the first, or a field is no number.

    Examples:
        >>> len(parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n").table)
        1
    """
    comments: list[str] = []
    values = array("d")
    width = 0
    content = content_of(content)
    for number, line in numbered_lines(content):
        fields = line.split()
        if fields[0].startswith(b";"):
            comments.append(line.strip().decode("utf-8", "replace").removeprefix(";"))
            continue
        width = width or _width(content, fields, number)
        if len(fields) != width:
            raise InputError(f"{len(fields)} fields where the log has {width}", path=f"line {number}")
        try:
            values.extend(map(float, fields))
        except ValueError:
            raise _not_a_number(fields, number) from None
        if b"_" in line:
            raise _not_a_number(fields, number)
    return SwfLog(comments=tuple(comments), table=_table(values, width, content))


def _width(content: bytes, fields: list[bytes], number: int) -> int:
    """Return the width that a log's first row states; of another file the error says what it is."""
    if not all(map(_NUMBER.fullmatch, fields)):
        raise instead(content, LOG, _not_a_number(fields, number))
    if not NARROWEST <= len(fields) <= WIDTH:
        error = InputError(f"{len(fields)} fields where SWF has {WIDTH}", path=f"line {number}")
        raise instead(content, LOG, error)
    return len(fields)


def _not_a_number(fields: Iterable[bytes], number: int) -> InputError:
    wrong = next(one for one in fields if not _NUMBER.fullmatch(one)).decode("utf-8", "replace")
    return InputError(f"{shown(wrong)} is not a number of an SWF row", path=f"line {number}")


def _table(values: array[float], width: int, content: bytes) -> NDArray[np.float64]:
    if not width:
        raise InputError("the file holds no job")
    given = np.frombuffer(values, dtype=np.float64).reshape(-1, width)
    if not np.isfinite(given).all():
        row, field = np.argwhere(~np.isfinite(given))[0].tolist()
        rows = (number for number, line in numbered_lines(content) if not line.startswith(b";"))
        named = f"field {field + 1} ({SwfField(field).name.lower()})"
        path = f"line {next(islice(rows, row, None))}"
        raise InputError(f"{named}: {given[row, field]} is not finite", path=path)
    table = np.full((len(given), WIDTH), -1.0)
    table[:, :width] = given
    return table


def write_swf(path: str | Path, log: SwfLog) -> None:
    """Write a log whole or not at all, as gzip if the name ends in ``.gz``; ``-``: standard output.

    Raises:
        InputError: the file cannot be written.
    """
    content = escaped(swf_text(log)).encode()
    # mtime 0: the same log gives the same bytes.
    write_bytes(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)


def swf_text(log: SwfLog) -> str:
    """Return a log's text; reading it gives an equal log."""
    lines = [f";{comment}" for comment in log.comments]
    lines.extend(" ".join(str(shortest(one)) for one in row) for row in log.table.tolist())
    return "\n".join(lines) + "\n"
