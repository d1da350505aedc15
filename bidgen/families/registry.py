"""Every family of constraints: what bids compete for.

Programs, search, ledgers, prices and reasons read them. A new family is a file of its own and an
entry here; auction/check.py, which checks awards, shares nothing with it.
"""

from collections.abc import Iterator

import numpy as np

from ...cluster.resources.capacity import BoolArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.job_reservations import Guard
from ...cluster.resources.pools import Pools
from ...cluster.snapshot import Snapshot
from ..table import BidTable
from .claims import Claim, Family, Pooled
from .on_nodes import ON_NODES, GapRows, ReservationRows
from .pooled import ClassShares, JobLimits, Licenses

#: What stands on no node.
POOLED: tuple[Pooled, ...] = (Licenses(), JobLimits(), ClassShares())
#: Beside reservations for blocked jobs.
ROOM = ReservationRows()
#: All families, in the order of a program's rows.
FAMILIES: tuple[Family, ...] = (*ON_NODES, ROOM, *POOLED, GapRows())

_BY_NAME = {family.name: family for family in FAMILIES}


def claims_of(table: BidTable, columns: Columns, guards: tuple[Guard, ...] = ()) -> Iterator[Claim]:
    """Yield what a table's bids take of every resource."""
    for family in FAMILIES:
        of_these = ReservationRows(guards) if family is ROOM else family
        yield from of_these.claims(table, columns)


def pools_of(snapshot: Snapshot) -> Pools:
    """Return what stands on no node, as a snapshot has it free."""
    pools = tuple(family.pool(snapshot) for family in POOLED)
    return Pools.beside(pools, snapshot.running, snapshot.time)


def columns_of(snapshot: Snapshot) -> Columns:
    """Return what is free in a snapshot as columns."""
    return Columns.of(snapshot.nodes, pools_of(snapshot))


def words_of(claim: Claim) -> str:
    """Return in words what a bid lacks that does not get what it claims."""
    name = ROOM.name if claim.guard is not None else claim.resource.family
    return _BY_NAME[name].words(claim.resource)


def within_pools(table: BidTable, columns: Columns) -> BoolArray:
    """Return which bids alone find enough of what stands on no node, shape (bids,)."""
    within = np.ones(len(table), np.bool_)
    for family in POOLED:
        for claim in family.claims(table, columns):
            within &= (claim.amount <= claim.capacity[0]) | (claim.amount == 0)
    return within


def title_of(resource: Resource) -> str:
    """Return what a list of such resources, which stand on no node, is called."""
    return next(family.title for family in POOLED if family.name == resource.family)
