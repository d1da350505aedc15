"""A machine of nodes while a simulation runs: what is free on each node, who holds what, what ends when.

The columns of bidgen are kept across steps and changed in place: no node is built anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ...auction.forecast import Spot
from ...bidgen.columns import UNLIMITED_MIB, BoolArray, Capacity, Columns, columns_of
from ...bidgen.demand import Demand, DemandReader
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
        columns: free resources as they are now; ``free``, ``is_empty``, ``takes_jobs`` and ``licenses``
            change in place. A node that is down has nothing free, and no forecast gives any of it back.
        topology: the switches.
        reader: turns the workload's jobs into demands.
        running: by job number.
        changes: rises with every start and end, and with every node that goes down or comes back.
    """

    def __init__(self, workload: ClusterWorkload) -> None:
        snapshot = replace(workload, jobs=()).snapshot()
        self.snapshot = snapshot
        columns = columns_of(snapshot)
        self.licenses = dict(columns.licenses)
        self.columns: Columns = replace(columns, licenses=self.licenses)
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
        for name, count in demand.licenses.items():
            self.licenses[name] -= count
            if self.licenses[name] < 0:
                raise AwardError(f"job {demand.job.id} takes a licence {name} at {now:g} that is not free")
        limit = demand.job.time_limit_s
        end = inf if limit is None else now + limit
        holding = Holding(demand=demand, spot=spot, start_s=now, limit_end_s=end)
        self.running[demand.index] = holding
        self._check(holding)
        return holding

    def end(self, job: int) -> None:
        """Give back what a running job holds."""
        holding = self.running.pop(job)
        self._add(holding.spot, 1)
        for name, count in holding.demand.licenses.items():
            self.licenses[name] += count

    def holders(self, node: int) -> list[int]:
        """Return the running jobs that hold something of a node, by number."""
        return sorted(job for job, holding in self.running.items() if (holding.spot.nodes == node).any())

    def take_down(self, node: int) -> None:
        """Let nothing of a node be free until it comes back; nothing runs on it any more.

        Raises:
            AwardError: a job holds some of it.
        """
        if not self.columns.is_empty[node]:
            raise AwardError(f"{self.columns.names[node]} goes down while a job holds it")
        self._set_up(node, is_up=False)

    def bring_up(self, node: int) -> None:
        """Let everything of a node that was down be free again."""
        self._set_up(node, is_up=True)

    def _set_up(self, node: int, *, is_up: bool) -> None:
        free, total = self.columns.free, self.columns.total
        free.cores[node] = total.cores[node] * is_up
        free.memory[node] = total.memory[node] * is_up
        for kind, counts in free.gres.items():
            counts[node] = total.gres[kind][node] * is_up
        self.columns.takes_jobs[node] = self.columns.is_empty[node] = is_up
        self.changes += 1

    def _add(self, spot: Spot, sign: int) -> None:
        add_spot(self.columns.free, spot, sign, self.limited)
        free, total, nodes = self.columns.free, self.columns.total, spot.nodes
        self.columns.is_empty[nodes] = is_empty(total.at(nodes), free.at(nodes))
        self.changes += 1

    def _check(self, holding: Holding) -> None:
        """Raise AwardError when a node gave more than it had."""
        free, nodes = self.columns.free, holding.spot.nodes
        given = {"cores": free.cores, "memory": free.memory, **free.gres}
        for what, counts in given.items():
            if (counts[nodes] < 0).any():
                name = self.columns.names[int(nodes[np.argmin(counts[nodes])])]
                raise AwardError(
                    f"job {holding.demand.job.id}: {what} of {name} are given twice at {holding.start_s:g}"
                )


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
