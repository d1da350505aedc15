"""A window's integer program, ready to solve, and how its answer becomes an award."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..bidgen.table import CLASS_A, CLASS_B, CLASS_C, BidTable
from ..cluster.resources.capacity import FloatArray, IntArray
from ..models.auction_model import AuctionModel
from ..models.ipsched import Ipsched, VariantChoice
from ..models.solve.solver import IntegerProgram, LpVariable

Weight = int | Fraction


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """A solution as bids of a table: the winners, ascending, and the preference of each bid, if any."""

    table: BidTable
    chosen: IntArray
    preference: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Formulation:
    """An integer program with its objectives; arrays of shape (columns,).

    Attributes:
        variables: PuLP's, a column each.
        group: columns of one group exclude each other; ascending.
        weights: exact worth of each column, 0 for those that carry amounts.
        preference: the second stage.
        printed: the papers' weighted objective.
        start: turns bids of the table into values.
        answer: turns values into an award.
    """

    program: IntegerProgram
    variables: list[LpVariable]
    group: IntArray
    weights: list[Weight]
    preference: FloatArray
    printed: FloatArray
    start: Callable[[IntArray], FloatArray]
    answer: Callable[[FloatArray], Answer]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, for a file."""
        return tuple(variable.name for variable in self.variables)


def state_auction(model: AuctionModel, weights: list[Weight], objective: str) -> Formulation:
    """Return an auction's program; ``weights`` of its bids, ``objective`` as bid_weights."""
    program = model.program()
    shown = model.shown_preference()
    printed = model.paper_weights(_priorities(model.table)) * multipliers(model.table, objective)
    answer = model.awarded

    def answered(values: FloatArray) -> Answer:
        table, chosen = answer(values)
        return Answer(table=table, chosen=chosen, preference=shown)

    return Formulation(
        program=program,
        variables=model.variables,
        group=model.group(),
        weights=[*weights, *([0] * (program.columns - len(weights)))],
        preference=model.preference(),
        printed=model.on_bids(printed),
        start=model.start,
        answer=answered,
    )


def state_ipsched(model: Ipsched, objective: str) -> Formulation:
    """Return IPSCHED's program."""
    weights = [_weight_of_job(option, objective) for option in model.options]
    model.maximise(np.array([float(weight) for weight in weights]))
    program = model.program()
    worth = np.array([float(demand.job.priority) for demand in model.table.demands])
    if objective == "priority_cores":
        worth *= np.array([demand.job.request.cores or 1 for demand in model.table.demands])
    packed = model.nodes_packed(worth)
    largest = float(worth.max(initial=1.0)) or 1.0
    return Formulation(
        program=program,
        variables=model.variables,
        group=model.group(),
        weights=[*weights, *([0] * (program.columns - len(weights)))],
        # Only its sign and order matter: kept near 1 for the solver's tolerances.
        preference=packed / largest,
        printed=program.objective + packed,
        start=model.start,
        answer=lambda values: _placed(model, values),
    )


def _weight_of_job(option: VariantChoice, objective: str) -> Weight:
    job = option.demand.job
    return job.priority if objective == "priority" else job.priority * (job.request.cores or 1)


