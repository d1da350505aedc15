"""A reservation for a job that waits: what bids that still hold their nodes then must leave free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ..cluster.jobs import Job
from .capacity import BoolArray, Capacity, IntArray
from .families.claims import Resource
from .families.registry import ROOM, amounts_of, resources_of_nodes
from .table import BidTable


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Guard:
    """A reservation and the room beside it.

    Attributes:
        job: the job that it is for.
        time: when it starts, seconds since the epoch; ``now`` is the snapshot's time.
        nodes: node indices, ascending.
        room: what is free on those nodes at ``time`` if nothing started before, less what the reservation
            takes and those made before it; arrays of shape (nodes,).
        kept: what reservations made before hold on these nodes, by job. Their jobs may take it beside the
            room: it has been taken from that already.
    """

    job: Job
    time: float
    now: float
    nodes: IntArray
    room: Capacity
    kept: Mapping[str, Capacity] = field(default_factory=dict)

    @property
    def is_now(self) -> bool:
        """Whether nothing has to end first: the job could start now."""
        return self.time <= self.now

    def outlasts(self, job: Job, nodes: int | None = None) -> bool:
        """Return whether a job started now could still run when the reservation starts.

        Args:
            job: the job.
            nodes: on how many it starts; None: on as many as it runs on for the longest.
        """
        if job.id == self.job.id:
            return False
        limit = job.longest_s if nodes is None else job.limit_on_s(nodes)
        return limit is None or self.now + limit > self.time

    def copy(self) -> Guard:
        """Return one whose room is lessened independently."""
        return replace(self, room=self.room.copy())

    def limits(self, job: Job) -> bool | str:
        """Return whether a job is limited to the room; its name where it may take what it reserved besides.

        Jobs with equal answers may take the same.
        """
        return self.outlasts(job) and (job.id if job.id in self.kept else True)

    def capped(self, free: Capacity, job: Job) -> Capacity:
        """Return what a job may take of what is free on all nodes."""
        if not self.outlasts(job):
            return free
        own = self.kept.get(job.id)
        return free.capped(self.nodes, self.room if own is None else _joined(self.room, own))

    def take(self, job: Job, nodes: IntArray, held: Capacity) -> None:
        """Lessen the room by what a job that starts now holds on some nodes, if it outlasts the start."""
        if not self.outlasts(job, len(nodes)):
            return
        _, here, there = np.intersect1d(self.nodes, nodes, assume_unique=True, return_indices=True)
        own = self.kept.get(job.id)
        for resource in resources_of_nodes(held):
            left, counts = amounts_of(self.room, resource), amounts_of(held, resource)[there]
            left[here] -= counts if own is None else beyond(counts, amounts_of(own, resource)[here])

    def of_bids(self, table: BidTable) -> BoolArray:
        """Return which bids of a table would hold their nodes too long, shape (bids,)."""
        jobs = [demand.job for demand in table.demands]
        long = np.array([self.outlasts(job) for job in jobs], np.bool_)[table.job]
        for place, job in enumerate(jobs):
            if job.limits_by_nodes_s:
                for bid in np.flatnonzero(table.job == place).tolist():
                    long[bid] = self.outlasts(job, int(table.lengths[bid]))
        return long

    def places(self, table: BidTable) -> tuple[IntArray, BoolArray]:
        """Return where among the guarded nodes each entry stands, and whether it counts; shape (entries,)."""
        if not len(self.nodes):
            return np.zeros(len(table.node), np.int64), np.zeros(len(table.node), np.bool_)
        place = np.minimum(np.searchsorted(self.nodes, table.node), len(self.nodes) - 1)
        long = np.repeat(self.of_bids(table), table.lengths)
        return place, long & (self.nodes[place] == table.node)

    def credit(self, table: BidTable, resource: Resource) -> IntArray | None:
        """Return what each entry's job has reserved there itself, shape (entries,); None: nothing."""
        kept = [self.kept.get(demand.job.id) for demand in table.demands] if self.kept else []
        if not any(kept):
            return None
        credit = np.zeros(len(table.node), np.int64)
        place, counts = self.places(table)
        job = np.repeat(table.job, table.lengths)
        for index, own in enumerate(kept):
            if own is not None:
                mine = counts & (job == index)
                credit[mine] = amounts_of(own, resource)[place[mine]]
        return credit

    def delayed_by(self, table: BidTable) -> BoolArray:
        """Return which bids alone would delay the reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        short = np.zeros(len(table.node), np.bool_)
        for claim in ROOM.beside(self, table):
            short |= (claim.amount > 0) & (claim.amount > claim.capacity[claim.row])
        return np.logical_or.reduceat(short, table.indptr[:-1])


class Beside(Protocol):
    """What some jobs have to leave free: a reservation, or cores kept for others."""

    def capped(self, free: Capacity, job: Job) -> Capacity:
        """Return what a job may take of what is free on all nodes."""
        ...


def capped_by(guards: Iterable[Beside], free: Capacity, job: Job) -> Capacity:
    """Return what a job may take beside kept cores and reservations.

    Of those reservations that it would run into that is only the room.
    """
    for guard in guards:
        free = guard.capped(free, job)
    return free


def beyond(amount: IntArray, own: IntArray) -> IntArray:
    """Return how much of an amount is beyond what is one's own."""
    left: IntArray = np.maximum(amount - own, 0)
    return left


def _joined(one: Capacity, other: Capacity) -> Capacity:
    return Capacity(
        cores=one.cores + other.cores,
        memory=one.memory + other.memory,
        gres={kind: counts + other.gres[kind] for kind, counts in one.gres.items()},
    )
