"""Writing files: snapshots in the native format, and any text, whole or not at all."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import msgspec

from ...cluster.jobs import RunningJob
from ...cluster.limits import JOB_MEMBERS
from ...cluster.nodes import Reservation
from ...cluster.snapshot import Snapshot, held_resources
from ...cluster.text import escaped
from ..binary import write_bytes
from ..hostlist import fold, join
from . import wire
from .to_wire import (
    document_text,
    job_members,
    needed_time,
    written_license,
    written_limit,
    written_nodes,
    written_partition,
    written_time,
)
from .topology_wire import written_topology


def write_text(path: str | Path, text: str) -> None:
    """Write a text as ``write_bytes`` does, in UTF-8 and with its hidden characters as escapes.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    shown = escaped(text)
    if str(path) == "-":
        sys.stdout.write(shown)
    else:
        write_bytes(path, shown.encode())


def csv_field(text: str) -> str:
    """Return a text as a field of CSV (RFC 4180), in quotes where it needs them."""
    if not any(mark in text for mark in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot in the native form (``aucsched-snapshot/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written; nothing is left behind.

    Examples:
        >>> import aucsched
        >>> save_snapshot(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]), "now.json")
    """
    write_text(path, snapshot_to_json(snapshot))


def snapshot_to_json(snapshot: Snapshot) -> str:
    """Return the snapshot file's text; reading it gives an equal snapshot."""
    return document_text(snapshot_to_wire(snapshot), always=("jobs",))


def snapshot_to_wire(snapshot: Snapshot) -> wire.SnapshotWire:
    """Return the members of the snapshot file; neighbouring nodes alike become one hostlist."""
    held = held_resources(snapshot.running)
    return wire.SnapshotWire(
        format=wire.FORMAT,
        time=written_time(snapshot.time),
        nodes=written_nodes(snapshot.nodes, held),
        topology=written_topology(snapshot.switches, snapshot.network),
        jobs=[wire.JobWire(**job_members(job)) for job in snapshot.jobs],
        running=[_running(job) for job in snapshot.running],
        licenses={name: written_license(entry) for name, entry in snapshot.licenses.items()},
        partitions=[written_partition(entry) for entry in snapshot.partitions],
        reservations=[_reservation(entry) for entry in snapshot.reservations],
        limits=[written_limit(entry) for entry in snapshot.limits],
        notes=list(snapshot.notes),
        unread=list(snapshot.unread),
    )


def _running(job: RunningJob) -> wire.RunningWire:
    nodes: dict[str, wire.UseWire] = {}
    uses = (
        (wire.UseWire(cores=use.cores, gres=dict(use.gres), memory_mib=use.memory_mib), name)
        for name, use in job.nodes.items()
    )
    for encoded, group in groupby(uses, key=lambda pair: msgspec.json.encode(pair[0])):
        for folded in fold([name for _, name in group]):
            nodes[folded] = msgspec.json.decode(encoded, type=wire.UseWire)
    owners = {name: getattr(job, name) for name in JOB_MEMBERS}
    return wire.RunningWire(id=job.id, nodes=nodes, end_time=written_time(job.end_time), **owners)


def _reservation(entry: Reservation) -> wire.ReservationWire:
    return wire.ReservationWire(
        name=entry.name,
        nodes=join(entry.nodes),
        start=needed_time(entry.start),
        end=needed_time(entry.end),
        users=list(entry.users),
    )
