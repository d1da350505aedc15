"""Packings: first-fit by worth for what jobs take, so that some of their bids fill the machine together.

Bids that are chosen job by job rarely do. So jobs are also placed one after another. Who is to start is the
greedy rule for knapsacks (Dantzig 1957): those whose worth is largest beside what they would pay at the
prices of the linear program over placements (placements.py), for as long as all that is free pays for them.
Of these the ones that are hardest to place come first: jobs that want neighbours, then those that want large
shares of nodes (first-fit decreasing, Johnson 1973). Where what is free does not hold all whom the rule
starts, that loses small jobs of great worth: of one packing only jobs that want neighbours come first.
Each placement is a bid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..cluster.resources.capacity import BoolArray, Capacity, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from .placements import costs_of_placements, least_of

#: Packings: the first three by the prices as they are, the others by prices that chance changes so much (the
#: standard deviation of their logarithm); with many jobs fewer packings, so many placements in all.
_PACKINGS, _NOISE, _PLACED = 12, 0.1, 1200
#: Shares of what is free that pairs of packings leave out of account: what is left in pieces holds nobody.
SPARED = (0.0, 0.002, 0.005, 0.01, 0.02, 0.0)
#: What a job that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class WorthFirst:
    """Places jobs by rank, on the first nodes that hold them or on those that give least.

    Attributes:
        ranks: by job id, the least first.
        is_tight: nodes that give least come first.
    """

    ranks: Mapping[str, int]
    is_tight: bool

    def order(self, demands: Sequence[Demand]) -> Sequence[int]:
        """Return the places of the demands in the order in which they are to be placed."""
        return sorted(range(len(demands)), key=lambda place: self.ranks[demands[place].job.id])

    def takes_first(self, demand: Demand) -> bool:
        """Return whether the nodes are taken as they stand."""
        return not (self.is_tight and not demand.contiguous and demand.max_switches is None)

    def nodes_for(
        self, demand: Demand, nodes: IntArray, units: IntArray, free: Capacity
    ) -> Iterator[IntArray]:
        """Yield the nodes in scan order; of a tight packing those that could give least first."""
        if not self.takes_first(demand):
            gres = sum((counts[nodes] for counts in free.gres.values()), start=np.zeros_like(units))
            yield nodes[np.lexsort((gres, units))]
        yield nodes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Packer:
    """What packings of some jobs go by; arrays of shape (jobs,).

    Attributes:
        rank: minus the logarithm of what each job counts for what it pays.
        cost: what it pays at the prices; ``free``: what all that is free costs.
        hardness: the hardest to place has the least.
        is_tied: wants neighbours, few switches or named nodes.
        worth: what its start counts.
    """

    rank: FloatArray
    cost: FloatArray
    free: float
    hardness: IntArray
    is_tied: BoolArray
    worth: FloatArray

    @classmethod
    def of(
        cls, demands: Sequence[Demand], objective: str, columns: Columns, time_limit_s: float
    ) -> Packer | None:
        """Return it for jobs that bid; None: nothing is scarce, or there is no time for prices.

        Args:
            demands: the jobs.
            objective: of the step.
            columns: what is free.
            time_limit_s: seconds for the linear program.
        """
        worth = np.array([float(_worth_of_start(demand, objective)) for demand in demands])
        found = costs_of_placements(demands, worth, columns, time_limit_s)
        if found is None:
            return None
        cost, free = found
        least = _LEAST_COST * float(worth.max(initial=0.0))
        is_tied = np.array([_is_tied(demand) for demand in demands], np.bool_)
        hardest = sorted(range(len(demands)), key=lambda place: _hardness(demands[place], columns))
        hardness = np.empty(len(demands), np.int64)
        hardness[hardest] = np.arange(len(demands))
        ratio = np.log(np.maximum(worth, 1e-300)) - np.log(cost + least)
        return cls(rank=-ratio, cost=cost, free=free, hardness=hardness, is_tied=is_tied, worth=worth)

    def beside(self, starting: IntArray) -> Packer:
        """Return the same where some jobs, by their places, have started: what is free costs less."""
        return replace(self, free=self.free - float(self.cost[starting].sum()))

    def order(
        self, places: IntArray, noise: FloatArray, spared: float, *, only_tied: bool = False
    ) -> IntArray:
        """Return the order in which some jobs are to be placed, as positions among ``places``.

        Args:
            places: the jobs, ascending; all others start, or do not, whatever becomes of these.
            noise: what is added to each one's rank, shape (places,).
            spared: the share of what is free that is not dealt.
            only_tied: only tied jobs come first, all others by worth for cost.
        """
        rank, cost = self.rank[places] + noise, self.cost[places]
        left = self.free * (1 - spared) * (1 + 1e-9)
        is_to_start = np.zeros(len(places), np.bool_)
        order = np.argsort(rank, kind="stable")
        for place in order.tolist():
            if cost[place] <= left:
                left -= cost[place]
                is_to_start[place] = True
        if only_tied:
            is_to_start &= self.is_tied[places]
        starts = np.flatnonzero(is_to_start)
        starts = starts[np.argsort(self.hardness[places][starts], kind="stable")]
        return np.concatenate([starts, order[~is_to_start[order]]])


def packings(packer: Packer, demands: Sequence[Demand], seed: int) -> tuple[WorthFirst, ...]:
    """Return how jobs are packed.

    Args:
        packer: of the jobs.
        demands: the jobs that bid.
        seed: of what chance adds.
    """
    rng = np.random.default_rng(seed)
    everyone = np.arange(len(demands))
    count = max(1, min(_PACKINGS, _PLACED // max(len(demands), 1)))
    plain = packer.order(everyone, np.zeros(len(everyone)), 0.0, only_tied=True)
    found = [in_order(demands, plain, is_tight=False)]
    for number in range(count - 1):
        noise = rng.normal(0.0, _NOISE if number > 1 else 0.0, len(everyone))
        order = packer.order(everyone, noise, SPARED[number // 2 % len(SPARED)])
        found.append(in_order(demands, order, is_tight=number % 2 == 1))
    return tuple(found)


def in_order(demands: Sequence[Demand], order: IntArray, *, is_tight: bool) -> WorthFirst:
    """Return the placer of jobs in an order, places of the demands."""
    return WorthFirst({demands[place].job.id: at for at, place in enumerate(order.tolist())}, is_tight)


def _is_tied(demand: Demand) -> bool:
    return demand.contiguous or demand.max_switches is not None or len(demand.required) > 0


def _hardness(demand: Demand, columns: Columns) -> tuple[bool, int, int]:
    """Return what jobs are sorted by, the hardest to place first: tied ones, then shares of nodes, cores."""
    least = least_of(demand, columns)
    return not _is_tied(demand), -least.nodes * least.cores_on_node, -least.chunks * least.cores


def _worth_of_start(demand: Demand, objective: str) -> Fraction | int:
    """Return what starting a job counts at least (auction/formulation.py), whatever it holds."""
    if demand.worth is not None:
        return demand.worth
    if objective == "priority":
        return demand.job.priority
    request = demand.job.request
    nodes = 1 if demand.node_counts is None else demand.node_counts.minimum
    return demand.job.priority * (request.cores or (request.cores_per_node or 1) * nodes)
