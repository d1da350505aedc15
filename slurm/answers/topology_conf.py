"""Slurm's topologies: topology.conf, topology.yaml, ``scontrol show topology``.

A tree of switches, blocks of nodes, rings, or three-dimensional tori. Of topology.yaml's several
topologies (25.05 and later) one is read: the one that is asked for, else the cluster's default.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from ...cluster.errors import InputError
from ...cluster.network import PlacementSize
from ...cluster.snapshot import MAX_NODES
from ...formats.hostlist import names_in
from ...formats.native.topology_wire import PLURALS, TITLES, TopologyEntry, TopologyFile
from ...formats.notes import Notes
from ...formats.reading import numbered_lines
from ...formats.settings_text import yaml_value
from .answer_text import joined_lines

_PAIR = re.compile(r"(?<!\w)(\w++)\s*+=\s*+([^\s=]++)")
_COMMENT = re.compile(r"#.*")
#: What a topology is by the first key of its lines, and what else stands on them.
_KIND_OF = {
    "switchname": "tree",
    "blockname": "block",
    "blocksizes": "block",
    "blocklevels": "block",
    "aggregatedblock": "block",
    "ringname": "ring",
    "torusname": "torus3d",
}
_KNOWN = {
    *_KIND_OF,
    *("switches", "nodes", "linkspeed", "level", "blockindex", "blocksize", "ringsize", "dims"),
    *("placementdims", "anchors"),
}
_KINDS = ("tree", "block", "flat", "ring", "torus3d")
_BOX = re.compile(r"(\d{1,9})x(\d{1,9})x(\d{1,9})(?:\(\d+\))?", re.ASCII)


def parse_topology(text: str, notes: Notes, wanted: str = "") -> TopologyFile:
    """Return a text's topology; of several the one named ``wanted``, else the default.

    Raises:
        InputError: a line is no switch, block, ring or torus, or a hostlist is wrong.
    """
    return _of_yaml(text, notes, wanted) if is_yaml(text) else _of_lines(text, notes)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's pairs by key in lower case, and its place."""

    pairs: Mapping[str, str]
    path: str

    def numbers(self, key: str, least: int = 1) -> tuple[int, ...]:
        """Return the counts of a list."""
        words = filter(None, self.pairs.get(key, "").split(","))
        return tuple(_number(word, f"{self.path} {key}", least) for word in words)

    def box(self, key: str) -> tuple[int, ...]:
        """Return the three lengths of ``4x4x2``."""
        match = _BOX.fullmatch(self.pairs[key])
        if match is None:
            raise InputError(f"{self.pairs[key][:60]!r} is not 4x4x2", path=f"{self.path} {key}")
        return int(match[1]), int(match[2]), int(match[3])


def _of_lines(text: str, notes: Notes) -> TopologyFile:
    """Return the topology of lines; a backslash at a line's end joins the next one."""
    lines: dict[str, list[_Line]] = {}
    for number, content in joined_lines(text, _COMMENT):
        if content.lower().startswith("no topology"):
            continue
        pairs = {key.lower(): value for key, value in _PAIR.findall(content)}
        line = _Line(pairs, f"line {number}")
        kind = _KIND_OF.get(next(iter(line.pairs), ""))
        if content.count("[") != content.count("]"):
            message = f"{content[-40:]!r} has an open bracket; if Slurm cut it off, unset SLURM_TOPO_LEN"
            raise InputError(message, path=line.path)
        if kind is None or _PAIR.sub("", content).strip():
            message = f"{content[:60]!r} is not SwitchName=... Nodes=... or Switches=..."
            raise InputError(message, path=line.path)
        for key in line.pairs.keys() - _KNOWN:
            notes.add("topology", f"{line.path}: {key!r} is not read")
        lines.setdefault(kind, []).append(line)
    if len(lines) > 1:
        where = [f"{PLURALS[kind]} at {found[0].path}" for kind, found in lines.items()]
        raise InputError(f"{where[0]} and {where[1]} are two topologies", path="")
    for kind, found in lines.items():
        return _READERS[kind](found, notes)
    return TopologyFile(kind="tree")


