"""Charts of a simulation and of a log, fit to print; matplotlib comes with the extra ``plot``."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.errors import OptionError
from ..formats.binary import write_bytes
from ..formats.swf import SwfLog
from .placement import place_lowest_first
from .result import Result
from .workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Suffix -> what savefig takes so that equal charts are equal bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.hashsalt": "aucsched",
}
_WIDTH_IN, _DPI = 7.0, 300
_BLUE, _ORANGE, _GREY = "#1f5a94", "#c8641e", "#8a8f98"
#: Fewer jobs than these are drawn with their numbers, and with edges.
_NUMBERED, _EDGED = 60, 600
#: More steps than these are drawn as means over as many bins.
_BINS = 350
_UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86_400}
_DAY_S, _WEEK_S = 86_400, 604_800
#: More labels than these do not fit side by side.
_LEVEL_LABELS = 8


def check_chart(option: str, path: Path | None) -> None:
    """Refuse a chart that could not be drawn, before an hour of simulation is spent on it.

    Raises:
        OptionError: matplotlib is not installed, or the file's suffix is none it is drawn for.
    """
    if path is None:
        return
    if path.suffix.lower() not in _METADATA:
        raise OptionError(f"{option} {path}: the name ends in none of {', '.join(_METADATA)}")
    if find_spec("matplotlib") is None:
        raise OptionError(f"{option} needs matplotlib: pip install 'aucsched[plot]'")


def _new_figure(height: float, rows: int, columns: int = 1, **layout: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    figure = Figure(figsize=(_WIDTH_IN, height), dpi=_DPI, layout="constrained")
    return figure, figure.subplots(rows, columns, **layout)


def _save(figure: Figure, path: Path) -> None:
    content = BytesIO()
    suffix = path.suffix.lower()
    figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    write_bytes(path, content.getvalue())


def _styled() -> Any:
    from matplotlib import rc_context  # noqa: PLC0415 - the extra may be absent

    return rc_context(_STYLE)


def _time_unit(span_s: float) -> tuple[str, float]:
    """Return the unit in which a span reads well, and its seconds."""
    for unit, seconds in reversed(_UNITS.items()):
        if span_s >= 3 * seconds:
            return unit, seconds
    return "s", 1


def draw_gantt(result: Result, path: Path) -> None:
    """Draw who held which processors when, coloured by waiting time.

    The machine only counts processors: the chart gives jobs the lowest numbers that are free.
    """
    with _styled():
        figure, axes = _new_figure(3.6, 1)
        unit, seconds = _time_unit(result.makespan)
        _draw_jobs(figure, axes, result, seconds)
        axes.set_xlim(0, max(result.makespan, 1) / seconds)
        axes.set_ylim(0, result.workload.requests.processors)
        axes.set_xlabel(f"Time since the first submission ({unit})")
        axes.set_ylabel("Processors")
        _save(figure, path)


def _draw_jobs(figure: Figure, axes: Axes, result: Result, seconds: float) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - the extra may be absent
    from matplotlib.colors import SymLogNorm  # noqa: PLC0415

    boxes, values = [], []
    placed = place_lowest_first(result.workload, result.starts)
    wait_unit, wait_seconds = _time_unit(float(result.wait.max(initial=0)))
    few = len(placed) <= _NUMBERED
    for job, wait in zip(result.started.tolist(), (result.wait / wait_seconds).tolist(), strict=True):
        start = result.starts[job] / seconds
        end = start + result.workload.run[job] / seconds
        for first, count in placed[job]:
            boxes.append([(start, first), (end, first), (end, first + count), (start, first + count)])
            values.append(wait)
        if few:
            first, count = max(placed[job], key=lambda run: run[1])
            place = ((start + end) / 2, first + count / 2)
            axes.annotate(
                str(result.workload.ids[job]), place, ha="center", va="center", fontsize=5, clip_on=True
            )
    edged = len(placed) <= _EDGED
    jobs = PolyCollection(
        boxes,
        array=np.array(values),
        cmap="YlGnBu" if not few else "Blues",
        norm=SymLogNorm(linthresh=_threshold(values), vmin=0, vmax=max(values, default=0) * 1.6 or 1),
        edgecolors="#30343a" if edged else "none",
        linewidths=0.4 if edged else 0,
        rasterized=not edged,
        zorder=1,
    )
    axes.add_collection(jobs)
    figure.colorbar(jobs, ax=axes, label=f"Waiting time ({wait_unit})", pad=0.01, aspect=30)


def _threshold(values: list[float]) -> float:
    """Return the waiting time below which colours are linear: the median of those who waited."""
    waited = [value for value in values if value > 0]
    return float(np.median(waited)) if waited else 1.0


def draw_utilization(result: Result, path: Path) -> None:
    """Draw how much of the machine was used, and how many jobs waited, over time."""
    with _styled():
        figure, (top, bottom) = _new_figure(3.6, 2, sharex=True)
        unit, seconds = _time_unit(result.makespan)
        _draw_used(top, result, seconds)
        _draw_waiting(bottom, result, seconds)
        bottom.set_xlim(0, max(result.makespan, 1) / seconds)
        bottom.set_xlabel(f"Time since the first submission ({unit})")
        figure.align_ylabels()
        _save(figure, path)


def _edges(result: Result) -> NDArray[np.float64] | None:
    """Return the edges of bins, None where the steps themselves are few enough to be seen."""
    if len(result.timeline.times) <= _BINS:
        return None
    return np.linspace(0, result.makespan, _BINS + 1)


def _draw_used(axes: Axes, result: Result, seconds: float) -> None:
    timeline, edges = result.timeline, _edges(result)
    used = timeline.used * (100 / result.workload.requests.processors)
    if edges is None:
        axes.fill_between(timeline.times / seconds, used, step="post", color=_BLUE, alpha=0.35, linewidth=0)
        axes.step(timeline.times / seconds, used, where="post", color=_BLUE, linewidth=0.8)
    else:
        axes.stairs(timeline.mean(used, edges), edges / seconds, fill=True, color=_BLUE, alpha=0.35)
        axes.stairs(timeline.mean(used, edges), edges / seconds, color=_BLUE, linewidth=0.6)
    mean = timeline.mean(used, np.array([0, result.makespan])) if result.makespan else np.zeros(1)
    axes.axhline(mean[0], color=_ORANGE, linewidth=0.9, linestyle="--", label=f"mean {mean[0]:.1f} %")
    axes.set_ylim(0, 104)
    axes.set_ylabel("Processors used (%)")
    axes.legend(loc="lower right", facecolor="white", framealpha=0.85, frameon=True, edgecolor="none")


def _draw_waiting(axes: Axes, result: Result, seconds: float) -> None:
    timeline, edges = result.timeline, _edges(result)
    waiting = timeline.waiting
    if edges is None:
        axes.fill_between(
            timeline.times / seconds, waiting, step="post", color=_ORANGE, alpha=0.35, linewidth=0
        )
        axes.step(timeline.times / seconds, waiting, where="post", color=_ORANGE, linewidth=0.8)
    else:
        most = timeline.most(waiting, edges)
        axes.stairs(most, edges / seconds, fill=True, color=_ORANGE, alpha=0.3, label="largest")
        axes.stairs(
            timeline.mean(waiting, edges), edges / seconds, color=_ORANGE, linewidth=0.7, label="mean"
        )
        axes.legend(loc="upper right", ncols=2)
    axes.set_ylim(0, max(float(waiting.max()), 1) * 1.12)
    axes.set_ylabel("Jobs waiting")


def draw_workload(workload: Workload, log: SwfLog, path: Path) -> None:
    """Draw a log in four panels: sizes, run times and estimates, the day's course, the load."""
    with _styled():
        figure, panels = _new_figure(4.8, 2, 2)
        _draw_sizes(panels[0, 0], workload)
        _draw_times(panels[0, 1], workload)
        _draw_hours(panels[1, 0], workload, log)
        _draw_load(panels[1, 1], workload)
        for letter, axes in zip("abcd", panels.flat, strict=True):
            axes.set_title(f"({letter})", loc="left", fontsize=8, fontweight="bold")
        _save(figure, path)


