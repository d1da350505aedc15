"""Policies that place jobs one after another on nodes: FCFS, and backfilling.

Backfilling stands on the rule of the auction's steps (auction/reserve.py); here a selection says
which nodes a job gets.

Slurm's ``sched/backfill`` plans instead (PlannedBackfill). Between turns the queue is looked at as
Slurm's main scheduler does: in order, in each partition up to the first job that cannot start.
At a turn each job takes its earliest start beside the plans of those before it. A plan keeps whole
nodes, from its start for its time limit, as Slurm's bitmaps of nodes do: what a job leaves free on
them no other job may plan on. Jobs whose start is now start. Plans are made anew at each turn.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from math import inf

import numpy as np

from ...auction.forecast import Forecast, first_found
from ...auction.reserve import Backfilling, StepReservations
from ...bidgen.candidates import FreeView, node_key
from ...bidgen.first_fit import Cluster, FirstFitPlacer
from ...cluster.resources.allocation import Allocation, StartingJob
from ...cluster.resources.capacity import BoolArray, Capacity, IntArray
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ..events import turn_of
from .node_machine import Machine
from .node_queue import NodePolicy, NodeQueue
from .select import Selector


class Backfill(NodePolicy):
    """Starts jobs in queue order; behind a blocked one, those that delay no reservation.

    Args:
        machine: where jobs run.
        selector: which nodes a job gets.
        reservations: how many blocked jobs get one; 0: the first blocked job ends the pass (FCFS).
        depth: at most this many jobs of the queue are looked at.
        every_s: jobs behind the first blocked one are looked at only once in this many seconds, as
            Slurm's backfill thread does (bf_interval); None: in every pass.
    """

    wakeup_s: float | None = None

    def __init__(
        self,
        machine: Machine,
        selector: Selector,
        *,
        reservations: int,
        depth: int | None = None,
        every_s: float | None = None,
    ) -> None:
        self.wakeup_s = every_s
        self._turn = -1
        self._seen: tuple[int, int] | None = None
        self._machine = machine
        self._selector = selector
        self._reservations = reservations
        self._depth = depth

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Make one pass."""
        fit = SelectedPlacer(self._machine, self._selector)
        waiting = queue.first(len(queue) if self._depth is None else self._depth)
        # Whether this pass looks behind the first blocked job.
        if not (self._reservations and self._is_turn(now)):
            return self._in_order(waiting, fit)
        if self._repeats(now, queue):
            return []
        reserved = StepReservations(self._machine.state(now), self._reservations, place=self._later)
        backfilling = Backfilling(fit, reserved, fit.passes_over)
        backfilling.start(waiting)
        return backfilling.starts

    def _in_order(self, waiting: Iterable[Demand], fit: "SelectedPlacer") -> list[StartingJob]:
        """Start jobs up to the first that cannot.

        In Slurm's main loop, between turns, it blocks its own partition only; one that lacks a
        licence blocks nothing (job_scheduler.c without bf_licenses).
        """
        started: list[StartingJob] = []
        blocked: set[str] = set()
        for demand in waiting:
            if fit.passes_over(demand) or demand.job.partition in blocked:
                continue
            start = fit.start(demand) if fit.could_hold(demand) else None
            if start is not None:
                started.append(start)
            elif self.wakeup_s is None:
                break
            elif fit.has_licences(demand):
                blocked.add(demand.job.partition)
        return started

    def _later(self, demand: Demand, columns: Columns) -> Allocation | None:
        """Return where a blocked job could start on what is free then."""
        # Next fit goes on from the last job that started, not from where one was looked for.
        return copy(self._selector).allocation(demand, FreeView(columns, columns.free))

    def _is_turn(self, now: float) -> bool:
        """Return whether this pass is the first of a turn; without turns every pass is."""
        if self.wakeup_s is None:
            return True
        turn, before = turn_of(now, self.wakeup_s), self._turn
        self._turn = turn
        return turn > before

    def _repeats(self, now: float, queue: NodeQueue) -> bool:
        """Return whether jobs and machine are the last turn's: no more can start later."""
        running, before = self._machine.running, self._seen
        self._seen = queue.changes, self._machine.changes
        # Priorities may grow with time, and with an end that is overdue the reservations move.
        is_still = type(queue) is NodeQueue and all(one.end > now for one in running.values())
        return self.wakeup_s is not None and self._seen == before and is_still


class SelectedPlacer(FirstFitPlacer):
    """Places jobs of one pass one after another, each on the nodes that a selection chooses."""

    def __init__(self, machine: Machine, selector: Selector) -> None:
        super().__init__(Cluster(machine.columns, machine.topology))
        # Views are of what those that start here leave of limits, too.
        self._columns = replace(self._columns, pools=self._pools)
        self._selector = selector

    @property
    def free(self) -> Capacity:
        """What nobody holds, reserved or not."""
        return self._free

    def passes_over(self, demand: Demand) -> bool:
        """Return whether nothing waits for a job: Slurm too passes over one with limits used up."""
        return self._pools.passes_over(demand.job)

    def has_licences(self, demand: Demand) -> bool:
        """Return whether licences and limits are left for a job."""
        return self._pools.hold(demand.job)

    def start(self, demand: Demand) -> StartingJob | None:
        """Start a job on its nodes; None when it does not fit."""
        allocation = self._selector.allocation(demand, self.view(demand))
        if allocation is None:
            self._hopeless.add(demand.kind)
            return None
        return self.start_on(demand, allocation)

    def start_on(self, demand: Demand, allocation: Allocation) -> StartingJob | None:
        """Start a job there; None where its limits or licences have no room."""
        if not self._pools.hold(demand.job, allocation.held):
            return None
        self.take(demand.job, allocation)
        return StartingJob(demand=demand, allocation=allocation)


