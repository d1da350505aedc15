"""A workload, the input of a simulation of nodes: a machine, jobs that will arrive, outages."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import inf

from .checks import LARGEST_COUNT, named
from .errors import InputError
from .jobs import Job
from .limits import Limit
from .network import NETWORK, Network
from .nodes import License, Node, Partition, Switch
from .snapshot import Snapshot
from .text import plural
from .value_types import (
    Embedded,
    Entries,
    EntryMap,
    HostList,
    Many,
    NameList,
    NameTuple,
    Number,
    OptionalMany,
    Text,
    assign,
    coerce_members,
    member,
    value_class,
)

#: Slurm's basic priority of the first job submitted.
FIRST_PRIORITY = 4_294_901_760
#: Seconds; a shorter job would end in the time stamp it starts in.
SHORTEST_RUN_S = 1e-3
#: Members that a workload has otherwise than a snapshot.
_OWN = ("name", "jobs", "notes")
#: Bounded slowdown counts shorter run times as this many seconds.
BOUND_S = 10.0
_TIME = Number(f"a time from 0 to {LARGEST_COUNT} s", least=0, most=LARGEST_COUNT, is_short=True)
_POSITIVE = Number(f"above 0 and at most {LARGEST_COUNT}", above=0, most=LARGEST_COUNT)


def basic_priority(rank: int) -> int:
    """Return Slurm's basic priority (priority/basic) of the job submitted after ``rank`` others."""
    return FIRST_PRIORITY - rank


@value_class
class ArrivingJob:
    """A job with its arrival and its true run time, which no scheduler sees.

    Attributes:
        job: as the queue holds it once it has come; ``submit_time`` is None.
        arrival_s: seconds after the workload's beginning.
        run_time_s: at its nominal size and the fewest gres it accepts, from SHORTEST_RUN_S on. A
            job is killed at its time limit.
        gres_run_time_factor: N of Soner's equation (7.1), drawn once a job: with more gres than
            the fewest, it runs ``run_time_s · factor · fewest / allocated`` seconds, never above
            ``run_time_s`` nor below SHORTEST_RUN_S; None when gres do not change its run time.
        not_before_s, deadline_s: start time, deadline (Nagendra, 4.3), seconds from the beginning.
        budget_core_h: the core-hours that it may use at most. Negotiations read these three.
        started_s: when the site's own scheduler started it, seconds after the beginning, not before
            ``arrival_s``; None: not known. Nothing but ``gain`` reads it.
        name: jobs of one name are runs of the same, which negotiations learn from; empty: none are.
        credits_per_core_h: what its user pays, which preemption compares (Soner, section 9.1).

    Examples:
        >>> one = Job(id="1", priority=2, request=Request(cores=4), time_limit_s=60)
        >>> ArrivingJob(job=one, arrival_s=0, run_time_s=30).run_time_with(1, 1)
        30
    """

    job: Job = member(Embedded(Job, flat=True))
    arrival_s: float = member(_TIME)
    run_time_s: float = member(
        Number(
            f"a time from {SHORTEST_RUN_S} to {LARGEST_COUNT} s",
            least=SHORTEST_RUN_S,
            most=LARGEST_COUNT,
            is_short=True,
        )
    )
    gres_run_time_factor: float | None = member(_POSITIVE, default=None)
    not_before_s: float | None = member(_POSITIVE, default=None)
    deadline_s: float | None = member(_POSITIVE, default=None)
    budget_core_h: float | None = member(_POSITIVE, default=None)
    credits_per_core_h: float = member(
        Number(f"from 0 to {LARGEST_COUNT}", least=0, most=LARGEST_COUNT, is_short=True), default=1.0
    )
    started_s: float | None = member(
        Number(f"from its arrival to {LARGEST_COUNT}", least=0, most=LARGEST_COUNT, is_short=True),
        default=None,
    )
    name: str = member(Text(), default="")

    def __post_init__(self) -> None:
        coerce_members(self)
        self._check_times()
        if self.job.submit_time is not None:
            raise InputError("given, but arrival_s says when the job comes", path="submit_time")
        if self.job.promised_start is not None:
            raise InputError("given, but promises are made as jobs come", path="promised_start")

    def _check_times(self) -> None:
        """Refuse a start before the arrival, and a deadline that no start meets."""
        started = self.started_s
        if started is not None and started < self.arrival_s:
            message = f"{started:g} is not from {self.arrival_s:g}, its arrival, to {LARGEST_COUNT}"
            raise InputError(message, path="started_s")
        first = max(self.arrival_s, self.not_before_s or 0.0)
        if self.deadline_s is not None and self.deadline_s <= first:
            raise InputError(
                f"{self.deadline_s:g} is not after {first:g}, its first start", path="deadline_s"
            )

    def run_time_with(self, fewest: int, allocated: int) -> float:
        """Return the run time in seconds with this many gres allocated (Soner, 7.1).

        The equation says nothing of a job that may have no gres: they do not change its run time.
        """
        if self.gres_run_time_factor is None or allocated <= fewest or not fewest:
            return self.run_time_s
        faster = self.run_time_s * self.gres_run_time_factor * fewest / allocated
        return min(self.run_time_s, max(faster, SHORTEST_RUN_S))


