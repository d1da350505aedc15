"""A reservation for a job that waits: what bids that still hold their nodes then must leave free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..cluster.jobs import Job
from ..cluster.nodes import by_resource_name, gres_name
from .columns import BoolArray, Capacity, IntArray
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

    def outlasts(self, job: Job) -> bool:
        """Return whether a job started now could still run when the reservation starts."""
        if job.id == self.job.id:
            return False
        return job.time_limit_s is None or self.now + job.time_limit_s > self.time

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
        if not self.outlasts(job):
            return
        _, here, there = np.intersect1d(self.nodes, nodes, assume_unique=True, return_indices=True)
        own = self.kept.get(job.id)
        for what, counts in _parts(held):
            left = part_of(self.room, what)
            left[here] -= counts[there] if own is None else beyond(counts[there], part_of(own, what)[here])

    def of_jobs(self, table: BidTable) -> BoolArray:
        """Return which jobs of a table's window would hold their nodes too long, shape (jobs,)."""
        return np.array([self.outlasts(demand.job) for demand in table.demands], np.bool_)

    def places(self, table: BidTable) -> tuple[IntArray, BoolArray]:
        """Return where among the guarded nodes each entry stands, and whether it counts; shape (entries,)."""
        if not len(self.nodes):
            return np.zeros(len(table.node), np.int64), np.zeros(len(table.node), np.bool_)
        place = np.minimum(np.searchsorted(self.nodes, table.node), len(self.nodes) - 1)
        long = self.of_jobs(table)[np.repeat(table.job, table.lengths)]
        return place, long & (self.nodes[place] == table.node)

    def credit(self, table: BidTable, what: str) -> IntArray:
        """Return what each entry's job has reserved there itself, shape (entries,)."""
        credit = np.zeros(len(table.node), np.int64)
        if self.kept:
            place, counts = self.places(table)
            job = np.repeat(table.job, table.lengths)
            for index, demand in enumerate(table.demands):
                own = self.kept.get(demand.job.id)
                if own is not None:
                    mine = counts & (job == index)
                    credit[mine] = part_of(own, what)[place[mine]]
        return credit

    def amounts(
        self, table: BidTable, places: tuple[IntArray, BoolArray] | None = None
    ) -> Iterator[tuple[str, IntArray, IntArray]]:
        """Yield ``cores``, ``memory`` and each gres, what entries take of its room, and the room.

        Shapes (entries,) and (nodes,). Memory where bids count it. What a job has reserved itself is not
        counted again. ``places`` spares looking them up again.
        """
        _, counts = places or self.places(table)
        taken = {"cores": table.cores, **by_resource_name(table.gres)}
        if table.memory is not None:
            taken["memory"] = table.memory
        for what, amount in taken.items():
            yield what, beyond(amount * counts, self.credit(table, what)), part_of(self.room, what)

    def delayed_by(self, table: BidTable) -> BoolArray:
        """Return which bids alone would delay the reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        place, counts = self.places(table)
        short = np.zeros_like(counts)
        for _, amount, room in self.amounts(table, (place, counts)):
            short |= counts & (amount > room[place])
        return np.logical_or.reduceat(short, table.indptr[:-1])


def capped_by(guards: Iterable[Guard], free: Capacity, job: Job) -> Capacity:
    """Return what a job may take beside reservations: of those that it would run into, only the room."""
    for guard in guards:
        free = guard.capped(free, job)
    return free


def beyond(amount: IntArray, own: IntArray) -> IntArray:
    """Return how much of an amount is beyond what is one's own."""
    left: IntArray = np.maximum(amount - own, 0)
    return left


def _parts(held: Capacity) -> Iterator[tuple[str, IntArray]]:
    yield "cores", held.cores
    yield "memory", held.memory
    yield from by_resource_name(held.gres).items()


def part_of(capacity: Capacity, what: str) -> IntArray:
    """Return one resource's amounts: ``cores``, ``memory`` or a gres."""
    if what == "cores":
        return capacity.cores
    return capacity.memory if what == "memory" else capacity.gres[gres_name(what)]


def _joined(one: Capacity, other: Capacity) -> Capacity:
    return Capacity(
        cores=one.cores + other.cores,
        memory=one.memory + other.memory,
        gres={kind: counts + other.gres[kind] for kind, counts in one.gres.items()},
    )
