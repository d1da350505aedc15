"""The chart of a simulated machine's use: utilisation and queue over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...formats.drawing import save_figure
from ..result import Result
from .chart import BLUE, ORANGE, count_axis, legend_above, new_figure, styled, time_unit, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More steps than these are drawn as means over as many bins.
_BINS = 350


def draw_utilization(result: Result, path: Path, *, name: str = "") -> None:
    """Draw how much of the machine was used, and how many jobs waited, over time; ``name`` is the log's."""
    with styled():
        figure, (top, bottom) = new_figure(3.6, 2, sharex=True)
        unit, seconds = time_unit(result.makespan)
        write_title(top, f"{result.policy} on {name}" if name else "")
        _draw_used(top, result, seconds)
        _draw_waiting(bottom, result, seconds)
        bottom.set_xlim(0, max(result.makespan, 1) / seconds)
        bottom.set_xlabel(f"Time since the first submission ({unit})")
        figure.align_ylabels()
        save_figure(figure, path)


def _edges(result: Result) -> NDArray[np.float64] | None:
    """Return the edges of bins, None where the steps themselves are few enough to be seen."""
    if len(result.timeline.times) <= _BINS:
        return None
    return np.linspace(0, result.makespan, _BINS + 1)


def _draw_used(axes: Axes, result: Result, seconds: float) -> None:
    timeline, edges = result.timeline, _edges(result)
    used = timeline.used * (100 / result.workload.requests.processors)
    if edges is None:
        axes.fill_between(timeline.times / seconds, used, step="post", color=BLUE, alpha=0.35, linewidth=0)
        axes.step(timeline.times / seconds, used, where="post", color=BLUE, linewidth=0.8)
    else:
        axes.stairs(timeline.mean(used, edges), edges / seconds, fill=True, color=BLUE, alpha=0.35)
        axes.stairs(timeline.mean(used, edges), edges / seconds, color=BLUE, linewidth=0.6)
    mean = timeline.mean(used, np.array([0, result.makespan])) if result.makespan else np.zeros(1)
    axes.axhline(mean[0], color=ORANGE, linewidth=0.9, linestyle="--", label=f"mean {mean[0]:.1f} %")
    axes.set_ylim(0, 104)
    axes.set_ylabel("Processors used (%)")
    legend_above(axes)


def _draw_waiting(axes: Axes, result: Result, seconds: float) -> None:
    timeline, edges = result.timeline, _edges(result)
    waiting = timeline.waiting
    if edges is None:
        axes.fill_between(
            timeline.times / seconds, waiting, step="post", color=ORANGE, alpha=0.35, linewidth=0
        )
        axes.step(timeline.times / seconds, waiting, where="post", color=ORANGE, linewidth=0.8)
    else:
        most = timeline.most(waiting, edges)
        axes.stairs(most, edges / seconds, fill=True, color=ORANGE, alpha=0.3, label="largest in a bin")
        axes.stairs(
            timeline.mean(waiting, edges), edges / seconds, color=ORANGE, linewidth=0.7, label="mean of a bin"
        )
        legend_above(axes)
    axes.set_ylim(0, float(waiting.max(initial=1)) * 1.12)
    axes.set_ylabel("Jobs waiting")
    count_axis(axes)
