"""In which workloads an ordering that the thesis claims of two methods holds between our means."""

from __future__ import annotations

from math import sqrt
from typing import Any

from thesis_cells import Cell
from thesis_tables import Ordering

#: Standard errors from which on a difference of two means is said to be clear.
_CLEAR = 2.0


def held(ordering: Ordering, cells: list[Cell]) -> str:
    """Return in which workloads an ordering of the thesis holds between means, and where clearly."""
    by_name = {(cell.first["workload"], _bare(cell.first)): cell for cell in cells}
    workloads = list(dict.fromkeys(cell.first["workload"] for cell in cells))
    pairs = [
        (one, *_of_same_seeds(by_name[one, ordering.first], by_name[one, ordering.second]))
        for one in ordering.workloads or workloads
        if (one, ordering.first) in by_name and (one, ordering.second) in by_name
    ]
    pairs = [pair for pair in pairs if pair[1].runs]
    if not pairs:
        return ""
    holds: list[str] = []
    clear: list[str] = []
    against: list[str] = []
    for one, first, second in pairs:
        gain = _gain(ordering, first, second)
        (holds if gain > 0 else against).append(one)
        if gain and abs(gain) >= _CLEAR * _error(ordering, first, second):
            clear.append(one)
    word = "more" if ordering.more else "less"
    return (
        f"- {ordering.first} has {word} `{ordering.metric}` than {ordering.second}: {len(holds)} of"
        f" {len(pairs)} (yes: {', '.join(holds) or '–'}; no: {', '.join(against) or '–'};"
        f" by two standard errors or more: {', '.join(clear) or '–'})"
    )


def _of_same_seeds(one: Cell, other: Cell) -> tuple[Cell, Cell]:
    """Return two cells with the runs of the seeds that both have: the same workloads on both sides."""
    seeds = {run["seed"] for run in one.runs} & {run["seed"] for run in other.runs}
    first, second = (Cell(tuple(run for run in cell.runs if run["seed"] in seeds)) for cell in (one, other))
    return first, second


def _bare(run: dict[str, Any]) -> str:
    """Return a label without an experiment's number."""
    return str(run["label"]).split(": ")[-1]


def _gain(ordering: Ordering, first: Cell, second: Cell) -> float:
    one, other = first.mean(ordering.metric), second.mean(ordering.metric)
    if one is None or other is None:
        return 0.0
    return (one.value - other.value) * (1 if ordering.more else -1)


def _error(ordering: Ordering, first: Cell, second: Cell) -> float:
    """Return the standard error of the difference of two means; infinity of one seed."""
    means = (first.mean(ordering.metric), second.mean(ordering.metric))
    errors = [float("inf") if one is None or one.error is None else one.error for one in means]
    return sqrt(sum(error**2 for error in errors))
