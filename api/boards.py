"""The board of a log: published policies and ours, slowdown and longest wait, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..simulation.log_columns import Workload
from ..simulation.logs.policies import play_log
from ..simulation.result import BOUND_S, Result, metrics
from ..simulation.simulate_options import PolicyOptions
from ..simulation.waits import Resampling

OURS, EASY = "response", "EASY"
#: As the table calls it -> what ``simulate`` plays.
BOARD_POLICIES: Mapping[str, Mapping[str, Any]] = {
    "FCFS": {"policy": "fcfs"},
    EASY: {"policy": "easy"},
    "EASY, shortest first behind the head": {"policy": "predicted", "predictor": "estimate"},
    "EASY++": {"policy": "predicted", "predictor": "last-two"},
    "EASY, SC'15's regression": {"policy": "predicted", "predictor": "regression"},
    "EASY, learnt median": {"policy": "predicted", "predictor": "median"},
    "conservative": {"policy": "conservative"},
    "SJF": {"policy": "easy", "order": "sjf"},
    "Smith": {"policy": "easy", "order": "smith"},
    "WFP3": {"policy": "easy", "order": "wfp3"},
    "UNICEP": {"policy": "easy", "order": "unicep"},
    "F1": {"policy": "easy", "order": "f1"},
    "F2": {"policy": "easy", "order": "f2"},
    "F3": {"policy": "easy", "order": "f3"},
    "F4": {"policy": "easy", "order": "f4"},
    OURS: {"policy": "promised", "objective": "response"},
    "response, no promises": {"policy": "promised", "objective": "response", "promise": "none"},
}
BoardRow = dict[str, Any]
#: Gives the progress of a policy over so many jobs.
Progress = Callable[[int, str], AbstractContextManager[Callable[[int], None] | None]]


def board(jobs: Workload, own: Sequence[str] = (), *, progress: Progress) -> list[BoardRow]:
    """Play a log under every policy of the board and other policies; return a row each.

    Args:
        jobs: of the log.
        own: other policies, by name or as FILE.py:CLASS.
        progress: gives a bar for each policy.
    """
    rows = []
    # The others first: a name that is none is refused at once.
    for name, told in {**{one: {"policy": one} for one in own}, **BOARD_POLICIES}.items():
        options = PolicyOptions(**{key: told[key] for key in told.keys() - {"policy", "order"}})
        with progress(len(jobs), name) as report:
            order = told.get("order", "fcfs")
            result = play_log(jobs, told["policy"], order=order, options=options, progress=report)
        rows.append(row_of(name, [result]))
    return rows


def row_of(policy: str, results: Sequence[Result]) -> BoardRow:
    """Return a policy's figures: means over the results; of one also 95 % intervals over its blocks."""
    found = [metrics(one) for one in results]
    row: BoardRow = {"policy": policy}
    for name in ("bounded_slowdown_mean", "wait_mean_s", "cpu_utilization"):
        row[name] = float(np.mean([one[name] for one in found]))
    row["wait_max_s"] = max(float(one["wait_max_s"] or 0) for one in found)
    if len(results) == 1:
        one = results[0]
        drawn, everybody = Resampling(one.submit), np.ones(len(one.submit), bool)
        slowdown = np.maximum(1, (one.wait + one.run) / np.maximum(one.run, BOUND_S))
        row["blocks"] = drawn.blocks
        row["bounded_slowdown_interval"] = drawn.of_means(slowdown, everybody)
        row["wait_interval_s"] = drawn.of_means(one.wait, everybody)
    return row


def dominating(rows: Sequence[BoardRow], policy: str = OURS) -> list[str]:
    """Return the policies with a lower slowdown and a lower longest wait than one of them."""
    ours = next(row for row in rows if row["policy"] == policy)
    return [
        row["policy"]
        for row in rows
        if row["bounded_slowdown_mean"] < ours["bounded_slowdown_mean"]
        and row["wait_max_s"] < ours["wait_max_s"]
    ]


def on_edge(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """Return the rows that no other has both figures below, by their longest waits."""
    found: list[BoardRow] = []
    for row in sorted(rows, key=lambda one: (one["wait_max_s"], one["bounded_slowdown_mean"])):
        if not found or row["bounded_slowdown_mean"] < found[-1]["bounded_slowdown_mean"]:
            found.append(row)
    return found
