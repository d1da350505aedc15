"""Jobs: a job's request, the pending job, and running jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex, TypeAlias

from .checks import all_plain, at_least, counts, named, plain
from .coerce import Names, as_int, settle, settle_integers, settle_names, settle_sets, whole
from .errors import InputError
from .nodes import Resources

#: A priority's digits: Slurm's are 32-bit integers, a multifactor sum may carry a float's 17 digits.
_PRIORITY_DIGITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An inclusive range of counts, ``[minimum, maximum]``; both equal when the request is exact.

    Examples:
        >>> Span(minimum=1, maximum=4).is_exact
        False
    """

    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        settle_integers(self, "minimum", "maximum")
        at_least(self.minimum, 0, "[0]")
        at_least(self.maximum, 1, "[1]")
        if self.maximum < self.minimum:
            raise InputError(f"the range [{self.minimum}, {self.maximum}] is empty", path="")

    @classmethod
    def exactly(cls, count: int) -> Span:
        """Return the range that holds ``count`` only."""
        return cls(minimum=count, maximum=count)

    @property
    def is_exact(self) -> bool:
        """Whether the range holds one count only."""
        return self.minimum == self.maximum


#: How a count is given: a number, a pair of the least and the most, or a Span.
Counts: TypeAlias = SupportsIndex | Sequence[int] | Span
_PAIR = 2


def as_span(value: Any, path: str) -> Span:
    """Return a count, or a pair of the least and the most, as a Span.

    Raises:
        InputError: it is neither, or the range is empty.

    Examples:
        >>> as_span(2, "nodes") == Span.exactly(2), as_span((1, 3), "nodes")
        (True, Span(minimum=1, maximum=3))
    """
    if isinstance(value, Span):
        return value
    number = whole(value)
    if isinstance(number, int) and not isinstance(number, bool):
        at_least(number, 1, path)
        return Span.exactly(number)
    if isinstance(value, (tuple, list)) and len(value) == _PAIR:
        try:
            return Span(minimum=value[0], maximum=value[1])
        except InputError as error:
            raise error.under(path) from error
    raise InputError(f"{value!r} is neither a count nor a pair of counts", path=path)


def _spans(values: Any, path: str) -> Mapping[str, Span]:
    if not isinstance(values, Mapping):
        raise InputError(f"{values!r} is not a mapping of names to counts", path=path)
    if all(type(value) is Span for value in values.values()):
        return values
    return {name: as_span(value, f"{path}.{name}") for name, value in values.items()}


class JobType(StrEnum):
    """How a job states its size (Soner, section 4.1).

    Examples:
        >>> JobType.CORES.value
        'cores'
    """

    CORES = "cores"
    NODES_AND_CORES = "nodes and cores"
    NODES_AND_CORES_PER_NODE = "nodes and cores per node"


