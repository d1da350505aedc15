"""Slurm's rule for blocks by enumeration: every count of nodes by block that a job may have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, log2

Vector = tuple[int, ...]


def reach(sizes: tuple[int, ...], blocks: int, count: int) -> tuple[int, int, int]:
    """Return blocks of a group, blocks of a part, and parts, as the documentation defines x, L, l and m."""
    base = sizes[0]
    levels = {round(log2(size / base)) for size in sizes}
    x = ceil(log2(ceil(count / base)))
    above = [level for level in levels if level >= x]
    below = 0 if x == 0 else max(level for level in levels if level <= x - 1)
    return (2 ** min(above) if above else blocks), 2**below, ceil(count / (2**below * base))


def is_unit(sizes: tuple[int, ...], vector: Vector) -> bool:
    """Return whether so many nodes by block may be one segment, or a whole job."""
    group, part, parts = reach(sizes, len(vector), sum(vector))
    touched = [place for place, count in enumerate(vector) if count]
    return len({place // group for place in touched}) == 1 and len({p // part for p in touched}) <= parts


def vectors(free: Vector, count: int) -> Iterator[Vector]:
    """Yield every way to take so many nodes."""
    yield from (one for one in product(*(range(most + 1) for most in free)) if sum(one) == count)


def legal_sets(
    sizes: tuple[int, ...],
    free: Vector,
    nodes: int,
    segment: int | None = None,
    required: Vector = (),
    *,
    spread: bool = False,
    consolidated: bool = False,
) -> set[Vector]:
    """Return every count of nodes by block that a job may have."""
    unit = nodes if segment is None else min(segment, nodes)
    units = [one for one in vectors(free, unit) if is_unit(sizes, one)]
    found: set[Vector] = {(0,) * len(free)}
    # With spread segments what a block gives to others than one is nothing.
    for _ in range(nodes // unit):
        found = {
            tuple(a + b for a, b in zip(total, one, strict=True))
            for total, one in product(found, units)
            if not (spread and any(a and b for a, b in zip(total, one, strict=True)))
        }
        found = {one for one in found if all(a <= b for a, b in zip(one, free, strict=True))}
    if consolidated and unit < nodes:
        base = sizes[0]
        held = ceil(unit / base) * base * (nodes // unit) if spread else nodes
        width = reach(sizes, len(free), held)[0]
        found = {one for one in found if len({place // width for place, c in enumerate(one) if c}) == 1}
    return {one for one in found if not required or all(a >= b for a, b in zip(one, required, strict=True))}


def level(sizes: tuple[int, ...], vector: Vector) -> int:
    """Return how many blocks the least group has that holds all nodes."""
    touched = [place for place, count in enumerate(vector) if count]
    widths = sorted({size // sizes[0] for size in sizes if size // sizes[0] < len(vector)} | {len(vector)})
    return next(width for width in widths if len({place // width for place in touched}) == 1)
