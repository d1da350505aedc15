"""A result's table as a file: CSV, Parquet with the extra ``data``, JSON, or a page.

CSV and Parquet hold the same values; a missing one is an empty field or null.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError, path_of
from ..formats.writing import write_bytes, write_text

if TYPE_CHECKING:
    from ..cluster.tabular import Tabular

#: What columns hold: texts, whole numbers or floats.
Kind = type[int | float | str]
#: Ends of the names of tables, and of whatever else a result can be saved as.
SUFFIXES = (".csv", ".parquet")
RESULT_SUFFIXES = (*SUFFIXES, ".json", ".html")


def check_suffix(option: str, path: Path, suffixes: Sequence[str] = RESULT_SUFFIXES) -> None:
    """Refuse a file that could not be written.

    Raises:
        OptionError: its suffix is none there is a form for, or pyarrow is not installed.
    """
    if path.suffix.lower() not in suffixes:
        raise OptionError(f"{option} {path}: the name ends in none of {', '.join(suffixes)}")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise OptionError(f"{option} {path} needs pyarrow: pip install 'aucsched[data]'")


def save_result(result: Tabular, path: str | Path) -> None:
    """Write a result in the form that the name's suffix says: its table, its document, or a page.

    Raises:
        InputError: the file cannot be written.
        OptionError: there is no such form, or pyarrow is not installed.
    """
    target = path_of(path)
    check_suffix("save", target)
    if target.suffix.lower() == ".json":
        write_text(target, result.to_json())
    elif target.suffix.lower() == ".html":
        write_text(target, f"<!doctype html>\n<meta charset=utf-8>\n{result._repr_html_()}\n")
    else:
        columns = result.columns
        write_columns(target, columns, {name: kind_of(values) for name, values in columns.items()})


def kind_of(values: Sequence[Any]) -> Kind:
    """Return what a column holds: whole numbers or floats where all its values are, else texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return int
    return float if kinds <= {int, float} else str


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> None:
    """Write columns whole or not at all, in the form the name's suffix says.

    Raises:
        InputError: the file cannot be written.
    """
    if path.suffix.lower() == ".parquet":
        write_bytes(path, to_parquet(columns, kinds))
    else:
        write_text(path, to_csv(columns, kinds))


def to_csv(columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> str:
    """Return columns as CSV; floats read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_as(kinds[name], values) for name, values in columns.items()), strict=True))
    return text.getvalue()


def to_parquet(columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> bytes:
    """Return columns as Parquet: 64-bit integers, 64-bit floats, texts."""
    import pyarrow as pa  # noqa: PLC0415 - the extra may be absent
    from pyarrow import parquet  # noqa: PLC0415

    arrow = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    arrays = {
        name: pa.array(_as(kinds[name], values), type=arrow[kinds[name]]) for name, values in columns.items()
    }
    sink = io.BytesIO()
    parquet.write_table(pa.table(arrays), sink)
    return sink.getvalue()


def _as(kind: Kind, values: Sequence[Any]) -> list[Any]:
    return [None if value is None else kind(value) for value in values]
