"""From chosen windows to a table of bids, all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray, sorted_places, sums_before
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..topology.tree import Topology
from .candidates import Reading
from .table import CLASS_A, CLASS_B, CLASS_C, BidTable, deal_evenly, even, pack, sums_of
from .windows import Field, Windows, nodeset_numbers

#: How a bid's cores are put on its nodes.
EXACT, PACK, EVEN, WHOLE = 0, 1, 2, 3


def mode_of(demand: Demand) -> int:
    """Return how a job's cores are put on the fewest nodes, or on the nodes it asked for."""
    if demand.exclusive:
        return WHOLE
    if demand.units_per_node is not None:
        return EXACT
    return PACK if demand.node_counts is None else EVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How many bids there may be: MAXBIDS in all, MAXBIDSPERJOB of one job (figure 4.5).

    ``for_each``: of every job's in the first round, 0 where there is none.
    """

    all: int
    per_job: int
    for_each: int = 1

    def first_of_each(self, job: IntArray, keep: BoolArray, jobs: int) -> BoolArray:
        """Return which of the bids kept so far stay within the caps; ``job`` is ascending.

        Round 1 gives each job ``for_each`` bids, in window order; then each in turn gets others.
        """
        counts = np.minimum(np.bincount(job[keep], minlength=jobs), self.per_job)
        ones = np.minimum(counts, self.for_each)
        first_round = np.where(np.cumsum(ones) <= self.all, ones, 0)
        left = self.all - first_round.sum()
        more = np.where((first_round > 0) | (not self.for_each), counts - first_round, 0)
        before = np.cumsum(more) - more
        allowed = first_round + np.clip(left - before, 0, more)
        rank = np.cumsum(keep) - 1
        starts = np.cumsum(np.bincount(job[keep], minlength=jobs)) - np.bincount(job[keep], minlength=jobs)
        chosen: BoolArray = keep & (rank - starts[job] < allowed[job])
        return chosen


#: Chosen windows, before they become bids, shape (windows, 6): where its nodes start in the pool,
#: how many there are, whose it is, how cores are put on nodes (the mode), whether from the last
#: node on, and whether it touches an end of its nodeset.
ChosenWindows = IntArray
GROUP = 2


def joined(drafts: Sequence[ChosenWindows]) -> ChosenWindows:
    """Return several drafts as one."""
    return np.concatenate(drafts) if drafts else np.zeros((0, 6), np.int64)


@dataclass(slots=True, eq=False)
class NodesetArena:
    """Node lists that windows point into: nodes in scan order, and the units each could give."""

    nodes: list[IntArray] = field(default_factory=list)
    units: list[IntArray] = field(default_factory=list)
    groups: list[Reading] = field(default_factory=list)
    size: int = 0

    def add(self, nodes: IntArray, units: IntArray) -> int:
        """Append a node list and return where it starts."""
        start = self.size
        self.nodes.append(nodes)
        self.units.append(units)
        self.size += len(nodes)
        return start

    def add_group(self, group: Reading) -> int:
        """Append a group, once in a row, and return its number."""
        if not self.groups or self.groups[-1] is not group:
            self.groups.append(group)
        return len(self.groups) - 1

    def choose(
        self, listed: Field, windows: Windows, places: IntArray, what: tuple[int, int, bool]
    ) -> ChosenWindows:
        """Return a field's windows at some places as a draft; ``what``: group, mode, backward."""
        if listed.offset < 0:
            listed.offset = self.add(listed.nodes, listed.units)
        chosen = np.empty((len(places), 6), np.int64)
        chosen[:, 0] = windows.start[places] + listed.offset
        chosen[:, 1] = windows.length[places]
        chosen[:, GROUP:5] = what
        chosen[:, 5] = windows.aligned[places]
        return chosen


