"""Graphs of networks in: GraphML, and JSON as networkx writes it (node-link)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import ParseError

import msgspec

from ..cluster.errors import InputError
from ..cluster.network import Network
from ..topology.networks import linked
from .jsontext import decode

#: The attribute of a vertex that says what it is, and what it says of a node.
_KIND, _NODE = "kind", "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph as a file has it: vertices with what their attribute ``kind`` says (or nothing), and links."""

    vertices: dict[str, str | None]
    links: tuple[tuple[str, str], ...]

    def nodes(self) -> tuple[str, ...]:
        """Return the vertices that are nodes of a cluster, where nothing else says which are.

        Those of kind ``node`` where a vertex has a kind; else those linked to one other vertex, as below
        switches, by however many links and whichever way these point; and all where none is, as in a torus.
        """
        if any(kind is not None for kind in self.vertices.values()):
            return tuple(name for name, kind in self.vertices.items() if kind == _NODE)
        beside: dict[str, set[str]] = {name: set() for name in self.vertices}
        for one, other in self.links:
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
        outer = tuple(name for name, others in beside.items() if len(others) == 1)
        return outer or tuple(beside)


def graph_network(graph: Graph, nodes: Collection[str] | None) -> Network:
    """Return a graph as a network of ``nodes``; None: of those that it calls nodes.

    Raises:
        InputError: it is none that an auction could use (``topology.networks.linked``).
    """
    return linked(graph.links, graph.nodes() if nodes is None else tuple(nodes))


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
        raise InputError("neither links nor edges stand there")
    vertices: dict[str, str | None] = {}
    for place, vertex in enumerate(document.nodes):
        name = str(vertex.id)
        if name in vertices or not name:
            raise InputError(
                f"{name!r} {'stands twice' if name else 'is no name'}", path=f"nodes[{place}].id"
            )
        vertices[name] = None if vertex.kind is None else str(vertex.kind)
    links = tuple((str(edge.source), str(edge.target)) for edge in entries)
    for place, name in ((place, name) for place, ends in enumerate(links) for name in ends):
        if name not in vertices:
            raise InputError(f"{name!r} is no vertex", path=f"{listed}[{place}]")
    return Graph(vertices=vertices, links=links)
