"""An overview of a step's prices: of nodes, of licences, and what each job of the window pays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...bidgen.families.registry import POOLED
from ...cluster.jobs import Job
from ...cluster.resources.capacity import MEMORY, Capacity, IntArray, Resource
from ...cluster.snapshot import Snapshot
from ...cluster.tabular import Tabular
from ...cluster.text import plural
from ...formats.hostlist import join
from ..options import StepOptions
from ..step import take_step
from .unit_prices import MIB_IN_GIB, Amounts, Quote, market_of, quote_document

PRICES = "aucsched-prices/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceGroup:
    """Nodes of equal prices.

    Attributes:
        prices: of one core, one GiB (``memory_gib``), one of each gres.
        least, most: what all that is free on a node costs, on the cheapest and the dearest of them.
    """

    prices: Mapping[str, float]
    least: float
    most: float
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPrice:
    """A job of the window: what it pays, or its best bid would have cost; None without a bid."""

    job: Job
    starts: bool
    quote: Quote | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Overview(Tabular):
    """Prices of a step's auction, in units of what is maximised.

    Attributes:
        started: how many jobs start; ``worth`` of their award, what they ``pay`` for it together.
        bound: no award over these bids is worth more; the prices prove it.
        groups: nodes in some bid, the most expensive first.
        unwanted: nodes in no bid.
        pools: price of one unit of resources that are on no node, such as licences.
        rooms: for each reservation, by its job: what a job that outlasts its start pays on top.
        jobs: of the window, highest priority first.
        objective: what is maximised: the option's, or ``worth`` if a balance is kept.

    Examples:
        >>> import aucsched
        >>> job = aucsched.Job(id="7", priority=5, request=aucsched.Request(cores=4))
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=4)], jobs=[job])
        >>> aucsched.explain(snapshot).columns["job"]
        ['7']
    """

    model: str
    objective: str
    started: int = 0
    worth: float = 0.0
    pay: float = 0.0
    bound: float = 0.0
    groups: tuple[PriceGroup, ...] = ()
    unwanted: tuple[str, ...]
    pools: Mapping[Resource, float] = field(default_factory=dict)
    rooms: Mapping[str, tuple[PriceGroup, ...]] = field(default_factory=dict)
    jobs: tuple[JobPrice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the prices file's content (``aucsched-prices/1``)."""
        pools: dict[str, dict[str, float]] = {family.name: {} for family in POOLED}
        for resource, price in self.pools.items():
            pools[resource.family][resource.name] = price
        return {
            "format": PRICES,
            "model": self.model,
            "objective": self.objective,
            "award": {
                "jobs": self.started,
                "worth": self.worth,
                "price": self.pay,
                "bound": self.bound,
            },
            "nodes": [_group_document(group) for group in self.groups],
            "unwanted": {"count": len(self.unwanted), "nodes": join(self.unwanted)},
            **pools,
            "reservations": [
                {"job": job, "nodes": [_group_document(group) for group in groups]}
                for job, groups in self.rooms.items()
            ],
            "jobs": [
                {
                    "job": one.job.id,
                    "priority": float(one.job.priority),
                    "starts": one.starts,
                    "price": None if one.quote is None else quote_document(one.quote),
                }
                for one in self.jobs
            ],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job of the window, highest priority first."""
        quotes = [one.quote for one in self.jobs]
        return {
            "job": [one.job.id for one in self.jobs],
            "priority": [float(one.job.priority) for one in self.jobs],
            "starts": [one.starts for one in self.jobs],
            "worth": [None if one is None else one.worth for one in quotes],
            "price": [None if one is None else one.price for one in quotes],
            "nodes": [None if one is None else ",".join(one.nodes) for one in quotes],
        }

    def title(self) -> str:
        """Return the award in one line."""
        started = plural(self.started, "job")
        return f"{started} of the window started, worth {self.worth:.6g}, bound {self.bound:.6g}"


def overview(snapshot: Snapshot, options: StepOptions) -> Overview:
    """Run the auction and return its prices."""
    step = take_step(snapshot, options).with_bids()
    market, columns = market_of(step, options), step.cluster.columns
    objective = "worth" if options.balance else options.objective
    if market is None:
        return Overview(model=options.model, objective=objective, unwanted=columns.names)
    prices = market.prices
    # Cores kept for others have a price besides, which few pay.
    on_nodes = {resource: price for resource, price in prices.of_nodes.items() if resource.is_on_nodes}
    awards = {award.job: award for award in step.schedule.started}
    jobs = tuple(
        JobPrice(
            job=demand.job,
            starts=demand.job.id in awards,
            quote=market.paid(demand.job, awards[demand.job.id])
            if demand.job.id in awards
            else market.quote(demand),
        )
        for demand in step.decision.window
    )
    wanted = np.unique(market.table.node)
    return Overview(
        model=options.model,
        objective=objective,
        started=len(step.schedule.started),
        worth=market.award,
        pay=sum(one.quote.price for one in jobs if one.starts and one.quote is not None),
        bound=prices.bound,
        groups=tuple(_groups(on_nodes, columns.free, wanted, columns.names)),
        unwanted=columns.named(np.setdiff1d(np.arange(len(columns.names)), wanted)),
        pools=prices.of_pools,
        rooms={
            guard.job.id: tuple(
                _groups(amounts, _spread(guard.room, guard.nodes, columns.free), guard.nodes, columns.names)
            )
            for guard, amounts in prices.of_rooms
        },
        jobs=jobs,
    )


def _spread(room: Capacity, nodes: IntArray, like: Capacity) -> Capacity:
    """Return a reservation's room as amounts on all nodes."""
    spread = like.copy()
    for resource in spread.resources():
        spread.amounts(resource)[nodes] = room.amounts(resource)
    return spread


def _groups(prices: Amounts, free: Capacity, nodes: IntArray, names: tuple[str, ...]) -> Iterator[PriceGroup]:
    """Yield some nodes by equal prices, the dearest first."""
    whole = np.zeros(len(names))
    for what, price in prices.items():
        whole += price * free.amounts(what)
    kinds = [what for what, price in prices.items() if price.any()] or list(prices)[:1]
    table = np.stack([prices.get(kind, np.zeros(len(names)))[nodes] for kind in kinds], axis=1)
    keys, group = np.unique(table, axis=0, return_inverse=True)
    group = group.ravel()
    dearest = np.zeros(len(keys))
    np.maximum.at(dearest, group, whole[nodes])
    for place in np.lexsort((-np.arange(len(keys)), -dearest)).tolist():
        mine = nodes[group == place]
        yield PriceGroup(
            prices={
                "memory_gib" if kind == MEMORY else kind.label: price * (MIB_IN_GIB if kind == MEMORY else 1)
                for kind, price in zip(kinds, keys[place].tolist(), strict=True)
            },
            least=float(whole[mine].min()),
            most=float(whole[mine].max()),
            nodes=tuple(names[node] for node in mine.tolist()),
        )


def _group_document(group: PriceGroup) -> dict[str, Any]:
    return {
        "prices": dict(group.prices),
        "free": {"least": group.least, "most": group.most},
        "count": len(group.nodes),
        "nodes": join(group.nodes),
    }
