"""Files out: snapshots in the native form, and any text written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from ..cluster.jobs import Job, Request, RunningJob, Span
from ..cluster.nodes import License, Node, Partition, Reservation, Resources, Switch
from ..cluster.snapshot import Snapshot, free_resources, held_resources
from . import wire
from .binary import write_bytes
from .hostlist import fold, join


def write_text(path: str | Path, text: str) -> None:
    """Write a file whole: to a temporary file beside it, then renamed; ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        write_bytes(path, text.encode())


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot in the native form (``aucsched-snapshot/1``); ``-`` is standard output."""
    write_text(path, snapshot_to_json(snapshot))


def snapshot_to_json(snapshot: Snapshot) -> str:
    """Return the snapshot file's text; reading it gives an equal snapshot."""
    members = (f'"{name}": {_lines(value)}' for name, value in _members(snapshot_to_wire(snapshot)))
    return "{" + ",\n ".join(members) + "}\n"


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _members(document: wire.SnapshotWire) -> Iterable[tuple[str, Any]]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(document)}
    values = ((name, getattr(document, name)) for name in document.__struct_fields__)
    return ((name, value) for name, value in values if name == "jobs" or (value and value != defaults[name]))


def _lines(value: Any) -> str:
    """Encode a top-level member; each entry of a list stands on a line of its own."""
    if isinstance(value, wire.TopologyWire) and value.switches:
        return f'{{"kind": "{value.kind}", "switches": {_lines(value.switches)}}}'
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_ENCODER.encode(entry).decode() for entry in value) + "]"
    return _ENCODER.encode(value).decode()


def snapshot_to_wire(snapshot: Snapshot) -> wire.SnapshotWire:
    """Return the members of the snapshot file; neighbouring nodes alike become one hostlist."""
    held = held_resources(snapshot.running)
    return wire.SnapshotWire(
        format=wire.FORMAT,
        time=_time(snapshot.time),
        nodes=_nodes(snapshot.nodes, held),
        topology=_topology(snapshot.switches),
        jobs=[_job(job) for job in snapshot.jobs],
        running=[_running(job) for job in snapshot.running],
        licenses={name: _license(entry) for name, entry in snapshot.licenses.items()},
        partitions=[_partition(entry) for entry in snapshot.partitions],
        reservations=[_reservation(entry) for entry in snapshot.reservations],
        notes=list(snapshot.notes),
    )


def _time(seconds: float | None) -> wire.TimeWire | None:
    if seconds is None or seconds != int(seconds):
        return seconds
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _needed_time(seconds: float) -> wire.TimeWire:
    written = _time(seconds)
    return seconds if written is None else written


def _nodes(nodes: Iterable[Node], held: Mapping[str, Resources]) -> list[wire.NodeWire]:
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


def _topology(switches: Sequence[Switch] | None) -> wire.TopologyWire | None:
    if switches is None:
        return None
    return wire.TopologyWire(
        kind="tree",
        switches=[
            wire.SwitchWire(
                name=switch.name,
                nodes=join(switch.nodes) if switch.nodes else None,
                switches=join(switch.switches) if switch.switches else None,
            )
            for switch in switches
        ],
    )


def _span(span: Span) -> wire.SpanWire:
    return span.minimum if span.is_exact else (span.minimum, span.maximum)


def _priority(value: int | Fraction) -> int | Decimal:
    if isinstance(value, int):
        return value
    with localcontext(prec=100):
        return Decimal(value.numerator) / Decimal(value.denominator)


def _job(job: Job) -> wire.JobWire:
    return wire.JobWire(
        id=job.id,
        priority=_priority(job.priority),
        partition=job.partition,
        time_limit_s=job.time_limit_s,
        submit_time=_time(job.submit_time),
        expected_start_time=_time(job.expected_start_time),
        user=job.user,
        group=job.group,
        account=job.account,
        qos=job.qos,
        hold=job.hold,
        unsupported=list(job.unsupported),
        kind=job.kind.value,
        min_nodes=job.min_nodes,
        max_nodes=job.max_nodes,
        speedup=job.speedup,
        **_request(job.request),
    )


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


def _running(job: RunningJob) -> wire.RunningWire:
    nodes: dict[str, wire.UseWire] = {}
    uses = (
        (wire.UseWire(cores=use.cores, gres=dict(use.gres), memory_mib=use.memory_mib), name)
        for name, use in job.nodes.items()
    )
    for encoded, group in groupby(uses, key=lambda pair: msgspec.json.encode(pair[0])):
        for folded in fold([name for _, name in group]):
            nodes[folded] = msgspec.json.decode(encoded, type=wire.UseWire)
    return wire.RunningWire(id=job.id, nodes=nodes, end_time=_time(job.end_time))


def _license(entry: License) -> wire.LicenseWire:
    return wire.LicenseWire(total=entry.total, free=entry.free)


def _partition(entry: Partition) -> wire.PartitionWire:
    return wire.PartitionWire(
        name=entry.name,
        nodes=join(entry.nodes) or None,
        max_nodes=entry.max_nodes,
        max_time_limit_s=entry.max_time_limit_s,
        state=entry.state.value,
    )


def _reservation(entry: Reservation) -> wire.ReservationWire:
    return wire.ReservationWire(
        name=entry.name,
        nodes=join(entry.nodes),
        start=_needed_time(entry.start),
        end=_needed_time(entry.end),
        users=list(entry.users),
    )
