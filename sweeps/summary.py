"""A summary of a finished sweep: the varied options and the most important figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..cluster.text import counted

#: Columns of the table: metric, what people read, what it is multiplied by, digits after the point.
_FIGURES = (
    ("priority", "priority", 1.0, 0),
    ("gap", "gap %", 100.0, 2),
    ("wait_mean_s", "mean wait s", 1.0, 0),
    ("wait_max_s", "longest s", 1.0, 0),
    ("bounded_slowdown_mean", "slowdown", 1.0, 1),
    ("cpu_utilization", "CPU %", 100.0, 1),
    ("seconds.run", "run s", 1.0, 2),
)
#: Lines of the table, and figures beside each other.
_LINES, _MOST_FIGURES = 24, 4


def summary(columns: Mapping[str, Sequence[Any]], axes: Sequence[str]) -> str:
    """Return the table: one line for each point of the grid, with means over its repetitions.

    Args:
        columns: of the sweep's table.
        axes: the options that were given, by column.
    """
    count = len(columns["run"])
    varied = [axis for axis in axes if len(set(columns.get(axis, ()))) > 1]
    figures = [one for one in _FIGURES if _has_numbers(columns.get(one[0], ()))][:_MOST_FIGURES]
    points: dict[tuple[Any, ...], list[int]] = {}
    for row in range(count):
        points.setdefault(tuple(columns[axis][row] for axis in varied), []).append(row)
    table = [[*varied, *(label for _, label, _, _ in figures)]]
    for point, rows in list(points.items())[:_LINES]:
        cells = ["" if value is None else f"{value}" for value in point]
        table.append([*cells, *(_mean(columns[name], rows, by, digits) for name, _, by, digits in figures)])
    failed = sum(status == "failed" for status in columns.get("status", ()))
    lines = [
        f"{counted(count, 'run')}, {counted(len(points), 'point')}" + (f", {failed} failed" if failed else "")
    ]
    lines += _laid_out(table, len(varied)) if varied or figures else []
    if len(points) > _LINES:
        lines.append(f"… and {counted(len(points) - _LINES, 'more point')} in the table")
    return "\n".join(lines) + "\n"


def _has_numbers(values: Sequence[Any]) -> bool:
    return any(isinstance(value, (int, float)) for value in values)


def _mean(values: Sequence[Any], rows: Sequence[int], by: float, digits: int) -> str:
    known = [values[row] for row in rows if isinstance(values[row], (int, float))]
    return f"{by * sum(known) / len(known):.{digits}f}" if known else "-"


def _laid_out(table: Sequence[Sequence[str]], texts: int) -> list[str]:
    """Return rows in columns: the first ``texts`` to the left, figures to the right."""
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in table
    ]
