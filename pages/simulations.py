"""Pages of simulations: figures beside each other, the machine's use, the jobs over time, waits by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..api.simulations import Simulation
from ..cluster.text import counted
from ..simulation.nodes.placement import place_on_nodes
from ..simulation.nodes.result import NodeResult
from ..simulation.placement import place_lowest_first
from .page import Section, page_of, table

#: Moments of a curve, groups of a chart, and jobs of a Gantt chart that are drawn.
_BINS, _GROUPS, _JOBS = 600, 24, 30_000
_PERCENTILES = (50, 90, 99)


def simulation_page(runs: Sequence[Simulation], name: str) -> str:
    """Return the page of one run, or of several over one input."""
    names = ", ".join(run.policy for run in runs)
    jobs = counted(len(runs[0].result.starts), "job")
    sections: list[Section] = [table("Figures", _figures(runs), "times in seconds")]
    for run in runs:
        sections += _sections(run, named=len(runs) > 1)
    return page_of(f"Simulation of {name}", f"{names}; {jobs}", sections)


def _figures(runs: Sequence[Simulation]) -> dict[str, list[Any]]:
    names = [
        name for name, value in runs[0].metrics.items() if value is None or not isinstance(value, Mapping)
    ]
    shown = [name for name in names if any(run.metrics.get(name) is not None for run in runs)]
    if len(runs) == 1:
        return {"metric": shown, runs[0].policy: [runs[0].metrics[name] for name in shown]}
    return {"policy": [run.policy for run in runs]} | {
        name: [run.metrics.get(name) for run in runs] for name in shown
    }


def _sections(run: Simulation, *, named: bool) -> list[Section]:
    of = f", {run.policy}" if named else ""
    columns = run.columns
    waits = [one for one in columns["wait_s"] if one is not None]
    if not waits:
        return [table(f"Jobs{of}", columns)]
    found: list[Section] = [_use(run, of), _gantt(run, columns, of)]
    by_size = [_size(cores) for cores in columns["cores"]]
    for what, groups in (("size", by_size), ("user", columns["user"]), ("account", columns.get("account"))):
        if groups is None or len(set(groups)) < 2:  # noqa: PLR2004 - one group says nothing
            continue
        spread = _spread(groups, columns["wait_s"], in_order=what == "size")
        found.append(
            {"kind": "spread", "title": f"Waits by {what}{of}", "unit": "waits", "groups": spread[:_GROUPS]}
        )
        found.append(table(f"Waits by {what} in seconds{of}", _as_columns(spread)))
    return [*found, table(f"Jobs{of}", columns, "times in seconds after the first submission")]


def _size(cores: int | None) -> str:
    """Return a job's class of size: 1, 2-4, 5-16 and so on."""
    if cores is None or cores <= 1:
        return "1 core"
    high = 4
    while high < cores:
        high *= 4
    return f"{high // 4 + 1}-{high} cores"


def _spread(groups: Iterable[Any], waits: Iterable[float | None], *, in_order: bool) -> list[dict[str, Any]]:
    """Return jobs, mean, percentiles and maximum of the waits of each group, most jobs first."""
    of: dict[str, list[float]] = {}
    for group, wait in zip(groups, waits, strict=True):
        if wait is not None:
            of.setdefault(str(group) or "none", []).append(wait)
    found = [
        {
            "name": name,
            "jobs": len(values),
            "mean": float(np.mean(values)),
            **{f"p{share}": float(np.percentile(values, share)) for share in _PERCENTILES},
            "max": max(values),
        }
        for name, values in of.items()
    ]
    if in_order:
        return sorted(found, key=lambda one: int(str(one["name"]).split("-")[0].split()[0]))
    return sorted(found, key=lambda one: (-int(one["jobs"]), str(one["name"])))


def _as_columns(spread: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [one[name] for one in spread] for name in spread[0]} if spread else {}


def _use(run: Simulation, of: str) -> Section:
    line = run.result.timeline
    last = float(line.times[-1]) or 1.0
    edges = np.linspace(0.0, last, _BINS + 1)
    processors = run.result.workload.requests.processors
    return {
        "kind": "lines",
        "title": f"Use of the machine and length of the queue{of}",
        "times": edges.round(3).tolist(),
        "series": [
            {
                "label": f"cores in use, of {processors}",
                "values": line.mean(line.used, edges).round(3).tolist(),
                "most": processors,
            },
            {
                "label": "jobs waiting",
                "values": line.mean(line.waiting, edges).round(3).tolist(),
                "most": None,
            },
        ],
    }


def _in_nodes(result: NodeResult) -> dict[int, list[tuple[float, float]]]:
    """Return where each job stands in rows of nodes: a core of a node of eight is an eighth of its row."""
    total = result.columns.total.cores
    first = np.concatenate([[0], np.cumsum(total)])

    def row(core: int) -> float:
        node = int(np.searchsorted(first, core, side="right")) - 1
        return float(node) if node == len(total) else node + (core - int(first[node])) / int(total[node])

    return {
        job: [(row(core), row(core + count) - row(core)) for core, count in spots]
        for job, spots in place_on_nodes(result).items()
    }


def _gantt(run: Simulation, columns: Mapping[str, list[Any]], of: str) -> Section:
    result = run.result
    if isinstance(result, NodeResult):
        placed = _in_nodes(result)
        names = list(result.columns.names)
        known = [str(name) for name in result.workload.ids]
        starts, runs = list(result.starts), list(result.workload.run)
        sizes = list(result.workload.requests.size)
        waits = (np.array(starts) - np.array(result.workload.requests.submit)).tolist()
        rows, unit = len(names), "nodes"
    else:
        placed = {
            job: [(float(first), float(count)) for first, count in spots]
            for job, spots in place_lowest_first(result.workload, result.starts).items()
        }
        names, known = None, [str(name) for name in columns["id"]]
        starts, runs = list(result.starts), list(result.workload.run)
        sizes, waits = columns["cores"], columns["wait_s"]
        rows, unit = result.workload.requests.processors, "processors"
    drawn = sorted(placed)[:_JOBS]
    number = {job: place for place, job in enumerate(drawn)}
    rects = [[number[job], round(first, 4), round(count, 4)] for job in drawn for first, count in placed[job]]
    left = len(placed) - len(drawn)
    more = f"the first {len(drawn)} jobs; {counted(left, 'more job')} in the table" if left > 0 else ""
    return {
        "kind": "gantt",
        "title": f"Jobs over time{of}",
        "jobs": [known[job] for job in drawn],
        "start": [round(float(starts[job]), 3) for job in drawn],
        "end": [round(float(starts[job] + runs[job]), 3) for job in drawn],
        "cores": [int(sizes[job]) for job in drawn],
        "wait": [waits[job] for job in drawn],
        "rects": rects,
        "rows": rows,
        "unit": unit,
        "names": names,
        "note": more,
    }
