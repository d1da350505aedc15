"""What the auctions share: a binary a bid, a row a job, a row a capacity that bids compete for.

Preference of a bid: F of AUCSCHED1 and 2, K of AUCSCHED3. AUCSCHED2 and 3 need nothing else;
in AUCSCHED1, auction with linear topology, the program deals the cores of a bid (Soner, chapter 4).
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..bidgen.candidates import units_of
from ..bidgen.families.claims import Claim
from ..bidgen.families.registry import claims_of
from ..bidgen.table import BidTable, sums_of
from ..cluster.jobs import JobType
from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray, sorted_places, sums_before
from ..cluster.resources.columns import Columns
from ..formats.hostlist import join
from .model import PAPER, PLUGIN, Answer, Model, ModelInput, RelaxedBids, Weight, bid_weights, multipliers
from .search.packing import packing_within
from .solve.decomposition import AmountFlow
from .solve.program import are_one
from .solve.solver import LpAffineExpression, LpConstraint, LpConstraintEQ, LpConstraintLE, LpVariable
from .solve.variables import add_multiples, binaries, integers

#: k1, k2, k3, k4 for classes A, B, C (rows) by job type 1, and by types 2 and 3.
Constants = Mapping[bool, tuple[tuple[float, float, float, float], ...]]

#: Table 5.2 as printed: for types 2 and 3 it ranks C above B, for type 1 its C overlaps B.
PRINTED: Constants = {
    True: ((0, 0.25, 0, 0.1), (0.25, 0.25, 0, 0.1), (0.4, 0.25, 0.25, 0.1)),
    False: ((0, 0, 0, 0.1), (0.5, 0, 0, 0.1), (0.4, 0, 0.1, 0.1)),
}
#: The same with the two slips mended: F_A > F_B > F_C, as (4.11) asks.
CORRECTED: Constants = {
    True: ((0, 0.25, 0, 0.1), (0.25, 0.25, 0, 0.1), (0.5, 0.25, 0.25, 0.1)),
    False: ((0, 0, 0, 0.1), (0.4, 0, 0, 0.1), (0.5, 0, 0.1, 0.1)),
}

#: Table 4.4 of AUCSCHED1, which has no term for gres.
TABLE_4_4: Constants = {
    True: ((0, 0.25, 0, 0), (0.25, 0.25, 0, 0), (0.5, 0.25, 0.25, 0)),
    False: ((0, 0, 0, 0), (0.5, 0, 0, 0), (0.5, 0, 0.5, 0)),
}

#: The tables a caller may choose from for AUCSCHED2.
PREFERENCE_TABLES: Mapping[str, Constants] = {"corrected": CORRECTED, "printed": PRINTED}


def preference_f(table: BidTable, nodes: int, constants: Constants) -> FloatArray:
    """Return F of every bid (Soner, (5.7)); higher is better, above 1 by at most k4.

    F = 1 − k1 − k2·|N_c|/(|N|+1) − k3·|S_c|/(|S|+1) + k4·(R_i+1)/(R_max+1), the last term a mean
    over the job's gres.
    """
    of_cores = np.array([demand.job.request.type is JobType.CORES for demand in table.demands], np.bool_)[
        table.job
    ]
    k = np.where(
        of_cores[:, None],
        np.array(constants[True])[table.bid_class],
        np.array(constants[False])[table.bid_class],
    )
    result: FloatArray = (
        1.0
        - k[:, 0]
        - k[:, 1] * table.lengths / (nodes + 1)
        - k[:, 2] * table.nodesets / (table.general_nodesets + 1)
        + k[:, 3] * table.gres_ratio
    )
    return result


def cost_k(table: BidTable, nodes: int, max_level: int) -> FloatArray:
    """Return K of every bid (Soner, (6.5)); lower is better, in (0, 3].

    K = 1 + N_i/|N| + L_i/L_max − R_i/G_max; a term whose divisor is 0 is 0. L_i counts as 0 of a
    job whose segments may be anywhere.
    """
    counts = np.array([not demand.is_anywhere for demand in table.demands], np.bool_)[table.job]
    levels = counts * table.level / max_level if max_level else np.zeros(len(table))
    result: FloatArray = 1.0 + table.lengths / nodes + levels - table.gres_share
    return result


class AuctionModel(Model):
    """The integer program over given bids: |B| binaries, at most |J| + (2 + gres)·|N| rows."""

    def create_variables(self) -> None:
        """b_i of each bid i."""
        self.bids = binaries(self.problem, "b", len(self.table))

    @property
    def variables(self) -> list[LpVariable]:
        """The bids, and whatever else there is after them."""
        return self.bids

    def described_columns(self) -> Iterator[tuple[str, str, object, str]]:
        """Yield the bids."""
        table, cores = self.table, self.table.cores_of_bids().tolist()
        for bid, (variable, job) in enumerate(zip(self.bids, table.job.tolist(), strict=True)):
            nodes = join(self.columns.named(table.node[table.entries(bid)]))
            yield variable.name, table.demands[job].job.id, cores[bid], nodes

    def constrain(self) -> None:
        """State every family of constraints."""
        self.one_bid_per_job()
        self.capacities()

    def one_bid_per_job(self) -> None:
        """Σ_{i ∈ B_j} b_i ≤ 1 for each job j: equation (5.2), (6.2)."""
        starts = np.searchsorted(self.table.job, np.arange(len(self.table.demands) + 1)).tolist()
        for job, (start, end) in enumerate(pairwise(starts)):
            if end > start:
                self._row(f"job{job}", dict.fromkeys(self.bids[start:end], 1), LpConstraintLE, 1)

    def capacities(self) -> None:
        """Σ_i amount·b_i ≤ capacity for each cell of every family: (5.3), (5.4), (6.3), (6.4)."""
        for claim in claims_of(self.table, self.columns, self.guards):
            self.within(claim)

    def within(self, claim: Claim) -> None:
        """Add the row of each cell of which some bid takes something."""
        bid = np.arange(len(self.table))
        bid = bid if claim.by_bid else np.repeat(bid, self.table.lengths)
        self._rows(claim, claim.row, bid, claim.amount)

    def _rows(self, claim: Claim, row: IntArray, number: IntArray, amount: IntArray) -> None:
        """Add Σ amount·variable ≤ capacity for each cell; rows, variables, amounts: of entries."""
        some = np.flatnonzero(amount)
        some = some[sorted_places(row[some])]
        terms = np.stack([number[some], amount[some]], axis=1).tobytes()
        cells, ends = np.unique(row[some], return_counts=True)
        limits, spans = claim.capacity[cells].tolist(), pairwise((16 * sums_before(ends)).tolist())
        variables, rows = self.variables, dict[str, LpConstraint]()
        made: dict[bytes, LpAffineExpression] = {}
        for cell, limit, (start, end) in zip(cells.tolist(), limits, spans, strict=True):
            # Nodes side by side are wanted by the same bids: their rows have one left side.
            if (key := terms[start:end]) not in made:
                pairs = np.frombuffer(key, np.int64).reshape(-1, 2).tolist()
                made[key] = LpAffineExpression({variables[one]: times for one, times in pairs})
            name = f"{claim.symbol}_{cell}"
            rows[name] = LpConstraint(made[key], LpConstraintLE, name, limit)
        self.problem.add_rows(rows)

    @cached_property
    def first_weights(self) -> list[Weight]:
        """The exact worth of each bid."""
        return bid_weights(self.table, self.given.objective)

    def group(self) -> IntArray:
        """Return the job of each bid, ascending; columns that are no bids come after with none."""
        others = len(self.variables) - len(self.bids)
        return np.concatenate([self.table.job, len(self.table.demands) + np.arange(others)])

    def preference(self) -> FloatArray:
        """Return what each column adds to the second stage, never negative."""
        return self._on_bids(self.preferences(self.given)[0])

    def printed(self) -> FloatArray:
        """Return each bid's printed weight, times its job's cores if the objective counts those."""
        priorities = np.array([float(demand.job.priority) for demand in self.table.demands])
        printed = self.paper_weights(priorities) * multipliers(self.table, self.given.objective)
        return self._on_bids(printed)

    @abstractmethod
    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """Return P_j + α·F_i or P_j − β·K_ji of each bid: the printed objective.

        Args:
            priorities: P_j of each job of the window, shape (jobs,).
        """

    def _on_bids(self, values: FloatArray) -> FloatArray:
        """Return values of the bids as values of all columns."""
        return np.concatenate([values, np.zeros(len(self.variables) - len(self.bids))])

    def start(self, chosen: IntArray) -> FloatArray:
        """Return the columns' values that award the ``chosen`` bids of the table."""
        values = np.zeros(len(self.variables))
        values[chosen] = 1
        return values

    def answer(self, values: FloatArray) -> Answer:
        """Return the winning bids, ascending."""
        chosen = np.flatnonzero(are_one(values[: len(self.bids)]))
        objective, shown = self.given.objective, self.preferences(self.given)[1]
        return Answer(table=self.table, chosen=chosen, objective=objective, preference=shown)

    @classmethod
    def nonzeros(cls, given: ModelInput) -> int:
        """Return roughly the program's nonzeros: cores and each gres on each bid's nodes."""
        return (1 + len(given.table.gres)) * len(given.table.node)


