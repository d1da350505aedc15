"""Node prices: how high the window's bids drive each core, gres and licence; each bid's cost.

Lagrangian prices (models/search/bounding.py) after a fixed number of rounds, then rounded as far as
the bound they prove allows. They are an estimate: any prices bound the award, but bids are whole,
and prices that make every winner gain and every loser lose need not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any

import numpy as np

from ...bidgen.families.claims import Claim
from ...bidgen.families.registry import claims_of
from ...bidgen.first_fit import Cluster
from ...bidgen.generate import generate_bids
from ...bidgen.table import BidTable
from ...cluster.jobs import Job
from ...cluster.resources.capacity import MEMORY, FloatArray, IntArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.resources.job_reservations import Guard
from ...cluster.schedule import Award
from ...formats.hostlist import join
from ...models.model import bid_weights, start_weight
from ...models.search.bounding import bound_at, find_prices
from ...models.search.packing import Packing, packing_within
from ..balance import Balance
from ..ledger import greedy
from ..options import StepOptions
from ..step import Step

#: Rounds, and bid entries looked at in all of them (about 0.2 s): fewer rounds on wide windows.
_ROUNDS, _FEWEST_ROUNDS, _ENTRIES = 400, 60, 16_000_000
#: Prices are rounded to one of these numbers of steps: the coarsest that weakens the bound by at
#: most this share of it.
_LEVELS = (4, 8, 16, 32, 64, 128, 256)
_WEAKER = 1e-3
#: A resource with a price for a whole node below this share of the most expensive counts as free.
_NOTHING = 1e-3
MIB_IN_GIB = 1024

Amounts = Mapping[Resource, FloatArray]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnitPrices:
    """What a unit of everything costs, in units of what is maximised (priority, priority × cores).

    Attributes:
        of_nodes: by resource (memory by the MiB), shape (nodes,).
        of_pools: by resource that stands on no node, as licences.
        of_rooms: what jobs outlasting a reservation's start also pay on its nodes, shape (nodes,).
        bound: no award over these bids is worth more; the prices prove it.
    """

    of_nodes: Amounts
    of_pools: Mapping[Resource, float]
    of_rooms: tuple[tuple[Guard, Amounts], ...]
    bound: float

    def of_bids(self, table: BidTable, columns: Columns) -> FloatArray:
        """Return what each bid of a table costs, shape (bids,)."""
        cost, bid = np.zeros(len(table)), table.bid
        for claim in claims_of(table, columns, tuple(guard for guard, _ in self.of_rooms)):
            if claim.by_bid:
                cost += claim.amount * self.of_pools.get(claim.resource, 0.0)
            else:
                paid = claim.amount * self._of_entries(claim)
                cost += np.bincount(bid, weights=paid, minlength=len(table))
        return cost

    def _of_entries(self, claim: Claim) -> FloatArray:
        """Return the price of a unit on each entry; what has no price is free."""
        amounts = self.of_nodes
        for guard, prices in self.of_rooms:
            amounts = prices if guard is claim.guard else amounts
        if claim.resource not in amounts:
            return np.zeros(len(claim.row))
        nodes = claim.row if claim.guard is None else claim.guard.nodes[claim.row]
        return amounts[claim.resource][nodes]


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
        prices_paid: what each job that starts pays, by its id.
    """

    cluster: Cluster
    options: StepOptions
    table: BidTable
    worth: FloatArray
    cost: FloatArray
    prices: UnitPrices
    award: float
    prices_paid: Mapping[str, float]

    def quote(self, demand: Demand) -> Quote | None:
        """Return the bid that gains a window's job most, cheapest of equals; None without one."""
        place = self.table.place_of(demand.job.id)
        bids = () if place is None else self.table.bids_of(place)
        return self._best(self.table, self.worth, self.cost, np.array(bids, np.int64))

    def quote_alone(self, demand: Demand) -> Quote | None:
        """Return the same of bids made for it alone: of a job beyond the window or the cap.

        None beyond the window of a balanced mix: what it would count is not known.
        """
        cluster = self.cluster
        if isinstance(cluster.placer, Balance):
            if demand.job.id not in cluster.placer.asks:
                return None
            demand = cluster.placer.valued(demand)
        demands = (replace(demand, index=0),)
        table = generate_bids(demands, replace(cluster, placer=None), self.options.bids).table
        worth = _worth(table, self.options)
        return self._best(table, worth, self.prices.of_bids(table, cluster.columns), np.arange(len(table)))

    def _best(self, table: BidTable, worth: FloatArray, cost: FloatArray, bids: IntArray) -> Quote | None:
        if not len(bids):
            return None
        bid = int(bids[np.lexsort((cost[bids], cost[bids] - worth[bids]))[0]])
        names = self.cluster.columns.named(table.node[table.entries(bid)])
        return Quote(worth=float(worth[bid]), price=float(cost[bid]), nodes=names)

    def paid(self, job: Job, award: Award) -> Quote:
        """Return what a job that starts pays."""
        place = self.table.place_of(job.id)
        own = None if place is None else self.table.demands[place].worth
        return Quote(
            worth=float(start_weight(job, self.options.objective, len(award.nodes)) if own is None else own),
            price=self.prices_paid[job.id],
            nodes=tuple(award.nodes),
        )


