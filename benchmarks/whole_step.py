"""Whole steps over the instance set, by default options: value, and the bound over all placements.

    python benchmarks/whole_step.py tsubame tsubame-even --seed 0 1 2 --seconds 3

A row an instance, in Markdown. ``--processor`` counts processor time in place of wall time, for a machine
that has other work.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

from instances.generate import KINDS, snapshot_bytes

from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.options import StepOptions
from aucsched.auction.step import take_step
from aucsched.formats.native.cluster_file import parse_snapshot


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="+", choices=sorted(KINDS))
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--processor", action="store_true", help="count processor time")
    given = parser.parse_args()
    clock: Callable[[], float] = time.process_time if given.processor else time.perf_counter
    what = "processor time" if given.processor else "wall time"
    print(f"{os.cpu_count()} cores; limit {given.seconds:g} s of {what}\n")
    print("| instance | first-fit | award | jobs | bound over placements | gap | s |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind in given.kinds:
        for seed in given.seed:
            print(row(kind, seed, given.seconds, clock), flush=True)


def row(kind: str, seed: int, seconds: float, clock: Callable[[], float]) -> str:
    """Return one instance's row."""
    snapshot = parse_snapshot(snapshot_bytes(kind, seed))
    made = KINDS[kind]
    options = StepOptions(
        window=made.window,
        max_bids=made.max_bids,
        max_bids_per_job=made.max_bids_per_job,
        time_limit_s=seconds,
        promise="plan",
        reserve=0,
        clock=clock,
    )
    plain = first_fit_by_priority(snapshot, made.window).priority
    took = clock()
    found = take_step(snapshot, options).schedule
    took = clock() - took
    award = found.objective
    wide = award.bound_over_placements
    bound, gap = ("–", "–") if wide is None else (f"{wide:,.0f}", f"{wide / float(award.priority) - 1:.1%}")
    values = f"{float(plain):,.0f} | {float(award.priority):,.0f} | {len(found.started)}"
    return f"| {kind}/{seed} | {values} | {bound} | {gap} | {took:.1f} |"


if __name__ == "__main__":
    main()
