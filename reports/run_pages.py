"""Pages of many runs or jobs: simulations, sweeps, a gain, and a shadow's log beside Slurm."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..api.gains import Gain
from ..cluster.text import plural, utc
from ..simulation.nodes.node_result import NodeSimulation
from ..simulation.result import Simulation
from ..simulation.waits import size_class, size_rank
from ..slurm.live.shadow_report import CAVEATS, ShadowReport
from .page import Section, as_columns, facts, lines, page_of, table

#: Moments of a curve, groups of a chart, and jobs of a Gantt chart that are drawn.
_SIMULATED_BINS, _GROUPS, _JOBS = 600, 24, 30_000
_PERCENTILES = (50, 90, 99)
#: Figures of a spread that are seconds.
_SPREAD = ("mean", *(f"p{share}" for share in _PERCENTILES), "max")


def simulation_page(runs: Sequence[Simulation], name: str) -> str:
    """Return the page of runs over one input: what several share in one chart, then each."""
    jobs = plural(len(runs[0].starts), "job")
    sections: list[Section] = [table("Figures", _figures(runs))]
    waits = [(run.policy, wait) for run in runs for wait in run.columns["wait_s"] if wait is not None]
    if waits:
        groups = spread_of(*zip(*waits, strict=True), in_order=False)
        spread = {"kind": "spread", "title": "Waits by policy", "groups": groups}
        sections += [spread, _simulated_use(runs)] if len(runs) > 1 else [_simulated_use(runs)]
    for run in runs:
        sections += _sections(run, f", {run.policy}" if len(runs) > 1 else "")
    return page_of(f"Simulation of {name}", f"{', '.join(run.policy for run in runs)}; {jobs}", sections)


def _figures(runs: Sequence[Simulation]) -> dict[str, list[Any]]:
    shown = [
        name
        for name, value in runs[0].metrics.items()
        if not isinstance(value, Mapping) and any(run.metrics.get(name) is not None for run in runs)
    ]
    return {"metric": shown} | {run.policy: [run.metrics.get(name) for name in shown] for run in runs}


def _sections(run: Simulation, of: str) -> list[Section]:
    columns = run.columns
    if all(wait is None for wait in columns["wait_s"]):
        return [table(f"Jobs{of}", columns)]
    found: list[Section] = [_gantt(run, of)]
    by_size = [size_class(cores) for cores in columns["cores"]]
    for what, groups in (("size", by_size), ("user", columns["user"]), ("account", columns.get("account"))):
        if groups is None or len(set(groups)) < 2:  # noqa: PLR2004 - one group says nothing
            continue
        spread = spread_of(groups, columns["wait_s"], in_order=what == "size")
        found.append({"kind": "spread", "title": f"Waits by {what}{of}", "groups": spread[:_GROUPS]})
        found.append(table(f"Waits by {what}, in figures{of}", as_columns(spread), times=_SPREAD))
    return [
        *found,
        table(f"Jobs{of}", columns, "submissions, starts and ends count from the first submission"),
    ]


def spread_of(
    groups: Iterable[Any], waits: Iterable[float | None], *, in_order: bool
) -> list[dict[str, Any]]:
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
        return sorted(found, key=lambda one: size_rank(one["name"]))
    return sorted(found, key=lambda one: (-int(one["jobs"]), str(one["name"])))


def _simulated_use(runs: Sequence[Simulation]) -> Section:
    """Return use and queue of all runs over the time of the longest."""
    lines_of = [(run.policy, run.timeline) for run in runs]
    edges = np.linspace(0.0, max(float(line.times[-1]) for _, line in lines_of) or 1.0, _SIMULATED_BINS + 1)
    processors = runs[0].workload.requests.processors
    used = [
        (f"cores in use, of {processors}", name, line.mean(line.used, edges).round(3).tolist(), processors)
        for name, line in lines_of
    ]
    waiting = [
        ("jobs waiting", name, line.mean(line.waiting, edges).round(3).tolist(), None)
        for name, line in lines_of
    ]
    return lines("Use of the machine and length of the queue", edges.round(3).tolist(), [*used, *waiting])


def _in_nodes(result: NodeSimulation) -> dict[int, list[tuple[float, float]]]:
    """Return each job's place in rows of nodes: a core of a node of eight is 1/8 of its row."""
    total = result.empty.total.cores
    first = np.concatenate([[0], np.cumsum(total)])

    def row(core: int) -> float:
        node = int(np.searchsorted(first, core, side="right")) - 1
        return float(node) if node == len(total) else node + (core - int(first[node])) / int(total[node])

    return {
        job: [(row(core), row(core + count) - row(core)) for core, count in spots]
        for job, spots in result.placed.items()
    }


def _gantt(run: Simulation, of: str) -> Section:
    workload, starts = run.workload, np.array(run.starts, np.float64)
    if isinstance(run, NodeSimulation):
        placed, names = _in_nodes(run), list(run.empty.names)
        rows, unit = len(names), "nodes"
    else:
        placed = {
            job: [(float(first), float(count)) for first, count in spots] for job, spots in run.placed.items()
        }
        names, rows, unit = None, workload.requests.processors, "processors"
    waits = (starts - np.array(workload.requests.submit, np.float64)).tolist()
    drawn = sorted(placed)[:_JOBS]
    number = {job: place for place, job in enumerate(drawn)}
    rects = [[number[job], round(first, 4), round(count, 4)] for job in drawn for first, count in placed[job]]
    left = len(placed) - len(drawn)
    more = f"the first {len(drawn)} jobs; {plural(left, 'more job')} in the table" if left > 0 else ""
    return {
        "kind": "gantt",
        "title": f"Jobs over time{of}",
        "jobs": [str(workload.ids[job]) for job in drawn],
        "start": [round(float(starts[job]), 3) for job in drawn],
        "end": [round(float(starts[job] + workload.run[job]), 3) for job in drawn],
        "cores": [int(workload.requests.size[job]) for job in drawn],
        "wait": [waits[job] for job in drawn],
        "rects": rects,
        "rows": rows,
        "unit": unit,
        "names": names,
        "note": more,
    }


