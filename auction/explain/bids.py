"""A job's bids as a step made them: where, how much, at what price, and what each lacks beside the award."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...bidgen.columns import UNLIMITED_MIB, Capacity, IntArray
from ...bidgen.guard import Guard
from ...bidgen.table import BidTable
from ...cluster.jobs import Job
from ...cluster.nodes import resource_name
from ...cluster.schedule import Award, BidClass
from ...cluster.snapshot import Snapshot
from ..step import Step
from .changes import Room
from .prices import Market

_CLASSES = tuple(BidClass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a bid lacks beside the jobs that start: a resource or licence, where, and who takes it."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BidView:
    """One bid of the job: where, how much in all, how it is liked, and what it lacks beside the award.

    ``level`` is None in the linear topology, ``preference`` where the model has none. ``worth`` and ``price``
    are in units of what is maximised.
    """

    bid_class: BidClass
    nodes: tuple[str, ...]
    cores: int
    gres: Mapping[str, int]
    level: int | None
    preference: float | None
    worth: float
    price: float
    won: bool
    lacks: tuple[Lack, ...]


class JobBids:
    """Holds a job's bids against the award.

    Args:
        snapshot: the cluster and its queue.
        step: what was bid and who starts.
        market: the prices.
        room: what is free beside the other jobs that start.
        others: their awards.
    """

    def __init__(
        self, snapshot: Snapshot, step: Step, market: Market, room: Room, others: list[Award]
    ) -> None:
        self._step = step
        self._market = market
        self._table = market.table
        self._room = room
        self._others = others
        self._jobs = {job.id: job for job in snapshot.jobs}

    def of(self, job: Job) -> Iterator[BidView]:
        """Yield the job's bids, in the order they were made; IPSCHED has none."""
        place = next((one.index for one in self._table.demands if one.job.id == job.id), None)
        if place is None or self._step.schedule.model == "ipsched":
            return
        licenses = tuple(self._licenses(job))
        for bid in range(*np.searchsorted(self._table.job, [place, place + 1]).tolist()):
            yield self._view(job, bid, (*self._lacks(bid), *self._delays(job, bid), *licenses))

    def _view(self, job: Job, bid: int, lacks: tuple[Lack, ...]) -> BidView:
        table, cluster = self._table, self._step.cluster
        entries = table.entries(bid)
        nodes = tuple(cluster.columns.names[node] for node in table.node[entries].tolist())
        gres = {kind: int(counts[entries].sum()) for kind, counts in table.gres.items()}
        cores = table.cores[entries]
        preference = None if self._step.best is None else self._step.best.preference
        award = next((one for one in self._step.schedule.started if one.job == job.id), None)
        won = award is not None and {name: use.cores for name, use in award.nodes.items()} == dict(
            zip(nodes, cores.tolist(), strict=True)
        )
        return BidView(
            bid_class=_CLASSES[int(table.bid_class[bid])],
            nodes=nodes,
            cores=int(cores.sum()),
            gres={kind: count for kind, count in gres.items() if count},
            level=None if cluster.topology.is_linear else int(table.level[bid]),
            preference=None if preference is None else float(preference[bid]),
            worth=float(self._market.worth[bid]),
            price=float(self._market.cost[bid]),
            won=won,
            lacks=lacks,
        )

    def _lacks(self, bid: int) -> Iterator[Lack]:
        """Yield what is short on the bid's nodes once the other jobs of the award have started."""
        nodes = self._table.node[self._table.entries(bid)]
        columns = self._room.columns
        limited = columns.total.memory[nodes] < UNLIMITED_MIB
        for what, wanted, left in _needs(self._table, bid, columns.free):
            short = left[nodes] < wanted
            names = self._names(nodes[short & limited if what == "memory" else short])
            if names:
                holders = tuple(one.job for one in self._others if any(name in one.nodes for name in names))
                yield Lack(what=what, nodes=names, held_by=holders)

    def _delays(self, job: Job, bid: int) -> Iterator[Lack]:
        """Yield the reservations that the bid would delay, and on which nodes."""
        nodes = self._table.node[self._table.entries(bid)]
        for guard in self._room.guards:
            if guard.outlasts(job):
                names = self._names(_delayed(self._table, bid, nodes, guard))
                if names:
                    yield Lack(what="room beside the reservation", nodes=names, held_by=(guard.job.id,))

    def _names(self, nodes: IntArray) -> tuple[str, ...]:
        return tuple(self._room.columns.names[node] for node in nodes.tolist())

    def _licenses(self, job: Job) -> Iterator[Lack]:
        left = self._room.columns.licenses
        for name, count in job.request.licenses.items():
            if count > left[name]:
                holders = (one.job for one in self._others if name in self._jobs[one.job].request.licenses)
                yield Lack(what=f"{name} licences", nodes=(), held_by=tuple(holders))


def _needs(table: BidTable, bid: int, free: Capacity) -> Iterator[tuple[str, IntArray, IntArray]]:
    """Yield what a bid wants on its nodes, and what is free of it (shape of ``free``)."""
    entries = table.entries(bid)
    yield "cores", table.cores[entries], free.cores
    if table.memory is not None:
        yield "memory", table.memory[entries], free.memory
    for kind, counts in table.gres.items():
        yield resource_name(kind), counts[entries], free.gres[kind]


def _delayed(table: BidTable, bid: int, nodes: IntArray, guard: Guard) -> IntArray:
    """Return the nodes of a bid that have too little room beside a reservation."""
    reserved = np.isin(nodes, guard.nodes)
    place = np.searchsorted(guard.nodes, nodes[reserved])
    short = np.zeros(len(place), np.bool_)
    for _, wanted, left in _needs(table, bid, guard.room):
        short |= left[place] < wanted[reserved]
    return nodes[reserved][short]
