"""The metrics of a simulation (Soner, section 7.4; Nagendra, chapter 7).

Sums are correctly rounded (``math.fsum``), so that a figure does not depend on the machine that adds.
Standard deviations are of the population: a simulation's jobs are all there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .result import Column, Result

#: Bounded slowdown counts shorter run times as this many seconds.
BOUND_S = 10.0
_HOUR_S = 3600

#: What needs nodes, gres or a topology, which a counts-only machine has not: always null there.
_NEEDS_NODES = (
    "gpu_utilization",
    "spread_mean",
    "spread_std",
    "span_mean",
    "span_std",
    "level_mean",
    "level_std",
    "level_job_shares",
    "level_time_shares",
    "fragmentation_mean",
    "fragmentation_std",
    "packing_factor_mean",
    "packing_factor_std",
)


def metrics(result: Result) -> dict[str, float | None]:
    """Return every metric by name, None where the run cannot have it; times in seconds.

    With run times t, processors R, waiting times w, response times r = w + t, and A processors in all:

    - ``theoretical_runtime_s``: Σ t·R / A (7.2); ``makespan_s``: first submission to last end;
      ``cpu_utilization``: their ratio (7.3).
    - ``wait``, ``response``; ``slowdown``: r / t; ``bounded_slowdown``: max(1, r / max(t, 10 s)).
    - ``response_weighted_by_width_s``: Σ R·r / Σ R; ``slowdown_weighted_by_area``: Σ tR·(r/t) / Σ tR.
    - ``throughput_per_h``: jobs over the makespan in hours.
    - ``loss_of_capacity``: the share of A × makespan that was idle while any job waited.
    """
    values: dict[str, float | None] = {
        "makespan_s": _number(result.makespan) if len(result.started) else None,
        "theoretical_runtime_s": _theoretical_runtime(result),
        "cpu_utilization": _ratio(_theoretical_runtime(result), result.makespan),
    }
    response = result.wait + result.run
    columns = {
        "wait": ("_s", result.wait),
        "response": ("_s", response),
        "slowdown": ("", response / result.run),
        "bounded_slowdown": ("", np.maximum(1, response / np.maximum(result.run, BOUND_S))),
    }
    for name, (unit, column) in columns.items():
        values[f"{name}_mean{unit}"], values[f"{name}_std{unit}"] = mean_and_std(column)
        values[f"{name}_max{unit}"] = _number(float(column.max())) if len(column) else None
    area = result.run * result.size
    values["response_weighted_by_width_s"] = _ratio(_sum(result.size * response), _sum(result.size))
    values["slowdown_weighted_by_area"] = _ratio(_sum(area * (response / result.run)), _sum(area))
    values["throughput_per_h"] = _ratio(len(result.started) * _HOUR_S, result.makespan)
    values["loss_of_capacity"] = _loss_of_capacity(result)
    values |= dict.fromkeys(_NEEDS_NODES)
    return values


def _sum(column: Column) -> float:
    return fsum(column.tolist())


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


def _ratio(part: float | None, whole: float) -> float | None:
    return None if part is None or not whole else part / whole


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean of values, None of no value."""
    return fsum(values) / len(values) if values else None


def mean_and_std(column: NDArray[Any]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of a column, None where it is empty."""
    if not len(column):
        return None, None
    mean = _sum(column) / len(column)
    return mean, sqrt(_sum((column - mean) ** 2) / len(column))


def _theoretical_runtime(result: Result) -> float | None:
    """(7.2), over the jobs that started."""
    if not len(result.started):
        return None
    return _sum(result.run * result.size) / result.workload.requests.processors


def _loss_of_capacity(result: Result) -> float | None:
    """Processor-seconds idle while a job waited, of all processor-seconds (Nagendra, chapter 7)."""
    processors = result.workload.requests.processors
    timeline = result.timeline
    idle = np.where(timeline.waiting > 0, processors - timeline.used, 0)[:-1] * np.diff(timeline.times)
    return _ratio(_sum(idle), processors * result.makespan)
