"""The rows of a sweep as files, as a summary and as a picture.

CSV and, with the extra ``data``, Parquet hold the same values. The picture has quality and time
over window size and bid caps, in small multiples. In a panel the window (else a cap, else the axis
of most values) runs from left to right. Each value of one other axis, a cap if there is one, is a
line through the means of the repetitions with whiskers from their least to their greatest. Every
combination of the axes left over has its panels: one for each figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ..cluster.errors import OptionError
from ..cluster.option_fields import options_in
from ..cluster.text import plural
from ..reports.canvas import new_figure, save_figure, styled
from ..reports.console_tables import FIGURES, figure_columns, table_of
from ..reports.table_files import kind_of, write_columns
from ..simulation.simulate_options import PolicyOptions
from .axes import AXES, Row, Value
from .run_plan import FAILED, RunPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Columns in front of all others, and behind them.
_FIRST = ("run", "input", "input_sha256")
_LAST = ("aucsched", "highspy", "python")
#: The options of a run, as far as its kind reads them.
_OPTIONS = (
    *AXES,
    *(name for name in options_in(PolicyOptions) if name not in AXES),
    *("repeat", "seed"),
)
#: Columns that hold whole numbers or texts also where every value is missing; what is not named
#: here holds floats unless its values say otherwise.
_WHOLE = frozenset({"run", "seed", "repeat"} | {name for name, one in AXES.items() if one.kind is int})
_TEXT = frozenset(
    {*_FIRST[1:], *_LAST, "status", "error"} | {name for name, one in AXES.items() if one.kind is str}
)


def columns_of(rows: Sequence[Row]) -> dict[str, list[Value]]:
    """Return all rows by column: the input's, the options, the result's, seconds, versions."""
    seen = dict.fromkeys(name for row in rows for name in row)
    seconds = [name for name in seen if name.startswith("seconds")]
    options = [name for name in _OPTIONS if name in seen]
    framed = {*_FIRST, *options, *_LAST, *seconds, "error"}
    result = [name for name in seen if name not in framed]
    names = (*_FIRST, *options, *result, "error", *seconds, *_LAST)
    return {name: [row.get(name) for row in rows] for name in names}


def type_of(name: str, values: Sequence[Value]) -> type[int | float | str]:
    """Return what a column holds: texts, whole numbers or floats."""
    if name in _TEXT:
        return str
    is_missing = all(value is None for value in values)
    return int if is_missing and name in _WHOLE else kind_of(values)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows whole or not at all, in the form the name's suffix says.

    Raises:
        InputError: the file cannot be written.
    """
    columns = columns_of(rows)
    write_columns(path, columns, {name: type_of(name, values) for name, values in columns.items()})


#: Lines of the table.
_LINES = 24


def render_sweep(columns: Mapping[str, Sequence[Any]], axes: Sequence[str], console: Console) -> None:
    """Print the table: one line for each point of the grid, with means over its repetitions."""
    count = len(columns["run"])
    varied = [axis for axis in axes if len(set(columns.get(axis, ()))) > 1]
    points: dict[tuple[Any, ...], list[int]] = {}
    for row in range(count):
        points.setdefault(tuple(columns[axis][row] for axis in varied), []).append(row)
    lines = [
        dict(zip(varied, point, strict=True))
        | {name: _mean(columns[name], rows) for name in FIGURES if name in columns}
        for point, rows in list(points.items())[:_LINES]
    ]
    failed = sum(status == "failed" for status in columns.get("status", ()))
    title = f"{plural(count, 'run')}, {plural(len(points), 'point')}" + (
        f", {failed} failed" if failed else ""
    )
    console.print(table_of(title, figure_columns(varied, lines), lines, console, rest="the table of -o"))
    if len(points) > _LINES:
        console.print(f"… and {plural(len(points) - _LINES, 'more point')} in the table")


def _mean(values: Sequence[Any], rows: Sequence[int]) -> float | None:
    known = [values[row] for row in rows if isinstance(values[row], (int, float))]
    return sum(known) / len(known) if known else None


