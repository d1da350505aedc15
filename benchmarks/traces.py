"""Jobs simulated per second over a trace, and over a queue of thousands: ``python benchmarks/traces.py LOG``.

The figures are processor time of the policy's run over parsed columns; reading is reported beside them. What
is timed is checked first: all kernels must give the same starts, and KTH-SP2 its known mean wait. Compiled
loops stand beside the same policies in plain Python; ``simulate`` runs them where that pays (simulation.md).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from aucsched.formats.swf import SwfLog, load_swf
from aucsched.simulation.log_columns import Requests, Workload, workload_from_swf
from aucsched.simulation.logs.counts import (
    LOOPS,
    CheckedPolicy,
    play_compiled,
    simulate_counts,
    simulate_plain,
)
from aucsched.simulation.logs.policies import POLICIES, make_policy
from aucsched.simulation.stepping import CountPolicy

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
    parser.add_argument("--small", type=int, default=60, help="processors of the overloaded machine")
    options = parser.parse_args()
    began = time.process_time()
    log = load_swf(options.log)
    workload = workload_from_swf(log)
    print(f"{options.log.name}: {len(workload)} jobs read in {time.process_time() - began:.3f} s")
    if not compiled_loops():
        print("numba is not installed: no loop is compiled")
    assert_correct(workload)
    light(workload, options.repeats)
    compiled(workload, options.repeats)
    deep(workload, options.copies, options.scale)
    planned(log, workload, options.small, options.copies)


def compiled_loops() -> bool:
    """Load the compiled loops; return whether numba is there."""
    return None not in [loop.compiled() for loop in LOOPS.values()]


def assert_correct(workload: Workload) -> None:
    """Refuse to time what is wrong."""
    starts = simulate_plain(workload, make_policy("easy", workload.requests))
    for name in LOOPS if compiled_loops() else ():
        plain = simulate_plain(workload, make_policy(name, workload.requests))
        if play_compiled(workload, make_policy(name, workload.requests)) != plain:
            sys.exit(f"the compiled {name} disagrees")
    checked = CheckedPolicy(make_policy("easy", workload.requests), workload.requests)
    if starts != simulate_counts(workload, checked):
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
            in_python(workload, make_policy(name, requests))

        def checked(name: str = name) -> None:
            in_python(workload, CheckedPolicy(make_policy(name, requests), requests))

        def general(name: str = name) -> None:
            simulate_counts(workload, CheckedPolicy(make_policy(name, requests), requests))

        rates = [len(workload) / best_of(run, repeats) for run in (fast, checked, general)]
        print(f"{name:<16}" + "".join(f"{rate:>14,.0f}" for rate in rates))


def in_python(workload: Workload, policy: CountPolicy) -> list[float]:
    """Play a log without compiled loops."""
    kernel = simulate_counts if policy.loop is None else simulate_plain
    return kernel(workload, policy)


def best_of(run: Callable[[], None], repeats: int) -> float:
    """Return the shortest processor time in seconds."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        seconds.append(time.process_time() - began)
    return min(seconds)


def compiled(workload: Workload, repeats: int) -> None:
    """Print jobs per second of the compiled loops beside the same policies in plain Python."""
    if not compiled_loops():
        return
    requests = workload.requests
    print(f"{'policy':<16}{'plain Python':>14}{'compiled':>14}{'times':>8}  jobs/s, best of {repeats}")
    for name in LOOPS:

        def plain(name: str = name) -> None:
            simulate_plain(workload, make_policy(name, requests))

        def loop(name: str = name) -> None:
            play_compiled(workload, make_policy(name, requests))

        slow, fast = best_of(plain, repeats), best_of(loop, repeats)
        rates = f"{len(workload) / slow:>14,.0f}{len(workload) / fast:>14,.0f}"
        print(f"{name:<16}{rates}{slow / fast:>8.1f}")


def planned(log: SwfLog, workload: Workload, small: int, copies: int) -> None:
    """Print the time of conservative backfilling on a small machine, and over copies one after another."""
    if not compiled_loops():
        return
    crowded = crowd(workload, copies, 1.0, workload.requests.submit[-1])
    merged = crowd(workload, copies, 1.0, 0.0)
    large = replace(merged.requests, processors=copies * merged.requests.processors)
    for name, jobs in (
        (f"on {small} processors", workload_from_swf(log, processors=small)),
        (f"× {copies} one after another, arrivals × 1", crowded),
        (f"× {copies} at once on {large.processors} processors", replace(merged, requests=large)),
    ):
        began = time.process_time()
        starts = play_compiled(jobs, make_policy("conservative", jobs.requests)) or []
        seconds = time.process_time() - began
        print(
            f"conservative, compiled, {name}: {len(jobs)} jobs, up to {deepest(jobs, starts)} waiting, "
            f"{seconds:.1f} s"
        )


def deep(workload: Workload, copies: int, scale: float) -> None:
    """Print time and peak memory of EASY over many copies of the trace in little time."""
    for name, stretch in (("merged", 0.0), ("one after another", workload.requests.submit[-1])):
        crowded = crowd(workload, copies, scale, stretch)
        began = time.process_time()
        starts = simulate_plain(crowded, make_policy("easy", crowded.requests))
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"easy, plain Python, × {copies} {name}, arrivals × {scale:g}: {len(crowded)} jobs, up to "
            f"{deepest(crowded, starts)} waiting, {seconds:.1f} s, peak {peak:.0f} MiB"
        )
        if compiled_loops():
            began = time.process_time()
            again = play_compiled(crowded, make_policy("easy", crowded.requests))
            print(f"  compiled {time.process_time() - began:.1f} s")
            if again != starts:
                sys.exit("the compiled easy disagrees")


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
