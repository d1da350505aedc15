"""A topology in any form: Slurm's, a snapshot's member, a graph (GraphML, JSON) or sizes."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar
from xml.etree.ElementTree import ParseError

import msgspec

from ...cluster.errors import InputError
from ...cluster.network import SIZES, Network, NetworkKind, Unit
from ...cluster.snapshot import MAX_NODES, Snapshot
from ...cluster.text import shown
from ...cluster.workload import ClusterWorkload
from ...formats.file_kinds import SNAPSHOT, WORKLOAD, kind_of
from ...formats.jsontext import decode
from ...formats.native.cluster_file import parse_snapshot, parse_workload
from ...formats.native.topology_wire import Laid, TopologyWire, build_topology, check_members, links_of
from ...formats.notes import Notes
from ...formats.reading import read_document, text_of
from ...topology.networks import check_places, fat_tree_size, linked
from ...topology.units import blocks
from .topology_conf import parse_topology

#: The nodes in a row.
LINEAR = "linear"

T = TypeVar("T", Snapshot, ClusterWorkload)

_SPEC = re.compile(r"(torus|dragonfly|fat-tree|blocks):([0-9]{1,9}(?:x[0-9]{1,9})*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A topology with its nodes' names, in its order.

    Attributes:
        name, strange: of several in one file, as ``TopologyFile`` has them.
    """

    names: tuple[str, ...]
    laid: Laid
    name: str = ""
    strange: frozenset[str] = frozenset()


def load_topology(source: str, nodes: Sequence[str] | None, notes: Notes) -> Named:
    """Return the topology that a file holds, or a text like ``torus:16x8x8`` says.

    Args:
        source: a file, ``-`` for standard input, ``torus:`` shape, ``dragonfly:`` groups x routers
            of a group x nodes of a router x global links of a router, ``fat-tree:`` levels x radix.
        nodes: the cluster's, in its order; None: those that the topology names.
        notes: what was dropped or not read.

    Raises:
        InputError: the file cannot be read, or holds no topology of these nodes.
    """
    if is_sizes(source):
        return parse_any_topology(source.encode(), nodes, notes)
    if ":" in source and not os.path.lexists(source):
        raise InputError("it is neither a file nor sizes such as torus:16x8x8", path="topology")
    return read_document(source, lambda content: parse_any_topology(content, nodes, notes))


def laid_on(read: T, source: str, notes: Notes) -> T:
    """Return a snapshot or workload on another network: ``linear``, or a source of load_topology.

    Raises:
        InputError: the network cannot be read, or is none of these nodes.
    """
    bare = replace(read, switches=None, network=None)
    if source == LINEAR:
        return bare
    names = [node.name for node in read.nodes] if read.network is None else read.network.members
    laid = load_topology(source, tuple(names), notes).laid
    return replace(bare, switches=laid.switches, network=laid.network)


def is_sizes(source: str) -> bool:
    """Whether a text says a network's sizes, and is no file's name."""
    return _SPEC.fullmatch(source) is not None


def _of_sizes(kind: str, sizes: tuple[int, ...], nodes: Sequence[str] | None, source: str) -> Named:
    names = ("blocks", "nodes") if kind == "blocks" else SIZES.get(NetworkKind(kind), ())
    if names and len(sizes) != len(names):
        raise InputError(f"{source!r} is not {kind}: and {' x '.join(names)}", path="topology")
    given: dict[str, Any] = dict(zip(names, sizes, strict=True)) if names else {"shape": list(sizes)}
    listed = _numbered(kind, sizes, source) if nodes is None else tuple(nodes)
    if kind == "blocks":
        return _named(Laid(network=_blocks(sizes, listed)), listed)
    return _named(build_topology(TopologyWire(kind=kind, **given), listed), listed)


def _numbered(kind: str, sizes: Sequence[int], source: str) -> tuple[str, ...]:
    """Return names for the nodes of a network of these sizes."""
    count = prod(sizes[:3]) if kind == "dragonfly" else prod(sizes)
    if kind == "fat-tree":
        count = fat_tree_size(min(sizes[0], MAX_NODES), sizes[1]) if sizes[1] > 3 else sizes[1]  # noqa: PLR2004
    if not 0 < count <= MAX_NODES:
        raise InputError(f"{source!r} has {shown(count)} nodes, not 1 to {MAX_NODES}", path="topology")
    width = len(str(count - 1))
    return tuple(f"n{place:0{width}d}" for place in range(count))


def _blocks(sizes: tuple[int, ...], names: Sequence[str]) -> Network:
    """Return so many blocks of so many nodes, in groups of up to 16."""
    count, each = sizes
    check_places(f"{count}x{each}", count * each, names)
    width = len(str(count - 1))
    units = (
        Unit(name=f"b{place:0{width}d}", nodes=names[place * each : (place + 1) * each])
        for place in range(count)
    )
    return blocks((), units)


def parse_any_topology(
    content: bytes,
    nodes: Sequence[str] | None,
    notes: Notes,
    wanted: str = "",
    placed: Mapping[str, str] | None = None,
) -> Named:
    """Return the topology in a file's text; ``nodes`` and errors as ``load_topology`` has them.

    ``wanted``: of Slurm's several topologies the one that is read; else the cluster's default.
    ``placed``: where nodes say that they are themselves, as ``TopologyFile.joined`` takes it.
    """
    beginning = content[:1000].lstrip()
    if beginning.startswith(b"{"):
        return _of_json(content, nodes)
    if beginning.startswith(b"<"):
        return _of_graph(parse_graphml(text_of(content)), nodes)
    text = text_of(content)
    if match := _SPEC.fullmatch(text.strip()):
        return _of_sizes(match[1], tuple(map(int, match[2].split("x"))), nodes, match[0])
    read = parse_topology(text, notes, wanted).joined(placed or {}, notes)
    if nodes is None and not read.nodes:
        raise InputError("the topology names no nodes")
    laid = read.fitted(read.nodes if nodes is None else nodes, notes)
    made = _named(laid, read.nodes if nodes is None else nodes)
    return replace(made, name=read.name, strange=read.strange)


