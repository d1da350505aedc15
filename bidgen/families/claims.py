"""What a family says of a table of bids: amounts of named cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...cluster.resources.capacity import IntArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ...cluster.resources.pools import ResourcePool
from ...cluster.snapshot import Snapshot
from ..table import BidTable


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Claim:
    """What a table's bids take of one resource's cells: Σ amount·b ≤ capacity, a row for each cell.

    Attributes:
        resource: what the cells hold.
        symbol: names its rows in a program.
        guard: the reservation whose room it is, None for what is free now.
        by_bid: bids take it as a whole; otherwise each entry of a bid takes its own.
        row, amount: which cell, and how much of it, shape (entries,); by bid (bids,).
        capacity: of each cell, shape (cells,): nodes; of a reservation's room its nodes.
        per_core: what of an amount follows from each core on the entry, if a program deals cores.
        beside_own: the amount less what the job has reserved there itself, below 0 where that is
            more; None: it has reserved nothing.
    """

    resource: Resource
    symbol: str
    guard: Guard | None = None
    by_bid: bool = False
    row: IntArray
    amount: IntArray
    capacity: IntArray
    per_core: IntArray | int = 0
    beside_own: IntArray | None = None

    def fixed(self, cores: IntArray) -> IntArray:
        """Return what of the amounts does not follow from cores: amount = fixed + per_core × cores.

        What a job has reserved counts in full: if a program deals it less, others may take it.
        """
        whole = self.amount if self.beside_own is None else self.beside_own
        fixed: IntArray = whole - self.per_core * cores
        return fixed


def claim_of_pool(resource: Resource, symbol: str, amount: IntArray, columns: Columns) -> Claim:
    """Return what bids take of what stands on no node, one row; ``amount`` has shape (bids,)."""
    row, left = np.zeros(len(amount), np.int64), np.array([max(columns.pools.remaining(resource), 0)])
    return Claim(resource=resource, symbol=symbol, by_bid=True, row=row, amount=amount, capacity=left)


class Family(Protocol):
    """A family of constraints: an equation, and which bids take how much of which cell.

    Attributes:
        name: of its resources.
    """

    name: str

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what a table's bids take of each resource."""

    def words(self, resource: Resource) -> str:
        """Return the resource in a sentence that says what a bid lacks."""


class Pooled(Family, Protocol):
    """A family of what stands on no node; each of its claims is one row.

    Attributes:
        title: of a list of its resources.
    """

    title: str

    def pool(self, snapshot: Snapshot) -> ResourcePool:
        """Return what there is in a snapshot."""
