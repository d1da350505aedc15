"""Slurm's running jobs: what each holds on each node, fitted to the nodes, and what ended since.

``job_resources`` has had several shapes. 21.08 writes an object of nodes by position in ``nodes``,
with CPU counts; 22.05 to 23.02 a list with the state of each core by socket; 24.05 and later the
same below ``nodes.allocation``, with sockets and cores as lists, a core's state as a list of words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import msgspec

from ...cluster.checks import all_plain
from ...cluster.errors import InputError
from ...cluster.jobs import RunningJob
from ...cluster.nodes import Resources
from ...cluster.text import plural
from ...formats.hostlist import expand
from ...formats.notes import Notes
from .answer_record import INFINITE, Record
from .consumables import gres_of_tres, parse_gres, settle
from .node_records import NodeFigures
from .pending_jobs import job_id, owner_of
from .policy import Site
from .states import JobPhase, phase_of

_PLACE = re.compile(r"[0-9]{1,9}")
#: A core's states, lower case: ``unassigned`` is allocated and in no step's use.
_HELD = ("allocated", "unassigned", "in_use")
_FREE = ("unallocated",)


def read_running(records: Sequence[Record], site: Site, notes: Notes) -> tuple[RunningJob, ...]:
    """Return the jobs that hold resources; together they never hold more than a node has.

    Slurm's own answers disagree at times: unknown nodes are dropped and an excess is cut, each with
    a note. So is a job with unknown use: the nodes' own figures still count it. For a known text,
    what a job holds is read again only if what it was read against differs (``Site.key``).

    Raises:
        InputError: a member is missing or of an unknown shape.
    """
    left = {name: figures.node.total for name, figures in site.nodes.items()}
    running: list[RunningJob] = []
    for record in records:
        phase = phase_of(record)
        if phase in (JobPhase.HOLDING, JobPhase.SUSPENDED):
            job = job_id(record)
            use = record.once("use", partial(_allocation, record, site.nodes), site.key)
            detail = (site.details or {}).get(record.count("job_id"))
            use = use or (dict(detail.use) if detail else {})
            if phase is JobPhase.SUSPENDED:
                use = {name: replace(amount, cores=0) for name, amount in use.items()}
                notes.add("suspended", f"job {job} is suspended: it holds memory and gres, no cores")
            if use and "gres/" in record.text("tres_alloc_str") and not any(one.gres for one in use.values()):
                notes.add("running jobs", f"job {job}: its gres on each node are not known")
            fitted = dict(_fitted(job, use, left, notes))
            if fitted:
                running.append(_running(record, fitted))
            else:
                notes.add("running jobs", f"job {job}: what it holds is not known: dropped")
    return tuple(running)


def _running(record: Record, nodes: Mapping[str, Resources]) -> RunningJob:
    # Of a job without a time limit 22.05 writes an end a year after its start.
    is_limited = record.number_or_infinite("time_limit") not in (None, INFINITE)
    return RunningJob(
        id=job_id(record),
        nodes=nodes,
        end_time=record.moment("end_time") if is_limited else None,
        **owner_of(record),
    )


def _fitted(
    job: str, use: Mapping[str, Resources], left: dict[str, Resources], notes: Notes
) -> Iterator[tuple[str, Resources]]:
    """Yield the use on each known node, cut to what other jobs leave, and take it off ``left``."""
    for name, amount in use.items():
        if name not in left:
            notes.add("running jobs", f"job {job} runs on node {name}, which is not of the cluster: dropped")
            continue
        fitted = _cut(amount, left[name])
        if lost := _lost(amount, fitted):
            notes.add("running jobs", f"job {job} on node {name}: {lost} above what the node has are dropped")
        left[name] = left[name].less(fitted)
        yield name, fitted


def _cut(amount: Resources, left: Resources) -> Resources:
    gres, _ = settle(amount.gres, left.gres)
    memory = amount.memory_mib
    if memory is not None and left.memory_mib is not None:
        memory = min(memory, left.memory_mib)
    return Resources(cores=min(amount.cores, left.cores), memory_mib=memory, gres=gres)


def _lost(amount: Resources, fitted: Resources) -> str:
    cores = amount.cores - fitted.cores
    memory = (amount.memory_mib or 0) - (fitted.memory_mib or 0)
    gres = sum(amount.gres.values()) - sum(fitted.gres.values())
    parts = (plural(cores, "core") * bool(cores), f"{memory} MiB" * bool(memory), f"{gres} gres" * bool(gres))
    return ", ".join(filter(None, parts))


def _allocation(record: Record, nodes: Mapping[str, NodeFigures]) -> dict[str, Resources]:
    """Return what a job holds by node; empty when its record does not say.

    ``allocated_cores`` is what was asked for; what is held are the cores of the sockets, each as
    many CPUs as it has threads. ``gres_detail`` has one text for each node, in the same order.

    Raises:
        InputError: the shape is none that a Slurm version is known to write.
    """
    gres, uses = record.texts("gres_detail"), list(_uses(record, nodes))
    all_gres = {} if gres else gres_of_tres(record.text("tres_alloc_str"), record.place("tres_alloc_str"))
    # Without the detail only equal shares are told.
    share = {kind: count // len(uses) for kind, count in all_gres.items() if uses and not count % len(uses)}
    use: dict[str, Resources] = {}
    for index, (name, cpus, memory_mib) in enumerate(uses):
        place = record.place(f"gres_detail[{index}]")
        held = parse_gres(gres[index], place, []) if index < len(gres) else share
        all_plain(held, place)
        use[name] = Resources(cores=cpus, memory_mib=memory_mib or None, gres=held)
    return use


#: A node, the CPUs that a job holds there, and the memory in MiB.
_Use: TypeAlias = tuple[str, int, int | None]


def _uses(record: Record, nodes: Mapping[str, NodeFigures]) -> Iterator[_Use]:
    resources = record.child("job_resources")
    if resources is None or not resources.members:
        return
    allocated = resources.members.get("allocated_nodes")
    if isinstance(allocated, list):
        yield from _by_name(resources, "allocated_nodes", "nodename", nodes)
    elif isinstance(allocated, dict):
        yield from _by_place(resources, Record(allocated, resources.place("allocated_nodes")))
    elif isinstance(resources.members.get("nodes"), dict) and "allocation" in resources.members["nodes"]:
        held = Record(resources.members["nodes"], resources.place("nodes"))
        yield from _by_name(held, "allocation", "name", nodes)
    else:
        raise record.unknown("job_resources", "a job's resources as Slurm 21.08 to 26.05 write them")


def _by_place(resources: Record, allocated: Record) -> Iterator[_Use]:
    names = expand(resources.text("nodes"), resources.place("nodes"))
    for place in allocated.members:
        entry = allocated.child(place)
        if entry is None or not _PLACE.fullmatch(place) or int(place) >= len(names):
            raise InputError(f"{place!r} is not a place in nodes", path=allocated.path)
        yield names[int(place)], entry.count("cpus"), entry.number("memory")


def _by_name(resources: Record, member: str, name: str, nodes: Mapping[str, NodeFigures]) -> Iterator[_Use]:
    """Yield the use on each node of a list, whose entries name their node in ``name``."""
    for entry in resources.children(member):
        entry.require(name, "sockets")
        memory, node = entry.child("memory"), entry.text(name)
        amount = memory.number("allocated") if memory else entry.number("memory_allocated")
        yield node, _cpus(entry, nodes.get(node)), amount


def _cpus(entry: Record, node: NodeFigures | None) -> int:
    """Count the cores that the job holds on a node's sockets, as many CPUs each as its threads."""
    cores = sum(_is_held(words, path) for words, path in _core_states(entry))
    return cores * (1 if node is None else node.threads)