def _tree(lines: Sequence[_Line], _: Notes) -> TopologyFile:
    entries = []
    for line in lines:
        switches = names_in(line.pairs.get("switches", ""), line.path)
        # scontrol lists the nodes below every switch; only a leaf has them itself.
        nodes = () if switches else names_in(line.pairs.get("nodes", ""), line.path)
        entry = TopologyEntry(name=line.pairs["switchname"], path=line.path, switches=switches, nodes=nodes)
        entries.append(entry)
    return TopologyFile(kind="tree", entries=entries)


def _unit(line: _Line, name: str) -> TopologyEntry:
    return TopologyEntry(
        name=line.pairs[name], path=line.path, nodes=names_in(line.pairs.get("nodes", ""), line.path)
    )


def _blocks(lines: Sequence[_Line], notes: Notes) -> TopologyFile:
    """Return blocks with sizes: topology.conf's, or what scontrol shows at each (24.11)."""
    shown = [line for line in lines if "blockname" in line.pairs]
    # Slurm counts blocks by their index; it lists them so, as far as is known.
    shown.sort(key=lambda line: line.numbers("blockindex", 0))
    entries = [_unit(line, "blockname") for line in shown]
    told = [line for line in lines if "blocksize" in line.pairs]
    if told and (cut := [line for line in lines if not {"blocksize"} & line.pairs.keys()]):
        raise InputError(
            "BlockSize= is missing, so the line is cut off: unset SLURM_TOPO_LEN", path=cut[0].path
        )
    sizes = sorted({size for line in told for size in line.numbers("blocksize")})
    where = told[0].path if told else ""
    for line in lines:
        if "blocksizes" in line.pairs:
            sizes, where = list(line.numbers("blocksizes")), line.path
        elif "blocklevels" in line.pairs:
            base = next((len(entry.nodes) for entry in entries if entry.nodes), 1)
            sizes, where = [base << level for level in _levels(line)], line.path
    if not sizes and any("blockindex" in line.pairs for line in shown):
        default = "Slurm's default is taken, groups of 1 to 16 blocks (give topology.conf)"
        notes.unread("topology", f"scontrol tells no block sizes before 24.11: {default}")
    return TopologyFile(kind="block", entries=entries, sizes=tuple(sizes), sizes_path=where)


def _levels(line: _Line) -> Iterator[int]:
    """Yield the levels of 23.11's ``BlockLevels=0-1,3``."""
    for part in line.pairs["blocklevels"].split(","):
        first, _, last = part.partition("-")
        path = f"{line.path} blocklevels"
        low = _number(first, path, least=0)
        yield from range(low, min(_number(last, path, least=0) if last else low, 15) + 1)


def _rings(lines: Sequence[_Line], _: Notes) -> TopologyFile:
    entries = [_unit(line, "ringname") for line in lines]
    for entry, line in zip(entries, lines, strict=True):
        if line.numbers("ringsize") not in ((), (len(entry.nodes),)):
            message = f"{line.pairs['ringsize']} is not the {len(entry.nodes)} nodes of the ring"
            raise InputError(message, path=f"{line.path} ringsize")
    return TopologyFile(kind="ring", entries=entries)


