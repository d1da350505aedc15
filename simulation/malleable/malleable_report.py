"""Results of a simulated trace: metrics, a table, and one row for each job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cluster.text import plural
from ..log_columns import Workload
from ..report import FORMAT, RunReport, metric_lines, speed_line
from .malleable_run import Outcome

_HOUR_S = 3600.0
_DIGITS = 6
_TIMES = ("wait", "execution", "total")
_ROWS = {
    "makespan": ("makespan_s", "s"),
    "throughput": ("throughput_per_h", "jobs/h"),
    "cpu utilization": ("cpu_utilization", ""),
    "harvest success rate": ("harvest_success_rate", ""),
    "harvest events per job": ("harvest_events_per_job", ""),
    "adaptations per job": ("adaptations_per_job", ""),
}


def malleable_metrics(found: Outcome) -> dict[str, float | None]:
    """Return the metrics by name; the unit stands in the name.

    ``harvest_success_rate`` is of harvests that were asked for, None where none was.
    """
    jobs = len(found.trace)
    values: dict[str, float | None] = {"makespan_s": found.makespan}
    for name in _TIMES:
        column = getattr(found, name)
        values[f"{name}_mean_s"] = float(column.mean())
        values[f"{name}_std_s"] = float(column.std())
        values[f"{name}_max_s"] = float(column.max())
    values["throughput_per_h"] = jobs * _HOUR_S / found.makespan
    values["cpu_utilization"] = processor_s(found) / (found.makespan * found.trace.processors)
    values["harvest_success_rate"] = found.successes / found.attempts if found.attempts else None
    values["harvest_events_per_job"] = found.events / jobs
    values["adaptations_per_job"] = found.resizes / jobs
    return values


def processor_s(found: Outcome) -> float:
    """Return the processor-seconds that applications held, of an outcome that kept its changes of size."""
    rows = found.sizes[np.lexsort((np.arange(len(found.sizes)), found.sizes[:, 1]))]
    held = np.diff(rows[:, 0], append=0.0) * rows[:, 2]
    # An application's last row is its end, on no processors: what follows is another's.
    return float(held[rows[:, 2] > 0].sum())


@dataclass(frozen=True, kw_only=True, repr=False)
class MalleableReport(RunReport):
    """What came of a trace under a policy.

    Attributes:
        found: the outcome; it kept its changes of size.
        workload: the log's jobs.
        settings: the policy and what it reads.
    """

    found: Outcome
    workload: Workload
    settings: Mapping[str, Any]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of submission."""
        found, trace = self.found, self.found.trace
        columns = {
            "submit_s": trace.submit,
            "start_s": found.start,
            "end_s": found.end,
            "ideal": trace.ideal,
            "wait_s": found.wait,
            "run_s": found.execution,
            "total_s": found.total,
            "harvests": found.harvests,
        }
        figures = {
            name: [round(value, _DIGITS) for value in column.tolist()] for name, column in columns.items()
        }
        return {"id": list(self.workload.ids), **figures}

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        found, workload = self.found, self.workload
        return {
            "format": FORMAT,
            **self.settings,
            "processors": found.trace.processors,
            "jobs": len(found.trace),
            "rows": workload.rows,
            "dropped": {reason.value: count for reason, count in workload.dropped.items()},
            "seconds": round(found.seconds, 6),
            "metrics": malleable_metrics(found),
        }

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people."""
        found, settings = self.found, self.settings
        policy = ", ".join(
            f"{key.replace('_', ' ')} {value}" for key, value in settings.items() if key != "policy"
        )
        machine = plural(found.trace.processors, "processor")
        lines = [
            f"{name}: {settings['policy']}, {plural(len(found.trace), 'job')} on {machine}",
            *([policy] if policy else []),
            *metric_lines(malleable_metrics(found), {kind: (kind, "_s") for kind in _TIMES}, _ROWS),
            speed_line(len(found.trace), found.seconds),
        ]
        return "\n".join(lines) + "\n"
