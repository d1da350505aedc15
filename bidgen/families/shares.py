"""Rows that keep a balanced mix: each shape's share of the nodes, and cores kept beside free gres.

One pass of an auction says what they are (auction/balance.py); without a balance there are none.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ...cluster.jobs import Job
from ...cluster.limits import Lasting
from ...cluster.resources.capacity import Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.pools import ResourcePool, Use
from ...cluster.schedule import Reason
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ..table import BidTable
from .claims import Claim, Family, Pooled, claim_of_pool

_SHARES = "shares"
_KEPT = "kept_cores"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharePool(ResourcePool):
    """How many nodes more the jobs of each shape may take.

    Attributes:
        rooms: nodes, by the shape's name; each is a resource.
        shapes: the shape's name of each job that has a share, by the job's id.
    """

    rooms: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    shapes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

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


class GapRows(Family):
    """Σ_i T_in·b_i ≤ A_n^cpu − kept_n for each node n with free gres, over the jobs that fill gaps.

    Not in the papers. ``kept_n`` are the cores that a waiting job with gres needs on a node.
    """

    name = _KEPT

    def claims(self, table: BidTable, columns: Columns) -> Iterator[Claim]:
        """Yield the cores that bids of those jobs take of each node."""
        for kept in columns.kept:
            limited = np.array([demand.job.id in kept.jobs for demand in table.demands], np.bool_)
            if limited.any():
                counts = limited[np.repeat(table.job, table.lengths)].astype(np.int64)
                yield Claim(
                    resource=Resource(_KEPT, kept.name),
                    symbol=f"kept_{kept.name}",
                    row=table.node,
                    amount=table.cores * counts,
                    capacity=kept.left,
                    per_core=counts,
                )

    def words(self, resource: Resource) -> str:
        """Return what is kept, whatever for."""
        del resource
        return "cores that are not kept for jobs with gres"
