"""Every family of constraints: what bids compete for.

Programs, search, ledgers, prices and reasons read them. A new family is a file of its own and an entry here;
auction/check.py, which checks awards, shares nothing with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...cluster.snapshot import Snapshot
from ..capacity import BoolArray, Capacity, IntArray
from .claims import Claim, Family, FreePlacement, Resource, Taken
from .cores import CORES
from .gres import GRES
from .licenses import LICENSES
from .limits import LIMITS
from .memory import MEMORY
from .on_nodes import OnNodes
from .pools import Pooled, Pools
from .room import ReservationRows
from .shares import KEPT, SHARES

if TYPE_CHECKING:
    from ..columns import Columns
    from ..guard import Guard
    from ..table import BidTable

#: Resources of nodes.
ON_NODES: tuple[OnNodes, ...] = (CORES, GRES, MEMORY)
#: What stands on no node.
POOLED: tuple[Pooled, ...] = (LICENSES, LIMITS, SHARES)
#: Beside reservations for blocked jobs.
ROOM = ReservationRows(ON_NODES)
#: All families, in the order of a program's rows.
FAMILIES: tuple[Family, ...] = (*ON_NODES, ROOM, *POOLED, KEPT)

_BY_NAME = {family.name: family for family in FAMILIES}
_NODES_BY_NAME = {family.name: family for family in ON_NODES}


def claims_of(table: BidTable, columns: Columns, guards: tuple[Guard, ...] = ()) -> Iterator[Claim]:
    """Yield what a table's bids take of every resource."""
    for family in FAMILIES:
        yield from family.claims(table, columns, guards)


def taken_by(job: FreePlacement, columns: Columns, guards: tuple[Guard, ...] = ()) -> Iterator[Taken]:
    """Yield what a job takes of every cell wherever a program puts it."""
    for family in FAMILIES:
        yield from family.taken(job, columns, guards)


def pools_of(snapshot: Snapshot) -> Pools:
    """Return what stands on no node, as a snapshot has it free."""
    pools = tuple(family.pool(snapshot) for family in POOLED)
    return Pools.beside(pools, snapshot.running, snapshot.time)


def words_of(claim: Claim) -> str:
    """Return in words what a bid lacks that does not get what it claims."""
    name = ROOM.name if claim.guard is not None else claim.resource.family
    return _BY_NAME[name].words(claim.resource)


def within_pools(table: BidTable, columns: Columns) -> BoolArray:
    """Return which bids alone find enough of what stands on no node, shape (bids,)."""
    within = np.ones(len(table), np.bool_)
    for family in POOLED:
        for claim in family.claims(table, columns, ()):
            within &= (claim.amount <= claim.capacity[0]) | (claim.amount == 0)
    return within


def title_of(resource: Resource) -> str:
    """Return what a list of such resources, which stand on no node, is called."""
    return next(family.title for family in POOLED if family.name == resource.family)


def is_on_nodes(resource: Resource) -> bool:
    """Return whether a resource is one of nodes."""
    return resource.family in _NODES_BY_NAME


def amounts_of(capacity: Capacity, resource: Resource) -> IntArray:
    """Return one resource's amounts on nodes: the capacity's own array."""
    return _NODES_BY_NAME[resource.family].of(capacity, resource)


def resources_of_nodes(capacity: Capacity) -> Iterator[Resource]:
    """Yield every resource of nodes that a capacity counts."""
    for family in ON_NODES:
        yield from family.kinds(capacity)
