"""Charts of curves, bars and points: a machine's use, logs, waits of evolving jobs, a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..api.simulations import OURS, on_edge
from ..formats.swf import SwfLog
from ..simulation.events import DAY_S, HOUR_S, WEEK_S
from ..simulation.evolving.evolving_report import EvolvingRun, waits_by_type
from ..simulation.log_columns import Workload
from ..simulation.result import Simulation
from ..simulation.workloads.application_traces import HOURS, hours_of_day
from .canvas import (
    BLUE,
    GREY,
    ORANGE,
    count_axis,
    legend_above,
    literal,
    new_figure,
    save_figure,
    styled,
    time_unit,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

#: More steps than these are drawn as means over as many bins.
_BINS = 350


def draw_utilization(result: Simulation, path: Path | None, *, name: str = "") -> Figure:
    """Draw the use of the machine and the number of waiting jobs over time; ``name``: the log's."""
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
    return figure


def _draw_steps(
    axes: Axes,
    result: Simulation,
    values: NDArray[np.float64],
    seconds: float,
    color: str,
    *,
    largest: bool = False,
) -> None:
    """Fill a step function: as it is if its steps can be seen, else means, or the ``largest``."""
    times = result.timeline.times / seconds
    if len(times) <= _BINS:
        axes.fill_between(times, values, step="post", color=color, alpha=0.35, linewidth=0)
        axes.step(times, values, where="post", color=color, linewidth=0.8)
        return
    edges = np.linspace(0, result.makespan, _BINS + 1)
    mean = result.timeline.mean(values, edges)
    filled = result.timeline.most(values, edges) if largest else mean
    labels = ("largest in a bin", "mean of a bin") if largest else (None, None)
    axes.stairs(filled, edges / seconds, fill=True, color=color, alpha=0.35, label=labels[0])
    axes.stairs(mean, edges / seconds, color=color, linewidth=0.6, label=labels[1])
    if largest:
        legend_above(axes)


def _draw_used(axes: Axes, result: Simulation, seconds: float) -> None:
    timeline = result.timeline
    used = timeline.used * (100 / result.workload.requests.processors)
    _draw_steps(axes, result, used, seconds, BLUE)
    mean = timeline.mean(used, np.array([0, result.makespan])) if result.makespan else np.zeros(1)
    axes.axhline(mean[0], color=ORANGE, linewidth=0.9, linestyle="--", label=f"mean {mean[0]:.1f} %")
    axes.set_ylim(0, 104)
    axes.set_ylabel("Processors used (%)")
    legend_above(axes)


def _draw_waiting(axes: Axes, result: Simulation, seconds: float) -> None:
    waiting = result.timeline.waiting
    _draw_steps(axes, result, waiting, seconds, ORANGE, largest=True)
    axes.set_ylim(0, float(waiting.max(initial=1)) * 1.12)
    axes.set_ylabel("Jobs waiting")
    count_axis(axes)


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
    shares = np.bincount(hours_of_day(log)[list(workload.row)], minlength=HOURS)
    axes.bar(np.arange(HOURS) + 0.5, 100 * shares / shares.sum(), 0.85, color=BLUE)
    axes.set_xticks(range(0, HOURS + 1, 4))
    local = log.header_count("UnixStartTime") is not None
    axes.set_xlabel("Hour of the day (local)" if local else "Hour of the day (as logged)")
    axes.set_ylabel("Jobs submitted (%)")


def _draw_load(axes: Axes, workload: Workload) -> None:
    """Draw the work submitted in each week or day, as a share of the machine."""
    submit = np.asarray(workload.requests.submit, dtype=np.float64)
    unit, width = ("week", WEEK_S) if submit[-1] > 8 * WEEK_S else ("day", DAY_S)
    if submit[-1] < 3 * DAY_S:
        unit, width = "hour", HOUR_S
    work = np.asarray(workload.run, dtype=np.float64) * np.asarray(workload.requests.size)
    submitted = np.bincount((submit // width).astype(int), weights=work)
    load = submitted * (100 / (workload.requests.processors * width))
    axes.stairs(load, np.arange(len(load) + 1), fill=True, color=BLUE, alpha=0.45)
    axes.axhline(100, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xlim(0, len(load))
    axes.set_xlabel(f"{unit.capitalize()} of the log")
    axes.set_ylabel(f"Work submitted in a {unit}\n(% of the machine)")


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
    """Draw waits by order of submission (Prabhakaran, figures 8 to 11), of a type's jobs or all."""
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


def draw_board(logs: Mapping[str, Sequence[Mapping[str, Any]]], path: Path | None) -> Figure:
    """Draw mean bounded slowdown against longest wait, a plot for each log, with the edge.

    Args:
        logs: a board's rows by the name of its log. FCFS, far from all others, is left out.
        path: the file (.png, .pdf, .svg), None for none.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - may be absent

    down = -(-len(logs) // 2)
    with styled():
        figure, grid = new_figure(3.2 * down, down, min(2, len(logs)), squeeze=False)
        for axes in grid.flat[len(logs) :]:
            axes.set_axis_off()
        shown: list[tuple[Axes, dict[tuple[float, float], list[str]]]] = []
        for axes, (name, rows) in zip(grid.flat, logs.items(), strict=False):
            points: dict[tuple[float, float], list[str]] = {}
            others = [dict(row) for row in rows if row["policy"] != "FCFS"]
            for row in others:
                points.setdefault(_point(row), []).append(row["policy"])
            if edge := on_edge(others):  # of policies that all leave jobs there is none
                axes.step(*zip(*map(_point, edge), strict=True), where="post", color=ORANGE)
            for at, policies in points.items():
                is_ours = any(policy.startswith(OURS) for policy in policies)
                axes.plot(*at, "o", color="black" if is_ours else GREY, markersize=3)
            shown.append((axes, points))
            write_title(axes, name if len(others) == len(rows) else f"{name}, without FCFS")
            axes.set(xlabel="Longest wait (h)", ylabel="Mean bounded slowdown", xscale="log", yscale="log")
            axes.margins(x=0.1, y=0.1)
            for axis in (axes.xaxis, axes.yaxis):
                low, high = axis.get_view_interval()
                axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 8 * low else (1, 1.5, 2, 3, 5, 7)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())
        figure.draw_without_rendering()  # lays out: labels are placed by what they cover
        for axes, points in shown:
            _name_points(axes, points)
        save_figure(figure, path)
    return figure


def _point(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["wait_max_s"] / HOUR_S, row["bounded_slowdown_mean"]


def _name_points(axes: Axes, points: Mapping[tuple[float, float], Sequence[str]]) -> None:
    """Write names beside points: within the axes, where they cover the fewest names and points."""
    from matplotlib.transforms import Bbox  # noqa: PLC0415 - may be absent

    room, spots = axes.get_window_extent(), axes.transData.transform(list(points))
    taken = [Bbox([spot, spot]).padded(axes.figure.dpi / 36) for spot in spots]
    places = [(3 * side, up) for up in (2, -6, 7, -11, 12, -16, 17, -21) for side in (1, -1)]

    def covered(label: Annotation, place: tuple[int, int]) -> int:
        label.set(ha="left" if place[0] > 0 else "right", position=place)
        box = label.get_window_extent()
        is_within = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
        return box.count_overlaps(taken) + (not is_within) * len(places)

    for at, policies in points.items():
        text = literal(" =\n".join(policies))
        label = axes.annotate(text, at, (0, 0), textcoords="offset points", fontsize=5)
        label.set_in_layout(False)
        covered(label, min(places, key=partial(covered, label)))
        taken.append(label.get_window_extent())
