"""Somebody's own policy on a machine of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from ...cluster.errors import AwardError
from ...cluster.nodes import Resources
from ...cluster.resources.allocation import Allocation, StartingJob, allocation_of_resources
from ...cluster.resources.demand import Demand
from ..own_policy import ActiveJob, Policy, QueuedJob, stepped
from .backfill import BackfillPass
from .node_machine import Machine
from .node_queue import NodeQueue, cores_asked
from .select import Selector


class OwnOnNodes:
    """A policy of the kernel that asks somebody's own what to start.

    Args:
        name: of the policy, for errors.
        policy: a fresh one.
        machine: where jobs run.
        selector: finds nodes for starts that name none.
    """

    wants_more = False
    wakeup_s: float | None = None
    wakes_at: float | None = None

    def __init__(self, name: str, policy: Policy, machine: Machine, selector: Selector) -> None:
        self._name = name
        self._policy = policy
        self.machine = machine
        self.selector = selector
        self._jobs: dict[int, QueuedJob] = {}

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Let the policy look at the machine; return what it started, in that order."""
        view = NodesView(self, now, queue)
        stepped(self._name, self._policy, now, view)
        return view.state.started

    def job(self, demand: Demand) -> QueuedJob:
        """Return a waiting job as the policy sees it."""
        found = self._jobs.get(demand.index)
        if found is None or found.job is not demand.job:
            limit = demand.job.time_limit_s
            found = self._jobs[demand.index] = QueuedJob(
                number=demand.index,
                cores=cores_asked(demand),
                estimate_s=inf if limit is None else limit,
                submit_s=self.machine.arrivals[demand.job.id],
                user=demand.job.user,
                job=demand.job,
            )
        return found


class NodesView:
    """What the policy sees during one step (MachineView)."""

    def __init__(self, system: OwnOnNodes, now: float, queue: NodeQueue) -> None:
        self.cores = int(system.machine.columns.total.cores.sum())
        self.state = BackfillPass(system.machine, now)
        self._system = system
        self._now = now
        self._left = {demand.index: demand for demand in queue}

    @property
    def waiting(self) -> Sequence[QueuedJob]:
        """The jobs that wait, in the queue's order."""
        return tuple(map(self._system.job, self._left.values()))

    @property
    def running(self) -> Sequence[ActiveJob]:
        """The jobs that ran when the step began."""
        return tuple(
            ActiveJob(
                number=number,
                cores=int(one.allocation.held.cores.sum()),
                start_s=one.start_s,
                expected_end_s=one.limit_end_s,
            )
            for number, one in self._system.machine.running.items()
        )

    @property
    def free_cores(self) -> int:
        """The cores that nobody holds on nodes that take jobs."""
        return int(self.state.free.cores[self._system.machine.columns.takes_jobs].sum())

    def start(self, job: QueuedJob, nodes: Mapping[str, Resources | int] | None = None) -> bool:
        """Start a job on the nodes given, or the first that hold it."""
        demand = self._left.get(job.number)
        if demand is None:
            raise AwardError(f"job {job.number} does not wait at {self._now:g}")
        if self.state.passes_over(demand):
            return False
        allocation = self._first(demand) if nodes is None else self._named(demand, nodes)
        if allocation is None or not self.state.has_pools(demand, allocation):
            return False
        del self._left[job.number]
        self.state.take(demand, allocation)
        return True

    def _first(self, demand: Demand) -> Allocation | None:
        view = self.state.view(demand)
        if not self.state.has_pools(demand) or not view.could_hold(demand):
            return None
        return self._system.selector.allocation(demand, view)

    def _named(self, demand: Demand, nodes: Mapping[str, Resources | int]) -> Allocation | None:
        columns = self._system.machine.columns
        held: dict[str, Resources] = {}
        for name, use in nodes.items():
            if name not in columns.index:
                raise AwardError(f"job {demand.job.id} starts on {name!r}, which is not a node")
            held[name] = use if isinstance(use, Resources) else Resources(cores=use)
        allocation = allocation_of_resources(held, columns)
        return allocation if self.state.fits(allocation) else None
