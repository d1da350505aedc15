"""The chart of a log: sizes, run times and estimates, the day's course, the load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...formats.drawing import save_figure
from ...formats.swf import SwfLog
from ..requests import Workload
from .chart import BLUE, GREY, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DAY_S, _WEEK_S = 86_400, 604_800
#: More labels than these do not fit side by side.
_LABELS = 10


def draw_workload(workload: Workload, log: SwfLog, path: Path) -> None:
    """Draw a log in four panels: sizes, run times and estimates, the day's course, the load."""
    with styled():
        figure, panels = new_figure(4.8, 2, 2)
        _draw_sizes(panels[0, 0], workload)
        _draw_times(panels[0, 1], workload)
        _draw_hours(panels[1, 0], workload, log)
        _draw_load(panels[1, 1], workload)
        for letter, axes in zip("abcd", panels.flat, strict=True):
            axes.set_title(f"({letter})", loc="left", fontsize=8, fontweight="bold")
        save_figure(figure, path)


def _draw_sizes(axes: Axes, workload: Workload) -> None:
    size = np.asarray(workload.requests.size)
    classes = np.ceil(np.log2(size)).astype(int)
    work = size * np.asarray(workload.run, dtype=np.float64)
    count = int(np.ceil(np.log2(workload.requests.processors))) + 1
    place = np.arange(count)
    for offset, weights, label, color in ((-0.2, None, "jobs", BLUE), (0.2, work, "work", ORANGE)):
        shares = np.bincount(classes, weights=weights, minlength=count)
        axes.bar(place + offset, 100 * shares / shares.sum(), 0.4, label=label, color=color)
    largest = np.minimum(2**place, workload.requests.processors)
    step = 1 if count <= _LABELS else 2
    axes.set_xticks(place[::step], [f"{size}" for size in largest[::step].tolist()])
    axes.set_xlabel("Processors (up to)")
    axes.set_ylabel("Share (%)")
    axes.legend(loc="upper right")


def _draw_times(axes: Axes, workload: Workload) -> None:
    for values, label, color in (
        (workload.run, "run time", BLUE),
        (workload.requests.estimate, "estimate", ORANGE),
    ):
        times = np.sort(np.asarray(values, dtype=np.float64))
        shares = 100 * np.arange(1, len(times) + 1) / len(times)
        axes.step(times, shares, where="post", label=label, color=color, linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(0, 102)
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Jobs up to that time (%)")
    axes.legend(loc="upper left")


def _draw_hours(axes: Axes, workload: Workload, log: SwfLog) -> None:
    """Draw submissions by the hour of the day, in local time where the header gives it."""
    begin = (log.header_count("UnixStartTime") or 0) + _offset(log)
    first = float(log.table[workload.row[0], 1])
    hours = ((begin + first + np.asarray(workload.requests.submit)) % _DAY_S) // 3600
    shares = np.bincount(hours.astype(int), minlength=24)
    axes.bar(np.arange(24) + 0.5, 100 * shares / shares.sum(), 0.85, color=BLUE)
    axes.set_xticks(range(0, 25, 4))
    local = log.header_count("UnixStartTime") is not None
    axes.set_xlabel("Hour of the day (local)" if local else "Hour of the day (as logged)")
    axes.set_ylabel("Jobs submitted (%)")


def _offset(log: SwfLog) -> int:
    """Return the header's seconds east of Greenwich, 0 where it has none."""
    try:
        return int(log.header("TimeZone") or 0)
    except ValueError:
        return 0


def _draw_load(axes: Axes, workload: Workload) -> None:
    """Draw the work submitted in each week or day, as a share of the machine."""
    submit = np.asarray(workload.requests.submit, dtype=np.float64)
    unit, width = ("week", _WEEK_S) if submit[-1] > 8 * _WEEK_S else ("day", _DAY_S)
    if submit[-1] < 3 * _DAY_S:
        unit, width = "hour", 3600
    work = np.asarray(workload.run, dtype=np.float64) * np.asarray(workload.requests.size)
    submitted = np.bincount((submit // width).astype(int), weights=work)
    load = submitted * (100 / (workload.requests.processors * width))
    axes.stairs(load, np.arange(len(load) + 1), fill=True, color=BLUE, alpha=0.45)
    axes.axhline(100, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xlim(0, len(load))
    axes.set_xlabel(f"{unit.capitalize()} of the log")
    axes.set_ylabel(f"Work submitted in a {unit}\n(% of the machine)")