@value_class
class ClusterWorkload:
    """An empty cluster and the jobs that arrive at it, in order of arrival.

    Attributes:
        name: for people: ``table-8.6/3``.
        nodes, switches, network, partitions, licenses, limits: as in a snapshot; nothing runs yet.
        jobs: by rising ``arrival_s``; ids are unique.
        notes: how it was made: generator, parameters, seed.

    Raises:
        InputError: jobs are out of order, something is not free, or what a snapshot would refuse.

    Examples:
        >>> from aucsched import ArrivingJob, Job, Node, Request
        >>> one = Job(id="1", priority=2, request=Request(cores=4), time_limit_s=60)
        >>> jobs = [ArrivingJob(job=one, arrival_s=0, run_time_s=30)]
        >>> ClusterWorkload(name="tiny", nodes=[Node(name="n1", cores=8)], jobs=jobs).name
        'tiny'
    """

    name: str = member(Text(), default="")
    nodes: Many[Node] = member(Entries(Node))
    jobs: Many[ArrivingJob] = member(Entries(ArrivingJob), default=())
    switches: OptionalMany[Switch] = member(Entries(Switch), default=None)
    network: Network | None = member(NETWORK, default=None)
    partitions: Many[Partition] = member(Entries(Partition), default=())
    licenses: Mapping[str, License] = member(EntryMap(License), default_factory=dict)
    limits: Many[Limit] = member(Entries(Limit), default=())
    notes: NameTuple = member(NameList(), default=())

    def __repr__(self) -> str:
        size = f"{plural(len(self.nodes), 'node')}, {plural(len(self.jobs), 'job')}"
        return f"<ClusterWorkload {self.name}: {size}>"

    def __post_init__(self) -> None:
        coerce_members(self)
        before = 0.0
        for index, arriving in enumerate(self.jobs):
            if arriving.arrival_s < before:
                message = f"{arriving.arrival_s:g} is before {before:g}: list jobs in order of arrival"
                raise InputError(message, path=f"jobs[{index}].arrival_s")
            before = arriving.arrival_s
        for index, node in enumerate(self.nodes):
            if node.free != node.total:
                raise InputError("a workload begins with everything free", path=f"nodes[{index}]")
        for name, entry in self.licenses.items():
            if entry.free != entry.total:
                raise InputError("a workload begins with everything free", path=f"licenses.{name}")
        settled = self.snapshot()
        assign(self, nodes=settled.nodes, switches=settled.switches)

    def snapshot(self) -> Snapshot:
        """Return the empty cluster with every job in its queue; checks names and counts."""
        parts = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _OWN}
        return Snapshot(jobs=tuple(arriving.job for arriving in self.jobs), **parts)


@value_class
class Outage:
    """Some nodes go down together, and come back together.

    Attributes:
        nodes: names, each once.
        down_s: seconds after the workload's beginning.
        up_s: the same, after ``down_s``; None: they never come back.
    """

    nodes: NameTuple = member(HostList())
    down_s: float = member(Number(f"a time from 0 to {LARGEST_COUNT} s", least=0, most=LARGEST_COUNT))
    up_s: float | None = member(Number("a time"), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.nodes:
            raise InputError("no node is named", path="nodes")
        for name in self.nodes:
            named(name, "nodes")
        if len(set(self.nodes)) < len(self.nodes):
            raise InputError("a node is named twice", path="nodes")
        if self.up_s is not None and not self.down_s < self.up_s <= LARGEST_COUNT:
            message = f"{self.up_s:g} is not a time after down_s {self.down_s:g}, up to {LARGEST_COUNT} s"
            raise InputError(message, path="up_s")


def outages_by_node(
    outages: Iterable[Outage], takes_jobs: Mapping[str, bool]
) -> dict[str, list[tuple[float, float]]]:
    """Return when named nodes are down, ascending: (down, up) in seconds, up infinite: for good.

    ``takes_jobs``: the machine's nodes by name, and whether jobs could start on them at all.

    Raises:
        InputError: a node is not the machine's, takes no jobs anyway, or is down twice at once.
    """
    found: dict[str, list[tuple[float, float, int]]] = {}
    for index, outage in enumerate(outages):
        for name in outage.nodes:
            if not takes_jobs.get(name, False):
                why = "takes no jobs anyway" if name in takes_jobs else "is not a node of the workload"
                raise InputError(f"{name!r} {why}", path=f"failures[{index}].nodes")
            up = inf if outage.up_s is None else outage.up_s
            found.setdefault(name, []).append((outage.down_s, up, index))
    spans: dict[str, list[tuple[float, float]]] = {}
    for name, times in found.items():
        mine = spans.setdefault(name, [])
        for down, up, index in sorted(times):
            if mine and down < mine[-1][1]:
                raise InputError(f"{name!r} is down already at {down:g} s", path=f"failures[{index}].down_s")
            # Outages that touch are one: no job may start in between.
            begin = mine.pop()[0] if mine and down == mine[-1][1] else down
            mine.append((begin, up))
    return spans
