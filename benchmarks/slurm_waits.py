"""Waits under ``slurm run`` and under Slurm's own backfill: ``benchmarks/slurm_waits.py FOLDER``.

Each list has 100 jobs that share the cores of 16 nodes of 4 cores with others. A real Slurm on a
fast clock runs it in four modes: with backfill alone, and with ``slurm run`` as it ships, with promises,
and with promises and objective ``response``.
Each mode runs twice. Records are kept in FOLDER, and a record that is there is not made anew. The
table gives the mean of the runs, and the ratio of each loop to the backfill of the same list. With
--results FILE the figures of each run are written too: benchmarks/notes/slurm.md has the table of
benchmarks/results/slurm-waits.json. ``--delays`` needs no Slurm: it simulates the lists with passes at
every event, every 10 s and every 20 s, and says what the time between two passes costs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from against_slurm import Ran, figures, read_log
from slurm_host import missing, missing_clock
from slurm_run import record

from aucsched import ArrivingJob, ClusterWorkload, Job, Request
from aucsched.cluster.workload import basic_priority
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.report import bounded_slowdown
from aucsched.simulation.workloads.named_clusters import EvenCluster, stream, uniform_arrivals

_CLUSTER = EvenCluster(nodes=16, cores=4)
_JOBS = 100
#: Parameters were chosen on the first list alone.
SEEDS = {"1": 331, "2": 332, "3": 333}
_CORES = (1, 1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32)
#: Shortest and longest run, and the time within which jobs arrive, in seconds.
_RUN_S, _WITHIN_S = (20, 280), 450.0
_MINUTE_S = 60
#: The options of ``slurm run`` in each mode, without their dashes.
MODES: Mapping[str, tuple[str, ...]] = {
    "backfill": (),
    "default": (),
    "run": ("promise", "15m"),
    "response": ("promise", "15m", "objective", "response"),
}


def main() -> None:
    """Make the records that are missing, then print the table."""
    options = _options()
    if options.delays:
        print_delays()
        return
    if problem := missing() or missing_clock():
        sys.exit(f"slurm_waits.py: {problem}")
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for turn in range(1, options.turns + 1):
        for number in options.lists:
            workload = job_list(SEEDS[number])
            for mode in options.modes:
                folder = options.folder / f"list-{number}" / f"{mode}-{turn}"
                ran = _ran(folder, mode, workload, options)
                if ran is not None:
                    found.setdefault((number, mode), []).append(columns(workload, ran))
    print_table(found)
    if options.results is not None:
        rows = [{"list": one, "mode": mode, "runs": runs} for (one, mode), runs in sorted(found.items())]
        options.results.write_text(json.dumps(rows, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lists", nargs="+", choices=list(SEEDS), default=list(SEEDS))
    parser.add_argument("--modes", nargs="+", default=list(MODES), help="or a name for --more")
    parser.add_argument("--turns", type=int, default=2, help="runs of each mode")
    parser.add_argument("--speed", type=int, default=10, help="of the cluster's clock")
    parser.add_argument("--interval", type=float, default=10, help="of the loop, clock seconds")
    parser.add_argument("--more", nargs="*", default=[], help="more of slurm run, without dashes")
    parser.add_argument("--results", type=Path, help="write the figures of each run as JSON")
    parser.add_argument("--delays", action="store_true", help="simulate passes further apart")
    parser.add_argument("--table", action="store_true", help="print the records that are there")
    return parser.parse_args()


def job_list(seed: int) -> ClusterWorkload:
    """Return 100 jobs of 1 to 32 cores; a limit is one to three times the run, in whole minutes."""
    random = stream(seed, "slurm waits")
    arrivals = uniform_arrivals(_JOBS, _WITHIN_S, random)
    return ClusterWorkload(
        name=f"slurm-waits/{seed}",
        nodes=_CLUSTER.build_nodes(),
        switches=_CLUSTER.build_switches(),
        jobs=tuple(_job(rank, arrival, seed) for rank, arrival in enumerate(arrivals)),
    )


def _job(rank: int, arrival_s: float, seed: int) -> ArrivingJob:
    random = stream(seed, "slurm waits", rank)
    shortest, longest = _RUN_S
    run_s = round(shortest * (longest / shortest) ** random.random())
    limit_s = (ceil(run_s * random.uniform(1, 3) / _MINUTE_S) + 1) * _MINUTE_S
    job = Job(
        id=str(rank + 1),
        priority=basic_priority(rank),
        request=Request(cores=random.choice(_CORES)),
        time_limit_s=limit_s,
    )
    return ArrivingJob(job=job, arrival_s=arrival_s, run_time_s=run_s)


def _ran(
    folder: Path, mode: str, workload: ClusterWorkload, options: argparse.Namespace
) -> Mapping[str, Ran] | None:
    """Return what became of the jobs in one run, made where there is no record of it."""
    name = "backfill" if mode == "backfill" else "run"
    log = folder / f"{name}.log"
    if not log.exists():
        if options.table:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        more = [*MODES.get(mode, ()), *options.more]
        asked = argparse.Namespace(**{**vars(options), "folder": folder, "more": more})
        asked.depth, asked.kills, asked.restarts, asked.seed = _JOBS, 0, 0, 1
        record(name, _CLUSTER, workload, asked)
    ran = read_log(log.read_text())
    assert len(ran) == _JOBS, f"{log}: {_JOBS - len(ran)} jobs did not end"
    return ran


def columns(workload: ClusterWorkload, ran: Mapping[str, Ran]) -> dict[str, float]:
    """Return mean and longest wait (s), mean bounded slowdown and utilisation of a run."""
    # Slurm adds its own seconds to a run: the work of a list is the same under all modes.
    held = [(one.start_s - one.submit_s, one.end_s - one.start_s) for one in ran.values()]
    slowdown = bounded_slowdown(*np.array(held, np.float64).T).tolist()
    found = figures(workload, ran)
    return {
        "mean": found["mean wait, s"],
        "longest": found["longest wait, s"],
        "slowdown": sum(slowdown) / len(slowdown),
        "used": 100 * found["utilisation"],
    }


#: Slurm's backfill, and the loop's two ways to keep the order of priorities, as simulations have them.
_SIMULATED: Mapping[str, dict[str, Any]] = {
    "backfill": {"policy": "backfill-slurm", "backfill_interval_s": 10},
    "default": {"policy": "aucsched3"},
    "run": {"policy": "aucsched3", "reserve": 0, "promise": "15m"},
}


def print_delays() -> None:
    """Print waits and utilisation of each list where passes are so many seconds apart, beside backfill's."""
    print("| list | mode | seconds apart | mean wait, s | longest, s | utilisation, % | mean | longest |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|")
    for number, seed in SEEDS.items():
        base = _simulated(job_list(seed), _SIMULATED["backfill"])
        for mode, chosen in _SIMULATED.items():
            for apart in (None,) if mode == "backfill" else (None, 10, 20):
                mean, longest, used = _simulated(job_list(seed), {**chosen, "interval_s": apart})
                cells = (number, mode, apart or 0, f"{mean:.0f}", f"{longest:.0f}", f"{used:.1f}")
                ratios = (f"{mean / base[0]:.2f}", f"{longest / base[1]:.2f}")
                print(f"| {' | '.join(map(str, (*cells, *ratios)))} |", flush=True)