def market_of(step: Step, options: StepOptions) -> Market | None:
    """Return a step's market: bids of its best attempt and their prices; None without attempt."""
    if step.best is None:
        return None
    table, columns, guards = step.best.bids.table, step.cluster.columns, step.cluster.guards
    worth = _worth(table, options)
    award = 0.0 if step.decision.discarded else float(step.best.answer.value[0])
    target = award or float(worth[greedy(table, step.cluster)].sum())
    prices = _prices(table, worth, target, columns, guards)
    won = step.best.answer.table.only(step.best.answer.chosen)
    jobs = (won.demand_of(bid).job.id for bid in range(len(won)))
    return Market(
        cluster=step.cluster,
        options=options,
        table=table,
        worth=worth,
        cost=prices.of_bids(table, columns),
        prices=prices,
        award=award,
        prices_paid=dict(zip(jobs, prices.of_bids(won, columns).tolist(), strict=True)),
    )


def _worth(table: BidTable, options: StepOptions) -> FloatArray:
    return np.array([float(weight) for weight in bid_weights(table, options.objective)])


def _prices(
    table: BidTable, worth: FloatArray, target: float, columns: Columns, guards: tuple[Guard, ...]
) -> UnitPrices:
    claims = list(claims_of(table, columns, guards))
    packing = packing_within(table, claims, reduces=False)
    rounds = max(_FEWEST_ROUNDS, min(_ROUNDS, _ENTRIES // max(1, len(packing.row))))
    found = find_prices(packing, worth, target, rounds, lambda: False)
    ends = np.cumsum([len(claim.capacity) for claim in claims])[:-1]
    exact = np.split(found.price, ends)
    by_claim, bound = _coarse(packing, worth, claims, exact)
    count = len(columns.names)
    return UnitPrices(
        of_nodes=_by_resource(claims, by_claim, None, count),
        of_pools={
            claim.resource: float(price[0])
            for claim, price in zip(claims, by_claim, strict=True)
            if claim.by_bid
        },
        of_rooms=tuple((guard, _by_resource(claims, by_claim, guard, count)) for guard in guards),
        bound=bound,
    )


def _by_resource(claims: list[Claim], prices: list[FloatArray], guard: Guard | None, count: int) -> Amounts:
    """Return prices of nodes' resources now, or in a reservation's room, shape (count,) each."""
    found: dict[Resource, FloatArray] = {}
    for claim, price in zip(claims, prices, strict=True):
        if claim.by_bid or claim.guard is not guard:
            continue
        found[claim.resource] = np.zeros(count)
        found[claim.resource][slice(None) if guard is None else guard.nodes] = price
    return found


def _coarse(
    packing: Packing, worth: FloatArray, claims: list[Claim], exact: list[FloatArray]
) -> tuple[list[FloatArray], float]:
    """Return the prices with as few values as the bound allows, and the bound they prove."""
    least = _NOTHING * max((_dearest(*one) for one in zip(claims, exact, strict=True)), default=0.0)
    none = np.zeros(0)
    best = bound_at(packing, worth, np.concatenate([none, *exact]))
    for levels in _LEVELS:
        rounded = [_rounded(claim, price, levels, least) for claim, price in zip(claims, exact, strict=True)]
        bound = bound_at(packing, worth, np.concatenate([none, *rounded]))
        if bound <= best * (1 + _WEAKER):
            return rounded, bound
    return exact, best


def _rounded(claim: Claim, price: FloatArray, levels: int, least: float) -> FloatArray:
    if _dearest(claim, price) <= least:
        return np.zeros_like(price)
    highest = float(price.max())
    unit = 1 / MIB_IN_GIB if claim.resource == MEMORY else 1.0
    step, digits = _round_number(highest / unit / levels)
    rounded: FloatArray = np.round(np.round(price / unit / step) * step, digits) * unit
    return rounded


def _dearest(claim: Claim, price: FloatArray) -> float:
    """Return what all there is of a capacity costs where that is most."""
    return float((claim.capacity * price).max(initial=0.0))


def _round_number(value: float) -> tuple[float, int]:
    """Return the largest of 1, 2, 5, 10, 20 … (or 0.5, 0.2 …) up to a value, and its decimals."""
    exponent = floor(log10(value))
    head = value / 10.0**exponent
    step = next(one for one in (5, 2, 1) if head >= one - 1e-9)
    return step * 10.0**exponent, max(0, -exponent)


def quote_document(quote: Quote) -> dict[str, Any]:
    """Return what a job pays, or would have paid, as plain numbers and text."""
    return {"worth": quote.worth, "price": quote.price, "gain": quote.gain, "nodes": join(quote.nodes)}
