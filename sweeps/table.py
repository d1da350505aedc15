"""The rows of a sweep as files: CSV, and Parquet with the extra ``data``. Both hold the same values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..cluster.errors import OptionError
from ..formats.binary import write_bytes
from ..formats.native.write import write_text
from .axes import AXES, Row, Value

SUFFIXES = (".csv", ".parquet")

#: Columns in front of all others, and behind them.
_FIRST = ("run", "input", "input_sha256")
_LAST = ("aucsched", "highspy", "python")
#: The options of a run, as far as its kind reads them.
_OPTIONS = (
    *AXES,
    *(
        "candidates",
        "class_limits_s",
        "lookahead_ties",
        "multifactor",
        "flexible",
        "bid_order",
        "repeat",
        "seed",
    ),
)
#: Columns that hold whole numbers or texts also where every value is missing; what is not named here holds
#: floats unless its values say otherwise.
_WHOLE = frozenset(
    {"run", "seed", "repeat", "reserve", "reservations", "processors", "work_limit"}
    | {"window", "max_bids", "max_bids_per_job", "max_attempts", "depth", "parts"}
)
_TEXT = frozenset((*_FIRST[1:], *_LAST, "preset", "status", "error", "topology", "preempt", "award_alone"))


def check_tables(paths: Sequence[Path]) -> None:
    """Refuse files that could not be written, before time is spent on what they would hold.

    Raises:
        OptionError: a suffix is none there is a table for, a name stands twice, or pyarrow is not installed.
    """
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise OptionError(f"-o {path}: the name ends in none of {', '.join(SUFFIXES)}")
        if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
            raise OptionError(f"-o {path} needs pyarrow: pip install 'aucsched[data]'")
    if len(set(paths)) < len(paths):
        raise OptionError("-o: a file stands twice")


def columns_of(rows: Iterable[Row]) -> list[str]:
    """Return the columns of all rows: the input's, the options, the result's, seconds, versions."""
    seen = dict.fromkeys(name for row in rows for name in row)
    seconds = [name for name in seen if name.startswith("seconds")]
    options = [name for name in _OPTIONS if name in seen]
    framed = {*_FIRST, *options, *_LAST, *seconds, "error"}
    result = [name for name in seen if name not in framed]
    return [*_FIRST, *options, *result, "error", *seconds, *_LAST]


def type_of(name: str, rows: Iterable[Row]) -> type[int | float | str]:
    """Return what a column holds: texts, whole numbers or floats."""
    if name in _TEXT:
        return str
    kinds = {type(value) for row in rows if (value := row.get(name)) is not None}
    if str in kinds:
        return str
    return int if kinds == {int} or (not kinds and name in _WHOLE) else float


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows whole or not at all, in the form the name's suffix says.

    Raises:
        InputError: the file cannot be written.
    """
    if path.suffix.lower() == ".parquet":
        write_bytes(path, to_parquet(rows))
    else:
        write_text(path, to_csv(rows))


def to_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV; a missing value is an empty field, floats read back exactly."""
    columns = columns_of(rows)
    types = {name: type_of(name, rows) for name in columns}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_as(types[name], row.get(name)) for name in columns] for row in rows)
    return text.getvalue()


def to_parquet(rows: Sequence[Row]) -> bytes:
    """Return the rows as Parquet: 64-bit integers, 64-bit floats, texts; a missing value is null."""
    import pyarrow as pa  # noqa: PLC0415 - the extra may be absent
    from pyarrow import parquet  # noqa: PLC0415

    arrow = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    columns = columns_of(rows)
    types = {name: type_of(name, rows) for name in columns}
    arrays = {
        name: pa.array([_as(types[name], row.get(name)) for row in rows], type=arrow[types[name]])
        for name in columns
    }
    sink = io.BytesIO()
    parquet.write_table(pa.table(arrays), sink)
    return sink.getvalue()


def _as(kind: type[int | float | str], value: Value) -> Value:
    return None if value is None else kind(value)
