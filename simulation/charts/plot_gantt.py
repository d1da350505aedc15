"""The Gantt chart of a simulation: jobs over time and processors, coloured by waiting time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...formats.drawing import save_figure
from ..placement import Runs, place_lowest_first
from ..result import Result
from .chart import count_axis, name_nodes, new_figure, styled, time_unit, write_title
from .gantt import Boxes, draw_jobs, label_waits


def draw_gantt(
    result: Result,
    path: Path,
    placed: Mapping[int, Runs] | None = None,
    *,
    name: str = "",
    nodes: tuple[Sequence[str], Sequence[int]] | None = None,
) -> None:
    """Draw the chart.

    Args:
        result: the outcome.
        path: file to write.
        placed: the processors of each job; None where the machine only counts them: the lowest that are free.
        name: of the log or workload, for the title.
        nodes: names and cores of the nodes, which then stand on the axis.
    """
    with styled():
        figure, axes = new_figure(3.6, 1)
        unit, seconds = time_unit(result.makespan)
        axes.set_xlim(0, max(result.makespan, 1) / seconds)
        axes.set_ylim(0, result.workload.requests.processors)
        axes.set_xlabel(f"Time since the first submission ({unit})")
        axes.set_ylabel("Processors" if placed is None else "Cores, node by node")
        write_title(axes, f"{result.policy} on {name}" if name else "")
        if nodes is None:
            count_axis(axes)
        else:
            name_nodes(axes, *nodes)
        wait_unit, wait_seconds = time_unit(float(result.wait.max(initial=0)), largest="h")
        wait = np.zeros(len(result.starts))
        wait[result.started] = result.wait / wait_seconds
        names = [str(number) for number in result.workload.ids]
        placed = place_lowest_first(result.workload, result.starts) if placed is None else placed
        draw_jobs(axes, _boxes(result, seconds, placed), wait, names)
        label_waits(axes, wait, f"Waiting time ({wait_unit})")
        save_figure(figure, path)


def _boxes(result: Result, seconds: float, placed: Mapping[int, Runs]) -> Boxes:
    rows = [(job, first, first + count) for job, runs in placed.items() for first, count in runs]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    job = columns[:, 0]
    start = np.asarray(result.starts, dtype=np.float64)[job]
    end = start + np.asarray(result.workload.run, dtype=np.float64)[job]
    first, last = columns[:, 1].astype(np.float64), columns[:, 2].astype(np.float64)
    return Boxes(job, start / seconds, end / seconds, first, last)
