"""What the outcomes of all runs have: figures, tables for people, CSV and JSON.

Sums are correctly rounded (``math.fsum``), so that a figure does not depend on the machine that
adds. Standard deviations are of the population: a simulation's jobs are all there are.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..cluster.tabular import Tabular
from ..cluster.value_types import shortest
from ..cluster.workload import BOUND_S
from ..formats.writing import csv_field

FORMAT = "aucsched-simulation/1"

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Step functions: entry i holds from ``times[i]``, after its pass, up to ``times[i + 1]``.

    Attributes:
        times: in seconds, rising; the last is the end of everything.
        used: processors that jobs hold.
        waiting: jobs submitted and not started.
    """

    times: Column
    used: Column
    waiting: Column

    @classmethod
    def of(cls, moments: Column, used: Column, waiting: Column) -> Self:
        """Return what changes at some moments, in any order, add up to."""
        times, place = np.unique(moments, return_inverse=True)
        return cls(
            times=times,
            used=np.cumsum(np.bincount(place, weights=used)),
            waiting=np.cumsum(np.bincount(place, weights=waiting)),
        )

    def lost_s(self, processors: int, until: float = inf) -> float:
        """Return the processor-seconds idle while a job waited (Nagendra, 7), up to a time."""
        idle = np.where(self.waiting > 0, processors - self.used, 0)
        return sum_of(idle[:-1] * np.diff(np.minimum(self.times, until)))

    def mean(self, values: Column, edges: Column) -> Column:
        """Return the time-weighted means of a step function between neighbouring edges."""
        whole = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(self.times))])
        means: Column = np.diff(np.interp(edges, self.times, whole)) / np.diff(edges)
        return means

    def most(self, values: Column, edges: Column) -> Column:
        """Return the largest values of a step function between neighbouring edges."""
        first = np.maximum(np.searchsorted(self.times, edges[:-1], side="right") - 1, 0)
        last = np.maximum(np.searchsorted(self.times, edges[1:], side="left"), first + 1)
        return np.array([values[i:j].max() for i, j in zip(first, last, strict=True)])


def bounded_slowdown(wait: Column, run: Column) -> Column:
    """Return bounded slowdowns: shorter runs count as BOUND_S seconds; they are 1 or more."""
    bounded: Column = np.maximum(1, (wait + run) / np.maximum(run, BOUND_S))
    return bounded


def sum_of(column: Column) -> float:
    """Return the sum of a column."""
    return fsum(column.tolist())


def ratio(part: float | None, whole: float) -> float | None:
    """Return a part of a whole, None where either is missing."""
    return None if part is None or not whole else part / whole


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean of values, None of no value."""
    return fsum(values) / len(values) if values else None


def mean_and_std(column: NDArray[Any]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of a column, None where it is empty."""
    if not len(column):
        return None, None
    mean = sum_of(column) / len(column)
    return mean, sqrt(sum_of((column - mean) ** 2) / len(column))


class RunReport(Tabular):
    """What came of a run: a document, a table for people, and a row for each job."""

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people, under a name of the input."""
        raise NotImplementedError

    def jobs_csv(self) -> str:
        """Return the jobs as CSV (``columns``)."""
        return csv_of(self.columns)

    def to_json(self) -> str:
        """Return the outcome's file as text: equal runs give equal bytes but for the wall time."""
        return to_json(self.to_dict())


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document's text: the same document gives the same bytes."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def metric_lines(
    values: Mapping[str, Any], columns: Mapping[str, tuple[str, str]], rows: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Return a table's lines: ``columns`` have mean, deviation and maximum, ``rows`` one figure.

    Both map what people read to a metric's name and unit.
    """
    lines = ["", f"{'':<22}{'mean':>16}{'std':>16}{'max':>16}"]
    for label, (metric, unit) in columns.items():
        figures = (shown(values.get(f"{metric}_{part}{unit}")) for part in ("mean", "std", "max"))
        lines.append(f"{label + (' (s)' if unit else ''):<22}" + "".join(f"{text:>16}" for text in figures))
    lines.append("")
    for label, (metric, unit) in rows.items():
        lines.append(f"{label:<22}{shown(values[metric]):>16} {unit}".rstrip())
    return lines


def count_lines(counts: Mapping[str, Any], width: int = 22) -> list[str]:
    """Return a line for each figure, under its own name."""
    return [f"{name.replace('_', ' '):<{width}}{shown(value):>16}" for name, value in counts.items()]


def speed_line(jobs: int, seconds: float) -> str:
    """Return the line that says how long a simulation took."""
    return f"{'simulated in':<22}{seconds:>16.3f} s ({jobs / seconds if seconds else 0:,.0f} jobs/s)"


def shown(value: float | None) -> str:
    """Return a figure as a table has it."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def csv_of(columns: Mapping[str, Sequence[Any]], *, quoted: str = "") -> str:
    """Return columns as CSV: floats as short as they read back exactly, nothing for None.

    Args:
        columns: a value for each row, by name.
        quoted: a column whose texts are always in quotes.

    Examples:
        >>> csv_of(dict(job=["a,b", "c"], start_s=[1234567.0, 0.1], wait_s=[None, 2.5])).split()
        ['job,start_s,wait_s', '"a,b",1234567,', 'c,0.1,2.5']
    """
    cells = {
        name: [_cell(one) if one is None or name != quoted else f'"{one}"' for one in values]
        for name, values in columns.items()
    }
    return "\n".join([",".join(columns), *map(",".join, zip(*cells.values(), strict=True))]) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(shortest(value)) if isinstance(value, float) else csv_field(str(value))
