"""Processor time against the length of a log of small jobs, EASY and response: ``benchmarks/lengths.py``.

The log is drawn anew from one seed: users with two habits each submit one job or some dozens, more than the
machine can do, so that thousands wait. With --deep a million jobs keep a queue of 50 000. Both policies run
in compiled loops over parsed columns; what is compiled is compiled before.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.counts import LOOPS, play_compiled
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.report import bounded_slowdown
from aucsched.simulation.simulate_options import PolicyOptions

#: Jobs of the longest log, of one that is sealed, and of the deep one.
JOBS, DEEP_JOBS, DEEP_QUEUE = 447_794, 1_000_000, 50_000
PROCESSORS, USERS, SEED = 1024, 200, 1
LIMITS_S = (600, 1800, 3600, 7200, 14_400, 43_200, 86_400)
SIZES = (1, 1, 1, 1, 2, 4, 8, 16)
POLICIES = {"easy": PolicyOptions(), "promised": PolicyOptions(objective="response")}


def small_jobs(jobs: int, *, load: float, queue: int = 0) -> Workload:
    """Return a log of so many jobs; ``queue`` of them come at once, at the beginning.

    Args:
        jobs: how many.
        load: work that comes, as a share of what the machine can do.
        queue: jobs that come first.
    """
    draw = np.random.default_rng(SEED)
    habits = draw.integers(0, len(LIMITS_S), (USERS, 2)), draw.integers(0, len(SIZES), (USERS, 2))
    shares = np.exp(draw.normal(-1.5, 1.0, (USERS, 2)))
    burst = np.where(draw.random(jobs) < 0.1, draw.geometric(1 / 30, jobs), 1)
    of_burst = np.repeat(np.arange(jobs), burst)[:jobs]
    user = np.minimum(draw.pareto(1.0, jobs) * 5, USERS - 1).astype(int)[of_burst]
    habit = draw.integers(0, 2, jobs)[of_burst]
    limit = np.array(LIMITS_S)[habits[0][user, habit]]
    size = np.array(SIZES)[habits[1][user, habit]]
    run = np.clip(limit * shares[user, habit] * np.exp(draw.normal(0, 0.5, jobs)), 1, limit).astype(int)
    gaps = np.cumsum(np.where(np.diff(of_burst, prepend=0) > 0, draw.exponential(1, jobs), 0))
    submit = (gaps / gaps[-1] * (size * run).sum() / PROCESSORS / load).astype(int)
    submit = np.concatenate([np.zeros(queue, int), submit[: jobs - queue]])
    columns = {"submit": submit - submit[0], "size": size, "estimate": limit, "user": user}
    requests = Requests(
        processors=PROCESSORS,
        weight=(1,) * jobs,
        **{name: tuple(column.tolist()) for name, column in columns.items()},
    )
    row = tuple(range(jobs))
    return Workload(requests=requests, run=tuple(run.tolist()), ids=row, row=row, rows=jobs)


def first_jobs(log: Workload, jobs: int) -> Workload:
    """Return the first jobs of a log."""
    asked, row = log.requests, log.row[:jobs]
    requests = Requests(
        processors=asked.processors,
        submit=asked.submit[:jobs],
        size=asked.size[:jobs],
        estimate=asked.estimate[:jobs],
        user=asked.user[:jobs],
        weight=asked.weight[:jobs],
    )
    return Workload(requests=requests, run=log.run[:jobs], ids=row, row=row, rows=jobs)


def played(log: Workload, policy: str) -> tuple[float, float, float, float, int]:
    """Return processor seconds, mean wait, longest wait, mean bounded slowdown and the longest queue."""
    made = make_policy(policy, log.requests, options=POLICIES[policy])
    began = time.process_time()
    starts = play_compiled(log, made)
    seconds = time.process_time() - began
    if starts is None:
        raise SystemExit("numba is not installed: no loop is compiled")
    submit, run, start = np.array(log.requests.submit), np.array(log.run), np.array(starts)
    wait = start - submit
    slowdown = bounded_slowdown(wait, run)
    waiting = np.arange(1, len(log) + 1) - np.searchsorted(np.sort(start), submit, side="right")
    return seconds, wait.mean(), wait.max(), slowdown.mean(), int(waiting.max())


def main() -> None:
    """Print a row for each length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--load", type=float, default=1.05)
    parser.add_argument("--deep", action="store_true", help="a million jobs in a queue of 50 000")
    options = parser.parse_args()
    for name in POLICIES:
        LOOPS[name].compiled()
    jobs = DEEP_JOBS if options.deep else options.jobs
    log = small_jobs(jobs, load=1.0 if options.deep else options.load, queue=DEEP_QUEUE * options.deep)
    lengths = [jobs]
    while not options.deep and lengths[0] > 20_000:
        lengths.insert(0, 10_000 * 2 ** int(np.log2((lengths[0] - 1) / 10_000)))
    names = ("jobs", "queue", "EASY (s)", "response (s)", "times", "wait", "longest", "slowdown")
    print("".join(f"{name:>14}" for name in names))
    for length in lengths:
        easy, ours = (played(first_jobs(log, length), name) for name in POLICIES)
        ratios = [one / other for one, other in zip(ours, easy, strict=True)]
        counts = f"{length:>14}{max(easy[4], ours[4]):>14}{easy[0]:>14.2f}{ours[0]:>14.2f}"
        print(counts + "".join(f"{ratio:>14.2f}" for ratio in ratios[:4]), flush=True)


if __name__ == "__main__":
    main()
