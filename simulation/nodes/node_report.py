"""A node-level simulation's metrics (Soner, section 7.4), and its outcome as JSON, table and rows by job."""

from collections import Counter
from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bidgen.candidates import FreeView, shape_of
from ...cluster.resources.capacity import Capacity, IntArray
from ...cluster.text import plural
from ...cluster.workload import ArrivingJob
from ...formats.hostlist import fold
from ..log_columns import since
from ..report import COLUMNS, ROWS, count_lines, csv_of, to_document, to_text
from ..result import mean_and_std, metrics
from .node_result import NodeResult

_NODE_COLUMNS = {
    "span (nodes)": ("span", ""),
    "spread": ("spread", ""),
    "level": ("level", ""),
    "fragmentation": ("fragmentation", ""),
    "packing factor": ("packing_factor", ""),
}
#: A row of each job.
_COLUMNS = (
    *("id", "submit_s", "start_s", "end_s", "cores", "nodes", "wait_s", "run_s", "estimate_s"),
    *("user", "account", "gpus", "level", "span", "fragmentation"),
)
_NODE_ROWS = {"GPU utilisation": ("gpu_utilization", "")}
#: Jobs that never start which the table names before it says how many more there are.
_LISTED = 5


def to_node_document(result: NodeResult, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome as plain values: every job is counted in ``jobs`` or listed in ``never_started``."""
    document = to_document(result, settings, node_metrics(result))
    metrics = document.pop("metrics")
    # What was not asked for is not said.
    failed = {**result.failure_counts(), "lost": result.named(result.record.lost)}
    broken = result.named(result.broken_promises())
    promised = {"promises": len(result.promises or ()), "broken_promises": broken}
    preempted = {**result.preemption_counts(), "balances": dict(sorted((result.balance or {}).items()))}
    return document | {
        "nodes": len(result.columns.names),
        "passes": result.record.passes,
        **(failed if result.nodes_fail else {}),
        **(promised if result.promises is not None else {}),
        **(preempted if result.balance is not None else {}),
        "metrics": metrics,
    }


def to_node_text(result: NodeResult, name: str) -> str:
    """Return the outcome as a table for people."""
    values = node_metrics(result)
    text = to_text(result, name, values, COLUMNS | _NODE_COLUMNS, ROWS | _NODE_ROWS)
    lines = [text.rstrip("\n")]
    for what in ("job", "time"):
        shares = values.get(f"level_{what}_shares")
        if shares:
            levels = "  ".join(f"{level}: {share:.1%}" for level, share in shares.items())
            lines.append(f"{f'{what} share by level':<22}  {levels}")
    if result.nodes_fail:
        lines += count_lines(result.failure_counts())
    if result.balance is not None:
        lines += count_lines(result.preemption_counts())
    if result.promises is not None:
        broken = result.broken_promises()
        lines += count_lines({"promises": len(result.promises), "broken_promises": len(broken)})
        lines += _listed(result, broken, "starts late")
    lines += _listed(result, result.record.never, "never starts")
    lines += _listed(result, result.record.lost, "is lost")
    return "\n".join(lines) + "\n"


def _listed(result: NodeResult, reasons: Mapping[int, str], what: str) -> list[str]:
    """Return a line for each of the first jobs, and how many more there are."""
    named = result.named(reasons)
    lines = [f"job {one['job']} {what}: {one['reason']}" for one in named[:_LISTED]]
    if (more := len(named) - _LISTED) > 0:
        lines.append(f"and {plural(more, 'more job', what)}; --format json lists all")
    return lines


def node_job_columns(result: NodeResult) -> dict[str, list[Any]]:
    """Return a row for each job in order of arrival, by column; None where a job never started.

    Times count from the first arrival of a job that ran to its end; ``nodes`` is a hostlist.
    """
    places = {one.demand.index: place for place, one in enumerate(result.played)}
    jobs = enumerate(result.cluster.jobs)
    rows = [_row(result, arriving, places.get(number)) for number, arriving in jobs]
    return {name: [row[name] for row in rows] for name in _COLUMNS}


def _row(result: NodeResult, arriving: ArrivingJob, place: int | None) -> dict[str, Any]:
    """Return what a table says of a job; ``place`` among those that ran to their ends, None: it did not."""
    begin, job = result.cluster.jobs[0].arrival_s, arriving.job
    submit = since(arriving.arrival_s, begin)
    row = dict.fromkeys(_COLUMNS) | {
        "id": job.id,
        "submit_s": submit,
        "run_s": arriving.run_time_s,
        "estimate_s": job.time_limit_s,
        "user": job.user,
        "account": job.account,
    }
    if place is None:
        return row
    # An end has the float of the start that takes its place.
    one = result.played[place]
    start = since(one.start_s, begin)
    return row | {
        "start_s": start,
        "end_s": since(one.start_s + one.run_s, begin),
        "cores": int(one.allocation.held.cores.sum()),
        "nodes": ",".join(fold([result.columns.names[node] for node in one.allocation.nodes.tolist()])),
        "wait_s": round(start - submit, 6),
        "run_s": one.run_s,
        "gpus": _gpus(one.allocation.held),
        "level": None if result.topology.is_linear else int(result.level[place]),
        "span": int(result.span[place]),
        "fragmentation": int(result.blocks[place]),
    }


def _gpus(held: Capacity) -> int:
    return sum(int(counts.sum()) for kind, counts in held.gres.items() if kind.partition(":")[0] == "gpu")


def node_jobs_csv(result: NodeResult) -> str:
    """Return the jobs as CSV (``node_job_columns`` without accounts).

    Beside the columns of the counts-only machine: GPUs held, level (empty without switches), span
    and runs of consecutive nodes; where nodes fail, how often the job was stopped.
    """
    columns = node_job_columns(result)
    columns.pop("account", None)
    if result.nodes_fail:
        stops = Counter(one.job for one in result.record.stopped)
        columns["stops"] = [stops[number] for number in range(len(result.cluster.jobs))]
    return csv_of(columns, quoted="nodes")


def node_metrics(result: NodeResult) -> dict[str, Any]:
    """Return every metric by name: those of ``metrics``, and those of nodes.

    - ``theoretical_runtime_s`` (7.2) with the run time at the fewest gres, so that it is the same
      for every policy; ``cpu_utilization`` (7.3) is its ratio to the makespan.
    - ``gpu_utilization``: GPU-seconds held over GPUs × makespan; null without GPUs.
    - ``level``: of the lowest common switch, leaf = 0; ``level_job_shares`` and
      ``level_time_shares`` by level, of the jobs and of their run times; null where there are no
      switches.
    - ``hops``: on a torus, dragonfly or graph: mean links between two nodes of a job, of jobs with
      several.
    - ``span``: last node less first, plus one; ``spread``: span over nodes.
    - ``fragmentation``: runs of consecutive nodes.
    - ``packing_factor``: nodes over the fewest nodes of the empty cluster that hold the request.
    """
    values: dict[str, Any] = dict(metrics(result))
    if not len(result.started):
        return values
    theoretical = _theoretical_s(result)
    values["theoretical_runtime_s"] = theoretical
    values["cpu_utilization"] = theoretical / result.makespan
    values["gpu_utilization"] = _gpu_utilization(result)
    columns: dict[str, npt.NDArray[Any]] = {
        "span": result.span,
        "spread": result.span / result.node_count,
        "fragmentation": result.blocks,
        "packing_factor": result.node_count / _fewest(result),
    }
    if not result.topology.is_linear:
        columns["level"] = result.level
        values["level_job_shares"] = _shares(result, np.ones(len(result.level)))
        values["level_time_shares"] = _shares(result, result.run)
    several = result.node_count > 1
    if result.topology.distances is not None and several.any():
        columns["hops"] = result.hops[several]
    for name, column in columns.items():
        values[f"{name}_mean"], values[f"{name}_std"] = mean_and_std(column)
    return values


def _theoretical_s(result: NodeResult) -> float:
    jobs = result.cluster.jobs
    work = []
    for demand in result.demands:
        arriving = jobs[demand.index]
        limit = arriving.job.time_limit_s
        run = arriving.run_time_s if limit is None else min(arriving.run_time_s, limit)
        work.append(run * demand.job.request.fewest_cores)
    return fsum(work) / result.workload.requests.processors


def _gpu_utilization(result: NodeResult) -> float | None:
    total = result.columns.total.gres
    kinds = [kind for kind in total if kind.partition(":")[0] == "gpu"]
    there = sum(int(total[kind].sum()) for kind in kinds)
    if not there:
        return None
    held = fsum(fsum((result.gres_held(kind) * result.run).tolist()) for kind in kinds)
    return held / (there * result.makespan)


def _shares(result: NodeResult, weight: npt.NDArray[np.float64]) -> dict[str, float]:
    whole = fsum(weight.tolist())
    levels = range(result.topology.max_level + 1)
    return {str(level): fsum(weight[result.level == level].tolist()) / whole for level in levels}


def _fewest(result: NodeResult) -> IntArray:
    """Return the fewest nodes of the empty cluster that hold each job."""
    view = FreeView(result.columns, result.columns.total)
    known: dict[object, int] = {}
    fewest = []
    for demand in result.demands:
        key = (shape_of(demand), demand.units, demand.node_counts)
        if key not in known:
            most = (one.most_units for one in view.candidates(demand))
            of_units = min(int(np.searchsorted(units, demand.units or 0)) for units in most)
            known[key] = max(demand.fewest_nodes, of_units)
        fewest.append(known[key])
    return np.array(fewest, np.int64)
