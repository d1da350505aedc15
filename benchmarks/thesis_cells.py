"""Runs of the thesis's tables as cells: one method on one workload, over its seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds and its standard error; None of one seed."""

    value: float
    error: float | None

    @classmethod
    def of(cls, values: list[float]) -> Mean:
        """Return the mean of some values."""
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
        return cls(fmean(values), error)

    def shown(self, factor: float, digits: int) -> str:
        """Return it as text."""
        error = "" if self.error is None else f" ± {factor * self.error:.{digits}f}"
        return f"{factor * self.value:.{digits}f}{error}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One method on one workload, over its seeds."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """One of the runs: what they have in common can be read off it."""
        return self.runs[0]

    def mean(self, metric: str) -> Mean | None:
        """Return a metric's mean; None where the machine has none."""
        values = [run["metrics"].get(metric) for run in self.runs]
        return None if None in values else Mean.of(values)

    def fluid(self) -> float:
        """Return the mean fluid bound."""
        return fmean(run["fluid"] for run in self.runs)


def cells_of(rows: Iterable[Run]) -> list[Cell]:
    """Return runs by workload and method, over their seeds."""
    found: dict[tuple[str, str, bool], list[Run]] = {}
    for row in rows:
        found.setdefault((row["workload"], row["label"], row["contiguity"]), []).append(row)
    ordered = sorted(found.values(), key=lambda runs: (order(runs[0]["workload"]), runs[0]["label"]))
    return [Cell(tuple(sorted(runs, key=lambda run: run["seed"]))) for runs in ordered]


def order(workload: str) -> tuple[int, str]:
    """Return what workloads are sorted by: their number, then their name."""
    digits = "".join(letter for letter in workload if letter.isdigit())
    return (int(digits) if digits else 0, workload)
