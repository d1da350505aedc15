"""A file's ``topology`` made switches or a network, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.network import SIZES, Network, NetworkKind, Unit
from ...cluster.nodes import Switch
from ...topology.distances import MOST_LINKS
from ...topology.networks import dragonfly, fat_tree_network, linked, torus
from ...topology.units import blocks, rings, toruses
from ..hostlist import expand, join
from .file_objects import FileObject, each, file_form
from .forms import FromOne, Hosts

#: The members of each kind beside ``kind``; ``order`` and a network's ``nodes`` need not stand.
MEMBERS = {
    "linear": (),
    "tree": ("switches",),
    "torus": ("shape", "nodes", "order"),
    "dragonfly": (*SIZES[NetworkKind.DRAGONFLY], "nodes"),
    "fat-tree": (*SIZES[NetworkKind.FAT_TREE], "nodes"),
    "graph": ("links", "nodes"),
    "blocks": ("sizes", "blocks"),
    "ring": ("rings",),
    "torus3d": ("toruses",),
}
#: Those that need not stand.
OPTIONAL = ("nodes", "order", "sizes")
#: What holds the units of each kind of Slurm's, and what makes a network of them.
_UNITS = {"blocks": "blocks", "ring": "rings", "torus3d": "toruses"}
_UNIT = file_form(Unit)
_SWITCH = file_form(Switch)
_Units, _Switches = (GenericAlias(list, (form.struct,)) for form in (_UNIT, _SWITCH))
_RADIX = {"minimum": 2, "maximum": LARGEST_COUNT}


class TopologyWire(FileObject):
    """The linear topology, a tree of switches, a network by its sizes, any graph, or Slurm's units."""

    kind: Literal["linear", "tree", "torus", "dragonfly", "fat-tree", "graph", "blocks", "ring", "torus3d"]
    switches: _Switches | None = None  # type: ignore[valid-type]
    nodes: Hosts | None = None
    shape: list[int] | None = None
    order: Literal["hilbert", "members"] | None = None
    groups: FromOne | None = None
    routers: FromOne | None = None
    nodes_per_router: FromOne | None = None
    global_links: FromOne | None = None
    levels: FromOne | None = None
    radix: Annotated[int, msgspec.Meta(extra_json_schema=_RADIX)] | None = None
    links: list[tuple[str, str]] | None = None
    sizes: list[int] | None = None
    blocks: _Units | None = None  # type: ignore[valid-type]
    rings: _Units | None = None  # type: ignore[valid-type]
    toruses: _Units | None = None  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A topology: switches of a tree, or a network; neither is linear."""

    switches: tuple[Switch, ...] | None = None
    network: Network | None = None


def build_topology(entry: TopologyWire | None, names: Sequence[str]) -> Laid:
    """Return the topology of nodes, by name in the file's order.

    Raises:
        InputError: members of another kind stand, one is missing, or the network does not hold the nodes.
    """
    if entry is None:
        return Laid()
    _check_members(entry)
    if entry.kind == "linear":
        return Laid()
    if entry.kind == "tree":
        return Laid(switches=each(entry.switches or (), "topology.switches", _SWITCH.build))
    return Laid(network=_network(entry, names))


def _check_members(entry: TopologyWire) -> None:
    wanted = MEMBERS[entry.kind]
    article = "a" if entry.kind != "linear" else "the"
    title = {"linear": "linear topology"}.get(entry.kind, entry.kind)
    for member in entry.__struct_fields__:
        value = getattr(entry, member)
        if member == "kind":
            continue
        if member not in wanted and value not in (None, []):
            raise InputError(f"{article} {title} has no {member}", path=f"topology.{member}")
        if member in wanted and member not in OPTIONAL and value in (None, []):
            raise InputError(f"{article} {title} needs {member}", path=f"topology.{member}")


def _network(entry: TopologyWire, names: Sequence[str]) -> Network:
    if entry.kind in _UNITS:
        return _of_units(entry, names)
    members = tuple(names) if entry.nodes is None else expand(entry.nodes, "topology.nodes")
    if entry.kind == "torus":
        return torus(entry.shape or (), members, order=entry.order or "hilbert")
    if entry.kind == "graph":
        return linked(_links(entry.links or ()), members)
    sizes = tuple(getattr(entry, name) for name in SIZES[NetworkKind(entry.kind)])
    made = dragonfly if entry.kind == "dragonfly" else fat_tree_network
    return made(*sizes, members=members)


def _of_units(entry: TopologyWire, names: Sequence[str]) -> Network:
    member = _UNITS[entry.kind]
    units = each(getattr(entry, member), f"topology.{member}", _UNIT.build)
    inside = {name for unit in units for name in unit.nodes}
    outside = tuple(name for name in names if name not in inside)
    if entry.kind == "blocks":
        return blocks(entry.sizes or (), units, outside=outside)
    return (rings if entry.kind == "ring" else toruses)(units, outside=outside)


def _links(entries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    for place, (one, other) in enumerate(entries):
        path = f"topology.links[{place}]"
        ends, far = expand(one, path), expand(other, path)
        if len(links) + len(ends) * len(far) > MOST_LINKS:
            raise InputError(f"it has more than {MOST_LINKS} links", path=path)
        links.extend((end, to) for end in ends for to in far)
    return links


def written_topology(switches: Sequence[Switch] | None, network: Network | None) -> TopologyWire | None:
    """Return the topology, None for the linear one."""
    if network is not None:
        return _written_network(network)
    if switches is None:
        return None
    return TopologyWire(kind="tree", switches=list(map(_SWITCH.document, switches)))


def _written_network(network: Network) -> TopologyWire:
    if network.kind.value in _UNITS:
        listed: dict[str, Any] = {
            _UNITS[network.kind.value]: [_UNIT.document(unit) for unit in network.units]
        }
        return TopologyWire(kind=network.kind.value, sizes=list(network.sizes) or None, **listed)
    nodes = join(network.members)
    if network.kind is NetworkKind.TORUS:
        written = TopologyWire(kind="torus", shape=list(network.sizes), nodes=nodes)
        if network.order == "members":
            written.order = "members"
        return written
    if network.kind is NetworkKind.GRAPH:
        ends: dict[str, list[str]] = {}
        for one, other in network.links:
            ends.setdefault(one, []).append(other)
        links = [(join([one]), join(others)) for one, others in ends.items()]
        return TopologyWire(kind="graph", links=links, nodes=nodes)
    kind: Any = network.kind.value
    sizes: dict[str, Any] = dict(zip(SIZES[network.kind], network.sizes, strict=True))
    return TopologyWire(kind=kind, nodes=nodes, **sizes)
