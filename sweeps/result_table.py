"""The rows of a sweep as files and as a summary: CSV, Parquet with the extra ``data``, text.

Both files hold the same values.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ..cluster.option_fields import options_in
from ..cluster.text import plural
from ..reports.console_tables import FIGURES, figure_columns, table_of
from ..reports.table_files import kind_of, write_columns
from ..simulation.simulate_options import PolicyOptions
from .axes import AXES, Row

#: Columns in front of all others, and behind them.
_FIRST = ("run", "input", "input_sha256")
_LAST = ("aucsched", "highspy", "python")
#: The options of a run, as far as its kind reads them.
_OPTIONS = (
    *AXES,
    *(name for name in options_in(PolicyOptions) if name not in AXES),
    *("repeat", "seed"),
)
#: Columns that hold whole numbers or texts also where every value is missing; what is not named
#: here holds floats unless its values say otherwise.
_WHOLE = frozenset({"run", "seed", "repeat"} | {name for name, one in AXES.items() if one.is_whole})
_TEXT = frozenset(
    {*_FIRST[1:], *_LAST, "status", "error", "topology"}
    | {name for name, one in AXES.items() if one.what in {"a name", "on or off"}}
)


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
    values = [value for row in rows if (value := row.get(name)) is not None]
    return int if not values and name in _WHOLE else kind_of(values)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows whole or not at all, in the form the name's suffix says.

    Raises:
        InputError: the file cannot be written.
    """
    columns = {name: [row.get(name) for row in rows] for name in columns_of(rows)}
    write_columns(path, columns, {name: type_of(name, rows) for name in columns})


#: Lines of the table.
_LINES = 24


def render_sweep(columns: Mapping[str, Sequence[Any]], axes: Sequence[str], console: Console) -> None:
    """Print the table: one line for each point of the grid, with means over its repetitions."""
    count = len(columns["run"])
    varied = [axis for axis in axes if len(set(columns.get(axis, ()))) > 1]
    points: dict[tuple[Any, ...], list[int]] = {}
    for row in range(count):
        points.setdefault(tuple(columns[axis][row] for axis in varied), []).append(row)
    lines = [
        dict(zip(varied, point, strict=True))
        | {name: _mean(columns[name], rows) for name in FIGURES if name in columns}
        for point, rows in list(points.items())[:_LINES]
    ]
    failed = sum(status == "failed" for status in columns.get("status", ()))
    title = f"{plural(count, 'run')}, {plural(len(points), 'point')}" + (
        f", {failed} failed" if failed else ""
    )
    console.print(table_of(title, figure_columns(varied, lines), lines, console, rest="the table of -o"))
    if len(points) > _LINES:
        console.print(f"… and {plural(len(points) - _LINES, 'more point')} in the table")


def _mean(values: Sequence[Any], rows: Sequence[int]) -> float | None:
    known = [values[row] for row in rows if isinstance(values[row], (int, float))]
    return sum(known) / len(known) if known else None
