"""Figures 8.1 to 8.19 of the thesis from our runs, means over seeds, the thesis's numbers beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from marked_part import can_draw
from thesis_cells import Run, order

_COLORS = {
    "ours": (
        *("#1f5a94", "#c8641e", "#5b8c3e", "#8a5aa0", "#a08a3e", "#4fa3b5", "#c94f6d", "#6b7280"),
        *("#9cc4e4", "#e8b48a"),
    ),
    "thesis": "#20242a",
}
#: Figure → table, metric, its factor, what it shows.
_BARS = {
    "8.1": ("A.1", "cpu_utilization", 100, "Utilisation (%)"),
    "8.2": ("A.2", "cpu_utilization", 100, "Utilisation (%)"),
    "8.3": ("A.1", "wait_h", 1, "Waiting time (h)"),
    "8.4": ("A.2", "wait_h", 1, "Waiting time (h)"),
    "8.5": ("A.1", "packing_factor_mean", 1, "Packing factor"),
    "8.6": ("A.1", "fragmentation_mean", 1, "Fragmentation (blocks)"),
    "8.7": ("A.2", "fragmentation_mean", 1, "Fragmentation (blocks)"),
    "8.8": ("A.1", "spread_mean", 1, "Spread (span / nodes)"),
    "8.9": ("A.2", "spread_mean", 1, "Spread (span / nodes)"),
    "8.10": ("A.3", "cpu_utilization", 100, "Utilisation (%)"),
    "8.11": ("A.3", "fragmentation_mean", 1, "Fragmentation (blocks)"),
    "8.12": ("A.3", "spread_mean", 1, "Spread (span / nodes)"),
    "8.13": ("A.4", "level_mean", 1, "Lowest common switch (level)"),
    "8.14": ("A.4", "span_mean", 1, "Span (nodes)"),
    "8.17": ("A.5", "cpu_utilization", 100, "Utilisation (%)"),
    "8.18": ("A.5", "level_mean", 1, "Lowest common switch (level)"),
    "8.19": ("A.5", "span_mean", 1, "Span (nodes)"),
}
#: Where the thesis leaves IPSCHED out: it does not look at where nodes stand.
_WITHOUT_IPSCHED = ("8.6", "8.7", "8.8", "8.9")
_SHARES = {"8.15": None, "8.16": ("5", "6", "5'", "6'")}


#: Four labels of so many letters stand side by side above a figure.
_SHORT_LABEL = 16


def draw_figures(rows: list[Run], folder: Path) -> list[tuple[str, Path]]:
    """Draw every figure whose table has runs; return titles and files.

    Without matplotlib the figures that an earlier run drew are returned.
    """
    drawn = []
    for number, (table, metric, factor, what) in _BARS.items():
        mine = _beside([row for row in rows if row["table"] == table])
        if number in _WITHOUT_IPSCHED:
            mine = [row for row in mine if row["policy"] != "ipsched"]
        if mine:
            path = folder / f"figure-{number}.png"
            if can_draw():
                _draw_bars(mine, metric, factor, what, path)
            drawn.append((f"Figure {number}: {what.lower()}, table {table}", path))
    for number, only in _SHARES.items():
        mine = [row for row in rows if row["table"] == "A.4" and (only is None or row["workload"] in only)]
        if mine:
            path = folder / f"figure-{number}.png"
            if can_draw():
                _draw_shares(mine, path)
            drawn.append((f"Figure {number}: shares of jobs and of job time by level, table A.4", path))
    there = [one for one in drawn if one[1].exists()]
    return sorted(there, key=lambda one: int(one[0].split(":")[0].split(".")[1]))


def _beside(rows: list[Run]) -> list[Run]:
    """Return runs that the thesis prints a number for, and those of methods that were run on all of these."""
    printed = [row for row in rows if row["printed"]]
    wanted = {(row["workload"], row["contiguity"]) for row in printed}
    ran: dict[str, set[tuple[str, bool]]] = {}
    for row in rows:
        ran.setdefault(row["label"], set()).add((row["workload"], row["contiguity"]))
    return [
        row
        for row in rows
        if row["printed"] or ((row["workload"], row["contiguity"]) in wanted and ran[row["label"]] >= wanted)
    ]


def _figure(columns: int = 1) -> tuple[Any, Any]:
    from aucsched.reports.canvas import new_figure

    return new_figure(2.6, 1, columns)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _draw_bars(rows: list[Run], metric: str, factor: float, what: str, path: Path) -> None:
    """Draw one bar a run, with a line across it at the thesis's number."""
    from aucsched.reports.canvas import styled

    workloads = sorted({row["workload"] for row in rows}, key=order)
    labels = sorted({row["label"] for row in rows})
    width = 0.8 / len(labels)
    with styled():
        figure, axes = _figure()
        tops: list[float] = []
        is_named = False
        for place, label in enumerate(labels):
            mine: dict[str, list[Run]] = {}
            for row in rows:
                if row["label"] == label:
                    mine.setdefault(row["workload"], []).append(row)
            at = [workloads.index(name) + (place - (len(labels) - 1) / 2) * width for name in mine]
            values = [[factor * row["metrics"][metric] for row in runs] for runs in mine.values()]
            heights = [float(np.mean(one)) for one in values]
            errors = [
                float(np.std(one, ddof=1) / np.sqrt(len(one))) if len(one) > 1 else 0.0 for one in values
            ]
            color = _COLORS["ours"][place % len(_COLORS["ours"])]
            axes.bar(
                at,
                heights,
                0.92 * width,
                yerr=errors,
                color=color,
                alpha=0.75,
                label=f"{next(iter(mine.values()))[0]['label']}, ours",
                error_kw={"linewidth": 0.6},
            )
            marks = [(x, runs[0]["printed"].get(metric)) for x, runs in zip(at, mine.values(), strict=True)]
            known = [(x, factor * value) for x, value in marks if value is not None]
            if known:
                name = None if is_named else "thesis"
                is_named = True
                axes.hlines(
                    [y for _, y in known],
                    [x - 0.46 * width for x, _ in known],
                    [x + 0.46 * width for x, _ in known],
                    color=_COLORS["thesis"],
                    linewidth=1.4,
                    label=name,
                )
            tops += heights + [y for _, y in known]
        axes.set_xticks(range(len(workloads)), workloads)
        axes.set_xlabel("Workload")
        axes.set_ylabel(what)
        if factor == 100:
            # Above 100 where more GPUs than the fewest shorten jobs, which (7.2) does not know.
            axes.set_ylim(min(50, 0.95 * min(tops)), max(100, 1.02 * max(tops)))
        columns = 4 if max(map(len, labels)) <= _SHORT_LABEL else 2
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns)
        _save(figure, path)


