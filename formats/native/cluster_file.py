"""Native snapshots, workloads (``aucsched-snapshot/1``, ``-workload/1``): read, checked, written.

Nodes that are alike stand as one entry with a hostlist, free as running jobs leave them. A file of
failures of a workload's nodes is read here, too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeVar

import msgspec

from ...cluster.errors import InputError, OptionError, errors_below
from ...cluster.jobs import RunningJob
from ...cluster.nodes import Node, Resources
from ...cluster.schedule import document_text as lines_of
from ...cluster.schedule import text_of_lines
from ...cluster.snapshot import Snapshot, check_free, held_resources
from ...cluster.text import shown
from ...cluster.workload import ClusterWorkload, Outage
from ..file_kinds import SNAPSHOT, WORKLOAD
from ..hostlist import charge, expand, fold, one_file
from ..jsontext import decode
from ..reading import read_document
from ..writing import write_text
from .forms import FileForm, FileObject, FromOne, FromZero, GresCounts, Hosts, each, file_form
from .topology_wire import TopologyWire, build_topology, written_topology

T = TypeVar("T", Snapshot, ClusterWorkload)


#: One node, or with a hostlist as its name several alike; of their free figures what others differ.
_NODE = FileForm(
    Node,
    about="One node, or with a hostlist as its name several alike.",
    first=("name", "cores", "free_cores", "memory_mib", "free_memory_mib", "gres", "free_gres"),
    without=("name", "free"),
    own={
        "name": (Hosts,),
        "cores": (FromOne,),
        "free_gres": (GresCounts | None, None),
        **dict.fromkeys(("free_cores", "free_memory_mib"), (FromZero | None, None)),
    },
)


def build_nodes(entries: list[Any], held: Mapping[str, Resources]) -> tuple[Node, ...]:
    """Build every node of every entry; errors name the entry, which may stand for many nodes."""
    nodes: dict[str, Node] = {}
    entry_of: dict[str, int] = {}
    for index, entry in enumerate(entries):
        with errors_below(f"nodes[{index}]"):
            names = expand(entry.name, "name")
            charge(len(names) * len(entry.gres), "name")
            alike = _NODE.build(entry, name=names[0])
            for name in names:
                if entry_of.setdefault(name, index) != index:
                    raise InputError(f"{name!r} is listed at nodes[{entry_of[name]}] already", path="name")
                nodes[name] = _node(name, entry, alike, held.get(name))
    return tuple(nodes.values())


def _node(name: str, entry: Any, alike: Node, held: Resources | None) -> Node:
    # Snapshot refuses what is above the total, with the running job's path.
    capped = None if held is None else held.within(alike.total)
    node = replace(alike, name=name, free=_free(entry, alike.total.less(capped)))
    # A running job that does not fit is the greater error: Snapshot names it.
    if held is not None and capped is not None and (held.cores, held.gres) == (capped.cores, capped.gres):
        check_free(node, capped, "free.")
    return node


def _free(entry: Any, left: Resources) -> Resources:
    """Return a node's free figures: as given, by default what running jobs leave."""
    if entry.free_cores is None and entry.free_memory_mib is None and entry.free_gres is None:
        return left
    with errors_below("free"):
        return Resources(
            cores=left.cores if entry.free_cores is None else entry.free_cores,
            memory_mib=left.memory_mib if entry.free_memory_mib is None else entry.free_memory_mib,
            gres={**left.gres, **(entry.free_gres or {})},
        )


def written_nodes(nodes: Iterable[Node], held: Mapping[str, Resources]) -> list[Any]:
    """Return the nodes' entries, neighbours alike as one hostlist; ``held``: what runs, by node."""
    entries: list[Any] = []
    written = ((_entry(node, node.total.less(held.get(node.name))), node.name) for node in nodes)
    for encoded, group in groupby(written, key=lambda pair: msgspec.json.encode(pair[0])):
        names = [name for _, name in group]
        like = msgspec.json.decode(encoded, type=_NODE.struct)
        entries.extend(msgspec.structs.replace(like, name=folded) for folded in fold(names))
    return entries