#: The most panels of a figure, and the most lines in a panel, that can still be read.
_MOST_PANELS, _MOST_LINES = 24, 10
_ACROSS = 4
_PANEL_IN, _FRAME_IN = 1.5, 0.6
#: For a screen: there are many panels.
_DPI = 200
#: What runs from left to right, and what makes lines: the first swept of these, then any axis.
_FIRST_ACROSS = ("window", "max_bids", "max_bids_per_job")
_FIRST_LINES = ("max_bids", "max_bids_per_job")
_NAMES = {
    "window": "Window (jobs)",
    "max_bids": "bids in all",
    "max_bids_per_job": "bids a job",
    "time_limit_s": "seconds",
    "work_limit": "steps",
}
#: From this ratio of the greatest to the least on, an axis is logarithmic.
_LOGARITHMIC_FROM = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure that is drawn: its column, label, and what a value is multiplied by.

    ``of_best`` divides by the greatest value of the sweep.
    """

    column: str
    label: str
    factor: float = 1.0
    of_best: bool = False


#: Kind -> its figures, quality first, time last.
MEASURES: Mapping[str, tuple[Measure, ...]] = {
    "snapshot": (
        Measure(column="priority", label="Priority sum\n(% of the best)", factor=100, of_best=True),
        Measure(column="gap", label="Gap to the bound\n(%)", factor=100),
        Measure(column="seconds.cpu", label="Processor time\n(s)"),
    ),
    "workload": (
        Measure(column="cpu_utilization", label="Utilisation\n(%)", factor=100),
        Measure(column="wait_mean_s", label="Mean wait\n(min)", factor=1 / 60),
        Measure(column="level_mean", label="Mean level"),
        Measure(column="seconds.cpu", label="Processor time\n(s)"),
    ),
    "trace": (
        Measure(column="cpu_utilization", label="Utilisation\n(%)", factor=100),
        Measure(column="wait_mean_s", label="Mean wait\n(h)", factor=1 / 3600),
        Measure(column="bounded_slowdown_mean", label="Mean bounded\nslowdown"),
        Measure(column="seconds.cpu", label="Processor time\n(s)"),
    ),
}

_Points = tuple[tuple[str, tuple[Value, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxesLayout:
    """Which axis runs from left to right, makes lines, makes panels; "" and (None,) for none."""

    across: tuple[str, tuple[Value, ...]]
    lines: tuple[str, tuple[Value, ...]]
    panels: _Points


def layout_of(plan: RunPlan) -> AxesLayout:
    """Return where each axis of a plan goes that has more than one value."""
    swept = {name: values for name, values in plan.axes if len(values) > 1}
    by_count = sorted(swept, key=lambda name: -len(swept[name]))
    across = next((name for name in (*_FIRST_ACROSS, *by_count) if name in swept), "")
    left = {name: values for name, values in swept.items() if name != across}
    lines = next((name for name in (*_FIRST_LINES, *by_count) if name in left), "")
    return AxesLayout(
        across=(across, swept.get(across, (None,))),
        lines=(lines, left.get(lines, (None,))),
        panels=tuple((name, values) for name, values in left.items() if name != lines),
    )


def check_panels(plan: RunPlan) -> None:
    """Raise OptionError when a plan's picture would be more than a person reads."""
    layout = layout_of(plan)
    panels = len(list(product(*(values for _, values in layout.panels))))
    lines = len(layout.lines[1])
    if panels > _MOST_PANELS:
        raise OptionError(
            f"--plot: {panels} panels for each figure are more than {_MOST_PANELS}: sweep fewer axes"
        )
    if lines > _MOST_LINES:
        raise OptionError(f"--plot: {lines} lines in a panel ({layout.lines[0]}) are more than {_MOST_LINES}")