def _draw_shares(rows: list[Run], path: Path) -> None:
    """Draw the shares of jobs (a) and of their run times (b) by level."""
    from aucsched.reports.canvas import styled

    labels = sorted({row["label"] for row in rows})
    with styled():
        figure, panels = _figure(2)
        for letter, metric, axes in zip("ab", ("level_job_shares", "level_time_shares"), panels, strict=True):
            for place, label in enumerate(labels):
                mine = [row["metrics"][metric] for row in rows if row["label"] == label]
                levels = sorted(mine[0])
                weights = [row["jobs"] for row in rows if row["label"] == label]
                shares = [100 * np.average([one[level] for one in mine], weights=weights) for level in levels]
                at = np.arange(len(levels)) + (place - (len(labels) - 1) / 2) * 0.38
                axes.bar(
                    at,
                    shares,
                    0.36,
                    color=_COLORS["ours"][place % len(_COLORS["ours"])],
                    alpha=0.75,
                    label=label,
                )
            axes.set_xticks(range(len(levels)), levels)
            axes.set_xlabel("Level of the lowest common switch")
            axes.set_ylabel("Share of jobs (%)" if letter == "a" else "Share of job time (%)")
            axes.set_title(f"({letter})", loc="left", fontsize=8, fontweight="bold")
        panels[0].legend()
        _save(figure, path)
