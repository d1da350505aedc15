"""Switch trees as Slurm writes them: topology.conf, topology.yaml, ``scontrol show topology``.

Blocks, rings and tori are no trees, and Slurm has rules for which of their nodes a job may get. Nothing
here looks at these rules: the nodes are taken in a row, and a note says so.

Of topology.yaml's several topologies (25.05 and later) the cluster's default is read. A YAML alias means what
it names, and so on: a file of a kilobyte can mean a billion entries. Values are built from the parser's
events one by one, so that such a file is refused at its first alias.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.nodes import Switch
from ...formats.hostlist import expand
from ...formats.notes import Notes
from ...formats.reading import numbered_lines
from .answer_text import joined_lines

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
                raise InputError(f"switch {child!r} is below {first!r} already", path=line.path)
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


_KINDS = ("tree", "block", "flat", "ring", "torus3d")
#: Beyond this no topology file is one: the reader would take minutes over it.
_LONGEST = 16_000_000
#: A topology is four deep.
_DEEPEST = 20
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"!", "str", "int", "float", "bool", "null", "seq", "map"}
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchLine:
    """A switch as written; ``path`` is its place in the file."""

    name: str
    switches: tuple[str, ...]
    nodes: tuple[str, ...]
    path: str


def is_yaml(text: str) -> bool:
    """Whether a topology is topology.yaml: a list, where topology.conf has ``Key=Value`` lines."""
    lines = (line for _, line in numbered_lines(text))
    first = next((line for line in lines if not line.startswith(("#", "%"))), "")
    return first.startswith(("-", "["))


def yaml_lines(text: str, notes: Notes) -> list[SwitchLine]:
    """Return the switches of the default topology; none where it is no tree.

    Raises:
        InputError: it is no YAML, or not as topology.yaml(5) has it; the path names the entry.
    """
    entries = _load(text)
    chosen = next((place for place, entry in enumerate(entries) if _is_default(entry)), None)
    if chosen is None:
        chosen = 0
        if len(entries) > 1:
            notes.add("topology", f"no topology is the cluster's default: {_name(entries[0], 0)!r} is read")
    name = _name(entries[chosen], chosen)
    for place, entry in enumerate(entries):
        if place != chosen:
            notes.add("topology", f"topology {_name(entry, place)!r} is not read: {name!r} is the default")
    return list(_switches(entries[chosen], f"[{chosen}]", name, notes))


def _load(text: str) -> list[dict[str, Any]]:
    if len(text) > _LONGEST:
        raise InputError(f"{len(text)} characters are above the limit of {_LONGEST}")
    document = yaml_value(text)
    if not isinstance(document, list) or not document:
        raise InputError("it is no list of topologies")
    for place, entry in enumerate(document):
        if not isinstance(entry, dict):
            raise InputError(f"{str(entry)[:60]!r} is not a topology", path=f"[{place}]")
    return document


def _is_default(entry: dict[str, Any]) -> bool:
    return entry.get("cluster_default") is True


def _name(entry: dict[str, Any], place: int) -> str:
    name = entry.get("topology")
    if not isinstance(name, str) or not name:
        raise InputError("the member 'topology' is missing or no name", path=f"[{place}]")
    return name


def _switches(entry: dict[str, Any], path: str, name: str, notes: Notes) -> Iterator[SwitchLine]:
    kinds = [kind for kind in _KINDS if entry.get(kind) not in (None, False)]
    if len(kinds) != 1:
        raise InputError(f"topology {name!r} is not exactly one of {', '.join(_KINDS)}", path=path)
    if kinds != ["tree"]:
        tell = notes.add if kinds == ["flat"] else notes.unread
        text = f"topology {name!r} is {kinds[0]}, not a tree: its nodes are taken as linear"
        tell("topology", text)
        return
    tree = entry["tree"]
    switches = tree.get("switches") if isinstance(tree, dict) else None
    if not isinstance(switches, list):
        raise InputError("the member 'switches' is missing or no list", path=f"{path}.tree")
    for place, switch in enumerate(switches):
        yield _switch(switch, f"{path}.tree.switches[{place}]", notes)


def _switch(switch: Any, path: str, notes: Notes) -> SwitchLine:
    if not isinstance(switch, dict):
        raise InputError(f"{str(switch)[:60]!r} is not a switch", path=path)
    for key in switch.keys() - {"switch", "children", "nodes"}:
        notes.add("topology", f"{path}: {key!r} is not read")
    texts = {key: switch.get(key) for key in ("switch", "children", "nodes")}
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"{str(value)[:60]!r} is not a hostlist", path=f"{path}.{key}")
    name, children, nodes = (value or "" for value in texts.values())
    if not name or not (children or nodes):
        raise InputError("it is not switch with children or nodes", path=path)
    return SwitchLine(
        name=name,
        switches=names(children, f"{path}.children"),
        nodes=() if children else names(nodes, f"{path}.nodes"),
        path=path,
    )


def names(text: str, path: str) -> tuple[str, ...]:
    """Return the names of a hostlist that may be empty."""
    return expand(text, path) if text else ()


def yaml_value(text: str) -> Any:
    """Return the document in a text: lists, dicts, texts, true, false, None; numbers stay texts.

    Raises:
        InputError: it is no YAML, uses an alias, is too deep, or a key is no text or stands twice.
    """
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())[:200]}") from error
    return builder.value


class _Builder:
    """Builds one value of the parser's events."""

    def __init__(self) -> None:
        self.value: Any = None
        self._documents = 0
        self._open: list[Any] = []
        self._keys: list[str | None] = []

    def take(self, event: yaml.Event) -> None:
        """Add what an event says."""
        tag = getattr(event, "tag", None)
        if tag is not None and tag.removeprefix(_STANDARD) not in _TAGS:
            raise InputError(f"not YAML: the tag {tag[:60]!r} is not known")
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style in (None, "") and event.tag is None
            self._add(_WORDS.get(event.value, event.value) if plain else event.value, event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._begin([] if isinstance(event, yaml.SequenceStartEvent) else {}, event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise InputError(f"the alias *{event.anchor[:60]} is not read", path=_yaml_line(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise InputError("a second document begins", path=_yaml_line(event))

    def _begin(self, container: Any, event: yaml.Event) -> None:
        if len(self._open) >= _DEEPEST:
            raise InputError(f"it is more than {_DEEPEST} levels deep", path=_yaml_line(event))
        self._add(container, event)
        self._open.append(container)
        self._keys.append(None)

    def _add(self, value: Any, event: yaml.Event) -> None:
        if not self._open:
            self.value = value
            return
        holder = self._open[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif self._keys[-1] is None:
            self._keys[-1] = _key(value, event, holder)
        else:
            holder[self._keys[-1]] = value
            self._keys[-1] = None


def _key(value: Any, event: yaml.Event, holder: dict[str, Any]) -> str:
    key = event.value if isinstance(event, yaml.ScalarEvent) else value
    if not isinstance(key, str):
        raise InputError("a key is a list or a mapping", path=_yaml_line(event))
    if key in holder:
        raise InputError(f"the member {key[:60]!r} stands twice", path=_yaml_line(event))
    return key


def _yaml_line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}"
