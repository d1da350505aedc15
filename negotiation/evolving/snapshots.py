"""A board that is a snapshot: nodes, gres, memory, partitions and limits as a plan sees them.

A running job grows, shrinks, stops or starts: its nodes are free or held, never both.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import TypeAlias

from ...auction.planning.plan import Planner
from ...bidgen.families.registry import columns_of
from ...bidgen.generate import place_alone
from ...cluster.jobs import Job, Request, RunningJob, Span
from ...cluster.limits import members_of
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.resources.allocation import Allocation, resources_of
from ...cluster.resources.demand import Demand, DemandReader
from ...cluster.snapshot import Snapshot
from ...topology.tree import topology_of
from .iteration import OVERDUE_S, WaitingJob
from .requests import GrowthRequest, RequestBatch

#: What a node is that jobs hold all of or nothing of, and what it becomes when they hold some.
_BUSY = (NodeState.ALLOCATED, NodeState.COMPLETING)


def held_more(snapshot: Snapshot, job: str, more: Mapping[str, Resources]) -> Snapshot:
    """Return the snapshot with a running job that holds more."""

    def grown(one: RunningJob) -> RunningJob:
        sums = {name: one.nodes[name].plus(use) if name in one.nodes else use for name, use in more.items()}
        return replace(one, nodes={**one.nodes, **sums})

    running = tuple(grown(one) if one.id == job else one for one in snapshot.running)
    return replace(snapshot, running=running, nodes=_taken(snapshot.nodes, more))


def held_less(snapshot: Snapshot, job: str, less: Mapping[str, Resources]) -> Snapshot:
    """Return the snapshot after a running job gave something back; one without any has ended."""
    running = []
    for one in snapshot.running:
        if one.id != job:
            running.append(one)
            continue
        left = {name: use.less(less.get(name)) for name, use in one.nodes.items()}
        kept = {name: use for name, use in left.items() if use.cores or name not in less}
        if kept:
            running.append(replace(one, nodes=kept))
    nodes = tuple(_with_back(node, less[node.name]) if node.name in less else node for node in snapshot.nodes)
    return replace(snapshot, running=tuple(running), nodes=nodes)


def without(snapshot: Snapshot, *jobs: str) -> Snapshot:
    """Return the snapshot without these running jobs."""
    for job in (one for one in snapshot.running if one.id in jobs):
        snapshot = held_less(snapshot, job.id, job.nodes)
    return snapshot


def with_started(snapshot: Snapshot, started: Iterable[RunningJob]) -> Snapshot:
    """Return the snapshot with jobs of its queue running."""
    for job in started:
        jobs = tuple(one for one in snapshot.jobs if one.id != job.id)
        nodes = _taken(snapshot.nodes, job.nodes)
        snapshot = replace(snapshot, jobs=jobs, running=(*snapshot.running, job), nodes=nodes)
    return snapshot


def parts_of(job: RunningJob, cores: Mapping[str, int]) -> dict[str, Resources]:
    """Return what a job gives back with some cores: on a node where it keeps none, all else too."""
    held = job.nodes
    return {
        name: held[name] if count >= held[name].cores else Resources(cores=count)
        for name, count in cores.items()
    }


def _taken(nodes: tuple[Node, ...], uses: Mapping[str, Resources]) -> tuple[Node, ...]:
    return tuple(
        replace(node, free=node.free.less(uses[node.name])) if node.name in uses else node for node in nodes
    )


def _with_back(node: Node, use: Resources) -> Node:
    known = Resources(
        cores=use.cores,
        memory_mib=None if node.free.memory_mib is None else use.memory_mib or 0,
        gres={name: count for name, count in use.gres.items() if name in node.total.gres},
    )
    state = NodeState.MIXED if node.state in _BUSY else node.state
    return replace(node, free=node.free.plus(known), state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedDemand(WaitingJob):
    """A job of the snapshot's queue; none keeps others from starting."""

    demand: Demand


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicRequest:
    """A running job that asks."""

    ask: GrowthRequest
    job: RunningJob

    @property
    def owner(self) -> RunningJob:
        """The job itself says whose it is."""
        return self.job


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGrant:
    """What a request is given by node, which jobs stop for it, and which nodes others give up."""

    nodes: Mapping[str, Resources]
    preempted: tuple[str, ...] = ()
    shrunk: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: A grant, and the board with it.