class LinearAuction(AuctionModel):
    """An auction on nodes in a row, whose bids are preferred by F: AUCSCHED1 and 2.

    Attributes:
        constants: k1 to k4 of (4.12) or (5.7), by the name of a preference table.
    """

    constants: Mapping[str, Constants] = PREFERENCE_TABLES

    @classmethod
    def preferences(cls, given: ModelInput) -> tuple[FloatArray, FloatArray]:
        """F of each bid, (4.12) or (5.7): positive, so that no job costs preference, and as is."""
        f = preference_f(given.table, given.nodes, cls.constants[given.preference_table]) - given.broken()
        return f + given.keeps_whole, f

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j + α·F_i with α = P_min / (|B| + 1): equations (4.1), (4.10), (5.1), (5.6)."""
        alpha = float(priorities.min()) / (len(self.table) + 1) if len(priorities) else 0.0
        result: FloatArray = priorities[self.table.job] + alpha * self.preferences(self.given)[0]
        return result


class Aucsched1(LinearAuction):
    """Maximise Σ (P_j + α·F_jc)·b_jc: equations (4.1)-(4.10).

    The cores on a node are unit·(least·u + r), where a unit is a task's cores and ``least`` the
    fewest units a node gets: with neither asked for, u + r as printed.

    Variables u and r stand for each bid and node of it (table 4.2 counts 2·Σ|N_c| + |B|): shared by
    overlapping bids, as printed, they would make overlapping bids infeasible.
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
        """Return bids with the least that they take of their nodes, and what deals the other cores.

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
        bid = table.bid
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
        """Σ_{n ∈ N_c} u = R_jc^node·b_jc for each bid: (4.3), N_c being exactly R_jc^node nodes."""
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
        """0 ≤ r ≤ u·(min(A_n, R^cpu − R^node + 1) − 1) for each entry: (4.7) of the bid."""
        most = self._beyond.tolist()
        times = [(entry, most[entry]) for entry in np.flatnonzero(~self._is_fixed).tolist()]
        add_multiples(self.problem, "beyond", (self.r, self.u), times)

    def cores_per_node(self) -> None:
        """Σ of u and r = R_j^cpn·b_jc on each node, where the job says how many: equation (4.8)."""
        bid_of = self.table.bid.tolist()
        cores = self.table.cores.tolist()
        for entry in np.flatnonzero(self._is_fixed).tolist():
            terms = {self.u[entry]: 1, self.r[entry]: 1, self.bids[bid_of[entry]]: -cores[entry]}
            self._row(f"per_node{entry}", terms, LpConstraintEQ, 0)

    def within(self, claim: Claim) -> None:
        """Σ (u + r) ≤ A_n^cpu (4.5), Σ u·R_j^gres ≤ A_n^gres (4.6), and all other families' rows.

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
        """Return the columns' values that award the chosen bids with the table's cores."""
        bids = np.zeros(len(self.table))
        bids[chosen] = 1
        used = np.repeat(bids, self.table.lengths)
        return np.concatenate([bids, used, used * (self.table.cores // self._unit - self._least)])

    def answer(self, values: FloatArray) -> Answer:
        """Return the winning bids, in a table with the cores that u and r deal to them."""
        bids, entries = len(self.bids), len(self.table.node)
        found = super().answer(values)
        beyond = np.round(values[bids + entries :]).astype(np.int64)
        cores = self._unit * (self._least + beyond)
        return replace(found, table=self.table.with_cores(found.chosen, cores))


def _units(table: BidTable, columns: Columns) -> tuple[BoolArray, IntArray, IntArray, IntArray]:
    """Return by entry whether its cores are fixed, its unit, the least units, and the most beyond.

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


class Aucsched2(LinearAuction):
    """Maximise Σ (P_j + α·F_i)·b_i: equations (5.1)-(5.7)."""

    name = "aucsched2"
    presets: Mapping[str, Mapping[str, Any]] = {"paper": {**PAPER, "preference_table": "printed"}}
    is_searched = True
    reads_preference_table = True


class Aucsched3(AuctionModel):
    """Maximise Σ (P_j − β·K_ji)·b_i: equations (6.1)-(6.7).

    ``one_bid_per_job`` is (6.2). ``capacities`` is (6.3) for cores and (6.4) for gres: a row for
    each cell of bidgen/families/on_nodes.py. By default two stages maximise Σ P_j·b_i, then
    Σ (3 − K_ji)·b_i (``preferences``); ``paper_weights`` is the sum above.
    """

    name = "aucsched3"
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": PAPER,
        "plugin": {
            **PLUGIN,
            "window": 250,
            "time_limit_s": 5.0,
            "max_bids": 25_000,
            "max_bids_per_job": 500,
            "objective": "priority_cores",
        },
    }
    is_searched = True
    uses_switches = True

    @classmethod
    def cost(cls, given: ModelInput) -> FloatArray:
        """K of each bid (6.5), and what it breaks of what is wholly free."""
        return cost_k(given.table, given.nodes, given.topology.max_level) + given.broken()

    @classmethod
    def preferences(cls, given: ModelInput) -> tuple[FloatArray, FloatArray]:
        """3 − K and −K of each bid: as each bid costs, −ΣK would prefer fewer jobs at an equal sum.

        Where what is wholly free counts, K is at most 4.
        """
        cost = cls.cost(given)
        return 3.0 + given.keeps_whole - cost, -cost

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j − β·K_ji, β = P_min_diff / 3 (6.1), (6.6), (6.7); P/3 for a window of one job."""
        result: FloatArray = priorities[self.table.job] - self._beta(priorities) * self.cost(self.given)
        return result

    @staticmethod
    def _beta(priorities: FloatArray) -> float:
        if len(priorities) == 1:
            return float(priorities[0]) / 3
        return float(np.diff(np.sort(priorities)).min(initial=np.inf)) / 3 if len(priorities) else 0.0
