"""The linear relaxation: prices that bound better than the Lagrangian's rounds, and cuts that better them.

Whatever prices the solver returns, the bound is computed from them here, so that no tolerance of the solver
can make it wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..solve.solver import LinearReport, RelaxedSolver
from .cliques import MOST_BIDS, exclusions, violated_cliques
from .differences import as_differences
from .packing import Packing
from .prices import dot, lagrangian_bound

#: A round of cuts that lowers the bound by less than this share is the last.
_PROGRESS = 2e-5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relaxed:
    """A relaxed solution.

    Attributes:
        bound: no award is worth more.
        price: of each capacity, shape (rows,).
        gain: of each bid, its worth less what it would pay at the prices, cliques included, shape (bids,).
        loss: how far the bound falls at least when a bid wins, shape (bids,).
        share: how much of each bid wins in the relaxed solution, shape (bids,).
    """

    bound: float
    price: FloatArray
    gain: FloatArray
    loss: FloatArray
    share: FloatArray


def relaxed_entries(packing: Packing) -> int:
    """Return about how many entries the relaxation's program has."""
    bids = len(packing)
    plain = len(packing.row) + bids
    return plain if bids <= MOST_BIDS else min(plain, 6 * bids + 2 * packing.rows)


class Relaxation:
    """The relaxation of a whole window; each round of cuts goes on from the last solution."""

    def __init__(
        self, packing: Packing, value: FloatArray, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._packing = packing
        self._value = value
        self.cliques: list[IntArray] = []
        self.is_done = False
        self._excludes: BoolArray | None = None
        program = packing.program(np.arange(len(packing)), packing.capacity).maximising(value)
        self._jobs = program.rows - len(packing.capacity)
        self._rows = program.rows
        self.has_differences = False
        if len(packing) > MOST_BIDS:
            # The interior-point method is faster on differences; the simplex, which cliques call for, is not.
            differences = as_differences(program, self._jobs)
            self.has_differences = differences.nonzeros < program.nonzeros
            program = differences if self.has_differences else program
        # Of a bid for each bidder presolve finds little, and looks for it for seconds that no limit ends.
        self._solver = RelaxedSolver(program, clock, is_small=len(packing.first) == len(packing))

    def solve(self, time_limit_s: float) -> Relaxed | None:
        """Solve within the time; None when that is too short."""
        solved = self._solver.solve(time_limit_s)
        return None if solved is None else self._relaxed(solved)

    def tighten(self, time_limit_s: float) -> Relaxed | None:
        """Add the cliques that the last solution violates and solve again; None when there are none."""
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

    def _relaxed(self, solved: LinearReport) -> Relaxed:
        packing = self._packing
        of_clique = np.maximum(solved.duals[self._rows :], 0.0)
        of_loads, of_rows = solved.reduced[len(packing) :], solved.duals[self._jobs : self._rows]
        price = np.maximum(of_loads if self.has_differences else of_rows, 0.0)
        paid = np.zeros(len(packing))
        for clique, dual in zip(self.cliques, of_clique, strict=True):
            paid[clique] += dual
        gain = self._value - packing.cost(price) - paid
        rest = dot(packing.capacity.astype(np.float64), price) + float(of_clique.sum())
        bound, loss = lagrangian_bound(packing, gain, rest)
        return Relaxed(bound=bound, price=price, gain=gain, loss=loss, share=solved.values[: len(packing)])
