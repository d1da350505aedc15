"""Prices of nodes: what the window's bids bid each core, gres and licence up to, and what each bid costs.

Lagrangian prices (models/search/prices.py) after a fixed number of rounds, then rounded as far as the
bound they prove allows. They are an estimate: any prices bound the award, but bids are whole, and prices that
make every winner gain and every loser lose need not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, log10

import numpy as np

from ...bidgen.columns import BoolArray, Columns, FloatArray, IntArray
from ...bidgen.demand import Demand
from ...bidgen.generate import generate_bids
from ...bidgen.guard import Guard
from ...bidgen.table import BidTable
from ...cluster.jobs import Job
from ...cluster.nodes import by_resource_name, gres_name
from ...cluster.schedule import Award
from ...models.search.packing import Packing, Part, full_packing, parts_of
from ...models.search.prices import find_prices
from ..attempt import Cluster, bid_options
from ..ledger import greedy
from ..options import StepOptions
from ..programs import bid_weights
from ..step import Step

#: Rounds, and entries of bids looked at in all of them together (about 0.2 s): fewer rounds on wide windows.
_ROUNDS, _FEWEST_ROUNDS, _ENTRIES = 400, 60, 16_000_000
#: Prices are rounded to so many steps, the coarsest that weaken the bound by at most this share of it.
_LEVELS = (4, 8, 16, 32, 64, 128, 256)
_WEAKER = 1e-3
#: What costs less, all of a node's together, than this share of the dearest resource is free of charge.
_NOTHING = 1e-3
MIB_IN_GIB = 1024

Amounts = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prices:
    """What one unit of everything costs, in units of what is maximised (priority, or priority × cores).

    Attributes:
        of_nodes: by resource (``cores``, ``memory`` by the MiB, each gres), shape (nodes,).
        of_licenses: of one licence by name.
        of_rooms: what jobs that outlast a reservation's start pay besides, on its nodes: shape (nodes,).
        wanted: nodes that are in some bid, shape (nodes,).
        bound: no award over these bids is worth more; the prices prove it.
    """

    of_nodes: Amounts
    of_licenses: Mapping[str, float]
    of_rooms: tuple[tuple[Guard, Amounts], ...]
    wanted: BoolArray
    bound: float

    def of_bids(self, table: BidTable) -> FloatArray:
        """Return what each bid of a table costs, shape (bids,)."""
        if not len(table):
            return np.zeros(0)
        amounts = {"cores": table.cores, **by_resource_name(table.gres)}
        if table.memory is not None:
            amounts["memory"] = table.memory
        paid = _sum(self.of_nodes, amounts, table.node)
        for guard, prices in self.of_rooms:
            long = np.repeat(guard.of_jobs(table)[table.job], table.lengths)
            paid += _sum(prices, amounts, table.node) * long
        of_jobs = np.array([self._licenses(demand.licenses) for demand in table.demands])
        cost: FloatArray = np.add.reduceat(paid, table.indptr[:-1]) + of_jobs[table.job]
        return cost

    def of_award(self, job: Job, award: Award, columns: Columns) -> float:
        """Return what the award of a job costs."""
        nodes = np.array([columns.index[name] for name in award.nodes], np.int64)
        uses = list(award.nodes.values())
        kinds = [kind for kind in self.of_nodes if kind not in {"cores", "memory"}]
        amounts = {
            "cores": np.array([use.cores for use in uses], np.int64),
            "memory": np.array([use.memory_mib or 0 for use in uses], np.int64),
            **{
                kind: np.array([use.gres.get(gres_name(kind), 0) for use in uses], np.int64) for kind in kinds
            },
        }
        paid = _sum(self.of_nodes, amounts, nodes)
        for guard, prices in self.of_rooms:
            if guard.outlasts(job):
                paid += _sum(prices, amounts, nodes)
        return float(paid.sum()) + self._licenses(job.request.licenses)

    def _licenses(self, counts: Mapping[str, int]) -> float:
        return sum((self.of_licenses.get(name, 0.0) * count for name, count in counts.items()), start=0.0)


def _sum(prices: Amounts, amounts: Mapping[str, IntArray], nodes: IntArray) -> FloatArray:
    """Return what amounts on nodes cost together, shape of ``nodes``; what has no price is free."""
    paid = np.zeros(len(nodes))
    for what, counts in amounts.items():
        if what in prices:
            paid += prices[what][nodes] * counts
    return paid


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A bid, or an award, at the prices: what it is worth, what it costs, where it is."""

    worth: float
    price: float
    nodes: tuple[str, ...]

    @property
    def gain(self) -> float:
        """What the job would gain; below 0 when the nodes are worth more to others."""
        return self.worth - self.price


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Market:
    """The bids of a step's best attempt and the prices of what they compete for.

    Attributes:
        table: the bids; ``worth`` and ``cost`` of each, shape (bids,).
        award: what the step's award is worth.
    """

    cluster: Cluster
    options: StepOptions
    table: BidTable
    worth: FloatArray
    cost: FloatArray
    prices: Prices
    award: float

    def quote(self, demand: Demand) -> Quote | None:
        """Return the bid that gains a job of the window most, the cheapest of equals; None without one."""
        place = next((one.index for one in self.table.demands if one.job.id == demand.job.id), -1)
        return self._best(self.table, self.worth, self.cost, np.flatnonzero(self.table.job == place))

    def quote_alone(self, demand: Demand) -> Quote | None:
        """Return the same of bids made for it alone: of a job beyond the window or the cap."""
        cluster = self.cluster
        options = bid_options(self.options)
        demands = (replace(demand, index=0),)
        table = generate_bids(demands, cluster.columns, cluster.topology, options, cluster.guards).table
        worth = _worth(table, self.options)
        return self._best(table, worth, self.prices.of_bids(table), np.arange(len(table)))

    def _best(self, table: BidTable, worth: FloatArray, cost: FloatArray, bids: IntArray) -> Quote | None:
        if not len(bids):
            return None
        bid = int(bids[np.lexsort((cost[bids], cost[bids] - worth[bids]))[0]])
        nodes = table.node[table.entries(bid)].tolist()
        names = tuple(self.cluster.columns.names[node] for node in nodes)
        return Quote(worth=float(worth[bid]), price=float(cost[bid]), nodes=names)

    def paid(self, job: Job, award: Award) -> Quote:
        """Return what a job that starts pays."""
        return Quote(
            worth=_worth_of_award(job, award, self.options),
            price=self.prices.of_award(job, award, self.cluster.columns),
            nodes=tuple(award.nodes),
        )


