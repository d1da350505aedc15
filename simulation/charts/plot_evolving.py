"""Waits of evolving workloads, in order of submission and by type, beside the same order served otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...formats.drawing import literal, save_figure
from ..evolving.loop import EvolvingRun
from ..evolving.report import waits_by_type
from .chart import BLUE, GREY, ORANGE, legend_above, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (GREY, ORANGE, BLUE, "#4b7f52")
_MIN_S = 60.0
_BARS = 0.8


def draw_evolving(runs: Mapping[str, EvolvingRun], path: Path) -> None:
    """Draw the waits of runs of one workload, by name: each job's, and the mean of each type."""
    with styled():
        figure, (top, bottom) = new_figure(4.4, 2)
        waits_in_order(top, runs)
        legend_above(top)
        _by_type(bottom, runs)
        save_figure(figure, path)


def waits_in_order(axes: Axes, runs: Mapping[str, EvolvingRun], kind: str | None = None) -> None:
    """Draw waits in order of submission (Prabhakaran, figures 8 to 11), of one type's jobs or of all."""
    for (name, run), colour in zip(runs.items(), _COLOURS, strict=False):
        waits = [
            (run.played[job.id].start_s - job.arrival_s) / _MIN_S
            for job in run.workload.jobs
            if kind is None or job.kind == kind
        ]
        marker = None if kind is None else "."
        axes.plot(waits, color=colour, linewidth=0.8, marker=marker, markersize=3, label=literal(name))
    what = "Job" if kind is None else f"Job of type {literal(kind)}"
    axes.set_xlabel(f"{what}, in order of submission")
    axes.set_ylabel("Wait (min)")
    axes.set_ylim(bottom=0)


def _by_type(axes: Axes, runs: Mapping[str, EvolvingRun]) -> None:
    """Draw the mean wait of each type as bars, one of each run."""
    width = _BARS / len(runs)
    kinds: list[str] = []
    for number, (run, colour) in enumerate(zip(runs.values(), _COLOURS, strict=False)):
        waits = waits_by_type(run)
        kinds = list(waits)
        places = [place + (number - (len(runs) - 1) / 2) * width for place in range(len(kinds))]
        heights = [(waits[kind]["wait_mean_s"] or 0.0) / _MIN_S for kind in kinds]
        axes.bar(places, heights, width=width, color=colour)
    axes.set_xticks(range(len(kinds)), [literal(kind) for kind in kinds])
    axes.set_ylabel("Mean wait (min)")
