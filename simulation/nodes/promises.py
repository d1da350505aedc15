"""Promised starts on nodes: who was promised what, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...auction.reserve import Reservations
from ...bidgen.demand import Demand
from ...cluster.promises import AUTO, NONE, promised_duration_s
from .machine import Machine
from .queue import NodeQueue
from .record import NodeOutage

#: The share of the longest wait so far that ``auto`` takes for a duration.
SHARE = 0.7
#: Promises kept at once, of the jobs that came first. Reservations hold for ever in the eyes of those that
#: are made after them: more promises than this cost more than they give.
MOST = 1


def default_promise(objective: str | None) -> str:
    """Return the promise that an objective makes where none is named."""
    return AUTO if objective == "response" else NONE


class Promises:
    """The promises of a simulation.

    A job is promised a start in the first pass after one that left it waiting: the later of its earliest
    start beside what runs and what was promised before, and so long after its arrival. Each pass keeps them
    as reservations (``Reservations.promise``).

    Args:
        machine: where jobs run.
        promise: ``plan``, ``auto`` or a duration.

    Attributes:
        made: by job, the start promised.
    """

    def __init__(self, machine: Machine, promise: str) -> None:
        self.made: dict[int, float] = {}
        self._machine = machine
        self._is_auto = promise == AUTO
        self._duration = 0.0 if self._is_auto else promised_duration_s(promise)
        self._longest = 0.0

    def kept(self, now: float, queue: NodeQueue) -> list[Demand]:
        """Return the waiting jobs that were promised a start, new promises made, the earliest first."""
        arrivals = self._machine.arrivals
        waits = [now - arrivals[demand.job.id] for demand in queue]
        self._longest = max(self._longest, max(waits, default=0.0))
        promised = [_with(demand, self.made[demand.index]) for demand in queue if demand.index in self.made]
        promised.sort(key=lambda demand: demand.job.promised_start or 0.0)
        new = [
            demand
            for demand, waited in zip(queue, waits, strict=True)
            if demand.index not in self.made and waited > 0
        ]
        new.sort(key=lambda demand: demand.index)
        if new and len(promised) < MOST:
            promised += self._promise(now, promised, new[: MOST - len(promised)])
            promised.sort(key=lambda demand: demand.job.promised_start or 0.0)
        return promised

    def _promise(self, now: float, promised: Sequence[Demand], new: Sequence[Demand]) -> list[Demand]:
        duration = SHARE * self._longest if self._is_auto else self._duration
        reservations = Reservations(self._machine.state(now), 0)
        for demand in promised:
            reservations.promise(demand, demand.job.promised_start or 0.0)
        made: list[Demand] = []
        for demand in new:
            latest = self._machine.arrivals[demand.job.id] + duration
            earliest = reservations.promise(demand, latest)
            if earliest is not None:
                self.made[demand.index] = max(earliest, latest)
                made.append(_with(demand, self.made[demand.index]))
        return made


def why_broken(promised: float, started: float, outages: Sequence[NodeOutage]) -> str:
    """Return why a job started after its promise."""
    lost = [one for one in outages if one.down_s < started]
    if lost:
        return "nodes were lost"
    return f"promises made before left no room by {promised:g}"


def _with(demand: Demand, promised: float) -> Demand:
    return replace(demand, job=replace(demand.job, promised_start=promised))
