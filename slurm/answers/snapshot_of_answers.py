"""A snapshot from Slurm's output: nodes, topology, what runs and what waits, joined and checked."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...cluster.checks import unique
from ...cluster.errors import InputError
from ...cluster.jobs import RunningJob
from ...cluster.limits import Limit
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.resources.pools import LimitPool, Pools
from ...cluster.snapshot import Snapshot, held_resources
from ...formats.file_kinds import is_json
from ...formats.hostlist import one_file
from ...formats.native.topology_wire import Laid
from ...formats.notes import Notes
from .answer_record import Known, Record, read_document
from .answer_text import answered
from .associations import PARENTS_NOTE, Associations, read_limits
from .consumables import read_licenses
from .detail import JobDetail, parse_job_detail
from .limit_records import limits_beside, limits_of_each
from .node_records import NodeFigures, node_document, read_nodes
from .partitions import PartitionFigures, read_partitions
from .pending_jobs import job_id, read_jobs, read_priorities
from .policy import ClusterConfig, Site, read_config
from .reservation_records import ReservationFigures, fitted_reservation, gate_licence, read_reservations
from .running_jobs import read_running
from .topology_any import Named, parse_any_topology
from .versions import NEWEST, SEGMENTS_SHOWN, note_unknown, parse_release, release_of, tells_shared

T = TypeVar("T")

_RELEASE = re.compile(rb'"release"\s*:\s*"(\d{1,4}\.[\w.-]{1,20})"')


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
        topology: topology.conf, topology.yaml, ``scontrol show topology``, or what ``topology_any``
            reads; None: the nodes' order.
        job_detail: ``scontrol -d show job``; None: 22.05 does not tell who asks for ``--switches``.
        licenses: ``scontrol show licenses``; a job that asks for one not known is not expressible.
        partitions: ``scontrol show partition``; None: no limits but the nodes' own partitions.
        reservations: ``scontrol show reservation``; None: none.
        limits: ``scontrol show assoc_mgr``, or sacctmgr's QOS and association tables; None: none.
        config: ``scontrol show config``; None: no defaults but the partitions'.
        priorities: ``sprio``'s; None: the queue's own.

    Licences, partitions and reservations as text or as JSON.
    """

    jobs: SlurmText
    nodes: SlurmText
    topology: SlurmText | None = None
    job_detail: SlurmText | None = None
    licenses: SlurmText | None = None
    partitions: SlurmText | None = None
    reservations: SlurmText | None = None
    limits: SlurmText | None = None
    config: SlurmText | None = None
    priorities: SlurmText | None = None


@one_file()
def import_slurm(
    sources: SlurmSources,
    *,
    time: float | None = None,
    schedule_held: bool = False,
    gate: str = "",
    notes: Notes | None = None,
    known: Known | None = None,
) -> tuple[Snapshot, Notes]:
    """Return the snapshot that Slurm's answers make, and what it does not hold.

    Args:
        sources: Slurm's answers.
        time: when they were taken, seconds since the epoch; by default the newest scheduling pass.
        schedule_held: jobs held by hand are scheduled, with their saved priorities, those without
            one in order of submission behind all others; those saved with priority 0 stay held.
        gate: a licence that no job needs, only kept from all: jobs that wait for it may start. By
            default the usual one, while its gate is up.
        notes: notes made before, which then stand first.
        known: what the last look's answers held; for answers of live commands, with ``time``.

    Raises:
        InputError: an answer is malformed or of unknown shape; names file, path and value.
    """
    notes = Notes() if notes is None else notes
    nodes = _read(sources.nodes, lambda text: _by_name(read_nodes(node_document(text, known), notes)))
    config = _read_or(sources.config, lambda text: read_config(answered(text), notes), ClusterConfig())

    def details(text: bytes) -> dict[int, JobDetail]:
        return parse_job_detail(answered(text), known, notes)

    none: tuple[PartitionFigures, ...] = ()
    no_reservations: tuple[ReservationFigures, ...] = ()
    reservations = _read_or(sources.reservations, read_reservations, no_reservations)
    partitions = _read_or(sources.partitions, lambda text: read_partitions(text, nodes, notes), none)
    site = Site(
        nodes=nodes,
        topology=_topology(sources.topology, nodes, partitions, notes),
        details=_read_or(sources.job_detail, details, None),
        licenses=_read_or(sources.licenses, lambda text: read_licenses(text, notes), {}),
        partitions={figures.partition.name: figures for figures in partitions},
        reservations=reservations,
        limits=_limits(sources, config, {one.partition.name: one.own_qos for one in partitions}, notes),
        config=config,
        priorities=_read_or(sources.priorities, lambda text: read_priorities(text, notes), None),
        gate=gate or gate_licence(reservations, time),
        schedule_held=schedule_held,
    )
    snapshot = _read(sources.jobs, lambda text: _snapshot(text, site, time, notes, known))
    return snapshot, notes