def _simulated(workload: ClusterWorkload, chosen: Mapping[str, Any]) -> tuple[float, float, float]:
    played = play(workload, NodeOptions(**chosen)).played
    came = {one.job.id: one.arrival_s for one in workload.jobs}
    waits = [one.start_s - came[one.demand.job.id] for one in played]
    span = max(one.start_s + one.run_s for one in played) - min(came.values())
    work = sum(one.run_s * float(one.allocation.held.cores.sum()) for one in played)
    return sum(waits) / len(waits), max(waits), 100 * work / (span * _CLUSTER.nodes * _CLUSTER.cores)


def print_table(found: Mapping[tuple[str, str], Sequence[Mapping[str, float]]]) -> None:
    """Print a row for each list and mode: the mean of its runs, and its ratio to backfill's."""
    names = "list mode runs mean_wait,_s longest,_s slowdown utilisation,_% mean longest"
    print(f"| {' | '.join(names.split()).replace('_', ' ')} |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in sorted(_rows(found)):
        print(row)


def _rows(found: Mapping[tuple[str, str], Sequence[Mapping[str, float]]]) -> Iterator[str]:
    for (number, mode), runs in found.items():
        mean = {name: sum(run[name] for run in runs) / len(runs) for name in runs[0]}
        base = found.get((number, "backfill"))
        ratios = (
            ["", ""]
            if base is None
            else [
                f"{mean[name] / (sum(run[name] for run in base) / len(base)):.2f}"
                for name in ("mean", "longest")
            ]
        )
        figures_ = [f"{mean['mean']:.0f}", f"{mean['longest']:.0f}", f"{mean['slowdown']:.1f}"]
        cells = [number, mode, str(len(runs)), *figures_, f"{mean['used']:.1f}", *ratios]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
