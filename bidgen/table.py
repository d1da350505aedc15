"""Bids as columns: who bids, on which nodes, how much on each.

How an amount is put on the nodes of a bid is found for many bids at once: bid ``i`` holds the
entries ``indptr[i]:indptr[i + 1]``; ``units`` is what each entry's node could give.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cluster.resources.allocation import Allocation
from ..cluster.resources.capacity import (
    BoolArray,
    Capacity,
    FloatArray,
    IntArray,
    Number,
    ranges,
    sums_before,
)
from ..cluster.resources.demand import Demand

#: Class codes of ``BidTable.bid_class``.
CLASS_A, CLASS_B, CLASS_C = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BidTable:
    """All bids of a window, grouped by job in window order; one entry for each bid and node of it.

    Attributes:
        demands: the jobs of the window, by place in it.
        job: place in the window of each bid's job, ascending, shape (bids,).
        bid_class: 0, 1, 2 for A, B, C, shape (bids,).
        level: level of the nodes' lowest common switch, L_i, shape (bids,).
        nodesets: how many nodesets the bid joins, |S_c|, shape (bids,).
        indptr: entries of bid ``i`` are ``indptr[i]:indptr[i + 1]``, shape (bids + 1,).
        node: node of each entry, ascending within a bid, shape (entries,).
        cores: cores on it, T_in, shape (entries,).
        memory: MiB on it, shape (entries,); None when no bid counts memory.
        gres: counts on it by gres name, shape (entries,) each, for the names some bid asks for.
        own: 1 where the job gets the node, 0 where it keeps others off, shape (entries,); None: 1.
        gres_ratio: mean over the job's gres of (R_i + 1) / (R_max + 1), the k4 term of (5.7).
        gres_share: mean over the job's gres of R_i / G_max, the last term of (6.5).
        general_nodesets: |S|, all distinct nodesets over every g.
    """

    demands: tuple[Demand, ...]
    job: IntArray
    bid_class: npt.NDArray[np.int8]
    level: IntArray
    nodesets: IntArray
    indptr: IntArray
    node: IntArray
    cores: IntArray
    memory: IntArray | None
    gres: Mapping[str, IntArray]
    gres_ratio: FloatArray
    gres_share: FloatArray
    general_nodesets: int
    own: IntArray | None = None

    def __len__(self) -> int:
        return len(self.job)

    @property
    def lengths(self) -> IntArray:
        """Nodes of each bid, |N_c|, shape (bids,)."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def bid(self) -> IntArray:
        """The bid of each entry, shape (entries,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def demand_of(self, bid: int) -> Demand:
        """Return what the job of a bid asks for."""
        return self.demands[int(self.job[bid])]

    def place_of(self, job: str) -> int | None:
        """Return the place in the window of a job by its id; None: it is not in it."""
        return next((one.index for one in self.demands if one.job.id == job), None)

    def bids_of(self, job: int) -> range:
        """Return the bids of the job at a place in the window."""
        return range(*np.searchsorted(self.job, [job, job + 1]).tolist())

    def entries(self, bid: int) -> slice:
        """Return the slice of one bid's entries."""
        return slice(int(self.indptr[bid]), int(self.indptr[bid + 1]))

    def allocation(self, bid: int) -> Allocation:
        """Return what a bid holds, in arrays of its own: a view would keep all bids in memory."""
        entries = self.entries(bid)
        cores = self.cores[entries].copy()
        held = Capacity(
            cores=cores,
            memory=np.zeros_like(cores) if self.memory is None else self.memory[entries].copy(),
            gres={kind: counts[entries].copy() for kind, counts in self.gres.items()},
        )
        own = None if self.own is None else self.own[entries].copy()
        return Allocation(nodes=self.node[entries].copy(), held=held, own=own)

    def cores_of_bids(self) -> IntArray:
        """Return the cores of each bid over all its nodes, shape (bids,)."""
        return sums_of(self.cores, self.indptr)

    def with_cores(self, bids: IntArray, cores: IntArray) -> "BidTable":
        """Return the table with ``cores`` (entries,) for some bids; memory of cores follows."""
        changed = np.isin(np.arange(len(self)), bids)
        cores = np.where(np.repeat(changed, self.lengths), cores, self.cores)
        memory = self.memory
        if memory is not None:
            job = np.repeat(self.job, self.lengths)
            on_node = np.array([demand.memory_per_node for demand in self.demands], np.int64)[job]
            per_core = np.array([demand.memory_per_core for demand in self.demands], np.int64)[job]
            memory = on_node + per_core * cores
            if self.own is not None:
                # Nodes that a job keeps others from, and does not use, hold no memory of it.
                memory = memory * self.own
        return replace(self, cores=cores, memory=memory)

    def only(self, bids: BoolArray | Sequence[int] | IntArray) -> "BidTable":
        """Return the table of some bids: those that a mask picks, or those at some places."""
        keep = np.asarray(bids)
        if keep.dtype != np.bool_:
            keep = np.zeros(len(self), np.bool_)
            keep[bids] = True
        return self.at(np.flatnonzero(keep))

    def at(self, bids: IntArray) -> "BidTable":
        """Return the table of the bids at some places, in their order."""
        lengths = self.lengths[bids]
        indptr = sums_before(lengths)
        entries = ranges(self.indptr[bids], lengths)
        return replace(
            self,
            job=self.job[bids],
            bid_class=self.bid_class[bids],
            level=self.level[bids],
            nodesets=self.nodesets[bids],
            indptr=indptr,
            node=self.node[entries],
            cores=self.cores[entries],
            memory=None if self.memory is None else self.memory[entries],
            gres={kind: counts[entries] for kind, counts in self.gres.items()},
            gres_ratio=self.gres_ratio[bids],
            gres_share=self.gres_share[bids],
            own=None if self.own is None else self.own[entries],
        )