_Granted: TypeAlias = tuple[NodeGrant, "SnapshotBoard"]


class SnapshotBoard:
    """A snapshot and what is planned on it (see iteration.Board)."""

    def __init__(self, snapshot: Snapshot, requests: RequestBatch) -> None:
        self.snapshot, self._requests = snapshot, requests
        self.allocations: dict[str, Allocation] = {}
        self._planned: list[QueuedDemand] = []
        self._made: Planner | None = None

    @property
    def now_s(self) -> float:
        """The snapshot's time."""
        return self.snapshot.time or 0.0

    @property
    def _planner(self) -> Planner:
        if self._made is None:
            self._made = Planner(self.snapshot)
        return self._made

    def copy(self) -> "SnapshotBoard":
        """Return another one with the same plans."""
        other = SnapshotBoard(self.snapshot, self._requests)
        for job in self._planned:
            other.place(job, self.now_s)
        return other

    def place(self, job: QueuedDemand, since_s: float, *, only_now: bool = False) -> float:
        """Plan a job at its earliest start; in a snapshot jobs wait for resources only."""
        del since_s
        found = self._planner.place(job.demand, only_now=only_now)
        if found is None:
            return inf
        self._planned.append(job)
        self.allocations[job.id] = found[1]
        return found[0]

    def grants(self, request: DynamicRequest) -> "Iterator[_Granted]":
        """Yield the grant from idle nodes; else from preemptible or malleable jobs, or both."""
        job = self._running(request)
        if job is None:
            return
        request = replace(request, job=job)
        found = self._granted(request, self.snapshot, NodeGrant(nodes={}))
        if found is not None:
            yield found
            return
        for preempts, shrinks in ((True, False), (False, True), (True, True)):
            found = self._from_others(request, preempts=preempts, shrinks=shrinks)
            if found is not None:
                yield found

    def _running(self, request: DynamicRequest) -> RunningJob | None:
        """Return a request's job as it is now; None: a request before has stopped it."""
        return next((job for job in self.snapshot.running if job.id == request.job.id), None)

    def _from_others(self, request: DynamicRequest, *, preempts: bool, shrinks: bool) -> "_Granted | None":
        running = {job.id for job in self.snapshot.running}
        stopped = [name for name in self._requests.preemptible if preempts and name in running]
        if request.job.id in stopped:
            # It stops only jobs before it in that order, or two could stop each other for ever.
            stopped = stopped[: stopped.index(request.job.id)]
        if not shrinks:
            return self._fewest_stopped(request, stopped)
        snapshot = without(self.snapshot, *stopped)
        most = sum(len(job.nodes) for job in snapshot.running)
        for need in range(1, most + 1):
            taken, after = self._shrunk(snapshot, request.job.id, need)
            if sum(map(len, taken.values())) < need:
                return None
            grant = NodeGrant(nodes={}, preempted=tuple(stopped), shrunk=taken)
            found = self._granted(request, after, grant)
            if found is not None:
                return found
        return None

    def _fewest_stopped(self, request: DynamicRequest, stopped: list[str]) -> "_Granted | None":
        """Leave running whom the request does not need, those to be stopped last first."""
        found = self._without(request, stopped)
        for name in reversed(stopped) if found is not None else ():
            others = [one for one in stopped if one != name]
            fewer = self._without(request, others)
            if fewer is not None:
                stopped, found = others, fewer
        return found

    def _without(self, request: DynamicRequest, stopped: list[str]) -> "_Granted | None":
        after = without(self.snapshot, *stopped)
        return self._granted(request, after, NodeGrant(nodes={}, preempted=tuple(stopped)))

    def _shrunk(
        self, snapshot: Snapshot, waiting: str, need: int
    ) -> tuple[dict[str, tuple[str, ...]], Snapshot]:
        """Return which nodes malleable jobs give up so that ``need`` are gained.

        As DN-DBES shrinks jobs of one priority: in the snapshot's order, each its last nodes, down
        to its least.
        """
        place = {node.name: number for number, node in enumerate(snapshot.nodes)}
        least, taken = self._requests.least_nodes, dict[str, tuple[str, ...]]()
        for job in snapshot.running:
            spare = len(job.nodes) - least.get(job.id, len(job.nodes))
            give = min(need, spare) if job.id != waiting else 0
            if give > 0:
                taken[job.id] = tuple(sorted(job.nodes, key=place.__getitem__)[-give:])
                need -= give
        uses = {job.id: job.nodes for job in snapshot.running}
        for name, nodes in taken.items():
            snapshot = held_less(snapshot, name, {node: uses[name][node] for node in nodes})
        return taken, snapshot

    def _granted(self, request: DynamicRequest, snapshot: Snapshot, grant: NodeGrant) -> "_Granted | None":
        """Return the grant with nodes that are free in a snapshot, None where it does not fit."""
        nodes = _placed(request, snapshot)
        if nodes is None:
            return None
        after = held_more(snapshot, request.job.id, nodes)
        return replace(grant, nodes=nodes), SnapshotBoard(after, self._requests)

    def earliest(self, request: DynamicRequest) -> float:
        """Return when idle nodes could be there, until the job's end; inf: not before it."""
        end = inf if request.job.end_time is None else request.job.end_time
        for time in self._planner.moments if self._running(request) else ():
            if time >= end:
                return inf
            reader = DemandReader(self.snapshot, self._planner.columns)
            found = reader.read(job_of(request, self.snapshot, frozenset(), time), 0)
            if not isinstance(found, Demand):
                return inf
            if self._planner.fits_at(found, time, end - time):
                return time
        return inf


