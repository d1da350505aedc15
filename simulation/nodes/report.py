"""A node-level simulation's outcome as files: JSON, a table for people, rows by job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...cluster.workload import ArrivingJob
from ...formats.hostlist import fold
from ...formats.native.write import csv_field
from ...formats.swf import number_text
from ..report import COLUMNS, JOB_COLUMNS, ROWS, document_of, shown, text_of
from .metrics import node_metrics
from .result import NodeResult

_NODE_COLUMNS = {
    "span (nodes)": ("span", ""),
    "spread": ("spread", ""),
    "level": ("level", ""),
    "fragmentation": ("fragmentation", ""),
    "packing factor": ("packing_factor", ""),
}
_NODE_ROWS = {"GPU utilisation": ("gpu_utilization", "")}
#: Jobs that never start which the table names before it says how many more there are.
_LISTED = 5


def to_node_document(result: NodeResult, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome as plain values: every job is counted in ``jobs`` or listed in ``never_started``."""
    document = document_of(result, settings, node_metrics(result))
    metrics = document.pop("metrics")
    return document | {
        "nodes": len(result.columns.names),
        "passes": result.record.passes,
        "never_started": _named(result, result.record.never),
        **_failures(result),
        "metrics": metrics,
    }


def _named(result: NodeResult, reasons: Mapping[int, str]) -> list[dict[str, str]]:
    jobs = result.cluster.jobs
    return [{"job": jobs[number].job.id, "reason": reason} for number, reason in sorted(reasons.items())]


def _failures(result: NodeResult) -> dict[str, Any]:
    """Return what failures did, nothing where none were asked for."""
    if not result.nodes_fail:
        return {}
    return {**result.failure_counts(), "lost": _named(result, result.record.lost)}


def to_node_text(result: NodeResult, name: str) -> str:
    """Return the outcome as a table for people."""
    values = node_metrics(result)
    text = text_of(result, name, values, COLUMNS | _NODE_COLUMNS, ROWS | _NODE_ROWS)
    lines = [text.rstrip("\n")]
    for what in ("job", "time"):
        shares = values.get(f"level_{what}_shares")
        if shares:
            levels = "  ".join(f"{level}: {share:.1%}" for level, share in shares.items())
            lines.append(f"{f'{what} share by level':<22}  {levels}")
    if result.nodes_fail:
        counts = result.failure_counts().items()
        lines += [f"{name.replace('_', ' '):<22}{shown(value):>16}" for name, value in counts]
    lines += _listed(result, result.record.never, "never starts")
    lines += _listed(result, result.record.lost, "is lost")
    return "\n".join(lines) + "\n"


def _listed(result: NodeResult, reasons: Mapping[int, str], what: str) -> list[str]:
    """Return a line for each of the first jobs, and how many more there are."""
    named = _named(result, reasons)
    lines = [f"job {one['job']} {what}: {one['reason']}" for one in named[:_LISTED]]
    if len(named) > _LISTED:
        more = len(named) - _LISTED
        # One job "never starts", many "never start".
        kind = {"never starts": "that never start", "is lost": "that are lost"}[what]
        lines.append(f"and {more} more jobs {kind}; --format json lists all")
    return lines


def node_jobs_csv(result: NodeResult) -> str:
    """Return one row a job in order of arrival; no start, end or wait where a job never started.

    Beside the columns of the counts-only machine: GPUs held, level (empty without switches), span and runs
    of consecutive nodes; where nodes fail, how often the job was stopped. Times count from the first arrival
    of a job that ran to its end.
    """
    stops = Counter(one.job for one in result.record.stopped)
    lines = [f"{JOB_COLUMNS},gpus,level,span,fragmentation{',stops' if result.nodes_fail else ''}"]
    rows = {one.demand.index: _row(result, place) for place, one in enumerate(result.played)}
    for number, arriving in enumerate(result.cluster.jobs):
        row = rows[number] if number in rows else _row_of_none(result, arriving)
        lines.append(f"{row},{stops[number]}" if result.nodes_fail else row)
    return "\n".join(lines) + "\n"


def _row_of_none(result: NodeResult, arriving: ArrivingJob) -> str:
    """Return the row of a job that did not run to its end."""
    limit = arriving.job.time_limit_s
    cells = [csv_field(arriving.job.id), number_text(arriving.arrival_s - result.first_s), *([""] * 5)]
    cells += [number_text(arriving.run_time_s), "" if limit is None else str(limit)]
    return ",".join([*cells, csv_field(arriving.job.user), "", "", "", ""])


def _row(result: NodeResult, place: int) -> str:
    one, submit, start = result.played[place], result.submit[place], result.starts[place]
    job, held = one.demand.job, one.spot.held
    names = ",".join(fold([result.columns.names[node] for node in one.spot.nodes.tolist()]))
    gpus = sum(int(counts.sum()) for kind, counts in held.gres.items() if kind.partition(":")[0] == "gpu")
    level = "" if result.topology.is_linear else str(result.level[place])
    return ",".join(
        [
            csv_field(job.id),
            *(number_text(value) for value in (float(submit), start, start + one.run_s)),
            str(int(held.cores.sum())),
            f'"{names}"',
            number_text(start - float(submit)),
            number_text(one.run_s),
            "" if job.time_limit_s is None else str(job.time_limit_s),
            csv_field(job.user),
            f"{gpus},{level},{result.span[place]},{result.blocks[place]}",
        ]
    )
