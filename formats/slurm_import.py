"""A snapshot from Slurm's own output: nodes, topology, what runs and what waits, joined and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..cluster.errors import InputError
from ..cluster.nodes import License, Node, Resources, Switch
from ..cluster.snapshot import Snapshot, free_resources, held_resources
from .slurm_detail import JobDetail, parse_job_detail
from .slurm_jobs import Queue, read_jobs
from .slurm_nodes import NodeFigures, read_nodes
from .slurm_notes import Notes
from .slurm_record import Record, read_document
from .slurm_request import Site
from .slurm_running import read_running
from .topology_conf import parse_topology

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmText:
    """One answer of Slurm: its text and the name that errors call it by (a file or a command)."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSources:
    """What a snapshot is made from.

    Attributes:
        jobs: ``squeue --json``, or slurmrestd's jobs.
        nodes: ``sinfo --json`` of 22.05, ``scontrol show nodes --json``, or slurmrestd's nodes.
        topology: topology.conf or ``scontrol show topology``; None: the nodes' order.
        job_detail: ``scontrol -d show job``; None: nobody's ``--switches`` is known.
        licenses: the cluster's licences where known; a job that asks for others is not expressible.
    """

    jobs: SlurmText
    nodes: SlurmText
    topology: SlurmText | None = None
    job_detail: SlurmText | None = None
    licenses: Mapping[str, License] | None = None


def import_slurm(
    sources: SlurmSources,
    *,
    time: float | None = None,
    schedule_held: bool = False,
    notes: Notes | None = None,
) -> tuple[Snapshot, Notes]:
    """Return the snapshot that Slurm's answers make, and what it does not hold.

    Args:
        sources: Slurm's answers.
        time: when they were taken, seconds since the epoch; by default the newest scheduling pass.
        schedule_held: jobs held by hand are scheduled, in order of submission behind all others.
        notes: notes made before, which then stand first.

    Raises:
        InputError: an answer is malformed or of an unknown shape; names the file, the path, the value.
    """
    notes = Notes() if notes is None else notes
    figures = _read(sources.nodes, lambda text: read_nodes(read_document(text), notes))
    nodes = _by_name(figures, sources.nodes.name)
    cluster = _Cluster(
        nodes=nodes,
        switches=_topology(sources.topology, nodes, notes),
        details=_details(sources.job_detail, notes),
        licenses=sources.licenses or {},
    )
    snapshot = _read(sources.jobs, lambda text: _snapshot(text, cluster, time, notes, held=schedule_held))
    return snapshot, notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """What all answers but the jobs' say."""

    nodes: Mapping[str, NodeFigures]
    switches: tuple[Switch, ...] | None
    details: Mapping[int, JobDetail]
    licenses: Mapping[str, License]

    @property
    def site(self) -> Site:
        """What requests are read against."""
        threads = any(node.threads > 1 for node in self.nodes.values())
        return Site(nodes=self.nodes, threads=threads, licenses=self.licenses)


def _snapshot(text: bytes, cluster: _Cluster, time: float | None, notes: Notes, *, held: bool) -> Snapshot:
    """Read the jobs and join everything."""
    records = _records(read_document(text))
    now = _time(records, notes) if time is None else time
    running = read_running(records, cluster.details, cluster.nodes, notes)
    queue = Queue(site=cluster.site, details=cluster.details, now=now, schedule_held=held)
    jobs = read_jobs(records, queue, notes)
    nodes = _nodes(cluster.nodes.values(), held_resources(running), notes)
    _note_memory(nodes, notes)
    return Snapshot(
        time=now,
        nodes=nodes,
        jobs=jobs,
        switches=cluster.switches,
        running=running,
        licenses=cluster.licenses,
        notes=notes.texts(),
    )


def _read(source: SlurmText, parse: Callable[[bytes], T]) -> T:
    """Parse an answer; errors name it."""
    try:
        return parse(source.content)
    except InputError as error:
        raise error.in_file(source.name) from error


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error


def _records(document: Record) -> tuple[Record, ...]:
    if "jobs" not in document.members:
        raise InputError("the member 'jobs' is missing")
    return tuple(document.children("jobs"))


def _by_name(figures: Iterable[NodeFigures], file: str) -> dict[str, NodeFigures]:
    by_name: dict[str, NodeFigures] = {}
    for index, node in enumerate(figures):
        if node.name in by_name:
            raise InputError(f"node {node.name!r} stands twice", path=f"nodes[{index}].name", file=file)
        by_name[node.name] = node
    if not by_name:
        raise InputError("there are no nodes", path="nodes", file=file)
    return by_name


def _topology(
    source: SlurmText | None, nodes: Mapping[str, NodeFigures], notes: Notes
) -> tuple[Switch, ...] | None:
    if source is None:
        return None
    return _read(source, lambda content: parse_topology(_text(content), nodes, notes))


def _details(source: SlurmText | None, notes: Notes) -> Mapping[int, JobDetail]:
    if source is None:
        notes.add("job detail", "no job detail is given: switch counts that jobs ask for are not known")
        return {}
    details = _read(source, lambda content: parse_job_detail(_text(content)))
    if not details:
        notes.add("job detail", "the job detail names no job: switch counts that jobs ask for are not known")
    return details


def _time(records: Iterable[Record], notes: Notes) -> float | None:
    """Return when the scheduler last looked at a job: 22.05 does not say when it answered."""
    newest = max((record.moment("last_sched_evaluation") or 0 for record in records), default=0)
    if newest == 0:
        notes.add("time", "the time of the snapshot is not known (--time gives it)")
    return newest or None


def _nodes(figures: Iterable[NodeFigures], held: Mapping[str, Resources], notes: Notes) -> tuple[Node, ...]:
    """Return the nodes; free is the less of the node's own figure and what its jobs leave."""
    nodes: list[Node] = []
    for node in figures:
        left = free_resources(node.total, held.get(node.name))
        _note_disagreement(node, left, notes)
        nodes.append(
            Node(
                name=node.name,
                total=node.total,
                free=_less(node.free, left),
                state=node.state,
                features=node.features,
                partitions=node.partitions,
            )
        )
    return tuple(nodes)


def _less(one: Resources, other: Resources) -> Resources:
    memory = None
    if one.memory_mib is not None and other.memory_mib is not None:
        memory = min(one.memory_mib, other.memory_mib)
    gres = {name: min(count, other.gres[name]) for name, count in one.gres.items()}
    return Resources(cores=min(one.cores, other.cores), memory_mib=memory, gres=gres)


def _note_disagreement(node: NodeFigures, left: Resources, notes: Notes) -> None:
    def say(what: str, own: int, jobs: int) -> None:
        text = f"node {node.name}: by its record {own} {what} are free, by its jobs {jobs}: the less is taken"
        notes.add("node figures", text)

    if node.free.cores != left.cores:
        say("cores", node.free.cores, left.cores)
    for name, count in node.free.gres.items():
        if count != left.gres[name]:
            say(name, count, left.gres[name])
    if node.free.memory_mib != left.memory_mib:
        say("MiB", node.free.memory_mib or 0, left.memory_mib or 0)


def _note_memory(nodes: Iterable[Node], notes: Notes) -> None:
    """Say so when memory is allocated: then Slurm gives a job that asks for none all of each node's."""
    if any(node.free.memory_mib != node.total.memory_mib for node in nodes):
        notes.add("memory", "Slurm gives a job that asks for no memory all of a node's; here it takes none")
