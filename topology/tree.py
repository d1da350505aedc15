"""A cluster's topology as arrays: the switch of every node at every depth, levels, distances.

Torus, dragonfly and any graph come here as groups of neighbours (``networks``), as switches.

Slurm numbers levels from the leaves: a leaf switch has level 0, a switch above others one more than
the highest of them. The linear topology is one switch above all nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from ..cluster.nodes import Switch
from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..cluster.snapshot import Snapshot
from .distances import Hops, hops_of
from .units import UnitSets

#: The name of the switch put above a forest's roots, which share no real one.
NO_COMMON_SWITCH = "(no common switch)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Topology:
    """The switches above ``n`` nodes.

    Attributes:
        is_linear: there are no switches; contiguity is all that matters.
        names: switch names, by switch index.
        level: level of each switch, shape (switches,).
        depth: steps from the root to each switch, shape (switches,).
        path: switch indices from the root to the leaf of each node, shape (n, D); where a leaf
            stands higher than others its index is repeated.
        rank: place of each node in depth-first order, shape (n,); a leaf's in snapshot order.
        order: node indices in depth-first order, shape (n,).
        low, high: the half-open range of ranks below each switch, shape (switches,).
        units: which node sets blocks, rings or three-dimensional tori allow; None: there are none.
        distances: links between nodes of a network with groups as switches; None: the tree's.
    """

    is_linear: bool
    names: tuple[str, ...]
    level: IntArray
    depth: IntArray
    path: IntArray
    rank: IntArray
    order: IntArray
    low: IntArray
    high: IntArray
    distances: Hops | None = None
    units: UnitSets | None = None

    @property
    def max_level(self) -> int:
        """Level of the highest switch, L_max of Soner (6.5)."""
        return int(self.level.max())

    @property
    def is_one_switch(self) -> bool:
        """Whether all nodes stand below one switch and no other."""
        return len(self.level) == 1

    @property
    def leaf(self) -> IntArray:
        """Leaf switch of each node, shape (n,)."""
        return self.path[:, -1]

    @cached_property
    def in_snapshot_order(self) -> bool:
        """Whether depth-first order is the snapshot's: each switch's nodes are consecutive."""
        return bool((np.diff(self.rank) > 0).all())

    def common_switch(self, first: IntArray, last: IntArray) -> IntArray:
        """Return the lowest common switch of node pairs, elementwise; shape of ``first``.

        For a set of nodes take the least and greatest ``rank``: their switch is the set's.
        """
        switch: IntArray = self.path[:, 0][first]
        for above in self.path.T[1:]:
            own = above[first]
            is_common = own == above[last]
            if not is_common.any():
                break
            switch = np.where(is_common, own, switch)
        return switch

    def common_switch_of_sets(self, indptr: IntArray, nodes: IntArray) -> IntArray:
        """Return the lowest common switch of many node sets at once.

        Args:
            indptr: set ``i`` is ``nodes[indptr[i]:indptr[i + 1]]``, none empty; shape (sets + 1,).
            nodes: node indices, any order.

        Returns:
            A switch index for each set; ``level`` of it is L_i of Soner (6.5).
        """
        if len(indptr) < 2:  # noqa: PLR2004 - no set at all
            return np.zeros(0, np.int64)
        ranks = self.rank[nodes]
        first = self.order[np.minimum.reduceat(ranks, indptr[:-1])]
        last = self.order[np.maximum.reduceat(ranks, indptr[:-1])]
        return self.common_switch(first, last)

    def leaf_counts(self, indptr: IntArray, nodes: IntArray) -> IntArray:
        """Return how many leaf switches each of many node sets touches (sets as above)."""
        sets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        pairs = np.unique(sets * len(self.level) + self.leaf[nodes])
        counts: IntArray = np.bincount(pairs // len(self.level), minlength=len(indptr) - 1)
        return counts

    def whole_shares(self, is_empty: BoolArray) -> FloatArray:
        """Return each switch's share of all, shape (switches,); 0 unless all nodes below are empty.

        A switch counts a quarter of one a level below.
        """
        before = np.concatenate([[0], np.cumsum(is_empty[self.order])])
        weight = 4.0 ** -self.level.astype(np.float64)
        is_whole = before[self.high] - before[self.low] == self.high - self.low
        shares: FloatArray = is_whole * weight / weight.sum()
        return shares

    def broken_shares(self, indptr: IntArray, nodes: IntArray, is_empty: BoolArray) -> FloatArray:
        """Return the share of wholly free switches from which each node set (as above) takes."""
        share = self.whole_shares(is_empty)
        sets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        above = self.path[nodes]
        place, depth = np.nonzero(share[above])
        pairs = np.unique(sets[place] * len(share) + above[place, depth])
        cost: FloatArray = share[pairs % len(share)]
        found: FloatArray = np.bincount(pairs // len(share), cost, len(indptr) - 1).astype(np.float64)
        return found

    def hops(self, first: IntArray, last: IntArray) -> IntArray:
        """Return the links between node pairs, elementwise: up to the common switch and down again.

        In the linear topology it is the distance in the order, in a torus, a dragonfly or a graph
        the fewest links of any way.
        """
        if self.distances is not None:
            return self.distances(first, last)
        if self.is_linear:
            apart: IntArray = np.abs(first - last)
            return apart
        switch = self.common_switch(first, last)
        up = self.depth[self.leaf[first]] + 1 - self.depth[switch]
        down = self.depth[self.leaf[last]] + 1 - self.depth[switch]
        return np.where(first == last, 0, up + down)

    def below(self, nodes: IntArray, switch: IntArray) -> BoolArray:
        """Return whether each node stands below the switch beside it, elementwise."""
        ranks = self.rank[nodes]
        return (ranks >= self.low[switch]) & (ranks < self.high[switch])


def topology_of(snapshot: Snapshot) -> Topology:
    """Return a snapshot's topology; its switches were checked when it was built."""
    if snapshot.switches is None:
        return linear(len(snapshot.nodes))
    names = [node.name for node in snapshot.nodes]
    made = tree(snapshot.switches, names)
    network = snapshot.network
    if network is None:
        return made
    units = UnitSets(network) if network.units else None
    return replace(made, distances=hops_of(network, names), units=units)