def joined_tables(
    demands: tuple[Demand, ...], tables: Sequence[BidTable], jobs: Sequence[IntArray]
) -> tuple[BidTable, IntArray]:
    """Return several tables' bids as one table of a window, and from which bid in turn each came.

    Args:
        demands: of the whole window.
        tables: any number; bids of one job may stand in several.
        jobs: the place in the window of each table's bids, shape (bids,) each.

    |S| is that of the first table which has nodesets: others may be of what it leaves.
    """

    def stacked(columns: Iterable[npt.NDArray[Any]], kind: type = np.int64) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *columns])

    memory = (np.zeros_like(one.cores) if one.memory is None else one.memory for one in tables)
    owns = (np.ones_like(one.node) if one.own is None else one.own for one in tables)
    nodesets = stacked(one.nodesets for one in tables)
    general = next((one.general_nodesets for one in tables if one.general_nodesets), 0)
    table = BidTable(
        demands=demands,
        job=stacked(jobs),
        bid_class=stacked((one.bid_class for one in tables), np.int8),
        level=stacked(one.level for one in tables),
        nodesets=nodesets,
        indptr=sums_before(stacked(one.lengths for one in tables)),
        node=stacked(one.node for one in tables),
        cores=stacked(one.cores for one in tables),
        memory=stacked(memory) if any(one.memory is not None for one in tables) else None,
        gres={
            kind: stacked(one.gres.get(kind, np.zeros_like(one.cores)) for one in tables)
            for kind in sorted({kind for one in tables for kind in one.gres})
        },
        gres_ratio=stacked((one.gres_ratio for one in tables), np.float64),
        gres_share=stacked((one.gres_share for one in tables), np.float64),
        general_nodesets=max(general, int(nodesets.max(initial=0))),
        own=stacked(owns) if any(one.own is not None for one in tables) else None,
    )
    order = np.argsort(table.job, kind="stable")
    return table.at(order), order


def sums_of(values: npt.NDArray[Number], indptr: IntArray) -> npt.NDArray[Number]:
    """Return the sum of each bid's entries, shape (bids,)."""
    if len(indptr) < 2:  # noqa: PLR2004 - no bid at all
        return values[:0]
    sums: npt.NDArray[Number] = np.add.reduceat(values, indptr[:-1])
    return sums


def pack(units: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Fill nodes in turn: all the first can give, ``least`` on each one after the last full.

    ``least`` and ``total`` have shape (bids,); every bid can hold its total.
    """
    length: IntArray = np.diff(indptr)
    floor = np.repeat(least, length)
    room: IntArray = np.maximum(units - floor, 0)
    extra: IntArray = total - length * least
    return floor + deal(room, indptr, extra)


def deal(room: IntArray, indptr: IntArray, total: IntArray) -> IntArray:
    """Deal each bid's total over its entries in order, all that each has room for."""
    length = np.diff(indptr)
    before = np.cumsum(room) - room
    before -= np.repeat(before[indptr[:-1]], length)
    dealt: IntArray = np.minimum(np.maximum(np.repeat(total, length) - before, 0), room)
    return dealt


def deal_evenly(room: IntArray, indptr: IntArray, total: IntArray) -> IntArray:
    """Deal each bid's total over its entries as evenly as their room allows; at most all of it."""
    within = np.minimum(total, sums_of(room, indptr))
    return even(room, indptr, np.zeros(len(total), np.int64), within)


def even(units: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Put ⌈R/N⌉ or ⌊R/N⌋ units on each node where they fit, else as evenly as they do."""
    length = np.diff(indptr)
    floor = np.repeat(least, length)
    level = np.repeat(_water_level(np.maximum(units, floor), indptr, least, total), length)
    below: IntArray = np.maximum(np.minimum(units, level - 1), floor)
    could_take = np.asarray((units >= level) & (level > floor), np.int64)
    missing: IntArray = total - sums_of(below, indptr)
    return below + deal(could_take, indptr, missing)


def _water_level(most: IntArray, indptr: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Return for each bid the least t whose sum of max(least, min(most, t)) reaches its total."""
    length = np.diff(indptr)
    # Where every node could give its even share, that is the level; elsewhere it is looked for.
    share = -(-total // np.maximum(length, 1))
    level = np.where(share > least, share, 0)
    poorest = np.minimum.reduceat(most, indptr[:-1]) if len(total) else share
    rest = (poorest < share) & (share > least)
    if rest.any():
        some = most[np.repeat(rest, length)]
        level[rest] = _searched_level(some, length[rest], least[rest], total[rest])
    return level


def _searched_level(most: IntArray, length: IntArray, least: IntArray, total: IntArray) -> IntArray:
    """Return the same by bisection; ``most`` is of these bids' entries."""
    indptr = sums_before(length)
    floor = np.repeat(least, length)
    low = np.zeros(len(total), np.int64)
    high = np.full(len(total), int(most.max(initial=1)))
    while (low < high).any():
        middle = (low + high) // 2
        filled = sums_of(np.maximum(np.minimum(most, np.repeat(middle, length)), floor), indptr)
        enough = filled >= total
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return low