@dataclass(frozen=True, slots=True, kw_only=True)
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

    cores: int | None = None
    nodes: Span | None = None
    cores_per_node: int | None = None
    min_cores_per_node: int = 1
    cores_per_task: int = 1
    gres_per_node: Mapping[str, Span] = field(default_factory=dict)
    gres_total: Mapping[str, Span] = field(default_factory=dict)
    memory_mib_per_node: int | None = None
    memory_mib_per_core: int | None = None
    exclusive: bool = False
    max_switches: int | None = None
    contiguous: bool = False
    features: frozenset[str] = frozenset()
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: frozenset[str] = frozenset()
    licenses: Mapping[str, int] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - one for each member
            self,
            *,
            cores: SupportsIndex | None = None,
            nodes: Counts | None = None,
            cores_per_node: SupportsIndex | None = None,
            min_cores_per_node: SupportsIndex = 1,
            cores_per_task: SupportsIndex = 1,
            gres_per_node: Mapping[str, Counts] = ...,
            gres_total: Mapping[str, Counts] = ...,
            memory_mib_per_node: SupportsIndex | None = None,
            memory_mib_per_core: SupportsIndex | None = None,
            exclusive: bool = False,
            max_switches: SupportsIndex | None = None,
            contiguous: bool = False,
            features: Names = ...,
            required_nodes: Names = ...,
            excluded_nodes: Names = ...,
            licenses: Mapping[str, SupportsIndex] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        for name in ("cores", "cores_per_node", "min_cores_per_node", "cores_per_task", "max_switches"):
            at_least(getattr(self, name), 1, name)
        at_least(self.memory_mib_per_node, 0, "memory_mib_per_node")
        at_least(self.memory_mib_per_core, 0, "memory_mib_per_core")
        counts(self.licenses, 1, "licenses")
        all_plain(self.features, "features")
        self._check_size()
        self._check_gres()
        self._check_tasks()
        self._check_node_lists()

    def _settle(self) -> None:
        """Let the members be of their types, however they were given."""
        settle_integers(self, "cores", "cores_per_node", "min_cores_per_node", "cores_per_task")
        settle_integers(self, "memory_mib_per_node", "memory_mib_per_core", "max_switches")
        settle_names(self, "required_nodes")
        settle_sets(self, "features", "excluded_nodes")
        settle(
            self,
            nodes=None if self.nodes is None else as_span(self.nodes, "nodes"),
            gres_per_node=_spans(self.gres_per_node, "gres_per_node"),
            gres_total=_spans(self.gres_total, "gres_total"),
            licenses=as_int(self.licenses, "licenses"),
        )

    def _check_size(self) -> None:
        if self.nodes is not None and self.nodes.minimum < 1:
            raise InputError(f"{self.nodes.minimum} is below 1", path="nodes")
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
            named(name, "gres_per_node" if name in self.gres_per_node else "gres_total")
            kind = name.partition(":")[0]
            if kinds[kind] > 1 and (kind in times or times[name] > 1):
                path = f"gres_total.{name}" if name in self.gres_total else f"gres_per_node.{name}"
                raise InputError(f"the gres {kind!r} is asked for twice", path=path)

    def _check_tasks(self) -> None:
        step = self.cores_per_task
        for name in ("cores", "cores_per_node"):
            value = getattr(self, name)
            if value is not None and value % step:
                raise InputError(f"{value} is not a multiple of cores_per_task {step}", path=name)
        if self.cores_per_node is not None and self.min_cores_per_node > self.cores_per_node:
            value = self.min_cores_per_node
            raise InputError(
                f"{value} is above cores_per_node {self.cores_per_node}", path="min_cores_per_node"
            )

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A pending job.

    Attributes:
        priority: an integer or a fraction, exactly as given, a float as its shortest decimal; 0 means held.
        submit_time: seconds since the epoch; breaks ties of priority, then the order in the file does.
        expected_start_time: when another scheduler plans to start it, seconds since the epoch; no award
            depends on it, but ``aucsched compare`` shows it.
        promised_start: latest start that was promised, seconds since the epoch; no award delays it as long as
            running jobs keep their limits.
        hold: why the job is held or what it waits for, in Slurm's word; or None.
        unsupported: parts of the real request that this type cannot express; such a job never starts.
        speedup: the speedup model of a malleable job, kept as given.
        limits_by_nodes_s: seconds by node count, where they depend on it: the job bids on these counts of its
            range, on each for that long. ``time_limit_s`` is not shorter than any of them.

    Raises:
        InputError: a value is not valid, e.g. a priority below 0.

    Examples:
        >>> Job(id="12", priority=0.1, request=Request(cores=4), time_limit_s=3600).priority
        Fraction(1, 10)
    """

    id: str
    priority: int | Fraction
    request: Request
    submit_time: float | None = None
    expected_start_time: float | None = None
    promised_start: float | None = None
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""
    time_limit_s: int | None = None
    hold: str | None = None
    unsupported: tuple[str, ...] = ()
    kind: JobKind = JobKind.RIGID
    min_nodes: int | None = None
    max_nodes: int | None = None
    speedup: object = None
    limits_by_nodes_s: Mapping[int, float] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - one for each member
            self,
            *,
            id: str,  # noqa: A002 - the member's name
            priority: SupportsFloat,
            request: Request,
            submit_time: float | None = None,
            expected_start_time: float | None = None,
            promised_start: float | None = None,
            user: str = "",
            group: str = "",
            account: str = "",
            qos: str = "",
            partition: str = "",
            time_limit_s: SupportsIndex | None = None,
            hold: str | None = None,
            unsupported: Names = ...,
            kind: JobKind = ...,
            min_nodes: SupportsIndex | None = None,
            max_nodes: SupportsIndex | None = None,
            speedup: object = None,
            limits_by_nodes_s: Mapping[int, float] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        settle_integers(self, "time_limit_s", "min_nodes", "max_nodes")
        settle_names(self, "unsupported")
        if not isinstance(self.priority, (int, Fraction)) or isinstance(self.priority, bool):
            settle(self, priority=_given_priority(self.priority))
        named(self.id, "id")
        for name in ("user", "group", "account", "qos", "partition", "hold"):
            plain(getattr(self, name), name)
        if self.priority < 0:
            raise InputError(f"{float(self.priority):g} is below 0", path="priority")
        at_least(self.time_limit_s, 1, "time_limit_s")
        at_least(self.min_nodes, 1, "min_nodes")
        at_least(self.max_nodes, 1, "max_nodes")
        if self.min_nodes is not None and self.max_nodes is not None and self.max_nodes < self.min_nodes:
            raise InputError(f"{self.max_nodes} is below min_nodes {self.min_nodes}", path="max_nodes")

    @property
    def longest_s(self) -> float | None:
        """For how many seconds the job may run on whatever nodes; None: without end."""
        return max(self.limits_by_nodes_s.values(), default=self.time_limit_s)

    def limit_on_s(self, nodes: int) -> float | None:
        """Return for how many seconds the job may run on this many nodes; None: without end."""
        return self.limits_by_nodes_s.get(nodes, self.time_limit_s)


def _given_priority(value: Any) -> int | Fraction:
    """Return a number of whatever type exactly as it is written."""
    number = whole(value)
    if isinstance(number, bool) or isinstance(value, str) or not isinstance(number, SupportsFloat):
        raise InputError(f"{value!r} is not a number", path="priority")
    return (
        number
        if isinstance(number, int)
        else exact_priority(value if isinstance(value, Decimal) else float(value))
    )


def exact_priority(value: Decimal | float | str) -> int | Fraction:
    """Return a priority exactly as written, an integer where it is one.

    Raises:
        InputError: it is not finite, or has more digits than a priority can mean.
    """
    number = Decimal(str(value))
    if not number.is_finite():
        raise InputError(f"{value} is not a finite number", path="priority")
    exponent = number.as_tuple().exponent
    # Fraction(1E+999999999) would fill the memory: refused by its exponent, before it is written out.
    if number and (number.adjusted() > _PRIORITY_DIGITS or int(exponent) < -_PRIORITY_DIGITS):
        raise InputError(f"{value} has too many digits", path="priority")
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that holds resources now; ``end_time`` (seconds since the epoch) is its estimated end.

    ``user`` to ``partition`` decide which limits count it.

    Examples:
        >>> RunningJob(id="11", nodes={"n1": Resources(cores=4)}, end_time=1700000000).end_time
        1700000000
    """

    id: str
    nodes: Mapping[str, Resources]
    end_time: float | None = None
    user: str = ""
    group: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""

    def __post_init__(self) -> None:
        named(self.id, "id")
        if not self.nodes:
            raise InputError("the job runs on no node", path="nodes")
