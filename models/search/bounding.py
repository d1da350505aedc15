"""A search's bound, bettered as it goes: rounds of prices, linear relaxation, rounds of cliques.

Prices of capacities are the auction as an auction (Lagrangian relaxation of the capacity rows).
Each job takes the bid that gains most at the prices; prices rise where more is taken than there is
and fall where less. Any prices bound an award's worth; choices, averaged over rounds, order bids.

When each is due follows from the number of steps alone, or where a clock counts from shares of the
time.

The linear relaxation has prices that bound better than the Lagrangian's rounds, and cuts better
them. Whatever prices the solver returns, the bound is computed from them here, so that no tolerance
of the solver can make it wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, isfinite
from time import perf_counter

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray, sums_before
from ..solve.lexicographic import BoundByNumber
from ..solve.solver import RelaxedSolver
from .packing import SCALE, Packing, Worth
from .reductions import MOST_BIDS, exclusions, violated_cliques
from .search_parameters import SearchLimits

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
    bound = bound_at(packing, value, best) if isfinite(least) else least
    return SearchPrices(price=best, bound=bound, share=share)


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


def bound_at(packing: Packing, value: FloatArray, price: FloatArray) -> float:
    """Return the bound at prices: what all that is free costs, and what each job gains at most."""
    rest = dot(packing.capacity.astype(np.float64), price)
    return lagrangian_bound(packing, value - packing.cost(price), rest)[0]


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


#: Rounds of prices before the first step, where steps are counted and where a clock is, and once
#: more later; the share of the time that each may take.
_ROUNDS, _TIMED_ROUNDS, _MORE_ROUNDS, _FOR_PRICES = 80, 400, 1500, 0.12
#: What rounds steer towards where no good award is known, as a share of the first rounds' bound.
_AIM = 0.85
#: The step at which prices are bettered; entries of a program for which the linear relaxation waits
#: one more step, and entries for which rounds of cliques are one more step apart: a like share of
#: the work each.
_BETTER_PRICES, _RELAX_ENTRIES, _CLIQUES_EVERY, _CLIQUES_ENTRIES = 12, 6000, 3, 10_000
#: Entries of a program beyond which its relaxation is too slow, whatever the time; seconds that an
#: entry takes, and where every bid wants all that there is.
_MOST_ENTRIES, _ENTRY_S, _WHOLE_ENTRY_S = 600_000, 8e-6, 2e-6
#: Share of what is left of the time for the relaxation, and for a round of cliques; and of the time
#: that is gone, for all rounds of cliques where a clock counts.
_FOR_RELAXATION, _FOR_CLIQUES, _FOR_BOUND = 0.3, 0.25, 0.2


class Bounding:
    """The least bound so far, and what is known with it.

    Attributes:
        bound: no award is worth more, in integer weights; None: none is known.
        price: of each row, at the last prices that bound, in units of ``Worth.value``, shape
            (rows,).
        alive: bids that a better award could hold, shape (bids,).
    """

    def __init__(self, packing: Packing, worth: Worth, limits: SearchLimits) -> None:
        self._packing = packing
        self._worth = worth
        self._limits = limits
        self._largest = max(worth.weights, default=1) or 1
        self._by_number = BoundByNumber(worth.weights, packing.job)
        #: About how many entries the relaxation's program has.
        self._entries = len(packing.row) + len(packing)
        self._entry_s = _ENTRY_S if packing.has_parts else _WHOLE_ENTRY_S
        self._began_s, self._cliques_s = limits.left_s(), 0.0
        self._relaxation: Relaxation | None = None
        self._has_relaxed = False
        self.bound: int | None = None
        self.price: FloatArray = np.zeros(len(packing.capacity))
        self.alive: BoolArray = np.ones(len(packing), np.bool_)

    @property
    def cliques(self) -> list[IntArray]:
        """The cliques that rounds found: sets of bids of which one wins at most."""
        return [] if self._relaxation is None else self._relaxation.cliques

    def begin(self, award: IntArray, *, is_small: bool) -> SearchPrices:
        """Return the first prices, beside a known award; ``is_small``: ``tighten`` is to come."""
        target = float(self._worth.value[award].sum())
        prices = self._prices(target, _ROUNDS, None)
        if self._limits.counts_steps or is_small:
            return prices
        return self._prices(max(target, _AIM * prices.bound), _TIMED_ROUNDS, None)

    def take(self, bound: int | None) -> None:
        """Take a bound that somebody else proved, None for none."""
        if bound is not None:
            bound = int(self._by_number.of(bound))
            self.bound = bound if self.bound is None else min(self.bound, bound)

    def step(self, number: int, award: IntArray) -> "FloatArray | Relaxed | None":
        """Better the bound where it is time; return new prices or a relaxed solution, if any."""
        after = number - self._entries // _RELAX_ENTRIES - 1
        found: FloatArray | Relaxed | None = None
        if number == _BETTER_PRICES and self._relaxation is None:
            target = float(self._worth.value[award].sum())
            found = self._prices(target, _MORE_ROUNDS, self.price).price
        if not self._has_relaxed:
            # A relaxation takes no more than the time that is gone: at most half of it.
            gone_s = self._began_s - self._limits.left_s()
            if after == 0 if self._limits.counts_steps else self._entries * self._entry_s < gone_s:
                self._has_relaxed = True
                found = self._relaxed(self._relax(), award) or found
        elif self._may_tighten(after):
            found = self._relaxed(self._tighten(), award) or found
        return found

    def tighten(self, award: IntArray) -> None:
        """Relax the program and add cliques for as long as they tell, beside a known award."""
        self._has_relaxed = True
        relaxed = self._relaxed(self._relax(), award)
        reached = sum(self._worth.weights[bid] for bid in award.tolist())
        while relaxed is not None and self.bound is not None and self.bound > reached:
            relaxed = self._relaxed(self._tighten(), award)

    def _prices(self, target: float, rounds: int, begin: FloatArray | None) -> SearchPrices:
        is_over = self._limits.over(_FOR_PRICES)
        prices = find_prices(self._packing, self._worth.value, target, rounds, is_over, begin)
        self.price = prices.price
        self.take(self._in_weights(prices.bound))
        return prices

    def _in_weights(self, bound: float) -> int | None:
        """Return a bound in integer weights, rounded down but for what floats may have lost."""
        if not isfinite(bound):
            return None
        return floor(Fraction(bound * (1 + 1e-9) / SCALE) * self._largest + Fraction(1, 10**6))

    def _may_tighten(self, after: int) -> bool:
        """Return whether a round of cliques is due: by steps, or by a share of the time."""
        if self._limits.counts_steps:
            return after % (_CLIQUES_EVERY * (1 + self._entries // _CLIQUES_ENTRIES)) == 0
        return self._cliques_s < _FOR_BOUND * (self._began_s - self._limits.left_s())

    def _relax(self) -> "Relaxed | None":
        """Solve the linear relaxation where there is time for it."""
        left = self._limits.left_s()
        if self._entries > _MOST_ENTRIES or self._entries * self._entry_s > _FOR_RELAXATION * left:
            return None
        # Where no clock counts none is asked.
        clock = perf_counter if self._limits.counts_steps else self._limits.clock
        self._relaxation = Relaxation(self._packing, self._worth.value, clock)
        return self._relaxation.solve(min(_FOR_RELAXATION * left, self._limits.ends_in_s()))

    def _tighten(self) -> "Relaxed | None":
        if self._relaxation is None or self._relaxation.is_done:
            return None
        began = self._limits.left_s()
        relaxed = self._relaxation.tighten(min(_FOR_CLIQUES * began, self._limits.ends_in_s()))
        self._cliques_s += began - self._limits.left_s()
        return relaxed

    def _relaxed(self, relaxed: "Relaxed | None", award: IntArray) -> "Relaxed | None":
        """Take a relaxation's bound and prices; forget bids that no better award can hold."""
        if relaxed is None:
            if self._relaxation is not None and not self._relaxation.is_done:
                self._relaxation = None
            return None
        self.take(self._in_weights(relaxed.bound))
        self.price = relaxed.price
        slack = relaxed.bound - float(self._worth.value[award].sum())
        # A thousandth of the largest weight more than floats can lose.
        self.alive &= relaxed.loss <= slack + 1e-3
        return relaxed


