"""Real logs under every policy, and under doubt, with one set of options: ``python benchmarks/real.py``.

Each run is a file in benchmarks/results/real once it is done: started again, only what is missing runs. Then
the tables are made of what there is, and printed. With --write they replace those of notes/real.md, and the
plot is drawn anew. With --results FOLDER both are written there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import real_logs
import ub_week
from marked_part import page_of, replace_part
from real_plots import draw
from real_tables import doubt_tables, group_tables, main_tables, verdicts

from aucsched.simulation.result import Simulation

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results" / "real", HERE / "notes" / "real.md"
PICTURES = HERE.parent / "docs" / "images"
DATA = HERE.parent.parent / "shared" / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A log under a policy.

    Attributes:
        log: a name in real_logs.
        doubt: how the log is changed; empty for as it is.
        policy: as the tables call it.
        options: what the simulation is told.
    """

    log: str
    doubt: str = ""
    policy: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file."""
        parts = (part.replace("×", "x") for part in (self.log, self.doubt, self.policy) if part)
        return "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts)


#: As the tables call them -> what simulate is told.
ON_COUNTS: dict[str, dict[str, Any]] = {
    "fcfs": {"policy": "fcfs"},
    "easy": {"policy": "easy"},
    "easy, shortest first": {"policy": "easy", "order": "sjf"},
    "conservative": {"policy": "conservative"},
    "overdue, then shortest": {"policy": real_logs.OVERDUE},
    "aucsched3": {"policy": "promised"},
    "aucsched3 response": {"policy": "promised", "objective": "response"},
}
ON_NODES: dict[str, dict[str, Any]] = {
    "fcfs": {"policy": "fcfs"},
    "easy": {"policy": "easy"},
    "backfill-slurm": {"policy": "backfill-slurm"},
    "aucsched3": {"policy": "aucsched3"},
    "aucsched3 response": {"policy": "aucsched3", "objective": "response"},
}
BACKFILL_SLURM = "backfill-slurm"
#: Of the site's own: what each policy takes.
_DEPTHS = {BACKFILL_SLURM: ("window", "backfill_interval_s"), "aucsched3": ("window",)}
_DOUBTED = ("easy", "aucsched3 response")
_AT_NODES = ("easy", "backfill-slurm", "aucsched3", "aucsched3 response")


def all_runs() -> list[Run]:
    """Return every run: cheap ones first."""
    runs = [
        Run(log=log, policy=name, options=told) for log in real_logs.LOGS for name, told in ON_COUNTS.items()
    ]
    runs += [
        Run(log=log, doubt=doubt, policy=name, options=ON_COUNTS[name])
        for doubt in real_logs.DOUBTS
        for log in real_logs.LOGS
        for name in _DOUBTED
    ]
    runs += [
        Run(log=real_logs.DOUBTED_NODES, doubt=doubt, policy=name, options={**ON_NODES[name], **told})
        for doubt, told in real_logs.NODE_DOUBTS.items()
        for name in _AT_NODES
    ]
    runs += [
        Run(log=log, doubt="passes every 300 s", policy=name, options={**ON_NODES[name], "interval_s": 300.0})
        for log in real_logs.ON_NODES
        if log != real_logs.DOUBTED_NODES
        for name in _AT_NODES
    ]
    runs += [
        Run(log=log, policy=name, options={**told, **_paced(log, told["policy"])})
        for log in real_logs.CLUSTERS
        for name, told in ON_NODES.items()
    ]
    return runs


def _paced(log: str, policy: str) -> dict[str, Any]:
    """Return how often a policy is asked on a cluster's log, and how far it looks there.

    The UB week has the site's own depth, without which one user's thousand jobs hide all others
    (docs/decisions/0035); all else is the default's, and all look behind the head as often.
    """
    paced: dict[str, Any] = {"interval_s": 30.0}
    if log == real_logs.UB:
        site = ub_week.RUNS["backfill-slurm every 30 s"][1]
        paced |= {name: site[name] for name in _DEPTHS.get(policy, ())}
    return paced


def figures(result: Simulation) -> dict[str, Any]:
    """Return what the tables need of a run."""
    wait, run = result.wait, result.run
    slowdown = np.maximum(1, (wait + run) / np.maximum(run, 10))
    values = result.metrics
    submitted = np.asarray(result.workload.requests.user)[result.started]
    found = {
        "jobs": len(wait),
        "wait_mean": float(wait.mean()),
        "wait_p95": float(np.percentile(wait, 95)),
        "wait_max": float(wait.max()),
        "slowdown_mean": float(slowdown.mean()),
        "slowdown_p95": float(np.percentile(slowdown, 95)),
        "utilisation": values["cpu_utilization"],
        "loss": values["loss_of_capacity"],
        "by_size": _by_size(result.size, wait, slowdown),
        "by_user": _by_user(submitted, wait, slowdown),
    }
    spread = getattr(result, "level", None)
    if spread is not None:
        found |= {"level_mean": float(np.mean(spread)), "span_mean": float(np.mean(result.span))}  # type: ignore[attr-defined]
    return found


def _by_size(size: Any, wait: Any, slowdown: Any) -> list[list[float]]:
    """Return largest size, jobs, mean wait and mean bounded slowdown of quarters of the jobs by size."""
    edges = np.unique(np.percentile(size, [25, 50, 75, 100], method="higher"))
    quarter = np.searchsorted(edges, size)
    return [
        [float(edge), int(here.sum()), float(wait[here].mean()), float(slowdown[here].mean())]
        for number, edge in enumerate(edges)
        if (here := quarter == number).any()
    ]


def _by_user(user: Any, wait: Any, slowdown: Any) -> list[float]:
    """Return users, and the mean and the largest of their mean waits and mean bounded slowdowns."""
    _, place = np.unique(user, return_inverse=True)
    counts = np.bincount(place)
    waits, slowdowns = np.bincount(place, wait) / counts, np.bincount(place, slowdown) / counts
    return [
        len(counts),
        *(float(one) for one in (waits.mean(), waits.max(), slowdowns.mean(), slowdowns.max())),
    ]


def play(run: Run, data: Path) -> dict[str, Any]:
    """Run it; every job of the log is among those that started."""
    began = time.process_time()
    result, never = real_logs.played(run.log, run.doubt, run.options, data)
    found = figures(result)
    return {
        "log": run.log,
        "doubt": run.doubt,
        "policy": run.policy,
        "options": run.options,
        "never": never,
        "seconds": round(time.process_time() - began, 1),
        **found,
    }


def load(kept: Path, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the runs that are done with the options that they have now."""
    files = [(run, kept / f"{run.name}.json") for run in runs]
    found = [(run, json.loads(path.read_text())) for run, path in files if path.exists()]
    return [row for run, row in found if row["options"] == run.options]


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="Folder with swf, ub and gpu.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    help="Default: notes/real.md, of other results theirs.",
)
@click.option("--only", default="", help="Runs whose names hold this.")
@click.option("--report", is_flag=True, help="Run nothing.")
@click.option("--write", is_flag=True, help="Replace the tables and the plot of notes/real.md.")
def main(data: Path, results: Path, page: Path | None, only: str, report: bool, write: bool) -> None:
    """Run what is missing, and print or write the tables."""
    runs = all_runs()
    results.mkdir(parents=True, exist_ok=True)
    done = {(row["log"], row["doubt"], row["policy"]) for row in load(results, runs)}
    for run in runs:
        if report or (run.log, run.doubt, run.policy) in done or only not in run.name:
            continue
        if not real_logs.is_here(run.log, data):
            click.echo(f"{run.name}: its data are not in {data}", err=True)
            continue
        row = play(run, data)
        partial = results / f"{run.name}.json.part"
        partial.write_text(json.dumps(row, indent=1) + "\n")
        partial.rename(results / f"{run.name}.json")
        click.echo(f"{row['seconds']:7.1f} s  {run.name}", err=True)
    rows = load(results, runs)
    if not rows:
        sys.exit("no run is done")
    counted = f"{len(rows)} of {len(runs)} runs"
    head = f"`python benchmarks/real.py`, {_commit()}, one process of two cores; {counted}."
    lines = [head, "", *verdicts(rows), *main_tables(rows), *group_tables(rows), *doubt_tables(rows)]
    page = page or page_of(results, RESULTS, PAGE)
    if page == PAGE and not write:
        click.echo("\n".join(lines))
        return
    replace_part(page, "real", lines)
    if draw(rows, PICTURES if page == PAGE else page.parent / "images") is None:
        click.echo("no picture is drawn: it needs matplotlib, pip install 'aucsched[plot]'", err=True)
    click.echo("\n".join([*verdicts(rows), "", f"The tables are in {page}."]))


def _commit() -> str:
    """Return the commit that was measured, as words."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=HERE)  # noqa: S603
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else "no commit"


if __name__ == "__main__":
    main()
