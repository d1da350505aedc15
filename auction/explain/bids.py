"""A job's bids as a step made them: nodes, amounts, prices, and what each lacks beside the award."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...bidgen.families.registry import words_of
from ...bidgen.first_fit import Cluster
from ...cluster.jobs import Job
from ...cluster.resources.capacity import IntArray, Resource
from ...cluster.resources.pools import use_of_nodes
from ...cluster.schedule import Award, BidClass
from ..ledger import FreeState, Short
from ..options import MODELS_BY_NAME
from ..step import Step
from .job_changes import FreeRoom
from .unit_prices import Market

_CLASSES = tuple(BidClass)


@dataclass(frozen=True, slots=True, kw_only=True)
class BidLack:
    """What a bid lacks beside the jobs that start: a resource or licence, where, and who takes it."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BidView:
    """One bid of the job: its nodes, total amounts, preference, and what it lacks beside the award.

    ``level`` is None in the linear topology, ``preference`` where the model has none. ``worth`` and ``price``
    are in units of what is maximised.
    """

    bid_class: BidClass
    nodes: tuple[str, ...]
    cores: int
    cores_by_node: tuple[int, ...]
    gres: Mapping[str, int]
    level: int | None
    preference: float | None
    worth: float
    price: float
    won: bool
    lacks: tuple[BidLack, ...]


class JobBids:
    """Holds a job's bids against the award.

    Args:
        step: what was bid and who starts.
        market: the prices.
        room: what is free beside the other jobs that start.
        others: their awards.
    """

    def __init__(self, step: Step, market: Market, room: FreeRoom, others: list[Award]) -> None:
        self._step, self._market, self._room, self._others = step, market, room, others
        self._table = market.table
        self._state = FreeState(market.table, Cluster(room.columns, room.topology, room.guards))

    def of(self, job: Job) -> Iterator[BidView]:
        """Yield the job's bids, in the order they were made; IPSCHED has none."""
        table, step = self._table, self._step
        place = next((one.index for one in table.demands if one.job.id == job.id), None)
        if place is None or not MODELS_BY_NAME[step.schedule.model].has_bids:
            return
        preference = None if step.best is None else step.best.preference
        award = next((one for one in step.schedule.started if one.job == job.id), None)
        won = None if award is None else {name: use.cores for name, use in award.nodes.items()}
        for bid in range(*np.searchsorted(table.job, [place, place + 1]).tolist()):
            entries = table.entries(bid)
            nodes, cores = self._names(table.node[entries]), table.cores[entries]
            gres = {kind: int(counts[entries].sum()) for kind, counts in table.gres.items()}
            yield BidView(
                bid_class=_CLASSES[int(table.bid_class[bid])],
                nodes=nodes,
                cores=int(cores.sum()),
                cores_by_node=tuple(cores.tolist()),
                gres={kind: count for kind, count in gres.items() if count},
                level=None if step.cluster.topology.is_linear else int(table.level[bid]),
                preference=None if preference is None else float(preference[bid]),
                worth=float(self._market.worth[bid]),
                price=float(self._market.cost[bid]),
                won=won == dict(zip(nodes, cores.tolist(), strict=True)),
                lacks=tuple(self._lacks(bid)),
            )

    def _lacks(self, bid: int) -> Iterator[BidLack]:
        """Yield what is short of each family's cells once the other jobs of the award have started."""
        delayed: dict[str, list[Short]] = {}
        for short in self._state.short(bid):
            if short.claim.guard is not None:
                delayed.setdefault(short.claim.guard.job.id, []).append(short)
                continue
            names = () if short.claim.by_bid else self._names(short.cells)
            holders = tuple(one.job for one in self._others if any(name in one.nodes for name in names))
            if not names:
                holders = self._of_pool(short.claim.resource)
            yield BidLack(what=words_of(short.claim), nodes=names, held_by=holders)
        for job, found in delayed.items():
            nodes = [one.claim.guard.nodes[one.cells] for one in found if one.claim.guard is not None]
            names = self._names(np.unique(np.concatenate(nodes)))
            yield BidLack(what=words_of(found[0].claim), nodes=names, held_by=(job,))

    def _names(self, nodes: IntArray) -> tuple[str, ...]:
        return tuple(self._room.columns.names[node] for node in nodes.tolist())

    def _of_pool(self, resource: Resource) -> tuple[str, ...]:
        """Return the jobs that start and take of what stands on no node."""
        pools, jobs = self._room.columns.pools, {job.id: job for job in self._room.snapshot.jobs}
        winners = tuple(
            one.job
            for one in self._others
            for cell in pools.cells(jobs[one.job], use_of_nodes(one.nodes.values()))
            if cell.resource == resource
        )
        return (*pools.running(resource), *winners)
