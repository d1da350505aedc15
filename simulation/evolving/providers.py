"""Where the cores of a dynamic request come from: the extended iteration, and the paper's rivals.

The machine's cores stand here too, by node: no core is given twice.

``RequestAuction`` takes requests as bids: one program trades a dynamic request against queued jobs
(auction/decide.py). A request bids on nodes near its job's own, above every queued job, as the
extended iteration serves requests first; limits on delays are licences of the engine
(negotiation/evolving/fairness.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from ...auction.decide import decide
from ...auction.options import StepOptions
from ...auction.state import Hold, Holds, StepState
from ...bidgen.families.registry import columns_of
from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import AwardError, OptionError
from ...cluster.jobs import Job, Request
from ...cluster.nodes import License, Node, Resources
from ...cluster.promises import PLAN
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import Capacity
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.snapshot import Snapshot
from ...negotiation.evolving.fairness import Fairness, at_start
from ...negotiation.evolving.iteration import (
    Board,
    CountBoard,
    CountGrant,
    CountJob,
    CountRequest,
    CountRunning,
    Held,
    RequestOutcome,
    budgets_of,
    serve,
    started,
)
from ...topology.tree import topology_of
from ..workloads.evolving import EvolvingJob, EvolvingWorkload
from .evolving_options import STRATEGY, EvolvingOptions


class NodeCores:
    """Free cores on each node."""

    def __init__(self, nodes: int, cores_per_node: int) -> None:
        self.free = [cores_per_node] * nodes
        self._most = cores_per_node

    def take(self, cores: int, near: Iterable[int] = (), held: Held | None = None) -> Held:
        """Take cores: these, or those nearest to some nodes, else the first free; return where."""
        held = self._nearest(cores, tuple(near)) if held is None else held
        for node, count in held.items():
            self.free[node] -= count
            if self.free[node] < 0:
                raise AwardError(f"{-self.free[node]} cores of node {node} are given twice")
        return held

    def _nearest(self, cores: int, own: Sequence[int]) -> Held:
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
        return held

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


#: Requests that a provider grants, in order; jobs that start then, with cores where it chose them.
Grants = list[RequestOutcome[CountRequest, CountGrant]]
Starts = list[tuple[CountJob, Held | None]]


class Iteration:
    """Algorithm 2: requests from idle cores, as far as they are fair, then the queue.

    The rivals are kinds of it: they decide otherwise which jobs start and which requests are met.

    Args:
        workload: whose machine it is.
        options: the depths of reservations, what is fair, and what a rival reads.

    Attributes:
        queues_requests: a request waits in the queue as a job of its own (Slurm).
        keeps_requests: by default a request that was not granted stands until its job's last ask.
        accounts: of delays so far.
    """

    queues_requests = False
    keeps_requests = False

    def __init__(self, workload: EvolvingWorkload, options: EvolvingOptions) -> None:
        self._cores, self._depths = workload.cores, options.depths(options.serve_by)
        self._fairness = options.limits or Fairness()
        self.accounts = at_start(self._fairness, 0.0)

    @property
    def accounts_end_s(self) -> float:
        """When the interval of the accounts ends."""
        return self.accounts.since_s + self._fairness.interval_s

    def cores_of(self, job: EvolvingJob) -> int:
        """Return the cores that it asks for."""
        return job.cores

    def step(self, view: ProviderView, *, starts: bool) -> tuple[Grants, Starts]:
        """Serve, then start."""
        grants, board = self._granted(view)
        return grants, [(job, None) for job in started(board, view.queue, self._depths)[0]] if starts else []

    def _granted(self, view: ProviderView) -> tuple[Grants, Board[CountJob, CountRequest, CountGrant]]:
        """Return the requests that are granted, and the machine as the queue finds it then."""
        board = CountBoard(self._cores, view.now_s, view.running)
        served = serve(board, view.requests, view.queue, self._depths, self._fairness, self.accounts)
        self.accounts = served.accounts
        return [answer for answer in served.answers if answer.grant is not None], served.board


class Reserved(Iteration):
    """A partition kept for dynamic requests: static jobs never use it, requests use nothing else.

    Jobs of more cores than are left take all that are left.
    """

    def __init__(self, workload: EvolvingWorkload, options: EvolvingOptions) -> None:
        super().__init__(workload, options)
        self._partition = options.kept_cores or 0
        if not 0 < self._partition < workload.cores:
            raise OptionError(f"--dynamic-partition {self._partition} is not from 1 to {workload.cores - 1}")
        self._cores = workload.cores - self._partition

    def cores_of(self, job: EvolvingJob) -> int:
        """Return its cores, at most those outside the partition."""
        return min(job.cores, self._cores)

    def _granted(self, view: ProviderView) -> tuple[Grants, CountBoard]:
        """Grant from the partition; the queue has the rest."""
        grants: Grants = []
        free = self._partition - sum(job.cores - view.static[job.id] for job in view.running)
        for request in view.requests:
            if request.cores <= free:
                free -= request.cores
                grants.append(RequestOutcome(request=request, grant=CountGrant()))
        static = [replace(job, cores=view.static[job.id]) for job in view.running]
        return grants, CountBoard(self._cores, view.now_s, static)


class Preallocated(Iteration):
    """Guaranteed preallocation (CooRMv2): from its start a job holds all that it may ask for."""

    def cores_of(self, job: EvolvingJob) -> int:
        """Return its cores and those that it may ask for."""
        return min(job.cores + job.more_cores, self._cores)

    def _granted(self, view: ProviderView) -> tuple[Grants, CountBoard]:
        """Grant everything: it is held already."""
        grants: Grants = [RequestOutcome(request=one, grant=CountGrant(held={})) for one in view.requests]
        return grants, CountBoard(self._cores, view.now_s, view.running)


class Merged(Iteration):
    """Slurm's way: a request queues as a job behind all others; at its start its job absorbs it."""

    queues_requests = True