def market_of(step: Step, options: StepOptions) -> Market | None:
    """Return the market of a step: the bids of its best attempt and their prices; None without an attempt."""
    if step.best is None:
        return None
    table, columns, guards = step.best.bids.table, step.cluster.columns, step.cluster.guards
    worth = _worth(table, options)
    award = float(step.schedule.objective.priority)
    target = award or float(worth[greedy(table, columns, (), guards)].sum())
    prices = _prices(table, worth, target, columns, guards)
    return Market(
        cluster=step.cluster,
        options=options,
        table=table,
        worth=worth,
        cost=prices.of_bids(table),
        prices=prices,
        award=award,
    )


def _worth(table: BidTable, options: StepOptions) -> FloatArray:
    return np.array([float(weight) for weight in bid_weights(table, options.objective)])


def _worth_of_award(job: Job, award: Award, options: StepOptions) -> float:
    if options.objective == "priority":
        return float(job.priority)
    request = job.request
    return float(job.priority * (request.cores or (request.cores_per_node or 0) * len(award.nodes)))


def _prices(
    table: BidTable, worth: FloatArray, target: float, columns: Columns, guards: tuple[Guard, ...]
) -> Prices:
    parts = parts_of(table, columns, guards)
    packing = full_packing(table, parts)
    rounds = max(_FEWEST_ROUNDS, min(_ROUNDS, _ENTRIES // max(1, len(packing.row))))
    found = find_prices(packing, worth, target, rounds, lambda: False)
    ends = np.cumsum([len(part.capacity) for part in parts])[:-1]
    exact = np.split(found.price, ends)
    by_part, bound = _coarse(packing, worth, parts, exact)
    wanted = np.zeros(len(columns.names), np.bool_)
    wanted[table.node] = True
    return Prices(
        of_nodes=_by_what(parts, by_part, None, len(wanted)),
        of_licenses={
            part.what: float(price[0]) for part, price in zip(parts, by_part, strict=True) if part.is_license
        },
        of_rooms=tuple((guard, _by_what(parts, by_part, guard, len(wanted))) for guard in guards),
        wanted=wanted,
        bound=bound,
    )


def _by_what(parts: list[Part], prices: list[FloatArray], guard: Guard | None, count: int) -> Amounts:
    """Return the prices of nodes' resources now, or in a reservation's room, shape (count,) each."""
    found: dict[str, FloatArray] = {}
    for part, price in zip(parts, prices, strict=True):
        if part.is_license or part.guard is not guard:
            continue
        found[part.what] = np.zeros(count)
        found[part.what][slice(None) if guard is None else guard.nodes] = price
    return found


def _coarse(
    packing: Packing, worth: FloatArray, parts: list[Part], exact: list[FloatArray]
) -> tuple[list[FloatArray], float]:
    """Return the prices with as few different values as the bound allows, and the bound they prove."""
    least = _NOTHING * max((_dearest(*one) for one in zip(parts, exact, strict=True)), default=0.0)
    best = _bound(packing, worth, exact)
    for levels in _LEVELS:
        rounded = [_rounded(part, price, levels, least) for part, price in zip(parts, exact, strict=True)]
        bound = _bound(packing, worth, rounded)
        if bound <= best * (1 + _WEAKER):
            return rounded, bound
    return exact, best


def _rounded(part: Part, price: FloatArray, levels: int, least: float) -> FloatArray:
    if _dearest(part, price) <= least:
        return np.zeros_like(price)
    highest = float(price.max())
    unit = 1 / MIB_IN_GIB if part.what == "memory" else 1.0
    step, digits = _round_number(highest / unit / levels)
    rounded: FloatArray = np.round(np.round(price / unit / step) * step, digits) * unit
    return rounded


def _dearest(part: Part, price: FloatArray) -> float:
    """Return what all there is of a capacity costs where that is most."""
    return float((part.capacity * price).max(initial=0.0))


def _round_number(value: float) -> tuple[float, int]:
    """Return the largest of 1, 2, 5, 10, 20 … (or 0.5, 0.2 …) up to a value, and its decimals."""
    exponent = floor(log10(value))
    head = value / 10.0**exponent
    step = next(one for one in (5, 2, 1) if head >= one - 1e-9)
    return step * 10.0**exponent, max(0, -exponent)


def _bound(packing: Packing, worth: FloatArray, prices: list[FloatArray]) -> float:
    """Return what the prices prove: what everything costs, and what each job gains by its best bid."""
    price = np.concatenate([np.zeros(0), *prices])
    gain = worth - packing.cost(price)
    most = np.maximum.reduceat(gain, packing.first) if len(gain) else gain
    return float(np.maximum(most, 0.0).sum() + packing.capacity @ price)
