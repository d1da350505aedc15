"""Play a real Slurm site's week under backfill-slurm and aucsched3, all metrics into RESULTS.md.

    python benchmarks/ub_week.py [FOLDER]

FOLDER holds ``workload_week.events.gz`` (UB-HPC's 19 579 submissions, for the Slurm simulator) and the site's
slurm.conf, gres.conf and topology.conf: 217 nodes. Each run is a file in benchmarks/results once it is done.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
from marked_part import page_of, replace_part

from aucsched.cluster.errors import AucschedError
from aucsched.cluster.workload import ClusterWorkload

HERE = Path(__file__).parent
RESULTS = HERE / "results"
EVENTS = "workload_week.events.gz"
FOLDER = HERE.parent.parent / "shared" / "data" / "ub"
_Run = dict[str, Any]

#: All are asked at the same moments; the depth is the site's own (bf_max_job_test, default_queue_depth).
_EVERY = {"interval_s": 30.0, "window": 2500}
#: Name of a row → its policy and options: Slurm's backfill looks behind the head of its queue as often as the
#: auctions, or as often as the site has it; the auctions have their defaults.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "backfill-slurm every 30 s": ("backfill-slurm", {**_EVERY, "backfill_interval_s": 30.0}),
    "backfill-slurm every 120 s": ("backfill-slurm", {**_EVERY, "backfill_interval_s": 120.0}),
    "aucsched3": ("aucsched3", _EVERY),
    "aucsched3 response": ("aucsched3", {**_EVERY, "objective": "response"}),
}
#: Beginnings of metrics, and whether more is better; of the others neither is.
_MORE_IS_BETTER = {
    **dict.fromkeys(("cpu_utilization", "gpu_utilization", "throughput"), True),
    **dict.fromkeys(("makespan", "wait", "response", "slowdown", "bounded", "loss", "level_mean"), False),
    **dict.fromkeys(("span_mean", "spread_mean", "fragmentation_mean", "packing_factor_mean"), False),
}
_SAME = 0.0005


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=FOLDER)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Default: RESULTS.md, of other results theirs."
)
def main(folder: Path, workers: int, results: Path, report: Path | None) -> None:
    """Run all rows and write their metrics side by side."""
    if not (folder / EVENTS).is_file():
        click.echo(f"{folder / EVENTS}: there is no such file; name the folder of the week's data", err=True)
        sys.exit(2)
    try:
        workload, remarks = week(folder)
    except AucschedError as error:
        click.echo(error, err=True)
        sys.exit(2)
    kept = results / "ub-week"
    kept.mkdir(parents=True, exist_ok=True)
    left = [row for row in RUNS if not _is_done(kept / f"{row}.json", row, len(workload.jobs))]
    with ProcessPoolExecutor(workers) as pool:
        for found in pool.map(partial(run, folder), left):
            path = kept / f"{found['row']}.json"
            path.write_text(json.dumps(found, indent=1) + "\n")
            click.echo(f"{found['seconds']:7.0f} s  {found['row']}", err=True)
    runs = [json.loads((kept / f"{row}.json").read_text()) for row in RUNS]
    lines = section(workload, remarks, runs)
    replace_part(report or page_of(results, RESULTS, HERE / "RESULTS.md"), "ub", lines)
    click.echo("\n".join(lines))


def week(folder: Path) -> tuple[ClusterWorkload, tuple[str, ...]]:
    """Return the week as a workload, and what its import left out or altered."""
    from aucsched.slurm.site.scheduler_log import import_events

    workload, notes = import_events(folder / EVENTS, folder)
    return workload, notes.texts()


def _is_done(path: Path, row: str, jobs: int) -> bool:
    if not path.exists():
        return False
    found = json.loads(path.read_text())
    return bool(found["options"] == RUNS[row][1] and found["jobs"] == jobs)


def run(folder: Path, row: str) -> _Run:
    """Play the week in one row; every job is among those that ran or those that never can."""
    from aucsched.simulation.nodes.node_policies import NodeOptions, play

    workload, _ = week(folder)
    policy, options = RUNS[row]
    result = play(workload, NodeOptions(policy=policy, **options))
    never = result.record.never
    lost = set(range(len(workload.jobs))) ^ {*result.record.played, *never}
    assert not lost, f"jobs are lost: {sorted(lost)[:5]}"
    assert len(result.record.played) + len(never) == len(workload.jobs), "a job is counted twice"
    return {
        "row": row,
        "policy": policy,
        "options": options,
        "jobs": len(workload.jobs),
        "played": len(result.record.played),
        "killed": len(result.workload.killed),
        "never": Counter(never.values()),
        "passes": result.record.passes,
        "seconds": round(result.seconds, 1),
        "metrics": result.metrics,
    }


def section(workload: ClusterWorkload, remarks: tuple[str, ...], runs: list[_Run]) -> list[str]:
    """Return the part of RESULTS.md."""
    cores = sum(node.total.cores for node in workload.nodes)
    hours = workload.jobs[-1].arrival_s / 3600
    lines = [
        "# UB-HPC week",
        "",
        f"{len(workload.jobs)} submissions of a real Slurm site within {hours:.0f} hours, played on its",
        f"{len(workload.nodes)} nodes of {cores} cores, with their memory, features, GPUs, partitions and",
        "switches (`python benchmarks/ub_week.py`). All policies are asked at the same moments and look at",
        "as many jobs, in the order of submission; they know the jobs' limits, not their true run times.",
        "",
    ]
    for one in runs:
        options = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in one["options"].items()
        )
        ran = f"{one['passes']} passes, {one['seconds']:.0f} s"
        lines.append(f"- {one['row']}: {one['policy']}, {options}; {ran}.")
    lines += ["", *_fates(runs), "", *_table(runs), "", "What the import left out or altered:", ""]
    return lines + [f"- {text}" for text in remarks]


def _fates(runs: list[_Run]) -> Iterator[str]:
    yield "| jobs | " + " | ".join(one["row"] for one in runs) + " |"
    yield "|---|" + "--:|" * len(runs)
    rows: list[tuple[str, Callable[[_Run], int]]] = [
        ("submitted", lambda one: one["jobs"]),
        ("ran to their end", lambda one: one["played"] - one["killed"]),
        ("ran to their time limit, longer in truth", lambda one: one["killed"]),
        ("never start", lambda one: sum(one["never"].values())),
        ("lost", lambda one: one["jobs"] - one["played"] - sum(one["never"].values())),
    ]
    for reason in sorted({reason for one in runs for reason in one["never"]}):
        rows.insert(-1, (f"– {reason}", partial(_never_for, reason)))
    for name, count in rows:
        yield f"| {name} | " + " | ".join(f"{count(one)}" for one in runs) + " |"


def _never_for(reason: str, one: _Run) -> int:
    count: int = one["never"].get(reason, 0)
    return count


def _table(runs: list[_Run]) -> Iterator[str]:
    yield "| metric | " + " | ".join(one["row"] for one in runs) + " | last less first | better |"
    yield "|---|" + "--:|" * (len(runs) + 1) + "---|"
    flat = [_flat(one["metrics"]) for one in runs]
    for name in flat[0]:
        values = [found[name] for found in flat]
        shown = " | ".join("–" if value is None else f"{value:,.5g}" for value in values)
        better = _better(name, values, [one["row"] for one in runs])
        yield f"| `{name}` | {shown} | {_difference(values)} | {better} |"


def _flat(metrics: dict[str, Any]) -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            flat |= {f"{name} {level}": share for level, share in value.items()}
        else:
            flat[name] = value
    return flat


def _difference(values: list[float | None]) -> str:
    """Return how far the last value is above the first, in per cent of the first."""
    first, last = values[0], values[-1]
    return "" if not first or last is None else f"{100 * (last - first) / first:+.1f} %"


def _better(name: str, values: list[float | None], policies: list[str]) -> str:
    """Return the policy with the better value, where one is and the two differ by more than a trifle."""
    more = next((more for start, more in _MORE_IS_BETTER.items() if name.startswith(start)), None)
    known = [value for value in values if value is not None]
    if more is None or len(known) < len(values) or "_std" in name:
        return ""
    low, high = min(known), max(known)
    if high - low <= _SAME * abs(high):
        return "same"
    return policies[known.index(high if more else low)]


if __name__ == "__main__":
    main()
