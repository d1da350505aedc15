"""Play a workload on a torus of 1 024 nodes, in a row's order and along a Hilbert curve: how near jobs stand.

    python benchmarks/torus.py [--hours H] [--seeds N]

Soner's generator (section 7.3.2, mix IV) on 1 024 nodes of 16 cores and 3 GPUs, torus 16 x 8 x 8. Each row is
a policy on the nodes as they are numbered (the last dimension first, groups of 8, 64, 512) or along the curve
(cubes of 2, 4, 8 a side). ``links`` is the mean number of links between two nodes of a job, of jobs with
several nodes, in the same torus; the same jobs arrive everywhere. Seconds are processor time.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from time import process_time
from typing import Any

import click

from aucsched.cluster.workload import ClusterWorkload
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.named_clusters import HYPOTHETICAL
from aucsched.simulation.workloads.soner import soner_workload
from aucsched.simulation.workloads.workload_options import SonerOptions
from aucsched.topology.networks import torus

SHAPE = (16, 8, 8)
#: Both orders of the auctions at their defaults; the stand-in for Slurm chooses by leaf groups itself.
POLICIES: dict[str, dict[str, Any]] = {
    "easy": {},
    "backfill-slurm": {},
    "aucsched2": {},
    "aucsched3": {},
}
_COLUMNS = ("hops_mean", "level_mean", "span_mean", "cpu_utilization", "wait_mean_s")


def on_torus(workload: ClusterWorkload, order: str) -> ClusterWorkload:
    """Return a workload with its nodes on the torus."""
    names = [node.name for node in workload.nodes]
    return replace(workload, switches=None, network=torus(SHAPE, names, order=order))


@click.command()
@click.option("--hours", type=float, default=0.5, show_default=True, help="Of the theoretical run time.")
@click.option("--seeds", type=int, default=2, show_default=True)
def main(hours: float, seeds: int) -> None:
    """Print a row for each policy and order."""
    options = SonerOptions(hours=hours)
    workloads = [soner_workload("IV", HYPOTHETICAL, seed=seed, options=options) for seed in range(seeds)]
    click.echo(f"{sum(len(one.jobs) for one in workloads)} jobs in {seeds} workloads of {hours:g} h")
    click.echo(
        f"{'policy':16}{'order':9}{'links':>7}{'level':>7}{'span':>7}{'CPU %':>7}{'wait s':>8}{'s':>8}"
    )
    for policy, chosen in POLICIES.items():
        for order in ("members", "hilbert"):
            began = process_time()
            found = [
                play(on_torus(one, order), NodeOptions(policy=policy, **chosen)).metrics for one in workloads
            ]
            links, level, span, use, wait = (fmean(one[name] for one in found) for name in _COLUMNS)
            values = f"{links:7.2f}{level:7.2f}{span:7.0f}{100 * use:7.1f}{wait:8.0f}"
            click.echo(f"{policy:16}{order:9}{values}{process_time() - began:8.1f}")


if __name__ == "__main__":
    main()
