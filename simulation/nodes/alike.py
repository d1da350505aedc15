"""Auctions on queues with many jobs that ask for the same: of those, only as many bid as could start at once.

One of them can take the place of another, so those of higher priority stand for the others: the award is the
same, and a window of thousands costs what its few kinds of jobs cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ...bidgen.demand import Demand
from .auction import Auction
from .machine import Machine, Start
from .queue import NodeQueue
from .select import Candidates, View


class AlikeAuction:
    """Passes of an auction that sees the first few of the window's jobs of each kind.

    Args:
        machine: where jobs run.
        auction: whose passes they are.
        window: jobs of the queue that a pass looks at.
        reserve: so many of a kind stay beyond those that could start: the first blocked jobs among them.
    """

    def __init__(self, machine: Machine, auction: Auction, *, window: int, reserve: int) -> None:
        self.wants_more = auction.wants_more
        self.wakeup_s = auction.wakeup_s
        self._machine = machine
        self._auction = auction
        self._window = window
        self._reserve = reserve
        self._kinds: dict[object, int] = {}
        self._kind: dict[int, int] = {}

    def step(self, now: float, queue: NodeQueue) -> Sequence[Start]:
        """Make one pass."""
        view = View(self._machine.columns, self._machine.columns.free)
        seen: dict[int, int] = defaultdict(int)
        most: dict[int, int] = {}
        jobs = []
        for demand in queue.first(self._window):
            kind = self._kind_of(demand)
            seen[kind] += 1
            if seen[kind] > self._reserve + 1:
                if kind not in most:
                    most[kind] = self._reserve + max(most_at_once(demand, view), 1)
                if seen[kind] > most[kind]:
                    continue
            jobs.append(demand)
        started = self._auction.step(now, _Few(jobs))
        self.wants_more = self._auction.wants_more
        return started

    def _kind_of(self, demand: Demand) -> int:
        if demand.index not in self._kind:
            key = (
                *(demand.variants, demand.unit, demand.units, demand.units_per_node, demand.least),
                *(demand.node_counts, demand.memory_per_node, demand.memory_per_unit, demand.exclusive),
                *(demand.contiguous, demand.max_switches, demand.required.tobytes()),
                *(self._machine.columns.pools.alike(demand.job), demand.job.time_limit_s),
            )
            self._kind[demand.index] = self._kinds.setdefault(key, len(self._kinds))
        return self._kind[demand.index]


class _Few(NodeQueue):
    """Some jobs of a queue, in its order."""

    def __init__(self, jobs: list[Demand]) -> None:
        super().__init__()
        self._jobs = jobs


def most_at_once(demand: Demand, view: View) -> int:
    """Return a number of jobs like this one that cannot be exceeded on what a view has free."""
    return sum(_most_among(demand, found, view) for found in view.candidates(demand))


def _most_among(demand: Demand, found: Candidates, view: View) -> int:
    nodes, units, span = found.nodes, found.units[found.nodes], demand.node_counts
    fewest = 1 if span is None else span.minimum
    each = demand.units_per_node or demand.least
    if span is not None and span.maximum == 1:
        each = max(each, demand.units or 0)
    most = np.minimum(units // each, 1) if demand.exclusive else units // each
    if demand.memory_per_node:
        most = np.minimum(most, view.free.memory[nodes] // demand.memory_per_node)
    for kind, _, count in found.choice.per_node:
        if count:
            most = np.minimum(most, view.free.gres[kind][nodes] // count)
    bound = int(most.sum()) // fewest
    return min(bound, int(units.sum()) // demand.units) if demand.units and not demand.exclusive else bound
