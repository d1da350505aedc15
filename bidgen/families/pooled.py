"""What stands on no node: licences of the whole cluster, limits over sets of jobs, shares.

Shares keep a balanced mix: one pass of an auction says what they are (auction/balance.py); without
a balance there are none.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...cluster.jobs import Job
from ...cluster.limits import Lasting, of_gres
from ...cluster.resources.capacity import IntArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.resources.pools import ENDLESS, LimitPool, ResourcePool, Use
from ...cluster.schedule import Reason
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ..table import BidTable, sums_of
from .claims import Claim, Pooled, claim_of_pool

_LICENSES, _SHARES = "licenses", "shares"


class LicensePool(ResourcePool):
    """Free licences by name.

    Args:
        free: counts; each is a resource.
    """

    family = _LICENSES
    reason = Reason.NO_FIT
    holds_queue = True

    def __init__(self, free: Mapping[str, int]) -> None:
        self.free = free

    @property
    def is_empty(self) -> bool:
        """Whether the cluster has no licences."""
        return not self.free

    def takes(self, job: Job, use: Use, seconds: float | None) -> Iterable[tuple[Resource, int]]:
        """Yield the counts that a job asks for."""
        del use, seconds
        return ((Resource(_LICENSES, name), count) for name, count in job.request.licenses.items())

    def capacity(self, resource: Resource) -> int:
        """Return the free licences."""
        return self.free[resource.name]

    def alike(self, job: Job) -> Hashable:
        """Return the licences that a job asks for."""
        return tuple(sorted(job.request.licenses.items()))

    def lacking(self, resource: Resource, asked: int, left: int) -> str:
        """Return what it asks for and what is free."""
        return f"it asks for {plural(asked, f'{resource.name} licence')}, {left} free"


class Licenses(Pooled):
    """Σ_i licences_j(i)·b_i ≤ free licences, for each name over the cluster; not in the papers."""

    name = _LICENSES
    title = "licences"

    def pool(self, snapshot: Snapshot) -> LicensePool:
        """Return what is free in a snapshot."""
        return LicensePool({name: entry.free for name, entry in snapshot.licenses.items()})

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what bids take of each licence: what their jobs ask for."""
        for number, name in enumerate(columns.pools.find(LicensePool).free):
            counts = np.array([one.job.request.licenses.get(name, 0) for one in table.demands], np.int64)
            taking = counts[table.job]
            yield claim_of_pool(Resource(_LICENSES, name), f"license{number}", taking, columns)

    def words(self, resource: Resource) -> str:
        """Return the licence's name."""
        return f"{resource.name} licences"


class JobLimits(Pooled):
    """Σ_i amount_i·b_i ≤ max − what running jobs hold, for each limit over its jobs' bids.

    Not in the papers; Slurm's limits of associations and QOS.
    """

    name = LimitPool.family
    title = "limit"

    def pool(self, snapshot: Snapshot) -> LimitPool:
        """Return the limits of a snapshot."""
        return LimitPool(snapshot.limits)

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what the bids of each limit's jobs take of it."""
        pool = columns.pools.find(LimitPool)
        counted: dict[str, list[Demand]] = {}
        for demand in table.demands:
            for limit in pool.limits_of(demand.job):
                counted.setdefault(limit.name, []).append(demand)
        number = 0
        for limit in (one for one in pool.limits if one.name in counted):
            for what in limit.most:
                taken: dict[Resource, list[int]] = {}
                for demand in counted[limit.name]:
                    taken.setdefault(pool.resource(limit, what, demand.job), []).append(demand.index)
                amounts = _amounts(what, table)
                for resource, jobs in taken.items():
                    taking = amounts * np.isin(table.job, jobs)
                    yield claim_of_pool(resource, f"limit{number}", taking, columns)
                    number += 1

    def words(self, resource: Resource) -> str:
        """Return the limit's name and what it limits."""
        return f"the limit {resource.name}"


def _amounts(what: str, table: BidTable) -> IntArray:
    """Return what each bid takes of something, shape (bids,)."""
    if what == "jobs":
        return np.ones(len(table), np.int64)
    if what == "nodes":
        return table.lengths
    if what == "cores":
        return table.cores_of_bids()
    if what == "core_seconds":
        limits = [demand.job.time_limit_s for demand in table.demands]
        seconds = np.array([0 if limit is None else limit for limit in limits], np.int64)[table.job]
        endless = np.array([limit is None for limit in limits], np.bool_)[table.job]
        return np.where(endless, ENDLESS, table.cores_of_bids() * seconds)
    counts = sum(
        (counts for kind, counts in table.gres.items() if of_gres(what, {kind: 1})), np.zeros_like(table.node)
    )
    return sums_of(counts, table.indptr)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharePool(ResourcePool):
    """How many nodes more the jobs of each shape may take.

    Attributes:
        rooms: nodes, by the shape's name; each is a resource.
        shapes: the shape's name of each job that has a share, by the job's id.
    """

    rooms: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)

    family = _SHARES
    reason = Reason.SHARE
    holds_queue = False

    @property
    def is_empty(self) -> bool:
        """Whether no job has a share."""
        return not self.shapes

    def takes(self, job: Job, use: Use, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield the nodes that a job takes of its shape's share."""
        del seconds
        name = self.shapes.get(job.id)
        if name is not None:
            yield Resource(_SHARES, name), use.nodes

    def lasting(self, resource: Resource) -> Lasting:
        """Return that the next pass has its own shares."""
        del resource
        return Lasting.STEP

    def capacity(self, resource: Resource) -> int:
        """Return the room of a share."""
        return self.rooms[resource.name]

    def alike(self, job: Job) -> Hashable:
        """Return the job's shape."""
        return self.shapes.get(job.id)

    def lacking(self, resource: Resource, asked: int, left: int) -> str:
        """Return what the share leaves and what a job asks for."""
        has = f"the share of its shape ({resource.name}) leaves {max(left, 0)}"
        return f"it asks for {plural(asked, 'node')}, {has}"


class ClassShares(Pooled):
    """Σ_i |N_i|·b_i ≤ room for each shape over its jobs' bids: the nodes that it may hold more.

    Not in the papers.
    """

    name = _SHARES
    title = "shares"

    def pool(self, snapshot: Snapshot) -> SharePool:
        """Return no shares: a snapshot has none of its own."""
        del snapshot
        return SharePool()

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what the bids of each shape's jobs take of its share: their nodes."""
        pool = columns.pools.find(SharePool)
        shapes = [pool.shapes.get(demand.job.id) for demand in table.demands]
        for number, name in enumerate(pool.rooms):
            mine = np.array([shape == name for shape in shapes], np.bool_)
            if mine.any():
                taking = np.where(mine[table.job], table.lengths, 0)
                yield claim_of_pool(Resource(_SHARES, name), f"share{number}", taking, columns)

    def words(self, resource: Resource) -> str:
        """Return whose share it is."""
        return f"the share of its shape ({resource.name})"
