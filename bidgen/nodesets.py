"""Nodesets: maximal contiguous runs of nodes with free cores and enough free gres (Soner, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..cluster.resources.capacity import BoolArray, Capacity, IntArray
from ..cluster.resources.columns import Columns
from ..topology.tree import Topology


def runs(mask: BoolArray, borders: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """Return first and last indices of the maximal runs of a mask; a border before a node ends a run."""
    before = np.concatenate([[False], mask[:-1]])
    after = np.concatenate([mask[1:], [False]])
    starts, ends = mask & ~before, mask & ~after
    if borders is not None:
        starts |= mask & borders
        ends |= mask & np.concatenate([borders[1:], [True]])
    return np.flatnonzero(starts), np.flatnonzero(ends)


def nodeset_numbers(columns: Columns, gres: Mapping[str, int]) -> IntArray:
    """Return the number of the nodeset that each node stands in, ascending with the nodes; shape (n,).

    Args:
        columns: the nodes and what is free on them.
        gres: the count g of each gres that every node of a nodeset has free.
    """
    mask = columns.takes_jobs & (columns.free.cores > 0)
    for kind, count in gres.items():
        # A job may ask for gres that no node has.
        mask = mask & (columns.free.gres.get(kind, np.zeros_like(columns.free.cores)) >= count)
    numbers: IntArray = np.cumsum(mask & ~np.concatenate([[False], mask[:-1]]))
    return numbers


def general_nodesets(columns: Columns, free: Capacity, topology: Topology, *, use_switches: bool) -> int:
    """Return |S|: the distinct nodesets of all nodes over every gres and every count that is free.

    With ``use_switches`` the nodes below every switch are scanned as well (AUCSCHED3).
    """
    usable = columns.takes_jobs & (free.cores > 0)
    masks = [usable]
    for counts in free.gres.values():
        masks.extend(usable & (counts >= count) for count in np.unique(counts[usable]) if count > 0)
    depths = range(topology.path.shape[1]) if use_switches else range(0)
    borders = [np.diff(topology.path[:, depth], prepend=-1) != 0 for depth in depths]
    return sum(_distinct(mask, borders) for mask in masks)


def _distinct(mask: BoolArray, borders: list[BoolArray]) -> int:
    found = [runs(mask), *(runs(mask, border) for border in borders)]
    pairs = np.concatenate([first * len(mask) + last for first, last in found])
    return len(np.unique(pairs))