#: A round of cuts that lowers the bound by less than this share is the last.
_PROGRESS = 2e-5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relaxed:
    """A relaxed solution.

    Attributes:
        bound: no award is worth more.
        price: of each capacity, shape (rows,).
        gain: of each bid, its worth less what it would pay at the prices, cliques included, shape
            (bids,).
        loss: how far the bound falls at least when a bid wins, shape (bids,).
        share: how much of each bid wins in the relaxed solution, shape (bids,).
    """

    bound: float
    price: FloatArray
    gain: FloatArray
    loss: FloatArray
    share: FloatArray


class Relaxation:
    """The relaxation of a whole window; each round of cuts goes on from the last solution."""

    def __init__(
        self, packing: Packing, value: FloatArray, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._packing = packing
        self._value = value
        self.cliques: list[IntArray] = []
        self.is_done = False
        self._excludes: BoolArray | None = None
        program = packing.program(np.arange(len(packing)), packing.capacity).maximising(value)
        self._jobs = program.rows - len(packing.capacity)
        self._rows = program.rows
        # Of a bid for each bidder presolve finds little, and looks for it for seconds that no limit
        # ends.
        self._solver = RelaxedSolver(program, clock, is_small=len(packing.first) == len(packing))

    def solve(self, time_limit_s: float) -> Relaxed | None:
        """Solve within the time; None when that is too short."""
        return self._relaxed() if self._solver.solve(time_limit_s) else None

    def tighten(self, time_limit_s: float) -> Relaxed | None:
        """Add the cliques that the last solution violates and solve again; None: there are none."""
        if len(self._packing) > MOST_BIDS:
            self.is_done = True
            return None
        if self._excludes is None:
            self._excludes = exclusions(self._packing)
        cliques = violated_cliques(self._excludes, self._solver.values[: len(self._packing)])
        if not cliques:
            self.is_done = True
            return None
        self._solver.add_rows(cliques)
        self.cliques += cliques
        before = self._solver.objective
        relaxed = self.solve(time_limit_s)
        self.is_done = relaxed is None or before - self._solver.objective < _PROGRESS * abs(before)
        return relaxed

    def _relaxed(self) -> Relaxed:
        packing, solved = self._packing, self._solver
        of_clique = np.maximum(solved.duals[self._rows :], 0.0)
        price = np.maximum(solved.duals[self._jobs : self._rows], 0.0)
        paid = np.zeros(len(packing))
        for clique, dual in zip(self.cliques, of_clique, strict=True):
            paid[clique] += dual
        gain = self._value - packing.cost(price) - paid
        rest = dot(packing.capacity.astype(np.float64), price) + float(of_clique.sum())
        bound, loss = lagrangian_bound(packing, gain, rest)
        return Relaxed(bound=bound, price=price, gain=gain, loss=loss, share=solved.values[: len(packing)])
