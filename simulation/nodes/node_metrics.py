"""The metrics that need nodes, gres or a topology (Soner, section 7.4)."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bidgen.candidates import FreeView, shape_of
from ...cluster.resources.capacity import IntArray
from ...cluster.resources.demand import Demand
from ..metrics import mean_and_std, metrics
from .node_queue import cores_asked
from .node_result import NodeResult


def node_metrics(result: NodeResult) -> dict[str, Any]:
    """Return every metric by name: those of ``metrics``, and those of nodes.

    - ``theoretical_runtime_s`` (7.2) with the run time at the fewest gres, so that it is the same for every
      policy; ``cpu_utilization`` (7.3) is its ratio to the makespan.
    - ``gpu_utilization``: GPU-seconds held over GPUs × makespan; null without GPUs.
    - ``level``: of the lowest common switch, leaf = 0; ``level_job_shares`` and ``level_time_shares`` by
      level, of the jobs and of their run times; null where there are no switches.
    - ``hops``: on a torus, dragonfly or graph: mean links between two nodes of a job, of jobs with several.
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
        work.append(run * cores_asked(demand))
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
            known[key] = _fewest_nodes(demand, view)
        fewest.append(known[key])
    return np.array(fewest, np.int64)


def _fewest_nodes(demand: Demand, view: FreeView) -> int:
    least = 1 if demand.node_counts is None else demand.node_counts.minimum
    wanted = demand.units or 0
    return max(
        least, min(int(np.searchsorted(found.most_units, wanted)) for found in view.candidates(demand))
    )