def draw_sweep(plan: RunPlan, rows: Sequence[Row], path: Path | None) -> Figure:
    """Draw a sweep's rows; runs that failed are counted in the title, and not drawn.

    Raises:
        InputError: the file cannot be written.
    """
    layout, measures = layout_of(plan), MEASURES[plan.subject.kind]
    good = [row for row in rows if row["status"] != FAILED]
    points = list(product(*(values for _, values in layout.panels)))
    across = min(_ACROSS, len(points))
    below = -(-len(points) // across) * len(measures)
    with styled():
        figure, grid = new_figure(_FRAME_IN + _PANEL_IN * below, below, across, dpi=_DPI, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for place, point in enumerate(points):
            top = place // across * len(measures)
            _draw_column(grid[top : top + len(measures), place % across], layout, measures, point, good)
            for axes, measure in zip(grid[top:, place % across], measures, strict=False):
                axes.tick_params(labelleft=place % across == 0)
                axes.set_ylabel(measure.label if place % across == 0 else "")
        for first in range(len(measures)):
            of_one = grid[first :: len(measures)].flat
            _share_heights([axes for axes in of_one if axes.get_visible()])
        _head(figure, grid[0, 0], layout, failed=len(rows) - len(good), runs=len(rows))
        save_figure(figure, path)
    return figure


def _draw_column(
    column: Sequence[Axes],
    layout: AxesLayout,
    measures: Sequence[Measure],
    point: Sequence[Value],
    rows: Sequence[Row],
) -> None:
    """Draw the figures of one point of the panels' axes below each other."""
    named = dict(zip((name for name, _ in layout.panels), point, strict=True))
    here = [row for row in rows if all(_is_at(row, name, value) for name, value in named.items())]
    for axes, measure in zip(column, measures, strict=True):
        axes.set_visible(True)
        axes.tick_params(labelbottom=axes is column[-1])
        # What a measure's values are divided by.
        most = max((_number(row, measure) or 0.0 for row in rows), default=0.0)
        _draw_panel(axes, layout, measure, here, (most or 1.0) if measure.of_best else 1.0)
    titles = (f"{_NAMES.get(name, name)} {value}" for name, value in named.items())
    column[0].set_title("\n".join(titles), fontsize=7)
    column[-1].set_xlabel(_NAMES.get(layout.across[0], layout.across[0]))


def _is_at(row: Row, name: str, value: Value) -> bool:
    """Return whether a run is at an axis's value; one that does not read the option is at each."""
    return row.get(name, value) == value


def _number(row: Row, measure: Measure) -> float | None:
    value = row.get(measure.column)
    return None if value is None else float(value)


def _draw_panel(axes: Axes, layout: AxesLayout, measure: Measure, rows: Sequence[Row], best: float) -> None:
    """Draw one figure of one point: a line for each value of the lines' axis, dark to light."""
    from matplotlib import colormaps  # noqa: PLC0415 - the extra may be absent

    (across, values), (lines, among) = layout.across, layout.lines
    is_number = _are_numbers(values)
    for place, one in enumerate(among):
        of_line = [row for row in rows if _is_at(row, lines, one)]
        # Lines that join no numbers are points side by side.
        spread = 0.0 if is_number or len(among) == 1 else 0.5 * (place / (len(among) - 1) - 0.5)
        drawn: list[tuple[float, float, float, float]] = []
        for number, value in enumerate(values):
            found = [_number(row, measure) for row in of_line if _is_at(row, across, value)]
            figures = [figure * measure.factor / best for figure in found if figure is not None]
            if figures:
                at = float(str(value)) if is_number else number + spread
                mean = min(max(fmean(figures), min(figures)), max(figures))
                drawn.append((at, mean, mean - min(figures), max(figures) - mean))
        if drawn:
            places, means, low, high = zip(*drawn, strict=True)
            # Where lines coincide, those drawn first show as a rim.
            width = 0.8 + 0.45 * (len(among) - 1 - place)
            axes.errorbar(
                places, means, (low, high), color=colormaps["viridis"](0.85 * place / max(1, len(among) - 1)),
                label=str(one),
                linewidth=width, linestyle="-" if is_number else "", marker="o", markersize=2 + width,
                capsize=1.5, clip_on=False,
            )  # fmt: skip
    _mark_values(axes, values)


def _are_numbers(values: Sequence[Value]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _mark_values(axes: Axes, values: Sequence[Value]) -> None:
    """Put a tick at each value that was swept, and nowhere else."""
    axes.set_xticks([], minor=True)
    if not _are_numbers(values):
        labels = ["" if value is None else str(value) for value in values]
        axes.set_xticks(range(len(values)), labels, rotation=30, ha="right", rotation_mode="anchor")
        axes.margins(x=0.15)
        return
    places = [float(str(value)) for value in values]
    if min(places) > 0 and max(places) >= _LOGARITHMIC_FROM * min(places):
        axes.set_xscale("log")
        axes.set_xticks([], minor=True)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.margins(x=0.08)


def _share_heights(panels: Sequence[Axes]) -> None:
    """Give the panels of a figure the same vertical axis, logarithmic if values differ by much."""
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415 - may be absent

    limits = [bound for axes in panels for bound in axes.dataLim.intervaly if abs(bound) < float("inf")]
    if not limits:
        return
    low, high = min(limits), max(limits)
    for axes in panels:
        if low > 0 and high >= _LOGARITHMIC_FROM * low:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(LogLocator(subs=()))
            axes.set_ylim(low / 1.2, high * 1.2)
        else:
            room = 0.06 * (high - low or abs(high) or 1.0)
            axes.set_ylim(max(0.0, low - room) if low >= 0 else low - room, high + room)
        axes.grid(axis="y", linewidth=0.3, color="#d5d8dc")


def _head(figure: Figure, first: Axes, layout: AxesLayout, *, failed: int, runs: int) -> None:
    """Put the lines' legend above all panels, and how many runs are missing."""
    name = layout.lines[0]
    handles, labels = first.get_legend_handles_labels()
    if name and handles:
        figure.legend(
            handles, labels, loc="outside upper center", ncols=len(labels), title=_NAMES.get(name, name),
            title_fontsize=8,
        )  # fmt: skip
    if failed:
        figure.suptitle(f"{failed} of {runs} runs failed and are not drawn", fontsize=8)
