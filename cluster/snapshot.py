"""A cluster and its queue at one moment, checked as a whole on construction."""

from collections.abc import Collection, Iterable, Mapping

from .checks import known, unique
from .errors import InputError
from .jobs import Job, RunningJob
from .limits import Limit
from .network import NETWORK, Network
from .nodes import License, Node, Partition, Reservation, Resources, Switch, check_switches
from .text import plural
from .value_types import (
    Entries,
    EntryMap,
    Many,
    NameList,
    NameTuple,
    OptionalMany,
    Timestamp,
    assign,
    coerce_members,
    member,
    value_class,
)

#: Beyond these a snapshot is refused.
MAX_NODES = 100_000
MAX_JOBS = 1_000_000
#: What tells the entries of a list apart, besides nodes.
_NAMED_BY = {"jobs": "id", "running": "id", "partitions": "name", "reservations": "name", "limits": "name"}


@value_class
class Snapshot:
    """The input of one scheduling step: a cluster and its queue.

    Attributes:
        time: when it was taken, in seconds since the epoch; None when not known.
        nodes: in the order by which *contiguous* is defined.
        jobs: the pending jobs, in file order (which breaks the last ties of priority).
        switches: the tree above the nodes, leaves to root; None is the linear topology.
        network: a torus, dragonfly, fat tree or graph, which settles the order and the switches.
        running: the jobs that hold resources now.
        licenses, partitions, reservations: cluster-wide limits.
        limits: over sets of jobs, running ones counted.
        notes: facts of the source that the snapshot cannot express.
        unread: those of the notes that name a rule of the site, which starts here may break.

    Raises:
        InputError: names repeat or are unknown, the switches do not form a tree, a running job has
            no room, a free amount exceeds what running jobs leave, a promised start lacks a time.

    Examples:
        >>> from aucsched import Job, Node, Request
        >>> row = [Node(name=f"n{place}", cores=8) for place in range(4)]
        >>> len(Snapshot(nodes=row, jobs=[Job(id="1", priority=5, request=Request(cores=8))]).nodes)
        4
    """

    nodes: Many[Node] = member(Entries(Node))
    jobs: Many[Job] = member(Entries(Job), default=())
    time: float | None = member(Timestamp(), default=None)
    switches: OptionalMany[Switch] = member(Entries(Switch), default=None)
    network: Network | None = member(NETWORK, default=None)
    running: Many[RunningJob] = member(Entries(RunningJob), default=())
    licenses: Mapping[str, License] = member(EntryMap(License), default_factory=dict)
    partitions: Many[Partition] = member(Entries(Partition), default=())
    reservations: Many[Reservation] = member(Entries(Reservation), default=())
    limits: Many[Limit] = member(Entries(Limit), default=())
    notes: NameTuple = member(NameList(), default=())
    unread: NameTuple = member(NameList(), default=())

    def __repr__(self) -> str:
        cores = sum(node.total.cores for node in self.nodes)
        free = sum(node.free.cores for node in self.nodes)
        jobs = f"{plural(len(self.jobs), 'job')} waiting, {len(self.running)} running"
        return f"<Snapshot: {plural(len(self.nodes), 'node')}, {free} of {cores} cores free, {jobs}>"

    def __post_init__(self) -> None:
        coerce_members(self)
        _check_size(len(self.nodes), MAX_NODES, "nodes")
        _check_size(len(self.jobs), MAX_JOBS, "jobs")
        if not self.nodes:
            raise InputError("at least one node is needed", path="nodes")
        unique((node.name for node in self.nodes), "nodes", "name")
        if self.network is not None:
            if self.switches not in (None, self.network.switches):
                raise InputError(f"the {self.network.kind} has groups of its own", path="switches")
            assign(self, nodes=self.network.in_order(self.nodes), switches=self.network.switches)
        names = {node.name: index for index, node in enumerate(self.nodes)}
        for what, key in _NAMED_BY.items():
            unique((getattr(entry, key) for entry in getattr(self, what)), what, key)
        running = {job.id for job in self.running}
        for index, job in enumerate(self.jobs):
            if job.id in running:
                raise InputError(f"{job.id!r} is running too", path=f"jobs[{index}].id")
        if self.switches is not None:
            check_switches(self.switches, names)
        self._check_names(names)
        self._check_running(names)

    def _check_names(self, names: Mapping[str, int]) -> None:
        check_waiting(self.jobs, names, self.licenses, self.time, "jobs")
        for member_name in ("partitions", "reservations"):
            for index, entry in enumerate(getattr(self, member_name)):
                for name in entry.nodes:
                    known(name, names, "node", f"{member_name}[{index}].nodes")

    def _check_running(self, names: Mapping[str, int]) -> None:
        held = held_resources(self.running)
        for index, job in enumerate(self.running):
            for name in job.nodes:
                path = f"running[{index}].nodes.{name}"
                known(name, names, "node", path)
                _fits(held[name], self.nodes[names[name]].total, path)
        for name, use in held.items():
            check_free(self.nodes[names[name]], use, f"nodes[{names[name]}].free.")


def check_waiting(
    jobs: Iterable[Job], nodes: Collection[str], licenses: Collection[str], time: float | None, path: str
) -> None:
    """Raise InputError if a job names unknown things, or is promised a start at no known time."""
    for index, job in enumerate(jobs):
        if time is None and job.promised_start is not None:
            message = f"{job.promised_start:.12g} needs the snapshot's time"
            raise InputError(message, path=f"{path}[{index}].promised_start")
        for which in ("required_nodes", "excluded_nodes"):
            for name in getattr(job.request, which):
                known(name, nodes, "node", f"{path}[{index}].{which}")
        for name in job.request.licenses:
            known(name, licenses, "licence", f"{path}[{index}].licenses.{name}")


def held_resources(running: Iterable[RunningJob]) -> dict[str, Resources]:
    """Return what running jobs hold together, by node name."""
    held: dict[str, Resources] = {}
    for job in running:
        for name, use in job.nodes.items():
            held[name] = held[name].plus(use) if name in held else use
    return held


def _check_size(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise InputError(f"{count} {what} are above the limit of {limit}", path=what)


def _fits(held: Resources, total: Resources, path: str) -> None:
    for what, count, most in held.beyond(total):
        unit = {"cores": " cores", "memory_mib": " MiB"}.get(what, "")
        message = f"running jobs hold {count}{unit} of {most}"
        raise InputError("the node has no such gres" if most is None else message, path=f"{path}.{what}")


def check_free(node: Node, held: Resources, path: str) -> None:
    """Raise InputError if free figures exceed what ``held`` leaves; ``path``: before the member."""
    for what, free, left in node.free.beyond(node.total.less(held)):
        message = f"{free} is above the {left} that running jobs leave"
        raise InputError(message, path=f"{path}{what}")
