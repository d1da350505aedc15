"""A node-level simulation's outcome as files: JSON, a table for people, rows by job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...formats.hostlist import fold
from ...formats.native.write import csv_field
from ...formats.swf import number_text
from ..report import COLUMNS, JOB_COLUMNS, ROWS, document_of, text_of
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
        "never_started": _never(result),
        "metrics": metrics,
    }


def _never(result: NodeResult) -> list[dict[str, str]]:
    jobs = result.cluster.jobs
    never = sorted(result.record.never.items())
    return [{"job": jobs[number].job.id, "reason": reason} for number, reason in never]


def to_node_text(result: NodeResult, name: str) -> str:
    """Return the outcome as a table for people."""
    values = node_metrics(result)
    text = text_of(result, name, values, COLUMNS | _NODE_COLUMNS, ROWS | _NODE_ROWS)
    lines = [text.rstrip("\n")]
    for what in ("job", "time"):
        shares = values.get(f"level_{what}_shares")
        if shares:
            shown = "  ".join(f"{level}: {share:.1%}" for level, share in shares.items())
            lines.append(f"{f'{what} share by level':<22}  {shown}")
    never = _never(result)
    lines += [f"job {one['job']} never starts: {one['reason']}" for one in never[:_LISTED]]
    if len(never) > _LISTED:
        lines.append(f"and {len(never) - _LISTED} more jobs that never start; --format json lists all")
    return "\n".join(lines) + "\n"


def node_jobs_csv(result: NodeResult) -> str:
    """Return one row a job in order of arrival; no start, end or wait where a job never started.

    Beside the columns of the counts-only machine: GPUs held, level (empty without switches), span and runs
    of consecutive nodes. Times count from the first arrival of a job that started.
    """
    lines = [f"{JOB_COLUMNS},gpus,level,span,fragmentation"]
    rows = {one.demand.index: _row(result, place) for place, one in enumerate(result.played)}
    first = result.cluster.jobs[result.played[0].demand.index].arrival_s if result.played else 0.0
    for number, arriving in enumerate(result.cluster.jobs):
        if number in rows:
            lines.append(rows[number])
        else:
            limit = arriving.job.time_limit_s
            cells = [csv_field(arriving.job.id), number_text(arriving.arrival_s - first), *([""] * 5)]
            cells += [number_text(arriving.run_time_s), "" if limit is None else str(limit)]
            lines.append(",".join([*cells, csv_field(arriving.job.user), "", "", "", ""]))
    return "\n".join(lines) + "\n"


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