def _entry(node: Node, left: Resources) -> Any:
    free = node.free
    given_gres = {name: free.gres.get(name, 0) for name, count in left.gres.items()}
    given_gres = {name: count for name, count in given_gres.items() if count != left.gres[name]}
    return _NODE.struct(
        name="",
        free_cores=None if free.cores == left.cores else free.cores,
        free_memory_mib=None if free.memory_mib == left.memory_mib else free.memory_mib,
        free_gres=given_gres or None,
        **_NODE.document(node),
    )


_OWN = {
    "format": (str,),
    "nodes": (GenericAlias(list, (_NODE.struct,)),),
    "topology": (TopologyWire | None, None),
}
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


#: Paths that begin with a member's name in Python -> as files have it.
_FILE_PATHS = {
    r"(nodes\[\d+\]\.free)\.": r"\1_",
    r"switches\b": "topology.switches",
}


@contextmanager
def _file_paths() -> Iterator[None]:
    """Let the InputErrors raised inside name members of several levels as files do."""
    try:
        yield
    except InputError as error:
        for python, file in _FILE_PATHS.items():
            error.path = re.sub(f"^{python}", file, error.path)
        raise


@_file_paths()
def _built(document: Any, form: FileForm[T]) -> T:
    """Return the checked snapshot or workload that decoded members describe."""
    runs = {}
    if form is SNAPSHOT_FILE:
        runs["running"] = each(document.running, "running", file_form(RunningJob).build)
    with errors_below("running"):
        held = held_resources(runs.get("running", ()))
    nodes = build_nodes(document.nodes, held)
    laid = build_topology(document.topology, [node.name for node in nodes])
    return form.build(document, nodes=nodes, switches=laid.switches, network=laid.network, **runs)


def document_text(value: Snapshot | ClusterWorkload, held: Mapping[str, Resources]) -> str:
    """Return a file's text: its members that are not the default, an entry of a list a line."""
    kind = SNAPSHOT if isinstance(value, Snapshot) else WORKLOAD
    form: FileForm[Any] = SNAPSHOT_FILE if kind == SNAPSHOT else WORKLOAD_FILE
    topology = written_topology(value.switches, value.network)
    own = {"format": FORMATS[kind], "nodes": written_nodes(value.nodes, held), "topology": topology}
    document = {"jobs": [], **form.document(value), **own}
    if kind == WORKLOAD:
        # All are free at first: only how many there are is written.
        document["licenses"] = {name: {"total": one.total} for name, one in value.licenses.items()}
    if topology is not None and topology.kind == "tree":
        text = f'{{"kind": "{topology.kind}", "switches": {text_of_lines(topology.switches)}}}'
        document["topology"] = msgspec.Raw(text.encode())
    return lines_of({name: document[name] for name in form.order if name == "jobs" or document.get(name)})


def load_snapshot(path: str | Path) -> Snapshot:
    """Read and check a snapshot file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is not a valid snapshot; names file, path and value.

    Examples:
        >>> import aucsched as au
        >>> au.save_snapshot(au.Snapshot(nodes=[au.Node(name="n", cores=8)]), "now.json")
        >>> load_snapshot("now.json").nodes[0].total.cores
        8
    """
    if str(path) == "slurm" and not Path(path).exists():
        advice = "aucsched snapshot slurm -o now.json makes one of the live queue"
        raise InputError(f"this is not a snapshot file: {advice}", file="slurm")
    return read_document(path, parse_snapshot)


def snapshot_of(given: Snapshot | str | Path, called: str = "snapshot") -> Snapshot:
    """Return a snapshot, read where a file is named; ``called`` is the argument's name.

    Raises:
        InputError: the file cannot be read.
        OptionError: it is neither.
    """
    if isinstance(given, Snapshot):
        return given
    if not isinstance(given, (str, Path)):
        raise OptionError(f"{called}: {shown(given)} is neither a Snapshot nor a file's name")
    return load_snapshot(given)


