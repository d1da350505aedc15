"""Descriptions of logs and of workloads of nodes: machine, kinds, sizes and times of jobs, load."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cluster.jobs import JobType, Span
from ...cluster.limits import of_gres
from ...cluster.text import one_line, plural
from ...cluster.workload import ArrivingJob, ClusterWorkload
from ...formats.swf import SwfLog
from ..events import DAY_S, HOUR_S
from ..log_columns import Workload
from ..report import mean_and_std

FORMAT = "aucsched-description/1"

_QUANTILES = {"min": 0, "p25": 25, "median": 50, "p75": 75, "p95": 95, "max": 100}
_LOG_SHARES = {
    "one processor": "serial",
    "a power of two": "power_of_two",
    "the whole machine": "whole_machine",
    "killed at estimate": "killed",
    "no real estimate": "estimate_is_run",
}


def describe(workload: Workload, log: SwfLog) -> dict[str, Any]:
    """Return a log's figures as plain values; times in seconds, loads and shares of 1.

    ``offered_load`` is the jobs' processor-seconds over those of the machine between the first and
    the last submission, None where all jobs are submitted at once.
    """
    requests = workload.requests
    submit, size = np.asarray(requests.submit), np.asarray(requests.size)
    run, estimate = np.asarray(workload.run), np.asarray(requests.estimate)
    span = float(submit[-1])
    work = fsum((run * size).tolist())
    return {
        "format": FORMAT,
        "computer": log.header("Computer"),
        "installation": log.header("Installation"),
        "processors": requests.processors,
        "rows": workload.rows,
        "jobs": len(workload),
        "dropped": {reason.value: count for reason, count in workload.dropped.items()},
        "users": len(set(requests.user) - {-1}),
        "span_s": span,
        "offered_load": work / (requests.processors * span) if span else None,
        "processor_hours": work / HOUR_S,
        "shares": {
            "serial": float((size == 1).mean()),
            "power_of_two": float(((size & (size - 1)) == 0).mean()),
            "whole_machine": float((size == requests.processors).mean()),
            "killed": len(workload.killed) / len(workload),
            "estimate_is_run": float((run == estimate).mean()),
        },
        "size": distribution(size),
        "run_s": distribution(run),
        "estimate_s": distribution(estimate),
        "run_over_estimate": distribution(run / estimate),
        "gap_s": distribution(np.diff(submit)) if len(workload) > 1 else None,
    }


def distribution(values: NDArray[Any]) -> dict[str, float | None]:
    """Return mean, standard deviation and quantiles; there is at least one value."""
    columns = np.asarray(values, dtype=np.float64)
    mean, std = mean_and_std(columns)
    quantiles = {name: float(np.percentile(columns, share)) for name, share in _QUANTILES.items()}
    return {"mean": mean, "std": std, **quantiles}


def description_text(description: Mapping[str, Any], name: str) -> str:
    """Return the figures as a table for people."""
    machine = plural(description["processors"], "processor")
    lines = [f"{name}: {plural(description['jobs'], 'job')} on {machine}"]
    names = ("computer", "installation")
    lines += [f"{label}: {description[label]}" for label in names if description[label]]
    dropped = ", ".join(f"{count} {reason}" for reason, count in description["dropped"].items())
    lines.append(f"dropped of {plural(description['rows'], 'row')}: {dropped}")
    days, load = description["span_s"] / DAY_S, description["offered_load"]
    shown = "-" if load is None else f"{load:.3f}"
    lines.append(
        f"{plural(description['users'], 'user')}, {days:.1f} days of submissions, offered load {shown}"
    )
    lines += ["", "share of jobs"]
    lines += [f"  {label:<18}{description['shares'][key]:>9.1%}" for label, key in _LOG_SHARES.items()]
    members = ("size", "run_s", "estimate_s", "run_over_estimate", "gap_s")
    return "\n".join([*lines, "", *distribution_lines(description, members)]) + "\n"


def distribution_lines(description: Mapping[str, Any], members: Sequence[str]) -> list[str]:
    """Return a table of the members that are distributions, a line each, without those of None."""
    columns = ("mean", "std", *_QUANTILES)
    lines = [f"{'':<20}" + "".join(f"{column:>11}" for column in columns)]
    for label in members:
        if description[label]:
            values = (f"{description[label][column]:>11.4g}" for column in columns)
            lines.append(f"{label:<20}" + "".join(values))
    return lines


def describe_cluster(workload: ClusterWorkload) -> dict[str, Any]:
    """Return a workload's figures as plain values; times in seconds, loads and shares of 1.

    ``theoretical_s`` is (7.2): run time × cores over the machine's cores, at the fewest nodes and
    gres; ``offered_load`` is that over the time from the first arrival to the last, None where all
    come at once. ``gres_load`` is the same for each kind of gres that jobs ask for on each node.
    """
    jobs = workload.jobs
    cores = sum(node.total.cores for node in workload.nodes)
    gres: Counter[str] = Counter()
    for node in workload.nodes:
        for name, count in node.total.gres.items():
            gres[name.partition(":")[0]] += count
    run = np.array([arriving.run_time_s for arriving in jobs])
    size = np.array([arriving.job.request.fewest_cores for arriving in jobs])
    span = jobs[-1].arrival_s - jobs[0].arrival_s if jobs else 0.0
    theoretical = fsum((run * size).tolist()) / cores
    gres_s = {
        kind: fsum(one.run_time_s * of_gres(kind, one.job.request.fewest_gres) for one in jobs)
        for kind in gres
    }
    types = Counter(arriving.job.request.type for arriving in jobs)
    counts = {kind.value: types[kind] for kind in JobType}
    counts |= {label: sum(map(is_one, jobs)) for label, is_one in _LABELS.items()}
    limits = [arriving.job.time_limit_s for arriving in jobs if arriving.job.time_limit_s is not None]
    return {
        "format": FORMAT,
        "name": workload.name,
        "notes": list(workload.notes),
        "nodes": len(workload.nodes),
        "cores": cores,
        "gres": dict(gres),
        "switches": len(workload.switches or ()),
        "jobs": len(jobs),
        "users": len({arriving.job.user for arriving in jobs if arriving.job.user}),
        "span_s": span,
        "theoretical_s": theoretical,
        "offered_load": theoretical / span if span else None,
        "gres_load": {kind: gres_s[kind] / count / span for kind, count in gres.items()} if span else {},
        "shares": {label: count / max(1, len(jobs)) for label, count in counts.items()},
        "size": distribution(size) if jobs else None,
        "run_s": distribution(run) if jobs else None,
        "limit_s": distribution(np.array(limits)) if limits else None,
        "gap_s": distribution(np.diff([job.arrival_s for job in jobs])) if len(jobs) > 1 else None,
    }


#: What jobs of a workload are beside their types -> whether one is.
_LABELS: Mapping[str, Callable[[ArrivingJob], bool]] = {
    "gres": lambda one: bool(_gres_of(one)),
    "gres ranges": lambda one: any(not span.is_exact for span in _gres_of(one)),
    "contiguous": lambda one: one.job.request.contiguous,
    "exclusive": lambda one: one.job.request.exclusive,
    "features": lambda one: bool(one.job.request.features),
    "killed at limit": lambda one: one.run_time_s > (one.job.time_limit_s or inf),
    "never starts": lambda one: bool(one.job.unsupported) or one.job.hold is not None,
}


def _gres_of(arriving: ArrivingJob) -> tuple[Span, ...]:
    request = arriving.job.request
    return (*request.gres_per_node.values(), *request.gres_total.values())


def cluster_text(description: Mapping[str, Any], name: str) -> str:
    """Return the figures as a table for people."""
    gres = "".join(f", {count} {kind}" for kind, count in description["gres"].items())
    switches = f", {plural(description['switches'], 'switch')}" if description["switches"] else ""
    machine = (
        f"{plural(description['nodes'], 'node')}, {plural(description['cores'], 'core')}{gres}{switches}"
    )
    hours = {member: description[member] / HOUR_S for member in ("span_s", "theoretical_s")}
    load = "-" if description["offered_load"] is None else f"{description['offered_load']:.3f}"
    lines = [
        f"{name}: {plural(description['jobs'], 'job')} on {machine}",
        *(f"  {one_line(note)}" for note in description["notes"]),
        f"{plural(description['users'], 'user')}, {hours['span_s']:.2f} h of submissions",
        f"theoretical run time {hours['theoretical_s']:.2f} h, offered load {load}",
    ]
    lines += [f"offered load of {kind} {load:.3f}" for kind, load in description["gres_load"].items()]
    lines += ["", "share of jobs"]
    lines += [f"  {label:<26}{share:>9.1%}" for label, share in description["shares"].items() if share]
    lines += ["", *distribution_lines(description, ("size", "run_s", "limit_s", "gap_s"))]
    return "\n".join(lines) + "\n"
