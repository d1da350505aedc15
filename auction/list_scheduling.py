"""List scheduling: jobs are placed one after another in several orders, each placement a bid.

Bids that are made for each job alone rarely fill the machine together. So jobs are also placed one
after another by first-fit, in an order that is their *list*. Who is to start is said by the greedy
rule for knapsacks (Dantzig 1957): jobs by worth divided by what they would pay at the prices of a
linear program (placement_bound.py), until they cost as much as all that is free. Of these the
hardest to place come first: jobs that want neighbours, then those with most gres on a node, then
those with large shares of nodes (first-fit decreasing, Johnson 1973). If not all fit, this order
loses small jobs of great worth. So in one list only jobs that want neighbours come first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cluster.resources.capacity import BoolArray, Capacity, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..models.model import worth_of_start
from .placement_bound import costs_of_placements, least_of

#: Lists: three at the prices, then others at prices that chance changes so much (standard deviation
#: of their logarithm); with many jobs fewer lists, so many placements in all.
_LISTS, _NOISE, _PLACED = 12, 0.1, 1200
#: Shares of what is free that pairs of lists leave out: what is left in pieces holds no job.
SPARED = (0.0, 0.002, 0.005, 0.01, 0.02, 0.0)
#: What a job that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class ListPlacer:
    """Places jobs in the order of a list: on the first nodes that hold them, or that give least.

    Attributes:
        places: in the list, by job id.
        is_tight: nodes that give least come first.
    """

    places: Mapping[str, int]
    is_tight: bool

    def order(self, demands: Sequence[Demand]) -> Sequence[int]:
        """Return the places of the demands in the order in which they are to be placed."""
        return sorted(range(len(demands)), key=lambda place: self.places[demands[place].job.id])

    def takes_first(self, demand: Demand) -> bool:
        """Return whether the nodes are taken as they stand."""
        return not (self.is_tight and not demand.contiguous and demand.max_switches is None)

    def nodes_for(
        self, demand: Demand, nodes: IntArray, units: IntArray, free: Capacity
    ) -> Iterator[IntArray]:
        """Yield the nodes in scan order; of a tight list those that could give least first."""
        if not self.takes_first(demand):
            yield nodes[np.lexsort((free.gres_count[nodes], units))]
        yield nodes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobLists:
    """What lists of some jobs go by; arrays of shape (jobs,).

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
    ) -> "JobLists | None":
        """Return it for jobs that bid; None: nothing is scarce, or there is no time for prices."""
        worth = np.array([float(worth_of_start(demand, objective)) for demand in demands])
        found = costs_of_placements(demands, worth, columns, time_limit_s)
        if found is None:
            return None
        cost, free = found
        least = _LEAST_COST * float(worth.max(initial=0.0))
        is_tied = np.array([demand.is_tied for demand in demands], np.bool_)
        places = hardest_first(demands, columns).places
        hardness = np.array([places[demand.job.id] for demand in demands], np.int64)
        ratio = np.log(np.maximum(worth, 1e-300)) - np.log(cost + least)
        return cls(rank=-ratio, cost=cost, free=free, hardness=hardness, is_tied=is_tied, worth=worth)

    def after(self, starting: IntArray) -> "JobLists":
        """Return the same after some jobs, by place, have started: what is free costs less."""
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


def list_placers(lists: JobLists, demands: Sequence[Demand], seed: int) -> tuple[ListPlacer, ...]:
    """Return the placers of several lists of jobs."""
    rng = np.random.default_rng(seed)
    everyone = np.arange(len(demands))
    count = max(1, min(_LISTS, _PLACED // max(len(demands), 1)))
    plain = lists.order(everyone, np.zeros(len(everyone)), 0.0, only_tied=True)
    found = [placer_in(demands, plain, is_tight=False)]
    for number in range(count - 1):
        noise = rng.normal(0.0, _NOISE if number > 1 else 0.0, len(everyone))
        order = lists.order(everyone, noise, SPARED[number // 2 % len(SPARED)])
        found.append(placer_in(demands, order, is_tight=number % 2 == 1))
    return tuple(found)


def placer_in(demands: Sequence[Demand], order: IntArray, *, is_tight: bool) -> ListPlacer:
    """Return the placer of jobs in an order, places of the demands."""
    return ListPlacer({demands[place].job.id: at for at, place in enumerate(order.tolist())}, is_tight)


def hardest_first(demands: Sequence[Demand], columns: Columns) -> ListPlacer:
    """Return the tight placer of jobs: tied ones, then by gres on a node, size, largest first."""

    def hardness(place: int) -> tuple[bool, int, int, int]:
        least = least_of(demands[place], columns)
        is_tied, gres = demands[place].is_tied, sum(count for _, count in least.gres_on_node)
        return not is_tied, -gres, -least.nodes * least.cores_on_node, -least.chunks * least.cores

    return placer_in(demands, np.array(sorted(range(len(demands)), key=hardness)), is_tight=True)
