"""Draw docs/images/search.png and slurm-waits.png from recorded runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "docs" / "images"
COLOURS = ("#1f4e79", "#e07b39", "#8a8a8a")


def gaps() -> tuple[list[str], dict[str, list[float]]]:
    """Return the families that differ and the gaps of each solver (percent), from notes/quality.md."""
    lines = (HERE / "notes" / "quality.md").read_text("utf-8").splitlines()
    head = next(line for line in lines if line.startswith("| family")).split("|")[1:-1]
    names = [name.strip() for name in head]
    rows = [line.split("|")[1:-1] for line in lines if re.match(r"\| [a-zA-Z0-9-]+ \| ", line)][1:]
    shown = {"aucsched 3 s": names.index("aucsched 3 s, 312a42b"), "HiGHS 60 s": names.index("highs 60 s")}
    kept = [row for row in rows if any(float(row[place].split()[0]) > 0 for place in shown.values())]
    found = {name: [float(row[place].split()[0]) for row in kept] for name, place in shown.items()}
    return [row[0].strip() for row in kept], found


def waits() -> tuple[list[str], dict[str, list[float]]]:
    """Return the lists of jobs and the mean waits of each mode (s), from results/slurm-waits.json."""
    rows: list[dict[str, Any]] = json.loads((HERE / "results" / "slurm-waits.json").read_text("utf-8"))
    found: dict[str, list[float]] = {}
    for mode, name in (("backfill", "Slurm's backfill"), ("response", "slurm run, response")):
        chosen = sorted((row for row in rows if row["mode"] == mode), key=lambda row: row["list"])
        found[name] = [mean(run["mean"] for run in row["runs"]) for row in chosen]
    return [f"list {name}" for name in sorted({row["list"] for row in rows})], found


def bars(names: list[str], table: dict[str, list[float]], label: str, file: str) -> None:
    """Draw a group of bars for each name, a bar for each series."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    width = 0.8 / len(table)
    for place, (name, values) in enumerate(table.items()):
        at = [group + (place - (len(table) - 1) / 2) * width for group in range(len(names))]
        drawn = axes.bar(at, values, width * 0.95, label=name, color=COLOURS[place])
        axes.bar_label(drawn, fmt="%.3g", fontsize=8)
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(IMAGES / file, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    bars(*gaps(), "below the best value known, %", "search.png")
    bars(*waits(), "mean wait, s", "slurm-waits.png")
