"""Native snapshots (``aucsched-snapshot/1``): read, checked, and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from ..cluster.errors import InputError
from ..cluster.jobs import Job, JobKind, Request, RunningJob, Span, exact_priority
from ..cluster.nodes import (
    License,
    Node,
    NodeState,
    Partition,
    PartitionState,
    Reservation,
    Resources,
    Switch,
)
from ..cluster.snapshot import Snapshot, check_free, free_resources, held_resources
from . import wire
from .hostlist import expand
from .jsontext import decode

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

#: Seconds since the epoch at which years get a fifth digit, which ISO 8601 times have not.
_YEAR_10000 = 253_402_300_800


def load_snapshot(path: str | Path) -> Snapshot:
    """Read and check a snapshot file; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid snapshot; names file, path and value.
    """
    name = str(path)
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=name) from error
    try:
        return parse_snapshot(text)
    except InputError as error:
        raise error.in_file("standard input" if name == "-" else name) from error


def parse_snapshot(text: bytes) -> Snapshot:
    """Return the snapshot in a snapshot file's text; errors name the path and the value."""
    document = decode(text, wire.SnapshotWire)
    if document.format != wire.FORMAT:
        raise InputError(f"{document.format!r} is not {wire.FORMAT!r}", path="format")
    return snapshot_from_wire(document)


def snapshot_from_wire(document: wire.SnapshotWire) -> Snapshot:
    """Return the checked snapshot that decoded members describe."""
    running = _each(document.running, "running", _running_job)
    with _below("running"):
        held = held_resources(running)
    return Snapshot(
        time=_time(document.time, "time"),
        nodes=_nodes(document.nodes, held),
        jobs=_each(document.jobs, "jobs", _job),
        switches=_switches(document.topology),
        running=running,
        licenses={name: _license(entry, f"licenses.{name}") for name, entry in document.licenses.items()},
        partitions=_each(document.partitions, "partitions", _partition),
        reservations=_each(document.reservations, "reservations", _reservation),
        notes=tuple(document.notes),
    )


@contextmanager
def _below(prefix: str) -> Iterator[None]:
    """Put an InputError's path below ``prefix``."""
    try:
        yield
    except InputError as error:
        raise error.under(prefix) from error


def _each(entries: Iterable[Any], member: str, build: Callable[[Any], T]) -> tuple[T, ...]:
    """Build every entry of a list; an error's path names the entry."""
    built: list[T] = []
    try:
        built.extend(build(entry) for entry in entries)
    except InputError as error:
        raise error.under(f"{member}[{len(built)}]") from error
    return tuple(built)


