"""Slurm's topology.yaml (25.05 and later): of several topologies the cluster's default is read.

A YAML alias means what it names, and so on: a file of a kilobyte can mean a billion entries. Values
are built from the parser's events one by one, so that such a file is refused at its first alias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from ...cluster.errors import InputError
from ...formats.hostlist import expand
from ...formats.notes import Notes
from ...formats.reading import numbered_lines

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
            raise InputError(f"the alias *{event.anchor[:60]} is not read", path=_line(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise InputError("a second document begins", path=_line(event))

    def _begin(self, container: Any, event: yaml.Event) -> None:
        if len(self._open) >= _DEEPEST:
            raise InputError(f"it is more than {_DEEPEST} levels deep", path=_line(event))
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
        raise InputError("a key is a list or a mapping", path=_line(event))
    if key in holder:
        raise InputError(f"the member {key[:60]!r} stands twice", path=_line(event))
    return key


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}"
