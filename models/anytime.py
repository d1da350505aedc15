"""An award at once, a better one with time, and a bound with it.

Greedy → prices and a price-guided award → small auctions around places and losers (search.py) → HiGHS on the
whole program when it is small. The clock, or a number of steps, ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from ..bidgen.columns import FloatArray, IntArray
from .lexicographic import NO_LIMIT_S, SolveSettings, WindowSolution, solve_lexicographic
from .packing import Packing
from .prices import Prices, find_prices
from .search import Search, Worth, greedy_by
from .solver import SolverStatus

#: Windows of at most so many bids are given to HiGHS whole: at once, or after part of the time.
_WHOLE_AT_ONCE, _WHOLE_AFTER = 700, 3000
#: Shares of the time: prices, and the search before HiGHS gets the rest.
_FOR_PRICES, _BEFORE_WHOLE = 0.25, 0.45
_ROUNDS = 400
#: Steps without a better award after which HiGHS gets the whole of a middling window.
_PATIENCE = 40
#: The largest weight becomes this for the solver: room on both sides of its tolerances.
_SCALE = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the search is given.

    Attributes:
        deadline: when to stop, by ``clock`` (seconds); None when only ``steps`` count.
        steps: neighbourhoods to solve at most; None when only the clock counts.
        seed: of every random choice.
    """

    deadline: float | None
    steps: int | None
    seed: int
    clock: Callable[[], float]

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return NO_LIMIT_S if self.deadline is None else self.deadline - self.clock()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """The award (bids, ascending), how far it is proved, the bound on its integer weights, and the prices."""

    award: IntArray
    status: SolverStatus
    proved: bool
    bound: int | None
    prices: Prices


def solve_anytime(
    packing: Packing, weights: list[int], preference: FloatArray, start: IntArray, limits: Limits
) -> Found:
    """Return the best award found within the limits, by the sum of weights and then by preference.

    Args:
        packing: bids and capacities.
        weights: not negative integers, shape (bids,).
        preference: higher is better, not negative, shape (bids,).
        start: an award that fits.
        limits: when to stop.
    """
    largest = float(max(weights, default=1)) or 1.0
    value = np.array([weight / largest for weight in weights]) * _SCALE
    worth = Worth(weights=weights, value=value, preference=preference)
    began = limits.left_s()
    share = 1.0 if limits.deadline is None else began

    def over(part: float) -> Callable[[], bool]:
        return lambda: limits.deadline is not None and limits.left_s() <= (1 - part) * share

    prices = find_prices(packing, value, float(value[start].sum()), _ROUNDS, over(_FOR_PRICES))
    bound = _whole_bound(prices.bound, largest)
    gain = value - packing.cost(prices.price)
    awards = [start, *(greedy_by(packing, order) for order in _orders(prices, gain, value))]
    best = max(awards, key=worth.of)
    search = Search(packing, worth, gain, best, limits.seed)
    if len(packing) > _WHOLE_AT_ONCE:
        is_whole_next = len(packing) <= _WHOLE_AFTER
        part, patience = (_BEFORE_WHOLE, _PATIENCE) if is_whole_next else (1.0, None)
        steps = 10**9 if limits.steps is None else limits.steps
        search.run(steps, over(part), limits.left_s, patience)
    if len(packing) > _WHOLE_AFTER:
        proved = bound is not None and search.best[0] >= bound
        return _found(search.award, SolverStatus.FEASIBLE_AT_LIMIT, bound, prices, proved=proved)
    solution = _whole(packing, weights, preference, search.award, limits)
    bounds = [one for one in (bound, solution.bound) if one is not None]
    award = np.flatnonzero(solution.values > 0.5)  # noqa: PLR2004 - 0/1 values
    return _found(award, solution.status, min(bounds, default=None), prices, proved=solution.proved)


def _found(
    award: IntArray, status: SolverStatus, bound: int | None, prices: Prices, *, proved: bool
) -> Found:
    return Found(award=award, status=status, proved=proved, bound=bound, prices=prices)


def _whole_bound(bound: float, largest: float) -> int | None:
    """Return the bound in integer weights, rounded down but for what floats may have lost."""
    if not np.isfinite(bound):
        return None
    exact = bound / _SCALE * largest
    return floor(exact * (1 + 1e-9) + 1e-6)


def _orders(prices: Prices, gain: FloatArray, value: FloatArray) -> list[IntArray]:
    """Return orders for greedy awards: by gain for its worth, and by how often the rounds chose a bid."""
    largest = max(float(value.max(initial=0.0)), 1e-9)
    return [
        np.argsort(-(gain / np.maximum(value, 1e-9) + prices.share), kind="stable"),
        np.argsort(-(prices.share + 1e-6 * gain / largest), kind="stable"),
    ]


def _whole(
    packing: Packing, weights: list[int], preference: FloatArray, start: IntArray, limits: Limits
) -> WindowSolution:
    """Give the whole program to HiGHS, from the award at hand."""
    everything = np.arange(len(packing))
    program = packing.program(everything, packing.capacity)
    values = np.zeros(len(packing))
    values[start] = 1
    settings = SolveSettings(
        time_limit_s=max(0.0, limits.left_s()),
        seed=limits.seed,
        clock=limits.clock,
        most_nodes=None if limits.steps is None else 10 * limits.steps,
    )
    return solve_lexicographic(program, packing.job, weights, preference, values, settings)
