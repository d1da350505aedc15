"""The runs of thesis.py as benchmarks/RESULTS.md and as figures 8.10 to 8.19."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from marked_part import replace_part
from thesis_plots import draw_figures

_Run = dict[str, Any]

#: Table → columns: heading, metric, what it is multiplied by, digits.
_LEVELS = (
    ("utilisation %", "cpu_utilization", 100, 1),
    ("level", "level_mean", 1, 2),
    ("span", "span_mean", 1, 0),
)
_WAITS = (
    ("wait h", "wait_h", 1, 2),
    ("slowdown", "slowdown_mean", 1, 1),
    ("utilisation %", "cpu_utilization", 100, 1),
)
_FRAGMENTS = (
    ("utilisation %", "cpu_utilization", 100, 1),
    ("run time h", "makespan_h", 1, 2),
    ("wait h", "wait_h", 1, 2),
    ("fragmentation", "fragmentation_mean", 1, 2),
    ("spread", "spread_mean", 1, 2),
)
_COLUMNS = {"A.1": _WAITS, "A.2": _WAITS, "A.3": _FRAGMENTS, "A.4": _LEVELS, "A.5": _LEVELS}
_ABOUT = {
    "A.1": "ESP with GPUs: the eight experiments of table 8.3.",
    "A.2": "The generator's mixes I to V: the eight experiments of table 8.3.",
    "A.3": "The twelve workloads of table 8.4, contiguity as asked; AUCSCHED2 with GPU ranges in 7 to 12.",
    "A.4": "The eight workloads of table 8.5: 1024 nodes.",
    "A.5": "The nine workloads of table 8.6, 1408 nodes. Contiguity is dropped, as in the thesis's runs.",
}
_INTRODUCTION = """\
Soner's appendix A beside our runs of the same workloads, drawn anew from a seed. *Thesis* is the number
printed there, an emulation's mean of seven repetitions; ours is one run of the simulator. *Fluid* is the
utilisation of the workload when the whole machine is one pool of cores and GPUs, jobs come first come first
served, those that do not fit are skipped, and passes are as frequent as in our run. The thesis's *spread* of
tables A.4 and A.5 is our *span* (last node − first + 1). Every start of every run was checked against the
job's request and the nodes' capacity, and no job was lost."""
_HONOURED = """\
The same workloads with contiguity as asked, which table A.5's runs did not honour. The thesis has no numbers
for it; table A.3 is nearest: 92 % for kind A with every job contiguous, 83 to 84 % for the mix."""
#: A difference of so many points of utilisation gets a sentence.
_WITHIN = 0.01


def write_results(results: Path, target: Path, figures: Path) -> None:
    """Write all runs that there are: one section a table, between two marks of the file."""
    tables = {}
    for folder in sorted(results.glob("table-*")):
        runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        rows = [run for run in runs if isinstance(run, dict)]
        if rows:
            facts = folder / "run.json"
            tables[folder.name] = (rows, json.loads(facts.read_text()) if facts.exists() else [])
    lines = ["# The thesis's tables", "", *_INTRODUCTION.splitlines()]
    for rows, told in tables.values():
        lines += ["", *_section(rows, told)]
    drawn = draw_figures([row for rows, _ in tables.values() for row in rows], figures)
    lines += ["", "## Figures", ""]
    lines += [f"![{title}]({path.relative_to(target.parent)})" for title, path in drawn]
    replace_part(target, "thesis", lines)


def _section(rows: list[_Run], facts: list[dict[str, Any]]) -> list[str]:
    table = rows[0]["table"]
    lines = [f"## Table {table}, seed {rows[0]['seed']}", "", _ABOUT[table] + _machine(rows), ""]
    lines += [
        f"`{one['command']}`, commit {one['commit']}, {one['cores']} processes, {one['runs']} runs in"
        f" {one['minutes']} minutes."
        for one in facts
    ]
    lines += ["", *_settings(rows)]
    if table == "A.3":
        lines += ["", *_ordering(rows)]
    plain = [row for row in rows if not row["contiguity"] or table != "A.5"]
    lines += ["", *_table(table, plain)]
    if table == "A.5":
        lines += ["", *_margins(plain)]
    if len(plain) < len(rows):
        lines += ["", "### Contiguity honoured", "", *_HONOURED.splitlines()]
        lines += ["", *_table(table, [row for row in rows if row["contiguity"]])]
    return lines


def _machine(rows: list[_Run]) -> str:
    """Return which cluster stands for the one that tables A.1 and A.2 do not name."""
    if rows[0]["table"] not in ("A.1", "A.2"):
        return ""
    return f" The thesis names no cluster for them; ours has {rows[0]['nodes']} nodes of 12 cores and 3 GPUs."


def _ordering(rows: list[_Run]) -> list[str]:
    """Return in which workloads of table A.3 the thesis's ordering holds between models told the same."""
    used = {
        (row["workload"], row["policy"], row["ranges"]): row["metrics"]["cpu_utilization"] for row in rows
    }
    workloads = sorted({row["workload"] for row in rows}, key=_order)
    methods = ("aucsched2", "aucsched1", "backfill-slurm")
    whole = [one for one in workloads if all((one, method, False) in used for method in methods)]
    lines = []
    for higher, lower in pairwise(methods):
        held = [one for one in whole if used[one, higher, False] > used[one, lower, False]]
        lines.append(f"- {higher} > {lower} in utilisation: {len(held)} of {len(whole)} ({', '.join(held)})")
    both = [
        one for one in workloads if (one, "aucsched2", True) in used and (one, "aucsched2", False) in used
    ]
    better = [one for one in both if used[one, "aucsched2", True] > used[one, "aucsched2", False]]
    lines.append(
        f"- GPU ranges better than fixed numbers of GPUs: {len(better)} of {len(both)} ({', '.join(better)})"
    )
    return lines


