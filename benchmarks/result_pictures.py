"""Draw docs/images/search.png, slurm-waits.png and thesis-spans.png from recorded runs."""

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


def spans() -> tuple[list[str], dict[str, list[float]]]:
    """Return table A.4's workloads, and AUCSCHED3's mean span over backfill's: ours and the thesis's."""
    workloads = ("1", "2", "3", "4", "5", "6")
    names = {"complete steps": "AUCSCHED3", "plug-in, awards alone": "AUCSCHED3, plug-in, award alone"}
    found: dict[str, list[float]] = {"complete steps": [], "thesis": [], "plug-in, awards alone": []}
    for workload in workloads:
        runs = {label: _run_of(workload, label) for label in (*names.values(), "Backfill")}
        slurm = runs["Backfill"]
        for name, label in names.items():
            found[name].append(runs[label]["metrics"]["span_mean"] / slurm["metrics"]["span_mean"])
        printed = runs["AUCSCHED3"]["printed"]["span_mean"] / slurm["printed"]["span_mean"]
        found["thesis"].append(printed)
    return [f"workload {workload}" for workload in workloads], found


def _run_of(workload: str, label: str) -> dict[str, Any]:
    path = HERE / "results" / "table-A.4-seed-1" / f"{workload} {label}.json"
    run: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return run


def bars(names: list[str], table: dict[str, list[float]], label: str, file: str) -> None:
    """Draw a group of bars for each name, a bar for each series."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    width = 0.8 / len(table)
    for place, (name, values) in enumerate(table.items()):
        at = [group + (place - (len(table) - 1) / 2) * width for group in range(len(names))]
        drawn = axes.bar(at, values, width * 0.95, label=name, color=COLOURS[place])
        axes.bar_label(drawn, fmt="%.3g" if len(table) < 3 else "%.2f", fontsize=8 if len(table) < 3 else 6)
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    if len(table) > 2:  # bars fill the plot, and a legend would hide some
        figure.legend(frameon=False, loc="outside upper center", ncols=len(table))
    else:
        axes.legend(frameon=False)
    figure.savefig(IMAGES / file, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    bars(*gaps(), "below the best value known, %", "search.png")
    bars(*waits(), "mean wait, s", "slurm-waits.png")
    bars(*spans(), "mean span, backfill = 1", "thesis-spans.png")
