"""An independent check that an award keeps Slurm's rules for blocks, rings and tori.

Plain Python that shares nothing with the sets that jobs bid on.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import product
from math import ceil, log2

from ..cluster.jobs import Request
from ..cluster.network import Network, NetworkKind, Unit


def unit_fault(network: Network, request: Request, held: Collection[str]) -> str:
    """Return what an award breaks of its network's rules, by names of its nodes; "": nothing."""
    inside = {name for unit in network.units for name in unit.nodes}
    here = [name for name in held if name in inside]
    if not here:
        return ""
    if len(here) < len(held):
        return "has nodes in and outside of units"
    counts = tuple(sum(name in held for name in unit.nodes) for unit in network.units)
    if network.kind is NetworkKind.BLOCKS:
        return _block_fault(network.sizes, counts, request)
    segment = min((request.node_counts and request.segment) or len(here), len(here))
    if network.kind is NetworkKind.RING:
        units = [unit for unit, count in zip(network.units, counts, strict=True) if count]
        is_legal = all(_is_arc(unit, held, segment) for unit in units)
        return "" if is_legal else f"is not on arcs of {segment} nodes, one a ring"
    places = [box for unit in network.units for box in _boxes(unit, segment) if box <= set(held)]
    return "" if _is_cut(frozenset(here), places) else f"is not in placements of {segment} nodes"


def _is_arc(ring: Unit, held: Collection[str], count: int) -> bool:
    mine = [name in held for name in ring.nodes]
    # An arc begins once on the way round the ring, unless it is all of it.
    pairs = zip(mine, mine[-1:] + mine[:-1], strict=True)
    begins = sum(is_mine and not before for is_mine, before in pairs)
    return sum(mine) == count and (begins == 1 or all(mine))


def _boxes(torus: Unit, count: int) -> Iterator[frozenset[str]]:
    """Yield the nodes of each box of a torus' placements that has so many nodes."""
    wide, deep, high = torus.dims
    for size in torus.placements:
        corners = product(*(range(length) for length in torus.dims))
        for corner in corners:
            steps = zip(corner, size.anchor_seed, size.anchor_spacing, torus.dims, strict=True)
            is_anchor = all(
                (place - seed) % length in range(0, length, by) for place, seed, by, length in steps
            )
            box = {
                torus.nodes[
                    (corner[0] + x) % wide + wide * ((corner[1] + y) % deep + deep * ((corner[2] + z) % high))
                ]
                for x, y, z in product(*(range(length) for length in size.dims))
            }
            if is_anchor and len(box) == count:
                yield frozenset(box)


def _is_cut(nodes: frozenset[str], places: Collection[frozenset[str]]) -> bool:
    if not nodes:
        return True
    one = min(nodes)
    mine = (place for place in places if one in place and place <= nodes)
    return any(_is_cut(nodes - place, places) for place in mine)


def _block_fault(sizes: tuple[int, ...], counts: tuple[int, ...], request: Request) -> str:
    nodes = sum(counts)
    # A job without a node count counts as one node: one base block.
    asked = 1 if request.node_counts is None else nodes
    unit = asked if request.segment is None or request.node_counts is None else min(request.segment, nodes)
    group, part, parts = _reach(sizes, len(counts), unit)
    if unit == asked:
        groups = {place // group for place, count in enumerate(counts) if count}
        touched = {place // part for place, count in enumerate(counts) if count}
        return "" if len(groups) == 1 and len(touched) <= parts else "is on too many blocks"
    if request.consolidate_segments:
        base = sizes[0]
        least = ceil(unit / base) * base * (nodes // unit) if request.spread_segments else nodes
        width = _reach(sizes, len(counts), least)[0]
        if len({place // width for place, count in enumerate(counts) if count}) > 1:
            return "is not consolidated"
    is_spread = request.spread_segments
    for start in range(0, len(counts), group):
        here = counts[start : start + group]
        if not is_spread and parts * part >= group and sum(here) % unit == 0:
            continue
        if not _is_segmented(here, unit, part, parts, is_spread):
            return f"is not in segments of {unit} nodes"
    return ""


def _reach(sizes: tuple[int, ...], blocks: int, count: int) -> tuple[int, int, int]:
    """Return the blocks of a group that holds so many nodes, of its parts, and the most parts."""
    wanted = ceil(log2(ceil(count / sizes[0])))
    levels = [round(log2(size / sizes[0])) for size in sizes]
    group = min((2**level for level in levels if level >= wanted), default=blocks)
    part = max((2**level for level in levels if level < wanted), default=1)
    return group, part, ceil(count / (part * sizes[0]))


@lru_cache(maxsize=10_000)
def _is_segmented(counts: tuple[int, ...], unit: int, part: int, parts: int, is_spread: bool) -> bool:
    """Return whether counts of a group's blocks are sums of segments, each in some parts only."""
    first = next((place for place, count in enumerate(counts) if count), None)
    if first is None:
        return True

    def ways(at: int, missing: int, used: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if at == len(counts):
            yield from [] if missing else [()]
            return
        amounts = {0, counts[at]} if is_spread else set(range(counts[at] + 1))
        for amount in sorted(amounts - ({0} if at == first else set()), reverse=True):
            now = used | {at // part} if amount else used
            if amount <= missing and len(now) <= parts:
                yield from ((amount, *rest) for rest in ways(at + 1, missing - amount, now))

    return any(
        _is_segmented(
            tuple(count - amount for count, amount in zip(counts, way, strict=True)),
            unit,
            part,
            parts,
            is_spread,
        )
        for way in ways(0, unit, frozenset())
    )
