"""A reservation for a waiting job: what bids that still hold its nodes then must leave free."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ..jobs import Job
from .capacity import Capacity, IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Guard:
    """A reservation of a waiting job and the room beside it; ``reservations`` are Slurm's.

    Attributes:
        job: the job that it is for.
        time: when it starts, seconds since the epoch; ``now`` is the snapshot's time.
        nodes: node indices, ascending.
        room: what is free on those nodes at ``time`` if nothing started before, less what the
            reservation takes and those made before it; arrays of shape (nodes,).
        kept: what reservations made before hold on these nodes, by job. Their jobs may take it
            beside the room: it has been taken from that already.
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

        ``nodes``: on how many it starts; None: on as many as it runs on for the longest.
        """
        if job.id == self.job.id:
            return False
        limit = job.longest_s if nodes is None else job.limit_on_s(nodes)
        return limit is None or self.now + limit > self.time

    def copy(self) -> "Guard":
        """Return one whose room is lessened independently."""
        return replace(self, room=self.room.copy())

    def limits(self, job: Job) -> bool | str:
        """Return whether a job is limited to the room; its name if it may take its reserve besides.

        Jobs with equal answers may take the same.
        """
        return self.outlasts(job) and (job.id if job.id in self.kept else True)

    def capped(self, free: Capacity, job: Job) -> Capacity:
        """Return what a job may take of what is free on all nodes."""
        if not self.outlasts(job):
            return free
        own = self.kept.get(job.id)
        room = self.room if own is None else self.room.joined((own,), np.add)
        return free.capped(self.nodes, room)

    def take(self, job: Job, nodes: IntArray, held: Capacity) -> None:
        """Lessen the room by what a starting job holds on some nodes, if it outlasts the start."""
        if self.outlasts(job, len(nodes)):
            self.lessen(job, nodes, held)

    def lessen(self, job: Job, nodes: IntArray, held: Capacity) -> None:
        """Lessen the room by what a job holds on some nodes when the reservation starts."""
        _, here, there = np.intersect1d(self.nodes, nodes, assume_unique=True, return_indices=True)
        own = self.kept.get(job.id)
        for resource in held.resources():
            counts = held.amounts(resource)[there]
            if own is not None:
                counts = np.maximum(counts - own.amounts(resource)[here], 0)
            self.room.amounts(resource)[here] -= counts


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KeptCores:
    """Cores that some jobs may take together, a node's others being kept for jobs with gres.

    Attributes:
        name: tells several of them apart.
        jobs: ids of those jobs.
        left: cores of each node that they may take, shape (n,); lessened in place.
    """

    name: str
    jobs: frozenset[str]
    left: IntArray

    def copy(self) -> "KeptCores":
        """Return one whose cores are lessened independently."""
        return replace(self, left=self.left.copy())

    def limits(self, job: Job) -> bool:
        """Return whether it limits a job; jobs with equal answers may take the same."""
        return job.id in self.jobs

    def capped(self, free: Capacity, job: Job) -> Capacity:
        """Return what a job may take of what is free."""
        if job.id not in self.jobs:
            return free
        return Capacity(cores=np.minimum(free.cores, self.left), memory=free.memory, gres=free.gres)

    def take(self, job: Job, nodes: IntArray, held: Capacity) -> None:
        """Lessen the cores by what a job holds on some nodes."""
        if job.id in self.jobs:
            self.left[nodes] -= held.cores


#: What some jobs have to leave free.
HeldBack: TypeAlias = Guard | KeptCores


def capped_by(guards: Iterable[HeldBack], free: Capacity, job: Job) -> Capacity:
    """Return what a job may take beside kept cores and reservations.

    Of those reservations that it would run into that is only the room.
    """
    for guard in guards:
        free = guard.capped(free, job)
    return free
