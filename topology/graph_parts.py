"""A cluster cut into parts along its switches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .tree import IntArray, Topology


def parts_of_nodes(topology: Topology, most: int) -> IntArray:
    """Return the part of each node, shape (n,), in depth-first order; each part of at most ``most`` nodes.

    Switches with too many nodes below are cut between those below them, and neighbours are put together again
    as far as they fit; nodes of one leaf, or without switches, are cut evenly where they have to be.
    """
    nodes = len(topology.order)
    cuts = {0, nodes}
    for depth in range(topology.path.shape[1]):
        above = topology.path[topology.order, depth]
        changes = np.flatnonzero(np.diff(above)) + 1
        bounds = np.array(sorted(cuts))
        within = np.searchsorted(bounds, changes, side="right") - 1
        too_large = (bounds[np.minimum(within + 1, len(bounds) - 1)] - bounds[within]) > most
        cuts |= set(changes[too_large].tolist())
    cuts |= set(_even_cuts(sorted(cuts), most))
    starts, bounds_list = [0], sorted(cuts)
    for end, after in zip(bounds_list[1:], [*bounds_list[2:], nodes + most + 1], strict=True):
        if after - starts[-1] > most and end < nodes:
            starts.append(end)
    part = np.empty(nodes, np.int64)
    part[topology.order] = np.searchsorted(np.array(starts), np.arange(nodes), side="right") - 1
    return part


def _even_cuts(bounds: list[int], most: int) -> list[int]:
    cuts: list[int] = []
    for start, end in pairwise(bounds):
        pieces = -(-(end - start) // most)
        cuts.extend(start + (end - start) * piece // pieces for piece in range(1, pieces))
    return cuts
