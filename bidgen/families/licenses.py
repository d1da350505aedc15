"""Licences: counts of the whole cluster, by name."""

from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from ...cluster.jobs import Job
from ...cluster.resources.capacity import Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.pools import ResourcePool, Use
from ...cluster.schedule import Reason
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ..table import BidTable
from .claims import Claim, Pooled, claim_of_pool

_NAME = "licenses"


class LicensePool(ResourcePool):
    """Free licences by name.

    Args:
        free: counts; each is a resource.
    """

    family = _NAME
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
        return ((Resource(_NAME, name), count) for name, count in job.request.licenses.items())

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
    """Σ_i licences_j(i)·b_i ≤ free licences, for each name over the whole cluster; not in the papers."""

    name = _NAME
    title = "licences"

    def pool(self, snapshot: Snapshot) -> LicensePool:
        """Return what is free in a snapshot."""
        return LicensePool({name: entry.free for name, entry in snapshot.licenses.items()})

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield what bids take of each licence: what their jobs ask for."""
        for number, name in enumerate(columns.pools.find(LicensePool).free):
            counts = np.array([demand.licenses.get(name, 0) for demand in table.demands], np.int64)
            taking = counts[table.job]
            yield claim_of_pool(Resource(_NAME, name), f"license{number}", taking, columns)

    def words(self, resource: Resource) -> str:
        """Return the licence's name."""
        return f"{resource.name} licences"
