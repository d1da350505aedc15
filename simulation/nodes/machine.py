"""A machine of nodes while a simulation runs: what is free on each node, who holds what, what ends when.

The columns of bidgen are kept across steps and changed in place: no node is built anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from ...auction.forecast import Spot
from ...bidgen.columns import UNLIMITED_MIB, BoolArray, Capacity, Columns, columns_of
from ...bidgen.demand import Demand, DemandReader
from ...bidgen.families.pools import Use, use_of_arrays
from ...bidgen.families.registry import amounts_of, resources_of_nodes
from ...cluster.errors import AwardError
from ...cluster.workload import ClusterWorkload
from ...topology.tree import Topology, topology_of


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Start:
    """A policy's answer: a waiting job starts now, on these nodes with these amounts."""

    demand: Demand
    spot: Spot


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Holding:
    """A running job: what it holds, since when, and when its time limit ends it (inf without one)."""

    demand: Demand
    spot: Spot
    start_s: float
    limit_end_s: float


class Machine:
    """The nodes of a workload. ``Demand.index`` is a job's number in the workload.

    Attributes:
        snapshot: the empty machine, without jobs.
        columns: free resources as they are now; ``free``, ``is_empty`` and ``pools`` change in place.
        topology: the switches.
        reader: turns the workload's jobs into demands.
        running: by job number.
        changes: rises with every start and end.
    """

    def __init__(self, workload: ClusterWorkload) -> None:
        snapshot = replace(workload, jobs=()).snapshot()
        self.snapshot = snapshot
        columns = columns_of(snapshot)
        self.columns: Columns = columns
        self.topology: Topology = topology_of(snapshot)
        self.reader = DemandReader(snapshot, self.columns)
        self.running: dict[int, Holding] = {}
        self.changes = 0
        self.limited: BoolArray = columns.total.memory < UNLIMITED_MIB

    def start(self, start: Start, now: float) -> Holding:
        """Take what a job holds from what is free.

        Raises:
            AwardError: it does not fit, or the job runs already.
        """
        demand, spot = start.demand, start.spot
        if demand.index in self.running:
            raise AwardError(f"job {demand.job.id} starts at {now:g} while running")
        self._add(spot, -1)
        pools, use = self.columns.pools, use_of(spot)
        lack = next(pools.lacks(demand.job, use), None)
        if lack is not None:
            raise AwardError(f"job {demand.job.id} starts at {now:g}: {pools.words(lack)}")
        pools.take(demand.job, use)
        limit = demand.job.time_limit_s
        end = inf if limit is None else now + limit
        holding = Holding(demand=demand, spot=spot, start_s=now, limit_end_s=end)
        self.running[demand.index] = holding
        self._check(holding)
        return holding

    def end(self, job: int, now: float) -> None:
        """Give back what a running job holds that ends now."""
        holding = self.running.pop(job)
        self._add(holding.spot, 1)
        early = holding.limit_end_s - now if isfinite(holding.limit_end_s) else None
        self.columns.pools.give(holding.demand.job, use_of(holding.spot), early)

    def _add(self, spot: Spot, sign: int) -> None:
        add_spot(self.columns.free, spot, sign, self.limited)
        free, total, nodes = self.columns.free, self.columns.total, spot.nodes
        self.columns.is_empty[nodes] = is_empty(total.at(nodes), free.at(nodes))
        self.changes += 1

    def _check(self, holding: Holding) -> None:
        """Raise AwardError when a node gave more than it had."""
        free, nodes = self.columns.free, holding.spot.nodes
        for resource in resources_of_nodes(free):
            counts = amounts_of(free, resource)
            if (counts[nodes] < 0).any():
                name = self.columns.names[int(nodes[np.argmin(counts[nodes])])]
                what = f"{resource.label} of {name} are given twice at {holding.start_s:g}"
                raise AwardError(f"job {holding.demand.job.id}: {what}")


def use_of(spot: Spot) -> Use:
    """Return what a job holds in all."""
    return use_of_arrays(spot.held.cores, spot.held.gres)


def add_spot(capacity: Capacity, spot: Spot, sign: int, limited: BoolArray) -> None:
    """Add (+1) or take (−1) what a spot holds; ``limited`` marks the nodes whose memory is counted."""
    nodes, held = spot.nodes, spot.held
    capacity.cores[nodes] += sign * held.cores
    capacity.memory[nodes] += sign * np.where(limited[nodes], held.memory, 0)
    for kind, counts in held.gres.items():
        capacity.gres[kind][nodes] += sign * counts


def is_empty(total: Capacity, free: Capacity) -> BoolArray:
    """Return on which nodes nothing is in use."""
    empty: BoolArray = (free.cores == total.cores) & (free.memory == total.memory)
    for kind, counts in free.gres.items():
        empty &= counts == total.gres[kind]
    return empty
