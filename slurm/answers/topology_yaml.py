"""Slurm's topology.yaml (25.05 and later): several topologies, of which the cluster's default is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...cluster.errors import InputError
from ...formats.notes import Notes
from ...formats.reading import numbered_lines
from .topology_lines import SwitchLine, names
from .yaml_text import yaml_value

_KINDS = ("tree", "block", "flat")
#: Beyond this no topology file is one: the reader would take minutes over it.
_LONGEST = 16_000_000


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
        notes.add("topology", f"topology {name!r} is {kinds[0]}, not a tree: its nodes are taken as linear")
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
