"""Jobs: a job's request, the pending job, and running jobs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

from .checks import at_least
from .errors import InputError, errors_below
from .limits import Owned, members_of
from .nodes import Resources
from .text import shown
from .value_types import (
    Anything,
    Boolean,
    Choice,
    Coerced,
    CountMap,
    Embedded,
    HostList,
    HostMap,
    HostSet,
    Integer,
    IntLike,
    IntLikeByName,
    JobPriority,
    Name,
    NameFrozenSet,
    NameList,
    NameSet,
    NameTuple,
    OptionalIntLike,
    SecondsByCount,
    Text,
    Timestamp,
    ValueType,
    as_int,
    assign,
    coerce_members,
    member,
    value_class,
)

_LOW, _HIGH = Integer(0), Integer(1)


@value_class
class Span:
    """An inclusive range of counts, ``[minimum, maximum]``; both equal when the request is exact.

    Examples:
        >>> Span(minimum=1, maximum=4).is_exact
        False
    """

    minimum: IntLike
    maximum: IntLike

    def __post_init__(self) -> None:
        assign(self, minimum=_LOW.coerced(self.minimum, "[0]"), maximum=_HIGH.coerced(self.maximum, "[1]"))
        if self.maximum < self.minimum:
            raise InputError(f"the range [{self.minimum}, {self.maximum}] is empty", path="")

    @classmethod
    def exactly(cls, count: int) -> "Span":
        """Return the range that holds ``count`` only."""
        return cls(minimum=count, maximum=count)

    @property
    def is_exact(self) -> bool:
        """Whether the range holds one count only."""
        return self.minimum == self.maximum


#: How a count is given: a number, a pair of the least and the most, or a Span.
Counts: TypeAlias = SupportsIndex | Sequence[int] | Span
_PAIR = 2


def as_span(value: Any, path: str, least: int = 0) -> Span:
    """Return a count, or a pair of the least and the most, as a Span from ``least`` on.

    Raises:
        InputError: it is neither, or the range is empty.

    Examples:
        >>> as_span(2, "nodes") == Span.exactly(2), as_span((1, 3), "nodes")
        (True, Span(minimum=1, maximum=3))
    """
    if isinstance(value, Span):
        at_least(value.minimum, least, path)
        return value
    if isinstance(value, (tuple, list)) and len(value) == _PAIR:
        at_least(as_int(value[0]), least, f"{path}[0]")
        with errors_below(path):
            return Span(minimum=value[0], maximum=value[1])
    number = as_int(value)
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"{shown(value)} is neither a count nor a pair of counts", path=path)
    at_least(number, 1, path)
    return Span.exactly(number)


@dataclass(frozen=True, slots=True)
class Range(ValueType):
    """A count or a range of counts, from ``least`` on."""

    least: int

    def coerced(self, value: Any, path: str) -> Any:
        """Return it as a Span."""
        return as_span(value, path, self.least)


#: How counts by name are given, and how they are kept.
SpansByName: TypeAlias = Coerced[Mapping[str, Span], Mapping[str, Counts]]


class JobType(StrEnum):
    """How a job states its size (Soner, section 4.1).

    Examples:
        >>> JobType.CORES.value
        'cores'
    """

    CORES = "cores"
    NODES_AND_CORES = "nodes and cores"
    NODES_AND_CORES_PER_NODE = "nodes and cores per node"


@value_class
class Request:
    """A job's request (Soner, table 8.2, with the further parts of a real queue).

    A count of nodes or gres is a number, a pair (least, most), or a Span.

    Attributes:
        cores: total number of cores (Slurm's tasks × cpus per task).
        nodes: how many nodes, exact or a range.
        cores_per_node: exact number on each node.
        min_cores_per_node: least number on each node.
        cores_per_task: cores of a task, all on one node.
        gres_per_node: counts on each node by gres name; ``gpu`` takes any type, one type per job.
        gres_total: counts over all nodes by gres name.
        memory_mib_per_node: memory on each node; or
        memory_mib_per_core: memory for each core.
        exclusive: empty nodes only; the award holds all their cores and gres.
        max_switches: largest number of leaf switches.
        segment: how many of its nodes at a time are placed by themselves on blocks or rings.
        spread_segments: no two segments in one base block.
        consolidate_segments: all segments in the least group of blocks that holds them.
        exclusive_topo: no other job in the base blocks of its nodes.
        contiguous: nodes consecutive in the snapshot's order.
        features: a node must have all of them.
        required_nodes: these nodes must be among the job's.
        excluded_nodes: none of these.
        licenses: cluster-wide counts by name.

    Raises:
        InputError: a value is not valid, or members contradict each other.

    Examples:
        >>> Request(cores=8, nodes=2, gres_per_node={"gpu": 1}).type
        <JobType.NODES_AND_CORES: 'nodes and cores'>
        >>> Request(nodes=(1, 4), cores_per_node=16).fewest_cores
        16
    """

    cores: OptionalIntLike = member(Integer(1), default=None)
    nodes: Coerced[Span | None, Counts | None] = member(Range(1), default=None)
    cores_per_node: OptionalIntLike = member(Integer(1), default=None)
    min_cores_per_node: IntLike = member(Integer(1), default=1)
    cores_per_task: IntLike = member(Integer(1), default=1)
    gres_per_node: SpansByName = member(CountMap(Range(0)), default_factory=dict)
    gres_total: SpansByName = member(CountMap(Range(0)), default_factory=dict)
    memory_mib_per_node: OptionalIntLike = member(Integer(0), default=None)
    memory_mib_per_core: OptionalIntLike = member(Integer(0), default=None)
    exclusive: bool = member(Boolean(), default=False)
    max_switches: OptionalIntLike = member(Integer(1), default=None)
    segment: OptionalIntLike = member(Integer(1), default=None)
    spread_segments: bool = member(Boolean(), default=False)
    consolidate_segments: bool = member(Boolean(), default=False)
    exclusive_topo: bool = member(Boolean(), default=False)
    contiguous: bool = member(Boolean(), default=False)
    features: NameFrozenSet = member(NameSet(plain=True), default=frozenset())
    required_nodes: NameTuple = member(HostList(), default=())
    excluded_nodes: NameFrozenSet = member(HostSet(), default=frozenset())
    licenses: IntLikeByName = member(CountMap(Integer(1)), default_factory=dict)

    def __post_init__(self) -> None:
        coerce_members(self)
        self._check_size()
        self._check_gres()
        self._check_tasks()
        self._check_segments()
        self._check_node_lists()

    def _check_size(self) -> None:
        if self.memory_mib_per_node is not None and self.memory_mib_per_core is not None:
            raise InputError("memory_mib_per_node is given too", path="memory_mib_per_core")
        if self.cores is None and (self.nodes is None or self.cores_per_node is None):
            raise InputError("the job needs cores, or nodes and cores_per_node", path="")
        if self.cores is not None and self.cores_per_node is not None:
            self._check_cores_against_nodes(self.cores, self.cores_per_node)
        elif self.cores is not None and self.nodes is not None and self.cores < self.nodes.minimum:
            raise InputError(f"{self.cores} is below the {self.nodes.minimum} nodes asked for", path="cores")

    def _check_cores_against_nodes(self, cores: int, cores_per_node: int) -> None:
        count, rest = divmod(cores, cores_per_node)
        if rest:
            raise InputError(f"{cores} is not a multiple of cores_per_node {cores_per_node}", path="cores")
        if self.nodes is not None and not self.nodes.minimum <= count <= self.nodes.maximum:
            raise InputError(f"{cores} is not nodes × cores_per_node {cores_per_node}", path="cores")

    def _check_gres(self) -> None:
        names = [*self.gres_per_node, *self.gres_total]
        if not names:
            return
        kinds = Counter(name.partition(":")[0] for name in names)
        times = Counter(names)
        for name in names:
            kind = name.partition(":")[0]
            if kinds[kind] > 1 and (kind in times or times[name] > 1):
                path = f"gres_total.{name}" if name in self.gres_total else f"gres_per_node.{name}"
                raise InputError(f"the gres {kind!r} is asked for twice", path=path)

    def _check_tasks(self) -> None:
        step = self.cores_per_task
        for name in ("cores", "cores_per_node") if step > 1 else ():
            value = getattr(self, name)
            if value is not None and value % step:
                raise InputError(f"{value} is not a multiple of cores_per_task {step}", path=name)
        if self.cores_per_node is not None and self.min_cores_per_node > self.cores_per_node:
            value = self.min_cores_per_node
            raise InputError(
                f"{value} is above cores_per_node {self.cores_per_node}", path="min_cores_per_node"
            )

    def _check_segments(self) -> None:
        for name in ("spread_segments", "consolidate_segments"):
            if getattr(self, name) and self.segment is None:
                raise InputError("segment is not given", path=name)
        if self.segment and self.segment < (count := self.fewest_nodes) and count % self.segment:
            raise InputError(f"{self.segment} does not divide the {count} nodes", path="segment")

    def _check_node_lists(self) -> None:
        for name in self.required_nodes:
            if name in self.excluded_nodes:
                raise InputError(f"{name!r} is excluded too", path="required_nodes")
        if self.nodes is not None and len(self.required_nodes) > self.nodes.maximum:
            count = len(self.required_nodes)
            raise InputError(f"{count} nodes are above nodes {self.nodes.maximum}", path="required_nodes")

    @property
    def type(self) -> JobType:
        """The job's type (section 4.1): 1 cores, 2 nodes and cores, 3 nodes and cores per node."""
        if self.cores_per_node is not None:
            return JobType.NODES_AND_CORES_PER_NODE
        return JobType.CORES if self.nodes is None else JobType.NODES_AND_CORES

    @property
    def fewest_cores(self) -> int:
        """The cores asked for, at the fewest nodes (R_j^cpu)."""
        if self.cores is not None:
            return self.cores
        return (self.nodes.minimum if self.nodes else 1) * (self.cores_per_node or 1)

    @property
    def fewest_nodes(self) -> int:
        """The fewest nodes asked for, 1 for job type 1."""
        span = self.node_counts
        return 1 if span is None else span.minimum

    @property
    def fewest_gres(self) -> dict[str, int]:
        """The fewest of each gres asked for, over all nodes."""
        gres = {name: span.minimum * self.fewest_nodes for name, span in self.gres_per_node.items()}
        return gres | {name: span.minimum for name, span in self.gres_total.items()}

    @property
    def node_counts(self) -> Span | None:
        """The node counts the job may get, None for job type 1."""
        if self.cores_per_node is not None and self.cores is not None:
            return Span.exactly(self.cores // self.cores_per_node)
        return self.nodes


class JobKind(StrEnum):
    """What may change about a job's size (kept for the runtime scheduler).

    Examples:
        >>> JobKind("rigid")
        <JobKind.RIGID: 'rigid'>
    """

    RIGID = "rigid"
    MOLDABLE = "moldable"
    MALLEABLE = "malleable"
    EVOLVING = "evolving"


@value_class
class Job(Owned):
    """A pending job.

    Attributes:
        priority: an exact integer or fraction, a float as its shortest decimal; 0 means held.
        submit_time: seconds since the epoch; breaks ties of priority, then the file's order does.
        expected_start_time: when another scheduler plans to start it, seconds since the epoch; no
            award depends on it, but ``aucsched compare`` shows it.
        promised_start: latest start that was promised, seconds since the epoch; no award delays it
            as long as running jobs keep their limits.
        hold: why the job is held or what it waits for, in Slurm's word; or None.
        unsupported: parts of the real request that this type lacks; such a job never starts.
        speedup: the speedup model of a malleable job: any value of JSON.
        limits_by_nodes_s: seconds by node count, where they depend on it: the job bids on these
            counts of its range, each for so long. ``time_limit_s`` is at least the longest; an
            advance reservation that starts within it keeps the job off its nodes on all counts.

    Raises:
        InputError: a value is not valid, e.g. a priority below 0.

    Examples:
        >>> Job(id="12", priority=0.1, request=Request(cores=4), time_limit_s=3600).priority
        Fraction(1, 10)
    """

    id: str = member(Name())
    priority: Coerced[int | Fraction, SupportsFloat] = member(JobPriority())
    request: Request = member(Embedded(Request, flat=True))
    submit_time: float | None = member(Timestamp(), default=None)
    expected_start_time: float | None = member(Timestamp(), default=None)
    promised_start: float | None = member(Timestamp(), default=None)
    time_limit_s: OptionalIntLike = member(Integer(1), default=None)
    hold: str | None = member(Text(), default=None)
    unsupported: NameTuple = member(NameList(), default=())
    kind: JobKind = member(Choice(JobKind), default=JobKind.RIGID)
    min_nodes: OptionalIntLike = member(Integer(1), default=None)
    max_nodes: OptionalIntLike = member(Integer(1), default=None)
    speedup: object = member(Anything(), default=None)
    limits_by_nodes_s: Mapping[int, float] = member(SecondsByCount(), default_factory=dict)

    def __post_init__(self) -> None:
        coerce_members(self)
        if self.min_nodes is not None and self.max_nodes is not None and self.max_nodes < self.min_nodes:
            raise InputError(f"{self.max_nodes} is below min_nodes {self.min_nodes}", path="max_nodes")

    @property
    def longest_s(self) -> float | None:
        """For how many seconds the job may run on whatever nodes; None: without end."""
        return max(self.limits_by_nodes_s.values(), default=self.time_limit_s)

    def limit_on_s(self, nodes: int) -> float | None:
        """Return for how many seconds the job may run on this many nodes; None: without end."""
        return self.limits_by_nodes_s.get(nodes, self.time_limit_s)


@value_class
class RunningJob(Owned):
    """A job that holds resources now; ``end_time`` (seconds since the epoch) is its estimated end.

    ``user`` to ``partition`` decide which limits count it.

    Examples:
        >>> RunningJob(id="11", nodes={"n1": Resources(cores=4)}, end_time=1700000000).end_time
        1700000000
    """

    runs = True
    id: str = member(Name())
    nodes: Mapping[str, Resources] = member(HostMap(Resources))
    end_time: float | None = member(Timestamp(), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.nodes:
            raise InputError("the job runs on no node", path="nodes")


def running_job(job: Job, nodes: Mapping[str, Resources], now: float | None) -> RunningJob:
    """Return a job that waited as one that runs on some nodes from now on, up to its limit there.

    Examples:
        >>> job = Job(id="7", priority=1, request=Request(cores=1), limits_by_nodes_s={2: 50})
        >>> running_job(job, dict.fromkeys(("n1", "n2"), Resources(cores=1)), now=1000).end_time
        1050
    """
    limit_s = job.limit_on_s(len(nodes))
    end = None if now is None or limit_s is None else now + limit_s
    return RunningJob(id=job.id, nodes=nodes, end_time=end, **members_of(job))


#: Slurm's reasons for a hold by a user or an administrator, which an outside scheduler may lift.
BY_HAND = frozenset({"JobHeldUser", "JobHeldAdmin"})
#: Slurm's reasons for every hold; any other text in ``Job.hold`` says what else the job waits for.
#: The empty text is a hold that its source gives no word for.
HELD = BY_HAND | {"", "JobHoldMaxRequeue", "RequeueHold", "ResvDelHold", "SpecialExit"}


def may_start(job: Job) -> bool:
    """Return whether neither a hold nor anything else outside the auction keeps a job waiting."""
    return job.hold is None and job.priority > 0


def is_held(job: Job) -> bool:
    """Return whether a job is held: its priority is 0, as in Slurm, or ``hold`` is one of ``HELD``.

    Examples:
        >>> from aucsched import Request
        >>> words = "RequeueHold", "BeginTime"
        >>> jobs = [Job(id="7", priority=5, request=Request(cores=1), hold=word) for word in words]
        >>> [is_held(job) for job in jobs]
        [True, False]
    """
    return job.priority == 0 or job.hold in HELD


def hold_words(job: Job) -> str:
    """Return why a job that may not start waits: its source's word, or that its priority is 0."""
    if job.priority == 0 and job.hold not in HELD:
        return "; ".join(filter(None, ("priority 0", job.hold)))
    return job.hold or "held"