def _draw_sizes(axes: Axes, workload: Workload) -> None:
    size = np.asarray(workload.requests.size)
    classes = np.ceil(np.log2(size)).astype(int)
    work = size * np.asarray(workload.run, dtype=np.float64)
    count = int(np.ceil(np.log2(workload.requests.processors))) + 1
    place = np.arange(count)
    for offset, weights, label, color in ((-0.2, None, "jobs", _BLUE), (0.2, work, "work", _ORANGE)):
        shares = np.bincount(classes, weights=weights, minlength=count)
        axes.bar(place + offset, 100 * shares / shares.sum(), 0.4, label=label, color=color)
    axes.set_xticks(place, [_size_label(power, workload.requests.processors) for power in place.tolist()])
    axes.tick_params(axis="x", rotation=45 if count > _LEVEL_LABELS else 0)
    axes.set_xlabel("Processors")
    axes.set_ylabel("Share (%)")
    axes.legend(loc="upper right")


def _size_label(power: int, processors: int) -> str:
    smallest, largest = 2 ** (power - 1) + 1, min(2**power, processors)
    return f"{largest}" if power == 0 or smallest >= largest else f"{smallest}–{largest}"


def _draw_times(axes: Axes, workload: Workload) -> None:
    for values, label, color in (
        (workload.run, "run time", _BLUE),
        (workload.requests.estimate, "estimate", _ORANGE),
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
    axes.bar(np.arange(24) + 0.5, 100 * shares / shares.sum(), 0.85, color=_BLUE)
    axes.set_xticks(range(0, 25, 4))
    local = log.header_count("UnixStartTime") is not None
    axes.set_xlabel("Hour of the day (local)" if local else "Hour of the log's day")
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
    axes.stairs(load, np.arange(len(load) + 1), fill=True, color=_BLUE, alpha=0.45)
    axes.axhline(100, color=_GREY, linewidth=0.8, linestyle="--")
    axes.set_xlim(0, len(load))
    axes.set_xlabel(f"{unit.capitalize()} of the log")
    axes.set_ylabel(f"Work submitted in a {unit}\n(% of the machine)")
