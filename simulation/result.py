"""A finished simulation: the machine's use, its metrics (Soner, 7.4; Nagendra, 7), its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..cluster.keywords import of_type
from ..cluster.tabular import chart as drawing
from ..cluster.text import plural
from ..cluster.value_types import shortest
from ..formats.swf import SwfField, SwfLog
from .events import HOUR_S
from .log_columns import Workload, describe_dropped
from .placement import Runs, Stay, lowest_first
from .report import (
    FORMAT,
    Column,
    RunReport,
    Timeline,
    bounded_slowdown,
    count_lines,
    mean_and_std,
    metric_lines,
    ratio,
    speed_line,
    sum_of,
)
from .stepping import LEFT_WAITING, NEVER, StoppedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The columns of Batsim 4's ``…_jobs.csv``.
BATSIM_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,"
    "final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
    "allocated_resources,consumed_energy,metadata"
)

#: Metrics of a summary.
_SUMMARY = (
    "cpu_utilization",
    "gpu_utilization",
    "wait_mean_s",
    "wait_max_s",
    "bounded_slowdown_mean",
    "makespan_s",
    "throughput_per_h",
)
#: What needs nodes, gres or a topology, which a counts-only machine has not: always null there.
_NEEDS_NODES = (
    "gpu_utilization",
    *(f"{name}_{part}" for name in ("spread", "span", "level") for part in ("mean", "std")),
    *("level_job_shares", "level_time_shares"),
    *(f"{name}_{part}" for name in ("fragmentation", "packing_factor") for part in ("mean", "std")),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(RunReport):
    r"""A finished simulation: when each job started, and under which policy.

    ``metrics`` holds every figure by name, times in seconds; ``columns`` a row for each job.
    Not slotted: its columns are computed when first asked for, and kept.

    Attributes:
        policy: its name in POLICIES.
        order: the queue order's name.
        starts: by job, seconds after the first submission; NEVER where it had none.
        seconds: wall time of the simulation itself, without reading and writing.
        stopped: the runs that the policy stopped before their end; None for one that never does.
        refused: fixed-time requests that the policy refused; None where none was submitted.
        spreads, figures: of the table for people, what they read -> a metric's name and unit: those
            of mean, deviation and maximum, and those of one figure.
        settings: the policy's options beyond its name and order.
        name: of the log or workload.

    Examples:
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 0 10 3 0 0 3 10\n2 1 0 10 2 0 0 2 10\n")
        >>> found = aucsched.simulate(log)
        >>> found.metrics["wait_mean_s"], found.columns["wait_s"]
        (4.5, [0.0, 9.0])
    """

    spreads: ClassVar[Mapping[str, tuple[str, str]]] = {
        "wait": ("wait", "_s"),
        "response": ("response", "_s"),
        "slowdown": ("slowdown", ""),
        "bounded slowdown": ("bounded_slowdown", ""),
    }
    figures: ClassVar[Mapping[str, tuple[str, str]]] = {
        "makespan": ("makespan_s", "s"),
        "theoretical run time": ("theoretical_runtime_s", "s"),
        "CPU utilisation": ("cpu_utilization", ""),
        "loss of capacity": ("loss_of_capacity", ""),
        "throughput": ("throughput_per_h", "jobs/h"),
        "response by width": ("response_weighted_by_width_s", "s"),
        "slowdown by area": ("slowdown_weighted_by_area", ""),
    }

    workload: Workload
    policy: str
    order: str
    starts: tuple[float, ...]
    seconds: float = field(compare=False)
    stopped: tuple[StoppedRun, ...] | None = None
    refused: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def result(self) -> Self:
        """The run itself, when each job started and on a machine of nodes where."""
        return self

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
    def timeline(self) -> Timeline:
        """The machine's use over time."""
        submit = np.asarray(self.workload.requests.submit, dtype=np.float64)
        cut, still = self.cut_short, np.zeros(len(self.start))
        moments = np.concatenate([[0.0], submit, self.start, self.end, cut.start, cut.end])
        used = np.concatenate([np.zeros(1 + len(submit)), self.size, -self.size, cut.size, -cut.size])
        waiting = np.concatenate([[0.0], np.ones(len(submit)), still - 1, still, -cut.waits, cut.waits])
        return Timeline.of(moments, used, waiting)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Every metric by name, None where the run cannot have it; times in seconds.

        With run times t, processors R, waiting times w, response times r = w + t, and A processors
        in all:

        - ``theoretical_runtime_s``: Σ t·R / A (7.2); ``makespan_s``: first submission to last end;
          ``cpu_utilization``: their ratio (7.3).
        - ``wait``, ``response``; ``slowdown``: r/t; ``bounded_slowdown``: max(1, r / max(t, 10 s)).
        - ``response_weighted_by_width_s``: Σ R·r / Σ R; ``slowdown_weighted_by_area``: Σ tR·(r/t) /
          Σ tR.
        - ``throughput_per_h``: jobs over the makespan in hours.
        - ``loss_of_capacity``: the share of A × makespan that was idle while any job waited; on
          nodes, any that starts later.
        """
        theoretical = self._theoretical_s() if len(self.started) else None
        values: dict[str, Any] = {
            "makespan_s": shortest(self.makespan) if len(self.started) else None,
            "theoretical_runtime_s": theoretical,
            "cpu_utilization": ratio(theoretical, self.makespan),
        }
        wait, run, size = self.wait, self.run, self.size
        response = wait + run
        columns = {
            "wait": ("_s", wait),
            "response": ("_s", response),
            "slowdown": ("", response / run),
            "bounded_slowdown": ("", bounded_slowdown(wait, run)),
        }
        for name, (unit, column) in columns.items():
            values[f"{name}_mean{unit}"], values[f"{name}_std{unit}"] = mean_and_std(column)
            values[f"{name}_max{unit}"] = shortest(float(column.max())) if len(column) else None
        area = run * size
        values["response_weighted_by_width_s"] = ratio(sum_of(size * response), sum_of(size))
        values["slowdown_weighted_by_area"] = ratio(sum_of(area * (response / run)), sum_of(area))
        values["throughput_per_h"] = ratio(len(self.started) * HOUR_S, self.makespan)
        whole = self.workload.requests.processors
        lost = self.timeline.lost_s(whole, self.makespan)
        values["loss_of_capacity"] = ratio(lost, whole * self.makespan)
        return values | dict.fromkeys(_NEEDS_NODES)

    def _theoretical_s(self) -> float:
        """Return (7.2), over the jobs that started."""
        return sum_of(self.run * self.size) / self.workload.requests.processors

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission, by column; None where a job never started.

        ``nodes`` is empty: the machine counts processors only.
        """
        workload, requests = self.workload, self.workload.requests
        starts = [None if start == NEVER else float(start) for start in self.starts]
        runs, submits = workload.run, requests.submit
        return {
            "id": list(workload.ids),
            "submit_s": [float(submit) for submit in submits],
            "start_s": starts,
            "end_s": [
                None if start is None else start + run for start, run in zip(starts, runs, strict=True)
            ],
            "cores": list(requests.size),
            "nodes": [""] * len(starts),
            "wait_s": [
                None if one is None else round(one - sub, 6) for one, sub in zip(starts, submits, strict=True)
            ],
            "run_s": [float(run) for run in runs],
            "estimate_s": [float(estimate) for estimate in requests.estimate],
            "user": list(requests.user),
        }

    @property
    def placed(self) -> dict[int, Runs]:
        """The processors of each started job: the lowest-numbered that are free when it starts.

        Jobs that start together take theirs in order of submission.
        """
        starts, run, size = self.starts, self.workload.run, self.workload.requests.size
        stays = {
            job: Stay(starts[job], starts[job] + run[job], [(0, size[job])]) for job in self.started.tolist()
        }
        return lowest_first([self.workload.requests.processors], stays)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome's file (``aucsched-simulation/1``) as plain values."""
        workload = self.workload
        return {
            "format": FORMAT,
            "policy": self.policy,
            "order": self.order,
            **self.settings,
            "processors": workload.requests.processors,
            "jobs": len(self.started),
            "rows": workload.rows,
            "dropped": {reason.value: count for reason, count in workload.dropped.items()},
            "killed_at_estimate": len(workload.killed.intersection(self.started.tolist())),
            **self._stopped(),
            **({} if self.refused is None else {"refused_requests": list(self.refused)}),
            "never_started": self.never_started,
            "seconds": round(self.seconds, 6),
            **self._members_of_machine(),
            "metrics": dict(self.metrics),
        }

    def _stopped(self) -> dict[str, float]:
        """Return how many runs the policy stopped, and what they had used for nothing."""
        if self.stopped is None:
            return {}
        size = self.workload.requests.size
        lost = fsum(size[job] * (end - start) for job, start, end in self.stopped)
        return {"stopped_runs": len(self.stopped), "stopped_processor_s": lost}

    def _members_of_machine(self) -> dict[str, Any]:
        """Return what the document says of this kind of machine alone."""
        return {}

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people, under a name of the input."""
        workload = self.workload
        order = "" if self.order == "fcfs" else f", {self.order} order"
        machine = plural(workload.requests.processors, "processor")
        lines = [f"{name}: {self.policy}{order}, {plural(len(self.started), 'job')} on {machine}"]
        lines += metric_lines(self.metrics, self.spreads, self.figures)
        lines += count_lines(self._stopped())
        if self.refused is not None:
            lines += count_lines({"refused_requests": len(self.refused)})
        if left := len(self.never_started):
            lines += count_lines({"never_started": left})
        lines += [speed_line(len(workload), self.seconds), *self._lines_of_machine()]
        return "\n".join(lines) + "\n"

    def _lines_of_machine(self) -> list[str]:
        """Return what the table says of this kind of machine alone."""
        return []

    def summary(self) -> dict[str, Any]:
        """Return what a summary says: the first metrics."""
        return {name: self.metrics[name] for name in _SUMMARY if self.metrics.get(name) is not None}

    def plot(self, path: str | Path | None = None, *, chart: Literal["use", "gantt"] = "use") -> "Figure":
        """Draw the run.

        Args:
            path: file to write, ``.png``, ``.pdf`` or ``.svg``; None: none.
            chart: ``use``, utilisation and queue over time; ``gantt``, who ran where.

        Raises:
            OptionError: matplotlib is missing, or there is no such chart or file format.
        """
        is_use = of_type("chart", chart, Literal["use", "gantt"]) == "use"
        where = ("reports.curves", "draw_utilization") if is_use else ("reports.gantt", "draw_gantt")
        figure: Figure = drawing(path, *where)(self, name=self.name)
        return figure

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the log or workload the run did not look at, a text each."""
        jobs = self.workload
        return (describe_dropped(jobs.dropped, jobs.rows),) if any(jobs.dropped.values()) else ()

    def title(self) -> str:
        """Return the run in one line, with its notes."""
        wait = self.metrics.get("wait_mean_s")
        mean = "" if wait is None else f", mean wait {wait:.6g} s"
        left = len(self.never_started)
        jobs = plural(len(self.started), "job") + (f", {left} never started" if left else "")
        told = f"{self.name}: {self.policy}, {jobs}{mean}".removeprefix(": ")
        return "; ".join((told, *self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class CutShort:
    """Runs that were stopped before their end, a column each.

    Attributes:
        start, end: in seconds after the first submission.
        size: processors.
        waits: 1 for a job of the workload, which waits again; 0 where it counts nowhere else.
    """

    start: Column
    end: Column
    size: Column
    waits: Column


def batsim_csv(result: Simulation) -> str:
    """Return the jobs as Batsim's tools read them, rows in order of end, as Batsim writes them.

    Batsim numbers its machines; here the numbers are given lowest first (placement.py).
    """
    workload, requests = result.workload, result.workload.requests
    placed, rows = result.placed, [f"{BATSIM_COLUMNS}\n"]
    for job in sorted(placed, key=lambda job: (result.starts[job] + workload.run[job], job)):
        submit, start, run = requests.submit[job], result.starts[job], workload.run[job]
        killed = job in workload.killed
        resources = " ".join(
            f"{first}-{first + count - 1}" if count > 1 else f"{first}" for first, count in placed[job]
        )
        times = (start, run, start + run, start - submit, start + run - submit)
        row = ",".join(
            [
                f"{workload.ids[job]},w0,{workload.ids[job]}",
                f"{shortest(submit)},{requests.size[job]},{shortest(requests.estimate[job])}",
                "0,COMPLETED_WALLTIME_REACHED" if killed else "1,COMPLETED_SUCCESSFULLY",
                *map(str, map(shortest, times)),
                f'{times[-1] / run!r},{resources},-1,""',
            ]
        )
        rows.append(f"{row}\n")
    return "".join(rows)


def simulated_log(result: Simulation, log: SwfLog) -> SwfLog:
    """Return the log as the simulated machine would have written it: kept rows, its own waits."""
    workload = result.workload
    begun = [job for job, start in enumerate(result.starts) if start != NEVER]
    table = log.table[[workload.row[job] for job in begun]]
    table[:, SwfField.WAIT] = result.wait
    table[:, SwfField.RUN] = result.run
    table[:, SwfField.ALLOCATED_PROCESSORS] = np.asarray(result.size)
    note = f" Note: simulated by aucsched, policy {result.policy}, order {result.order}"
    return SwfLog(comments=(*log.comments, note), table=table)
