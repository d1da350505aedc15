"""Room beside reservations for blocked jobs: what bids that outlast a reservation's start must leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...cluster.resources.capacity import BoolArray, Capacity, Cell, IntArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ..table import BidTable
from .claims import Claim, Family, FreePlacement, Taken
from .on_nodes import OnNodes


class ReservationRows(Family):
    """Σ_i amount_in·b_i ≤ room_n on a reservation's nodes n, over bids that outlast its start.

    The rows (5.3) and (5.4) at that time; what a bid's own job has reserved there is not counted
    again. Not in the papers: the shadow time of EASY.

    Args:
        on_nodes: the families whose resources reservations hold.
        guards: the reservations.
    """

    name = "room"

    def __init__(self, on_nodes: tuple[OnNodes, ...], guards: tuple[Guard, ...] = ()) -> None:
        self._on_nodes = on_nodes
        self._guards = guards

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what long bids take of each resource on each reservation's nodes."""
        del columns
        for number, guard in enumerate(self._guards):
            for claim in self.beside(guard, table):
                yield replace(claim, symbol=f"guard{number}_{claim.symbol}")

    def beside(self, guard: Guard, table: BidTable) -> Iterator[Claim]:
        """Yield what bids take beside one reservation."""
        if not len(guard.nodes):
            return
        place, counts = _places(guard, table)
        for family in self._on_nodes:
            for index, (resource, amount, per_core) in enumerate(family.entries(table)):
                room = guard.room.amounts(resource)
                claim = family.claim(place, room, resource, index, amount * counts, per_core * counts)
                yield replace(_beside_own(claim, _credit(guard, table, resource, place, counts)), guard=guard)

    def taken(self, job: FreePlacement, columns: Columns) -> Iterator[Taken]:
        """Yield the same for nodes that a program chooses; what a job has reserved it gives back."""
        for number, guard in enumerate(self._guards):
            if not guard.outlasts(job.demand.job):
                continue
            place_of = {node: place for place, node in enumerate(guard.nodes.tolist())}
            for family in self._on_nodes:
                for one in family.taken(job, columns):
                    resource, node = one.cell.resource, one.cell.place
                    if node in place_of:
                        room = int(guard.room.amounts(resource)[place_of[node]])
                        yield one._replace(cell=Cell(resource, node, number), capacity=room)
                own = guard.kept.get(job.demand.job.id)
                if own is not None:
                    yield from _given_back(family.name, own, guard, number)

    def delayed(self, guard: Guard, table: BidTable) -> BoolArray:
        """Return which bids alone would delay a reservation, shape (bids,)."""
        if not len(table):
            return np.zeros(0, np.bool_)
        short = np.zeros(len(table.node), np.bool_)
        for claim in self.beside(guard, table):
            short |= (claim.amount > 0) & (claim.amount > claim.capacity[claim.row])
        return np.logical_or.reduceat(short, table.indptr[:-1])

    def words(self, resource: Resource) -> str:
        """Return what a bid lacks, whatever the resource."""
        del resource
        return "room next to the reservation"


def _given_back(family: str, own: Capacity, guard: Guard, number: int) -> Iterator[Taken]:
    """Yield what a job that starts gives back of what is reserved for it, on every node of a reservation."""
    for resource in own.resources():
        if resource.family != family:
            continue
        held, room = own.amounts(resource), guard.room.amounts(resource)
        for place in np.flatnonzero(held).tolist():
            cell = Cell(resource, int(guard.nodes[place]), number)
            yield Taken(cell, int(room[place]), on_job=-int(held[place]))


def _beside_own(claim: Claim, own: IntArray | None) -> Claim:
    if own is None:
        return claim
    beside = claim.amount - own
    # Where a program deals the cores, amounts change with them.
    dealt = beside if np.any(claim.per_core) else None
    return replace(claim, amount=np.maximum(beside, 0), beside_own=dealt)


def _places(guard: Guard, table: BidTable) -> tuple[IntArray, BoolArray]:
    """Return where among the guarded nodes each entry stands, and whether it counts; shape (entries,)."""
    place = np.minimum(np.searchsorted(guard.nodes, table.node), len(guard.nodes) - 1)
    long = np.repeat(_too_long(guard, table), table.lengths)
    return place, long & (guard.nodes[place] == table.node)


def _too_long(guard: Guard, table: BidTable) -> BoolArray:
    """Return which bids of a table would hold their nodes too long, shape (bids,)."""
    jobs = [demand.job for demand in table.demands]
    long = np.array([guard.outlasts(job) for job in jobs], np.bool_)[table.job]
    for place, job in enumerate(jobs):
        if job.limits_by_nodes_s:
            for bid in np.flatnonzero(table.job == place).tolist():
                long[bid] = guard.outlasts(job, int(table.lengths[bid]))
    return long


def _credit(
    guard: Guard, table: BidTable, resource: Resource, place: IntArray, counts: BoolArray
) -> IntArray | None:
    """Return what each entry's job has reserved there itself, shape (entries,); None: nothing."""
    kept = [guard.kept.get(demand.job.id) for demand in table.demands] if guard.kept else []
    if not any(kept):
        return None
    credit = np.zeros(len(table.node), np.int64)
    job = np.repeat(table.job, table.lengths)
    for index, own in enumerate(kept):
        if own is not None:
            mine = counts & (job == index)
            credit[mine] = own.amounts(resource)[place[mine]]
    return credit
