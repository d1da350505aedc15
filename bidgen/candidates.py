"""The nodes that jobs may use now, found once for all jobs that ask alike for each node."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from ..cluster.checks import LARGEST_COUNT
from ..cluster.jobs import Span
from ..cluster.resources.capacity import BoolArray, Capacity, IntArray, sums_before
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand, Variant
from ..cluster.resources.job_reservations import HeldBack, capped_by

#: Ranges up to this many counts are tried at every count, wider ones at a few.
_EVERY_COUNT = 8
_SOME_COUNTS = 5
_MOST_CHOICES = 16

#: More nodes than any machine has.
_ANY_COUNT = 10**9

#: So many nodes are looked at first, each time twice as many as before.
_FIRST_LOOK = 64

#: All nodes.
ALL = slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GresChoice:
    """Counts that a group of bids asks for: on each node; over all, from ``low`` to ``high``."""

    per_node: tuple[tuple[str, str, int], ...]
    total: tuple[tuple[str, str, int, int], ...]


class Reading(NamedTuple):
    """A job's request read in one way: one of its variants, at one choice of gres."""

    demand: Demand
    variant: Variant
    choice: GresChoice


class UsableNodes(NamedTuple):
    """Nodes that a job could use, in any order, and the units of cores that each could give it."""

    nodes: IntArray
    units: IntArray

    def at(self, places: IntArray | slice) -> "UsableNodes":
        """Return those at some places, in their order."""
        return UsableNodes(self.nodes[places], self.units[places])

    def only(self, nodes: IntArray) -> "UsableNodes":
        """Return some of the nodes, in the order given."""
        order = np.argsort(self.nodes)
        return self.at(order[np.searchsorted(self.nodes, nodes, sorter=order)])


def gres_choices(variant: Variant) -> tuple[GresChoice, ...]:
    """Return the counts to bid with, most gres first."""
    return _choices(variant.gres, variant.gres_total)


@lru_cache(maxsize=4096)
def _choices(
    gres: tuple[tuple[str, str, Span], ...], gres_total: tuple[tuple[str, str, Span], ...]
) -> tuple[GresChoice, ...]:
    totals = [tuple((kind, name, span.minimum, span.maximum) for kind, name, span in gres_total)]
    if any(not span.is_exact for _, _, span in gres_total):
        totals.append(tuple((kind, name, span.minimum, span.minimum) for kind, name, span in gres_total))
    found: list[GresChoice] = []
    for counts in _joint_counts([span for _, _, span in gres]):
        per_node = tuple((kind, name, count) for (kind, name, _), count in zip(gres, counts, strict=True))
        found.extend(GresChoice(per_node=per_node, total=total) for total in totals)
    return tuple(found)


def readings_of(demand: Demand) -> list[Reading]:
    """Return every way to read a job's request."""
    return [
        Reading(demand, variant, choice) for variant in demand.variants for choice in gres_choices(variant)
    ]


def fewest_gres(demand: Demand) -> list[Reading]:
    """Return how a request is read in each of its variants, at the fewest gres of its ranges."""
    return [Reading(demand, variant, gres_choices(variant)[-1]) for variant in demand.variants]


def _joint_counts(spans: list[Span]) -> list[tuple[int, ...]]:
    """Return joint counts of several ranges, largest first; along the diagonal if they are many."""
    lists = [counts_of(span) for span in spans]
    if prod(len(counts) for counts in lists) <= _MOST_CHOICES:
        return sorted(product(*lists), key=sum, reverse=True)
    steps = max(len(counts) for counts in lists)
    return [
        tuple(counts[round(step * (len(counts) - 1) / (steps - 1))] for counts in lists)
        for step in range(steps)
    ]