#: The most moments that are looked at together.
_AT_ONCE = 16


class PlannedBackfill(Backfill):
    """Plans a start on whole nodes for every job that it looks at; between turns it goes in order.

    At most ``depth`` jobs of the queue are planned (bf_max_job_test). Turns are ``every_s`` seconds
    apart (bf_interval); None: every pass is one.
    """

    def __init__(self, machine: Machine, selector: Selector, *, depth: int, every_s: float | None) -> None:
        super().__init__(machine, selector, reservations=0, every_s=every_s)
        self._planned = depth

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Make one pass."""
        if not self._is_turn(now):
            return super().step(now, queue)
        if self._repeats(now, queue):
            return []
        plan = _Plan(self._machine, self._selector, now)
        plan.all(queue.first(self._planned))
        return plan.started


class _Plan:
    """One pass: what starts now, and what is kept for whom later."""

    def __init__(self, machine: Machine, selector: Selector, now: float) -> None:
        self.started: list[StartingJob] = []
        self._selector = selector
        self._state = machine.state(now)
        # The first row is a plan for all time that keeps no node: every moment has one.
        self._starts, self._ends = np.array([-inf]), np.array([inf])
        # A bit for each node: most of a turn is joining the plans of a moment.
        self._count = len(machine.columns.free.cores)
        self._kept = np.packbits(np.zeros((1, self._count), np.bool_), axis=1)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Ask anew what will be free: something has started."""
        self._future = Forecast(self._state)
        self._views: dict[int, FreeView] = {}
        self._known: dict[tuple[object, ...], IntArray] = {}

    def all(self, waiting: Iterable[Demand]) -> None:
        """Start or plan each job."""
        for demand in waiting:
            if not self._state.columns.pools.hold(demand.job):
                continue
            found = self._earliest(demand)
            if found is None:
                continue
            time, allocation = found
            if time <= self._state.now:
                self._start(demand, allocation)
            else:
                self._keep(time, time + demand.limit_s, allocation.nodes)

    def _keep(self, start: float, end: float, nodes: IntArray) -> None:
        row = np.zeros((1, self._count), np.bool_)
        row[0, nodes] = True
        self._starts, self._ends = np.append(self._starts, start), np.append(self._ends, end)
        self._kept = np.concatenate([self._kept, np.packbits(row, axis=1)])

    def _start(self, demand: Demand, allocation: Allocation) -> None:
        self.started.append(StartingJob(demand=demand, allocation=allocation))
        self._state = self._state.with_starts([(demand.job, allocation)])
        self._look_ahead()

    def _earliest(self, demand: Demand) -> tuple[float, Allocation] | None:
        """Return when and where a job could start beside the plans; None: no end lets it start."""
        times = self._future.times
        # The first step at which there is enough if nothing is planned.
        found = first_found(lambda step: self._view(step).could_hold(demand) or None, len(times))
        if found is None:
            return None
        first, _ = found
        ends = self._ends[(self._ends > times[first]) & (self._ends < inf)]
        moments = np.unique(np.concatenate([times[first:], ends]))
        begin, size = 0, 2
        # Most jobs find their place soon, some only behind all plans.
        while begin < len(moments):
            later = moments[begin : begin + size]
            begin, size = begin + size, min(2 * size, _AT_ONCE)
            steps = np.searchsorted(times, later, side="right") - 1
            planned = (self._starts < later[:, None] + demand.limit_s) & (self._ends > later[:, None])
            moment, plan = np.nonzero(planned)
            first_plan = np.flatnonzero(np.diff(moment, prepend=-1))
            joined = np.bitwise_or.reduceat(self._kept[plan], first_plan)
            kept = np.unpackbits(joined, axis=1, count=self._count).view(np.bool_)
            for place in np.flatnonzero(self._could_hold(demand, steps, kept)).tolist():
                allocation = self._allocation_at(int(steps[place]), demand, kept[place])
                if allocation is not None:
                    return float(later[place]), allocation
        return None

    def _could_hold(self, demand: Demand, steps: IntArray, kept: BoolArray) -> BoolArray:
        """Return at which steps there is enough beside what is kept, wherever it stands.

        Args:
            demand: the job.
            steps: shape (moments,).
            kept: the nodes that plans keep, shape (moments, nodes).

        """
        fewest = demand.fewest_nodes
        holds = np.zeros(len(steps), np.bool_)
        for variant in range(len(demand.variants)):
            units = np.array([self._units(step, demand, variant) for step in steps.tolist()])
            units[kept] = 0
            holds |= (units.sum(axis=1) >= (demand.units or 0)) & (np.count_nonzero(units, axis=1) >= fewest)
        return holds

    def _units(self, step: int, demand: Demand, variant: int) -> IntArray:
        """Return the units that each node could give then, 0 where unusable; shape (nodes,)."""
        key = (step, variant, node_key(demand))
        if key not in self._known:
            found = self._view(step).candidates(demand)[variant]
            units = np.zeros_like(found.units)
            units[found.nodes] = found.units[found.nodes]
            self._known[key] = units
        return self._known[key]

    def _view(self, step: int) -> FreeView:
        if step not in self._views:
            columns = self._future.at(step)
            self._views[step] = FreeView(columns, columns.free)
        return self._views[step]

    def _allocation_at(self, step: int, demand: Demand, kept: BoolArray) -> Allocation | None:
        view = self._view(step)
        if kept.any():
            free = view.free.copy()
            free.cores[kept] = 0
            view = FreeView(view.columns, free)
        return self._selector.allocation(demand, view)
