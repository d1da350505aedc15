"""Results of a simulated trace: metrics, a table, and one row for each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...cluster.text import counted
from ...formats.swf import number_text
from ..report import FORMAT, shown
from ..requests import Workload
from .run import Outcome

JOB_COLUMNS = "id,submit_s,start_s,end_s,ideal,wait_s,run_s,total_s,harvests"
_HOUR_S = 3600.0
_DIGITS = 6
_TIMES = ("wait", "execution", "total")


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


def malleable_document(found: Outcome, workload: Workload, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome as plain values."""
    return {
        "format": FORMAT,
        **settings,
        "processors": found.trace.processors,
        "jobs": len(found.trace),
        "rows": workload.rows,
        "dropped": {reason.value: count for reason, count in workload.dropped.items()},
        "seconds": round(found.seconds, 6),
        "metrics": malleable_metrics(found),
    }


def malleable_text(found: Outcome, name: str, settings: Mapping[str, Any]) -> str:
    """Return the outcome as a table for people."""
    values = malleable_metrics(found)
    policy = ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in settings.items() if key != "policy"
    )
    machine = counted(found.trace.processors, "processor")
    lines = [
        f"{name}: {settings['policy']}, {counted(len(found.trace), 'job')} on {machine}",
        *([policy] if policy else []),
        "",
        f"{'':<22}{'mean':>16}{'std':>16}{'max':>16}",
    ]
    for kind in _TIMES:
        figures = "".join(f"{shown(values[f'{kind}_{part}_s']):>16}" for part in ("mean", "std", "max"))
        lines.append(f"{kind + ' (s)':<22}{figures}")
    lines.append("")
    singles = {"makespan_s": "s", "throughput_per_h": "jobs/h"}
    lines += [
        f"{key.removesuffix('_s').removesuffix('_per_h').replace('_', ' '):<22}"
        f"{shown(value):>16} {singles.get(key, '')}".rstrip()
        for key, value in values.items()
        if not key.startswith(_TIMES)
    ]
    rate = len(found.trace) / found.seconds if found.seconds else 0
    lines.append(f"{'simulated in':<22}{found.seconds:>16.3f} s ({rate:,.0f} jobs/s)")
    return "\n".join(lines) + "\n"


def malleable_jobs_csv(found: Outcome, workload: Workload) -> str:
    """Return one row for each job in order of submission."""
    lines = [JOB_COLUMNS]
    trace = found.trace
    columns = (trace.submit, found.start, found.end, trace.ideal, found.wait, found.execution, found.total)
    figures = zip(*(column.tolist() for column in (*columns, found.harvests)), strict=True)
    for job, row in zip(workload.ids, figures, strict=True):
        lines.append(",".join([str(job), *(number_text(round(value, _DIGITS)) for value in row)]))
    return "\n".join(lines) + "\n"