def counts_of(span: Span) -> list[int]:
    """Return the counts of a range that are bid with, largest first."""
    if span.maximum - span.minimum < _EVERY_COUNT:
        return list(range(span.maximum, span.minimum - 1, -1))
    return sorted(
        {round(value) for value in np.linspace(span.minimum, span.maximum, _SOME_COUNTS)}, reverse=True
    )


def usable(
    asked: Reading, free: Capacity, columns: Columns, nodes: IntArray | slice = ALL
) -> tuple[BoolArray, IntArray]:
    """Return which of some nodes could be a job's (section 4.1 too), and each one's core units."""
    demand, variant, choice = asked
    units = units_of(demand, free, columns, nodes)
    mask = variant.eligible[nodes] & (units >= demand.least)
    if demand.memory_per_node:
        mask &= free.memory[nodes] >= demand.memory_per_node
    if demand.exclusive:
        mask &= columns.is_empty[nodes] & (free.cores[nodes] == columns.total.cores[nodes])
        if demand.memory_per_unit:
            # The award holds all the node's cores, so its memory is that of all of them.
            mask &= _memory(free, nodes) // demand.memory_per_core >= columns.total.cores[nodes]
    if demand.alone_in is not None:
        in_use = ~columns.is_empty | (free.cores < columns.total.cores)
        mask &= ~np.isin(demand.alone_in[nodes], demand.alone_in[in_use])
    for kind, _, count in choice.per_node:
        if count and kind not in free.gres:
            mask[:] = False
        elif count:
            mask &= free.gres[kind][nodes] >= count
    return mask, units


def with_blocked(demand: Demand, found: UsableNodes, columns: Columns) -> UsableNodes:
    """Return a job's nodes, and the rest of blocks that it has alone, which give no units."""
    if demand.alone_in is None:
        return found
    is_blocked = np.isin(demand.alone_in, demand.alone_in[found.nodes]) & columns.takes_jobs
    is_blocked[found.nodes] = False
    others = np.flatnonzero(is_blocked)
    return UsableNodes(
        np.concatenate([found.nodes, others]), np.concatenate([found.units, np.zeros_like(others)])
    )


def usable_in_any(demand: Demand, free: Capacity, columns: Columns) -> BoolArray:
    """Return the nodes that could be among the job's in one of its variants, at the fewest gres."""
    found: BoolArray = np.any([usable(asked, free, columns)[0] for asked in fewest_gres(demand)], axis=0)
    return found


def usable_nodes(
    asked: Reading, free: Capacity, columns: Columns, nodes: IntArray | slice = ALL
) -> UsableNodes:
    """Return which of some nodes could be among the job's, ascending."""
    mask, units = usable(asked, free, columns, nodes)
    return UsableNodes(np.flatnonzero(mask) if isinstance(nodes, slice) else nodes[mask], units[mask])


