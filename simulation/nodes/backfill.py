"""Policies that place jobs one after another on nodes: FCFS, and backfilling.

A reservation is the earliest time at which the first blocked job fits if running jobs end at their time
limits, and the nodes it would take then. A job that could still run then may only take what those nodes
have beside the reservation.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...auction.forecast import Forecast, ReservedPlace, guard_for, limits_of
from ...bidgen.candidates import FreeView, GuardedViews
from ...cluster.resources.allocation import Allocation, StartingJob, add_allocation
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.resources.job_reservations import Guard
from ...cluster.resources.pools import use_of
from ..ticks import turn_of
from .node_machine import Machine
from .node_queue import NodeQueue
from .select import Selector


class Backfill:
    """Starts jobs in queue order; behind the first that cannot start, those that delay no reservation.

    Args:
        machine: where jobs run.
        selector: which nodes a job gets.
        reservations: how many blocked jobs get one; 0: the first blocked job ends the pass (FCFS).
        depth: at most this many jobs of the queue are looked at.
        every_s: jobs behind the first blocked one are looked at only once in this many seconds, as
            Slurm's backfill thread does (bf_interval); None: in every pass.
    """

    wants_more = False
    wakes_at: float | None = None

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
        self._machine = machine
        self._selector = selector
        self._reservations = reservations
        self._depth = depth

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Make one pass."""
        state = BackfillPass(self._machine, now)
        waiting = queue.first(len(queue) if self._depth is None else self._depth)
        made = 0
        backfills = self._backfills(now)
        blocked: set[str] = set()
        # Less is free with every start and reservation: who cannot start now, none of its kind can later on.
        hopeless: set[int] = set()
        for demand in waiting:
            if state.passes_over(demand):
                continue
            # Slurm too lets a blocked job hold up its own partition only.
            if demand.job.partition in blocked:
                continue
            if demand.kind not in hopeless:
                if self._starts(demand, state):
                    continue
                hopeless.add(demand.kind)
            if not self._reservations:
                break
            if not backfills:
                blocked.add(demand.job.partition)
                continue
            if made < self._reservations:
                state.to_reserve.append(demand)
                made += 1
        return state.started

    def _backfills(self, now: float) -> bool:
        """Return whether this pass looks behind the first blocked job."""
        if self.wakeup_s is None or not self._reservations:
            return bool(self._reservations)
        turn, before = turn_of(now, self.wakeup_s), self._turn
        self._turn = turn
        return turn > before

    def _may_start(self, demand: Demand, state: BackfillPass) -> bool:
        """Return whether there could be room for a job beside what the reservations so far keep clear."""
        return state.has_pools(demand) and state.view(demand).could_hold(demand)

    def _starts(self, demand: Demand, state: BackfillPass) -> bool:
        if not self._may_start(demand, state):
            return False
        if state.to_reserve:
            # Reservations are looked for only now: where nobody behind could start they matter to nobody.
            for blocked in state.to_reserve:
                self._reserve(blocked, state)
            state.to_reserve.clear()
            return self._starts(demand, state)
        allocation = self._selector.allocation(demand, state.view(demand))
        if allocation is None or not state.has_pools(demand, allocation):
            return False
        state.take(demand, allocation)
        return True

    def _reserve(self, demand: Demand, state: BackfillPass) -> None:
        """Find when and where a blocked job could start, and keep the place clear for it."""

        def fits(columns: Columns) -> Allocation | None:
            view = FreeView(columns, columns.free)
            return self._selector.allocation(demand, view)

        future = state.future()
        found = future.first_where(fits)
        if found is not None:
            time, allocation = found
            # What has started and what is reserved is gone from it: nothing of a job is counted twice.
            state.reserve(
                guard_for(demand.job, state.now, time, allocation, future.free_at(time), {}), allocation
            )


class BackfillPass:
    """What is free while a pass starts jobs, with and without what reservations keep clear.

    Attributes:
        started: who starts where, in order.
        to_reserve: blocked jobs whose reservations have not been looked for yet.
    """

    def __init__(self, machine: Machine, now: float) -> None:
        self.now = now
        self.started: list[StartingJob] = []
        self.to_reserve: list[Demand] = []
        self._machine = machine
        self.free = machine.columns.free.copy()
        self._pools = machine.columns.pools.copy()
        self._guards: list[Guard] = []
        self._kept: list[ReservedPlace] = []
        self._views: GuardedViews | None = None

    def passes_over(self, demand: Demand) -> bool:
        """Return whether nothing waits for a job: Slurm too passes over one whose limits are used up."""
        return self._pools.passes_over(demand.job)

    def has_pools(self, demand: Demand, allocation: Allocation | None = None) -> bool:
        """Return whether there is enough for a job, there or anywhere, of what stands on no node."""
        return self._pools.hold(demand.job, None if allocation is None else use_of(allocation.held))

    def view(self, demand: Demand) -> FreeView:
        """Return what a job may take: beside reservations it would run into, only their room."""
        if self._views is None:
            self._views = GuardedViews(self._machine.columns, self.free, self._guards)
        return self._views.of(demand)

    def fits(self, allocation: Allocation) -> bool:
        """Return whether at least that is free there."""
        free, held, nodes = self.free, allocation.held, allocation.nodes
        limited = self._machine.limited[nodes]
        return (
            bool((held.cores <= free.cores[nodes]).all())
            and not bool(((held.memory > free.memory[nodes]) & limited).any())
            and all(bool((counts <= free.gres[kind][nodes]).all()) for kind, counts in held.gres.items())
        )

    def take(self, demand: Demand, allocation: Allocation) -> None:
        """Start a job."""
        limited = self._machine.limited
        add_allocation(self.free, allocation, -1, limited)
        for guard in self._guards:
            guard.take(demand.job, allocation.nodes, allocation.held)
        self._pools.take(demand.job, use_of(allocation.held))
        self.started.append(StartingJob(demand=demand, allocation=allocation))
        self._views = None

    def future(self) -> Forecast:
        """Return what will be free beside what has started and what is reserved."""
        return Forecast(self._machine.state(self.now), limits_of(self.started), self._kept)

    def reserve(self, guard: Guard, allocation: Allocation) -> None:
        """Keep a place clear."""
        self._guards.append(guard)
        self._kept.append(ReservedPlace(allocation))
        self._views = None
