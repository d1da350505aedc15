"""What all charts share: style, size, files. matplotlib comes with the extra ``plot``."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError
from ..formats.binary import write_bytes

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
BLUE, ORANGE, GREY = "#1f5a94", "#c8641e", "#8a8f98"
_UNITS = {"s": 1, "min": 60, "h": 3600, "days": 86_400}


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


def new_figure(height: float, rows: int, columns: int = 1, **layout: Any) -> tuple[Figure, Any]:
    """Return an empty figure as wide as a page's text, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra may be absent

    figure = Figure(figsize=(_WIDTH_IN, height), dpi=_DPI, layout="constrained")
    return figure, figure.subplots(rows, columns, **layout)


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; the same figure gives the same bytes."""
    content = BytesIO()
    suffix = path.suffix.lower()
    figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    write_bytes(path, content.getvalue())


def styled() -> Any:
    """Return a context in which figures are drawn in the house's style."""
    from matplotlib import rc_context  # noqa: PLC0415 - the extra may be absent

    return rc_context(_STYLE)


def time_unit(span_s: float, largest: str = "days") -> tuple[str, float]:
    """Return the unit in which a span reads well, at most the largest named, and its seconds."""
    for unit, seconds in reversed(_UNITS.items()):
        if span_s >= 3 * seconds and seconds <= _UNITS[largest]:
            return unit, seconds
    return "s", 1


def legend_above(axes: Axes) -> None:
    """Put the legend above the axes' right end, where no data are."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=3, borderaxespad=0)


def count_axis(axes: Axes) -> None:
    """Let the vertical axis show whole numbers only: it counts."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - the extra may be absent

    axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