def _placed(request: DynamicRequest, snapshot: Snapshot) -> dict[str, Resources] | None:
    """Return free nodes for a request: the nearest to its job's own that hold it."""
    # A grant is no further job: it counts for the limits on everything else.
    kept = ({what: most for what, most in limit.most.items() if what != "jobs"} for limit in snapshot.limits)
    limits = zip(snapshot.limits, kept, strict=True)
    at = replace(snapshot, limits=tuple(replace(limit, most=most) for limit, most in limits if most))
    columns, topology = columns_of(at), topology_of(at)
    reader = DemandReader(at, columns)
    names = nearest_names(at.nodes, request.job)
    size = len(request.job.nodes)
    while True:
        excluded = frozenset(names[size:])
        demand = reader.read(job_of(request, at, excluded, at.time or 0.0), 0)
        if isinstance(demand, Demand):
            spot = place_alone(demand, columns, topology)
            if spot is not None:
                return resources_of(demand, spot, columns.names)
        if size >= len(names):
            return None
        size *= 2


def nearest_names(nodes: Iterable[Node], job: RunningJob) -> list[str]:
    """Return nodes by name, those next to a job's own first, in the order given."""
    names = [node.name for node in nodes]
    own = [place for place, name in enumerate(names) if name in job.nodes]
    order = sorted(range(len(names)), key=lambda node: min(abs(node - one) for one in own))
    return [names[node] for node in order]


def job_of(request: DynamicRequest, snapshot: Snapshot, excluded: frozenset[str], since: float) -> Job:
    """Return a request as a job that runs until its job's walltime ends."""
    ask, job = request.ask, request.job
    left = None if job.end_time is None else max(1, ceil(max(job.end_time - since, OVERDUE_S)))
    own = frozenset(job.nodes) if ask.nodes is not None else frozenset[str]()
    asked = Request(
        cores=ask.cores,
        nodes=None if ask.nodes is None else Span.exactly(ask.nodes),
        cores_per_node=ask.cores_per_node,
        excluded_nodes=own | excluded,
    )
    taken = {one.id for one in snapshot.jobs} | {one.id for one in snapshot.running}
    name = f"{job.id}+"
    while name in taken:
        name += "+"
    return Job(id=name, priority=1, request=asked, time_limit_s=left, **members_of(job))