#: Moments of the curves.
_GAIN_BINS = 400


def gain_page(made: Gain) -> str:
    """Return the page of a comparison."""
    words = [(f"({number})", text) for number, text in enumerate(made.words, 1)]
    names = [name for name, waits in made.waits.items() for _ in waits]
    spread = spread_of(names, np.concatenate(list(made.waits.values())).tolist(), in_order=False)
    sections: list[Section] = [
        facts("What you would gain", words),
        table("Figures", _rounded(made.figures), "over the same jobs"),
        {"kind": "spread", "title": "Waits", "groups": spread},
        table(
            "Mean waits by group, where they change most",
            _rounded(made.groups),
            "the difference has a 95 % interval",
            [name for name in as_columns(made.groups) if name not in {"group", "jobs"}],
        ),
        _gain_use(made),
        table("What is not compared, and how the history was read", {"note": made.left_out}),
        table("Jobs", made.columns, "submissions count from the beginning"),
    ]
    jobs = plural(len(made.compared), "job")
    subtitle = f"{jobs} in {made.days:.3g} days; {', '.join(made.waits)}"
    return page_of(f"What {made.workload.name} would gain", subtitle, sections)


def _rounded(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found = as_columns(rows)
    return {
        name: [round(value, 1) if isinstance(value, float) else value for value in column]
        for name, column in found.items()
    }


def _gain_use(made: Gain) -> Section:
    last = max(float(made.columns["submit_s"][-1]), 1.0)
    edges = np.linspace(0.0, last, _GAIN_BINS + 1)
    cores = sum(node.total.cores for node in made.workload.nodes)
    series = [
        (f"cores in use, of {cores}", name, (cores * use).round(2).tolist(), cores)
        for name, use in made.use(edges).items()
    ]
    return lines("Cores in use until the last submission", edges.round(1).tolist(), series)


#: Columns that are drawn first, where a sweep has them.
_UP = ("priority", "wait_mean_s", "cpu_utilization")


def sweep_page(columns: Mapping[str, Sequence[Any]], axes: Sequence[str], name: str) -> str:
    """Return the page of a sweep."""
    runs = len(next(iter(columns.values()), []))
    varied = [axis for axis in axes if axis in columns] or ["run"]
    up = next((one for one in _UP if one in columns), varied[0])
    labelled = [one for one in (*varied, "seed", up) if one in columns]
    scatter = {
        "kind": "scatter",
        "title": "Any column over any other",
        "note": "a dot is a run; a line joins repetitions, with a bar at their mean",
        "columns": {one: list(values) for one, values in columns.items()},
        "x": varied[0],
        "y": up,
        "color": varied[1] if len(varied) > 1 else "",
        "labels": list(dict.fromkeys(labelled)),
    }
    return page_of(
        f"Sweep over {name}",
        f"{plural(runs, 'run')}; {', '.join(varied)}",
        [scatter, table("Runs", {name: one for name, one in columns.items() if name != "input_sha256"})],
    )


def shadow_page(report: ShadowReport, name: str) -> str:
    """Return the page of a report."""
    document = report.to_dict()
    span = f"{utc(document['from'])} to {utc(document['to'])}"
    verdicts = {verdict: count for verdict, count in document["verdicts"].items() if count}
    sections: list[Section] = [
        facts(
            "What this log can and cannot say",
            [(f"({number})", text) for number, text in enumerate(CAVEATS, 1)],
        ),
        table("Slurm and the auction", as_columns(document["figures"])),
        facts("Jobs: the auction's first offer compared with Slurm's start", list(verdicts.items())),
        _shadow_use(report),
    ]
    for what, rows in report.groups.items():
        sections.append(table(f"Who gains and who loses, by {what}", as_columns(rows)))
    if document["unread"]:
        sections.append(table("Rules of the site that are not looked at", {"rule": document["unread"]}))
    sections.append(table("Jobs", report.columns, "moments are UTC"))
    counts = f"{plural(len(report.entries), 'pass')}; {plural(len(report.jobs), 'job')}"
    return page_of(f"Shadow of Slurm, {name}", f"{span}; {counts}", sections)


def _shadow_use(report: ShadowReport) -> Section:
    entries = report.entries
    first = entries[0].time
    times = [entry.time - first for entry in entries]
    cores = max(1, *(entry.cores for entry in entries))
    offers = [sum(offer.cores for offer in entry.would) for entry in entries]
    label = f"cores in use, of {cores}"
    with_offers = [min(entry.used + more, entry.cores) for entry, more in zip(entries, offers, strict=True)]
    series = [
        (label, "with the pass's offers", with_offers, cores),
        (label, "Slurm", [entry.used for entry in entries], cores),
        ("jobs waiting", "", [entry.waiting for entry in entries], None),
    ]
    moments = [*times, times[-1] + entries[-1].interval_s]
    return lines("The machine and the queue, pass by pass", moments, series)
