"""What a second pass over what an award leaves would start: nothing, or a step is not complete.

    python benchmarks/second_pass.py snapshots --first 0 --count 500
    python benchmarks/second_pass.py instances tsubame tsubame-even --seed 0

Random snapshots, of every other one the jobs three times over, or the instance set, under every strategy with
the models that have it and, for snapshots, under every one of some other options. A line for each case in
which something starts, and at the end how many cases there were. No clock counts: the same cases every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click
from instances.generate import KINDS, snapshot_bytes
from random_snapshots import random_snapshot

from aucsched import Resources, RunningJob, Schedule, Snapshot
from aucsched.auction.options import StepOptions
from aucsched.auction.step import run_step
from aucsched.formats.native.cluster_file import parse_snapshot

#: Every strategy with the models that have it.
STRATEGIES: tuple[dict[str, Any], ...] = (
    {"model": "ipsched", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched1", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched1", "strategy": "greedy"},
    {"model": "aucsched2", "strategy": "anytime", "work_limit": 3},
    {"model": "aucsched3", "strategy": "exact", "work_limit": 3},
    {"model": "aucsched3", "strategy": "anytime", "work_limit": 3},
    {"model": "aucsched3", "strategy": "greedy"},
)
#: Beside each of them.
OTHERS: tuple[dict[str, Any], ...] = (
    {},
    {"window": 3},
    {"reserve": 1},
    {"max_bids": 8, "max_bids_per_job": 2},
    {"reserve": 2, "window": 4},
)
#: Models that bid on many nodes; IPSCHED and AUCSCHED1 are for machines of some dozens of nodes.
LARGE = ("aucsched2", "aucsched3")


def options_of(strategy: dict[str, Any], other: dict[str, Any]) -> StepOptions:
    """Return a strategy's options beside others, without caps on bids where nobody bids."""
    caps = {name: value for name, value in other.items() if "bids" in name}
    bids = {} if strategy["model"] == "ipsched" else caps
    return StepOptions(
        **strategy, **{name: value for name, value in other.items() if name not in caps}, **bids
    )


def crowded(seed: int) -> Snapshot:
    """Return a random cluster; of every other one the jobs wait three times over."""
    found = random_snapshot(seed)
    if seed % 2:
        return found
    jobs = tuple(replace(job, id=f"{job.id}-{again}") for again in range(3) for job in found.jobs)
    return replace(found, jobs=jobs)


def started_second(cluster: Snapshot, options: StepOptions) -> list[str]:
    """Return the jobs that start in a second pass over what the first award leaves."""
    first = run_step(cluster, options)
    return [award.job for award in run_step(after(cluster, first), options).started]


def after(cluster: Snapshot, schedule: Schedule) -> Snapshot:
    """Return the cluster with a schedule's winners running, and the others waiting."""
    jobs = {job.id: job for job in cluster.jobs}
    free = {node.name: node.free for node in cluster.nodes}
    licenses = dict(cluster.licenses)
    running = list(cluster.running)
    for award in schedule.started:
        job = jobs.pop(award.job)
        for name, held in award.nodes.items():
            free[name] = _less(free[name], held)
        for name, count in job.request.licenses.items():
            licenses[name] = replace(licenses[name], free=licenses[name].free - count)
        # A job without a limit never ends, as far as anybody knows.
        end = None if job.time_limit_s is None else (cluster.time or 0.0) + job.time_limit_s
        running.append(
            RunningJob(
                id=job.id,
                nodes=award.nodes,
                end_time=end,
                user=job.user,
                group=job.group,
                account=job.account,
                qos=job.qos,
                partition=job.partition.split(",")[0],
            )
        )
    return replace(
        cluster,
        nodes=tuple(replace(node, free=free[node.name]) for node in cluster.nodes),
        licenses=licenses,
        running=tuple(running),
        jobs=tuple(jobs.values()),
    )


def _less(free: Resources, held: Resources) -> Resources:
    memory = None if free.memory_mib is None else free.memory_mib - (held.memory_mib or 0)
    gres = {kind: count - held.gres.get(kind, 0) for kind, count in free.gres.items()}
    return Resources(cores=free.cores - held.cores, memory_mib=memory, gres=gres)


def _of_snapshots(first: int, count: int) -> Iterator[tuple[str, Snapshot, StepOptions]]:
    for seed in range(first, first + count):
        cluster = crowded(seed)
        for strategy in STRATEGIES:
            for other in OTHERS:
                yield f"snapshot {seed}", cluster, options_of(strategy, other)


def _of_instances(
    kinds: tuple[str, ...], seeds: tuple[int, ...]
) -> Iterator[tuple[str, Snapshot, StepOptions]]:
    for kind in kinds or sorted(KINDS):
        made = KINDS[kind]
        caps: dict[str, Any] = {
            "max_bids": made.max_bids,
            "max_bids_per_job": made.max_bids_per_job,
            "window": made.window,
        }
        for seed in seeds:
            cluster = parse_snapshot(snapshot_bytes(kind, seed))
            for strategy in STRATEGIES:
                if strategy["model"] in LARGE:
                    yield f"{kind}/{seed}", cluster, StepOptions(**strategy, **caps)


def _report(cases: Iterator[tuple[str, Snapshot, StepOptions]]) -> None:
    found = made = 0
    for name, cluster, options in cases:
        made += 1
        started = started_second(cluster, options)
        if started:
            found += 1
            asked = f"{options.model} {options.strategy} window {options.window} reserve {options.reserve}"
            click.echo(f"{name}, {asked}: {len(started)} start, {', '.join(started[:5])}")
    click.echo(f"{made} cases; in {found} a second pass starts something")
    sys.exit(int(found > 0))


@click.group()
def main() -> None:
    """Look for steps that are not complete."""


@main.command()
@click.option("--first", type=int, default=0, help="The first seed.")
@click.option("--count", type=int, default=500, help="So many.")
def snapshots(first: int, count: int) -> None:
    """Random snapshots."""
    _report(_of_snapshots(first, count))


@main.command()
@click.argument("kinds", nargs=-1, type=click.Choice(sorted(KINDS)))
@click.option("--seed", "seeds", type=int, multiple=True, default=(0,))
def instances(kinds: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    """The instance set, all kinds where none is named."""
    _report(_of_instances(kinds, seeds))


if __name__ == "__main__":
    main()
