"""A finished simulation, the machine's use over its time, and its metrics (Soner, 7.4; Nagendra, 7).

Sums are correctly rounded (``math.fsum``), so that a figure does not depend on the machine that
adds. Standard deviations are of the population: a simulation's jobs are all there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.value_types import shortest
from .log_columns import Workload
from .stepping import LEFT_WAITING, NEVER, StoppedRun

Column = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Result:
    """Who started when under which policy.

    Not slotted: its columns are computed when first asked for, and kept.

    Attributes:
        policy: its name in POLICIES.
        order: the queue order's name.
        starts: by job, seconds after the first submission; NEVER where it had none.
        seconds: wall time of the simulation itself, without reading and writing.
        stopped: the runs that the policy stopped before their end; None for one that never does.
        refused: fixed-time requests that the policy refused; None where none was submitted.
    """

    workload: Workload
    policy: str
    order: str
    starts: tuple[float, ...]
    seconds: float
    stopped: tuple[StoppedRun, ...] | None = None
    refused: tuple[str, ...] | None = None

    @cached_property
    def started(self) -> NDArray[np.intp]:
        """The jobs that started, by number."""
        return np.flatnonzero(np.asarray(self.starts) != NEVER)

    @property
    def never_started(self) -> list[dict[str, str]]:
        """The jobs that never started, each with its id as ``job`` and its ``reason``."""
        left = np.flatnonzero(np.asarray(self.starts) == NEVER).tolist()
        return [{"job": str(self.workload.ids[job]), "reason": LEFT_WAITING} for job in left]

    @cached_property
    def submit(self) -> Column:
        """Submissions of the started jobs in seconds."""
        return np.asarray(self.workload.requests.submit, dtype=np.float64)[self.started]

    @cached_property
    def start(self) -> Column:
        """Starts of the started jobs in seconds."""
        return np.asarray(self.starts, dtype=np.float64)[self.started]

    @cached_property
    def run(self) -> Column:
        """Run times of the started jobs in seconds."""
        return np.asarray(self.workload.run, dtype=np.float64)[self.started]

    @cached_property
    def size(self) -> Column:
        """Processors of the started jobs."""
        return np.asarray(self.workload.requests.size, dtype=np.float64)[self.started]

    @property
    def end(self) -> Column:
        """Ends of the started jobs in seconds."""
        return self.start + self.run

    @property
    def wait(self) -> Column:
        """Waiting times of the started jobs in seconds."""
        return self.start - self.submit

    @cached_property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end; 0 when nothing started."""
        return float(self.end.max()) if len(self.started) else 0.0

    @property
    def cut_short(self) -> "CutShort":
        """The runs that were stopped before their end."""
        runs = np.array(self.stopped or (), dtype=np.float64).reshape(-1, 3)
        size = np.array(
            [self.workload.requests.size[job] for job, _, _ in self.stopped or ()], dtype=np.float64
        )
        return CutShort(start=runs[:, 1], end=runs[:, 2], size=size, waits=np.ones(len(runs)))

    @cached_property
    def timeline(self) -> "Timeline":
        """The machine's use over time."""
        submit = np.asarray(self.workload.requests.submit, dtype=np.float64)
        cut, still = self.cut_short, np.zeros(len(self.start))
        moments = np.concatenate([submit, self.start, self.end, cut.start, cut.end])
        times, place = np.unique(moments, return_inverse=True)
        used = np.concatenate([np.zeros(len(submit)), self.size, -self.size, cut.size, -cut.size])
        waiting = np.concatenate([np.ones(len(submit)), still - 1, still, -cut.waits, cut.waits])
        return Timeline(
            times=times,
            used=np.cumsum(np.bincount(place, weights=used)),
            waiting=np.cumsum(np.bincount(place, weights=waiting)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CutShort:
    """Runs that were stopped before their end, a column each.

    Attributes:
        start, end: in seconds after the first submission.
        size: processors.
        waits: 1 where the job is one of the workload's, which waits again; 0 where it counts nowhere else.
    """

    start: Column
    end: Column
    size: Column
    waits: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Step functions: entry i holds from ``times[i]`` up to ``times[i + 1]``, after the pass at ``times[i]``.

    Attributes:
        times: in seconds, rising; the last is the end of everything.
        used: processors that jobs hold.
        waiting: jobs submitted and not started.
    """

    times: Column
    used: Column
    waiting: Column

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

    With run times t, processors R, waiting times w, response times r = w + t, and A processors in
    all:

    - ``theoretical_runtime_s``: Σ t·R / A (7.2); ``makespan_s``: first submission to last end;
      ``cpu_utilization``: their ratio (7.3).
    - ``wait``, ``response``; ``slowdown``: r / t; ``bounded_slowdown``: max(1, r / max(t, 10 s)).
    - ``response_weighted_by_width_s``: Σ R·r / Σ R; ``slowdown_weighted_by_area``: Σ tR·(r/t) / Σ
      tR.
    - ``throughput_per_h``: jobs over the makespan in hours.
    - ``loss_of_capacity``: the share of A × makespan that was idle while any job waited.
    """
    values: dict[str, float | None] = {
        "makespan_s": shortest(result.makespan) if len(result.started) else None,
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
        values[f"{name}_max{unit}"] = shortest(float(column.max())) if len(column) else None
    area = result.run * result.size
    values["response_weighted_by_width_s"] = _ratio(_sum(result.size * response), _sum(result.size))
    values["slowdown_weighted_by_area"] = _ratio(_sum(area * (response / result.run)), _sum(area))
    values["throughput_per_h"] = _ratio(len(result.started) * _HOUR_S, result.makespan)
    # Processor-seconds idle while a job waited, of all processor-seconds (Nagendra, chapter 7).
    processors, line = result.workload.requests.processors, result.timeline
    idle = np.where(line.waiting > 0, processors - line.used, 0)[:-1] * np.diff(line.times)
    values["loss_of_capacity"] = _ratio(_sum(idle), processors * result.makespan)
    values |= dict.fromkeys(_NEEDS_NODES)
    return values


def bounded_slowdown(wait_s: float, run_s: float) -> float:
    """Return the bounded slowdown: shorter runs count as BOUND_S seconds; it is 1 or more."""
    return max(1.0, (wait_s + run_s) / max(run_s, BOUND_S))


def _sum(column: Column) -> float:
    return fsum(column.tolist())


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
