"""Promised starts on nodes: who was promised what, and what came of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol

import numpy as np

from ...auction.forecast import ReservedPlace
from ...auction.reserve import Promise, StepReservations
from ...auction.state import StepState
from ...cluster.promises import AUTO, promised_duration_s
from ...cluster.resources.allocation import Allocation, StartingJob
from ...cluster.resources.demand import Demand
from ...cluster.value_types import copied
from ..backfilling.easy import easy_columns
from ..events import turn_at
from ..log_columns import LogColumns
from ..promised.log_auction import PLAY_COPY
from ..promised.promise_plan import LOOSENESS, SHARE, empty_state, rules_of, window
from .backfill import Backfill
from .core_plan import CoreLevelPlan, whole_nodes
from .node_machine import Machine
from .node_queue import NodeQueue
from .select import SELECTIONS

#: Promises kept at once, of the jobs that came first;
MOST = 32
#: under ``auto`` those that block others, of the jobs that are due first: each keeps nodes.
MOST_AUTO = 1


class Watched(Protocol):
    """A machine whose jobs are promised starts: a simulated one, or a live cluster."""

    @property
    def arrivals(self) -> Mapping[str, float]:
        """When jobs came (seconds), by id."""

    @property
    def running(self) -> Collection[int]:
        """The jobs that run, by number."""

    def state(self, now: float) -> StepState:
        """Return the machine as a step sees it."""


class EasyCopy:
    """A copy of the machine on which EASY plays the same jobs: how long would they have waited?

    It is the yardstick of promises that follow a workload's own waits, as on counts
    (promised/log_auction.py). A job's run time is known to it once the job has ended on the real
    machine; until then it runs up to its limit. It makes a pass whenever one of its jobs ends and
    whenever the real machine is asked; its nodes do not fail. While every job takes any whole nodes
    it counts them, and log_auction.py plays it. The first job that asks for others has what has
    come played again on nodes.

    Attributes:
        longest_s: the longest wait on the copy so far, of jobs that wait on it as well.
    """

    def __init__(self, machine: Machine) -> None:
        self.longest_s = 0.0
        self._real = machine
        self._empty = machine.empty()
        jobs, nodes = len(machine.arrivals), len(machine.columns.names)
        self._play, self._is_compiled = PLAY_COPY.for_jobs(jobs)
        nothing: Any = [0] * jobs
        asked = LogColumns(nothing, nothing, nothing, nothing, nothing, True, True)
        state = empty_state(rules_of(nodes, "response", AUTO), asked, nothing, is_compiled=self._is_compiled)
        # Sizes are not known before jobs come, which an index of a deep queue wants.
        easy = easy_columns(nodes, state.jobs.size, state.jobs.estimate, is_compiled=self._is_compiled)
        self._jobs, self._copy = state.jobs, state.copy._replace(easy=easy)
        self._met: dict[int, Demand] = {}
        #: Those of them that are not known to have ended.
        self._open: set[int] = set()
        self._on_nodes: _NodeCopy | None = None

    def follow(self, now: float, waiting: Iterable[Demand]) -> None:
        """Play the copy up to a pass on the real machine, with the jobs that wait there."""
        new = sorted((one for one in waiting if one.index not in self._met), key=lambda one: one.index)
        still = {demand.index for demand in waiting}
        if self._on_nodes is None and not all(map(self._is_counted, new)):
            self._on_nodes = _NodeCopy(self._real, self._empty)
            for demand in self._met.values():
                self._on_nodes.follow(self._real.arrivals[demand.job.id], [demand], still)
        self._met.update((demand.index, demand) for demand in new)
        if self._on_nodes is not None:
            self.longest_s = max(self.longest_s, self._on_nodes.follow(now, new, still))
            return
        arrived = [demand.index for demand in new]
        self._open.update(arrived)
        ended = list(self._open.difference(self._real.running, still))
        self._open.difference_update(ended)
        for job in ended:
            self._jobs.run[job] = min(self._real.ran.get(job, inf), self._jobs.estimate[job])
        events: list[Any] = [ended, arrived]
        if self._is_compiled:
            events = [np.array(one, np.int64) for one in events]
        self.longest_s = self._play(self._jobs, self._copy, float(now), *events)

    def _is_counted(self, demand: Demand) -> bool:
        """Note what a job asks for; return whether any whole nodes do for it."""
        jobs, job = self._jobs, demand.index
        jobs.submit[job] = self._real.arrivals[demand.job.id]
        jobs.estimate[job] = demand.limit_s
        jobs.size[job] = whole_nodes(demand, self._empty.columns)
        return bool(jobs.size[job])


class _NodeCopy:
    """The copy where it counts which nodes jobs take: on an empty machine beside the real one."""

    def __init__(self, real: Machine, machine: Machine) -> None:
        self._longest_s = 0.0
        self._real = real
        self._machine = machine
        selector = SELECTIONS["first"](machine.columns, machine.topology)
        self._policy = Backfill(machine, selector, reservations=1)
        self._queue = NodeQueue()
        self._now = 0.0
        #: Jobs that wait on the real machine, some of which were stopped there.
        self._waiting: Collection[int] = ()

    def follow(self, now: float, arrived: Sequence[Demand], waiting: Collection[int]) -> float:
        """Play the copy up to a pass on the real machine; return its longest wait so far."""
        self._waiting = waiting
        while (time := min(map(self._end, self._machine.running), default=inf)) <= now:
            self._pass(max(time, self._now))
        for demand in arrived:
            # What its start is worth now is no order here: equals stand by their arrival.
            self._queue.add(copied(demand, job=copied(demand.job, priority=1)))
        if arrived or any(self._end(job) <= now for job in self._machine.running):
            self._pass(now)
        self._now = now
        for demand in self._queue:
            self._note(demand, now)
        return self._longest_s

    def _pass(self, now: float) -> None:
        """Let jobs end and start; none can start where none came or ended since the last pass."""
        self._now = now
        for job in [job for job in self._machine.running if self._end(job) <= now]:
            self._machine.end(job, now)
        self._machine.begin_step()
        for start in self._policy.step(now, self._queue) if len(self._queue) else ():
            self._queue.remove(start.demand)
            self._machine.start(start, now)
            self._note(start.demand, now)

    def _end(self, job: int) -> float:
        """Return when a job ends on the copy, as far as is known."""
        holding = self._machine.running[job]
        ran = inf if job in self._waiting else self._real.ran.get(job, inf)
        return min(holding.end, holding.start_s + ran)

    def _note(self, demand: Demand, now: float) -> None:
        self._longest_s = max(self._longest_s, now - self._real.arrivals[demand.job.id])


class Promises:
    """The promises of a machine, simulated or live (slurm/live/loop_snapshot.py).

    A job is promised a start in the first pass after one that left it waiting: the first at which
    it fits beside what runs and earlier promises, at least a duration after its arrival. Its nodes
    are kept from then on while it may run (``StepReservations.promise``); others use them before.
    Under ``auto`` the duration follows the longest wait that EASY would have made so far
    (``EasyCopy``), and one job at a time is promised a start to come, as EASY reserves for one: the
    job due first. Behind it a plan by cores says which jobs would overtake others for too long
    (core_plan.py). When a job ends promises move sooner where the others leave room, never later.

    Args:
        machine: where jobs run.
        promise: ``plan``, ``auto`` (on a simulated machine) or a duration.
        interval_s: seconds between passes: promised starts are at passes; None: after every event.
        most: promises kept at once.

    Attributes:
        made: by job, the start promised.
    """

    def __init__(
        self, machine: Watched, promise: str, interval_s: float | None = None, *, most: int = MOST
    ) -> None:
        self.made: dict[int, float] = {}
        self._machine = machine
        self._interval = interval_s
        self._is_auto = promise == AUTO
        self._most = most
        self._duration = 0.0 if self._is_auto else promised_duration_s(promise)
        cores = int(machine.state(0.0).columns.total.cores.sum())
        self._rules = rules_of(cores, "response", promise)
        follows = machine if self._is_auto and isinstance(machine, Machine) else None
        self._copy = None if follows is None else EasyCopy(follows)
        self._plan = None if follows is None else CoreLevelPlan(follows, self._rules)
        #: The longest wait so far had EASY played.
        self._longest_s = 0.0
        #: By job, where it was last to start.
        self._allocations: dict[int, Allocation] = {}
        #: What ran and which nodes took jobs at the last look at promises; None: there was none.
        self._running: set[int] | None = None
        self._up = b""

    def kept(self, now: float, queue: Iterable[Demand]) -> list[Promise]:
        """Return the promises of waiting jobs, new ones made, the earliest first."""
        if self._copy is not None and self._plan is not None:
            self._copy.follow(now, queue)
            self._longest_s = self._copy.longest_s
            self._plan.follow(now, queue, self._longest_s)
        known: list[Promise] = []
        new: list[Demand] = []
        for demand in queue:
            if demand.index in self.made:
                known.append(Promise(demand, self.made[demand.index], self._allocations.get(demand.index)))
            elif now > self._machine.arrivals[demand.job.id]:
                new.append(demand)
        known.sort(key=lambda promise: (promise.start, promise.demand.index))
        return self._again(now, known, new) if known or new else []

    def refused(self, now: float, promised: Iterable[Promise]) -> frozenset[int]:
        """Return the jobs that may not start in a pass in any case: the plan would put others off.

        Promised starts that have come are kept.
        """
        return frozenset() if self._plan is None else self._plan.refused(now) - _come(promised, now)

    def too_many(
        self, now: float, starts: Sequence[StartingJob], promised: Iterable[Promise]
    ) -> frozenset[int]:
        """Return which starts of a pass, tried in their order, the plan leaves no room for.

        Promised starts that have come are kept.
        """
        return frozenset() if self._plan is None else self._plan.too_many(now, starts, _come(promised, now))

    def move(self, promised: Sequence[Promise]) -> None:
        """Put jobs elsewhere at the starts they were promised."""
        self._allocations.update(
            (one.demand.index, one.allocation) for one in promised if one.allocation is not None
        )

    def _again(self, now: float, known: Sequence[Promise], new: Sequence[Demand]) -> list[Promise]:
        """Find the places of promises anew where they are no longer free, and make new promises."""
        state = self._machine.state(now)
        running, self._running = self._running, set(self._machine.running)
        has_ended = running is None or not running <= self._running
        up, self._up = self._up, state.columns.takes_jobs.tobytes()
        are_to_come = bool(known) and all(one.allocation and one.start > now for one in known)
        if self._is_auto and are_to_come and not has_ended and up == self._up:
            # What has started leaves promises their places, and no other job is promised one yet.
            self._allocations = {}
            self.move(known)
            return list(known)
        made = self._sooner(state, known) if has_ended else None
        reservations, promised = self._one_sooner(state, known, has_ended) if made is None else made
        for demand in self._in_turn(new)[: max(0, self._most - len(promised))]:
            # What starts now stands in nobody's way.
            to_come = sum(one.allocation is not None and one.start > now for one in promised)
            if self._is_auto and to_come >= MOST_AUTO:
                break
            since = self._earliest(demand)
            kept = reservations.promise(Promise(demand, since))
            if kept is not None and kept.start > max(since, now) and self._is_auto:
                kept = reservations.promise(Promise(demand, self._put_off(demand, now, kept.start))) or kept
            if kept is not None:
                kept = self._at_a_pass(reservations, demand, kept)
                self.made[demand.index] = kept.start
                promised.append(Promise(demand, kept.start, kept.allocation))
        self._allocations = {}
        self.move(promised)
        return sorted(promised, key=lambda promise: promise.start)

    def _in_turn(self, new: Sequence[Demand]) -> list[Demand]:
        """Return jobs in the order in which they are promised starts."""
        if not self._is_auto:
            return sorted(new, key=lambda demand: demand.index)
        if self._plan is not None and self._plan.is_kept:
            place = self._plan.order()
            return sorted(new, key=lambda demand: place[demand.index])
        return sorted(new, key=lambda demand: (self._earliest(demand), demand.index))

    def _earliest(self, demand: Demand) -> float:
        """Return the earliest start that a job may be promised.

        Under ``auto`` it is when the job is due.
        """
        arrival = self._machine.arrivals[demand.job.id]
        if not self._is_auto:
            return arrival + self._duration
        share = min(demand.job.request.fewest_cores / self._rules.processors, 1.0)
        return arrival + window(SHARE * self._longest_s, demand.limit_s, share)

    def _put_off(self, demand: Demand, now: float, start: float) -> float:
        """Return the start that is promised in place of the first one."""
        latest = self._machine.arrivals[demand.job.id] + self._longest_s
        return max(start, min(now + LOOSENESS * (start - now), latest))

    def _at_a_pass(
        self, reservations: StepReservations, demand: Demand, kept: ReservedPlace
    ) -> ReservedPlace:
        """Put a promise off to the next pass: nothing starts before."""
        if self._interval is None:
            return kept
        start = turn_at(kept.start, self._interval)
        if start <= kept.start:
            return kept
        return reservations.promise(Promise(demand, start, kept.allocation)) or kept

    def _one_sooner(
        self, state: StepState, known: Sequence[Promise], has_ended: bool
    ) -> tuple[StepReservations, list[Promise]]:
        """Keep promises where they were made, sooner where a job has ended, one after another."""
        reservations, promised = StepReservations(state, 0), []
        for promise in known:
            kept = reservations.promise(promise)
            promised.append(promise._replace(allocation=None if kept is None else kept.allocation))
        for place, promise in enumerate(promised if has_ended else ()):
            since = self._earliest(promise.demand)
            if promise.start <= max(since, state.now):
                continue
            put_off = partial(self._put_off, promise.demand, state.now) if self._is_auto else None
            kept = reservations.sooner(promise, since, put_off)
            if kept is not None:
                kept = self._at_a_pass(reservations, promise.demand, kept)
                if kept.start >= promise.start:
                    reservations.promise(promise)
                    continue
                self.made[promise.demand.index] = kept.start
                promised[place] = promise._replace(start=kept.start, allocation=kept.allocation)
        return reservations, promised

    def _sooner(
        self, state: StepState, known: Sequence[Promise]
    ) -> tuple[StepReservations, list[Promise]] | None:
        """Return a new plan in order of arrival; None: a job would start later than promised."""
        if self._is_auto or self._duration:
            return None
        reservations = StepReservations(state, 0)
        promised = []
        for promise in sorted(known, key=lambda one: one.demand.index):
            kept = reservations.promise(Promise(promise.demand, state.now))
            if kept is not None:
                kept = self._at_a_pass(reservations, promise.demand, kept)
            if kept is None or kept.start > promise.start:
                return None
            promised.append(Promise(promise.demand, kept.start, kept.allocation))
        self.made.update((one.demand.index, one.start) for one in promised)
        return reservations, promised


def _come(promised: Iterable[Promise], now: float) -> frozenset[int]:
    """Return whose promised starts have come, by number."""
    return frozenset(promise.demand.index for promise in promised if promise.start <= now)
