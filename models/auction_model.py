"""What the auctions share: one binary a bid, one row a job, one row a capacity that bids compete for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..bidgen.families.claims import Claim
from ..bidgen.families.registry import claims_of
from ..bidgen.table import BidTable
from ..cluster.resources.capacity import IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.job_reservations import Guard
from .preference import Constants, preference_f
from .solve.solver import (
    IntegerProgram,
    LpAffineExpression,
    LpConstraint,
    LpConstraintLE,
    LpMaximize,
    LpVariable,
    read_pulp,
)
from .solve.variables import Problem, binaries

FloatArray = npt.NDArray[np.float64]


class AuctionModel:
    """The integer program over given bids, in PuLP: |B| binaries, at most |J| + (2 + gres)·|N| rows.

    Args:
        table: the bids.
        columns: the cluster's free resources.
        weights: what each bid adds to the objective, shape (bids,): priorities, or the papers' sums.
    """

    name = ""

    def __init__(
        self, table: BidTable, columns: Columns, weights: FloatArray, guards: tuple[Guard, ...] = ()
    ) -> None:
        self.guards = guards
        self.table = table
        self.columns = columns
        self.problem = Problem(self.name, LpMaximize)
        self.bids = binaries(self.problem, "b", len(table))
        self.maximise(weights)
        self.one_bid_per_job()
        self.capacities()

    def maximise(self, weights: FloatArray) -> None:
        """Σ_j Σ_{i ∈ B_j} w_i·b_i: equation (5.1) or (6.1), w_i as the caller chose."""
        self.problem.setObjective(LpAffineExpression(list(zip(self.bids, weights.tolist(), strict=True))))

    def one_bid_per_job(self) -> None:
        """Σ_{i ∈ B_j} b_i ≤ 1 for each job j: equation (5.2), (6.2)."""
        starts = np.searchsorted(self.table.job, np.arange(len(self.table.demands) + 1)).tolist()
        for job, (start, end) in enumerate(pairwise(starts)):
            if end > start:
                self._at_most(f"job{job}", dict.fromkeys(self.bids[start:end], 1), 1)

    def capacities(self) -> None:
        """Σ_i amount·b_i ≤ capacity for each cell of every family: equations (5.3), (5.4), (6.3), (6.4)."""
        for claim in claims_of(self.table, self.columns, self.guards):
            self.within(claim)

    def within(self, claim: Claim) -> None:
        """Add the row of each cell of which some bid takes something."""
        self._rows(claim, [(self._bids(claim), claim.amount)])

    def _bids(self, claim: Claim) -> list[LpVariable]:
        """Return the bid of each amount."""
        if claim.by_bid:
            return self.bids
        bid_of = np.repeat(np.arange(len(self.table)), self.table.lengths)
        return [self.bids[bid] for bid in bid_of.tolist()]

    def _rows(self, claim: Claim, parts: list[tuple[list[LpVariable], IntArray]]) -> None:
        """Add Σ amount·variable ≤ capacity for each cell; variables and amounts as the claim's rows."""
        order = np.argsort(claim.row, kind="stable")
        cells = np.unique(claim.row[np.any([amount != 0 for _, amount in parts], axis=0)])
        terms: list[dict[LpVariable, int]] = [{} for _ in cells]
        for variables, amount in parts:
            mine = order[amount[order] != 0]
            counts, named = amount[mine].tolist(), [variables[place] for place in mine.tolist()]
            ends = np.searchsorted(claim.row[mine], cells, side="right").tolist()
            for of_cell, (start, end) in zip(terms, pairwise([0, *ends]), strict=True):
                of_cell.update(zip(named[start:end], counts[start:end], strict=True))
        limits = claim.capacity[cells].tolist()
        for cell, of_cell, limit in zip(cells.tolist(), terms, limits, strict=True):
            self._at_most(f"{claim.symbol}_{cell}", of_cell, limit)

    def _at_most(self, name: str, terms: dict[LpVariable, int], limit: int) -> None:
        expression = LpAffineExpression(terms)
        self.problem.addConstraint(LpConstraint(expression, LpConstraintLE, name, limit))

    @property
    def variables(self) -> list[LpVariable]:
        """All variables, the bids first: the columns of ``program``."""
        return self.bids

    def program(self) -> IntegerProgram:
        """Return the program as arrays, columns in the order of ``variables``."""
        return read_pulp(self.problem, self.variables)

    def group(self) -> IntArray:
        """Return the job of each column, ascending; columns that are no bids come after with none."""
        others = len(self.variables) - len(self.bids)
        return np.concatenate([self.table.job, len(self.table.demands) + np.arange(others)])

    def start(self, chosen: IntArray) -> FloatArray:
        """Return the columns' values that award the ``chosen`` bids of the table."""
        values = np.zeros(len(self.variables))
        values[chosen] = 1
        return values

    def awarded(self, values: FloatArray) -> tuple[BidTable, IntArray]:
        """Return the table with the cores that ``values`` award, and the winning bids, ascending."""
        return self.table, np.flatnonzero(values[: len(self.bids)] > 0.5)  # noqa: PLR2004 - 0/1 values

    def preference(self) -> FloatArray:
        """Return what each column adds to the second stage; higher is better."""
        return self.on_bids(self.bid_preference())

    def on_bids(self, values: FloatArray) -> FloatArray:
        """Return values of the bids as values of all columns."""
        return np.concatenate([values, np.zeros(len(self.variables) - len(self.bids))])

    def bid_preference(self) -> FloatArray:
        """Return what each bid adds to the second stage, never negative, shape (bids,)."""
        raise NotImplementedError

    def shown_preference(self) -> FloatArray | None:
        """Return the preference of each bid as schedules show it: F, or −K; shape (bids,)."""
        raise NotImplementedError

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """Return P_j + α·F_i or P_j − β·K_ji of each bid: the printed objective.

        Args:
            priorities: P_j of each job of the window, shape (jobs,).
        """
        raise NotImplementedError


class LinearAuction(AuctionModel):
    """An auction on nodes in a row, whose bids are preferred by F: AUCSCHED1 and 2.

    Args:
        constants: k1 to k4 of (4.12) or (5.7).
    """

    constants: Constants

    def bid_preference(self) -> FloatArray:
        """F of each bid (4.12), (5.7): positive, so that a further job never costs preference."""
        return preference_f(self.table, len(self.columns.names), self.constants)

    def shown_preference(self) -> FloatArray:
        """F of each bid."""
        return self.bid_preference()

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j + α·F_i with α = P_min / (|B| + 1): equations (4.1), (4.10), (5.1), (5.6)."""
        alpha = float(priorities.min()) / (len(self.table) + 1) if len(priorities) else 0.0
        result: FloatArray = priorities[self.table.job] + alpha * self.bid_preference()
        return result
