"""A reservation for a job that waits: what bids that still hold their nodes then must leave free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cluster.jobs import Job
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
            takes; arrays of shape (nodes,).
    """

    job: Job
    time: float
    now: float
    nodes: IntArray
    room: Capacity

    @property
    def is_now(self) -> bool:
        """Whether nothing has to end first: the job could start now."""
        return self.time <= self.now

    def outlasts(self, job: Job) -> bool:
        """Return whether a job started now could still run when the reservation starts."""
        if job.id == self.job.id:
            return False
        return job.time_limit_s is None or self.now + job.time_limit_s > self.time

    def take(self, job: Job, nodes: IntArray, held: Capacity) -> None:
        """Lessen the room by what a job that starts now holds on some nodes, if it outlasts the start."""
        if not self.outlasts(job):
            return
        _, here, there = np.intersect1d(self.nodes, nodes, assume_unique=True, return_indices=True)
        self.room.cores[here] -= held.cores[there]
        self.room.memory[here] -= held.memory[there]
        for kind, counts in held.gres.items():
            self.room.gres[kind][here] -= counts[there]

    def of_jobs(self, table: BidTable) -> BoolArray:
        """Return which jobs of a table's window would hold their nodes too long, shape (jobs,)."""
        return np.array([self.outlasts(demand.job) for demand in table.demands], np.bool_)

    def delayed_by(self, table: BidTable) -> BoolArray:
        """Return which bids alone would delay the reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        long = self.of_jobs(table)[np.repeat(table.job, table.lengths)]
        place = np.minimum(np.searchsorted(self.nodes, table.node), len(self.nodes) - 1)
        entry = long & (self.nodes[place] == table.node)
        short = table.cores > self.room.cores[place]
        if table.memory is not None:
            short |= table.memory > self.room.memory[place]
        for kind, counts in table.gres.items():
            short |= counts > self.room.gres[kind][place]
        return np.logical_or.reduceat(entry & short, table.indptr[:-1])
