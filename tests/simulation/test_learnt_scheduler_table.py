"""The table of a learnt scheduler (Zhang and others, RLScheduler, SC'20), replayed by its own rules.

Its rules are not EASY's: one event at a time; the job that is first when the last one started stays the head
until it fits; behind it, in order of submission, whoever fits and ends before the head's time, computed once,
starts. A sequence begins with an empty machine. The figures come out to the last digit, so the sequences of
our page are those of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from board import JOBS, SEQUENCES, first_jobs

from aucsched.formats.swf import SwfField, load_swf
from aucsched.simulation.log_columns import Requests, workload_from_swf
from aucsched.simulation.logs.orderings import STATIC_KEYS

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
#: Mean bounded slowdowns, with backfilling.
TABLE = {
    "lublin_256": {"fcfs": 235.82, "wfp3": 133.87, "sjf": 73.31, "f1": 75.07},
    "lublin_256_new2": {"fcfs": 247.61, "wfp3": 318.35, "sjf": 91.99, "f1": 148.25},
}


def wfp3_as_published(asked: Requests) -> list[float]:
    """Return the keys of the table's WFP3: its waits end at the start, which is −1 s until a job starts."""
    columns = zip(asked.submit, asked.estimate, asked.size, strict=True)
    return [((submit + 1) / estimate) ** 3 * size for submit, estimate, size in columns]


KEYS: Mapping[str, Callable[[Requests], Sequence[float]]] = {**STATIC_KEYS, "wfp3": wfp3_as_published}


class Replay:
    """One sequence on an empty machine."""

    def __init__(self, asked: Requests, run: Sequence[float], first: int, order: str) -> None:
        self.last = first + JOBS
        self.submit, self.run, self.size, self.estimate = asked.submit, run, asked.size, asked.estimate
        self.key = KEYS[order](asked)
        self.free, self.next = asked.processors, first + 1
        self.now: float = asked.submit[first]
        self.queue, self.start = [first], dict[int, float]()
        # Ends, then in the order in which they started: one after another, also those at one time.
        self.running: list[tuple[float, int, int]] = []

    def begin(self, job: int) -> None:
        """Start a job now."""
        self.queue.remove(job)
        self.start[job] = self.now
        self.free -= self.size[job]
        self.running.append((self.now + self.run[job], len(self.start), job))

    def advance(self) -> None:
        """Play the next arrival, or the next end."""
        end, _, job = ending = min(self.running, default=(math.inf, 0, 0))
        if self.next < self.last and self.submit[self.next] <= end:
            self.now = max(self.now, self.submit[self.next])
            self.queue.append(self.next)
            self.next += 1
        else:
            self.now = max(self.now, end)
            self.running.remove(ending)
            self.free += self.size[job]

    def head_time(self, head: int) -> float:
        """Return when the head fits by estimates."""
        free = self.free
        for _, _, job in sorted(self.running, key=lambda one: self.start[one[2]] + self.estimate[one[2]]):
            free += self.size[job]
            if free >= self.size[head]:
                return self.start[job] + self.estimate[job]
        raise AssertionError(head)

    def slowdown(self) -> float:
        """Play the sequence; return its mean bounded slowdown."""
        while self.queue or self.next < self.last:
            while not self.queue:
                self.advance()
            head = min(self.queue, key=lambda job: (self.key[job], self.submit[job], job))
            if self.size[head] > self.free:
                by = self.head_time(head)
                while self.size[head] > self.free:
                    for job in sorted(self.queue):
                        if job != head and self.size[job] <= self.free and self.now + self.estimate[job] < by:
                            self.begin(job)
                    self.advance()
            self.begin(head)
        slowdowns = (
            max(1.0, (start - self.submit[job] + self.run[job]) / max(self.run[job], 10))
            for job, start in self.start.items()
        )
        return math.fsum(slowdowns) / JOBS


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")
@pytest.mark.parametrize("name", TABLE)
def test_the_table_comes_out(name: str) -> None:
    log = load_swf(DATA / f"{name}.swf")
    workload = workload_from_swf(log, processors=256)
    # The table's F1 reads submissions as the log has them.
    began = int(log.column(SwfField.SUBMIT)[0])
    asked = replace(workload.requests, submit=tuple(one + began for one in workload.requests.submit))
    for order, slowdown in TABLE[name].items():
        found = [Replay(asked, workload.run, first, order).slowdown() for first in first_jobs(len(asked))]
        assert round(sum(found) / SEQUENCES, 2) == slowdown, order
