"""Run the workloads of the thesis's tables with our policies and write benchmarks/RESULTS.md.

    python benchmarks/thesis.py --table A.5 --report
    python benchmarks/thesis.py --table A.5 --seed 1 --only 3 --method Backfill --results FOLDER

Each run is a file in benchmarks/results once it is done: a command that was stopped goes on where it was.
Missing runs are played, for minutes to hours, and the first line says how many; with --report none is. Then
the tables of all files replace those of RESULTS.md. With --results FOLDER all is read and written there.
"""

from __future__ import annotations

import json
import os

# A run is one core's, of which more threads of numpy take some and save no time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import click
from fluid import fluid_utilization
from marked_part import can_draw, page_of
from thesis_report import write_results
from thesis_tables import MACHINES, MOST_NODES_OF_A_JOB, TABLES, Row

from aucsched.cluster.errors import AucschedError
from aucsched.cluster.workload import ClusterWorkload

HERE = Path(__file__).parent
RESULTS = HERE / "results"
#: The thesis repeats each of its tests seven times.
SEEDS = (1, 2, 3, 4, 5, 6, 7)


@click.command()
@click.option("--table", type=click.Choice([*TABLES]), required=True)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0),
    multiple=True,
    default=SEEDS,
    show_default=True,
    help="Several.",
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True)
@click.option("--only", multiple=True, metavar="WORKLOAD", help="Workload ids; default: all.")
@click.option("--method", multiple=True, metavar="LABEL", help="Rows by what runs; default: all.")
@click.option(
    "--nodes",
    type=click.IntRange(1),
    help="Of the cluster in A.1 and A.2, for which the thesis names none; default: "
    + ", ".join(f"{table} {nodes}" for table, nodes in MACHINES.items()),
)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
@click.option("--report", is_flag=True, help="Run nothing.")
def main(
    table: str,
    seeds: tuple[int, ...],
    workers: int,
    only: tuple[str, ...],
    method: tuple[str, ...],
    nodes: int | None,
    results: Path,
    report: bool,
) -> None:
    """Run one table's workloads, seed by seed, and write the results; runs that are done stay."""
    if nodes is not None and table not in ("A.1", "A.2"):
        raise click.UsageError(f"--nodes is for tables A.1 and A.2; {table} names its machine")
    rows = _rows(table, only, method)
    nodes = MACHINES.get(table) if nodes is None else nodes
    _check(table, rows, seeds[0], nodes)
    left = [
        (seed, row)
        for seed in seeds
        for row in rows
        if not (_folder(results, table, seed) / _file(row)).exists()
    ]
    asked = len(seeds) * len(rows)
    words = f"table {table}: {asked} runs, {asked - len(left)} of them kept in {results}, "
    click.echo(words + (f"{len(left)} not played" if report else f"{len(left)} to play"), err=True)
    left = [] if report else left
    began, pass_ms = time.perf_counter(), list[float]()
    with ProcessPoolExecutor(workers) as pool:
        running = {pool.submit(run, table, row, seed, nodes): (seed, row) for seed, row in left}
        for done in as_completed(running):
            seed, row = running[done]
            folder = _folder(results, table, seed)
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f"{_file(row)}.part"
            played = done.result()
            part.write_text(json.dumps(played, indent=1) + "\n")
            part.rename(folder / _file(row))
            pass_ms.append(1000 * played["cpu_s"] / max(played["passes"], 1))
            told = f"{time.perf_counter() - began:7.0f} s  {table} seed {seed} {row.key}"
            click.echo(f"{told}: {pass_ms[-1]:.1f} ms of processor time a pass", err=True)
    if pass_ms:
        click.echo(f"mean of {len(pass_ms)} rows: {fmean(pass_ms):.1f} ms of processor time a pass", err=True)
    for seed in dict.fromkeys(seed for seed, _ in left):
        facts = {
            "command": f"python benchmarks/thesis.py --table {table} --seed {seed} --workers {workers}"
            + (f" --nodes {nodes}" if nodes else "")
            + "".join(f" --only {one}" for one in only)
            + "".join(f' --method "{one}"' for one in method),
            "commit": _commit(),
            "cores": workers,
            "minutes": round((time.perf_counter() - began) / 60, 1),
            "runs": sum(1 for one, _ in left if one == seed),
        }
        _add_facts(_folder(results, table, seed) / "run.json", facts)
    page = page_of(results, RESULTS, HERE / "RESULTS.md")
    write_results(results, page, page.parent / "figures")
    click.echo(f"table {table}, of all runs in {results}, is in {page}")
    if not can_draw():
        click.echo("figures are not drawn: they need matplotlib, pip install 'aucsched[plot]'", err=True)


def _folder(results: Path, table: str, seed: int) -> Path:
    return results / f"table-{table}-seed-{seed}"


def _file(row: Row) -> str:
    return f"{row.key}.json"


