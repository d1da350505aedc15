"""Auctions of a cluster in parts: the loss, and the largest cluster that they can take.

    python benchmarks/parts.py                    # 9 408 nodes, 1 000 jobs: whole, and in 4 and 8 parts
    python benchmarks/parts.py --huge --sizes 20000 --seconds 15 --workers 2    # 100 000 nodes, 10 000 jobs
    python benchmarks/parts.py --huge --sizes 200000 --seconds 30               # the same in one piece

Each row: the cluster whole or in parts, the seconds it took, the value, jobs started, the gap to the bound.
CPU seconds are those of this process; other processes' are added where they have ended.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from dataclasses import replace

import ours
from instances.generate import snapshot_bytes

from aucsched.auction.step import run_step
from aucsched.formats.native.cluster_file import parse_snapshot


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--huge", action="store_true", help="100 000 nodes, in parts only")
    parser.add_argument("--sizes", type=int, nargs="+", help="most nodes of a part, a row each")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument(
        "--processor", action="store_true", help="count processor time, of each process its own"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="time limit; default 5, for --huge 60")
    arguments = parser.parse_args()
    kind = "huge" if arguments.huge else "frontier"
    seconds = arguments.seconds or (60.0 if arguments.huge else 5.0)
    sizes = arguments.sizes or ([20_000] if arguments.huge else [10_000, 2_500, 1_250])
    clock = time.process_time if arguments.processor else time.perf_counter
    content = snapshot_bytes(kind, arguments.seed)
    began = time.perf_counter()
    snapshot = parse_snapshot(content)
    print(f"{kind}/{arguments.seed}: {len(snapshot.nodes)} nodes, {len(snapshot.jobs)} jobs, ", end="")
    limit = f"{seconds:g} {'processor ' if arguments.processor else ''}s"
    print(f"read in {time.perf_counter() - began:.1f} s; {os.cpu_count()} cores; ", end="")
    print(f"{arguments.workers} processes; limit {limit}")
    print("| parts of at most | seconds | CPU s | value | jobs | gap |\n|--:|--:|--:|--:|--:|--:|")
    for size in sizes:
        options = replace(
            ours.options_of(kind, seconds), part_nodes=size, workers=arguments.workers, clock=clock
        )
        began, used = time.perf_counter(), time.process_time()
        result = run_step(snapshot, options)
        took, cpu = time.perf_counter() - began, time.process_time() - used
        gap = "–" if result.objective.gap is None else f"{result.objective.gap:.1%}"
        value = f"{float(result.objective.priority):,.0f}"
        print(f"| {size} | {took:.1f} | {cpu:.1f} | {value} | {len(result.started)} | {gap} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB", file=sys.stdout)


if __name__ == "__main__":
    main()
