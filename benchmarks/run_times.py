"""What run times gain ``--objective response`` on logs: ``python benchmarks/run_times.py``.

The policy orders jobs by expected run times. It is played with five of them: the limits, the share of the
limit that the user's last 20 jobs ran for (what the policy does), the mean and the geometric mean of the
distributions that forecasts learn, and the true run times. Promises follow limits in all of them. The table
has each half of a log: mean bounded slowdown and mean wait as multiples of EASY's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from forecast import DATA, LOGS

from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import Requests, Workload, workload_from_swf
from aucsched.simulation.logs.policies import POLICIES, play_log
from aucsched.simulation.promised.log_auction import LogAuction
from aucsched.simulation.result import Simulation
from aucsched.simulation.run_times import BINS, SMALLEST, RunTimes, mixed_shares
from aucsched.simulation.stepping import Changes

WAYS = ("limits", "users' last 20", "learnt mean", "learnt geometric mean", "true")
#: The middle of each bin of a share.
MIDDLES = np.append(SMALLEST ** (1 - (np.arange(BINS) + 0.5) / BINS), 1.0)
_SHORTEST_S = 10.0


class InformedAuction(LogAuction):
    """The auction on counts with expected run times from elsewhere, each job a user of its own."""

    loop = None

    def __init__(self, requests: Requests, way: str, run: Sequence[float]) -> None:
        alone = replace(requests, user=tuple(range(len(requests))))
        super().__init__(alone, None, objective="response")
        self._way, self._run, self._user = way, run, requests.user
        self._known = RunTimes()
        self._rows: dict[int, Any] = {}
        self._waiting: dict[int, set[int]] = defaultdict(set)

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Learn from what ended, expect anew, and make the pass."""
        ended, arrived = seen
        asked, state = self._requests, self.stepping[2]
        for job in ended:
            limit, run = asked.estimate[job], self._run[job]
            self._known.learn(self._rows.pop(job), limit_s=limit, run_s=run)
            self._known.remember(self._owner(job), run / limit)
        for user in {self._user[job] for job in ended}:
            for job in self._waiting[user]:
                share = self._share(job)
                work = (share - state.shares.mean[job]) * state.backlog.asked[job]
                state.backlog.learnt[0] += work
                state.shares.mean[job] = share
        for job in arrived:
            owner = self._owner(job)
            self._rows[job] = self._known.rows(limit_s=asked.estimate[job], user=owner, cores=asked.size[job])
            state.shares.mean[job] = self._share(job)
            self._waiting[self._user[job]].add(job)
        started = super().step(now, seen)
        for job in started:
            self._waiting[self._user[job]].discard(job)
        return started

    def _owner(self, job: int) -> int | None:
        return self._user[job] if self._user[job] >= 0 else None

    def _share(self, job: int) -> float:
        if self._way == "limits":
            return 1.0
        if self._way == "true":
            return self._run[job] / self._requests.estimate[job]
        if self._way == "users' last 20":
            return self._known.mean_share(self._owner(job))
        share = np.zeros(BINS + 1)
        mixed_shares(self._known.table, self._rows[job], share)
        if self._way == "learnt mean":
            return float(share @ MIDDLES)
        return float(np.exp(share @ np.log(MIDDLES)))


def halves(result: Simulation) -> np.ndarray[Any, Any]:
    """Return mean bounded slowdown and mean wait of each half of a log, a row each."""
    wait, run = np.array(result.wait, np.float64), np.array(result.workload.run, np.float64)
    slowdown = np.maximum((wait + run) / np.maximum(run, _SHORTEST_S), 1)
    middle = len(wait) // 2
    parts = (slice(middle), slice(middle, None))
    return np.array([[slowdown[part].mean(), wait[part].mean()] for part in parts])


def row(name: str, jobs: Workload, easy: np.ndarray[Any, Any], way: str) -> str:
    """Play a log one way; return its row."""

    def made(requests: Requests, *_: Any) -> InformedAuction:
        return InformedAuction(requests, way, jobs.run)

    POLICIES["informed"] = made
    ratios = halves(play_log(jobs, "informed")) / easy
    cells = [f"{slowdown:.2f}, {wait:.2f}" for slowdown, wait in ratios.tolist()]
    return f"| {name} | {way} | {cells[0]} | {cells[1]} |"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, show_default=False)
@click.option("--logs", default="KTH-SP2,SDSC-SP2 5k,HPC2N", show_default=True, help="Names, by commas.")
def main(data: Path, logs: str) -> None:
    """Print the table."""
    click.echo("| log | run times of the order | first half: slowdown, wait | second half |")
    click.echo("|---|---|--:|--:|")
    for name in logs.split(","):
        file, processors = LOGS[name]
        jobs = workload_from_swf(load_swf(data / file), processors=processors)
        easy = halves(play_log(jobs, "easy"))
        for way in WAYS:
            click.echo(row(name, jobs, easy, way))


if __name__ == "__main__":
    main()