def _of_json(content: bytes, nodes: Sequence[str] | None) -> Named:
    kind = kind_of(content)
    if kind is not None and kind.name in {SNAPSHOT, WORKLOAD}:
        made = parse_snapshot(content) if kind.name == SNAPSHOT else parse_workload(content)
        there = {node.name for node in made.nodes}
        missing = next((name for name in nodes or () if name not in there), None)
        if missing is not None:
            raise InputError(f"node {missing!r} is not there", path="nodes")
        return _named(Laid(switches=made.switches, network=made.network), [node.name for node in made.nodes])
    if "kind" not in decode(content, dict[str, Any]):
        return _of_graph(parse_node_link(content), nodes)
    entry = decode(content, TopologyWire)
    check_members(entry)
    names = _own_names(entry) if nodes is None else tuple(nodes)
    return _named(build_topology(entry, names), names)


def _own_names(entry: TopologyWire) -> tuple[str, ...]:
    """Return a lone member's nodes: those it names, or numbered ones where it has sizes."""
    if entry.kind == "tree":
        members = build_topology(entry, ()).switches or ()
        return tuple(dict.fromkeys(name for switch in members for name in switch.nodes))
    if entry.nodes is not None or entry.kind == "linear":
        return ()
    if entry.kind == "graph":
        return Graph(vertices={}, links=tuple(links_of(entry))).nodes()
    sizes = entry.shape or [getattr(entry, name) for name in SIZES.get(NetworkKind(entry.kind), ())]
    return _numbered(entry.kind, sizes, entry.kind) if min(sizes, default=0) > 0 else ()


def _named(laid: Laid, names: Sequence[str]) -> Named:
    return Named(names=tuple(names) if laid.network is None else laid.network.nodes, laid=laid)


#: The attribute of a vertex that says what it is, and what it says of a node.
_KIND, _NODE = "kind", "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph as its file has it: vertices with their attribute ``kind`` (or none), and links."""

    vertices: dict[str, str | None]
    links: tuple[tuple[str, str], ...]

    def nodes(self) -> tuple[str, ...]:
        """Return the vertices that are nodes of a cluster, where nothing else says which are.

        Those of kind ``node`` where a vertex has a kind; else those linked to one other vertex, as
        below switches, by any number and direction of links; else all, as in a torus.
        """
        if any(kind is not None for kind in self.vertices.values()):
            return tuple(name for name, kind in self.vertices.items() if kind == _NODE)
        beside: dict[str, set[str]] = {name: set() for name in self.vertices}
        for one, other in self.links:
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
        outer = tuple(name for name, others in beside.items() if len(others) == 1)
        return outer or tuple(beside)


def _of_graph(graph: Graph, nodes: Collection[str] | None) -> Named:
    """Return a graph as a network of ``nodes``; None: of those that it calls nodes.

    Raises:
        InputError: it is none that an auction could use (``topology.networks.linked``).
    """
    network = linked(graph.links, graph.nodes() if nodes is None else tuple(nodes))
    return _named(Laid(network=network), network.nodes)


def parse_graphml(text: str) -> Graph:
    """Return the graph of a GraphML file; directions and links side by side say nothing.

    Raises:
        InputError: it is no GraphML.
    """
    # Loaded for who has such a file.
    import networkx as nx  # noqa: PLC0415

    try:
        read = nx.parse_graphml(text)
    except (nx.NetworkXException, ParseError, ValueError, LookupError, AttributeError) as error:
        raise InputError(f"no GraphML: {str(error)[:100]}") from error
    vertices = {str(name): data.get(_KIND) for name, data in read.nodes(data=True)}
    return Graph(vertices=vertices, links=tuple((str(one), str(other)) for one, other in read.edges()))


class _Vertex(msgspec.Struct):
    id: str | int
    kind: Any = None


class _Edge(msgspec.Struct):
    source: str | int
    target: str | int


class _NodeLink(msgspec.Struct):
    nodes: list[_Vertex]
    links: list[_Edge] | None = None
    edges: list[_Edge] | None = None


def parse_node_link(content: bytes) -> Graph:
    """Return the graph of node-link JSON: ``nodes`` with an id, ``links`` or ``edges`` with ends.

    Raises:
        InputError: a member is missing or of another type; the path says where.
    """
    document = decode(content, _NodeLink)
    listed, entries = ("edges", document.edges) if document.links is None else ("links", document.links)
    if entries is None:
        raise InputError("it has neither links nor edges")
    vertices: dict[str, str | None] = {}
    for place, vertex in enumerate(document.nodes):
        name = str(vertex.id)
        if name in vertices or not name:
            raise InputError(
                f"{name!r} {'is listed twice' if name else 'is not a name'}", path=f"nodes[{place}].id"
            )
        vertices[name] = None if vertex.kind is None else str(vertex.kind)
    links = tuple((str(edge.source), str(edge.target)) for edge in entries)
    for place, name in enumerate(name for ends in links for name in ends):
        if name not in vertices:
            path = f"{listed}[{place // 2}].{('source', 'target')[place % 2]}"
            raise InputError(f"{name!r} is not a vertex", path=path)
    return Graph(vertices=vertices, links=links)