def _toruses(lines: Sequence[_Line], notes: Notes) -> TopologyFile:
    """Return tori with sizes of jobs; scontrol tells how many anchors one has, not which."""
    entries: dict[str, TopologyEntry] = {}
    for line in lines:
        name = line.pairs["torusname"]
        if "dims" in line.pairs:
            # One that is listed twice is refused with all others.
            key = name if name not in entries else line.path
            entries[key] = replace(_unit(line, "torusname"), dims=line.box("dims"))
        elif "placementdims" in line.pairs and name in entries:
            size = PlacementSize(dims=line.box("placementdims"))
            dims, told = entries[name].dims, line.numbers("anchors")
            if told != (prod(length // one for length, one in zip(dims, size.dims, strict=True)),):
                message = "scontrol does not tell which anchors these are: give topology.yaml"
                raise InputError(message, path=f"{line.path} anchors")
            text = f"anchors of {line.pairs['placementdims']} are taken as Slurm's default"
            why = "scontrol does not tell them (give topology.yaml)"
            notes.unread("topology", f"torus {name}: {text}: {why}")
            entries[name] = replace(entries[name], placements=(*entries[name].placements, size))
        else:
            raise InputError("the torus has no Dims= before", path=line.path)
    return TopologyFile(kind="torus3d", entries=list(entries.values()))


_READERS: dict[str, Callable[[Sequence[_Line], Notes], TopologyFile]] = {
    "tree": _tree,
    "block": _blocks,
    "ring": _rings,
    "torus3d": _toruses,
}


def _number(text: Any, path: str, least: int = 1) -> int:
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < least:
        raise InputError(f"{str(text)[:60]!r} is not a number of at least {least}", path=path)
    return int(text)


def is_yaml(text: str) -> bool:
    """Whether a topology is topology.yaml: a list, where topology.conf has ``Key=Value`` lines."""
    lines = (line for _, line in numbered_lines(text))
    first = next((line for line in lines if not line.startswith(("#", "%"))), "")
    return first.startswith(("-", "["))


def _of_yaml(text: str, notes: Notes, wanted: str) -> TopologyFile:
    """Return one topology of topology.yaml(5)."""
    document = yaml_value(text)
    if not isinstance(document, list) or not document:
        raise InputError("it is not a list of topologies")
    topologies: dict[str, dict[str, Any]] = {}
    for place, entry in enumerate(document):
        name = entry.get("topology") if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            raise InputError(f"{str(entry)[:60]!r} is not a topology", path=f"[{place}]")
        if not isinstance(name, str) or not name:
            raise InputError("the member 'topology' is missing or not a name", path=f"[{place}]")
        if name in topologies:
            raise InputError(f"topology {name!r} is listed twice", path=f"[{place}]")
        topologies[name] = entry
    kinds = {name: _kind(topologies[name], name, f"[{at}]") for at, name in enumerate(topologies)}
    name, why = _chosen(topologies, wanted, notes)
    for other in [one for one in kinds if one != name]:
        notes.add("topology", f"topology {other!r} is not read: {name!r} is {why}")
    found = _entries(topologies[name], kinds[name], f"[{list(kinds).index(name)}]", notes)
    strange = frozenset(one for one in kinds if one != name and kinds[one] not in ("tree", "flat"))
    return replace(found, name=name, strange=strange)


def _chosen(topologies: Mapping[str, Mapping[str, Any]], wanted: str, notes: Notes) -> tuple[str, str]:
    """Return the topology that is read, and in words why."""
    if wanted in topologies:
        return wanted, "that of the partitions"
    for name, entry in topologies.items():
        if entry.get("cluster_default") is True:
            return name, "the default"
    name = next(iter(topologies))
    if len(topologies) > 1:
        notes.add("topology", f"no topology is the cluster's default: {name!r} is read")
    return name, "the default"


def _kind(entry: Mapping[str, Any], name: str, path: str) -> str:
    kinds = [kind for kind in _KINDS if entry.get(kind) not in (None, False)]
    if len(kinds) != 1:
        raise InputError(f"topology {name!r} is not exactly one of {', '.join(_KINDS)}", path=path)
    return kinds[0]


def _entries(topology: Mapping[str, Any], kind: str, path: str, notes: Notes) -> TopologyFile:
    if kind == "flat":
        return TopologyFile(kind="flat")
    holder, member, path = topology[kind], PLURALS[kind], f"{path}.{kind}"
    listed = holder.get(member) if isinstance(holder, dict) else None
    if not isinstance(listed, list):
        raise InputError(f"the member {member!r} is missing or not a list", path=path)
    read = _torus_entry if kind == "torus3d" else _entry
    entries = [
        read(_Members(value, f"{path}.{member}[{place}]", TITLES[kind]), notes)
        for place, value in enumerate(listed)
    ]
    sizes = holder.get("block_sizes") or []
    where = f"{path}.block_sizes"
    if not isinstance(sizes, list):
        raise InputError(f"{str(sizes)[:60]!r} is not a list of sizes", path=where)
    counts = tuple(_number(size, f"{where}[{place}]") for place, size in enumerate(sizes))
    return TopologyFile(kind=kind, entries=entries, sizes=counts, sizes_path=where)


@dataclass(frozen=True, slots=True)
class _Members:
    """A mapping of topology.yaml, its place, and what it describes."""

    value: Any
    path: str
    title: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            raise InputError(f"{str(self.value)[:60]!r} is not a {self.title}", path=self.path)

    def note_others(self, known: Collection[str], notes: Notes) -> None:
        for key in self.value.keys() - known:
            notes.add("topology", f"{self.path}: {key!r} is not read")

    def text(self, member: str) -> str:
        value = self.value.get(member)
        if value is not None and not isinstance(value, str):
            raise InputError(f"{str(value)[:60]!r} is not a hostlist", path=f"{self.path}.{member}")
        return value or ""

    def hosts(self, member: str) -> tuple[str, ...]:
        return names_in(self.text(member), f"{self.path}.{member}")

    def box(self, member: str, least: int = 1) -> tuple[int, ...]:
        """Return three numbers; none where the member is not there."""
        value = self.value.get(member)
        if value is None:
            return ()
        within = _Members(value, f"{self.path}.{member}", "box with x, y and z")
        return tuple(_number(within.value.get(axis), f"{within.path}.{axis}", least) for axis in "xyz")

    def within(self, member: str, title: str) -> "list[_Members]":
        value = self.value.get(member) or []
        if not isinstance(value, list):
            raise InputError(f"{str(value)[:60]!r} is not a list", path=f"{self.path}.{member}")
        return [_Members(one, f"{self.path}.{member}[{at}]", title) for at, one in enumerate(value)]


def _entry(members: _Members, notes: Notes) -> TopologyEntry:
    """Return a switch, block or ring."""
    title = members.title
    members.note_others({title, "nodes", *(["children"] if title == "switch" else [])}, notes)
    name, children, nodes = (members.text(member) for member in (title, "children", "nodes"))
    if title == "switch" and not (name and (children or nodes)):
        raise InputError("it is not switch with children or nodes", path=members.path)
    if not name:
        raise InputError(f"the member {title!r} is missing or not a name", path=members.path)
    return TopologyEntry(
        name=name,
        path=members.path,
        switches=members.hosts("children") if title == "switch" else (),
        nodes=() if title == "switch" and children else members.hosts("nodes"),
    )


def _torus_entry(members: _Members, notes: Notes) -> TopologyEntry:
    members.note_others({"name", "dims", "nodes", "regions", "placements"}, notes)
    dims, nodes = members.box("dims"), members.hosts("nodes")
    placements = []
    for one in members.within("placements", "placement"):
        seed, spacing = one.box("anchor_seed", 0) or (0, 0, 0), one.box("anchor_spacing")
        size = PlacementSize(dims=one.box("dims"), anchor_seed=seed, anchor_spacing=spacing)
        placements.append(size)
    if not members.text("name") or not dims:
        raise InputError("it is not name and dims with nodes or regions", path=members.path)
    return TopologyEntry(
        name=members.text("name"),
        path=members.path,
        nodes=nodes or tuple(_of_regions(members.within("regions", "region"), dims, members.path)),
        dims=dims,
        placements=tuple(placements),
    )


def _of_regions(regions: Sequence[_Members], dims: tuple[int, ...], path: str) -> Iterator[str]:
    """Yield a torus' nodes by place, x fastest, from boxes that hold theirs in the same order."""
    if prod(dims) > MAX_NODES:
        raise InputError(f"{prod(dims)} places are above {MAX_NODES}", path=path)
    at: dict[tuple[int, ...], str] = {}
    for region in regions:
        anchor, size = region.box("anchor", 0) or (0, 0, 0), region.box("dims")
        nodes = region.hosts("nodes")
        if prod(size) != len(nodes):
            raise InputError(f"{prod(size)} places for {len(nodes)} nodes", path=region.path)
        for steps, name in zip(_places(size), nodes, strict=True):
            corner = zip(anchor, steps, dims, strict=True)
            spot = tuple((one + step) % length for one, step, length in corner)
            if at.setdefault(spot, name) != name:
                raise InputError(f"{at[spot]!r} and {name!r} have the same place", path=region.path)
    for spot in _places(dims):
        if spot not in at:
            raise InputError(f"no region has the place {','.join(map(str, spot))}", path=path)
        yield at[spot]


def _places(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the places of a box, x fastest."""
    return (spot[::-1] for spot in product(*map(range, reversed(dims))))
