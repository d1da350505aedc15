"""Checks that switches form trees with every node on exactly one leaf."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .checks import known
from .errors import InputError
from .nodes import Switch

#: Switches one above another, at most: each costs a number for every node below it.
MOST_DEPTH = 100
#: Switches of a loop that a message names.
_MOST_SHOWN = 8


def check_switches(switches: Sequence[Switch], nodes: Collection[str]) -> None:
    """Raise InputError unless ``switches`` are trees whose leaves hold each of ``nodes`` exactly once.

    Errors name the switch: repeated or unknown names, a switch below two others, a loop, too many one above
    another, a node on two leaves or on none.
    """
    places: dict[str, int] = {}
    for index, switch in enumerate(switches):
        if switch.name in places:
            message = f"{switch.name!r} stands at switches[{places[switch.name]}] already"
            raise InputError(message, path=f"topology.switches[{index}].name")
        places[switch.name] = index
    parents = _parents(switches, places)
    paths = {switch.name: f"topology.switches[{index}]" for index, switch in enumerate(switches)}
    check_loops(paths, parents, MOST_DEPTH)
    _check_leaves(switches, nodes)


def _parents(switches: Sequence[Switch], places: Collection[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for index, switch in enumerate(switches):
        path = f"topology.switches[{index}].switches"
        for child in switch.switches:
            known(child, places, "switch", path)
            if child in parents:
                raise InputError(f"{child!r} is below {parents[child]!r} already", path=path)
            parents[child] = switch.name
    return parents


def check_loops(paths: Mapping[str, str], parents: Mapping[str, str], deepest: int | None = None) -> None:
    """Refuse a loop, and more than ``deepest`` switches one above another.

    Args:
        paths: the place of each switch, by name.
        parents: the switch above each that has one.
        deepest: None: any number.
    """
    depth: dict[str, int] = {}
    for switch, path in paths.items():
        trail: dict[str, None] = {}
        name: str | None = switch
        while name is not None and name not in depth:
            if name in trail:
                loop = [*list(trail)[list(trail).index(name) :], name]
                message = f"the switches form a loop: {_listed(loop)}"
                raise InputError(message, path=path)
            trail[name] = None
            name = parents.get(name)
        above = 0 if name is None else depth[name]
        if deepest is not None and above + len(trail) > deepest:
            message = f"{above + len(trail)} switches stand one above another, more than {deepest}"
            raise InputError(message, path=path)
        depth |= {below: above + place for place, below in enumerate(reversed(trail), start=1)}


def _listed(loop: Sequence[str]) -> str:
    shown = loop if len(loop) <= _MOST_SHOWN else [*loop[: _MOST_SHOWN - 1], "…", loop[-1]]
    return " below ".join(shown)


def _check_leaves(switches: Sequence[Switch], nodes: Collection[str]) -> None:
    leaf_of: dict[str, str] = {}
    for index, switch in enumerate(switches):
        path = f"topology.switches[{index}].nodes"
        for name in switch.nodes:
            known(name, nodes, "node", path)
            if name in leaf_of:
                where = (
                    "this leaf twice" if leaf_of[name] == switch.name else f"leaf {leaf_of[name]!r} already"
                )
                raise InputError(f"{name!r} stands on {where}", path=path)
            leaf_of[name] = switch.name
    if len(leaf_of) < len(nodes):
        missing = next(name for name in nodes if name not in leaf_of)
        raise InputError(f"node {missing!r} stands on no leaf switch", path="topology.switches")