def _snapshot(text: bytes, site: Site, time: float | None, notes: Notes, known: Known | None) -> Snapshot:
    """Read the jobs and join everything."""
    document = read_document(text) if known is None else known.document(text, "jobs")
    records = _records(document)
    _note_release(document, records, notes)
    _note_segments(document, records, site, notes)
    now = _time(document, records, notes) if time is None else time
    _note_detail(records, site.details, notes)
    key = None if known is None else known.site(site.against())
    site = replace(site, tells_shared=tells_shared(document), now=now, key=key)
    running = tuple(site.inside(job, job.partition) for job in read_running(records, site, notes))
    limits = replace(site.limits, limits=_limits_now(records, site, running, now, notes))
    pools = Pools.beside((LimitPool(limits.limits),), running, now)
    jobs = read_jobs(records, replace(site, limits=limits, pools=pools), notes)
    closed = _closed(records, site, running)
    cores = {name: one.node.total.cores // one.threads for name, one in site.nodes.items()}
    inside = _cores_inside(records, site, running)
    reserved = {
        told: fitted_reservation(
            told, cores, inside.get(told.name, 0), told.coming_licenses(site.gate, now), notes
        )
        for told in site.reservations
    }
    full = {name for told, kept in reserved.items() if not kept for name in told.nodes}
    up = (kept for told, kept in reserved.items() if kept and (now is None or told.is_up(now)))
    full -= {name for kept in up for name in kept.nodes}
    nodes = _nodes(site.nodes.values(), held_resources(running), closed, full, notes)
    # Where memory is allocated Slurm gives a job that asks for none all of each node's.
    is_allocated = any(node.free.memory_mib != node.total.memory_mib for node in nodes)
    if site.config.counts_memory is None and is_allocated:
        told = "Slurm gives a job that asks for no memory all of a node's; here it takes none"
        notes.unread("memory", f"{told} (--conf tells)")
    _note_partition_qos(site, notes)
    return Snapshot(
        time=now,
        nodes=nodes,
        jobs=jobs,
        switches=site.topology.laid.switches,
        network=site.topology.laid.network,
        running=running,
        licenses=site.licenses,
        partitions=tuple(figures.partition for figures in site.partitions.values()),
        reservations=tuple(filter(None, reserved.values())),
        limits=limits.limits,
        notes=notes.texts(),
        unread=tuple(notes.policies),
    )


def _limits_now(
    records: Iterable[Record], site: Site, running: tuple[RunningJob, ...], now: float | None, notes: Notes
) -> tuple[Limit, ...]:
    """Return the limits that hold next to the running jobs."""
    fields = {"user": "user_name", "account": "account"}
    names = {what: {one.text(field) for one in records} for what, field in fields.items()}
    left = limits_beside(site.limits.limits, site.limits.used, running, now)
    return tuple(one for limit, own in left for one in limits_of_each(limit, own, names, notes))


def _read(source: SlurmText, parse: Callable[[bytes], T]) -> T:
    """Parse an answer; errors name it, and its Slurm where that is newer than any known here."""
    try:
        return parse(source.content)
    except InputError as error:
        match = _RELEASE.search(source.content) if is_json(source.content) else None
        version = match[1].decode() if match else ""
        message, release = error.message, parse_release(version)
        if release is not None and release.is_newer:
            message += f" (written by Slurm {version}; known are versions up to {NEWEST.series})"
        raise InputError(message, path=error.path, file=error.file or source.name) from error


def _read_or(source: SlurmText | None, parse: Callable[[bytes], T], otherwise: T) -> T:
    """Parse an answer where there is one."""
    return otherwise if source is None else _read(source, parse)


def _limits(
    sources: SlurmSources, config: ClusterConfig, partitions: Mapping[str, str], notes: Notes
) -> Associations:
    """Return the limits, none where the configuration says that Slurm does not enforce them."""

    def read(text: bytes) -> Associations:
        told, cluster = answered(text), config.cluster
        return read_limits(told, notes, cluster=cluster, partitions=partitions, is_safe=config.is_safe)

    found = _read_or(sources.limits, read, Associations())
    if config.enforces_limits is not False or not (found.limits or found.each):
        return found
    notes.add("limits", "limits are not enforced (AccountingStorageEnforce), so none is looked at")
    return replace(found, limits=(), each=(), used={})


def _note_partition_qos(site: Site, notes: Notes) -> None:
    """Note partitions whose own QOS is not among the limits, or whose accounts' parents are not."""
    if site.limits.parents is None and any(one.accounts for one in site.partitions.values()):
        notes.unread("limits", PARENTS_NOTE)
    if site.config.enforces_limits is False:
        return
    for figures in site.partitions.values():
        qos = figures.own_qos
        if qos and qos not in site.limits.qos:
            text = f"partition {figures.partition.name}: QoS={qos} is not looked at: its limits are not given"
            notes.unread("partitions", text)


def _records(document: Record) -> tuple[Record, ...]:
    document.require("jobs")
    records = tuple(document.children("jobs"))
    for record in records:
        if "job_state" not in record.members and "steps" in record.members:
            raise InputError("a record of accounting (sacct, slurmdbd): give squeue --json", path=record.path)
    return records


def _note_release(document: Record, records: Iterable[Record], notes: Notes) -> None:
    """Say once what a later Slurm writes that nobody here knows."""
    release = release_of(document)
    if release is not None and release.is_newer:
        notes.add("version", release.warning)
    # Slurm writes each member of each job.
    note_unknown(next((record.members for record in records), ()), "jobs", notes)


def _note_segments(document: Record, records: Iterable[Record], site: Site, notes: Notes) -> None:
    """Say so when nothing tells ``--segment`` where rules depend on it, as before 25.05."""
    network, release = site.topology.laid.network, release_of(document)
    in_detail = bool(site.details) and release is not None and release >= SEGMENTS_SHOWN
    if network is None or not network.units or in_detail:
        return
    if any(not record.has("segment_size") for record in records):
        notes.unread("segments", "which jobs ask for --segment is not told, as before Slurm 25.05")


def _cores_inside(records: Iterable[Record], site: Site, running: Iterable[RunningJob]) -> Mapping[str, int]:
    """Return the cores that jobs inside each reservation hold."""
    inside = {job_id(record): record.text("resv_name") for record in records if record.has("resv_name")}
    held: Counter[str] = Counter()
    for job in running:
        if name := inside.get(job.id):
            held[name] += sum(use.cores // site.nodes[node].threads for node, use in job.nodes.items())
    return held


def _by_name(figures: Sequence[NodeFigures]) -> dict[str, NodeFigures]:
    if not figures:
        raise InputError("there are no nodes", path="nodes")
    return dict(zip(unique((one.node.name for one in figures), "nodes", "name"), figures, strict=True))


def _topology(
    source: SlurmText | None,
    nodes: Mapping[str, NodeFigures],
    partitions: Sequence[PartitionFigures],
    notes: Notes,
) -> Named:
    """Return the topology: of several the one that all partitions are on, else the default."""
    names = tuple(nodes)
    if source is None:
        return Named(names=names, laid=Laid())
    asked = {figures.topology for figures in partitions}
    wanted = asked.pop() if len(asked) == 1 else ""
    placed = {name: node.topology for name, node in nodes.items() if node.topology}
    found = _read(source, lambda content: parse_any_topology(content, names, notes, wanted, placed))
    for figures in partitions:
        if asked and figures.topology not in ("", found.name or "default"):
            text = f"Topology={figures.topology} is not looked at"
            notes.unread("partitions", f"partition {figures.partition.name}: {text}")
    return found


def _note_detail(records: Iterable[Record], details: Mapping[int, JobDetail] | None, notes: Notes) -> None:
    """Say so when nothing tells ``--switches``: 22.05 leaves it out of the JSON."""
    if details or all(
        record.has("required_switches") or record.has("minimum_switches") for record in records
    ):
        return
    what = "no job detail is given" if details is None else "the job detail names no job"
    notes.add("job detail", f"{what}: switch counts that jobs ask for are not known")


def _time(document: Record, records: Iterable[Record], notes: Notes) -> float | None:
    """Return when the jobs last changed or were looked at: no version says when it answered."""
    looked = max((record.moment("last_sched_evaluation") or 0 for record in records), default=0)
    newest = max(looked, document.moment("last_update") or 0)
    if newest == 0:
        notes.add("time", "the time of the snapshot is not known (--time gives it)")
    return newest or None


def _closed(records: Iterable[Record], site: Site, running: Iterable[RunningJob]) -> set[str]:
    """Return the nodes whose block a job has for itself: JSON before v0.0.44 shows them idle."""
    network = site.topology.laid.network
    if network is None or not network.units:
        return set()
    partitions = {one.partition.name for one in site.partitions.values() if one.exclusive_topo}
    owners = {
        job_id(record)
        for record in records
        if "topo" in record.words("shared") | record.words("exclusive")
        or record.text("partition") in partitions
    }
    held = {name for job in running if job.id in owners for name in job.nodes}
    return {name for unit in network.units if held & {*unit.nodes} for name in unit.nodes} - held


def _nodes(
    figures: Iterable[NodeFigures],
    held: Mapping[str, Resources],
    closed: set[str],
    full: set[str],
    notes: Notes,
) -> tuple[Node, ...]:
    """Return the nodes; free is the less of the node's own figure and what its jobs leave.

    Reservations that keep nothing but what their jobs hold leave other cores of ``full`` to all.
    """
    nodes: list[Node] = []
    for one in figures:
        node = one.node
        left = node.total.less(held.get(node.name))
        _note_disagreement(one, left, notes)
        state = node.state
        if node.name in full and state is NodeState.RESERVED:
            state = NodeState.MIXED
        if node.name in closed and state.takes_jobs:
            state = NodeState.UNKNOWN
            notes.add("node states", f"node {node.name}: a job has its block for itself: not available")
        nodes.append(replace(node, free=node.free.within(left), state=state))
    return tuple(nodes)


def _note_disagreement(figures: NodeFigures, left: Resources, notes: Notes) -> None:
    free = figures.node.free
    told = {name: count for name, count in free.gres.items() if name not in figures.untold}
    own = {"cores": free.cores, **told, "MiB": free.memory_mib or 0}
    of_jobs = {"cores": left.cores, **left.gres, "MiB": left.memory_mib or 0}
    for what, count in own.items():
        if count != of_jobs[what]:
            text = f"by its record {count} {what} are free, by its jobs {of_jobs[what]}"
            notes.add("node figures", f"node {figures.node.name}: {text}: the less is taken")
