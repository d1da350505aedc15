"""Entries of nodes in the native files: several alike as a hostlist, free as running jobs leave them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Annotated, Any

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError, errors_below
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.snapshot import check_free, free_resources
from ...cluster.value_types import Choice
from ..hostlist import charge, expand, fold
from .file_objects import FileObject
from .forms import HOSTLIST

#: JSON types with what their schemas say of them; decoding looks at the type only.
Hosts = Annotated[str, msgspec.Meta(extra_json_schema=HOSTLIST)]
FromZero = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": LARGEST_COUNT})]
FromOne = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": LARGEST_COUNT})]
_Gres = dict[Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})], FromZero]


class NodeWire(FileObject):
    """One node, or with a hostlist as its name several alike."""

    name: Hosts
    cores: FromOne
    free_cores: FromZero | None = None
    memory_mib: FromZero | None = None
    free_memory_mib: FromZero | None = None
    gres: _Gres = msgspec.field(default_factory=dict)
    free_gres: _Gres | None = None
    state: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(NodeState)})] = "idle"
    features: list[str] = msgspec.field(default_factory=list)
    partitions: list[str] = msgspec.field(default_factory=list)


def build_nodes(entries: list[NodeWire], held: Mapping[str, Resources]) -> tuple[Node, ...]:
    """Build every node of every entry; errors name the entry, which may stand for many nodes."""
    nodes: dict[str, Node] = {}
    entry_of: dict[str, int] = {}
    for index, entry in enumerate(entries):
        with errors_below(f"nodes[{index}]"):
            alike = _alike(entry)
            names = expand(entry.name, "name")
            charge(len(names) * len(entry.gres), "name")
            for name in names:
                if entry_of.setdefault(name, index) != index:
                    raise InputError(f"{name!r} stands at nodes[{entry_of[name]}] already", path="name")
                nodes[name] = _node(name, entry, alike, held.get(name))
    return tuple(nodes.values())


def _alike(entry: NodeWire) -> dict[str, Any]:
    """Return what an entry says of each of its nodes, made once for all of them."""
    return {
        "total": Resources(cores=entry.cores, memory_mib=entry.memory_mib, gres=entry.gres),
        "state": Choice(NodeState).coerced(entry.state, "state"),
        "features": frozenset(entry.features),
        "partitions": tuple(entry.partitions),
    }


def _node(name: str, entry: NodeWire, alike: dict[str, Any], held: Resources | None) -> Node:
    total = alike["total"]
    capped = _capped(held, total)
    node = Node(name=name, free=_free(entry, free_resources(total, capped)), **alike)
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


def _free(entry: NodeWire, left: Resources) -> Resources:
    """Return a node's free figures: as given, by default what running jobs leave."""
    if entry.free_cores is None and entry.free_memory_mib is None and entry.free_gres is None:
        return left
    try:
        return Resources(
            cores=left.cores if entry.free_cores is None else entry.free_cores,
            memory_mib=left.memory_mib if entry.free_memory_mib is None else entry.free_memory_mib,
            gres={**left.gres, **(entry.free_gres or {})},
        )
    except InputError as error:
        raise InputError(error.message, path=f"free_{error.path}") from error


def written_nodes(nodes: Iterable[Node], held: Mapping[str, Resources]) -> list[NodeWire]:
    """Return the nodes' entries, neighbours alike as one hostlist; ``held`` is what runs, by node name."""
    entries: list[NodeWire] = []
    written = ((_entry(node, free_resources(node.total, held.get(node.name))), node.name) for node in nodes)
    for encoded, group in groupby(written, key=lambda pair: msgspec.json.encode(pair[0])):
        names = [name for _, name in group]
        like = msgspec.json.decode(encoded, type=NodeWire)
        entries.extend(msgspec.structs.replace(like, name=folded) for folded in fold(names))
    return entries


def _entry(node: Node, left: Resources) -> NodeWire:
    total, free = node.total, node.free
    given_gres = {name: free.gres.get(name, 0) for name, count in left.gres.items()}
    given_gres = {name: count for name, count in given_gres.items() if count != left.gres[name]}
    return NodeWire(
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