def _core_states(entry: Record) -> Iterator[tuple[tuple[str, ...], str]]:
    for socket in entry.entries("sockets"):
        cores = socket.members.get("cores")
        if isinstance(cores, dict):
            place = Record(cores, socket.place("cores"))
            yield from ((place.texts(core), socket.path) for core in cores)
        else:
            yield from ((core.texts("status"), core.path) for core in socket.children("cores"))


def _is_held(words: tuple[str, ...], path: str) -> bool:
    states = [word.lower() for word in words]
    if states and all(state.startswith(_HELD) for state in states):
        return True
    if states and all(state in _FREE for state in states):
        return False
    raise InputError(f"{', '.join(words)!r} is not a core's state", path=path)


class SlurmStart(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A job that Slurm started; ``cores`` and ``nodes``, a hostlist, are what it got.

    Times are seconds since the epoch; ``level`` is of its lowest common switch, if known.
    """

    job: str
    submit: float
    start: float
    nodes: str
    cores: int
    level: int | None = None
    limit_s: int | None = None
    user: str = ""
    account: str = ""
    partition: str = ""
    priority: int = 0


class End(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A job that ended, told apart by its start from an earlier run of the same job.

    ``state`` is Slurm's word for how, or that of the log for a job that was forgotten.
    """

    job: str
    start: float
    end: float
    state: str


def started_jobs(document: Record) -> Iterator[tuple[SlurmStart, End | None]]:
    """Yield starts and ends of the jobs of ``squeue --json``, None for the end of one that runs.

    Raises:
        InputError: a member is of an unknown shape.
    """
    for record in document.children("jobs"):
        phase = phase_of(record)
        moment, nodes = record.moment("start_time"), ",".join(record.texts("nodes"))
        if phase is JobPhase.PENDING or moment is None or not nodes:
            continue
        job, start, end = job_id(record), float(moment), record.moment("end_time")
        minutes = record.number("time_limit")
        begun = SlurmStart(
            job=job,
            submit=float(record.moment("submit_time") or start),
            start=start,
            nodes=nodes,
            cores=record.number("cpus") or 0,
            limit_s=None if minutes is None else minutes * 60,
            user=record.text("user_name"),
            account=record.text("account"),
            partition=record.text("partition"),
            priority=record.number("priority") or 0,
        )
        has_ended = phase is JobPhase.ENDED and end is not None
        state = ",".join(record.texts("job_state"))
        yield begun, End(job=job, start=start, end=float(end or 0), state=state) if has_ended else None
