"""The common part of all charts: style, size, files, and how equal charts become equal bytes.

matplotlib comes with the extra ``plot``; nothing here imports it before a picture is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError
from ..cluster.text import escaped
from ..formats.writing import write_bytes

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

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
#: Suffix -> what savefig takes so that equal charts are equal bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}
_UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86_400}


def new_figure(
    height: float, rows: int, columns: int = 1, *, dpi: int = _DPI, **layout: Any
) -> tuple[Figure, Any]:
    """Return an empty figure as wide as a page's text, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    figure = Figure(figsize=(_WIDTH_IN, height), dpi=dpi, layout="constrained")
    return figure, figure.subplots(rows, columns, **layout)


def styled(**more: Any) -> Any:
    """Return a context that draws figures in the project's style, with ``more`` of matplotlib's."""
    from matplotlib import rc_context  # noqa: PLC0415 - the extra may be absent

    return rc_context(_STYLE | more)


def write_title(axes: Axes, text: str) -> None:
    """Write what a chart shows above its left end: policy and log."""
    if text:
        axes.set_title(literal(text), loc="left", fontsize=8)


def name_nodes(axes: Axes, names: Sequence[str], cores: Sequence[int], most: int = 22) -> None:
    """Name nodes on the vertical axis, in units of cores: at most ``most``, evenly spaced."""
    step = -(-len(names) // most)
    first = [sum(cores[:place]) for place in range(0, len(names), step)]
    axes.set_yticks(first, [names[place] for place in range(0, len(names), step)], fontsize=6)


def points_per_unit(axes: Axes) -> tuple[float, float]:
    """Return how many points a unit of the horizontal and the vertical axis takes after layout."""
    (x0, y0), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)]) * (72 / axes.figure.dpi)
    return x1 - x0, y1 - y0


def add_boxes(axes: Axes, boxes: NDArray[np.float64], **looks: Any) -> Any:
    """Draw boxes (left, top, width, height), shape (boxes, 4), as matplotlib's PolyCollection."""
    import numpy as np  # noqa: PLC0415 - costs more than --help may
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


def check_drawing(option: str, path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before time is spent on what it would show.

    Raises:
        OptionError: matplotlib is not installed, or the file's suffix is none it is drawn for.
    """
    if path is not None and path.suffix.lower() not in _METADATA:
        raise OptionError(f"{option} {path}: the name ends in none of {', '.join(_METADATA)}")
    if find_spec("matplotlib") is None:
        raise OptionError(f"{option} needs matplotlib: pip install 'aucsched[plot]'")


def literal(text: str) -> str:
    """Return a name that matplotlib draws letter for letter: two dollars would be a formula."""
    return escaped(text).replace("$", r"\$")


def save_figure(figure: Figure, path: Path | None) -> None:
    """Write a figure whole or not at all, in the form its name's suffix says; None: nowhere.

    Raises:
        InputError: the file cannot be written.
    """
    if path is None:
        return
    content = BytesIO()
    suffix = path.suffix.lower()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    write_bytes(path, content.getvalue())
