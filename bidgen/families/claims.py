"""What a family says of a table of bids, and of a job that a program places: amounts of named cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...cluster.resources.capacity import Cell, IntArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.resources.job_reservations import Guard
from ...cluster.resources.pools import ResourcePool
from ...cluster.snapshot import Snapshot
from ..candidates import GresChoice
from ..table import BidTable


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Claim:
    """What a table's bids take of the cells of one resource: Σ amount·b ≤ capacity, a row for each cell.

    Attributes:
        resource: what the cells hold.
        symbol: names its rows in a program.
        guard: the reservation whose room it is, None for what is free now.
        by_bid: bids take it as a whole; otherwise each entry of a bid takes its own.
        row, amount: which cell, and how much of it, shape (entries,); by bid (bids,).
        capacity: of each cell, shape (cells,): nodes; of a reservation's room its nodes.
        per_core: what of an amount follows from each core on the entry, where a program deals the cores.
        beside_own: the amount less what the job has reserved there itself, below 0 where that is more; None:
            it has reserved nothing.
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

        What a job has reserved itself counts in full: where a program deals it less, others may take it.
        """
        whole = self.amount if self.beside_own is None else self.beside_own
        fixed: IntArray = whole - self.per_core * cores
        return fixed


class Taken(NamedTuple):
    """What a job takes of one cell where a program chooses its nodes: on_job·s + on_node·t + on_unit·x + y.

    Attributes:
        capacity: of the cell.
        on_job: where the job starts (s), wherever it stands.
        at: place of a node among those that the job may use, −1: none.
        on_node: where the job stands on that node (t).
        on_unit: for each unit of cores on it (x).
        dealt: a gres dealt over all nodes (y) of which each one on the node counts; empty: none.
    """

    cell: Cell
    capacity: int
    on_job: int = 0
    at: int = -1
    on_node: int = 0
    on_unit: int = 0
    dealt: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FreePlacement:
    """A job in one of its variants, whose nodes a program chooses (IPSCHED).

    Attributes:
        choice: the counts of its gres.
        nodes: those it may use, ascending.
    """

    demand: Demand
    choice: GresChoice
    nodes: IntArray


class Family(Protocol):
    """A family of constraints: an equation, and which bids take how much of which cell.

    Attributes:
        name: of its resources.
    """

    @property
    def name(self) -> str:
        """The family's name."""
        ...

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what a table's bids take of each resource."""
        ...

    def taken(self, job: FreePlacement, columns: Columns) -> Iterator[Taken]:
        """Yield what a job takes of each cell wherever a program puts it."""
        ...

    def words(self, resource: Resource) -> str:
        """Return the resource in a sentence that says what a bid lacks."""
        ...


class Pooled(Family, Protocol):
    """A family of what stands on no node; each of its claims is of one cell.

    Attributes:
        title: of a list of its resources.
    """

    @property
    def title(self) -> str:
        """What a list of its resources is called."""
        ...

    def pool(self, snapshot: Snapshot) -> ResourcePool:
        """Return what there is in a snapshot."""
        ...