@one_file()
def parse_snapshot(text: bytes | str) -> Snapshot:
    """Return the snapshot in a snapshot file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid snapshot.

    Examples:
        >>> text = b'{"format": "aucsched-snapshot/1", "nodes": [{"name": "n[1-2]", "cores": 8}]}'
        >>> [node.name for node in parse_snapshot(text).nodes]
        ['n1', 'n2']
    """
    return _built(decode(text, SNAPSHOT_FILE.struct, FORMATS[SNAPSHOT]), SNAPSHOT_FILE)


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot in the native form (``aucsched-snapshot/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written (no part of it stays), or this is no snapshot.

    Examples:
        >>> import aucsched
        >>> save_snapshot(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]), "now.json")
    """
    write_text(path, snapshot_to_json(snapshot))


def snapshot_to_json(snapshot: Snapshot) -> str:
    """Return the snapshot file's text; reading it gives an equal snapshot."""
    return document_text(_of_kind("snapshot", snapshot, Snapshot), held_resources(snapshot.running))


FAILURES_FORMAT = "aucsched-failures/1"
_OUTAGE = file_form(Outage)
#: The whole file: outages in any order.
_FAILURES: Any = msgspec.defstruct(
    "Failures",
    [("format", str), ("failures", GenericAlias(list, _OUTAGE.struct))],
    bases=(FileObject,),
    kw_only=True,
)


def load_workload(path: str | Path) -> ClusterWorkload:
    """Read and check a workload file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid workload; names file, path and value.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> aucsched.save_workload(made, "tiny.json")
        >>> load_workload("tiny.json") == made
        True
    """
    return read_document(path, parse_workload)


@one_file()
def parse_workload(text: bytes | str) -> ClusterWorkload:
    """Return the workload in a workload file's text; errors name the path and the value.

    Raises:
        InputError: it is no valid workload.

    Examples:
        >>> nodes = '"nodes": [{"name": "n", "cores": 8}], "jobs": []'
        >>> text = f'{{"format": "aucsched-workload/1", "name": "w", {nodes}}}'
        >>> parse_workload(text.encode()).name
        'w'
    """
    document: Any = decode(text, WORKLOAD_FILE.struct, FORMATS[WORKLOAD])
    _check_all_free(document)
    return _built(document, WORKLOAD_FILE)


def _check_all_free(document: Any) -> None:
    """Refuse a free figure: at a workload's beginning everything is free."""
    message = "given, but a workload begins with everything free"
    for index, entry in enumerate(document.nodes):
        for member in ("free_cores", "free_memory_mib", "free_gres"):
            if getattr(entry, member) is not None:
                raise InputError(message, path=f"nodes[{index}].{member}")
    for name, entry in document.licenses.items():
        if entry.free is not None:
            raise InputError(message, path=f"licenses.{name}.free")


def save_workload(workload: ClusterWorkload, path: str | Path) -> None:
    """Write a workload in the native form (``aucsched-workload/1``); ``-`` is standard output.

    Raises:
        InputError: the file cannot be written (no part of it stays), or this is no workload.

    Examples:
        >>> import aucsched
        >>> made = aucsched.ClusterWorkload(name="tiny", nodes=[aucsched.Node(name="n", cores=8)])
        >>> save_workload(made, "tiny.json")
    """
    write_text(path, workload_to_json(workload))


def workload_to_json(workload: ClusterWorkload) -> str:
    """Return the workload file's text, one line for each job; read, it gives an equal workload."""
    return document_text(_of_kind("workload", workload, ClusterWorkload), {})


def _of_kind(name: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise InputError(f"{shown(value)} is not a {kind.__name__}", path=name)
    return value


def load_failures(path: str | Path) -> tuple[Outage, ...]:
    """Read and check a file of failures, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no valid failures file; names file, path, value.
    """

    def parse(text: bytes) -> tuple[Outage, ...]:
        return each(decode(text, _FAILURES, FAILURES_FORMAT).failures, "failures", _OUTAGE.build)

    return read_document(path, parse)