def _margins(rows: list[_Run]) -> list[str]:
    """Return how each auction of table A.5 stands beside Slurm's backfill, over the workloads."""
    runs = {(row["workload"], row["label"]): row["metrics"] for row in rows}
    auctions = sorted({row["label"] for row in rows if row["policy"] != "backfill-slurm"})
    backfills = sorted({row["label"] for row in rows if row["policy"] == "backfill-slurm"})
    return [
        f"- `{label}` beside `{backfill}`, by workload: {_beside(runs, label, backfill)}"
        for label in auctions
        for backfill in backfills
        if any((workload, label) in runs and (workload, backfill) in runs for workload, _ in runs)
    ]


def _beside(runs: dict[tuple[str, str], dict[str, float]], label: str, backfill: str) -> str:
    """Return points of utilisation, longest waits as multiples, and where levels or spans are not below."""
    pairs = [
        (one, runs[one, label], runs[one, backfill])
        for one in sorted({workload for workload, _ in runs}, key=_order)
        if (one, label) in runs and (one, backfill) in runs
    ]
    points = [f"{one}: {100 * (a['cpu_utilization'] - b['cpu_utilization']):+.1f}" for one, a, b in pairs]
    waits = [f"{one}: {a['wait_max_s'] / b['wait_max_s']:.2f}" for one, a, b in pairs]
    above = [
        one for one, a, b in pairs if a["level_mean"] >= b["level_mean"] or a["span_mean"] >= b["span_mean"]
    ]
    return (
        f"points of utilisation {', '.join(points)}; longest wait as a multiple {', '.join(waits)}; level or "
        f"span not below in {', '.join(above) or 'none'}"
    )


def _settings(rows: list[_Run]) -> list[str]:
    told: dict[str, list[str]] = {}
    for row in rows:
        text = ", ".join(f"{name} {value}" for name, value in row["options"].items()) or "as by default"
        told.setdefault(f"{row['policy']}: {text}", []).append(row["workload"])
    return [f"- {text} (workloads {', '.join(sorted(set(of)))})" for text, of in sorted(told.items())]


def _table(table: str, rows: list[_Run]) -> list[str]:
    columns = _COLUMNS[table]
    heads = [f"{name}: thesis | ours" for name, *_ in columns]
    head = ["workload", "method", *heads, "fluid %", "wait h mean / longest", "GPU %", "where they differ"]
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "---|" * (len(head) + len(columns)))
    rows = sorted(rows, key=lambda row: (_order(row["workload"]), row["label"]))
    for row in rows:
        cells = [row["workload"], row["label"]]
        for _, metric, factor, digits in columns:
            cells += [_shown(row["printed"].get(metric), factor, digits)]
            cells += [_shown(row["metrics"].get(metric), factor, digits)]
        waits = f"{row['metrics']['wait_mean_s'] / 3600:.2f} / {row['metrics']['wait_max_s'] / 3600:.2f}"
        gpu = _shown(row["metrics"]["gpu_utilization"], 100, 1)
        cells += [f"{100 * row['fluid']:.1f}", waits, gpu, _difference(row)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _order(workload: str) -> tuple[int, str]:
    digits = "".join(letter for letter in workload if letter.isdigit())
    return (int(digits) if digits else 0, workload)


def _shown(value: float | None, factor: float, digits: int) -> str:
    return "–" if value is None else f"{factor * value:.{digits}f}"


def _difference(row: _Run) -> str:
    """Return a sentence on the utilisation, where it differs from the thesis's by more than a point."""
    printed = row["printed"].get("cpu_utilization")
    if printed is None:
        return ""
    ours, fluid = row["metrics"]["cpu_utilization"], row["fluid"]
    if abs(ours - printed) <= _WITHIN:
        return "within one point"
    points = f"{100 * abs(ours - printed):.1f} points"
    if ours > printed:
        return f"{points} above: {_why_above(row)}"
    if fluid < printed:
        return f"{points} below: this draw's fluid bound itself is {100 * (printed - fluid):.1f} points below"
    return f"{points} below: {100 * (fluid - ours):.1f} points under the fluid bound"


def _why_above(row: _Run) -> str:
    if row["ranges"] or row["workload"].endswith("'"):
        return "more GPUs than the fewest shorten jobs, which (7.2) does not count"
    if row["metrics"]["cpu_utilization"] > row["fluid"]:
        return "at last the longest jobs go first, which the fluid's order of arrival does not know"
    return "jobs start and end at once here, the emulation's daemons took time for each"
