"""Plots of real.py: each policy's mean bounded slowdown and longest wait beside EASY's, a plot a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from real_tables import Row, base_of, logs_of


def draw(rows: Sequence[Row], folder: Path) -> Path | None:
    """Draw all logs into one file; None where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    logs = logs_of(rows)
    figure = Figure(figsize=(9, 3 * -(-len(logs) // 3)), layout="constrained")
    for place, name in enumerate(logs):
        axes = figure.add_subplot(-(-len(logs) // 3), 3, place + 1)
        base = base_of(rows, name)
        for row in rows:
            if base is None or row["log"] != name or row["doubt"] or not base["wait_max"]:
                continue
            x, y = row["wait_max"] / base["wait_max"], row["slowdown_mean"] / base["slowdown_mean"]
            axes.plot(x, y, "o", color="black" if row["policy"].startswith("aucsched") else "grey")
            axes.annotate(row["policy"], (x, y), fontsize=6, xytext=(3, 3), textcoords="offset points")
        axes.axvline(1.1, linewidth=0.5, color="grey")
        axes.axhline(0.9, linewidth=0.5, color="grey")
        axes.set(title=name, xlabel="longest wait / EASY's", ylabel="bounded slowdown / EASY's")
        axes.set_xscale("log")
        axes.set_yscale("log")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "real.png"
    figure.savefig(path, dpi=120)
    return path
