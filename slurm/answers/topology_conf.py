"""Switch trees as Slurm writes them: topology.conf, topology.yaml, ``scontrol show topology``.

Blocks, rings and tori are no trees, and Slurm has rules for which of their nodes a job may get. Nothing
here looks at these rules: the nodes are taken in a row, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.nodes import Switch
from ...formats.notes import Notes
from .answer_text import joined_lines
from .topology_yaml import SwitchLine, is_yaml, names, yaml_lines

#: The leaf that nodes below no switch are put on: a snapshot's tree holds every node.
UNCONNECTED = "unconnected"

_PAIR = re.compile(r"(?<!\w)(\w++)\s*+=\s*+([^\s=]++)")
_COMMENT = re.compile(r"#.*")
#: First keys of lines that are no switches, and what they are.
_OTHERS = {
    "blockname": "blocks",
    "blocksizes": "blocks",
    "blocklevels": "blocks",
    "aggregatedblock": "blocks",
    "ringname": "rings",
    "torusname": "tori",
}
_KNOWN = {"switchname", "switches", "nodes", "linkspeed", "level"}


def parse_topology(text: str, nodes: Collection[str], notes: Notes) -> tuple[Switch, ...] | None:
    """Return the switches of a topology file, fitted to the cluster's ``nodes``; None is linear.

    Names of nodes that the cluster does not have are dropped, then switches left empty; nodes on no leaf
    get a leaf of their own. Each goes to ``notes``.

    Raises:
        InputError: a line is no switch, a hostlist is wrong, or a switch or a node stands twice.
    """
    nodes = dict.fromkeys(nodes)
    lines = switch_lines(text, notes)
    if not lines:
        notes.add("topology", "the topology names no switches: taken as linear")
        return None
    _check_repeats(lines)
    kept = _without_empty([_with_known_nodes(line, nodes, notes) for line in lines], notes)
    placed = {node for switch in kept for node in switch.nodes}
    missing = tuple(node for node in nodes if node not in placed)
    if missing and not placed:
        notes.add("topology", "no switch of the topology holds a node of the cluster: taken as linear")
        return None
    if not missing:
        return tuple(kept)
    spare = _free_name(lines)
    names = ",".join(missing[:5]) + (",..." if len(missing) > 5 else "")  # noqa: PLR2004 - a note is one line
    notes.add("topology", f"nodes on no leaf switch, put on {spare!r}: {len(missing)} ({names})")
    return (*kept, Switch(name=spare, nodes=missing))


def switch_lines(text: str, notes: Notes) -> list[SwitchLine]:
    """Return the switches as the file has them, before they are checked."""
    return yaml_lines(text, notes) if is_yaml(text) else list(_lines(text, notes))


def _free_name(lines: list[SwitchLine]) -> str:
    """Return UNCONNECTED, lengthened while a switch of the file bears that name."""
    taken, name = {line.name for line in lines}, UNCONNECTED
    while name in taken:
        name += "-nodes"
    return name


def _lines(text: str, notes: Notes) -> Iterator[SwitchLine]:
    """Yield the switches; comments are dropped, a backslash at a line's end joins the next one."""
    others: dict[str, list[str]] = {}
    for number, line in joined_lines(text, _COMMENT):
        path = f"line {number}"
        pairs = {key.lower(): value for key, value in _PAIR.findall(line)}
        if kind := next((_OTHERS[key] for key in pairs if key in _OTHERS), None):
            others.setdefault(kind, []).append(f"{path}: {line[:60]}")
        elif switch := _line(line, pairs, path, notes):
            yield switch
    for kind, lines in others.items():
        text = f"{kind} are no switches: {len(lines)} lines are not read, from {lines[0]}"
        notes.unread("topology", text)


def _line(line: str, pairs: Mapping[str, str], path: str, notes: Notes) -> SwitchLine | None:
    if line.lower().startswith("no topology"):
        return None
    name = pairs.get("switchname", "")
    if not name or _PAIR.sub("", line).strip():
        raise InputError(f"{line[:60]!r} is not SwitchName=... Nodes=... or Switches=...", path=path)
    for key in pairs.keys() - _KNOWN:
        notes.add("topology", f"{path}: {key!r} is not read")
    switches = names(pairs.get("switches", ""), path)
    # scontrol lists the nodes below every switch; only a leaf has them itself.
    nodes = () if switches else names(pairs.get("nodes", ""), path)
    return SwitchLine(name=name, switches=switches, nodes=nodes, path=path)


def _check_repeats(lines: list[SwitchLine]) -> None:
    """Refuse what no name may hold, a switch or a node that stands twice and a loop, by its line."""
    seen: dict[str, str] = {}
    parents: dict[str, str] = {}
    for line in lines:
        plain(line.name, line.path)
        for what, name in [("switch", line.name), *(("node", node) for node in line.nodes)]:
            if (first := seen.setdefault(f"{what} {name!r}", line.path)) != line.path:
                raise InputError(f"{what} {name!r} stands at {first} already", path=line.path)
        for child in line.switches:
            if (first := parents.setdefault(child, line.name)) != line.name:
                raise InputError(f"switch {child!r} stands below {first!r} already", path=line.path)
    _check_loops(lines, parents)


def _check_loops(lines: list[SwitchLine], parents: dict[str, str]) -> None:
    """Refuse a loop at the first of its lines; a way upwards that was gone once is not gone again."""
    safe: set[str] = set()
    looping: set[str] = set()
    for line in lines:
        trail: dict[str, None] = {}
        name: str | None = line.name
        while name is not None and name not in safe and name not in trail:
            trail[name] = None
            name = parents.get(name)
        if name is not None and name in trail:
            way = list(trail)
            looping.update(way[way.index(name) :])
        safe.update(trail)
    for line in lines:
        if line.name in looping:
            loop = [line.name]
            while (above := parents[loop[-1]]) != line.name:
                loop.append(above)
            raise InputError(f"the switches form a loop: {' below '.join([*loop, above])}", path=line.path)


def _with_known_nodes(line: SwitchLine, nodes: Collection[str], notes: Notes) -> SwitchLine:
    known = tuple(name for name in line.nodes if name in nodes)
    if dropped := len(line.nodes) - len(known):
        first = next(name for name in line.nodes if name not in nodes)
        text = f"switch {line.name}: nodes not of the cluster are dropped: {dropped}, the first {first}"
        notes.add("topology", text)
    return SwitchLine(name=line.name, switches=line.switches, nodes=known, path=line.path)


def _without_empty(lines: list[SwitchLine], notes: Notes) -> list[Switch]:
    """Drop switches with nothing below them, from the leaves upwards, and names of switches unknown."""
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
    _note_unknown(lines, notes)
    return [
        Switch(
            name=line.name, nodes=line.nodes, switches=tuple(name for name in line.switches if name in left)
        )
        for line in left.values()
    ]


def _note_unknown(lines: list[SwitchLine], notes: Notes) -> None:
    names = {line.name for line in lines}
    for line in lines:
        for child in line.switches:
            if child not in names:
                notes.add("topology", f"switch {line.name}: {child} below it is not described and is dropped")
