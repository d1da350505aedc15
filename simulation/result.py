"""A finished simulation, and the machine's use over its time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .log_columns import Workload
from .stepping import NEVER, StoppedRun

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
    def cut_short(self) -> CutShort:
        """The runs that were stopped before their end."""
        runs = np.array(self.stopped or (), dtype=np.float64).reshape(-1, 3)
        size = np.array(
            [self.workload.requests.size[job] for job, _, _ in self.stopped or ()], dtype=np.float64
        )
        return CutShort(start=runs[:, 1], end=runs[:, 2], size=size, waits=np.ones(len(runs)))

    @cached_property
    def timeline(self) -> Timeline:
        """The machine's use over time."""
        return _timeline(self)


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


def _timeline(result: Result) -> Timeline:
    requests = result.workload.requests
    submit = np.asarray(requests.submit, dtype=np.float64)
    cut = result.cut_short
    moments = np.concatenate([submit, result.start, result.end, cut.start, cut.end])
    times, place = np.unique(moments, return_inverse=True)
    still = np.zeros(len(result.start))
    used = np.concatenate([np.zeros(len(submit)), result.size, -result.size, cut.size, -cut.size])
    waiting = np.concatenate([np.ones(len(submit)), still - 1, still, -cut.waits, cut.waits])
    return Timeline(
        times=times,
        used=np.cumsum(np.bincount(place, weights=used)),
        waiting=np.cumsum(np.bincount(place, weights=waiting)),
    )
