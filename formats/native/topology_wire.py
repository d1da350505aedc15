"""A file's ``topology`` made switches or a network, and back; Slurm's fitted to known nodes."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from ...cluster.checks import LARGEST_COUNT, plain
from ...cluster.errors import InputError
from ...cluster.network import SIZES, Network, NetworkKind, PlacementSize, Unit
from ...cluster.nodes import Switch, check_loops
from ...cluster.text import not_one_of
from ...topology.distances import MOST_LINKS
from ...topology.networks import dragonfly, fat_tree, linked, torus
from ...topology.units import blocks, default_sizes, rings, toruses
from ..hostlist import expand, join
from ..notes import Notes
from .forms import FileObject, FromOne, Hosts, each, file_form

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
#: The orders of a torus' nodes.
ORDERS = ("hilbert", "members")
#: Those that need not stand.
OPTIONAL = ("nodes", "order", "sizes")
#: What holds the units of each kind of Slurm's, and what makes a network of them.
_UNITS = {"blocks": "blocks", "ring": "rings", "torus3d": "toruses"}
_UNIT = file_form(Unit)
_SWITCH = file_form(Switch)
_Units, _Switches = (GenericAlias(list, (form.struct,)) for form in (_UNIT, _SWITCH))
_RADIX = {"minimum": 2, "maximum": LARGEST_COUNT}


class TopologyWire(FileObject):
    """The linear topology, a tree of switches, a network by sizes, any graph, or Slurm's units."""

    kind: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(MEMBERS)})]
    switches: _Switches | None = None  # type: ignore[valid-type]
    nodes: Hosts | None = None
    shape: list[int] | None = None
    order: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(ORDERS)})] | None = None
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
        InputError: members of another kind, a missing one, or a network that lacks the nodes.
    """
    if entry is None:
        return Laid()
    check_members(entry)
    if entry.kind == "linear":
        return Laid()
    if entry.kind == "tree":
        return Laid(switches=each(entry.switches or (), "topology.switches", _SWITCH.build))
    return Laid(network=_network(entry, names))


def check_members(entry: TopologyWire) -> None:
    """Raise InputError where a topology is of no kind, or has not the members of its kind."""
    for given, words, member in ((entry.kind, MEMBERS, "kind"), (entry.order, ORDERS, "order")):
        if given is not None and given not in words:
            raise InputError(not_one_of(given, words), path=f"topology.{member}")
    wanted = ("kind", *MEMBERS[entry.kind])
    title = "the linear topology" if entry.kind == "linear" else f"a {entry.kind}"
    for member in entry.__struct_fields__:
        value = getattr(entry, member)
        if member not in wanted and value not in (None, []):
            raise InputError(f"{title} has no {member}", path=f"topology.{member}")
        if member in wanted and member not in OPTIONAL and value in (None, []):
            raise InputError(f"{title} needs {member}", path=f"topology.{member}")


def _network(entry: TopologyWire, names: Sequence[str]) -> Network:
    if entry.kind in _UNITS:
        return _of_units(entry, names)
    members = tuple(names) if entry.nodes is None else expand(entry.nodes, "topology.nodes")
    if entry.kind == "torus":
        return torus(entry.shape or (), members, order=entry.order or "hilbert")
    if entry.kind == "graph":
        return linked(links_of(entry), members)
    sizes = tuple(getattr(entry, name) for name in SIZES[NetworkKind(entry.kind)])
    made = dragonfly if entry.kind == "dragonfly" else fat_tree
    return made(*sizes, members=members)


def _of_units(entry: TopologyWire, names: Sequence[str]) -> Network:
    member = _UNITS[entry.kind]
    units = each(getattr(entry, member), f"topology.{member}", _UNIT.build)
    inside = {name for unit in units for name in unit.nodes}
    outside = tuple(name for name in names if name not in inside)
    if entry.kind == "blocks":
        return blocks(entry.sizes or (), units, outside=outside)
    return (rings if entry.kind == "ring" else toruses)(units, outside=outside)


def links_of(entry: TopologyWire) -> list[tuple[str, str]]:
    """Return the links of a graph, one by one."""
    links: list[tuple[str, str]] = []
    for place, (one, other) in enumerate(entry.links or ()):
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
        order = "members" if network.order == "members" else None
        return TopologyWire(kind="torus", shape=list(network.sizes), nodes=nodes, order=order)
    if network.kind is NetworkKind.GRAPH:
        ends: dict[str, list[str]] = {}
        for one, other in network.links:
            ends.setdefault(one, []).append(other)
        links = [(join([one]), join(others)) for one, others in ends.items()]
        return TopologyWire(kind="graph", links=links, nodes=nodes)
    sizes: dict[str, Any] = dict(zip(SIZES[network.kind], network.sizes, strict=True))
    return TopologyWire(kind=network.kind.value, nodes=nodes, **sizes)


#: The leaf that nodes below no switch are put on: a snapshot's tree holds every node.
UNCONNECTED = "unconnected"

#: What an entry of each kind is called, alone and in a list.
TITLES = {"tree": "switch", "block": "block", "ring": "ring", "torus3d": "torus"}
PLURALS = {"tree": "switches", "block": "blocks", "ring": "rings", "torus3d": "toruses"}
#: The place in a list of units that an error names.
_PLACE = re.compile(r"topology\.(?:blocks|rings|toruses)\[(\d+)\]\.?(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyEntry:
    """A switch, block, ring or torus as written; ``path`` is its place in the file."""

    name: str
    path: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    dims: tuple[int, ...] = ()
    placements: tuple[PlacementSize, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFile:
    """A topology as written, before it is fitted to a cluster's nodes.

    Attributes:
        kind: ``tree``, ``block``, ``flat``, ``ring`` or ``torus3d``.
        name: its own, where the file has several; else empty.
        sizes, sizes_path: of blocks, and where they stand; none: Slurm's default.
        strange: topologies that are not read and have rules for which nodes a job may get.
    """

    kind: str
    entries: Sequence[TopologyEntry] = ()
    name: str = ""
    sizes: tuple[int, ...] = ()
    sizes_path: str = ""
    strange: frozenset[str] = field(default_factory=frozenset)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it names, once each."""
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.nodes))

    def joined(self, placed: Mapping[str, str], notes: Notes) -> "TopologyFile":
        """Return the topology with nodes where Slurm has moved them, or put dynamic ones.

        Args:
            placed: by node what Slurm says of it, ``topology:block``, ``topology:switch:leaf``…
            notes: nodes on a unit that the file lacks, or at a place of a ring or torus.
        """
        moved: dict[str, str] = {}
        is_named = self.kind in ("tree", "block")
        leaves = {entry.name for entry in self.entries if is_named and not entry.switches}
        unit_of = {name: entry.name for entry in self.entries for name in entry.nodes}
        for node, text in placed.items():
            named = dict(part.split(":", 1) for part in text.split(",") if ":" in part)
            unit = named.get(self.name or "default", "").rpartition(":")[2]
            if unit in leaves:
                moved[node] = unit
            elif unit and node not in unit_of:
                notes.unread("topology", f"node {node}: its place {unit!r} is not in the file")
        if all(unit_of.get(node) == unit for node, unit in moved.items()):
            return self
        entries = []
        for entry in self.entries:
            kept = [name for name in entry.nodes if moved.get(name, entry.name) == entry.name]
            come = [name for name, unit in moved.items() if unit == entry.name and name not in kept]
            entries.append(replace(entry, nodes=(*kept, *come)))
        return replace(self, entries=entries)

    def fitted(self, nodes: Collection[str], notes: Notes) -> Laid:
        """Return the topology of a cluster's nodes; neither switches nor a network is linear.

        Names of nodes that the cluster does not have are dropped, then switches left empty; nodes
        on no leaf get a leaf of their own. Each goes to ``notes``.

        Raises:
            InputError: an entry or a node is listed twice, or a ring or torus lacks a node.
        """
        if not self.entries:
            if self.kind != "flat":
                notes.add("topology", f"the topology names no {PLURALS[self.kind]}: taken as linear")
            return Laid()
        title = TITLES[self.kind]
        _check_repeats(self.entries, title)
        nodes = dict.fromkeys(nodes)
        known = [_with_known_nodes(entry, nodes, title, notes) for entry in self.entries]
        placed = {name for entry in known for name in entry.nodes}
        missing = tuple(name for name in nodes if name not in placed)
        if missing and not placed:
            text = f"no {title} of the topology holds a node of the cluster: taken as linear"
            notes.add("topology", text)
            return Laid()
        where = "on no leaf switch" if self.kind == "tree" else f"in no {title}"
        # Lengthened while a switch of the file bears that name.
        taken, spare = {entry.name for entry in self.entries}, UNCONNECTED
        while spare in taken:
            spare += "-nodes"
        if missing:
            put = f", put on {spare!r}" if self.kind == "tree" else ""
            names = ",".join(missing[:5]) + (",..." if len(missing) > 5 else "")  # noqa: PLR2004 - one line
            notes.add("topology", f"nodes {where}{put}: {len(missing)} ({names})")
        if self.kind != "tree":
            return Laid(network=self._network(known, missing))
        kept = _without_empty(known, notes)
        return Laid(switches=(*kept, *([Switch(name=spare, nodes=missing)] if missing else [])))

    def _network(self, entries: Sequence[TopologyEntry], outside: tuple[str, ...]) -> Network:
        units = [
            Unit(name=entry.name, nodes=entry.nodes, dims=entry.dims, placements=entry.placements)
            for entry in entries
            if entry.nodes or self.kind == "block"
        ]
        # The first block counts as written, also where the cluster has not all of its nodes.
        base = next(len(entry.nodes) for entry in self.entries if entry.nodes)
        try:
            if self.kind == "block":
                return blocks(self.sizes or default_sizes(base), units, outside=outside)
            return (rings if self.kind == "ring" else toruses)(units, outside=outside)
        except InputError as error:
            path = error.path or ""
            match = _PLACE.fullmatch(path)
            place = f"{self.entries[int(match[1])].path} {match[2]}".rstrip() if match else self.sizes_path
            raise InputError(error.message, path=place or path) from error


