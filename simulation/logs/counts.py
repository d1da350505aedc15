"""The counts-only machine: a number of processors, no nodes; a kernel of its own, built for speed.

The rules are those of the general loop (events.py): at one time stamp all ends, then all arrivals, then one
scheduling pass; ends at one time in the order in which the jobs were chosen. Policies that have a compiled
loop (backfilling/log_loop.py) are played by it where that is possible and pays. Tests hold all of them equal.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

from ..backfilling.log_loop import play_compiled
from ..log_columns import Workload
from ..stepping import NEVER, REPORT_EVERY, CountPolicy, StoppedRun, alarm_of, stopped_by
from .general import simulate_general


def simulate_counts(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload and return each job's start, NEVER where it had none.

    Args:
        workload: the jobs; the machine is as large as its requests say.
        policy: a fresh one; it is trusted (see checked.py for one that is not).
        progress: called now and then with the number of jobs that have arrived.
        stopped: takes the runs that the policy stopped, in the order in which it did.

    """
    if stopped_by(policy) is not None or alarm_of(policy) is not None:
        starts, gone = simulate_general(workload, policy, progress)
        if stopped is not None:
            stopped += gone
        return starts
    starts_by_loop = play_compiled(workload, policy, progress)
    return simulate_plain(workload, policy, progress) if starts_by_loop is None else starts_by_loop


def simulate_plain(
    workload: Workload, policy: CountPolicy, progress: Callable[[int], None] | None = None
) -> list[float]:
    """Run a policy that stops no job and never wants to be woken in plain Python, whatever it is."""
    run = workload.run
    # The sentinels at infinity spare both queues a test for emptiness.
    submit = (*workload.requests.submit, inf)
    ends: list[tuple[float, int, int]] = [(inf, 0, 0)]
    starts: list[float] = [NEVER] * len(run)
    step = policy.step
    arrivals = sequence = 0
    next_arrival, next_end = submit[0], ends[0][0]
    report_at = REPORT_EVERY if progress else inf
    nobody: list[int] = []
    while True:
        now = next_arrival if next_arrival < next_end else next_end  # noqa: FURB136 - min() is a call
        ended = nobody
        if next_end == now:
            if now == inf:
                return starts
            ended = [heappop(ends)[2]]
            while ends[0][0] == now:
                ended.append(heappop(ends)[2])
        first = arrivals
        if next_arrival == now:
            arrivals += 1
            while submit[arrivals] == now:
                arrivals += 1
            next_arrival = submit[arrivals]
            if progress and arrivals >= report_at:
                progress(arrivals)
                report_at = arrivals + REPORT_EVERY
        for job in step(now, ended, range(first, arrivals)):
            starts[job] = now
            sequence += 1
            heappush(ends, (now + run[job], sequence, job))
        next_end = ends[0][0]
