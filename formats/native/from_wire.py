"""Decoded members of the native files made into the types of ``cluster``; errors name member and value.

Snapshots and workloads are read by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from ...cluster.errors import InputError
from ...cluster.jobs import Job, JobKind, Request, Span
from ...cluster.value_types import exact_priority
from ...cluster.limits import JOB_MEMBERS, JobSet, Limit
from ...cluster.nodes import License, Node, NodeState, Partition, PartitionState, Resources
from ...cluster.snapshot import check_free, free_resources
from ..hostlist import charge, expand
from . import wire

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

#: Seconds since the epoch at which years get a fifth digit, which ISO 8601 times have not.
_YEAR_10000 = 253_402_300_800


@contextmanager
def below(prefix: str) -> Iterator[None]:
    """Put an InputError's path below ``prefix``."""
    try:
        yield
    except InputError as error:
        raise error.under(prefix) from error


def each(entries: Iterable[Any], member: str, build: Callable[[Any], T]) -> tuple[T, ...]:
    """Build every entry of a list; an error's path names the entry."""
    built: list[T] = []
    try:
        built.extend(build(entry) for entry in entries)
    except InputError as error:
        raise error.under(f"{member}[{len(built)}]") from error
    return tuple(built)


def seconds(value: wire.TimeWire | None, path: str) -> float | None:
    """Return a time in seconds since the epoch, None where none is given."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if not 0 <= value < _YEAR_10000:
            raise InputError(f"{value} is not a time in seconds since 1970", path=path)
        return value
    try:
        moment = datetime.fromisoformat(value)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{value[:60]!r} is not an ISO 8601 time", path=path) from None
    if not 0 <= since < _YEAR_10000:
        raise InputError(f"{value[:60]!r} is not a time from 1970 to 9999", path=path)
    return since


def needed_seconds(value: wire.TimeWire, path: str) -> float:
    """Return a time in seconds since the epoch."""
    moment = seconds(value, path)
    return 0.0 if moment is None else moment


def _choice(value: str, choices: type[E], path: str) -> E:
    try:
        return choices(value)
    except ValueError:
        raise InputError(f"{value!r} is not one of {', '.join(choices)}", path=path) from None


def build_nodes(entries: list[wire.NodeWire], held: Mapping[str, Resources]) -> tuple[Node, ...]:
    """Build every node of every entry; errors name the entry, which may stand for many nodes."""
    nodes: dict[str, Node] = {}
    entry_of: dict[str, int] = {}
    for index, entry in enumerate(entries):
        with below(f"nodes[{index}]"):
            kind = _kind(entry)
            names = expand(entry.name, "name")
            charge(len(names) * len(entry.gres), "name")
            for name in names:
                if entry_of.setdefault(name, index) != index:
                    raise InputError(f"{name!r} stands at nodes[{entry_of[name]}] already", path="name")
                nodes[name] = _node(name, kind, held.get(name))
    return tuple(nodes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What an entry says of each of its nodes, made once for all of them."""

    entry: wire.NodeWire
    total: Resources
    state: NodeState
    features: frozenset[str]
    partitions: tuple[str, ...]


def _kind(entry: wire.NodeWire) -> _Kind:
    with _renamed("gres", "gres"):
        total = Resources(cores=entry.cores, memory_mib=entry.memory_mib, gres=entry.gres)
    return _Kind(
        entry=entry,
        total=total,
        state=_choice(entry.state, NodeState, "state"),
        features=frozenset(entry.features),
        partitions=tuple(entry.partitions),
    )


def _node(name: str, kind: _Kind, held: Resources | None) -> Node:
    total = kind.total
    capped = _capped(held, total)
    left = free_resources(total, capped)
    node = Node(
        name=name,
        total=total,
        free=_free(kind.entry, left),
        state=kind.state,
        features=kind.features,
        partitions=kind.partitions,
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


def _span(value: wire.SpanWire, path: str, minimum: int) -> Span:
    """Return a range; a bare integer is exact and, like a range's maximum, at least 1."""
    if isinstance(value, int):
        if value < 1:
            raise InputError(f"{value} is below 1", path=path)
        return Span.exactly(value)
    low, high = value
    if low < minimum:
        raise InputError(f"{low} is below {minimum}", path=f"{path}[0]")
    with below(path):
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


def build_job(entry: wire.JobWire) -> Job:
    """Return the job that an entry describes."""
    return Job(
        id=entry.id,
        priority=_priority(entry.priority),
        request=_request(entry),
        submit_time=seconds(entry.submit_time, "submit_time"),
        expected_start_time=seconds(entry.expected_start_time, "expected_start_time"),
        promised_start=seconds(entry.promised_start, "promised_start"),
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


def build_license(entry: wire.LicenseWire, path: str) -> License:
    """Return a licence's counts; ``path`` is its place in the file."""
    with below(path):
        return License(total=entry.total, free=entry.total if entry.free is None else entry.free)


def build_limit(entry: wire.LimitWire) -> Limit:
    """Return the limit that an entry describes."""
    given = {} if entry.jobs is None else {name: getattr(entry.jobs, name) for name in JOB_MEMBERS}
    with below("jobs"):
        jobs = JobSet(
            **{name: (value,) if isinstance(value, str) else tuple(value) for name, value in given.items()}
        )
    return Limit(name=entry.name, jobs=jobs, most=entry.max, per=entry.per)


def build_partition(entry: wire.PartitionWire) -> Partition:
    """Return the partition that an entry describes."""
    return Partition(
        name=entry.name,
        nodes=_host_names(entry.nodes, "nodes"),
        max_nodes=entry.max_nodes,
        max_time_limit_s=entry.max_time_limit_s,
        state=_choice(entry.state.lower(), PartitionState, "state"),
    )
