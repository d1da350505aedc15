"""Description of a log: sizes, times, load and the rows that a simulation drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cluster.text import counted
from ...formats.swf import SwfLog
from ..requests import Workload

FORMAT = "aucsched-description/1"

_HOUR_S = 3600
_QUANTILES = {"min": 0, "p25": 25, "median": 50, "p75": 75, "p95": 95, "max": 100}
_SHARES = {
    "one processor": "serial",
    "a power of two": "power_of_two",
    "the whole machine": "whole_machine",
    "killed at estimate": "killed",
    "no real estimate": "estimate_is_run",
}


def describe(workload: Workload, log: SwfLog) -> dict[str, Any]:
    """Return a log's figures as plain values; times in seconds, loads and shares of 1.

    ``offered_load`` is the jobs' processor-seconds over those of the machine between the first and the last
    submission, None where all jobs are submitted at once.
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
        "users": len(set(requests.user)),
        "span_s": span,
        "offered_load": work / (requests.processors * span) if span else None,
        "processor_hours": work / _HOUR_S,
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


def distribution(values: NDArray[Any]) -> dict[str, float]:
    """Return mean, standard deviation and quantiles; there is at least one value."""
    columns = np.asarray(values, dtype=np.float64)
    mean = fsum(columns.tolist()) / len(columns)
    quantiles = {name: float(np.percentile(columns, share)) for name, share in _QUANTILES.items()}
    return {
        "mean": mean,
        "std": float(np.sqrt(fsum(((columns - mean) ** 2).tolist()) / len(columns))),
    } | quantiles


def description_text(description: Mapping[str, Any], name: str) -> str:
    """Return the figures as a table for people."""
    machine = counted(description["processors"], "processor")
    lines = [f"{name}: {counted(description['jobs'], 'job')} on {machine}"]
    names = ("computer", "installation")
    lines += [f"{label}: {description[label]}" for label in names if description[label]]
    dropped = ", ".join(f"{count} {reason}" for reason, count in description["dropped"].items())
    lines.append(f"dropped of {description['rows']} rows: {dropped}")
    days, load = description["span_s"] / 86_400, description["offered_load"]
    shown = "-" if load is None else f"{load:.3f}"
    lines.append(f"{description['users']} users, {days:.1f} days of submissions, offered load {shown}")
    lines += ["", "share of jobs"]
    lines += [f"  {label:<18}{description['shares'][key]:>9.1%}" for label, key in _SHARES.items()]
    members = ("size", "run_s", "estimate_s", "run_over_estimate", "gap_s")
    return "\n".join([*lines, "", *distribution_lines(description, members)]) + "\n"


def distribution_lines(description: Mapping[str, Any], members: Sequence[str]) -> list[str]:
    """Return a table of the members that are distributions, a line each; those that are None have none."""
    columns = ("mean", "std", *_QUANTILES)
    lines = [f"{'':<20}" + "".join(f"{column:>11}" for column in columns)]
    for label in members:
        if description[label]:
            values = (f"{description[label][column]:>11.4g}" for column in columns)
            lines.append(f"{label:<20}" + "".join(values))
    return lines
