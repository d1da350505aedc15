"""Native snapshots (``aucsched-snapshot/1``): read and checked."""

from __future__ import annotations

from pathlib import Path

from ...cluster.errors import InputError, OptionError
from ...cluster.jobs import RunningJob
from ...cluster.keywords import shown
from ...cluster.limits import JOB_MEMBERS
from ...cluster.nodes import Reservation, Resources
from ...cluster.snapshot import Snapshot, held_resources
from ..file_kinds import SNAPSHOT, instead
from ..hostlist import charge, expand, one_file
from ..jsontext import decode
from ..reading import read_document
from . import wire
from .from_wire import (
    below,
    build_job,
    build_license,
    build_limit,
    build_nodes,
    build_partition,
    each,
    needed_seconds,
    seconds,
)
from .topology_wire import build_topology


def load_snapshot(path: str | Path) -> Snapshot:
    """Read and check a snapshot file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is not a valid snapshot; names file, path and value.

    Examples:
        >>> import aucsched
        >>> aucsched.save_snapshot(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]), "now.json")
        >>> load_snapshot("now.json").nodes[0].total.cores
        8
    """
    return read_document(path, parse_snapshot)


def snapshot_of(given: Snapshot | str | Path) -> Snapshot:
    """Return a snapshot, read where a file is named.

    Raises:
        InputError: the file cannot be read.
        OptionError: it is neither.
    """
    if isinstance(given, Snapshot):
        return given
    if not isinstance(given, (str, Path)):
        raise OptionError(f"snapshot: {shown(given)} is neither a Snapshot nor a file's name")
    return load_snapshot(given)


@one_file()
def parse_snapshot(text: bytes) -> Snapshot:
    """Return the snapshot in a snapshot file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid snapshot.

    Examples:
        >>> text = b'{"format": "aucsched-snapshot/1", "nodes": [{"name": "n[1-2]", "cores": 8}], "jobs": []}'
        >>> [node.name for node in parse_snapshot(text).nodes]
        ['n1', 'n2']
    """
    try:
        document = decode(text, wire.SnapshotWire)
        if document.format != wire.FORMAT:
            raise InputError(f"{document.format!r} is not {wire.FORMAT!r}", path="format")  # noqa: TRY301
    except InputError as error:
        raise instead(text, SNAPSHOT, error) from error
    return snapshot_from_wire(document)


def snapshot_from_wire(document: wire.SnapshotWire) -> Snapshot:
    """Return the checked snapshot that decoded members describe."""
    running = each(document.running, "running", _running_job)
    with below("running"):
        held = held_resources(running)
    nodes = build_nodes(document.nodes, held)
    laid = build_topology(document.topology, [node.name for node in nodes])
    return Snapshot(
        time=seconds(document.time, "time"),
        nodes=nodes,
        jobs=each(document.jobs, "jobs", build_job),
        switches=laid.switches,
        network=laid.network,
        running=running,
        licenses={
            name: build_license(entry, f"licenses.{name}") for name, entry in document.licenses.items()
        },
        partitions=each(document.partitions, "partitions", build_partition),
        reservations=each(document.reservations, "reservations", _reservation),
        limits=each(document.limits, "limits", build_limit),
        notes=tuple(document.notes),
        unread=tuple(document.unread),
    )


def _running_job(entry: wire.RunningWire) -> RunningJob:
    nodes: dict[str, Resources] = {}
    for names, use in entry.nodes.items():
        path = f"nodes.{names}"
        with below(path):
            amount = Resources(cores=use.cores, memory_mib=use.memory_mib, gres=use.gres)
        expanded = expand(names, "nodes")
        charge(len(expanded) * len(use.gres), path)
        for name in expanded:
            if name in nodes:
                raise InputError(f"node {name!r} stands twice", path=path)
            nodes[name] = amount
    owners = {name: getattr(entry, name) for name in JOB_MEMBERS}
    return RunningJob(id=entry.id, nodes=nodes, end_time=seconds(entry.end_time, "end_time"), **owners)


def _reservation(entry: wire.ReservationWire) -> Reservation:
    return Reservation(
        name=entry.name,
        nodes=expand(entry.nodes, "nodes"),
        start=needed_seconds(entry.start, "start"),
        end=needed_seconds(entry.end, "end"),
        users=tuple(entry.users),
    )
