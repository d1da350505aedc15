"""The counts-only machine: a number of processors, no nodes; a kernel of its own, built for speed.

The rules are those of the general loop (events.py): at one time stamp all ends, then all arrivals, then one
scheduling pass; ends at one time in the order in which the jobs were chosen. Tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

from .policy import Policy
from .workload import Workload

#: Start time of a job that never started: times count from the first submission, so none is below 0.
NEVER = -1
#: Arrivals between two reports of progress.
REPORT_EVERY = 4096


def simulate_counts(
    workload: Workload, policy: Policy, progress: Callable[[int], None] | None = None
) -> list[float]:
    """Run a policy over a workload and return each job's start, NEVER where it had none.

    Args:
        workload: the jobs; the machine is as large as its requests say.
        policy: a fresh one; it is trusted (see checked.py for one that is not).
        progress: called now and then with the number of jobs that have arrived.

    """
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
