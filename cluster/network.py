"""A network whose switches are no tree: nodes in one order, in nested groups, with its links."""

from collections.abc import Collection
from enum import StrEnum

from .errors import InputError
from .jobs import Request
from .nodes import Node, Switch
from .value_types import (
    Anything,
    Choice,
    Embedded,
    Entries,
    HostList,
    IntegerList,
    Name,
    NameList,
    NameTuple,
    assign,
    coerce_members,
    member,
    value_class,
)

#: A torus of Slurm's has so many dimensions.
_DIMENSIONS = 3


class NetworkKind(StrEnum):
    """Networks other than the linear topology and trees of switches.

    Examples:
        >>> NetworkKind("torus")
        <NetworkKind.TORUS: 'torus'>
    """

    TORUS = "torus"
    DRAGONFLY = "dragonfly"
    FAT_TREE = "fat-tree"
    GRAPH = "graph"
    BLOCKS = "blocks"
    RING = "ring"
    TORUS3D = "torus3d"


#: What the ``sizes`` of those networks are that files give by name.
SIZES = {
    NetworkKind.DRAGONFLY: ("groups", "routers", "nodes_per_router", "global_links"),
    NetworkKind.FAT_TREE: ("levels", "radix"),
}


@value_class
class PlacementSize:
    """A size that jobs may have on a three-dimensional torus, and where such boxes may begin.

    Attributes:
        dims: nodes along x, y and z.
        anchor_seed: the first corner.
        anchor_spacing: steps between corners along each dimension; none given: ``dims``.

    Examples:
        >>> PlacementSize(dims=(2, 2, 1)).anchor_spacing
        (2, 2, 1)
    """

    dims: tuple[int, ...] = member(IntegerList(1))
    anchor_seed: tuple[int, ...] = member(IntegerList(0), default=(0, 0, 0))
    anchor_spacing: tuple[int, ...] = member(IntegerList(1), default=())

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.anchor_spacing:
            assign(self, anchor_spacing=self.dims)
        for name in ("dims", "anchor_seed", "anchor_spacing"):
            if len(getattr(self, name)) != _DIMENSIONS:
                raise InputError(f"{len(getattr(self, name))} numbers are not {_DIMENSIONS}", path=name)


@value_class
class Unit:
    """A topology unit of Slurm's: a block (may be empty), a ring, or a three-dimensional torus.

    Attributes:
        nodes: a block's; a ring's by position; a torus', x fastest.
        dims: a torus' nodes along x, y and z.
        placements: the sizes that jobs may have on a torus.

    Examples:
        >>> Unit(name="b1", nodes=["n1", "n2"]).nodes
        ('n1', 'n2')
    """

    name: str = member(Name())
    nodes: NameTuple = member(HostList(), default=())
    dims: tuple[int, ...] = member(IntegerList(1), default=())
    placements: tuple[PlacementSize, ...] = member(Entries(PlacementSize), default=())

    def __post_init__(self) -> None:
        coerce_members(self)
        if len(self.dims) not in (0, _DIMENSIONS):
            raise InputError(f"{len(self.dims)} numbers are not {_DIMENSIONS}", path="dims")


@value_class
class Network:
    """A network, and what an auction reads of it: an order of nodes, nested groups of neighbours.

    Made by ``topology.networks`` (and by reading a file), which knows each kind.

    Attributes:
        kind: which network.
        members: its nodes as the kind numbers them: a torus' last dimension first, a dragonfly
            router by router.
        sizes: a torus' shape; a dragonfly's groups, routers of a group, nodes and global links of a
            router; a fat tree's levels and radix; the block sizes, the least first.
        links: a graph's: pairs of nodes and switches.
        units: the blocks, rings or three-dimensional tori, in the order of their file.
        order: "hilbert", or "members": a torus' nodes along a Hilbert curve, or as numbered.
        nodes: the members in the order that *contiguous* means here.
        switches: groups of neighbours as switches: a leaf is the smallest group.

    Examples:
        >>> kind, pair = NetworkKind.TORUS, ("a", "b")
        >>> Network(kind=kind, members=pair, sizes=(2,), nodes=pair, switches=()).kind.value
        'torus'
    """

    kind: NetworkKind = member(Choice(NetworkKind))
    members: tuple[str, ...] = member(NameList())
    nodes: tuple[str, ...] = member(NameList())
    switches: tuple[Switch, ...] = member(Entries(Switch))
    sizes: tuple[int, ...] = member(IntegerList(1), default=())
    links: tuple[tuple[str, str], ...] = member(Entries(tuple), default=())
    order: str = member(Anything(), default="hilbert")
    units: tuple[Unit, ...] = member(Entries(Unit), default=())

    def __post_init__(self) -> None:
        coerce_members(self)

    def in_order(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return nodes in the network's order.

        Raises:
            InputError: one of them has no place on the network, or a place has no node.
        """
        place = {name: index for index, name in enumerate(self.nodes)}
        for node in nodes:
            if node.name not in place:
                raise InputError(f"node {node.name!r} has no place on the {self.kind}", path="topology")
        if len(place) > len(nodes):
            known = {node.name for node in nodes}
            missing = next(name for name in self.members if name not in known)
            raise InputError(f"{missing!r} is not a node of the cluster", path="topology.nodes")
        return tuple(sorted(nodes, key=lambda node: place[node.name]))


#: What a snapshot's or workload's network is.
NETWORK = Embedded(Network, source="it comes from a file's topology (parse_snapshot)")


def alone_on(network: Network | None, request: Request, held: Collection[str]) -> frozenset[str]:
    """Return the nodes of the blocks or rings that a job must have alone; for a torus: none."""
    if network is None or not request.exclusive_topo or network.kind is NetworkKind.TORUS3D:
        return frozenset()
    touched = [unit.nodes for unit in network.units if not set(unit.nodes).isdisjoint(held)]
    return frozenset(name for nodes in touched for name in nodes)