def linear(count: int) -> Topology:
    """Return the topology of ``count`` nodes in a row: one switch of level 0 above all of them."""
    zero = np.zeros(1, np.int64)
    return Topology(
        is_linear=True,
        names=("",),
        level=zero,
        depth=zero,
        path=np.zeros((count, 1), np.int64),
        rank=np.arange(count),
        order=np.arange(count),
        low=zero,
        high=np.array([count]),
    )


def tree(switches: Sequence[Switch], nodes: Sequence[str]) -> Topology:
    """Return the topology of a checked tree of switches above ``nodes`` (in snapshot order).

    Several roots get a switch above them, one level higher, named NO_COMMON_SWITCH.
    """
    node_index = {name: index for index, name in enumerate(nodes)}
    names = [switch.name for switch in switches]
    index = {name: place for place, name in enumerate(names)}
    below = [sorted(node_index[name] for name in switch.nodes) for switch in switches]
    children = [[index[name] for name in switch.switches] for switch in switches]
    roots = sorted(set(index.values()).difference(*children))
    root = roots[0]
    if len(roots) > 1:
        root = len(names)
        names.append(NO_COMMON_SWITCH)
        below.append([])
        children.append(roots)
    level, depth = np.zeros((2, len(names)), np.int64)

    def walk(place: int, above: int) -> list[int]:
        """Return the nodes below a switch, children by their first node; sets level and depth."""
        depth[place] = above
        parts = sorted(walk(child, above + 1) for child in children[place])
        level[place] = 1 + max((level[child] for child in children[place]), default=-1)
        below[place] += chain.from_iterable(parts)
        return below[place]

    order = np.array(walk(root, 0), np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    low = rank[[nodes[0] for nodes in below]]
    high = low + np.array([len(nodes) for nodes in below])
    # From the root on, so that the index of a leaf that stands higher than others is repeated.
    path = np.empty((len(order), depth.max() + 1), np.int64)
    for place in np.argsort(depth).tolist():
        path[low[place] : high[place], depth[place] :] = place
    return Topology(
        is_linear=False,
        names=tuple(names),
        level=level,
        depth=depth,
        # Read depth by depth.
        path=np.asfortranarray(path[rank]),
        rank=rank,
        order=order,
        low=low,
        high=high,
    )


def parts_of_nodes(topology: Topology, most: int) -> IntArray:
    """Return each node's part, shape (n,), in depth-first order; parts have up to ``most`` nodes.

    Switches with too many nodes below are cut between those below them, and neighbours are joined
    as far as they fit; nodes of one leaf, or without switches, are cut evenly where they must be.
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
