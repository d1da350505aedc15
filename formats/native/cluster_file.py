"""Snapshots and workloads as files: what the two have in common, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ...cluster.errors import InputError, errors_below
from ...cluster.nodes import Resources
from ...cluster.snapshot import Snapshot, held_resources
from ...cluster.workload import ClusterWorkload
from ..file_kinds import SNAPSHOT, WORKLOAD, instead
from ..jsontext import decode
from .file_objects import FileForm
from .node_entries import NodeWire, build_nodes, written_nodes
from .topology_wire import TopologyWire, build_topology, written_topology

T = TypeVar("T", Snapshot, ClusterWorkload)

_OWN = {"format": (str,), "nodes": (list[NodeWire],), "topology": (TopologyWire | None, None)}
_REPLACED = ("nodes", "switches", "network")
SNAPSHOT_FILE = FileForm(
    Snapshot,
    about="The whole file.",
    first=("format", "nodes", "jobs", "time", "topology"),
    without=_REPLACED,
    own=_OWN,
)
WORKLOAD_FILE = FileForm(
    ClusterWorkload,
    name="Workload",
    about="The whole file: an empty cluster, and the jobs in order of arrival.",
    first=("format", "name", "nodes", "jobs", "topology", "licenses"),
    without=_REPLACED,
    own=_OWN,
)
#: What a file's first member says of it.
FORMATS = {SNAPSHOT: "aucsched-snapshot/1", WORKLOAD: "aucsched-workload/1"}

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def decoded(text: bytes, form: FileForm[T], kind: str) -> Any:
    """Return a file's decoded members; ``kind`` is SNAPSHOT or WORKLOAD.

    Raises:
        InputError: it is no such file.
    """
    try:
        document: Any = decode(text, form.struct, FORMATS[kind])
    except InputError as error:
        raise instead(text, kind, error) from error
    return document


def built(document: Any, form: FileForm[T]) -> T:
    """Return the checked snapshot or workload that decoded members describe."""
    first = form.part(document, "running")
    with errors_below("running"):
        held = held_resources(first.get("running", ()))
    nodes = build_nodes(document.nodes, held)
    laid = build_topology(document.topology, [node.name for node in nodes])
    return form.build(document, nodes=nodes, switches=laid.switches, network=laid.network, **first)


def document_text(value: Snapshot | ClusterWorkload, held: Mapping[str, Resources]) -> str:
    """Return a file's text: its members that are not the default, an entry of a list a line.

    Args:
        value: a snapshot or a workload.
        held: what runs on its nodes, by name.
    """
    kind = SNAPSHOT if isinstance(value, Snapshot) else WORKLOAD
    form: FileForm[Any] = SNAPSHOT_FILE if kind == SNAPSHOT else WORKLOAD_FILE
    own = {
        "format": FORMATS[kind],
        "nodes": written_nodes(value.nodes, held),
        "topology": written_topology(value.switches, value.network),
    }
    document = {"jobs": [], **form.document(value), **own}
    if kind == WORKLOAD:
        # All are free at first: only how many there are is written.
        document["licenses"] = {name: {"total": one.total} for name, one in value.licenses.items()}
    members = (
        f'"{name}": {_lines(document[name])}' for name in form.order if name == "jobs" or document.get(name)
    )
    return "{" + ",\n ".join(members) + "}\n"


def _lines(value: Any) -> str:
    """Encode a top-level member; each entry of a list stands on a line of its own."""
    if isinstance(value, TopologyWire) and value.switches:
        return f'{{"kind": "{value.kind}", "switches": {_lines(value.switches)}}}'
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_ENCODER.encode(entry).decode() for entry in value) + "]"
    return _ENCODER.encode(value).decode()
