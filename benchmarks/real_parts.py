"""Objective ``response`` beside EASY on parts of the real logs: ``python benchmarks/real_parts.py``.

Consecutive jobs of each log of real.py, on a machine that counts processors, each part a log of its own; what
a log has behind its last whole part is left out. The promises' constants were chosen on these parts too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from real_logs import LOGS

from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import Workload, workload_from_swf
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.simulate_options import PolicyOptions

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
NAMES = ("wait_mean_s", "wait_max_s", "bounded_slowdown_mean", "cpu_utilization")


def part_of(workload: Workload, first: int, count: int) -> Workload:
    """Return some consecutive jobs as a workload that begins with the first of them."""
    end = first + count
    asked = workload.requests.taken(range(first, end))
    requests = replace(asked, submit=tuple(one - asked.submit[0] for one in asked.submit))
    return replace(
        workload,
        requests=requests,
        run=workload.run[first:end],
        ids=workload.ids[first:end],
        row=workload.row[first:end],
        killed=frozenset(job - first for job in workload.killed if first <= job < end),
    )


def ratios(workload: Workload) -> list[float]:
    """Return the auction's metrics as multiples of EASY's."""
    ours = play_log(workload, "promised", options=PolicyOptions(objective="response")).metrics
    easy = play_log(workload, "easy").metrics
    return [float(ours[name] or 0.0) / float(easy[name] or 1.0) for name in NAMES]


@click.command()
@click.option("--jobs", type=click.IntRange(2), default=1500, show_default=True, help="Of a part.")
@click.option("--data", type=click.Path(path_type=Path), default=DATA, show_default=False)
def main(jobs: int, data: Path) -> None:
    """Print a line for each log, over its parts, and one over all parts."""
    print("| log | parts | mean wait | longest wait, most | bounded slowdown, most | utilisation |")
    print("|---|--:|--:|--:|--:|--:|")
    found: list[list[float]] = []
    for name, (file, processors) in LOGS.items():
        log = load_swf(data / "swf" / file)
        workload = workload_from_swf(log, processors=processors)
        firsts = range(0, len(workload.ids) - jobs + 1, jobs)
        mine = [ratios(part_of(workload, first, jobs)) for first in firsts]
        print(line(name, mine))
        found += mine
    print(line("all parts", found))


def line(name: str, found: list[list[float]]) -> str:
    """Return a line: geometric means, and the most where one part counts."""
    wait, longest, slowdown, used = np.exp(np.log(np.array(found)).mean(axis=0))
    most = np.array(found).max(axis=0)
    return (
        f"| {name} | {len(found)} | {wait:.3f} | {longest:.3f}, {most[1]:.3f} | "
        f"{slowdown:.3f}, {most[2]:.3f} | {used:.4f} |"
    )


if __name__ == "__main__":
    main()
