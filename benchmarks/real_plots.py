"""Plots of real.py: each policy's mean bounded slowdown and longest wait beside EASY's, a plot a log.

Logs on nodes are beside backfill-slurm, with passes every 300 s; lines are the gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from marked_part import can_draw
from real_tables import Row, base_of, has_queue, logs_of

_PACED = "passes every 300 s"
_TICKS = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 10, 100)


def draw(rows: Sequence[Row], folder: Path) -> Path | None:
    """Draw all logs with a queue into one file; None where matplotlib is missing."""
    if not can_draw():
        return None
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    cases = [(name, "") for name in logs_of(rows) if has_queue(rows, name)]
    cases += [(name, _PACED) for name in dict.fromkeys(one["log"] for one in rows if one["doubt"] == _PACED)]
    lines = -(-len(cases) // 3)
    figure = Figure(figsize=(12, 3.4 * lines), layout="constrained")
    for place, (name, doubt) in enumerate(cases):
        axes = figure.add_subplot(lines, 3, place + 1)
        base = base_of(rows, name, doubt)
        if base is None or not base["wait_max"]:
            continue
        for (x, y), policies in _points(rows, base).items():
            is_ours = any(policy.startswith("aucsched") for policy in policies)
            axes.plot(x, y, "o", color="black" if is_ours else "grey")
            text = " = ".join(policies)
            axes.annotate(text, (x, y), fontsize=7, xytext=(4, 4), textcoords="offset points")
        axes.axvline(1.1, linewidth=0.5, color="grey")
        axes.axhline(0.9, linewidth=0.5, color="grey")
        beside = f"{base['policy']}'s".replace("easy", "EASY")
        axes.set(title=name, xlabel=f"longest wait / {beside}", ylabel=f"bounded slowdown / {beside}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.margins(x=0.35, y=0.15)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(FixedLocator(_TICKS))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "real.png"
    figure.savefig(path, dpi=110)
    return path


def _points(rows: Sequence[Row], base: Row) -> dict[tuple[float, float], list[str]]:
    """Return the policies at each point; FCFS is off every scale."""
    found: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        if (row["log"], row["doubt"]) == (base["log"], base["doubt"]) and row["policy"] != "fcfs":
            x, y = row["wait_max"] / base["wait_max"], row["slowdown_mean"] / base["slowdown_mean"]
            found.setdefault((round(x, 3), round(y, 3)), []).append(row["policy"])
    return found
