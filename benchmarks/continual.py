"""Recorded passes of an auction that goes on, with kept state and cold, side by side.

    python benchmarks/continual.py --set table-8.6-3 --jobs 600 --every 20
    python benchmarks/continual.py --set kth --jobs 3000 --every 100
    python benchmarks/continual.py --huge --jobs 20000
    python benchmarks/continual.py --simulate --jobs 2000

A workload is played by ``aucsched.Auction``: one update and one award a pass. Of every so many passes that
start somebody the same snapshot is auctioned cold, by ``schedule`` with a limit of 3 s. Seconds are
processor time of this process, in which the first 60 jobs have been played before; then ``gc.freeze()``
is called, as ``slurm run`` does after its first pass. Values are sums of priorities. ``--huge``: 100 000
nodes and a window of 100 jobs; the first award, the next after its starts, and later ones after ten jobs
have ended. Its 10 000 jobs come again as often as ``--jobs`` asks for. The snapshot is read before the
clock starts.
``--simulate``: KTH-SP2 on nodes, its first jobs, by EASY and by AUCSCHED3 with each promise, one after
another in one process.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import gc
import hashlib
import heapq
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import real_logs
from instances.generate import snapshot_bytes

import aucsched
from aucsched import Auction, Award, ClusterWorkload, Schedule
from aucsched.cluster.kernels import warm_up
from aucsched.formats.swf import load_swf
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.workloads.imported import workload_of_log
from aucsched.simulation.workloads.named_clusters import EvenCluster
from aucsched.simulation.workloads.soner import table_workload
from aucsched.simulation.workloads.workload_options import TableOptions

DATA = Path(__file__).parents[2] / "shared" / "data"
#: Begins the clock of snapshots: seconds since the epoch.
EPOCH = 1_000_000_000.0
COLD_S = 3.0


def kth() -> ClusterWorkload:
    """Return KTH-SP2 on nodes of one processor."""
    machine = EvenCluster(nodes=100, cores=1, gpus=0, tree=False).empty()
    log = load_swf(DATA / "swf" / real_logs.LOGS["KTH-SP2"][0])
    return workload_of_log("KTH-SP2", log, machine)[0]


def ub_week() -> ClusterWorkload:
    """Return the week of the University at Buffalo's cluster."""
    from ub_week import week

    return week(DATA / "ub")[0]


#: The auction alone, as the thesis's tables have it.
ALONE = {"promise": "none", "reserve": 0}


def table(number: str, which: str) -> ClusterWorkload:
    """Return a workload of the thesis's tables 8.4 to 8.6."""
    return table_workload(
        number, which, seed=1, options=TableOptions(contiguity="drop" if number == "8.6" else "honour")
    )


#: Name -> the workload, the seconds between passes, options.
SETS: dict[str, tuple[Callable[[], ClusterWorkload], float, dict[str, Any]]] = {
    "table-8.6-3": (lambda: table("8.6", "3"), 3.0, ALONE),
    "table-8.4-1": (lambda: table("8.4", "1"), 3.0, {**ALONE, "model": "aucsched2"}),
    "kth": (kth, 300.0, {}),
    "ub-week": (ub_week, 60.0, {}),
}


