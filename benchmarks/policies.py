"""Every policy over logs, side by side: ``python benchmarks/policies.py LOG…``.

What the figures rest on is checked first: lookahead uses no less of the machine than EASY, and planning
without advance reservations starts every job when conservative backfilling does.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import POLICIES, make_policy
from aucsched.simulation.result import Simulation
from aucsched.simulation.stepping import StoppedRun


def main() -> None:
    """Print a table for each log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG")
    for log in parser.parse_args().logs:
        workload = workload_from_swf(load_swf(log))
        print(f"\n{log.name}: {len(workload)} jobs on {workload.requests.processors} processors\n")
        print("| policy | utilisation | loss of capacity | mean wait (s) | mean bounded slowdown | s |")
        print("|---|---|---|---|---|---|")
        results = {name: simulated(workload, name) for name in POLICIES}
        figures = {name: result.metrics for name, result in results.items()}
        for name, found in figures.items():
            print(
                f"| `{name}` | {found['cpu_utilization']:.6f} | {found['loss_of_capacity']:.4f} "
                f"| {found['wait_mean_s']:.1f} | {found['bounded_slowdown_mean']:.2f} "
                f"| {results[name].seconds:.2f} |"
            )
        if (figures["lookahead"]["cpu_utilization"] or 0) < (figures["easy"]["cpu_utilization"] or 0):
            sys.exit("lookahead uses less of the machine than EASY")
        if results["planning"].starts != results["conservative"].starts:
            sys.exit("planning is not conservative backfilling")


def simulated(workload: Workload, name: str) -> Simulation:
    """Run a policy with its default options."""
    stopped: list[StoppedRun] = []
    began = time.perf_counter()
    policy = make_policy(name, workload.requests)
    starts = simulate_counts(workload, policy, None, stopped)
    return Simulation(
        workload=workload,
        policy=name,
        order="fcfs",
        starts=tuple(starts),
        seconds=time.perf_counter() - began,
        stopped=None if policy.stopped is None else tuple(stopped),
    )


if __name__ == "__main__":
    main()
