"""Preemption paid for in credits (Soner, section 9.1), on a torus of 1 024 nodes and on a real site's jobs.

    python benchmarks/preemption.py torus|ub [--jobs N] [--hours H] [--row NAME]

A tenth of the users, drawn with a seed, pay 4 credits a core-hour, the others 1. Rows are aucsched3 as it
ships on nodes (for ub as benchmarks/ub_week.py plays it, without search), with --preempt, and with --preempt
and an account of 500 credits each. ``payers`` and ``others`` are mean waits in seconds; ``earned`` the
credits of all that ran to its end, an hour of makespan; ``lost`` core-hours of stopped runs; seconds the
processor's.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import click
from torus import on_torus
from ub_week import FOLDER, week

from aucsched.cluster.workload import ClusterWorkload
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation
from aucsched.simulation.workloads.named_clusters import HYPOTHETICAL
from aucsched.simulation.workloads.soner import soner_workload
from aucsched.simulation.workloads.workload_options import SonerOptions

RATE, SHARE, USERS = 4.0, 0.1, 40
_UB: dict[str, Any] = {
    "interval_s": 30.0,
    "window": 2500,
    "max_bids_per_job": 8,
    "max_bids": 2500,
    "work_limit": 0,
}
ROWS: dict[str, dict[str, Any]] = {
    "aucsched3": {},
    # Preemption promises no starts: this row is the same without it.
    "--promise none": {"promise": "none"},
    "--preempt": {"preempt": True},
    "--preempt --credits 500": {"preempt": True, "credits": 500.0},
}


def with_rates(workload: ClusterWorkload, seed: int) -> ClusterWorkload:
    """Return a workload of which a tenth of the users pay more; jobs without users are dealt to some."""
    rng = random.Random(seed)  # noqa: S311 - a choice of users, no secret
    users = [arriving.job.user or f"u{rng.randrange(USERS)}" for arriving in workload.jobs]
    names = sorted(set(users))
    payers = set(rng.sample(names, max(1, round(SHARE * len(names)))))
    jobs = tuple(
        replace(
            arriving,
            job=replace(arriving.job, user=user),
            credits_per_core_h=RATE if user in payers else 1.0,
        )
        for arriving, user in zip(workload.jobs, users, strict=True)
    )
    return replace(workload, jobs=jobs)


def row(name: str, result: NodeSimulation, seconds: float) -> str:
    """Return a run as a row."""
    jobs = result.cluster.jobs
    waits: dict[bool, list[float]] = {True: [], False: []}
    earned = 0.0
    for one in result.played:
        arriving = jobs[one.demand.index]
        pays = arriving.credits_per_core_h > 1
        waits[pays].append(one.start_s - arriving.arrival_s)
        earned += arriving.credits_per_core_h * float(one.allocation.held.cores.sum()) * one.run_s / 3600
    stops = result.preemption_counts()
    means = "".join(f"{fmean(waits[pays]) if waits[pays] else 0:10.0f}" for pays in (True, False))
    lost = stops["preempted_core_s"] / 3600
    use = earned / (result.makespan / 3600)
    paid = stops["credits_paid"]
    return f"{name:26}{means}{use:10.0f}{stops['preemptions']:7.0f}{lost:9.0f}{paid:9.0f}{seconds:8.1f}"


@click.command()
@click.argument("what", type=click.Choice(["torus", "ub"]))
@click.option("--jobs", type=int, default=2000, show_default=True, help="Of ub, the first so many.")
@click.option(
    "--hours", type=float, default=0.5, show_default=True, help="Of torus, the theoretical run time."
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER)
@click.option("--row", "only", type=click.Choice(list(ROWS)), help="This row alone.")
def main(what: str, jobs: int, hours: float, seed: int, folder: Path, only: str | None) -> None:
    """Print a row for each way to preempt."""
    if what == "ub":
        whole, _ = week(folder)
        workload, options = replace(whole, jobs=whole.jobs[:jobs]), _UB
    else:
        made = soner_workload("IV", HYPOTHETICAL, seed=seed, options=SonerOptions(hours=hours))
        workload, options = on_torus(made, "hilbert"), {}
    workload = with_rates(workload, seed)
    payers = sum(arriving.credits_per_core_h > 1 for arriving in workload.jobs)
    click.echo(f"{what}: {len(workload.jobs)} jobs, {payers} of users that pay {RATE:g}; {options}")
    titles = ("payers", "others", "earned", "stops", "lost", "paid", "s")
    widths = (10, 10, 10, 7, 9, 9, 8)
    click.echo(" " * 26 + "".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True)))
    for name, chosen in ROWS.items() if only is None else [(only, ROWS[only])]:
        began = process_time()
        result = play(workload, NodeOptions(policy="aucsched3", **options, **chosen))
        click.echo(row(name, result, process_time() - began))


if __name__ == "__main__":
    main()