#: Jobs of the queue that are looked at, bids of each (cores are all alike), a pass's search steps.
_WINDOW, _BIDS, _SEARCH_STEPS = 200, 3, 2
#: Priority of the first queued job; each later one has one less, requests have more.
_FIRST = 2**32
#: A request bids on the nearest nodes that have this many times its cores free.
_ROOM = 2


class RequestAuction(Iteration):
    """One auction a pass over requests and queue; a request bids until its job's last ask."""

    keeps_requests = True

    def __init__(self, workload: EvolvingWorkload, options: EvolvingOptions) -> None:
        super().__init__(workload, options)
        each = Resources(cores=workload.cores_per_node)
        self._snapshot = Snapshot(
            nodes=tuple(Node(name=f"n{place}", total=each, free=each) for place in range(workload.nodes))
        )
        self._topology = topology_of(self._snapshot)
        # At the last auction that started nobody: the accounts' beginning, free cores, who could start.
        self._in_vain: tuple[float, tuple[int, ...], set[str]] | None = None
        chosen = options.strategy or STRATEGY
        self._options = StepOptions(
            window=_WINDOW,
            max_bids_per_job=_BIDS,
            promise=PLAN,
            reserve=self._depths.reservation,
            strategy=chosen,
            work_limit=None if chosen == "greedy" else _SEARCH_STEPS,
            on_timeout=None if chosen == "greedy" else "incumbent",
        )

    def step(self, view: ProviderView, *, starts: bool) -> tuple[Grants, Starts]:
        """Let requests and queue bid, measure what was awarded, and keep what is fair."""
        self.accounts = self.accounts.rolled(self._fairness, view.now_s)
        # The queue up to the last job that drains; all of it where none waits.
        draining = [place for place, job in enumerate(view.queue) if job.drains]
        bidding = view.queue[: draining[-1] + 1 if draining else None] if starts else ()
        room = sum(view.free)
        fitting = {job.id for job in bidding if job.cores <= room}
        fitting |= {_name(request) for request in view.requests if request.cores <= room}
        seen = self.accounts.since_s, tuple(view.free), fitting
        if not (view.requests or bidding) or seen == self._in_vain:
            # Since the last auction that started nobody, nothing ended, nobody came that fits.
            return [], []
        board = CountBoard(self._cores, view.now_s, view.running)
        asked, is_fair = list(view.requests), False
        while not is_fair:
            awarded = self._awarded(view, asked, bidding)
            won = [request for request in asked if _name(request) in awarded]
            served = serve(board, won, view.queue, self._depths, self._fairness, self.accounts)
            fair = [answer for answer in served.answers if answer.grant is not None]
            # Cores of a request that is unfair beside others are the queue's.
            asked, is_fair = [answer.request for answer in fair], len(fair) == len(won)
        self.accounts = served.accounts
        self._in_vain = None if awarded else seen
        grants = [replace(one, grant=CountGrant(held=awarded[_name(one.request)])) for one in fair]
        return grants, [(job, awarded[job.id]) for job in bidding if job.id in awarded]

    def _awarded(
        self, view: ProviderView, requests: Sequence[CountRequest], jobs: Sequence[CountJob]
    ) -> dict[str, Held]:
        """Return who wins, with its cores by node."""
        sizes = [one.cores for one in requests] + [one.cores for one in jobs]
        if sum(view.free) < min(sizes, default=LARGEST_COUNT):
            return {}
        board = CountBoard(self._cores, view.now_s, view.running)
        args = (view.queue, self._fairness, self.accounts, self._depths.delay)
        budgets = budgets_of(board, requests, *args, lambda request: request.job)
        snapshot = replace(
            self._snapshot,
            licenses={name: License(total=count, free=count) for name, count in budgets.left.items()},
        )
        columns = columns_of(snapshot)
        columns.free.cores[:] = view.free
        columns.is_empty[:] = columns.free.cores == columns.total.cores
        reader = DemandReader(snapshot, columns)
        demands: list[Demand] = []
        asked = [
            _job_of(request, view, budgets.costs.get(request.job, {}), _FIRST + len(requests) - place)
            for place, request in enumerate(requests)
        ]
        asked += [
            Job(
                id=job.id,
                priority=_FIRST - place,
                request=Request(cores=job.cores),
                time_limit_s=max(1, ceil(job.walltime_s)),
                user=job.owner.user,
            )
            for place, job in enumerate(jobs)
        ]
        for place, job in enumerate(asked):
            found = reader.read(job, len(demands))
            if isinstance(found, Demand):
                demands.append(replace(found, reserves=place >= len(requests)))
        state = StepState(columns=columns, topology=self._topology, now=view.now_s, holds=Holds(_holds(view)))
        decision = decide(state, demands, self._options, all_bid_up_to=0)
        return {
            start.demand.job.id: dict(
                zip(start.allocation.nodes.tolist(), start.allocation.held.cores.tolist(), strict=True)
            )
            for start in decision.starts
        }


