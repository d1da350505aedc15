"""The sets of nodes that Slurm's topology units allow: on blocks, arcs of rings, boxes of tori."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from ..cluster.network import Network, NetworkKind, PlacementSize, Unit
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.demand import Demand
from ..cluster.text import plural
from .blocks import BlockRequest, Blocks

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
        """Return why a job may have no set of so many of some nodes; empty if it may have one.

        Args:
            demand: of the job.
            nodes: those that it may have.
            count: how many it gets.
        """
        if next(self.sets(demand, nodes, count), None) is not None:
            return ""
        asked = self.asked(demand, count)
        many = plural(asked.unit, "free node")
        alone = "" if demand.alone_in is None else " without other jobs"
        if self.kind is NetworkKind.RING:
            each = " for each segment" if asked.unit < count else ""
            return f"no ring{alone} has {many} in a row{each}"
        if self.kind is NetworkKind.TORUS3D:
            sizes = {prod(size.dims) for unit in self._units for size in unit.placements}
            is_size = asked.unit in sizes
            return (
                f"no placement has {many}" if is_size else f"no placement is of {plural(asked.unit, 'node')}"
            )
        free, reach = self.free(nodes), self.blocks.reach(asked.unit)
        most, best = self.blocks.most(free, reach)
        if most >= asked.unit:
            what = f"segments of {asked.unit} nodes" if asked.unit < count else f"{count} nodes"
            return f"blocks{alone} with {plural(sum(free), 'free node')} hold no {what} as asked"
        if reach.group == 1:
            return f"no block{alone} has {many}; block {self.names[best]} has {most}"
        last = min(best + reach.group, len(self.names)) - 1
        where = f"{self.names[best]} to {self.names[last]}"
        is_bound = reach.parts < reach.group
        parts = f" on {reach.parts} of its parts of {reach.part}" if is_bound else ""
        return f"no group of {reach.group} blocks{alone} has {many}{parts}; {where} have {most}"

    def _disjoint(self, places: Iterable[_Place], wanted: int) -> list[int] | None:
        """Return the nodes of the first so many places that share none; a ring holds one at most."""
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
    """Return the first corners of a placement's boxes: from its seed by its spacing, round the ends."""
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
