"""Slurm's topology units as networks: blocks in groups of 2^k, rings, three-dimensional tori.

Also the sets of nodes that they allow: on blocks, arcs of rings, boxes of tori.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from ..cluster.checks import unique
from ..cluster.errors import InputError, errors_below
from ..cluster.network import Network, NetworkKind, PlacementSize, Unit
from ..cluster.nodes import Switch
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.demand import Demand
from ..cluster.text import plural
from ..cluster.value_types import IntegerList
from .blocks import BlockRequest, Blocks
from .networks import as_numbered

#: A block size is the base block's times a power of two up to this one.
MOST_DOUBLINGS = 15
#: Without sizes groups of up to 2^4 blocks count, as in Slurm.
_GIVEN_DOUBLINGS = 4
#: The leaf switch of nodes in no block, and the one above all blocks, rings or tori.
NO_UNIT, ALL_UNITS = "(no block)", "(all)"


def blocks(sizes: Sequence[int], units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return blocks of nodes, in the order of their file, in groups of 2^k neighbours.

    Args:
        sizes: nodes of a base block, then of the groups above; none: the nodes of the first block
            that has any, and 2, 4, 8 and 16 times as many.
        units: the blocks. One may be empty, and hold more or fewer nodes than its nominal size.
        outside: nodes in no block.

    Raises:
        InputError: a size is not the first times a power of two up to 2^15, no block has nodes, a
            name or a node is listed twice.
    """
    units = tuple(units)
    _check_units(units, "blocks")
    if not sizes:
        sizes = default_sizes(next(len(unit.nodes) for unit in units if unit.nodes))
    IntegerList(1).coerced(sizes, "topology.sizes")
    allowed = {sizes[0] << doubling for doubling in range(MOST_DOUBLINGS + 1)}
    for place, size in enumerate(sizes):
        if size not in allowed:
            message = f"{size} is not {sizes[0]} times a power of two up to 2^{MOST_DOUBLINGS}"
            raise InputError(message, path=f"topology.sizes[{place}]")
    sizes = tuple(sorted(set(sizes)))
    return _network(NetworkKind.BLOCKS, units, tuple(size // sizes[0] for size in sizes), outside, sizes)


def default_sizes(base: int) -> tuple[int, ...]:
    """Return the block sizes that Slurm takes if none is given, by the nodes of the first block."""
    return tuple(base << doubling for doubling in range(_GIVEN_DOUBLINGS + 1))


def rings(units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return rings of nodes, each by position.

    Raises:
        InputError: a ring has no node, a name or a node is listed twice.
    """
    units = tuple(units)
    _check_units(units, "rings", may_be_empty=False)
    return _network(NetworkKind.RING, units, (1,), outside)


def toruses(units: Iterable[Unit], *, outside: Sequence[str] = ()) -> Network:
    """Return three-dimensional tori, on which a job has one of the sizes that each places.

    Raises:
        InputError: a torus has not the nodes of its dimensions, a box is larger than it, a name or
            a node is listed twice.
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
    with errors_below("topology"):
        unique((unit.name for unit in units), member, "name")
    unit_of: dict[str, str] = {}
    for place, unit in enumerate(units):
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
    return as_numbered(kind, members, switches, sizes=sizes, units=units)


def _switches(units: Sequence[Unit], groups: Sequence[int]) -> tuple[Switch, ...]:
    """Return units as leaf switches, a switch above each group of several, and one above all.

    Args:
        units: in the order of their file, which counts empty ones too.
        groups: how many of them each group of a level has, from the smallest on.
    """
    made = [Switch(name=unit.name, nodes=unit.nodes) for unit in units if unit.nodes]
    # By its first unit's place, each switch with none above: names of its first and last unit.
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


#: A place: node indices, and the unit that they are in.
_Place = tuple[tuple[int, ...], int]


class UnitSets:
    """The sets of nodes that a network's units allow; nodes are numbered in the network's order."""

    def __init__(self, network: Network) -> None:
        self.kind = network.kind
        self.names = tuple(unit.name for unit in network.units)
        sizes = [len(unit.nodes) for unit in network.units]
        #: The unit of each node; nodes in none have the number behind the last.
        outside = len(network.nodes) - sum(sizes)
        self.unit: IntArray = np.repeat(np.arange(len(sizes) + 1), [*sizes, outside])
        self._units = network.units
        self._first = np.cumsum([0, *sizes]).tolist()
        self.blocks = Blocks(sizes=network.sizes or (1,), nodes=tuple(sizes))

    def has(self, nodes: IntArray) -> bool:
        """Return whether some of the nodes are in units."""
        return bool((self.unit[nodes] < len(self.names)).any())

    def free(self, nodes: IntArray) -> list[int]:
        """Return how many of some nodes each unit has."""
        counts = np.bincount(self.unit[nodes], minlength=len(self.names) + 1)
        listed: list[int] = counts[:-1].tolist()
        return listed

    def asked(self, demand: Demand, count: int) -> BlockRequest:
        """Return what a job of so many nodes asks of blocks."""
        request = demand.job.request
        return BlockRequest(
            nodes=count,
            segment=request.segment,
            spread=request.spread_segments,
            consolidated=request.consolidate_segments,
            required=tuple(self.free(demand.required)) if len(demand.required) else (),
        )

    def sets(self, demand: Demand, nodes: IntArray, count: int) -> Iterator[IntArray]:
        """Yield sets of so many nodes that a job may have, Slurm's choices early.

        Args:
            demand: of the job.
            nodes: those that it may have; of a block's the first are taken.
            count: how many it gets.
        """
        if self.kind is NetworkKind.BLOCKS:
            choices = self.blocks.choices(self.free(nodes), self.asked(demand, count))
            yield from self._of_blocks(demand, nodes, choices)
            return
        segment = min(demand.job.request.segment or count, count)
        places = list(self._places(set(nodes.tolist()), segment))
        required = set(demand.required.tolist())
        for start in range(len(places)):
            chosen = self._disjoint(places[start:], count // segment)
            if chosen is not None and required <= set(chosen):
                yield np.array(sorted(chosen), np.int64)

    def chosen(self, demand: Demand, nodes: IntArray, count: int) -> IntArray | None:
        """Return the nodes that Slurm would choose, asked as ``sets`` is; None: there are none."""
        if self.kind is not NetworkKind.BLOCKS:
            return next(self.sets(demand, nodes, count), None)
        choice = self.blocks.choice(self.free(nodes), self.asked(demand, count))
        return None if choice is None else next(self._of_blocks(demand, nodes, [choice]))

    def _of_blocks(
        self, demand: Demand, nodes: IntArray, choices: Iterable[Sequence[int]]
    ) -> Iterator[IntArray]:
        """Yield the nodes of each choice of counts by block: required ones, then the first."""
        is_required = np.isin(nodes, demand.required)
        nodes = np.concatenate([nodes[is_required], nodes[~is_required]])
        inside = nodes[np.argsort(self.unit[nodes], kind="stable")]
        first = np.cumsum([0, *self.free(inside)])
        for counts in choices:
            yield np.concatenate(
                [inside[first[unit] : first[unit] + held] for unit, held in enumerate(counts) if held]
            )

    def shortage(self, demand: Demand, nodes: IntArray, count: int) -> str:
        """Return why a job may have no set of so many of some nodes; empty if it may have one."""
        if next(self.sets(demand, nodes, count), None) is not None:
            return ""
        asked = self.asked(demand, count)
        many = plural(asked.unit, "free node")
        alone = "" if demand.alone_in is None else " without other jobs"
        if self.kind is NetworkKind.RING:
            each = " for each segment" if asked.unit < count else ""
            return f"no ring{alone} has {many} in a row{each}"
        if self.kind is NetworkKind.TORUS3D:
            sizes = sorted({prod(size.dims) for unit in self._units for size in unit.placements})
            other = f"the torus' placements have {' or '.join(map(str, sizes))} nodes, not {asked.unit}"
            return f"no placement has {many}" if asked.unit in sizes else other
        free, reach = self.free(nodes), self.blocks.reach(asked.unit)
        most, best = self.blocks.most(free, reach)
        if most >= asked.unit:
            whole = plural(count, "node")
            what = f"segments of {plural(asked.unit, 'node')}" if asked.unit < count else whole
            return f"blocks{alone} with {plural(sum(free), 'free node')} hold no {what} as asked"
        if reach.group == 1:
            return f"no block{alone} has {many}; block {self.names[best]} has {most}"
        last = min(best + reach.group, len(self.names)) - 1
        where = f"{self.names[best]} to {self.names[last]}"
        is_bound = reach.parts < reach.group
        parts = f" on {reach.parts} of its parts of {reach.part}" if is_bound else ""
        return f"no group of {reach.group} blocks{alone} has {many}{parts}; {where} have {most}"

    def _disjoint(self, places: Iterable[_Place], wanted: int) -> list[int] | None:
        """Return the nodes of the first so many places that share none; a ring has one at most."""
        taken: list[int] = []
        used: set[int] = set()
        for nodes, unit in places:
            # Of a ring its number, below 0 as no node's is.
            marks = set(nodes) if self.kind is NetworkKind.TORUS3D else {~unit}
            if wanted and used.isdisjoint(marks):
                taken.extend(nodes)
                used |= marks
                wanted -= 1
        return None if wanted else taken

    def _places(self, free: set[int], count: int) -> Iterator[_Place]:
        """Yield arcs or boxes of so many free nodes, of the fullest units first."""
        left = [sum(node in free for node in self._range(unit)) for unit in range(len(self._units))]
        for unit in sorted(range(len(left)), key=lambda one: (left[one], one)):
            members = self._range(unit)
            shapes = (
                arcs(len(members), count)
                if self.kind is NetworkKind.RING
                else boxes(self._units[unit], count)
            )
            for shape in shapes:
                nodes = tuple(members[place] for place in shape)
                if free.issuperset(nodes):
                    yield nodes, unit

    def _range(self, unit: int) -> range:
        return range(self._first[unit], self._first[unit + 1])


def arcs(length: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield the positions of every arc of so many consecutive nodes of a ring, by their first."""
    if count <= length:
        yield from (
            tuple((start + step) % length for step in range(count))
            for start in range(length if count < length else 1)
        )


def boxes(torus: Unit, count: int) -> Iterator[tuple[int, ...]]:
    """Yield the places, x fastest, of every box of so many nodes that a torus' placements allow."""
    for size in torus.placements:
        if prod(size.dims) == count:
            yield from (_box(torus.dims, size.dims, corner) for corner in anchors(torus.dims, size))


def anchors(dims: Sequence[int], size: PlacementSize) -> list[tuple[int, int, int]]:
    """Return the first corners of a placement's boxes: from seed by spacing, round the ends."""
    along = [
        sorted({(seed + step * spacing) % length for step in range(-(-length // spacing))})
        for seed, spacing, length in zip(size.anchor_seed, size.anchor_spacing, dims, strict=True)
    ]
    return [(x, y, z) for z, y, x in product(*along[::-1])]


def _box(dims: Sequence[int], size: Sequence[int], corner: tuple[int, int, int]) -> tuple[int, ...]:
    wide, deep, high = dims
    return tuple(
        (corner[0] + x) % wide + wide * ((corner[1] + y) % deep + deep * ((corner[2] + z) % high))
        for z, y, x in product(range(size[2]), range(size[1]), range(size[0]))
    )