def _time(value: wire.TimeWire | None, path: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if not 0 <= value < _YEAR_10000:
            raise InputError(f"{value} is no time in seconds since 1970", path=path)
        return value
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{value!r} is not an ISO 8601 time", path=path) from None


def _needed_time(value: wire.TimeWire, path: str) -> float:
    moment = _time(value, path)
    return 0.0 if moment is None else moment


def _choice(value: str, choices: type[E], path: str) -> E:
    try:
        return choices(value)
    except ValueError:
        raise InputError(f"{value!r} is not one of {', '.join(choices)}", path=path) from None


def _nodes(entries: list[wire.NodeWire], held: Mapping[str, Resources]) -> tuple[Node, ...]:
    """Build every node of every entry; errors name the entry, which may stand for many nodes."""
    nodes: dict[str, Node] = {}
    entry_of: dict[str, int] = {}
    for index, entry in enumerate(entries):
        with _below(f"nodes[{index}]"):
            for name in expand(entry.name, "name"):
                if entry_of.setdefault(name, index) != index:
                    raise InputError(f"{name!r} stands at nodes[{entry_of[name]}] already", path="name")
                nodes[name] = _node(name, entry, held.get(name))
    return tuple(nodes.values())


def _node(name: str, entry: wire.NodeWire, held: Resources | None) -> Node:
    with _renamed("gres", "gres"):
        total = Resources(cores=entry.cores, memory_mib=entry.memory_mib, gres=entry.gres)
    capped = _capped(held, total)
    left = free_resources(total, capped)
    node = Node(
        name=name,
        total=total,
        free=_free(entry, left),
        state=_choice(entry.state, NodeState, "state"),
        features=frozenset(entry.features),
        partitions=tuple(entry.partitions),
    )
    # A running job that does not fit is the greater error: Snapshot names it.
    if held is not None and capped is not None and (held.cores, held.gres) == (capped.cores, capped.gres):
        check_free(node, capped)
    return node


def _capped(held: Resources | None, total: Resources) -> Resources | None:
    """Cap what running jobs hold at the total: Snapshot refuses the excess with the running job's path."""
    if held is None:
        return None
    memory = None if total.memory_mib is None else min(held.memory_mib or 0, total.memory_mib)
    gres = {key: min(count, total.gres.get(key, 0)) for key, count in held.gres.items()}
    return Resources(cores=min(held.cores, total.cores), memory_mib=memory, gres=gres)


def _free(entry: wire.NodeWire, left: Resources) -> Resources:
    """Return a node's free figures: as given, by default what running jobs leave."""
    if entry.free_cores is None and entry.free_memory_mib is None and entry.free_gres is None:
        return left
    with (
        _renamed("cores", "free_cores"),
        _renamed("memory_mib", "free_memory_mib"),
        _renamed("gres", "free_gres"),
    ):
        return Resources(
            cores=left.cores if entry.free_cores is None else entry.free_cores,
            memory_mib=left.memory_mib if entry.free_memory_mib is None else entry.free_memory_mib,
            gres={**left.gres, **(entry.free_gres or {})},
        )


@contextmanager
def _renamed(member: str, name: str) -> Iterator[None]:
    """Let an InputError about a type's ``member`` name the file's member instead."""
    try:
        yield
    except InputError as error:
        head, dot, rest = error.path.partition(".")
        if head != member:
            raise
        raise InputError(error.message, path=f"{name}{dot}{rest}") from error


def _switches(topology: wire.TopologyWire | None) -> tuple[Switch, ...] | None:
    if topology is None or topology.kind == "linear":
        if topology is not None and topology.switches:
            raise InputError("a linear topology has no switches", path="topology.switches")
        return None
    if not topology.switches:
        raise InputError("a tree needs switches", path="topology.switches")
    return _each(topology.switches, "topology.switches", _switch)


def _switch(entry: wire.SwitchWire) -> Switch:
    return Switch(
        name=entry.name,
        nodes=expand(entry.nodes, "nodes") if entry.nodes is not None else (),
        switches=expand(entry.switches, "switches") if entry.switches is not None else (),
    )


def _span(value: wire.SpanWire, path: str, minimum: int) -> Span:
    """Return a range; a bare integer is exact and, like a range's maximum, at least 1."""
    if isinstance(value, int):
        if value < 1:
            raise InputError(f"{value} is below 1", path=path)
        return Span.exactly(value)
    low, high = value
    if low < minimum:
        raise InputError(f"{low} is below {minimum}", path=f"{path}[0]")
    with _below(path):
        return Span(minimum=low, maximum=high)


def _spans(values: Mapping[str, wire.SpanWire], path: str) -> dict[str, Span]:
    return {name: _span(value, f"{path}.{name}", 0) for name, value in values.items()}


def _request(entry: wire.JobWire) -> Request:
    return Request(
        cores=entry.cores,
        nodes=None if entry.nodes is None else _span(entry.nodes, "nodes", 1),
        cores_per_node=entry.cores_per_node,
        min_cores_per_node=entry.min_cores_per_node,
        cores_per_task=entry.cores_per_task,
        gres_per_node=_spans(entry.gres_per_node, "gres_per_node") if entry.gres_per_node else {},
        gres_total=_spans(entry.gres_total, "gres_total") if entry.gres_total else {},
        memory_mib_per_node=entry.memory_mib_per_node,
        memory_mib_per_core=entry.memory_mib_per_core,
        exclusive=entry.exclusive,
        max_switches=entry.max_switches,
        contiguous=entry.contiguous,
        features=frozenset(entry.features),
        required_nodes=_host_names(entry.required_nodes, "required_nodes"),
        excluded_nodes=frozenset(_host_names(entry.excluded_nodes, "excluded_nodes")),
        licenses=entry.licenses,
    )


def _host_names(text: str | None, path: str) -> tuple[str, ...]:
    return () if text is None else expand(text, path)


def _priority(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        shown = "null" if value is None else repr(value)
        raise InputError(f"{shown} is not a number", path="priority")
    return exact_priority(value)


def _job(entry: wire.JobWire) -> Job:
    return Job(
        id=entry.id,
        priority=_priority(entry.priority),
        request=_request(entry),
        submit_time=_time(entry.submit_time, "submit_time"),
        expected_start_time=_time(entry.expected_start_time, "expected_start_time"),
        user=entry.user,
        group=entry.group,
        account=entry.account,
        qos=entry.qos,
        partition=entry.partition,
        time_limit_s=entry.time_limit_s,
        hold=entry.hold,
        unsupported=tuple(entry.unsupported),
        kind=_choice(entry.kind, JobKind, "kind"),
        min_nodes=entry.min_nodes,
        max_nodes=entry.max_nodes,
        speedup=entry.speedup,
    )


def _running_job(entry: wire.RunningWire) -> RunningJob:
    nodes: dict[str, Resources] = {}
    for names, use in entry.nodes.items():
        path = f"nodes.{names}"
        with _below(path):
            amount = Resources(cores=use.cores, memory_mib=use.memory_mib, gres=use.gres)
        for name in expand(names, "nodes"):
            if name in nodes:
                raise InputError(f"node {name!r} stands twice", path=path)
            nodes[name] = amount
    return RunningJob(id=entry.id, nodes=nodes, end_time=_time(entry.end_time, "end_time"))


def _license(entry: wire.LicenseWire, path: str) -> License:
    with _below(path):
        return License(total=entry.total, free=entry.total if entry.free is None else entry.free)


def _partition(entry: wire.PartitionWire) -> Partition:
    return Partition(
        name=entry.name,
        nodes=_host_names(entry.nodes, "nodes"),
        max_nodes=entry.max_nodes,
        max_time_limit_s=entry.max_time_limit_s,
        state=_choice(entry.state.lower(), PartitionState, "state"),
    )


def _reservation(entry: wire.ReservationWire) -> Reservation:
    return Reservation(
        name=entry.name,
        nodes=expand(entry.nodes, "nodes"),
        start=_needed_time(entry.start, "start"),
        end=_needed_time(entry.end, "end"),
        users=tuple(entry.users),
    )
