"""Room beside reservations for blocked jobs: what bids that outlast a reservation's start must leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..capacity import Capacity, IntArray
from .claims import Cell, Claim, Family, FreePlacement, Resource, Taken
from .on_nodes import OnNodes

if TYPE_CHECKING:
    from ..columns import Columns
    from ..guard import Guard
    from ..table import BidTable


class ReservationRows(Family):
    """Σ_i amount_in·b_i ≤ room_n on a reservation's nodes n, over bids that outlast its start.

    The rows (5.3) and (5.4) at that time; what a bid's own job has reserved there is not counted again. Not
    in the papers: the shadow time of EASY.

    Args:
        on_nodes: the families whose resources reservations hold.
    """

    name = "room"

    def __init__(self, on_nodes: tuple[OnNodes, ...]) -> None:
        self._on_nodes = on_nodes

    def claims(self, table: BidTable, columns: Columns, guards: tuple[Guard, ...]) -> Iterator[Claim]:
        """Yield what long bids take of each resource on each reservation's nodes."""
        del columns
        for number, guard in enumerate(guards):
            for claim in self.beside(guard, table):
                yield replace(claim, symbol=f"guard{number}_{claim.symbol}")

    def beside(self, guard: Guard, table: BidTable) -> Iterator[Claim]:
        """Yield what bids take beside one reservation."""
        if not len(guard.nodes):
            return
        row, counts = guard.places(table)
        for family in self._on_nodes:
            for index, (resource, amount, per_core) in enumerate(family.entries(table)):
                room = family.of(guard.room, resource)
                claim = family.claim(row, room, resource, index, amount * counts, per_core * counts)
                yield replace(_beside_own(claim, guard.credit(table, resource)), guard=guard)

    def taken(self, job: FreePlacement, columns: Columns, guards: tuple[Guard, ...]) -> Iterator[Taken]:
        """Yield the same for nodes that a program chooses; what a job has reserved it gives back."""
        for number, guard in enumerate(guards):
            if not guard.outlasts(job.demand.job):
                continue
            place_of = {node: place for place, node in enumerate(guard.nodes.tolist())}
            for family in self._on_nodes:
                for one in family.taken_of(job, columns):
                    resource, node = one.cell.resource, one.cell.place
                    if node in place_of:
                        room = int(family.of(guard.room, resource)[place_of[node]])
                        yield one._replace(cell=Cell(resource, node, number), capacity=room)
                own = guard.kept.get(job.demand.job.id)
                if own is not None:
                    yield from _given_back(family, own, guard, number)

    def words(self, resource: Resource) -> str:
        """Return what a bid lacks, whatever the resource."""
        del resource
        return "room next to the reservation"


def _given_back(family: OnNodes, own: Capacity, guard: Guard, number: int) -> Iterator[Taken]:
    """Yield what a job that starts gives back of what is reserved for it, on every node of a reservation."""
    for resource in family.kinds(own):
        held, room = family.of(own, resource), family.of(guard.room, resource)
        for place in np.flatnonzero(held).tolist():
            cell = Cell(resource, int(guard.nodes[place]), number)
            yield Taken(cell, int(room[place]), on_job=-int(held[place]))


def _beside_own(claim: Claim, own: IntArray | None) -> Claim:
    if own is None:
        return claim
    beside = claim.amount - own
    return replace(claim, amount=np.maximum(beside, 0), beside_own=beside if claim.follows_cores else None)
