"""Packings: first-fit by worth for what jobs take, so that some of their bids fill the machine together.

Bids that are chosen job by job rarely do. So jobs are also placed one after another, those first whose worth
is largest beside what they would pay at the prices of the linear program over placements (placements.py): the
greedy rule for knapsacks (Dantzig 1957). Each placement is a bid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..bidgen.columns import Capacity, Columns, FloatArray, IntArray
from ..bidgen.demand import Demand
from .placements import costs_of_placements

#: Packings: the first two by the prices as they are, the others by prices that chance changes so much (the
#: standard deviation of their logarithm); with many jobs fewer packings, so many placements in all.
_PACKINGS, _NOISE, _PLACED = 6, 0.15, 1000
#: What a job that costs nothing at the prices is taken to cost, as a share of the largest worth.
_LEAST_COST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class WorthFirst:
    """Places jobs by rank, on the first nodes that hold them or on those that give least.

    Attributes:
        ranks: by job id, the least first.
        is_tight: nodes that give least come first.
    """

    ranks: Mapping[str, float]
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


def packings(
    demands: Sequence[Demand], objective: str, columns: Columns, time_limit_s: float, seed: int
) -> tuple[WorthFirst, ...]:
    """Return how jobs are packed; none where there is no time for prices, or nothing is scarce.

    Args:
        demands: the jobs that bid.
        objective: of the step.
        columns: what is free.
        time_limit_s: seconds for the linear program.
        seed: of what chance adds.
    """
    plain = ranks(demands, objective, columns, time_limit_s)
    if plain is None:
        return ()
    rng = np.random.default_rng(seed)
    count = max(1, min(_PACKINGS, _PLACED // len(demands)))
    noise = [rng.normal(0.0, _NOISE if number > 1 else 0.0, len(plain)) for number in range(count)]
    return tuple(worth_first(demands, plain + one, is_tight=at % 2 == 1) for at, one in enumerate(noise))


def worth_first(demands: Sequence[Demand], ranked: FloatArray, *, is_tight: bool) -> WorthFirst:
    """Return the placer of jobs by ranks, shape (jobs,)."""
    names = (demand.job.id for demand in demands)
    return WorthFirst(dict(zip(names, ranked.tolist(), strict=True)), is_tight)


def ranks(
    demands: Sequence[Demand], objective: str, columns: Columns, time_limit_s: float
) -> FloatArray | None:
    """Return minus the logarithm of what each job counts for what it pays, shape (jobs,).

    Jobs are placed in this order, the least first. None: nothing is scarce, or there is no time for prices.
    """
    worths = np.array([float(_worth_of_start(demand, objective)) for demand in demands])
    costs = costs_of_placements(demands, worths, columns, time_limit_s)
    if costs is None:
        return None
    least = _LEAST_COST * float(worths.max(initial=0.0))
    ratio: FloatArray = np.log(np.maximum(worths, 1e-300)) - np.log(costs + least)
    return -ratio


def _worth_of_start(demand: Demand, objective: str) -> Fraction | int:
    """Return what starting a job counts at least (auction/stated.py), whatever it holds."""
    if demand.worth is not None:
        return demand.worth
    if objective == "priority":
        return demand.job.priority
    request = demand.job.request
    nodes = 1 if demand.node_counts is None else demand.node_counts.minimum
    return demand.job.priority * (request.cores or (request.cores_per_node or 1) * nodes)
