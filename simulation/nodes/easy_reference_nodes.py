"""A copy of the machine on which EASY plays the same jobs: how long would they have waited?

It is the yardstick of promises that follow a workload's own waits, as on counts (promised/easy_reference.py).
A job's run time is known to it once the job has ended on the real machine; until then it runs up to its
limit. It makes a pass whenever one of its jobs ends and whenever the real machine is asked; its nodes do not
fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from ...cluster.resources.demand import Demand
from .backfill import Backfill
from .node_machine import Machine
from .node_queue import NodeQueue
from .select import SELECTIONS


class EasyCopy:
    """EASY beside what really happens.

    Args:
        machine: where jobs really run.

    Attributes:
        longest_s: the longest wait on the copy so far, of jobs that wait on it as well.
    """

    def __init__(self, machine: Machine) -> None:
        self.longest_s = 0.0
        self._real = machine
        self._machine = machine.empty()
        selector = SELECTIONS["first"](self._machine.columns, self._machine.topology)
        self._policy = Backfill(self._machine, selector, reservations=1)
        self._queue = NodeQueue()
        self._met: set[int] = set()
        self._now = 0.0
        #: Jobs that wait on the real machine, some of which were stopped there.
        self._waiting: set[int] = set()

    def follow(self, now: float, waiting: Iterable[Demand]) -> None:
        """Play the copy up to a pass on the real machine, with the jobs that wait there."""
        while self._machine.running:
            time = min(map(self._end, self._machine.running))
            if time > now:
                break
            time = max(time, self._now)
            self._pass(time)
        if self._arrive(waiting) or any(self._end(job) <= now for job in self._machine.running):
            self._pass(now)
        self._now = now
        for demand in self._queue:
            self._note(demand, now)

    def _pass(self, now: float) -> None:
        """Let jobs end and start; where none has come or ended since the last pass none can start."""
        self._now = now
        for job in [job for job in self._machine.running if self._end(job) <= now]:
            self._machine.end(job, now)
        for start in self._policy.step(now, self._queue) if len(self._queue) else ():
            self._queue.remove(start.demand)
            self._machine.start(start, now)
            self._note(start.demand, now)

    def _arrive(self, waiting: Iterable[Demand]) -> bool:
        """Notice who waits and who has come; return whether anybody has."""
        met = len(self._met)
        self._waiting.clear()
        for demand in waiting:
            self._waiting.add(demand.index)
            if demand.index not in self._met:
                self._met.add(demand.index)
                # What its start is worth now is no order here: equals stand by their arrival.
                self._queue.add(replace(demand, job=replace(demand.job, priority=1)))
        return len(self._met) > met

    def _end(self, job: int) -> float:
        """Return when a job ends on the copy, as far as is known."""
        holding = self._machine.running[job]
        ran = inf if job in self._waiting else self._real.ran.get(job, inf)
        return min(holding.limit_end_s, holding.start_s + ran)

    def _note(self, demand: Demand, now: float) -> None:
        self.longest_s = max(self.longest_s, now - self._real.arrivals[demand.job.id])
