"""Where the cores of a dynamic request come from: the extended iteration, and the paper's rivals.

The machine's cores stand here too, by node: no core is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...cluster.errors import AwardError, OptionError
from ...negotiation.evolving.count_board import CountBoard, CountJob, CountRequest, CountRunning
from ...negotiation.evolving.fairness import Accounts, Delay, Fairness
from ...negotiation.evolving.iteration import Depths, serve, started
from ..workloads.evolving import EvolvingJob, EvolvingWorkload

#: Cores by node.
Held = dict[int, int]


class NodeCores:
    """Free cores on each node."""

    def __init__(self, nodes: int, cores_per_node: int) -> None:
        self.free = [cores_per_node] * nodes
        self._most = cores_per_node

    def take(self, cores: int, near: Iterable[int] = ()) -> Held:
        """Take cores and return where: on the nodes next to some, else on the first that have them."""
        own = tuple(near)
        order = sorted(
            range(len(self.free)), key=lambda node: min((abs(node - one) for one in own), default=node)
        )
        held: Held = {}
        for node in order:
            count = min(cores, self.free[node])
            if count:
                held[node] = count
                cores -= count
        if cores:
            raise AwardError(f"{cores} cores are given that no job holds")
        self.hold(held)
        return held

    def hold(self, held: Mapping[int, int]) -> None:
        """Take these cores."""
        for node, count in held.items():
            self.free[node] -= count
            if self.free[node] < 0:
                raise AwardError(f"{-self.free[node]} cores of node {node} are given twice")

    def give(self, held: Mapping[int, int]) -> None:
        """Give these cores back."""
        for node, count in held.items():
            self.free[node] += count
            if self.free[node] > self._most:
                raise AwardError(f"node {node} is given back more cores than it has")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderView:
    """What a provider sees.

    Attributes:
        now_s: the clock.
        queue: jobs that wait, first to be started first.
        running: what runs, as its walltime has it.
        requests: of running jobs, by time.
        free: cores on each node.
        held: what each running job holds.
        static: how many cores each of them had at its start.
    """

    now_s: float
    queue: Sequence[CountJob]
    running: Sequence[CountRunning]
    requests: Sequence[CountRequest]
    free: Sequence[int]
    held: dict[str, Held]
    static: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A request that is granted.

    Attributes:
        request: it.
        held: its cores by node, where the provider chose them.
        preempted: jobs that stop for it and wait again.
        shrunk: number of cores that each of these jobs gives up for it.
        delays: of queued jobs.
    """

    request: CountRequest
    held: Held | None = None
    preempted: tuple[str, ...] = ()
    shrunk: tuple[tuple[str, int], ...] = ()
    delays: tuple[Delay, ...] = ()


@dataclass(slots=True, kw_only=True)
class ProviderDecision:
    """What a provider decides: requests that are granted, in order, then jobs that start.

    Jobs come with their cores where the provider chose them.
    """

    starts: list[tuple[CountJob, Held | None]] = field(default_factory=list)
    grants: list[Granted] = field(default_factory=list)


class Iteration:
    """Algorithm 2: requests from idle cores, as far as they are fair, then the queue.

    The rivals are kinds of it: they decide otherwise which jobs start and which requests are granted.

    Args:
        workload: whose machine it is.
        depths: of reservations.
        fairness: the configuration.
        accounts: of delays, at the beginning.

    Attributes:
        queues_requests: a request waits in the queue as a job of its own (Slurm).
        keeps_requests: by default a request that was not granted stands until its job's last ask.
    """

    queues_requests = False
    keeps_requests = False

    def __init__(
        self, workload: EvolvingWorkload, depths: Depths, fairness: Fairness, accounts: Accounts
    ) -> None:
        self._cores, self._depths, self._fairness = workload.cores, depths, fairness
        self.accounts = accounts

    def cores_of(self, job: EvolvingJob) -> int:
        """Return the cores that it asks for."""
        return job.cores

    def step(self, view: ProviderView, *, starts: bool) -> ProviderDecision:
        """Serve, then start."""
        board = CountBoard(self._cores, view.now_s, view.running)
        served = serve(board, view.requests, view.queue, self._depths, self._fairness, self.accounts)
        self.accounts = served.accounts
        found = ProviderDecision()
        for answer in served.answers:
            grant = answer.grant
            if grant is not None:
                granted = Granted(
                    request=answer.request,
                    preempted=grant.preempted,
                    shrunk=grant.shrunk,
                    delays=answer.delays,
                )
                found.grants.append(granted)
        if starts:
            found.starts = [(job, None) for job in started(served.board, view.queue, self._depths)[0]]
        return found


class Reserved(Iteration):
    """A partition kept for dynamic requests: static jobs never hold its cores, requests have no others.

    Jobs of more cores than are left take all that are left.
    """

    def __init__(
        self,
        workload: EvolvingWorkload,
        depths: Depths,
        fairness: Fairness,
        accounts: Accounts,
        *,
        partition: int,
    ) -> None:
        super().__init__(workload, depths, fairness, accounts)
        if not 0 < partition < workload.cores:
            raise OptionError(f"--dynamic-partition {partition} is not from 1 to {workload.cores - 1}")
        self._partition, self._cores = partition, workload.cores - partition

    def cores_of(self, job: EvolvingJob) -> int:
        """Return its cores, at most those outside the partition."""
        return min(job.cores, self._cores)

    def step(self, view: ProviderView, *, starts: bool) -> ProviderDecision:
        """Grant from the partition; start on the rest."""
        found = ProviderDecision()
        free = self._partition - sum(job.cores - view.static[job.id] for job in view.running)
        for request in view.requests:
            if request.cores <= free:
                free -= request.cores
                found.grants.append(Granted(request=request))
        if starts:
            static = [replace(job, cores=view.static[job.id]) for job in view.running]
            board = CountBoard(self._cores, view.now_s, static)
            found.starts = [(job, None) for job in started(board, view.queue, self._depths)[0]]
        return found


class Preallocated(Iteration):
    """Guaranteed preallocation (CooRMv2): an evolving job holds all it may ask for from its start on."""

    def cores_of(self, job: EvolvingJob) -> int:
        """Return its cores and those that it may ask for."""
        return min(job.cores + job.more_cores, self._cores)

    def step(self, view: ProviderView, *, starts: bool) -> ProviderDecision:
        """Grant everything: it is held already."""
        found = ProviderDecision(grants=[Granted(request=request, held={}) for request in view.requests])
        if starts:
            board = CountBoard(self._cores, view.now_s, view.running)
            found.starts = [(job, None) for job in started(board, view.queue, self._depths)[0]]
        return found


class Merged(Iteration):
    """Slurm's way: a request is a job of its own behind all others, merged into the first when it starts."""

    queues_requests = True