def _check_repeats(lines: Sequence[TopologyEntry], title: str) -> None:
    """Refuse what no name may hold, what is listed twice, and a loop, by its line."""
    seen: dict[str, str] = {}
    parents: dict[str, str] = {}
    for line in lines:
        plain(line.name, line.path)
        for what, name in [(title, line.name), *(("node", node) for node in line.nodes)]:
            if (first := seen.setdefault(f"{what} {name!r}", line.path)) != line.path:
                raise InputError(f"{what} {name!r} is listed at {first} already", path=line.path)
        for child in line.switches:
            if (first := parents.setdefault(child, line.name)) != line.name:
                raise InputError(f"switch {child!r} is below {first!r} already", path=line.path)
    check_loops({line.name: line.path for line in lines}, parents)


def _with_known_nodes(line: TopologyEntry, nodes: Collection[str], title: str, notes: Notes) -> TopologyEntry:
    known = tuple(name for name in line.nodes if name in nodes)
    if dropped := len(line.nodes) - len(known):
        first = next(name for name in line.nodes if name not in nodes)
        if title in ("ring", "torus") and known:
            message = f"node {first!r} is not of the cluster, so places are not known"
            raise InputError(f"{title} {line.name}: {message}", path=line.path)
        text = f"nodes not of the cluster are dropped: {dropped}, the first {first}"
        notes.add("topology", f"{title} {line.name}: {text}")
    return replace(line, nodes=known)


def _without_empty(lines: Sequence[TopologyEntry], notes: Notes) -> list[Switch]:
    """Drop switches with nothing below them, from the leaves up, and unknown switches."""
    left = {line.name: line for line in lines}
    order = {line.name: place for place, line in enumerate(lines)}
    below = {line.name: sum(name in left for name in line.switches) for line in lines}
    parent = {child: line.name for line in lines for child in line.switches}
    empty = [line.name for line in lines if not line.nodes and not below[line.name]]
    while empty:
        emptied: dict[str, None] = {}
        for name in empty:
            notes.add("topology", f"switch {name} has no node of the cluster below it and is dropped")
            del left[name]
            if (above := parent.get(name)) is not None:
                below[above] -= 1
                if not below[above] and not left[above].nodes:
                    emptied[above] = None
        empty = sorted(emptied, key=order.__getitem__)
    for line in lines:
        for child in line.switches:
            if child not in order:
                notes.add("topology", f"switch {line.name}: {child} below it is not described and is dropped")
    return [
        Switch(
            name=line.name, nodes=line.nodes, switches=tuple(name for name in line.switches if name in left)
        )
        for line in left.values()
    ]
