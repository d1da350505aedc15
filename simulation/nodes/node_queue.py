"""The waiting jobs of a node-level simulation, in the order in which a policy looks at them."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

from ...auction.queue import worth_of
from ...cluster.resources.allocation import StartingJob
from ...cluster.resources.demand import Demand
from ...cluster.value_types import copied
from ...cluster.workload import ClusterWorkload
from ..events import DAY_S
from ..run_times import RunTimes
from ..stepping import MachinePolicy
from .node_machine import Holding

#: Is called for a job that begins (+1) or ceases (−1) to wait.
Watcher = Callable[[Demand, int], None]

#: Weights of Soner's multifactor priority, and its steps of one point.
_AGE, _SIZE, _STEPS = 1000, 1000, 1_000_000


class NodeQueue:
    """Waiting jobs by priority, highest first; ties by arrival, that is by number.

    Attributes:
        changes: how often a job began or ceased to wait.
        unsorted: the jobs with the priorities, and in the order, of some time before.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.unsorted: list[Demand] = []
        self._watcher: Watcher | None = None

    def __len__(self) -> int:
        return len(self.unsorted)

    def __iter__(self) -> Iterator[Demand]:
        return iter(self.unsorted)

    def first(self, count: int) -> list[Demand]:
        """Return at most ``count`` jobs, highest priority first."""
        return list(islice(self, count))

    def watch(self, watcher: Watcher) -> None:
        """Tell of every job that waits now and of each that begins (+1) or ceases (−1) to wait."""
        self._watcher = watcher
        for demand in self.unsorted:
            watcher(demand, 1)

    def add(self, demand: Demand) -> None:
        """Let a job wait."""
        insort(self.unsorted, demand, key=turn_of_job)
        self.changes += 1
        if self._watcher is not None:
            self._watcher(demand, 1)

    def remove(self, demand: Demand) -> None:
        """Let a job wait no more."""
        place = bisect_left(self.unsorted, turn_of_job(demand), key=turn_of_job)
        del self.unsorted[place]
        self.changes += 1
        if self._watcher is not None:
            self._watcher(demand, -1)

    def ended(self, holding: Holding, now: float) -> None:
        """Learn of a job that ran to its end; nothing is learned from it here."""

    def refresh(self, now: float) -> None:
        """Bring priorities up to a time; here they never change."""


#: Who starts where: the machine and the queue are left alone, and the kernel checks every answer.
NodePolicy: TypeAlias = MachinePolicy[NodeQueue, StartingJob]


class AgingQueue(NodeQueue):
    """Priorities that grow with what a job has waited."""

    def __init__(self, workload: ClusterWorkload) -> None:
        super().__init__()
        self._arrival = [arriving.arrival_s for arriving in workload.jobs]
        #: Up to when priorities are to be brought as soon as anybody asks for them; None: they are.
        self._until: float | None = None

    def __iter__(self) -> Iterator[Demand]:
        if self._until is not None:
            now, self._until = self._until, None
            renewed = [self._as_of(now, demand) for demand in self.unsorted]
            self.unsorted = sorted(renewed, key=turn_of_job)
        return super().__iter__()

    def add(self, demand: Demand) -> None:
        """Let a job wait; its priority is that of its arrival until the next refresh."""
        super().add(self._as_of(self._arrival[demand.index], demand))

    def refresh(self, now: float) -> None:
        """Bring priorities up to a time."""
        self._until = now

    def _as_of(self, now: float, demand: Demand) -> Demand:
        priority = self.priority(demand, now - self._arrival[demand.index])
        is_same = priority == demand.job.priority
        return demand if is_same else copied(demand, job=copied(demand.job, priority=priority))

    def priority(self, demand: Demand, waited_s: float) -> int:
        """Return the priority of a job that has waited for so long."""
        raise NotImplementedError


class ResponseQueue(AgingQueue):
    """Priorities that are what a second less of waiting is worth: objective ``response``.

    A job is taken to run for the share of its limit for which its user's last jobs ran (Tsafrir,
    Etsion and Feitelson, "Backfilling using system-generated predictions", 2007, use the last two).
    Only the order follows from that: promises and reservations go by limits.
    """

    def __init__(self, workload: ClusterWorkload) -> None:
        super().__init__(workload)
        self._known = RunTimes()

    def ended(self, holding: Holding, now: float) -> None:
        """Remember what share of its limit a job ran for."""
        limit = holding.demand.job.limit_on_s(len(holding.allocation.nodes))
        if limit is not None:
            self._known.remember(holding.demand.job.user, (now - holding.start_s) / limit)

    def priority(self, demand: Demand, waited_s: float) -> int:
        """Return the job's worth."""
        return worth_of(demand.job, waited_s, self._known.mean_share(demand.job.user))


class MultifactorQueue(AgingQueue):
    """Priorities that grow with size and age: 1000·min(age / 1 day, 1) + 1000·cores / all cores.

    They are counted in millionths, rounded down: exact integers, as the auctions compare them.
    """

    def __init__(self, workload: ClusterWorkload) -> None:
        super().__init__(workload)
        self._cores = sum(node.total.cores for node in workload.nodes)

    def priority(self, demand: Demand, waited_s: float) -> int:
        """Return the multifactor priority."""
        age = min(waited_s / DAY_S, 1.0)
        size = demand.job.request.fewest_cores / self._cores
        return 1 + int(_STEPS * (_AGE * age + _SIZE * size))


def turn_of_job(demand: Demand) -> tuple[Fraction | int, int]:
    """Return what sorts jobs as a queue does: highest priority first, ties by number."""
    return (-demand.job.priority, demand.index)