def _rows(table: str, only: tuple[str, ...], method: tuple[str, ...]) -> list[Row]:
    """Return a table's rows of some workloads by some methods; none given are all."""
    known = list(dict.fromkeys(row.workload for row in TABLES[table]))
    for workload in only:
        if workload not in known:
            raise click.UsageError(f"--only {workload}: table {table} has {', '.join(known)}")
    labels = list(dict.fromkeys(row.label for row in TABLES[table]))
    for label in method:
        if label not in labels:
            raise click.UsageError(f"--method {label}: table {table} has {'; '.join(labels)}")
    rows = [
        row
        for row in TABLES[table]
        if (not only or row.workload in only) and (not method or row.label in method)
    ]
    if not rows:
        raise click.UsageError(f"table {table} has no row of these workloads by these methods")
    return rows


def _check(table: str, rows: list[Row], seed: int, nodes: int | None) -> None:
    """Refuse a machine that a workload does not fit, before anything runs."""
    if nodes is not None:
        for row in {row.workload: row for row in rows}.values():
            try:
                make(table, row, seed, nodes)
            except AucschedError as error:
                raise click.UsageError(f"--nodes {nodes}: workload {row.workload}: {error}") from error


def run(table: str, row: Row, seed: int, nodes: int | None = None) -> dict[str, Any]:
    """Play one workload under one policy and return the metrics, with the fluid bound beside them."""
    from aucsched.simulation.nodes.node_policies import NodeOptions, play

    workload = make(table, row, seed, nodes)
    options = NodeOptions(policy=row.policy, **row.options)
    began = time.process_time()
    with counted_starts() as counts:
        result = play(workload, options)
    seconds = time.process_time() - began
    metrics = result.metrics
    metrics["makespan_h"] = metrics["makespan_s"] / 3600
    metrics["wait_h"] = metrics["wait_mean_s"] / 3600
    assert len(result.played) + len(result.record.never) == len(workload.jobs), "a job is lost"
    return {
        "table": table,
        "workload": row.workload,
        "policy": row.policy,
        "label": row.label,
        "contiguity": row.contiguity,
        "ranges": row.ranges,
        "cores_per_gpu": row.cores_per_gpu,
        "on_a_line": row.on_a_line,
        "starts": dict(counts),
        "options": dict(row.options),
        "seed": seed,
        "nodes": len(workload.nodes),
        "jobs": len(workload.jobs),
        "never": len(result.record.never),
        "passes": result.record.passes,
        "cpu_s": round(seconds, 1),
        "commit": _commit(),
        "fluid": fluid_utilization(workload, options.interval_s),
        "printed": dict(row.printed),
        "metrics": metrics,
    }


@contextmanager
def counted_starts() -> Iterator[Counter[str]]:
    """Count what an auction's starts were: awards, completions, and which of these from behind the window."""
    from aucsched.auction import decide
    from aucsched.auction.complete import complete as plain_complete

    counts: Counter[str] = Counter()

    def complete(step: Any) -> None:
        awarded = {start.demand.job.id for start in step.winners()}
        plain_complete(step)
        window = {demand.job.id for demand in step.window}
        for start in () if step.discarded else step.winners():
            job = start.demand.job.id
            behind = "behind the window" if job not in window else "completions"
            counts["awards" if job in awarded else behind] += 1

    with patch.object(decide, "complete", complete):
        yield counts


def make(table: str, row: Row, seed: int, nodes: int | None = None) -> ClusterWorkload:
    """Return a row's workload; ``nodes`` is for tables that name no cluster."""
    from aucsched.simulation.workloads.esp import esp_workload
    from aucsched.simulation.workloads.named_clusters import TSUBAME
    from aucsched.simulation.workloads.soner import soner_workload, table_workload
    from aucsched.simulation.workloads.workload_options import SonerOptions, TableOptions

    cluster = TSUBAME if nodes is None else replace(TSUBAME, nodes=nodes)
    if table == "A.1":
        return esp_workload(cluster, gpus=True, seed=seed)
    if table == "A.2":
        most = MOST_NODES_OF_A_JOB * cluster.cores
        told = SonerOptions(for_ipsched=row.policy == "ipsched", max_cores=most)
        return soner_workload(row.workload, cluster, seed=seed, options=told)
    number = {"A.3": "8.4", "A.4": "8.5", "A.5": "8.6"}[table]
    options = TableOptions(
        contiguity="drop" if table == "A.5" else "honour",
        gpu_ranges=row.ranges,
        cores_per_gpu=() if row.cores_per_gpu is None else (row.cores_per_gpu,),
    )
    made = table_workload(number, row.workload, seed=seed, options=options)
    return replace(made, switches=None) if row.on_a_line else made


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - whichever git there is
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _add_facts(path: Path, facts: dict[str, Any]) -> None:
    before = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*before, facts], indent=1) + "\n")


if __name__ == "__main__":
    main()
