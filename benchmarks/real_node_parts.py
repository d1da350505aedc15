"""Objective ``response`` beside backfill-slurm on parts of the real logs, on nodes.

    python benchmarks/real_node_parts.py

The parts were among those by which the promises' constants were chosen, on a model of nodes of one core.
Each is a log of its own, with passes every 300 s, and a file in benchmarks/results/real-node-parts once done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import real_logs
from real import figures

from aucsched.formats.swf import load_swf
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.imported import workload_of_log
from aucsched.simulation.workloads.named_clusters import EvenCluster

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
#: Log -> the nodes that it is put on, the first jobs of its parts, and how many a part has.
PARTS: dict[str, tuple[int, tuple[int, ...], int]] = {
    "KTH-SP2": (100, (7000, 11000, 15000, 19000, 23000), 2000),
    "theta 2023": (4360, (0, 3000, 6000), 1500),
}
POLICIES: dict[str, dict[str, Any]] = {
    "backfill-slurm": {"policy": "backfill-slurm"},
    "response": {"policy": "aucsched3", "objective": "response"},
}
NAMES = ("wait_mean", "wait_max", "slowdown_mean", "utilisation")


def played(log: str, first: int, policy: str, data: Path) -> dict[str, float]:
    """Play a part on nodes of one processor; return what the table needs."""
    nodes, _, count = PARTS[log]
    file = data / "swf" / real_logs.LOGS[log][0]
    machine = EvenCluster(nodes=nodes, cores=1, gpus=0, tree=False).empty()
    whole, _ = workload_of_log(log, load_swf(file), machine)
    part = real_logs.part_of_cluster(whole, slice(first, first + count))
    found = figures(play(part, NodeOptions(interval_s=300.0, **POLICIES[policy])))
    return {name: float(found[name]) for name in NAMES}


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, show_default=False)
@click.option("--results", type=click.Path(path_type=Path), default=HERE / "results" / "real-node-parts")
@click.option("--only", default="", help="Logs whose names hold this.")
def main(data: Path, results: Path, only: str) -> None:
    """Run what is missing; print a line for each part and one over all of them."""
    results.mkdir(parents=True, exist_ok=True)
    print("| log | jobs | mean wait | longest wait | bounded slowdown | utilisation |")
    print("|---|---|--:|--:|--:|--:|")
    ratios = []
    for log, (_, firsts, count) in PARTS.items():
        for first in firsts if only in log else ():
            kept = results / f"{log.replace(' ', '-')}-{first}.json"
            if not kept.exists():
                found = {policy: played(log, first, policy, data) for policy in POLICIES}
                kept.write_text(json.dumps(found, indent=1) + "\n")
            rows = json.loads(kept.read_text())
            ratios.append([rows["response"][name] / rows["backfill-slurm"][name] for name in NAMES])
            print(line(log, f"{first + 1}-{first + count}", ratios[-1]), flush=True)
    print(line("geometric mean", str(len(ratios)), np.exp(np.log(ratios).mean(axis=0))))


def line(log: str, jobs: str, values: Any) -> str:
    """Return a row of the table."""
    wait, longest, slowdown, used = values
    return f"| {log} | {jobs} | {wait:.3f} | {longest:.3f} | {slowdown:.3f} | {used:.4f} |"


if __name__ == "__main__":
    main()
