"""A simulation's outcome as files: JSON, a table for people, and rows by job in three dialects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np

from ..cluster.tabular import Tabular
from ..cluster.text import plural
from ..formats.swf import SwfField, SwfLog, number_text
from ..formats.writing import csv_field
from .placement import place_lowest_first
from .result import Result, metrics
from .stepping import NEVER

FORMAT = "aucsched-simulation/1"

#: The columns of Batsim 4's ``…_jobs.csv``.
BATSIM_COLUMNS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,"
    "final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
    "allocated_resources,consumed_energy,metadata"
)


class RunReport(Tabular):
    """What came of a run: a document, a table for people, and a row for each job."""

    def to_text(self, name: str) -> str:
        """Return the outcome as a table for people, under a name of the input."""
        raise NotImplementedError

    def jobs_csv(self) -> str:
        """Return the jobs as CSV (``columns``)."""
        return csv_of(self.columns)

    def to_json(self) -> str:
        """Return the outcome's file as text: the same run gives the same bytes but for its wall time."""
        return to_json(self.to_dict())


def to_document(
    result: Result, settings: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the outcome as plain values.

    Args:
        result: the outcome.
        settings: the policy's options beyond its name and order.
        values: the metrics by name; None: those of ``metrics``.
    """
    workload = result.workload
    return {
        "format": FORMAT,
        "policy": result.policy,
        "order": result.order,
        **settings,
        "processors": workload.requests.processors,
        "jobs": len(result.started),
        "rows": workload.rows,
        "dropped": {reason.value: count for reason, count in workload.dropped.items()},
        "killed_at_estimate": len(workload.killed.intersection(result.started.tolist())),
        **_stopped(result),
        **({} if result.refused is None else {"refused_requests": list(result.refused)}),
        "never_started": result.never_started,
        "seconds": round(result.seconds, 6),
        "metrics": dict(metrics(result) if values is None else values),
    }


def _stopped(result: Result) -> dict[str, float]:
    """Return how many runs the policy stopped, and what they had used for nothing."""
    if result.stopped is None:
        return {}
    size = result.workload.requests.size
    lost = fsum(size[job] * (end - start) for job, start, end in result.stopped)
    return {"stopped_runs": len(result.stopped), "stopped_processor_s": lost}


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document's text: the same document gives the same bytes."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


ROWS = {
    "makespan": ("makespan_s", "s"),
    "theoretical run time": ("theoretical_runtime_s", "s"),
    "CPU utilisation": ("cpu_utilization", ""),
    "loss of capacity": ("loss_of_capacity", ""),
    "throughput": ("throughput_per_h", "jobs/h"),
    "response by width": ("response_weighted_by_width_s", "s"),
    "slowdown by area": ("slowdown_weighted_by_area", ""),
}
COLUMNS = {
    "wait": ("wait", "_s"),
    "response": ("response", "_s"),
    "slowdown": ("slowdown", ""),
    "bounded slowdown": ("bounded_slowdown", ""),
}


def to_text(
    result: Result,
    name: str,
    values: Mapping[str, Any] | None = None,
    columns: Mapping[str, tuple[str, str]] = COLUMNS,
    rows: Mapping[str, tuple[str, str]] = ROWS,
) -> str:
    """Return a table for people: ``columns`` with mean, deviation and maximum, ``rows`` with one figure.

    Both map what people read to a metric's name and unit; ``values`` as in ``to_document``.
    """
    workload = result.workload
    order = "" if result.order == "fcfs" else f", {result.order} order"
    machine = plural(workload.requests.processors, "processor")
    lines = [f"{name}: {result.policy}{order}, {plural(len(result.started), 'job')} on {machine}"]
    lines += metric_lines(metrics(result) if values is None else values, columns, rows)
    lines += count_lines(_stopped(result))
    if result.refused is not None:
        lines += count_lines({"refused_requests": len(result.refused)})
    if left := len(result.never_started):
        lines += count_lines({"never_started": left})
    return "\n".join([*lines, speed_line(len(workload), result.seconds)]) + "\n"


def metric_lines(
    values: Mapping[str, Any], columns: Mapping[str, tuple[str, str]], rows: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Return the lines of a table of metrics, arguments as in ``to_text``."""
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


def job_columns(result: Result) -> dict[str, list[Any]]:
    """Return a row for each job in order of submission, by column; None where a job never started.

    ``nodes`` is empty: the machine counts processors only.
    """
    workload, requests = result.workload, result.workload.requests
    starts = [None if start == NEVER else float(start) for start in result.starts]
    runs, submits = workload.run, requests.submit
    return {
        "id": list(workload.ids),
        "submit_s": [float(submit) for submit in submits],
        "start_s": starts,
        "end_s": [None if start is None else start + run for start, run in zip(starts, runs, strict=True)],
        "cores": list(requests.size),
        "nodes": [""] * len(starts),
        "wait_s": [
            None if one is None else round(one - sub, 6) for one, sub in zip(starts, submits, strict=True)
        ],
        "run_s": [float(run) for run in runs],
        "estimate_s": [float(estimate) for estimate in requests.estimate],
        "user": list(requests.user),
    }


def csv_of(columns: Mapping[str, Sequence[Any]], *, quoted: str = "") -> str:
    """Return columns as CSV: floats as short as they read back exactly, nothing for None.

    Args:
        columns: a value for each row, by name.
        quoted: a column whose texts are always in quotes.

    Examples:
        >>> csv_of({"job": ["a,b", "c"], "start_s": [1234567.0, 0.1], "wait_s": [None, 2.5]}).splitlines()
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
    return number_text(value) if isinstance(value, float) else csv_field(str(value))


def batsim_csv(result: Result) -> str:
    """Return the jobs as Batsim's tools read them, rows in order of end, as Batsim writes them.

    Batsim numbers its machines; here the numbers are given lowest first (placement.py).
    """
    return "\n".join([BATSIM_COLUMNS, *_batsim_rows(result)]) + "\n"


def _batsim_rows(result: Result) -> Iterator[str]:
    workload, requests = result.workload, result.workload.requests
    placed = place_lowest_first(workload, result.starts)
    for job in sorted(placed, key=lambda job: (result.starts[job] + workload.run[job], job)):
        submit, start, run = requests.submit[job], result.starts[job], workload.run[job]
        killed = job in workload.killed
        resources = " ".join(
            f"{first}-{first + count - 1}" if count > 1 else f"{first}" for first, count in placed[job]
        )
        times = (start, run, start + run, start - submit, start + run - submit)
        yield ",".join(
            [
                f"{workload.ids[job]},w0,{workload.ids[job]}",
                f"{number_text(submit)},{requests.size[job]},{number_text(requests.estimate[job])}",
                "0,COMPLETED_WALLTIME_REACHED" if killed else "1,COMPLETED_SUCCESSFULLY",
                *map(number_text, times),
                f'{times[-1] / run!r},{resources},-1,""',
            ]
        )


def simulated_log(result: Result, log: SwfLog) -> SwfLog:
    """Return the log as the simulated machine would have written it: kept rows, its own waiting times."""
    workload = result.workload
    begun = [job for job, start in enumerate(result.starts) if start != NEVER]
    table = log.table[[workload.row[job] for job in begun]]
    table[:, SwfField.WAIT] = result.wait
    table[:, SwfField.RUN] = result.run
    table[:, SwfField.ALLOCATED_PROCESSORS] = np.asarray(result.size)
    note = f" Note: simulated by aucsched, policy {result.policy}, order {result.order}"
    return SwfLog(comments=(*log.comments, note), table=table)
