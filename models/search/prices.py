"""Prices of capacities: the auction as an auction (Lagrangian relaxation of the capacity rows).

Each job takes the bid that gains most at the prices; prices rise where more is taken than there is
and fall where less. Any prices bound an award's worth; choices, averaged over rounds, order bids.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray, sums_before
from .packing import Packing

#: Rounds without a better bound after which steps are halved.
_PATIENCE = 12


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchPrices:
    """What the rounds found.

    Attributes:
        price: of each capacity, at the best bound, shape (rows,).
        bound: no award is worth more.
        share: how often each bid was chosen, a mean with more weight on late rounds, shape (bids,).
    """

    price: FloatArray
    bound: float
    share: FloatArray


def find_prices(
    packing: Packing,
    value: FloatArray,
    target: float,
    rounds: int,
    is_over: Callable[[], bool],
    begin: FloatArray | None = None,
) -> SearchPrices:
    """Return prices after at most ``rounds`` subgradient steps (Polyak's, towards ``target``).

    Args:
        packing: bids and capacities.
        value: worth of each bid, not negative, shape (bids,).
        target: worth of a known award.
        rounds: at most so many.
        is_over: whether to stop now.
        begin: prices to begin with, shape (rows,); 0 when None.
    """
    capacity = packing.capacity.astype(np.float64)
    runs = runs_of(packing)
    group, most = packing.group, np.maximum(capacity, 1)
    price = np.zeros(len(capacity)) if begin is None else begin
    best, least = price, inf
    share = np.zeros(len(value))
    step, since = 1.0, 0
    for number in range(rounds):
        gain = value - runs.cost(price)
        chosen = _best_bids(group, packing.first, gain)
        bound = float(gain[chosen].sum() + dot(capacity, price))
        excess = packing.use(chosen) - capacity
        weight = 2.0 / (number + 2)
        share *= 1 - weight
        share[chosen] += weight
        since += 1
        if bound < least - 1e-9 * max(1.0, abs(bound)):
            best, least, since = price, bound, 0
        if since > _PATIENCE:
            step, since = step / 2, 0
        # Only what is over-used, or has a price that can fall, moves.
        move = np.where((excess < 0) & (price <= 0), 0.0, excess / most)
        norm = dot(move, move)
        if norm == 0 or bound <= target or step < 1e-3 or is_over():  # noqa: PLR2004 - no progress
            break
        scaled = step * 1.05 * max(bound - target, 1e-9 * abs(bound)) / norm
        price = np.maximum(0.0, price + scaled * move / most)
    # Sums over runs lose more digits than plain ones: what bounds is summed plainly.
    bound, _ = lagrangian_bound(packing, value - packing.cost(best), dot(capacity, best))
    return SearchPrices(price=best, bound=bound if isfinite(least) else least, share=share)


def dot(one: FloatArray, other: FloatArray) -> float:
    """Return the sum of products; a library's would depend on the machine's number of cores."""
    return float((one * other).sum())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Runs:
    """Entries of bids as runs of rows of which a bid takes the same: their cost is two look-ups.

    Attributes:
        first, end: rows of each run, ``first ≤ row < end``, shape (runs,).
        amount: taken of each of them.
        ends: runs of bid ``i`` are ``ends[i]:ends[i + 1]``, shape (bids + 1,).
    """

    first: IntArray
    end: IntArray
    amount: IntArray
    ends: IntArray

    def cost(self, price: FloatArray) -> FloatArray:
        """Return what every bid would pay, shape (bids,)."""
        upto = sums_before(price)
        paid = sums_before(self.amount * (upto.take(self.end) - upto.take(self.first))).take(self.ends)
        cost: FloatArray = paid[1:] - paid[:-1]
        return cost


def runs_of(packing: Packing) -> Runs:
    """Return a packing's entries as runs."""
    row, amount = packing.row, packing.amount
    starts = np.ones(len(row), np.bool_)
    starts[1:] = (np.diff(row) != 1) | (np.diff(amount) != 0)
    starts[packing.indptr[:-1][np.diff(packing.indptr) > 0]] = True
    place = np.flatnonzero(starts)
    length = np.diff(np.append(place, len(row)))
    return Runs(
        first=row[place],
        end=row[place] + length,
        amount=amount[place],
        ends=np.searchsorted(place, packing.indptr),
    )


def lagrangian_bound(packing: Packing, gain: FloatArray, rest: float) -> tuple[float, FloatArray]:
    """Return what no award exceeds at some prices, and how much less it is with each bid winning.

    Args:
        packing: bids and capacities.
        gain: worth of each bid less what it pays, shape (bids,).
        rest: what all capacities cost together.
    """
    if not len(gain):
        return rest, np.zeros(0)
    most = np.maximum(np.maximum.reduceat(gain, packing.first), 0.0)
    loss: FloatArray = most[packing.group] - gain
    return float(most.sum()) + rest, loss


def _best_bids(group: IntArray, first: IntArray, gain: FloatArray) -> IntArray:
    """Return the bid that gains most of each job that gains anything, ascending.

    Args:
        group: of each bid, its job's place among those that bid, shape (bids,).
        first: first bid of each job, shape (jobs,).
        gain: of each bid, shape (bids,).
    """
    if not len(gain):
        return np.zeros(0, np.int64)
    most = np.maximum.reduceat(gain, first)
    place = (gain >= most.take(group)).nonzero()[0]
    # The first of each job's, every one of which gains most somewhere.
    best = place[np.searchsorted(group[place], np.arange(len(first)))]
    return best[most > 0]
