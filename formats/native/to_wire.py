"""The types of ``cluster`` made into members of the native files, and those into text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from typing import Any

import msgspec

from ...cluster.jobs import Job, Request, Span
from ...cluster.limits import JOB_MEMBERS, Limit
from ...cluster.nodes import License, Node, Partition, Resources
from ...cluster.snapshot import free_resources
from ..hostlist import fold, join
from . import wire

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def document_text(document: msgspec.Struct, always: Collection[str]) -> str:
    """Return a file's text: its members that are not the default, an entry of a list a line.

    ``always`` are members that stand even when they are empty.
    """
    members = (f'"{name}": {_lines(value)}' for name, value in _members(document, always))
    return "{" + ",\n ".join(members) + "}\n"


def _members(document: msgspec.Struct, always: Collection[str]) -> Iterable[tuple[str, Any]]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(document)}
    values = ((name, getattr(document, name)) for name in document.__struct_fields__)
    return ((name, value) for name, value in values if name in always or (value and value != defaults[name]))


def _lines(value: Any) -> str:
    """Encode a top-level member; each entry of a list stands on a line of its own."""
    if isinstance(value, wire.TopologyWire) and value.switches:
        return f'{{"kind": "{value.kind}", "switches": {_lines(value.switches)}}}'
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_ENCODER.encode(entry).decode() for entry in value) + "]"
    return _ENCODER.encode(value).decode()


def written_time(seconds: float | None) -> wire.TimeWire | None:
    """Return a time as ISO 8601 in UTC, as a number where it holds a fraction of a second."""
    if seconds is None or seconds != int(seconds):
        return seconds
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def needed_time(seconds: float) -> wire.TimeWire:
    """Return a time that must stand."""
    written = written_time(seconds)
    return seconds if written is None else written


def written_nodes(nodes: Iterable[Node], held: Mapping[str, Resources]) -> list[wire.NodeWire]:
    """Return the nodes' entries, neighbours alike as one hostlist; ``held`` is what runs, by node name."""
    entries: list[wire.NodeWire] = []
    written = ((_node(node, free_resources(node.total, held.get(node.name))), node.name) for node in nodes)
    for encoded, group in groupby(written, key=lambda pair: msgspec.json.encode(pair[0])):
        names = [name for _, name in group]
        for folded in fold(names):
            entry = msgspec.json.decode(encoded, type=wire.NodeWire)
            entry.name = folded
            entries.append(entry)
    return entries


def _node(node: Node, left: Resources) -> wire.NodeWire:
    total, free = node.total, node.free
    given_gres = {name: count for name, count in free.gres.items() if count != left.gres[name]}
    return wire.NodeWire(
        name="",
        cores=total.cores,
        free_cores=None if free.cores == left.cores else free.cores,
        memory_mib=total.memory_mib,
        free_memory_mib=None if free.memory_mib == left.memory_mib else free.memory_mib,
        gres=dict(total.gres),
        free_gres=given_gres or None,
        state=node.state.value,
        features=sorted(node.features),
        partitions=list(node.partitions),
    )


def _span(span: Span) -> wire.SpanWire:
    return span.minimum if span.is_exact else (span.minimum, span.maximum)


def _priority(value: int | Fraction) -> int | Decimal:
    if isinstance(value, int):
        return value
    with localcontext(prec=100):
        return Decimal(value.numerator) / Decimal(value.denominator)


def job_members(job: Job) -> dict[str, Any]:
    """Return the members of a job's entry by name."""
    return {
        "id": job.id,
        "priority": _priority(job.priority),
        "partition": job.partition,
        "time_limit_s": job.time_limit_s,
        "submit_time": written_time(job.submit_time),
        "expected_start_time": written_time(job.expected_start_time),
        "promised_start": written_time(job.promised_start),
        "user": job.user,
        "group": job.group,
        "account": job.account,
        "qos": job.qos,
        "hold": job.hold,
        "unsupported": list(job.unsupported),
        "kind": job.kind.value,
        "min_nodes": job.min_nodes,
        "max_nodes": job.max_nodes,
        "speedup": job.speedup,
        **_request(job.request),
    }


def _request(request: Request) -> dict[str, Any]:
    return {
        "cores": request.cores,
        "nodes": None if request.nodes is None else _span(request.nodes),
        "cores_per_node": request.cores_per_node,
        "min_cores_per_node": request.min_cores_per_node,
        "cores_per_task": request.cores_per_task,
        "gres_per_node": {name: _span(span) for name, span in request.gres_per_node.items()},
        "gres_total": {name: _span(span) for name, span in request.gres_total.items()},
        "memory_mib_per_node": request.memory_mib_per_node,
        "memory_mib_per_core": request.memory_mib_per_core,
        "exclusive": request.exclusive,
        "max_switches": request.max_switches,
        "contiguous": request.contiguous,
        "features": sorted(request.features),
        "required_nodes": join(request.required_nodes) or None,
        "excluded_nodes": join(sorted(request.excluded_nodes)) or None,
        "licenses": dict(request.licenses),
    }


def written_license(entry: License) -> wire.LicenseWire:
    """Return a licence's entry."""
    return wire.LicenseWire(total=entry.total, free=entry.free)


def written_limit(entry: Limit) -> wire.LimitWire:
    """Return a limit's entry."""
    names = {name: list(getattr(entry.jobs, name)) for name in JOB_MEMBERS}
    jobs = {name: given[0] if len(given) == 1 else given for name, given in names.items() if given}
    return wire.LimitWire(
        name=entry.name,
        jobs=wire.JobSetWire(**jobs) if jobs else None,
        max=dict(entry.most),
        per=entry.per,
    )


def written_partition(entry: Partition) -> wire.PartitionWire:
    """Return a partition's entry."""
    return wire.PartitionWire(
        name=entry.name,
        nodes=join(entry.nodes) or None,
        max_nodes=entry.max_nodes,
        max_time_limit_s=entry.max_time_limit_s,
        state=entry.state.value,
    )
