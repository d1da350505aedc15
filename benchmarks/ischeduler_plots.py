"""The iScheduler benchmark's plots: figures 9 to 16."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ischeduler_points import BETAS, LIMITS, PAPERS, SHARES, TABLE_3_SHARES, Point
from ischeduler_tables import Means, baseline

from aucsched.reports.canvas import new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = {
    "Even-H-FR": ("#1f5a94", "s", "-"),
    "Even-H-FQ": ("#1f5a94", "s", "--"),
    "Low-Imp-FR": ("#c8641e", "o", "-"),
    "Low-Imp-FQ": ("#c8641e", "o", "--"),
    "ideal-only": ("#8a8f98", "x", "-"),
    "moldable": ("#4b7f52", "^", "-"),
    "ideal-backfill": ("#222222", "v", "-"),
}
_NAMES = {
    "wait": "mean wait (1000 s)",
    "total": "mean total (1000 s)",
    "execution": "mean execution (1000 s)",
}
_DPI = 110
_PERCENT = [f"{share:.0%}" for share in SHARES]


def draw_all(rows: Means, load: float, folder: Path) -> None:
    """Draw every figure."""
    folder.mkdir(parents=True, exist_ok=True)
    with styled():
        _against_baselines(rows, load, folder, "Even-H-FQ", 9, ("linear", "parabolic"))
        _by_limit(rows, load, folder, "wait", 10)
        _by_limit(rows, load, folder, "total", 11)
        _by_share(rows, load, folder, "wait", 12)
        _by_share(rows, load, folder, "total", 13)
        _against_baselines(rows, load, folder, "Low-Imp-FR", 14, ("linear",))
        _by_beta(rows, folder, "wait", 15)
        _by_beta(rows, folder, "total", 16)


def _line(axes: Axes, name: str, marks: list[str], values: list[float]) -> None:
    colour, marker, style = _STYLES[name]
    thousands = [value / 1000 for value in values]
    axes.plot(marks, thousands, style, color=colour, marker=marker, markersize=3, linewidth=1, label=name)


def _finish(axes: Axes, title: str, horizontal: str, vertical: str, *, log: bool = False) -> None:
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _against_baselines(
    rows: Means, load: float, folder: Path, ours: str, number: int, models: tuple[str, ...]
) -> None:
    figure, grid = new_figure(2.2 * len(models), len(models), 3, dpi=_DPI, squeeze=False)
    for row, model in zip(grid, models, strict=True):
        for axes, column in zip(row, ("wait", "execution", "total"), strict=True):
            for name in ("moldable", "ideal-backfill", ours):
                points = [baseline("system", load, model, name, share) for share in SHARES]
                _line(axes, name, _PERCENT, [rows.of(point, column) for point in points])
            _finish(axes, f"{model}, load {load:g}", "min_%_of_ideal", _NAMES[column])
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(folder / f"figure-{number}.png")


def _by_limit(rows: Means, load: float, folder: Path, column: str, number: int) -> None:
    figure, grid = new_figure(4.4, 2, 3, dpi=_DPI)
    marks = ["none" if limit is None else str(limit) for limit in LIMITS]
    for axes, share in zip(grid.flat, SHARES, strict=False):
        for name in PAPERS:
            points = [Point("system", load, "linear", name, limit, share) for limit in LIMITS]
            _line(axes, name, marks, [rows.of(point, column) for point in points])
        _finish(axes, f"min {share:.0%}", "M", _NAMES[column])
    grid[1, 2].axis("off")
    grid[1, 2].legend(*grid[0, 0].get_legend_handles_labels(), loc="center")
    figure.savefig(folder / f"figure-{number}.png")


def _by_share(rows: Means, load: float, folder: Path, column: str, number: int) -> None:
    figure, grid = new_figure(4.4, 2, 3, dpi=_DPI)
    for axes, limit in zip(grid.flat, LIMITS, strict=False):
        for name in PAPERS:
            points = [Point("system", load, "linear", name, limit, share) for share in SHARES]
            _line(axes, name, _PERCENT, [rows.of(point, column) for point in points])
        _finish(axes, f"M = {'no limit' if limit is None else limit}", "min_%_of_ideal", _NAMES[column])
    grid[1, 2].axis("off")
    grid[1, 2].legend(*grid[0, 0].get_legend_handles_labels(), loc="center")
    figure.savefig(folder / f"figure-{number}.png")


def _by_beta(rows: Means, folder: Path, column: str, number: int) -> None:
    figure, grid = new_figure(4.4, 2, 3, dpi=_DPI)
    marks = [f"{beta:g}" for beta in BETAS]
    for row, kind in zip(grid, ("GE", "MIXED"), strict=True):
        for axes, share in zip(row, TABLE_3_SHARES, strict=True):
            for name in ("ideal-only", "moldable", "ideal-backfill", "Low-Imp-FR"):
                points = [baseline(kind, beta, "parabolic", name, share) for beta in BETAS]
                _line(axes, name, marks, [rows.of(point, column) for point in points])
            _finish(axes, f"{kind}, min {share:.0%}", "β", _NAMES[column], log=True)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(folder / f"figure-{number}.png")
