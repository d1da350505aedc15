"""Nodes as pools of cores, and requests as cores of pools: what a future counts."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ...cluster.jobs import JobType
from ...cluster.nodes import Node
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand, Variant

#: Bits of a set of pools: nodes beyond are counted with the last pool.
MOST_POOLS = 60


class NodePools:
    """The nodes of a cluster, those that the same jobs can use in one pool.

    A job that takes a larger share of a node's memory or gres than of its cores counts for that
    share of the cores. Nodes of a pool are not told apart, so that a future may start a job whose
    cores are scattered.

    Attributes:
        cores: by pool, of the nodes that work.
        pool: by node.
        columns: of the nodes; those that work take jobs in them, now or later.
    """

    def __init__(self, nodes: Sequence[Node], columns: Columns) -> None:
        works = np.array([node.state.is_working for node in nodes], np.bool_)
        self.columns = replace(columns, takes_jobs=works)
        self._total: Capacity = columns.total
        keys = [_key(node) for node in nodes]
        numbers = {key: min(place, MOST_POOLS - 1) for place, key in enumerate(dict.fromkeys(keys))}
        self.pool: IntArray = np.array([numbers[key] for key in keys], np.int64)
        self._works: BoolArray = works
        self.cores: list[int] = (
            np.bincount(
                self.pool,
                weights=np.where(self._works, columns.total.cores, 0),
                minlength=min(len(numbers), MOST_POOLS),
            )
            .astype(int)
            .tolist()
        )

    def requested(self, demand: Demand) -> tuple[int, int]:
        """Return the cores that a job counts for, and the pools that it can use as bits."""
        bits = cores = 0
        for variant in demand.variants:
            fitting = self._fitting(demand, variant)
            for pool in np.unique(self.pool[fitting]).tolist():
                bits |= 1 << pool
            if fitting.any() and not cores:
                cores = self._cores_on(demand, variant, int(np.flatnonzero(fitting)[0]))
        return cores or demand.job.request.fewest_cores, bits

    def held(self, allocation: Allocation) -> list[int]:
        """Return the cores by pool that a running job counts for."""
        nodes = allocation.nodes
        cores = np.where(self._works[nodes], self._in_cores(nodes, allocation.held), 0)
        return [int(count) for count in np.bincount(self.pool[nodes], cores, len(self.cores))]

    def _in_cores(self, nodes: IntArray, held: Capacity) -> IntArray:
        """Return what is held on nodes as cores: the largest share of any of their resources."""
        total = self._total.at(nodes)
        parts = [(held.cores, total.cores), (held.memory, total.memory * (total.memory < UNLIMITED_MIB))]
        parts += [(held.gres[kind], counts) for kind, counts in total.gres.items() if kind in held.gres]
        shares = [np.where(there > 0, amount / np.maximum(there, 1), 0.0) for amount, there in parts]
        cores = np.ceil(np.max(shares, axis=0) * total.cores - 1e-9)
        found: IntArray = np.minimum(cores, total.cores).astype(np.int64)
        return found

    def _fitting(self, demand: Demand, variant: Variant) -> BoolArray:
        """Return the nodes that a job may use and that have what it needs on each."""
        total = self._total
        cores = demand.unit * (demand.units_per_node or demand.least)
        memory = demand.memory_per_node + demand.memory_per_core * cores
        fitting = variant.eligible & (total.cores >= cores) & (total.memory >= memory)
        for kind, _, span in variant.gres:
            fitting = fitting & (total.gres.get(kind, np.zeros_like(total.cores)) >= span.minimum)
        for kind, _, span in variant.gres_total:
            if span.minimum:
                fitting = fitting & (total.gres.get(kind, np.zeros_like(total.cores)) > 0)
        return fitting

    def _cores_on(self, demand: Demand, variant: Variant, node: int) -> int:
        """Return the cores that a job counts for where all its nodes are like one."""
        request = demand.job.request
        whole = int(self._total.cores[node])
        per_gres = sum(
            ceil(span.minimum / max(int(self._total.gres[kind][node]), 1))
            for kind, _, span in variant.gres_total
            if kind in self._total.gres
        )
        nodes = max(request.fewest_nodes, per_gres, 1)
        if demand.type is JobType.CORES:
            nodes = max(nodes, ceil(request.fewest_cores / max(whole, 1)))
        if demand.exclusive:
            return nodes * whole
        each = ceil(request.fewest_cores / nodes)
        gres = {kind: span.minimum / 1 for kind, _, span in variant.gres}
        gres |= {kind: span.minimum / nodes for kind, _, span in variant.gres_total}
        held = Capacity(
            cores=np.array([each]),
            memory=np.array([demand.memory_per_node + demand.memory_per_core * each]),
            gres={kind: np.array([count]) for kind, count in gres.items()},
        )
        return max(nodes * int(self._in_cores(np.array([node]), held)[0]), request.fewest_cores)


def _key(node: Node) -> object:
    """Return what jobs can tell nodes apart by."""
    gres = tuple(sorted(node.total.gres.items()))
    return (node.partitions, node.features, node.total.cores, node.total.memory_mib, gres)