def _name(request: CountRequest) -> str:
    return f"{request.job}+{request.cores}"


def _job_of(request: CountRequest, view: ProviderView, costs: dict[str, int], priority: int) -> Job:
    """Return a request as a job on nodes near its own.

    It is short: whether it may delay reservations is for the limits to say, not for the
    reservations.
    """
    own = list(view.held[request.job])
    order = sorted(range(len(view.free)), key=lambda node: min(abs(node - one) for one in own))
    room, near = 0, 0
    while near < len(order) and room < _ROOM * request.cores:
        room += view.free[order[near]]
        near += 1
    return Job(
        id=_name(request),
        priority=priority,
        request=Request(
            cores=request.cores,
            excluded_nodes=frozenset(f"n{node}" for node in order[near:]),
            licenses={name: cost for name, cost in costs.items() if cost > 0},
        ),
        time_limit_s=1,
        user=request.owner.user,
    )


def _holds(view: ProviderView) -> Iterator[Hold]:
    for job in view.running:
        held = sorted(view.held[job.id].items())
        cores = np.array([count for _, count in held], np.int64)
        capacity = Capacity(cores=cores, memory=np.zeros(len(held), np.int64), gres={})
        nodes = np.array([node for node, _ in held], np.int64)
        yield Hold(end=job.end_s, allocation=Allocation(nodes=nodes, held=capacity))
