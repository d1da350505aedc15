"""Jobs as boxes over time and processors, coloured by waiting time, for Gantt charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...formats.drawing import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

#: Up to this many jobs are drawn as boxes with edges; more are averaged into an image's cells.
_BOXES = 600
#: Cells of that image, at most: about those of the printed page.
_COLUMNS, _ROWS = 1500, 600
#: Light to dark, the lightest still apart from the white of idle processors.
_COLORS = ("#d3e1ee", "#8fb8da", "#3f83ba", "#1b4f86", "#0c2547")
#: Room that a digit of a job's number takes, in points.
_DIGIT_PT, _LINE_PT = 3.2, 6.0
#: Ticks of the scale of waiting times are at least so far apart, as a share of it.
_APART = 0.08
#: Colours darker than this value of the map carry white numbers.
_DARK = 0.55


class Boxes(NamedTuple):
    """One box for each run of neighbouring processors that a job holds, in the axes' units."""

    job: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]


def draw_jobs(axes: Axes, boxes: Boxes, wait: NDArray[np.float64], names: Sequence[str]) -> None:
    """Draw jobs into axes whose limits stand and begin at 0.

    Args:
        axes: time across, processors up.
        boxes: any order.
        wait: by job.
        names: by job; written where they fit.
    """
    colors = _colors(wait[np.unique(boxes.job)])
    if len(np.unique(boxes.job)) > _BOXES:
        _draw_image(axes, boxes, wait, colors, (axes.get_xlim()[1], int(axes.get_ylim()[1])))
        return
    _draw_boxes(axes, boxes, wait, colors)
    figure = cast("Figure", axes.figure)
    figure.draw_without_rendering()  # fixes the axes' size, which says what names fit
    _draw_names(axes, boxes, names, colors.to_rgba(wait))


def label_waits(axes: Axes, wait: NDArray[np.float64], label: str) -> None:
    """Put the scale of waiting times beside the axes, where anybody waited."""
    if wait.any():
        from matplotlib.ticker import FixedLocator, NullLocator  # noqa: PLC0415 - the extra may be absent

        colors = _colors(wait)
        bar = axes.figure.colorbar(colors, ax=axes, label=label, pad=0.01, aspect=30)
        bar.ax.yaxis.set_major_locator(FixedLocator(_ticks(colors, float(wait.max()))))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter("{x:,.15g}")


def _ticks(colors: ScalarMappable, largest: float) -> list[float]:
    """Return 0 and round numbers (1, 2, 5, tenfold) along the scale, so far apart that each can be read."""
    decades = range(-9, int(np.floor(np.log10(largest))) + 1)
    values = np.array([0.0, *(step * 10.0**decade for decade in decades for step in (1, 2, 5))])
    values = values[values <= largest]
    ticks, last = [0.0], 0.0
    for value, place in zip(values.tolist(), np.asarray(colors.norm(values)).tolist(), strict=True):
        if place - last >= _APART:
            ticks.append(value)
            last = place
    return ticks


def _colors(wait: NDArray[np.float64]) -> ScalarMappable:
    """Return the scale of waiting times: linear up to the median of those who waited, then logarithmic."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - the extra may be absent
    from matplotlib.colors import LinearSegmentedColormap, SymLogNorm  # noqa: PLC0415

    waited = wait[wait > 0]
    threshold = float(np.median(waited)) if len(waited) else 1.0
    norm = SymLogNorm(linthresh=threshold, vmin=0, vmax=float(waited.max(initial=threshold)))
    return ScalarMappable(norm, LinearSegmentedColormap.from_list("wait", _COLORS))


def _draw_boxes(axes: Axes, boxes: Boxes, wait: NDArray[np.float64], colors: ScalarMappable) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - the extra may be absent

    left, right, low, high = boxes.start, boxes.end, boxes.first, boxes.last
    corners = np.stack([left, low, right, low, right, high, left, high], axis=1).reshape(-1, 4, 2)
    faces = colors.to_rgba(wait[boxes.job])
    # Edges darker than their boxes: of a job narrower than a line its edges are what is seen.
    edges = faces * (0.6, 0.6, 0.6, 1)
    axes.add_collection(PolyCollection(list(corners), facecolors=faces, edgecolors=edges, linewidths=0.3))


def _draw_names(axes: Axes, boxes: Boxes, names: Sequence[str], colors: NDArray[np.float64]) -> None:
    """Write a job's name into its largest box, where it fits."""
    points = 72 / axes.figure.dpi
    (x0, y0), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)]) * points
    width, height = (boxes.end - boxes.start) * (x1 - x0), (boxes.last - boxes.first) * (y1 - y0)
    written: set[int] = set()
    for box in np.argsort(-width * height, kind="stable").tolist():
        job = int(boxes.job[box])
        text = names[job]
        if job in written or width[box] < _DIGIT_PT * (len(text) + 0.5) or height[box] < _LINE_PT:
            continue
        written.add(job)
        middle = ((boxes.start[box] + boxes.end[box]) / 2, (boxes.first[box] + boxes.last[box]) / 2)
        color = "white" if colors[job][:3].mean() < _DARK else "#20242a"
        axes.annotate(literal(text), middle, ha="center", va="center", fontsize=5, color=color)


def _draw_image(
    axes: Axes,
    boxes: Boxes,
    wait: NDArray[np.float64],
    colors: ScalarMappable,
    extent: tuple[float, int],
) -> None:
    """Draw each cell in the colour of its jobs' mean waiting time, as dense as they fill it.

    Thousands of jobs are narrower than a dot of the page: boxes would hide each other there.
    """
    columns, rows = _COLUMNS, min(_ROWS, extent[1])
    filled, waited = np.zeros((rows, columns)), np.zeros((rows, columns))
    across = np.stack([boxes.start, boxes.end]).T * (columns / extent[0])
    up = np.stack([boxes.first, boxes.last]).T * (rows / extent[1])
    for x, y, value in zip(across.tolist(), up.tolist(), wait[boxes.job].tolist(), strict=True):
        horizontal, across_cells = _cells(x[0], x[1], columns)
        vertical, up_cells = _cells(y[0], y[1], rows)
        part = up_cells[:, None] * across_cells
        filled[vertical, horizontal] += part
        waited[vertical, horizontal] += value * part
    image = colors.to_rgba(waited / np.maximum(filled, 1e-12))
    image[..., 3] = np.clip(filled, 0, 1)
    axes.imshow(
        image, origin="lower", aspect="auto", extent=(0, extent[0], 0, extent[1]), interpolation="none"
    )


def _cells(begin: float, end: float, count: int) -> tuple[slice, NDArray[np.float64]]:
    """Return the cells that a stretch touches, and how much of each it covers."""
    first, last = int(begin), min(int(np.ceil(end)), count)
    edges = np.arange(first, last + 1, dtype=np.float64)
    edges[0], edges[-1] = begin, end
    return slice(first, last), np.diff(edges)
