"""The common part of all charts: style, size, files. matplotlib comes with the extra ``plot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
BLUE, ORANGE, GREY = "#1f5a94", "#c8641e", "#8a8f98"
_UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86_400}


def new_figure(
    height: float, rows: int, columns: int = 1, *, dpi: int = _DPI, **layout: Any
) -> tuple[Figure, Any]:
    """Return an empty figure as wide as a page's text, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    figure = Figure(figsize=(_WIDTH_IN, height), dpi=dpi, layout="constrained")
    return figure, figure.subplots(rows, columns, **layout)


def styled(**more: Any) -> Any:
    """Return a context in which figures are drawn in the project's style, and ``more`` of matplotlib's."""
    from matplotlib import rc_context  # noqa: PLC0415 - the extra may be absent

    return rc_context(_STYLE | more)


def write_title(axes: Axes, text: str) -> None:
    """Write what a chart shows above its left end: policy and log."""
    from ..formats.drawing import literal  # noqa: PLC0415 - beside the extra's own imports

    if text:
        axes.set_title(literal(text), loc="left", fontsize=8)


def name_nodes(axes: Axes, names: Sequence[str], cores: Sequence[int], most: int = 22) -> None:
    """Name nodes on the vertical axis, whose unit is a core: at most ``most`` of them, evenly spaced."""
    step = -(-len(names) // most)
    first = [sum(cores[:place]) for place in range(0, len(names), step)]
    axes.set_yticks(first, [names[place] for place in range(0, len(names), step)], fontsize=6)


def points_per_unit(axes: Axes) -> tuple[float, float]:
    """Return how many points a unit of the horizontal and of the vertical axis takes, once laid out."""
    (x0, y0), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)]) * (72 / axes.figure.dpi)
    return x1 - x0, y1 - y0


def add_boxes(axes: Axes, boxes: NDArray[np.float64], **looks: Any) -> Any:
    """Draw boxes (left, top, width, height), shape (boxes, 4), as a PolyCollection of matplotlib."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - the extra may be absent

    left, top, width, height = boxes.T
    right, bottom = left + width, top + height
    flat = np.stack([left, top, right, top, right, bottom, left, bottom], axis=1)
    drawn = PolyCollection(list(flat.reshape(-1, 4, 2)), **looks)
    axes.add_collection(drawn)
    return drawn


def time_unit(span_s: float, largest: str = "days") -> tuple[str, float]:
    """Return the unit in which a span reads well, at most the largest named, and its seconds."""
    for unit, seconds in reversed(_UNITS.items()):
        if span_s >= 3 * seconds and seconds <= _UNITS[largest]:
            return unit, seconds
    return "s", 1


def legend_above(axes: Axes, *, up: float = 0.97, pad: float = 0, ncols: int = 3, **more: Any) -> None:
    """Put the legend above the axes' right end, where no data are."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, up), ncols=ncols, borderaxespad=pad, **more)


def count_axis(axes: Axes) -> None:
    """Let the vertical axis show whole numbers only: it counts."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - the extra may be absent

    axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
