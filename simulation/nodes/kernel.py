"""The node-level simulation: a workload's jobs come, a policy starts them, each start is checked.

The loop is that of events.py. A policy is called after the events of each time stamp, or, as Slurm's
plugins are, at multiples of an interval when something has changed. No clock is read: the same workload,
policy and options give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from ...auction.check import AwardChecker
from ...auction.forecast import Spot, resources_of
from ...bidgen.demand import Demand
from ...cluster.errors import AwardError
from ...cluster.jobs import Job
from ...cluster.workload import ArrivingJob, ClusterWorkload
from ..events import Event, EventKind, EventQueue, run_events
from ..turns import turn_of
from .machine import Machine, Start
from .queue import NodeQueue
from .startable import why_never

#: Ends between two reports of progress.
_REPORT_EVERY = 32


class NodePolicy(Protocol):
    """Who starts where. Every answer is checked by the kernel.

    Attributes:
        wants_more: the last pass was cut short: another one may start jobs though nothing changes.
        wakeup_s: while jobs wait it is asked at multiples of so many seconds too; None: never.
    """

    wants_more: bool
    wakeup_s: float | None

    def step(self, now: float, queue: NodeQueue) -> Sequence[Start]:
        """Return the jobs that start now; the machine and the queue are left alone."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Played:
    """What became of a job that started; ``run_s`` is its true run time, cut at its time limit."""

    demand: Demand
    spot: Spot
    start_s: float
    run_s: float
    killed: bool


@dataclass(slots=True, eq=False, kw_only=True)
class NodeRun:
    """A finished simulation.

    Attributes:
        played: by job number, ascending.
        never: why a job can never start, by job number; every job stands in one of the two.
        passes: how often the policy was asked.
    """

    played: dict[int, Played] = field(default_factory=dict)
    never: dict[int, str] = field(default_factory=dict)
    passes: int = 0


def simulate_nodes(
    workload: ClusterWorkload,
    machine: Machine,
    policy: NodePolicy,
    queue: NodeQueue,
    *,
    interval_s: float | None = None,
    progress: Callable[[int], None] | None = None,
    refused: Callable[[Job], str] | None = None,
) -> NodeRun:
    """Play a workload under a policy.

    Args:
        workload: the machine and the jobs.
        machine: fresh, of the workload; the policy knows it.
        policy: fresh too.
        queue: empty; orders the waiting jobs.
        interval_s: the policy is asked at multiples of it only; None: after each time stamp with events.
        progress: called now and then with the number of jobs that are done.
        refused: why the policy can never start a job, empty where it could; such a job does not wait.

    Raises:
        AwardError: the policy broke a rule.
    """
    events = EventQueue()
    for number, arriving in enumerate(workload.jobs):
        events.push(arriving.arrival_s, EventKind.ARRIVAL, number)
    never = why_never(workload, machine, refused)
    system = _NodeSystem(workload, machine, policy, queue, interval_s, never)
    system.progress = progress
    run_events(events, system)
    system.run.played = dict(sorted(system.run.played.items()))
    return system.run


class _NodeSystem:
    """The machine, its policy and the record of what happened."""

    def __init__(
        self,
        workload: ClusterWorkload,
        machine: Machine,
        policy: NodePolicy,
        queue: NodeQueue,
        interval_s: float | None,
        never: list[Demand | str],
    ) -> None:
        self._jobs: tuple[ArrivingJob, ...] = workload.jobs
        self._machine = machine
        self._policy = policy
        self._queue = queue
        self._interval = interval_s
        self._never = never
        self._checker = AwardChecker(machine.snapshot)
        self._to_come = len(workload.jobs)
        self._done = 0
        self._is_due = interval_s is None
        self._is_planned = False
        self.progress: Callable[[int], None] | None = None
        self.run = NodeRun()

    def handle(self, event: Event) -> None:
        if event.kind is EventKind.END:
            self._machine.end(event.job, event.time)
            self._report()
        elif event.kind is EventKind.ARRIVAL:
            self._arrive(event.job)
        else:
            self._is_due, self._is_planned = True, False

    def _report(self) -> None:
        self._done += 1
        if self.progress is not None and self._done % _REPORT_EVERY == 0:
            self.progress(self._done)

    def _arrive(self, number: int) -> None:
        self._to_come -= 1
        found = self._never[number]
        if isinstance(found, Demand):
            self._queue.add(found)
        else:
            self.run.never[number] = found
            self._report()

    def schedule(self, now: float, queue: EventQueue) -> None:
        """Ask the policy, now or at the next multiple of the interval."""
        if not len(self._queue):
            self._is_due = self._interval is None
            return
        if self._interval is not None and not self._is_due:
            self._plan(now, queue)
            return
        self._pass(now, queue)
        while not self._machine.running and not self._to_come and len(self._queue):
            self._unblock(now, queue)
        self._is_due = self._interval is None
        if self._policy.wants_more and self._interval is not None and len(self._queue):
            self._plan(now + self._interval, queue)
        if self._policy.wakeup_s is not None and self._interval is None and len(self._queue):
            self._wake(now, self._policy.wakeup_s, queue)

    def _plan(self, now: float, queue: EventQueue) -> None:
        if self._interval is not None and not self._is_planned:
            self._is_planned = True
            queue.push(ceil(now / self._interval) * self._interval, EventKind.PASS, -1)

    def _wake(self, now: float, every_s: float, queue: EventQueue) -> None:
        if not self._is_planned:
            self._is_planned = True
            queue.push((turn_of(now, every_s) + 1) * every_s, EventKind.PASS, -1)

    def _pass(self, now: float, queue: EventQueue) -> None:
        self.run.passes += 1
        self._queue.refresh(now)
        for start in self._policy.step(now, self._queue):
            self._start(start, now, queue)

    def _unblock(self, now: float, queue: EventQueue) -> None:
        """Nothing runs and nothing comes: ask again, or say of the first job that it never starts."""
        if not self._policy.wants_more:
            first = self._queue.first(1)[0]
            self._queue.remove(first)
            self.run.never[first.index] = "the policy finds no place for it on the empty machine"
            self._report()
        self._pass(now, queue)

    def _start(self, start: Start, now: float, queue: EventQueue) -> None:
        number = start.demand.index
        if number in self.run.played:
            raise AwardError(f"job {start.demand.job.id} starts twice, again at {now:g}")
        arriving = self._jobs[number]
        held = resources_of(start.demand, start.spot, self._machine.columns.names)
        self._checker.check(arriving.job, held)
        self._queue.remove(start.demand)
        self._machine.start(start, now)
        run, killed = _run_time(arriving, start.spot)
        self.run.played[number] = Played(
            demand=start.demand, spot=start.spot, start_s=now, run_s=run, killed=killed
        )
        queue.push(now + run, EventKind.END, number)


def _run_time(arriving: ArrivingJob, spot: Spot) -> tuple[float, bool]:
    """Return how long a job runs with what it was given, and whether its time limit ends it."""
    request = arriving.job.request
    fewest = sum(span.minimum for span in request.gres_per_node.values()) * len(spot.nodes)
    fewest += sum(span.minimum for span in request.gres_total.values())
    names = (*request.gres_per_node, *request.gres_total)
    allocated = sum(
        int(counts.sum())
        for kind, counts in spot.held.gres.items()
        if kind in names or kind.partition(":")[0] in names
    )
    run, limit = arriving.run_time_with(fewest, allocated), arriving.job.time_limit_s
    return (run, False) if limit is None or run <= limit else (float(limit), True)