def _placed(model: Ipsched, values: FloatArray) -> Answer:
    """Return the placements as bids: one for each job that starts, beside the other jobs' bids."""
    table = model.table
    placed = [_row_of_placement(model, *placement) for placement in model.placements(values)]
    losers = np.flatnonzero(~np.isin(table.job, [row.job for row in placed]))
    rows = sorted([*placed, *(_row_of_bid(table, int(bid)) for bid in losers)], key=lambda row: row.job)
    chosen = np.array([place for place, row in enumerate(rows) if row.won], np.int64)
    return Answer(table=_table_of(rows, table, model), chosen=chosen, preference=None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Row:
    """One bid of a table that is put together again."""

    job: int
    won: bool
    bid_class: int
    nodes: IntArray
    cores: IntArray
    memory: IntArray
    gres: dict[str, IntArray]
    gres_ratio: float = 1.0
    gres_share: float = 0.0


def _row_of_bid(table: BidTable, bid: int) -> _Row:
    entries = table.entries(bid)
    nodes = table.node[entries]
    return _Row(
        job=int(table.job[bid]),
        won=False,
        bid_class=int(table.bid_class[bid]),
        nodes=nodes,
        cores=table.cores[entries],
        memory=np.zeros_like(nodes) if table.memory is None else table.memory[entries],
        gres={kind: counts[entries] for kind, counts in table.gres.items()},
        gres_ratio=float(table.gres_ratio[bid]),
        gres_share=float(table.gres_share[bid]),
    )


def _row_of_placement(
    model: Ipsched, option: VariantChoice, nodes: IntArray, cores: IntArray, gres: dict[str, IntArray]
) -> _Row:
    demand = option.demand
    contiguous = int(nodes[-1] - nodes[0]) + 1 == len(nodes)
    usable = set(option.nodes.tolist())
    aligned = int(nodes[0]) - 1 not in usable or int(nodes[-1]) + 1 not in usable
    return _Row(
        job=demand.index,
        won=True,
        bid_class=(CLASS_A if aligned else CLASS_B) if contiguous else CLASS_C,
        nodes=nodes,
        cores=cores,
        memory=demand.memory_on(cores),
        gres={kind: gres.get(kind, np.zeros_like(nodes)) for kind in model.columns.total.gres},
    )


def _table_of(rows: list[_Row], table: BidTable, model: Ipsched) -> BidTable:
    none = np.zeros(0, np.int64)
    indptr = np.cumsum([0, *(len(row.nodes) for row in rows)])
    node = np.concatenate([none, *(row.nodes for row in rows)])
    breaks = np.cumsum(np.diff(node, prepend=-2) != 1)
    kinds = list(model.columns.total.gres)
    topology = model.topology
    return replace(
        table,
        job=np.array([row.job for row in rows], np.int64),
        bid_class=np.array([row.bid_class for row in rows], np.int8),
        level=topology.level[topology.common_switch_of_sets(indptr, node)],
        nodesets=breaks[indptr[1:] - 1] - breaks[indptr[:-1]] + 1,
        indptr=indptr,
        node=node,
        cores=np.concatenate([none, *(row.cores for row in rows)]),
        memory=np.concatenate([none, *(row.memory for row in rows)]),
        gres={
            kind: np.concatenate([none, *(row.gres.get(kind, np.zeros_like(row.nodes)) for row in rows)])
            for kind in kinds
        },
        gres_ratio=np.array([row.gres_ratio for row in rows]),
        gres_share=np.array([row.gres_share for row in rows]),
    )


def bid_weights(table: BidTable, objective: str) -> list[Weight]:
    """Return P_j, or P_j·R_j^cpu, of each bid, exactly as given; of jobs with a worth of their own that."""
    own = [demand.worth for demand in table.demands]
    asked = priority_weights(table, objective)
    return [
        weight if (worth := own[job]) is None else worth
        for job, weight in zip(table.job.tolist(), asked, strict=True)
    ]


def priority_weights(table: BidTable, objective: str) -> list[Weight]:
    """Return P_j, or P_j·R_j^cpu, of each bid, exactly as given."""
    priorities = [demand.job.priority for demand in table.demands]
    cores = multipliers(table, objective).tolist()
    return [priorities[job] * int(count) for job, count in zip(table.job.tolist(), cores, strict=True)]


def sum_of(weights: list[Weight], bids: IntArray) -> Fraction:
    """Return the exact sum of some bids' weights."""
    return sum((weights[bid] for bid in bids.tolist()), start=Fraction(0))


def multipliers(table: BidTable, objective: str) -> IntArray:
    """Return what each bid's priority is multiplied by: 1, or its job's cores R_j^cpu."""
    if objective == "priority":
        return np.ones(len(table), np.int64)
    asked = np.array([demand.job.request.cores or 0 for demand in table.demands], np.int64)[table.job]
    per_node = np.array([demand.job.request.cores_per_node or 0 for demand in table.demands], np.int64)[
        table.job
    ]
    return np.where(asked > 0, asked, per_node * table.lengths)


def _priorities(table: BidTable) -> FloatArray:
    return np.array([float(demand.job.priority) for demand in table.demands])
