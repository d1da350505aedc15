"""Parts of a cluster: nodes with cores, memory and gres, switches, partitions, licences."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import SupportsIndex

from .checks import HOST_NAME, at_least, known, unique
from .errors import InputError
from .text import cut, shown
from .value_types import (
    Choice,
    Coerced,
    CountMap,
    Embedded,
    HostList,
    Integer,
    IntLike,
    IntLikeByName,
    Name,
    NameFrozenSet,
    NameList,
    Names,
    NameSet,
    NameTuple,
    OptionalIntLike,
    T,
    Timestamp,
    assign,
    coerce_members,
    member,
    value_class,
)

#: Kinds and types of gres that a node may have or a job hold on it.
MAX_GRES = 256


class NodeState(StrEnum):
    """Slurm's node states; only ``idle`` and ``mixed`` take jobs.

    Examples:
        >>> NodeState.MIXED.takes_jobs, NodeState.DOWN.takes_jobs
        (True, False)
    """

    IDLE = "idle"
    MIXED = "mixed"
    ALLOCATED = "allocated"
    COMPLETING = "completing"
    DRAINED = "drained"
    DRAINING = "draining"
    DOWN = "down"
    FAIL = "fail"
    MAINT = "maint"
    RESERVED = "reserved"
    UNKNOWN = "unknown"

    @property
    def takes_jobs(self) -> bool:
        """Whether a job may be started on a node in this state."""
        return self in (NodeState.IDLE, NodeState.MIXED)

    @property
    def is_working(self) -> bool:
        """Whether a node in this state takes jobs when it has resources free."""
        return self.takes_jobs or self in (NodeState.ALLOCATED, NodeState.COMPLETING)


@value_class
class Resources:
    """Amounts of resources: of a node, or held by a job on it.

    ``memory_mib`` None means: not limited (of a node), or not counted (of a job). ``gres`` maps
    names as Slurm writes them, ``gpu`` or ``gpu:a100``, to counts.

    Raises:
        InputError: a count is below 0 or not an integer.

    Examples:
        >>> Resources(cores=8, gres={"gpu": 2}).gres["gpu"]
        2
    """

    cores: IntLike = member(Integer(0))
    memory_mib: OptionalIntLike = member(Integer(0), default=None)
    gres: IntLikeByName = member(CountMap(Integer(0)), default_factory=dict)

    def __post_init__(self) -> None:
        coerce_members(self)
        if len(self.gres) > MAX_GRES:
            raise InputError(f"{len(self.gres)} gres are above the limit of {MAX_GRES}", path="gres")

    def within(self, most: "Resources") -> "Resources":
        """Return the amounts cut to others; memory is None where ``most`` does not limit it."""
        memory = None if most.memory_mib is None else min(self.memory_mib or 0, most.memory_mib)
        gres = {name: min(count, most.gres.get(name, 0)) for name, count in self.gres.items()}
        return Resources(cores=min(self.cores, most.cores), memory_mib=memory, gres=gres)

    def less(self, held: "Resources | None") -> "Resources":
        """Return the rest after jobs took their part; memory is None where it is not limited."""
        if held is None:
            return self
        memory = None if self.memory_mib is None else self.memory_mib - (held.memory_mib or 0)
        gres = {name: count - held.gres.get(name, 0) for name, count in self.gres.items()}
        return Resources(cores=self.cores - held.cores, memory_mib=memory, gres=gres)

    def plus(self, more: "Resources") -> "Resources":
        """Return the sum of both; memory is None where neither counts it."""
        memory = None
        if self.memory_mib is not None or more.memory_mib is not None:
            memory = (self.memory_mib or 0) + (more.memory_mib or 0)
        gres = {name: self.gres.get(name, 0) + more.gres.get(name, 0) for name in {**self.gres, **more.gres}}
        return Resources(cores=self.cores + more.cores, memory_mib=memory, gres=gres)

    def beyond(self, most: "Resources") -> Iterator[tuple[str, int, int | None]]:
        """Yield what is above other amounts: member, this one, the other (None: no such gres)."""
        if self.cores > most.cores:
            yield "cores", self.cores, most.cores
        memory = self.memory_mib
        if memory is not None and most.memory_mib is not None and memory > most.memory_mib:
            yield "memory_mib", memory, most.memory_mib
        for name, count in self.gres.items():
            if count > most.gres.get(name, -1):
                yield f"gres.{name}", count, most.gres.get(name)


@value_class
class Node:
    """A node: its resources, how much of them is free, and which jobs may use it.

    The order of a snapshot's nodes is the linear topology: *contiguous* means consecutive in it.

    Attributes:
        total: its resources; instead ``cores``, ``memory_mib`` (MiB, None: not limited) and
            ``gres`` may be given.
        free: the free part of them, by default everything.
        state: only ``idle`` and ``mixed`` ones take jobs.
        features: names that a job's constraint may ask for.
        partitions: names of those that it is in.

    Raises:
        InputError: both ways are given, more is free than there is, or no file can hold the name.

    Examples:
        >>> node = Node(name="n01", cores=8, gres={"gpu": 2})
        >>> node.total == node.free == Resources(cores=8, gres={"gpu": 2})
        True
    """

    name: str = member(Name())
    total: Resources = member(Embedded(Resources, flat=True))
    free: Resources = member(Embedded(Resources))
    state: NodeState = member(Choice(NodeState), default=NodeState.IDLE)
    features: NameFrozenSet = member(NameSet(plain=True), default=frozenset())
    partitions: NameTuple = member(NameList(plain=True), default=())

    def __init__(  # noqa: PLR0913 - two ways to say what it has
        self,
        *,
        name: str,
        total: Resources | None = None,
        free: Resources | None = None,
        state: NodeState = NodeState.IDLE,
        features: Names = frozenset(),
        partitions: Names = (),
        cores: SupportsIndex | None = None,
        memory_mib: SupportsIndex | None = None,
        gres: Mapping[str, SupportsIndex] | None = None,
    ) -> None:
        if total is None:
            if cores is None:
                raise InputError("a node needs cores, or total", path="cores")
            total = Resources(cores=cores, memory_mib=memory_mib, gres={} if gres is None else gres)
        else:
            for what, value in (("cores", cores), ("memory_mib", memory_mib), ("gres", gres)):
                if value is not None:
                    raise InputError("total is given too", path=what)
        assign(self, name=name, total=total, free=total if free is None else free, state=state)
        assign(self, features=features, partitions=partitions)
        coerce_members(self)
        self._check()

    def _check(self) -> None:
        at_least(self.total.cores, 1, "cores")
        if not HOST_NAME.fullmatch(self.name):
            raise InputError(f"{shown(self.name)} is not a name of letters, digits, _ . -", path="name")
        if self.free.memory_mib is not None and self.total.memory_mib is None:
            raise InputError(f"{self.free.memory_mib} is given without memory_mib", path="free.memory_mib")
        for what, free, most in self.free.beyond(self.total):
            message = "the node has no such gres" if most is None else f"{free} is above the node's {most}"
            raise InputError(message, path=f"free.{what}")


@value_class
class Switch:
    """A switch of a tree, as in topology.conf: a leaf with nodes, or a switch above switches.

    Examples:
        >>> Switch(name="leaf1", nodes=["n01", "n02"]).nodes
        ('n01', 'n02')
    """

    name: str = member(Name())
    nodes: NameTuple = member(HostList(), default=())
    switches: NameTuple = member(HostList(), default=())

    def __post_init__(self) -> None:
        coerce_members(self)
        if bool(self.nodes) == bool(self.switches):
            raise InputError(f"switch {self.name!r} needs either nodes or switches", path="")


def part_of_tree(switches: Iterable[Switch], names: Container[str]) -> tuple[Switch, ...]:
    """Return the part of a tree that stands above some nodes, given by name."""
    left = list(switches)
    kept: dict[str, Switch] = {}
    while True:
        done = len(kept)
        for switch in left:
            nodes = tuple(name for name in switch.nodes if name in names)
            below = tuple(name for name in switch.switches if name in kept)
            if nodes or below:
                kept[switch.name] = Switch(name=switch.name, nodes=nodes, switches=below)
        if len(kept) == done:
            return tuple(kept[switch.name] for switch in left if switch.name in kept)


def in_groups(values: Sequence[T], size: int) -> list[tuple[T, ...]]:
    """Return values in groups of so many neighbours; the last may have fewer."""
    return [tuple(values[start : start + size]) for start in range(0, len(values), size)]


@value_class
class License:
    """A cluster-wide count of licences, and how many are free, by default all of them.

    Examples:
        >>> License(total=10, free=4).free
        4
    """

    total: IntLike = member(Integer(0))
    free: Coerced[int, SupportsIndex | None] = member(Integer(0), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)
        if self.free is None:
            assign(self, free=self.total)  # type: ignore[unreachable]
        if self.free > self.total:
            raise InputError(f"{self.free} is above the total {self.total}", path="free")


class PartitionState(StrEnum):
    """Slurm's partition states; only ``up`` starts jobs.

    Examples:
        >>> PartitionState("up")
        <PartitionState.UP: 'up'>
    """

    UP = "up"
    DOWN = "down"
    DRAIN = "drain"
    INACTIVE = "inactive"


@value_class
class Partition:
    """A partition's limits.

    Attributes:
        nodes: names; they add to the nodes that name the partition themselves.
        max_nodes: of a job; None: no limit.
        max_time_limit_s: a job's longest time limit (s); None: none. A job without one may start.
        state: only ``up`` starts jobs.

    Raises:
        InputError: a limit is below 1, or a name cannot be used.

    Examples:
        >>> Partition(name="short", nodes=["n01"], max_time_limit_s=3600).state
        <PartitionState.UP: 'up'>
    """

    name: str = member(Name())
    nodes: NameTuple = member(HostList(), default=())
    max_nodes: OptionalIntLike = member(Integer(1), default=None)
    max_time_limit_s: OptionalIntLike = member(Integer(1), default=None)
    state: PartitionState = member(Choice(PartitionState, any_case=True), default=PartitionState.UP)

    def __post_init__(self) -> None:
        coerce_members(self)


@value_class
class Reservation:
    """An advance reservation: from ``start`` to ``end`` only its users' jobs may run on its nodes.

    Times are seconds since the epoch. Without users no job may run there.

    Examples:
        >>> Reservation(name="course", nodes="n01", start=0, end=3600, users=["ada"]).nodes
        ('n01',)
    """

    name: str = member(Name())
    nodes: NameTuple = member(HostList())
    start: float = member(Timestamp())
    end: float = member(Timestamp())
    users: NameTuple = member(NameList(plain=True), default=())

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.nodes:
            raise InputError("no node is named", path="nodes")
        if self.end <= self.start:
            raise InputError("the end is not after the start", path="end")


#: Switches one above another, at most: each costs a number for every node below it.
MOST_DEPTH = 100
#: Characters of a loop of switches in a message.
_LONGEST_LOOP = 120


def check_switches(switches: Sequence[Switch], nodes: Collection[str]) -> None:
    """Raise InputError unless ``switches`` are trees with each of ``nodes`` in exactly one leaf.

    Errors name the switch: repeated or unknown names, a switch below two others, a loop, too many
    one above another, a node on two leaves or on none.
    """
    places = unique((switch.name for switch in switches), "switches", "name")
    parents = _parents(switches, places)
    paths = {switch.name: f"switches[{index}]" for index, switch in enumerate(switches)}
    check_loops(paths, parents, MOST_DEPTH)
    _check_leaves(switches, nodes)


def _parents(switches: Sequence[Switch], places: Collection[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for index, switch in enumerate(switches):
        path = f"switches[{index}].switches"
        for child in switch.switches:
            known(child, places, "switch", path)
            if child in parents:
                raise InputError(f"{child!r} is below {parents[child]!r} already", path=path)
            parents[child] = switch.name
    return parents


def check_loops(paths: Mapping[str, str], parents: Mapping[str, str], deepest: int | None = None) -> None:
    """Refuse a loop, and more than ``deepest`` switches one above another; None: any number."""
    depth: dict[str, int] = {}
    for switch, path in paths.items():
        trail: dict[str, None] = {}
        name: str | None = switch
        while name is not None and name not in depth:
            if name in trail:
                loop = [*list(trail)[list(trail).index(name) :], name]
                message = f"the switches form a loop: {cut(' below '.join(loop), _LONGEST_LOOP)}"
                raise InputError(message, path=path)
            trail[name] = None
            name = parents.get(name)
        above = 0 if name is None else depth[name]
        if deepest is not None and above + len(trail) > deepest:
            message = f"{above + len(trail)} switches are one above another, more than {deepest}"
            raise InputError(message, path=path)
        depth |= {below: above + place for place, below in enumerate(reversed(trail), start=1)}


def _check_leaves(switches: Sequence[Switch], nodes: Collection[str]) -> None:
    leaf_of: dict[str, str] = {}
    for index, switch in enumerate(switches):
        path = f"switches[{index}].nodes"
        for name in switch.nodes:
            known(name, nodes, "node", path)
            if name in leaf_of:
                is_same = leaf_of[name] == switch.name
                where = "this leaf twice" if is_same else f"leaf {leaf_of[name]!r} already"
                raise InputError(f"{name!r} is on {where}", path=path)
            leaf_of[name] = switch.name
    if len(leaf_of) < len(nodes):
        missing = next(name for name in nodes if name not in leaf_of)
        raise InputError(f"node {missing!r} is on no leaf switch", path="switches")
