"""Auctions of a cluster in parts: the loss, and the largest cluster that they can take.

    python benchmarks/parts.py                    # 9 408 nodes, 1 000 jobs: whole, and in 4 and 8 parts
    python benchmarks/parts.py --huge             # 100 000 nodes, 10 000 jobs within 60 s

Each row: the cluster whole or in parts, the seconds it took, the value, jobs started, the gap to the bound.
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
from aucsched.formats.native.read import parse_snapshot


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--huge", action="store_true", help="100 000 nodes, in parts only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="time limit; default 5, for --huge 60")
    arguments = parser.parse_args()
    kind = "huge" if arguments.huge else "frontier"
    seconds = arguments.seconds or (60.0 if arguments.huge else 5.0)
    sizes = (10_000,) if arguments.huge else (10_000, 2_500, 1_250)
    content = snapshot_bytes(kind, arguments.seed)
    began = time.perf_counter()
    snapshot = parse_snapshot(content)
    print(f"{kind}/{arguments.seed}: {len(snapshot.nodes)} nodes, {len(snapshot.jobs)} jobs, ", end="")
    print(f"read in {time.perf_counter() - began:.1f} s; {os.cpu_count()} cores; limit {seconds:g} s")
    print("| parts of at most | seconds | CPU s | value | jobs | gap |\n|--:|--:|--:|--:|--:|--:|")
    for size in sizes:
        options = replace(ours.options_of(kind, seconds), part_nodes=size)
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
