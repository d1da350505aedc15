"""Slurm's topology units as networks: blocks in groups of 2^k, rings, three-dimensional tori."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ..cluster.errors import InputError
from ..cluster.network import Network, NetworkKind, Unit
from ..cluster.nodes import Switch
from .networks import check_sizes

#: A block size is the base block's times a power of two up to this one.
MOST_DOUBLINGS = 15
#: Without sizes groups of up to 2^4 blocks count, as in Slurm.
_GIVEN_DOUBLINGS = 4
#: The leaf switch of nodes in no block, and the one above all blocks, rings or tori.
NO_UNIT, ALL_UNITS = "(no block)", "(all)"


def blocks(sizes: Sequence[int], units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return blocks of nodes, in the order of their file, in groups of 2^k neighbours.

    Args:
        sizes: nodes of a base block, then of the groups above; none: the nodes of the first block that has
            any, and 2, 4, 8 and 16 times as many.
        units: the blocks. One may be empty, and hold more or fewer nodes than its nominal size.
        outside: nodes in no block.

    Raises:
        InputError: a size is not the first times a power of two up to 2^15, no block has nodes, a name or a
            node stands twice.
    """
    units = tuple(units)
    _check_units(units, "blocks")
    if not sizes:
        sizes = default_sizes(next(len(unit.nodes) for unit in units if unit.nodes))
    check_sizes(sizes, "topology.sizes")
    allowed = {sizes[0] << doubling for doubling in range(MOST_DOUBLINGS + 1)}
    for place, size in enumerate(sizes):
        if size not in allowed:
            message = f"{size} is not {sizes[0]} times a power of two up to 2^{MOST_DOUBLINGS}"
            raise InputError(message, path=f"topology.sizes[{place}]")
    sizes = tuple(sorted(set(sizes)))
    return _network(NetworkKind.BLOCKS, units, tuple(size // sizes[0] for size in sizes), outside, sizes)


def default_sizes(base: int) -> tuple[int, ...]:
    """Return the block sizes that Slurm takes where none is given, by the nodes of the first block."""
    return tuple(base << doubling for doubling in range(_GIVEN_DOUBLINGS + 1))


def rings(units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return rings of nodes, each by position.

    Raises:
        InputError: a ring has no node, a name or a node stands twice.
    """
    units = tuple(units)
    _check_units(units, "rings", may_be_empty=False)
    return _network(NetworkKind.RING, units, (1,), outside)


def toruses(units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return three-dimensional tori, on which a job has one of the sizes that each places.

    Raises:
        InputError: a torus has not the nodes of its dimensions, a box is larger than it, a name or a node
            stands twice.
    """
    units = tuple(units)
    _check_units(units, "toruses", may_be_empty=False)
    for place, unit in enumerate(units):
        path = f"topology.toruses[{place}]"
        if not unit.dims:
            raise InputError("a torus needs them", path=f"{path}.dims")
        if prod(unit.dims) != len(unit.nodes):
            shape = "x".join(map(str, unit.dims))
            raise InputError(f"{shape} has {prod(unit.dims)} places, for {len(unit.nodes)} nodes", path=path)
        for number, box in enumerate(unit.placements):
            if any(one > length for one, length in zip(box.dims, unit.dims, strict=True)):
                message = f"{'x'.join(map(str, box.dims))} is larger than the torus"
                raise InputError(message, path=f"{path}.placements[{number}].dims")
    return _network(NetworkKind.TORUS3D, units, (1,), outside)


def _check_units(units: Sequence[Unit], member: str, *, may_be_empty: bool = True) -> None:
    path = f"topology.{member}"
    if not any(unit.nodes for unit in units):
        raise InputError("none has a node", path=path)
    names: dict[str, int] = {}
    unit_of: dict[str, str] = {}
    for place, unit in enumerate(units):
        if names.setdefault(unit.name, place) != place:
            message = f"{unit.name!r} stands at {member}[{names[unit.name]}] already"
            raise InputError(message, path=f"{path}[{place}].name")
        if not unit.nodes and not may_be_empty:
            raise InputError("it has no node", path=f"{path}[{place}].nodes")
        for name in unit.nodes:
            if name in unit_of:
                raise InputError(f"{name!r} is in {unit_of[name]!r} already", path=f"{path}[{place}].nodes")
            unit_of[name] = unit.name


def _network(
    kind: NetworkKind,
    units: tuple[Unit, ...],
    groups: Sequence[int],
    outside: Sequence[str],
    sizes: tuple[int, ...] = (),
) -> Network:
    members = (*(name for unit in units for name in unit.nodes), *outside)
    switches = _switches(units, groups)
    if outside:
        switches = (*switches, Switch(name=NO_UNIT, nodes=tuple(outside)))
    return Network(
        kind=kind,
        members=members,
        nodes=members,
        switches=switches,
        sizes=sizes,
        units=units,
        order="members",
    )


def _switches(units: Sequence[Unit], groups: Sequence[int]) -> tuple[Switch, ...]:
    """Return units as leaf switches, and a switch above each group of several; one above all blocks.

    Args:
        units: in the order of their file, which counts empty ones too.
        groups: how many of them each group of a level has, from the smallest on.
    """
    made = [Switch(name=unit.name, nodes=unit.nodes) for unit in units if unit.nodes]
    # By its first unit's place each switch with none above, with the names of its first and last unit.
    tops = {place: (unit.name,) * 3 for place, unit in enumerate(units) if unit.nodes}
    taken = {unit.name for unit in units}
    for size in (*groups[1:], len(units)):
        inside: dict[int, list[int]] = {}
        for place in tops:
            inside.setdefault(place // size, []).append(place)
        above: dict[int, tuple[str, str, str]] = {}
        for places in inside.values():
            below = [tops[place] for place in places]
            above[places[0]] = below[0]
            if len(below) > 1:
                first, last = below[0][1], below[-1][2]
                name = ALL_UNITS if len(inside) == 1 else f"{first}-{last}"
                while name in taken:
                    name += "+"
                made.append(Switch(name=name, switches=[one for one, _, _ in below]))
                above[places[0]] = (name, first, last)
        tops = above
    return tuple(made)
