"""AUCSCHED1: auction with linear topology, the cores of a bid dealt by the program (Soner, chapter 4).

Variables u and r stand for each bid and node of it (table 4.2 counts 2·Σ|N_c| + |B|): shared by
overlapping bids, as printed, (4.3) would make overlapping bids infeasible.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..bidgen.candidates import units_of
from ..bidgen.families.claims import Claim
from ..bidgen.families.registry import claims_of
from ..bidgen.table import BidTable, sums_of
from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from .auction_model import PREFERENCE_TABLES, TABLE_4_4, Constants, LinearAuction
from .model import PAPER, PLUGIN, Answer, ModelInput, RelaxedBids
from .search.packing import packing_within
from .solve.decomposition import AmountFlow
from .solve.solver import LpConstraintEQ, LpVariable
from .solve.variables import add_multiples, binaries, integers


class Aucsched1(LinearAuction):
    """Maximise Σ (P_j + α·F_jc)·b_jc: equations (4.1)-(4.10).

    The cores on a node are unit·(least·u + r), where a unit is a task's cores and ``least`` the
    fewest units a node gets: with neither asked for, u + r as printed.
    """

    name = "aucsched1"
    spreads_jobs = False
    caps = (150, 15)
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": PAPER,
        "plugin": {**PLUGIN, "window": 100, "max_bids": 250, "max_bids_per_job": 15},
    }
    constants: Mapping[str, Constants] = dict.fromkeys(PREFERENCE_TABLES, TABLE_4_4)
    #: For each bid and node of it.
    _NONZEROS = 13

    @classmethod
    def nonzeros(cls, given: ModelInput) -> int:
        """Return about how many nonzeros the program has."""
        return cls._NONZEROS * len(given.table.node)

    def create_variables(self) -> None:
        """Bids b, and of every entry u (a node is the bid's) and r (units beyond the least)."""
        super().create_variables()
        self.u = binaries(self.problem, "u", len(self.table.node))
        self.r = integers(self.problem, "r", len(self.table.node))
        self._is_fixed, self._unit, self._least, self._beyond = _units(self.table, self.columns)

    @classmethod
    def relaxed(cls, given: ModelInput) -> RelaxedBids | None:
        """Return bids with the least that they take of their nodes, and what deals the rest of the cores.

        None where more than cores follows from what is dealt, or cores of several at once.
        """
        table = given.table
        is_fixed, unit, least, most = _units(table, given.columns)
        claims = list(claims_of(table, given.columns, given.guards))
        if sum(np.any(one.per_core) for one in claims) > 1 or (unit > 1).any():
            return None
        cores = np.where(is_fixed, table.cores, least)
        rest = sums_of(table.cores - cores, table.indptr)
        others = np.repeat(sums_of(most, table.indptr), table.lengths) - most
        beside = np.maximum(np.repeat(rest, table.lengths) - others, 0)
        bid = np.repeat(np.arange(len(table)), table.lengths)
        nodes, row = np.unique(table.node, return_inverse=True)
        fixed = np.zeros((len(table), len(nodes)))
        fixed[bid, row] = cores
        free = given.columns.free.cores[nodes].astype(np.float64)
        dealing = AmountFlow(
            bid=bid,
            row=row,
            most=most.astype(np.float64),
            rest=rest.astype(np.float64),
            fixed=fixed,
            free=free,
        )
        relaxed = [replace(one, amount=cores + beside) if np.any(one.per_core) else one for one in claims]
        return RelaxedBids(packing_within(table, relaxed), cores, dealing if rest.any() else None)

    @property
    def variables(self) -> list[LpVariable]:
        """The bids, then u, then r of every entry."""
        return [*self.bids, *self.u, *self.r]

    def constrain(self) -> None:
        """State every family of constraints."""
        super().constrain()
        self.nodes_of_bids()
        self.cores_of_bids()
        self.cores_beyond_the_first()
        self.cores_per_node()

    def _entries(self) -> list[slice]:
        return [slice(start, end) for start, end in pairwise(self.table.indptr.tolist())]

    def nodes_of_bids(self) -> None:
        """Σ_{n ∈ N_c} u = R_jc^node·b_jc for each bid: equation (4.3), N_c having exactly R_jc^node nodes."""
        for bid, entries in enumerate(self._entries()):
            terms = dict.fromkeys(self.u[entries], 1)
            terms[self.bids[bid]] = -len(terms)
            self._row(f"nodes{bid}", terms, LpConstraintEQ, 0)

    def cores_of_bids(self) -> None:
        """Σ_{n ∈ N_c} (u + r) = R_jc^cpu·b_jc for each bid, over its own nodes: equation (4.4)."""
        totals = sums_of(self.table.cores // self._unit, self.table.indptr).tolist()
        least = self._least.tolist()
        for bid, entries in enumerate(self._entries()):
            terms = dict(zip(self.u[entries], least[entries], strict=True))
            terms |= dict.fromkeys(self.r[entries], 1)
            terms[self.bids[bid]] = -totals[bid]
            self._row(f"cores{bid}", terms, LpConstraintEQ, 0)

    def cores_beyond_the_first(self) -> None:
        """0 ≤ r ≤ u·(min(A_n, R^cpu − R^node + 1) − 1) for each entry: equation (4.7) of the bid."""
        most = self._beyond.tolist()
        times = [(entry, most[entry]) for entry in np.flatnonzero(~self._is_fixed).tolist()]
        add_multiples(self.problem, "beyond", (self.r, self.u), times)

    def cores_per_node(self) -> None:
        """Σ of u and r = R_j^cpn·b_jc on each node, where the job says how many: equation (4.8)."""
        bid_of = np.repeat(np.arange(len(self.table)), self.table.lengths).tolist()
        cores = self.table.cores.tolist()
        for entry in np.flatnonzero(self._is_fixed).tolist():
            terms = {self.u[entry]: 1, self.r[entry]: 1, self.bids[bid_of[entry]]: -cores[entry]}
            self._row(f"per_node{entry}", terms, LpConstraintEQ, 0)

    def within(self, claim: Claim) -> None:
        """Σ (u + r) ≤ A_n^cpu (4.5), Σ u·R_j^gres ≤ A_n^gres (4.6), and the rows of every other family.

        Amounts are fixed + per_core × cores: u stands for the least cores, r for a unit more.

        Where a job has reserved something itself and takes less of it, others may.
        """
        if claim.by_bid:
            super().within(claim)
            return
        none = np.zeros_like(claim.amount)
        per_unit = none + claim.per_core * self._unit
        on_u = claim.fixed(self.table.cores) + per_unit * self._least
        number = len(self.bids) + np.arange(2 * len(self.table.node))
        self._rows(claim, np.tile(claim.row, 2), number, np.concatenate([on_u, per_unit]))

    def start(self, chosen: IntArray) -> FloatArray:
        """Return the columns' values that award the chosen bids with the cores the table gives them."""
        bids = np.zeros(len(self.table))
        bids[chosen] = 1
        used = np.repeat(bids, self.table.lengths)
        return np.concatenate([bids, used, used * (self.table.cores // self._unit - self._least)])

    def answer(self, values: FloatArray) -> Answer:
        """Return the winning bids, in a table with the cores that u and r deal to them."""
        bids, entries = len(self.bids), len(self.table.node)
        found = super().answer(values)
        beyond = np.round(values[bids + entries :]).astype(np.int64)
        won = np.repeat(np.isin(np.arange(bids), found.chosen), self.table.lengths)
        cores = np.where(won, self._unit * (self._least + beyond), self.table.cores)
        return replace(found, table=self.table.with_cores(cores))


def _units(table: BidTable, columns: Columns) -> tuple[BoolArray, IntArray, IntArray, IntArray]:
    """Return of every entry whether its cores are fixed, its unit, the least units, and the most beyond.

    That is 0 where they are fixed, and else min(A_n, R^cpu − R^node + 1) − 1 of (4.7).
    """
    demands, lengths = table.demands, table.lengths
    job = np.repeat(table.job, lengths)
    fixed = np.array([one.units_per_node is not None or one.exclusive for one in demands], np.bool_)[job]
    unit = np.where(fixed, 1, np.array([one.unit for one in demands], np.int64)[job])
    least = np.where(fixed, 1, np.array([one.least for one in demands], np.int64)[job])
    most = np.zeros(len(table.node), np.int64)
    for place, demand in enumerate(demands):
        mine = job == place
        most[mine] = units_of(demand, columns.free, columns)[table.node[mine]]
    totals = np.repeat(sums_of(table.cores // unit, table.indptr), lengths)
    most = np.minimum(most, totals - least * (np.repeat(lengths, lengths) - 1)) - least
    return fixed, unit, least, np.where(fixed, 0, np.maximum(most, 0))