def units_of(demand: Demand, free: Capacity, columns: Columns, nodes: IntArray | slice = ALL) -> IntArray:
    """Return the units of cores that each of some nodes could give the job, memory counted too."""
    if demand.exclusive:
        return columns.total.cores[nodes] // demand.unit
    units = free.cores[nodes] // demand.unit
    if demand.memory_per_unit:
        units = np.minimum(units, _memory(free, nodes) // demand.memory_per_unit)
    return units


def _memory(free: Capacity, nodes: IntArray | slice) -> IntArray:
    """Return the MiB that a job may hold on each node; without a limit, the largest amount."""
    memory: IntArray = np.minimum(free.memory[nodes], LARGEST_COUNT)
    return memory


def totals_of(choice: GresChoice, free: Capacity, nodes: IntArray) -> tuple[IntArray, ...]:
    """Return what some nodes have of each gres asked for over all nodes; shape (nodes,) each."""
    none = np.zeros(len(nodes), np.int64)
    return tuple(free.gres[kind][nodes] if kind in free.gres else none for kind, _, _, _ in choice.total)


class NodeRuns(NamedTuple):
    """Maximal runs of neighbours among some nodes; shape (runs,) each but the last.

    Attributes:
        start: the place of each run's first node; ``length``: its nodes; ``units``: theirs.
        most: the nodes of the longest run, and the units of the richest.
        before: the units of the nodes before each, and of all; shape (nodes + 1,).
    """

    start: IntArray
    length: IntArray
    units: IntArray
    most: tuple[int, int]
    before: IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidates:
    """The nodes that jobs of one shape may use now.

    Attributes:
        variant, choice: how the request is read.
        nodes: usable nodes, ascending, shape (m,); units: what each could give, shape (n,).
        most_units: what the richest k of them could give together, shape (m + 1,); ``most_gres``:
            the same of each gres asked for over all nodes.
    """

    variant: Variant
    choice: GresChoice
    nodes: IntArray
    units: IntArray
    most_units: IntArray
    most_gres: tuple[IntArray, ...]

    def asked(self, demand: Demand) -> Reading:
        """Return a job's request read in this way."""
        return Reading(demand, self.variant, self.choice)

    def could_hold(self, demand: Demand, leaf: IntArray | None = None) -> bool:
        """Return whether nodes, cores and gres are enough for a job: in any place, or together.

        ``leaf``: the leaf switch of each node, shape (n,), for jobs on few of them; None: any.
        """
        if demand.contiguous and not could_stand(self._runs, demand, self.variant):
            return False
        fewest, count = demand.fewest_nodes, len(self.nodes)
        most = most_nodes(demand, self.variant, count)
        if most < fewest or int(self.most_units[most]) < (demand.units or 0):
            return False
        totals = zip(self.choice.total, self.most_gres, strict=True)
        if any(amounts[most] < low for (_, _, low, _), amounts in totals):
            return False
        if len(demand.required) and not np.isin(demand.required, self.nodes).all():
            return False
        if leaf is not None and demand.max_switches is not None:
            below = leaf[self.nodes]
            of_leaves = np.stack([np.bincount(below), np.bincount(below, self.units[self.nodes])])
            together = np.sort(of_leaves)[:, ::-1][:, : demand.max_switches].sum(axis=1)
            if (together < (fewest, demand.units or 0)).any():
                return False
        return True

    @cached_property
    def _runs(self) -> NodeRuns:
        return runs_of(UsableNodes(self.nodes, self.units[self.nodes]))


def runs_of(found: UsableNodes) -> NodeRuns:
    """Return the runs of neighbours of some nodes, which are ascending."""
    nodes, before = found.nodes, sums_before(found.units)
    inner = (nodes[1:] - nodes[:-1] != 1).nonzero()[0] + 1
    ends = np.concatenate([[0], inner, [len(nodes)]]) if len(nodes) else np.zeros(1, np.int64)
    length, units = ends[1:] - ends[:-1], before[ends[1:]] - before[ends[:-1]]
    most = int(length.max(initial=0)), int(units.max(initial=0))
    return NodeRuns(ends[:-1], length, units, most, before)


def could_stand(runs: NodeRuns, demand: Demand, variant: Variant) -> bool:
    """Return whether one of some runs of neighbours holds a job that wants neighbours."""
    fewest, wanted = demand.fewest_nodes, demand.units or 0
    if fewest > runs.most[0] or wanted > runs.most[1]:
        return False
    most = most_nodes(demand, variant, len(runs.before) - 1)
    if most >= runs.most[0]:
        return bool(((runs.length >= fewest) & (runs.units >= wanted)).any())
    # From each node on as many as it may have, or as there are.
    start = np.arange(len(runs.before) - 1)
    end = np.minimum(start + most, np.repeat(runs.start + runs.length, runs.length))
    return bool(((end - start >= fewest) & (runs.before[end] - runs.before[start] >= wanted)).any())


def _of_richest(amounts: IntArray) -> IntArray:
    """Return what the richest k of m nodes have together, shape (m + 1,)."""
    return sums_before(np.sort(amounts)[::-1])


def most_by_units(demand: Demand) -> int:
    """Return on how many nodes a job's units can stand at most: each holds the least of them."""
    if demand.units is None or demand.exclusive:
        return _ANY_COUNT
    return demand.units // max(demand.least, 1)


def most_nodes(demand: Demand, variant: Variant, usable: int) -> int:
    """Return on how many of so many nodes a job can stand at most."""
    span = demand.node_counts
    most = usable if span is None else span.maximum
    return min(most, variant.max_nodes, usable, most_by_units(demand))


class FreeView:
    """Free resources as one pass sees them; nodes for a job shape are found once for each state."""

    def __init__(self, columns: Columns, free: Capacity) -> None:
        self.columns = columns
        self.free = free
        self._known: dict[object, list[Candidates]] = {}

    def candidates(self, demand: Demand) -> list[Candidates]:
        """Return what a job may use in each of its variants, at the fewest gres of its ranges."""
        key = node_key(demand)
        if key not in self._known:
            self._known[key] = [self._of(asked) for asked in fewest_gres(demand)]
        return self._known[key]

    def _of(self, asked: Reading) -> Candidates:
        mask, units = usable(asked, self.free, self.columns)
        nodes = np.flatnonzero(mask)
        totals = totals_of(asked.choice, self.free, nodes)
        return Candidates(
            variant=asked.variant,
            choice=asked.choice,
            nodes=nodes,
            units=units,
            most_units=_of_richest(units[nodes]),
            most_gres=tuple(map(_of_richest, totals)),
        )

    def could_hold(self, demand: Demand, leaf: IntArray | None = None) -> bool:
        """Return whether there are enough nodes and cores for a job in one of its variants."""
        return any(found.could_hold(demand, leaf) for found in self.candidates(demand))


class GuardedViews:
    """What jobs may take next to reservations: of nodes of those that a job runs into, the room.

    Cores that the columns keep for others are left as well.
    """

    def __init__(self, columns: Columns, free: Capacity, guards: Sequence[HeldBack] = ()) -> None:
        self.free = free
        self._columns = columns
        self._guards: tuple[HeldBack, ...] = (*guards, *columns.kept)
        self._views: dict[tuple[bool | str, ...], FreeView] = {}
        #: Whether nodes have enough for all that ask for the same, with the same kept from them.
        self._enough: dict[object, bool] = {}

    @cached_property
    def cores(self) -> int:
        """Free cores of all nodes: where a moment to come is foreseen a node may lack some."""
        return int(np.maximum(self.free.cores, 0).sum())

    def limits(self, demand: Demand) -> tuple[bool | str, ...]:
        """Return the reservations and kept cores that limit a job; equal answers allow the same."""
        return tuple(guard.limits(demand.job) for guard in self._guards) if self._guards else ()

    def of(self, demand: Demand) -> FreeView:
        """Return what a job may take."""
        limits = self.limits(demand)
        if limits not in self._views:
            self._views[limits] = FreeView(self._columns, capped_by(self._guards, self.free, demand.job))
        return self._views[limits]

    def could_start(self, demand: Demand) -> bool:
        """Return whether counts are enough for a job alone, also for resources off the nodes."""
        key = (demand.form, self.limits(demand))
        if key not in self._enough:
            self._enough[key] = demand.fewest_cores <= self.cores and self.of(demand).could_hold(demand)
        return self._enough[key] and self._columns.pools.hold(demand.job)

    def startable(self, demands: Collection[Demand]) -> set[str]:
        """Return the ids of the jobs that ``could_start``."""
        if self._guards or not self._columns.pools.are_empty:
            return {demand.job.id for demand in demands if self.could_start(demand)}
        # Nothing but what they ask for tells jobs apart: one of each form is looked at.
        one_of = {demand.form: demand for demand in demands}
        forms = {form for form, demand in one_of.items() if self.could_start(demand)}
        return {demand.job.id for demand in demands if demand.form in forms}


def node_key(demand: Demand) -> tuple[object, ...]:
    """Return what decides which nodes a job may use: equal for all that ask alike for each node."""
    return (id(demand.variants), *demand.of_each_node)


def most_at_once(demand: Demand, view: FreeView) -> int:
    """Return a number of jobs like this one that cannot be exceeded on what a view has free."""
    return sum(_most_among(demand, found, view) for found in view.candidates(demand))


def _most_among(demand: Demand, found: Candidates, view: FreeView) -> int:
    nodes, units, span = found.nodes, found.units[found.nodes], demand.node_counts
    each = demand.least
    if span is not None and span.maximum == 1:
        each = max(each, demand.units or 0)
    most = np.minimum(units // each, 1) if demand.exclusive else units // each
    if demand.memory_per_node:
        most = np.minimum(most, view.free.memory[nodes] // demand.memory_per_node)
    for kind, _, count in found.choice.per_node:
        if count:
            most = np.minimum(most, view.free.gres[kind][nodes] // count)
    bound = int(most.sum()) // demand.fewest_nodes
    return min(bound, int(units.sum()) // demand.units) if demand.units and not demand.exclusive else bound


class CandidateCache:
    """Nodes in snapshot order, by what jobs ask of each.

    Args:
        columns: the machine's.
        free: what is free: it may only get less.
    """

    def __init__(self, columns: Columns, free: Capacity) -> None:
        self._columns = columns
        self._free = free
        # Beside the nodes the variant: no other can have its identity while it lives.
        self._open: dict[object, tuple[Variant, IntArray]] = {}
        #: Since the last start the same for all that ask alike of each node.
        self._found: dict[object, UsableNodes] = {}
        self._runs: dict[object, NodeRuns] = {}

    def less_is_free(self) -> None:
        """Look at nodes again: a job has started."""
        self._found.clear()
        self._runs.clear()

    def all(self, asked: Reading) -> UsableNodes:
        """Return all nodes that the job could use."""
        key = key_of(asked)
        if key not in self._found:
            left = usable_nodes(asked, self._free, self._columns, self._known(asked))
            self._open[key] = asked.variant, left.nodes
            self._found[key] = left
        return self._found[key]

    def runs(self, asked: Reading) -> NodeRuns:
        """Return the runs of neighbours among them."""
        key = key_of(asked)
        if key not in self._runs:
            self._runs[key] = runs_of(self.all(asked))
        return self._runs[key]

    def first(self, asked: Reading, least: int, units: int) -> UsableNodes | None:
        """Return the first so many nodes with so many units together; None: there are too few."""
        nodes = self._known(asked)
        found: list[UsableNodes] = []
        count = have = looked = 0
        size = max(_FIRST_LOOK, 2 * least)
        while (count < least or have < units) and looked < len(nodes):
            some = usable_nodes(asked, self._free, self._columns, nodes[looked : looked + size])
            found.append(some)
            count += len(some.nodes)
            have += int(some.units.sum())
            looked, size = min(looked + size, len(nodes)), 2 * size
        if 2 * count < looked:
            left = np.concatenate([*(some.nodes for some in found), nodes[looked:]])
            self._open[key_of(asked)] = asked.variant, left
        if not found or count < least or have < units:
            return None
        return found[0] if len(found) == 1 else UsableNodes(*map(np.concatenate, zip(*found, strict=True)))

    def _known(self, asked: Reading) -> IntArray:
        key = key_of(asked)
        if key not in self._open:
            self._open[key] = (asked.variant, np.flatnonzero(asked.variant.eligible))
        return self._open[key][1]


def key_of(asked: Reading) -> tuple[object, ...]:
    """Return everything that ``usable`` depends on beside what is free."""
    return (id(asked.variant.eligible), asked.choice.per_node, *asked.demand.of_each_node)