class Assembler:
    """Turns a draft into a table: each entry's cores, memory, gres; classes, levels, no duplicates.

    Entries stand in scan order here, and are sorted by node when the table is made.
    """

    _length: IntArray
    _group: IntArray
    _mode: IntArray
    _aligned: IntArray

    def __init__(
        self, columns: Columns, topology: Topology, pool: NodesetArena, draft: ChosenWindows
    ) -> None:
        self._columns = columns
        self._topology = topology
        self._groups = pool.groups
        index = np.array([group.demand.index for group in pool.groups], np.int64)
        draft = draft[sorted_places(index[draft[:, GROUP]])]
        place, self._length, self._group, self._mode, backward, self._aligned = np.ascontiguousarray(draft.T)
        self._job = index[self._group]
        self._indptr = sums_before(self._length)
        self._has_whole = bool((self._mode == WHOLE).any())
        # From the first place of a window on, or from its last one back.
        begin, end = self._indptr[:-1], self._indptr[1:] - 1
        place = np.repeat(place + np.where(backward, end, -begin), self._length)
        step = np.arange(self._indptr[-1])
        np.negative(step, out=step, where=np.repeat(backward > 0, self._length))
        place += step
        none = np.zeros(0, np.int64)
        self._node = np.concatenate([none, *pool.nodes])[place]
        self._units: IntArray = np.concatenate([none, *pool.units])[place]

    def table(self, demands: tuple[Demand, ...], caps: Caps, general_nodesets: int) -> BidTable:
        """Return each job's first bids in the caps: no duplicates, none on too many switches."""
        entries = self._entries()
        keep = self._distinct(self._node, entries) & self._within_switches(self._node)
        keep = caps.first_of_each(self._job, keep, len(demands))
        kept = np.flatnonzero(np.repeat(keep, self._length))
        length = self._length[keep]
        bid = np.repeat(np.arange(len(length)), length)
        # Only what is kept is sorted, and taken once.
        by_node = kept[sorted_places(bid * len(self._columns.names) + self._node[kept])]
        entries = {name: values[by_node] for name, values in entries.items()}
        indptr, node = sums_before(length), self._node[by_node]
        group = self._group[keep]
        joined = self._nodesets(np.repeat(group, length), indptr, node)
        contiguous = node[indptr[1:] - 1] - node[indptr[:-1]] + 1 == length
        bid_class = np.where(contiguous, np.where(self._aligned[keep], CLASS_A, CLASS_B), CLASS_C)
        switch = self._topology.common_switch_of_sets(indptr, node)
        gres = {name[5:]: values for name, values in entries.items() if name.startswith("gres ")}
        ratio, share = self._gres_terms(group, indptr, gres)
        return BidTable(
            demands=demands,
            job=self._job[keep],
            bid_class=bid_class.astype(np.int8),
            level=self._topology.level[switch],
            nodesets=joined,
            indptr=indptr,
            node=node,
            cores=entries["cores"],
            memory=entries.get("memory"),
            gres=gres,
            gres_ratio=ratio,
            gres_share=share,
            # What an award leaves may have more nodesets than there were: (4.11) needs |S_c| ≤ |S|.
            general_nodesets=max(general_nodesets, int(joined.max(initial=0))),
            own=entries.get("own"),
        )

    def _nodesets(self, group: IntArray, indptr: IntArray, node: IntArray) -> IntArray:
        """Return |S_c| of each bid: how many nodesets its nodes come from, at most |S|.

        Args:
            group: of each entry.
            indptr: where each bid's entries begin.
            node: of each entry, ascending within a bid.
        """
        asked = [
            tuple((kind, count) for kind, _, count in one.choice.per_node if count) for one in self._groups
        ]
        row_of = {counts: row for row, counts in enumerate(dict.fromkeys(asked))}
        if not len(node):
            return np.zeros(0, np.int64)
        first, near = int(node.min()), slice(int(node.min()), int(node.max()) + 1)
        numbers = [nodeset_numbers(self._columns, dict(counts), near) for counts in row_of]
        row = np.array([row_of[counts] for counts in asked])[group]
        number = np.array(numbers)[row, node - first]
        changes = np.cumsum(np.diff(number, prepend=number[:1]) != 0)
        counted: IntArray = changes[indptr[1:] - 1] - changes[indptr[:-1]] + 1
        return counted

    def _gres_terms(
        self, group: IntArray, indptr: IntArray, gres: dict[str, IntArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean gres terms of (5.7) and (6.5) for each bid."""
        terms = np.array([self._per_node_terms(entry) for entry in self._groups], np.float64).reshape(-1, 3)[
            group
        ]
        ratio, share, names = terms.T
        totals = [
            (number, *total) for number, entry in enumerate(self._groups) for total in entry.choice.total
        ]
        for number, kind, name, _, _ in totals:
            bids = np.flatnonzero(group == number)
            span = self._groups[number].demand.job.request.gres_total[name]
            got = sums_of(gres[kind], indptr)[bids] if kind in gres else np.zeros(len(bids))
            ratio[bids] += (got + 1) / (span.maximum + 1)
            share[bids] += got / np.diff(indptr)[bids] / max(1, self._columns.gres_max.get(name, 0))
        some = np.maximum(names, 1)
        return np.where(names > 0, ratio / some, 1.0), share / some

    def _per_node_terms(self, group: Reading) -> tuple[float, float, int]:
        """Return the sums of both terms over gres asked for on each node, and their number."""
        spans = group.demand.job.request.gres_per_node
        counts = [(name, count) for _, name, count in group.choice.per_node]
        ratio = sum((count + 1) / (spans[name].maximum + 1) for name, count in counts)
        share = sum(count / max(1, self._columns.gres_max.get(name, 0)) for name, count in counts)
        return ratio, share, len(counts) + len(group.choice.total)

    def _entries(self) -> dict[str, IntArray]:
        """Return each entry's holdings: cores, memory if a job counts it, each gres a job wants."""
        cores = self._cores()
        entries = {"cores": cores}
        if any(group.demand.counts_memory for group in self._groups):
            entries["memory"] = self._memory(cores)
        if any(group.demand.alone_in is not None for group in self._groups):
            entries["own"] = (self._units > 0).astype(np.int64)
        return entries | {f"gres {kind}": self._gres(kind) for kind in sorted(self._kinds())}

    def _of_bids(self, values: list[int]) -> IntArray:
        """Return a value of each group for every bid."""
        return np.array(values, np.int64)[self._group]

    def _of_entries(self, values: list[int]) -> IntArray:
        """Return a value of each group for every entry."""
        return np.repeat(self._of_bids(values), self._length)

    def _cores(self) -> IntArray:
        unit = self._of_entries([group.demand.unit for group in self._groups])
        units = self._of_entries([group.demand.units_per_node or 0 for group in self._groups])
        least = self._of_bids([group.demand.least for group in self._groups])
        total = self._of_bids([group.demand.units or 0 for group in self._groups])
        mode = np.repeat(self._mode, self._length)
        for wanted, fill in ((PACK, pack), (EVEN, even)):
            bids = np.flatnonzero(self._mode == wanted)
            if len(bids):
                entries = mode == wanted
                indptr = sums_before(self._length[bids])
                units[entries] = fill(self._units[entries], indptr, least[bids], total[bids])
        return self._or_all(units * unit, self._columns.total.cores)

    def _memory(self, cores: IntArray) -> IntArray:
        per_node = self._of_entries([group.demand.memory_per_node for group in self._groups])
        per_core = self._of_entries([group.demand.memory_per_core for group in self._groups])
        # What only keeps others off a block gives no units.
        return (per_node + per_core * cores) * (self._units > 0)

    def _kinds(self) -> set[str]:
        if any(group.demand.exclusive for group in self._groups):
            return set(self._columns.total.gres)
        kinds = {kind for group in self._groups for kind, _, _ in group.choice.per_node}
        kinds |= {kind for group in self._groups for kind, _, _, _ in group.choice.total}
        return kinds & set(self._columns.total.gres)

    def _gres(self, kind: str) -> IntArray:
        """Return the counts of one gres on each entry; an exclusive job holds all of its nodes'."""
        choices = [group.choice for group in self._groups]
        per_node = [sum(count for name, _, count in choice.per_node if name == kind) for choice in choices]
        total = [sum(high for name, _, _, high in choice.total if name == kind) for choice in choices]
        counts = self._of_entries(per_node)
        if any(total):
            free = self._columns.free.gres[kind][self._node]
            counts = counts + deal_evenly(free, self._indptr, self._of_bids(total))
        return self._or_all(counts, self._columns.total.gres[kind])

    def _or_all(self, counts: IntArray, total: IntArray) -> IntArray:
        """Return the counts of entries, of jobs that have whole nodes all there is of them."""
        if not self._has_whole:
            return counts
        return np.where(np.repeat(self._mode == WHOLE, self._length), total[self._node], counts)

    def _distinct(self, node: IntArray, entries: dict[str, IntArray]) -> BoolArray:
        """Return which bids are their job's first with their content, by 64-bit fingerprints."""
        if (self._job[1:] > self._job[:-1]).all():
            return np.ones(len(self._job), np.bool_)
        words = np.random.default_rng(0).integers(
            0, 2**64, (len(entries), len(self._columns.names)), np.uint64
        )
        prints = np.zeros(len(node), np.uint64)
        for word, values in zip(words, entries.values(), strict=True):
            prints += word[node] * (values.astype(np.uint64) + np.uint64(1))
        of_job = self._job.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        _, first = np.unique(sums_of(prints, self._indptr) ^ of_job, return_index=True)
        keep = np.zeros(len(self._length), np.bool_)
        keep[first] = True
        return keep

    def _within_switches(self, node: IntArray) -> BoolArray:
        """Return which bids stand below as few leaf switches as their job allows."""
        limits = [group.demand.max_switches for group in self._groups]
        if all(limit is None for limit in limits):
            return np.ones(len(self._length), np.bool_)
        most = self._of_bids([len(self._topology.names) if limit is None else limit for limit in limits])
        return self._topology.leaf_counts(self._indptr, node) <= most
