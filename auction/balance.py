"""What one auction is told to keep a balanced mix: shares, kept cores, worth, and how first bids are made.

Jobs are told apart by *shape*: gres and cores on a node. An auction that takes whatever fits lets the jobs
that fit anywhere overtake the others, until only jobs are left that cannot share nodes. So three things are
added to the one program of a pass, and none of them is a program of its own:

- a row for each shape: its bids take at most so many nodes more, its share of the machine by what waits;
- a row for each node with free gres: jobs of cores alone leave the cores that a job with gres needs there;
- first bids are made shape by shape, the scarcest first, in the queue's order within a shape, each on the
  nodes that it leaves the fewest gres on. They are an award by themselves; a search may better its worth.

See docs/decisions/0038 for what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..bidgen.columns import BoolArray, Capacity, FloatArray, IntArray
from ..bidgen.demand import Demand
from ..bidgen.table import BidTable
from .shapes import Ask, Backlog, Shape

#: Once what waits would fill the machine for so many times its longest job's time, long jobs go first.
_NEAR_END = 3
#: Beside its dominant share of the machine a job is worth so much for each gres on a node, and for each
#: doubling of its cores on a node: the search must not trade jobs hard to place for jobs that fit anywhere.
_GRES_WORTH = 3.0
_CORES_WORTH = 1.5
#: Jobs with a shape against those that fill gaps.
_SHAPED_WORTH = 3.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShareRow:
    """One cell of the program: the nodes that bids of one shape take are at most its room.

    Attributes:
        shape: whose share it is.
        jobs: which jobs of the window are of it, shape (jobs,).
        capacity: nodes.
    """

    shape: Shape
    jobs: BoolArray
    capacity: int

    def amounts(self, table: BidTable) -> IntArray:
        """Return what each bid takes of the cell, shape (bids,)."""
        amounts: IntArray = np.where(self.jobs[table.job], table.lengths, 0)
        return amounts


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KeptCores:
    """A cell for each node: the cores that jobs which fill gaps may take of it together.

    Attributes:
        jobs: which jobs of the window fill gaps, shape (jobs,).
        capacity: cores, shape (n,).
    """

    jobs: BoolArray
    capacity: IntArray

    def amounts(self, table: BidTable) -> IntArray:
        """Return what each entry of the table takes of its node's cell, shape (entries,)."""
        amounts: IntArray = np.where(np.repeat(self.jobs[table.job], table.lengths), table.cores, 0)
        return amounts


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Balance:
    """What one pass's auction is told.

    Attributes:
        asks: of the window's jobs.
        order: places in the window in the order in which first bids are made, shape (jobs,).
        worth: of each job in the objective, in place of its priority, above 0, shape (jobs,).
        shares: rows; none while the machine is drained.
        kept: rows; None where no cores have to be kept.
        is_draining: what waits would not fill the machine for its longest job's time.
    """

    asks: tuple[Ask, ...]
    order: IntArray
    worth: FloatArray
    shares: tuple[ShareRow, ...]
    kept: KeptCores | None
    is_draining: bool

    def nodes_for(self, place: int, nodes: IntArray, units: IntArray, free: Capacity, unit: int) -> IntArray:
        """Return the nodes that a job's first bid is to be made on, those to be taken first in front.

        Args:
            place: of the job in the window.
            nodes: usable ones, ascending, shape (m,).
            units: of cores that each could give, shape (m,).
            free: what is free beside the bids made before.
            unit: cores in a unit.
        """
        ask = self.asks[place]
        gres = _gres_of(free)[nodes]
        if ask.shape.fills_gaps:
            return _for_gaps(nodes, units, gres, -(-ask.cores // unit))
        each = -(-ask.each // unit)
        holds = units >= each
        spare = (gres - ask.shape.gres_count) * (int(units.max(initial=0)) + 1) + units // max(each, 1)
        order = _least_first(nodes[holds], spare[holds], ask.nodes)
        return np.concatenate([order, nodes[~holds]]) if self.is_draining else order


def balance_of(
    backlog: Backlog,
    window: Sequence[Demand],
    held: Mapping[Shape, int],
    free: Capacity,
    *,
    drain: bool = False,
) -> Balance:
    """Return what the auction of one pass needs to keep the mix balanced.

    Args:
        backlog: all that waits, the window among it.
        window: jobs that bid, highest priority first.
        held: nodes that running jobs hold, by shape.
        free: what is free now.
        drain: make no rows: for an empty machine on which no job could start beside them.
    """
    asks = tuple(backlog.ask(demand) for demand in window)
    longest = max((ask.limit_s for ask in asks), default=0.0)
    draining = drain or backlog.span_s() < longest
    long_first = draining or backlog.span_s() < _NEAR_END * longest
    return Balance(
        asks=asks,
        order=_order(asks, long_first=long_first, by_shape=not draining),
        worth=_worth(asks, backlog),
        shares=() if draining else _shares(asks, backlog.rooms(held, longest), held),
        kept=None if draining or not backlog.is_gres_scarce() else _kept(asks, free),
        is_draining=draining,
    )


def _order(asks: Sequence[Ask], *, long_first: bool, by_shape: bool) -> IntArray:
    """Order jobs: most gres on a node, then most cores; within a shape as they stand, or longest first."""

    def key(place: int) -> tuple[object, ...]:
        ask = asks[place]
        limit = -ask.limit_s if long_first else 0.0
        if not by_shape:
            return (limit,)
        return (ask.shape.fills_gaps, -ask.shape.gres_count, -ask.shape.cores, ask.shape, limit)

    return np.array(sorted(range(len(asks)), key=key), np.int64)


def _worth(asks: Sequence[Ask], backlog: Backlog) -> FloatArray:
    # Twice as much in front of the window as at its end: a search then leaves nobody behind for good.
    places = np.arange(len(asks)) / max(len(asks), 1)
    worth: FloatArray = np.array([backlog.dominant_share(ask) * _multiplier(ask.shape) for ask in asks])
    return worth * (2.0 - places)


def _multiplier(shape: Shape) -> float:
    if shape.fills_gaps:
        return 1.0
    doublings = max(shape.cores, 1).bit_length() - 1
    return float(_SHAPED_WORTH * _GRES_WORTH**shape.gres_count * _CORES_WORTH**doublings)


def _shares(
    asks: Sequence[Ask], rooms: Mapping[Shape, float], held: Mapping[Shape, int]
) -> tuple[ShareRow, ...]:
    """Return a row for each shape in sight that cannot fill gaps.

    No share is below the widest job of its shape in sight: it would wait until nothing of its shape runs.
    """
    widest: dict[Shape, int] = {}
    for ask in asks:
        if not ask.shape.fills_gaps:
            widest[ask.shape] = max(widest.get(ask.shape, 0), ask.nodes)
    rows = []
    for shape, nodes in widest.items():
        room = max(int(rooms.get(shape, 0.0)), nodes - held.get(shape, 0), 0)
        jobs = np.array([ask.shape == shape for ask in asks], np.bool_)
        rows.append(ShareRow(shape=shape, jobs=jobs, capacity=room))
    return tuple(rows)


def _kept(asks: Sequence[Ask], free: Capacity) -> KeptCores | None:
    """Keep on every node with free gres the cores of the largest waiting shape with gres."""
    keep = max((ask.shape.cores for ask in asks if ask.shape.gres), default=0)
    jobs = np.array([ask.shape.fills_gaps for ask in asks], np.bool_)
    if not keep or not jobs.any():
        return None
    left = np.where(_gres_of(free) > 0, np.maximum(free.cores - keep, 0), free.cores)
    return KeptCores(jobs=jobs, capacity=left)


def _gres_of(free: Capacity) -> IntArray:
    """Return the free gres of all kinds on each node, shape (n,)."""
    total: IntArray = sum(free.gres.values(), np.zeros_like(free.cores))
    return total


def _least_first(nodes: IntArray, spare: IntArray, count: int) -> IntArray:
    """Order nodes by what they have to spare; of those equal to the last one taken, the closest together."""
    order = np.argsort(spare, kind="stable")
    nodes, spare = nodes[order], spare[order]
    if not 0 < count <= len(nodes):
        return nodes
    first = int(np.searchsorted(spare, spare[count - 1], side="left"))
    last = int(np.searchsorted(spare, spare[count - 1], side="right"))
    equal, need = nodes[first:last], count - first
    at = int(np.argmin(equal[need - 1 :] - equal[: len(equal) - need + 1]))
    taken = np.roll(equal, -at)
    return np.concatenate([nodes[:first], taken, nodes[last:]])


def _for_gaps(nodes: IntArray, units: IntArray, gres: IntArray, wanted: int) -> IntArray:
    """Order nodes for a job that fills gaps: the narrowest stretch among those with the fewest gres free."""
    for most in range(int(gres.max(initial=0)) + 1):
        among = np.flatnonzero((gres <= most) & (units > 0))
        sums = np.concatenate([[0], np.cumsum(units[among])])
        if sums[-1] < wanted:
            continue
        ends = np.searchsorted(sums, sums[:-1] + wanted)
        starts = np.flatnonzero(ends < len(sums))
        ends = ends[starts]
        span = nodes[among[ends - 1]] - nodes[among[starts]]
        best = int(np.lexsort((span, ends - starts))[0])
        stretch = among[starts[best] : ends[best]]
        others = np.setdiff1d(among, stretch)
        ordered: IntArray = nodes[np.concatenate([stretch, others])]
        return ordered
    return nodes
