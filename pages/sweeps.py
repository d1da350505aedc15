"""The page of a sweep: every run in a table, and any column over any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..cluster.text import counted
from .page import page_of, table

#: Columns that are drawn first, where a sweep has them.
_UP = ("priority", "wait_mean_s", "cpu_utilization")


def sweep_page(columns: Mapping[str, Sequence[Any]], axes: Sequence[str], name: str) -> str:
    """Return the page of a sweep.

    Args:
        columns: of its table.
        axes: the options that were varied, by column.
        name: of the input.
    """
    runs = len(next(iter(columns.values()), []))
    varied = [axis for axis in axes if axis in columns] or ["run"]
    up = next((one for one in _UP if one in columns), varied[0])
    labelled = [one for one in (*varied, "seed", up) if one in columns]
    scatter = {
        "kind": "scatter",
        "title": "Any column over any other",
        "columns": {one: list(values) for one, values in columns.items()},
        "x": varied[0],
        "y": up,
        "color": varied[1] if len(varied) > 1 else "",
        "labels": list(dict.fromkeys(labelled)),
    }
    return page_of(
        f"Sweep over {name}",
        f"{counted(runs, 'run')}; {', '.join(varied)}",
        [scatter, table("Runs", {name: one for name, one in columns.items() if name != "input_sha256"})],
    )