#: Policies of ``--simulate``, EASY first.
SIMULATED: dict[str, dict[str, Any]] = {
    "EASY": {"policy": "easy"},
    "AUCSCHED3": {"policy": "aucsched3"},
    "AUCSCHED3, response": {"policy": "aucsched3", "objective": "response"},
}


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass, kept and cold: seconds of processor time, sums of priorities, gaps."""

    kept_s: float
    kept: Schedule
    cold_s: float | None
    cold: Schedule | None


def played(
    workload: ClusterWorkload, interval_s: float, every: int, options: dict[str, Any]
) -> Iterator[Pass]:
    """Play a workload, a pass at each multiple of the interval with a change; yield the passes."""
    snapshot = replace(replace(workload, jobs=()).snapshot(), time=EPOCH)
    auction, ends = Auction(snapshot, **options), list[tuple[float, str]]()
    coming, number, starting = list(workload.jobs), 0, 0
    runs = {one.job.id: one for one in workload.jobs}
    started: tuple[Award, ...] = ()
    while number < len(coming) or ends:
        soonest = min([coming[number].arrival_s] if number < len(coming) else [ends[0][0]], default=0.0)
        moment = ceil(min([soonest, *(end for end, _ in ends[:1])]) / interval_s) * interval_s
        arrived, ended = [], []
        while number < len(coming) and coming[number].arrival_s <= moment:
            arrived.append(coming[number].job)
            number += 1
        while ends and ends[0][0] <= moment:
            ended.append(heapq.heappop(ends)[1])
        began = time.process_time()
        auction.update(time=EPOCH + moment, started=started)
        auction.update(ended=ended, arrived=arrived)
        found = auction.award()
        kept_s = time.process_time() - began
        started = found.started
        for award in started:
            limit = runs[award.job].job.time_limit_s or runs[award.job].run_time_s
            heapq.heappush(ends, (moment + min(runs[award.job].run_time_s, limit), award.job))
        starting += bool(started)
        cold_s, cold = None, None
        if started and starting % every == 0:
            began = time.process_time()
            alone = {**options, "work_limit": None, "time_limit_s": COLD_S}
            cold = aucsched.schedule(auction.cluster, **alone)
            cold_s = time.process_time() - began
        yield Pass(kept_s, found, cold_s, cold)
        if not started and not ends and number == len(coming):
            return


def report(name: str, passes: list[Pass]) -> str:
    """Return a row: processor time, values and gaps, kept and cold."""
    both = [one for one in passes if one.cold is not None]
    ratio = [
        float(one.kept.objective.priority) / float(one.cold.objective.priority) for one in both if one.cold
    ]
    gaps = [one.kept.objective.gap for one in both if one.kept.objective.gap is not None]
    cold_s = [one.cold_s for one in both if one.cold_s is not None]
    kept_s, mean = [one.kept_s for one in both], float(np.mean([one.kept_s for one in passes]))
    short = sum(one < 0.999 for one in ratio)
    return (
        f"| {name} | {len(passes)} | {1000 * mean:.1f} | {len(both)} | {1000 * np.mean(kept_s):.1f} | "
        f"{1000 * np.mean(cold_s):.1f} | {sum(kept_s) / sum(cold_s):.3f} | {min(ratio):.4f} | "
        f"{np.mean(ratio):.4f} | {short} | {np.mean(gaps):.2%} | {max(gaps):.2%} |"
    )


def digest(found: Schedule) -> str:
    """Return a fingerprint of what starts where and why the others wait."""
    said = repr((found.started, found.pending, found.objective))
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def huge(jobs: int) -> None:
    """Print the seconds of the first award on 100 000 nodes and of those after small updates."""
    snapshot = replace(aucsched.parse_snapshot(snapshot_bytes("huge", 0)), time=EPOCH)
    once, count = snapshot.jobs, len(snapshot.jobs)
    more = (replace(once[place % count], id=f"job-{place:05d}") for place in range(count, jobs))
    auction = Auction(replace(snapshot, jobs=(*once[:jobs], *more)), work_limit=2)
    print(f"| pass | jobs ended | s | start | wait | gap | answer |\n|---|{'--:|' * 5}---|")
    started: tuple[Award, ...] = ()
    for number in range(6):
        began = time.process_time()
        ended = [one.id for one in auction.cluster.running[:10]]
        auction.update(time=EPOCH + number, started=started, ended=ended)
        found = auction.award()
        started = found.started
        took, gap = time.process_time() - began, found.objective.gap or 0
        print(
            f"| {number + 1} | {len(ended)} | {took:.2f} | {len(found.started)} | {len(found.pending)} | "
            f"{gap:.2%} | {digest(found)} |",
            flush=True,
        )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def simulate(jobs: int) -> None:
    """Print processor time and waits of simulations of KTH-SP2 on nodes, and EASY's time as the unit."""
    workload = kth()
    workload = replace(workload, jobs=workload.jobs[:jobs])
    print(f"| policy | passes | s | EASY's time | mean wait, s | longest, s |\n|---|{'--:|' * 5}")
    unit = None
    warm_up.main()
    for name, options in SIMULATED.items():
        # What is compiled is loaded before the clock starts.
        play(replace(workload, jobs=workload.jobs[:100]), NodeOptions(**options))
        began = time.process_time()
        result = play(workload, NodeOptions(**options))
        took = time.process_time() - began
        unit = unit or took
        waits = [one.start_s - workload.jobs[one.demand.index].arrival_s for one in result.played]
        print(
            f"| {name} | {result.record.passes} | {took:.1f} | {took / unit:.2f} | {np.mean(waits):.1f} | "
            f"{max(waits):.0f} |",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--set", choices=SETS, action="append", help="several; default: all")
    parser.add_argument("--jobs", type=int, help="the first of each workload (600; --huge: 10 000)")
    parser.add_argument(
        "--every", type=int, default=20, help="cold: each so many passes that start jobs (20)"
    )
    parser.add_argument("--work-limit", type=int, default=2)
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    given = parser.parse_args()
    if given.simulate:
        simulate(given.jobs or 600)
        return
    if given.huge:
        huge(given.jobs or 10_000)
        return
    columns = "set|passes|ms a pass|cold too|kept ms|cold ms|kept / cold|least value|mean|short|gap|largest"
    print(f"| {columns.replace('|', ' | ')} |\n|---|{'--:|' * columns.count('|')}")
    for name in given.set or SETS:
        make, interval_s, own = SETS[name]
        workload = make()
        workload = replace(workload, jobs=workload.jobs[: given.jobs or 600])
        options = {**own, "work_limit": given.work_limit}
        # What is compiled is loaded before the clock starts, or one kept pass of a set would bear it.
        warm_up.main()
        list(played(replace(workload, jobs=workload.jobs[:60]), interval_s, 1, options))
        gc.freeze()
        print(report(name, list(played(workload, interval_s, given.every, options))), flush=True)


if __name__ == "__main__":
    main()
