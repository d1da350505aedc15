"""Jobs simulated per second over a trace, and over a queue of thousands: ``python benchmarks/traces.py LOG``.

The figures are wall time of the policy's run over parsed columns; reading is reported beside them. What is
timed is checked first: both kernels must give the same starts, and KTH-SP2 its known mean wait.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from aucsched.formats.swf import read_swf
from aucsched.simulation.logs.checked import CheckedPolicy, simulate_checked
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.policies import POLICIES, make_policy
from aucsched.simulation.requests import Requests, Workload, workload_from_swf

T = TypeVar("T")
#: KTH-SP2 under EASY, to the digits published with the reading of traces.
KTH_JOBS, KTH_EASY_WAIT_S = 28_481, 6834.5873


def main() -> None:
    """Read the log and print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--scale", type=float, default=0.65 / 16, help="of the copies' arrival times")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    began = time.perf_counter()
    workload = workload_from_swf(read_swf(options.log))
    print(f"{options.log.name}: {len(workload)} jobs read in {time.perf_counter() - began:.3f} s")
    assert_correct(workload)
    light(workload, options.repeats)
    deep(workload, options.copies, options.scale)


def assert_correct(workload: Workload) -> None:
    """Refuse to time what is wrong."""
    starts = simulate_counts(workload, make_policy("easy", workload.requests))
    if starts != simulate_checked(workload, make_policy("easy", workload.requests)):
        sys.exit("the two kernels disagree")
    wait = (sum(starts) - sum(workload.requests.submit)) / len(starts)
    if len(starts) == KTH_JOBS and round(wait, 4) != KTH_EASY_WAIT_S:
        sys.exit(f"mean wait {wait} is not {KTH_EASY_WAIT_S}")
    print(f"EASY mean wait {wait:.4f} s")


def light(workload: Workload, repeats: int) -> None:
    """Print jobs per second for every policy, without and with the checking wrapper."""
    requests = workload.requests
    print(f"{'policy':<16}{'fast kernel':>14}{'checked':>14}{'general loop':>14}  jobs/s, best of {repeats}")
    for name in POLICIES:

        def fast(name: str = name) -> None:
            simulate_counts(workload, make_policy(name, requests))

        def checked(name: str = name) -> None:
            simulate_counts(workload, CheckedPolicy(make_policy(name, requests), requests))

        def general(name: str = name) -> None:
            simulate_checked(workload, make_policy(name, requests))

        rates = [len(workload) / best_of(run, repeats) for run in (fast, checked, general)]
        print(f"{name:<16}" + "".join(f"{rate:>14,.0f}" for rate in rates))


def best_of(run: Callable[[], None], repeats: int) -> float:
    """Return the shortest wall time in seconds."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def deep(workload: Workload, copies: int, scale: float) -> None:
    """Print time and peak memory of EASY over many copies of the trace in little time."""
    for name, stretch in (("merged", 0.0), ("one after another", workload.requests.submit[-1])):
        crowded = crowd(workload, copies, scale, stretch)
        began = time.perf_counter()
        starts = simulate_counts(crowded, make_policy("easy", crowded.requests))
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"× {copies} {name}, arrivals × {scale:g}: {len(crowded)} jobs, up to "
            f"{deepest(crowded, starts)} waiting, {seconds:.1f} s, peak {peak:.0f} MiB"
        )


def crowd(workload: Workload, copies: int, scale: float, stretch: float) -> Workload:
    """Return copies of the jobs, each ``stretch`` seconds after the last, all times then scaled."""
    requests = workload.requests
    arrivals = sorted(
        (int((submit + copy * stretch) * scale), job)
        for copy in range(copies)
        for job, submit in enumerate(requests.submit)
    )

    def take(column: Sequence[T]) -> tuple[T, ...]:
        return tuple(column[job] for _, job in arrivals)

    numbers = tuple(range(len(arrivals)))
    return Workload(
        requests=Requests(
            processors=requests.processors,
            submit=tuple(submit for submit, _ in arrivals),
            size=take(requests.size),
            estimate=take(requests.estimate),
            user=take(requests.user),
            weight=take(requests.weight),
        ),
        run=take(workload.run),
        ids=numbers,
        row=numbers,
        rows=len(arrivals),
    )


def deepest(workload: Workload, starts: list[float]) -> int:
    """Return the largest number of jobs that waited at once."""
    waiting = most = 0
    arrivals = ((moment, 1) for moment in workload.requests.submit)
    begun = ((moment, -1) for moment in starts)
    # At one time arrivals come first: those that start at once count as having waited.
    for _, change in sorted([*arrivals, *begun], key=lambda e: (e[0], -e[1])):
        waiting += change
        most = max(most, waiting)
    return most


if __name__ == "__main__":
    main()
