"""The nodes that a job gets: first, best and next fit along the nodes, and Slurm's choice.

Every selection takes the free resources and returns nodes; cores are then distributed over them as
in the auctions' bids. Jobs whose nodes must be contiguous, below few switches, or hold named nodes
or a total of some gres are looked for run by run of usable nodes (bidgen); all others node by node.

Slurm's is select/cons_tres with topology/tree, as Slurm 22.05's own log shows it; docs/nodes.md
(backfill-slurm) has its rules. On blocks, rings and three-dimensional tori the choice is that of
topology/units.py.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...bidgen.assemble import EVEN, PACK, mode_of
from ...bidgen.candidates import Candidates, FreeView, most_by_units, most_nodes, totals_of
from ...bidgen.first_fit import placement_on
from ...bidgen.generate import place_alone
from ...bidgen.job_windows import legal_sets, required_sets
from ...bidgen.windows import (
    Field,
    Windows,
    fewest_windows,
    field_of,
    fixed_windows,
    node_counts,
)
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import BoolArray, IntArray, nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...topology.tree import Topology


class Selector:
    """Finds an allocation for a job in a view."""

    def __init__(self, columns: Columns, topology: Topology) -> None:
        self._columns = columns
        self.topology = topology

    def allocation(self, demand: Demand, view: FreeView) -> Allocation | None:
        """Return where a job starts, within what limits and licences leave; None: it does not fit.

        Where all its nodes are empty it starts wherever the auctions would let it: a habit that
        misses the only place there is must not let the job wait for ever.
        """
        pools = view.columns.pools
        allocation = self._by_habit(demand, view)
        if allocation is not None and not pools.hold(demand.job, allocation.held):
            # Limits may have room for fewer nodes, with more on each.
            most = pools.most_nodes(demand.job, len(allocation.nodes) - 1)
            fewer = tuple(replace(one, max_nodes=min(one.max_nodes, most)) for one in demand.variants)
            allocation = self._by_habit(replace(demand, variants=fewer), FreeView(view.columns, view.free))
        if allocation is None and is_idle(demand, view):
            allocation = place_alone(demand, replace(view.columns, free=view.free), self.topology)
        is_within = allocation is None or pools.hold(demand.job, allocation.held)
        return allocation if is_within else None

    def _by_habit(self, demand: Demand, view: FreeView) -> Allocation | None:
        for found in view.candidates(demand):
            if not found.could_hold(demand):
                continue
            nodes = self._nodes(demand, found, view)
            if nodes is not None:
                units, asked, mode = found.units[nodes], found.asked(demand), self.mode(demand)
                return placement_on(nodes, units, asked, mode, self._columns, view.free).allocation()
        return None

    def mode(self, demand: Demand) -> int:
        """Return how a job's cores are put on its nodes: as the auctions' bids put them."""
        return mode_of(demand)

    def _nodes(self, demand: Demand, found: Candidates, view: FreeView) -> IntArray | None:
        if demand.is_tied or found.choice.total:
            return self._in_windows(demand, found, view)
        return self.scattered(demand, found)

    def _in_windows(self, demand: Demand, found: Candidates, view: FreeView) -> IntArray | None:
        """Return the preferred window that holds the job."""
        nodes = found.nodes
        if demand.max_switches is not None:
            nodes = nodes[np.argsort(self.topology.rank[nodes])]
        totals = totals_of(found.choice, view.free, nodes)
        field = field_of(nodes, found.units[nodes], totals, self.topology)
        if demand.in_units:
            return next(legal_sets(field, found.asked(demand)), None)
        for windows in self._windows(field, demand, found):
            if len(windows):
                best = self.best_window(field, windows)
                start = int(windows.start[best])
                return field.nodes[start : start + int(windows.length[best])]
        if len(demand.required) and not demand.contiguous:
            return next(required_sets(field, found.asked(demand), 1, 0), None)
        return None

    def _windows(self, field: Field, demand: Demand, found: Candidates) -> list[Windows]:
        if demand.node_counts is None:
            windows = fewest_windows(field, found.asked(demand))
            return [windows.only(windows.length <= found.variant.max_nodes)]
        counts = sorted(node_counts(found.asked(demand), len(field)))
        return [fixed_windows(field, count, found.asked(demand)) for count in counts]

    def best_window(self, field: Field, windows: Windows) -> int:
        """Return the place of the window to take: the first."""
        del field, windows
        return 0

    def scattered(self, demand: Demand, found: Candidates) -> IntArray | None:
        """Return the first nodes that hold the job."""
        return take_in_order(demand, found, found.nodes)


class BestFitNodes(Selector):
    """Nodes with the least to spare first; of contiguous runs the shortest that holds the job."""

    def best_window(self, field: Field, windows: Windows) -> int:
        """Return the window in the shortest run of usable nodes."""
        run = field.run_last[windows.start + windows.length - 1] - field.run_first[windows.start]
        return int(np.argmin(run))

    def scattered(self, demand: Demand, found: Candidates) -> IntArray | None:
        """Return the fullest nodes that hold the job."""
        order = found.nodes[np.argsort(found.units[found.nodes], kind="stable")]
        return take_in_order(demand, found, order)


class NextFitNodes(Selector):
    """First fit from where the last job was put, around the end of the nodes."""

    def __init__(self, columns: Columns, topology: Topology) -> None:
        super().__init__(columns, topology)
        self._from = 0

    def best_window(self, field: Field, windows: Windows) -> int:
        """Return the first window from the last job's end on."""
        place = int(np.searchsorted(field.nodes[windows.start], self._from))
        place = place if place < len(windows) else 0
        self._from = int(field.nodes[windows.start[place]]) + int(windows.length[place])
        return place

    def scattered(self, demand: Demand, found: Candidates) -> IntArray | None:
        """Return the first nodes from the last job's end on that hold the job."""
        order = np.roll(found.nodes, -int(np.searchsorted(found.nodes, self._from)))
        nodes = take_in_order(demand, found, order)
        if nodes is not None:
            self._from = int(nodes[-1]) + 1
        return nodes


def is_idle(demand: Demand, view: FreeView) -> bool:
    """Return whether all nodes that a job may use are idle and unreserved; down nodes apart."""
    columns = view.columns
    empty = nothing_held(columns.total, view.free) | ~columns.takes_jobs
    return all(bool(empty[variant.eligible].all()) for variant in demand.variants)


def take_in_order(demand: Demand, found: Candidates, order: IntArray) -> IntArray | None:
    """Return the first of ``order`` that hold the job, else its richest, None when neither do."""
    if demand.node_counts is None:
        most = most_nodes(demand, found.variant, len(order))
        for nodes in (order, order[np.argsort(-found.units[order], kind="stable")]):
            count = int(np.searchsorted(np.cumsum(found.units[nodes]), demand.units or 0)) + 1
            if count <= most:
                return nodes[:count]
        return None
    for count in node_counts(found.asked(demand), len(order)):
        nodes = order[:count]
        if demand.units is None or int(found.units[nodes].sum()) >= demand.units:
            return nodes
        # In their order; among equals the first.
        richest = np.sort(np.argsort(-found.units[order], kind="stable")[:count])
        if int(found.units[order[richest]].sum()) >= demand.units:
            return order[richest]
    return None


#: ``--selection`` → how nodes are chosen.
SELECTIONS: dict[str, type[Selector]] = {"first": Selector, "best": BestFitNodes, "next": NextFitNodes}


class SwitchFit(Selector):
    """The lowest switch with enough nodes, then the leaf with the fewest that do, and so on.

    Contiguous jobs, and machines without switches, go by runs of usable nodes instead: the run with
    the fewest free cores that holds the job. Where the nodes found lack cores, those with the
    fewest are left out, and the choice is made again (Slurm's guard against a knapsack).
    """

    def __init__(self, columns: Columns, topology: Topology) -> None:
        super().__init__(columns, topology)
        leaves, first = np.unique(topology.leaf, return_index=True)
        self._leaf_of = np.searchsorted(leaves, topology.leaf)
        #: Switches above each leaf, from itself up to the root, shape (leaves, levels).
        self._above = topology.path[first][:, ::-1]
        self._above_list: list[list[int]] = self._above.tolist()
        self._leaves = len(leaves)
        self._steps: dict[int, npt.NDArray[np.int16]] = {}

    def best_window(self, field: Field, windows: Windows) -> int:
        """Return the window of the lowest level, in the shortest run of usable nodes."""
        run = field.run_last[windows.start + windows.length - 1] - field.run_first[windows.start]
        return int(np.lexsort((run, windows.level))[0])

    def _nodes(self, demand: Demand, found: Candidates, view: FreeView) -> IntArray | None:
        if self.topology.units is not None and demand.node_counts is not None:
            nodes = self.topology.units.chosen(demand, found.nodes, demand.node_counts.minimum)
            if nodes is not None and int(found.units[nodes].sum()) >= (demand.units or 0):
                return nodes
        is_near = demand.max_switches is not None or demand.in_units
        if is_near or len(demand.required) or found.choice.total:
            return self._in_windows(demand, found, view)
        need = _Need(demand, found)
        for nodes in need.fewer_and_fewer(found):
            units = found.units[nodes]
            if demand.contiguous or self.topology.is_linear:
                runs = _Runs(nodes, units)
                if demand.contiguous and not runs.enough(need.units, need.fewest).any():
                    break
                chosen = runs.taken_for(need)
            else:
                chosen = self._below_switches(need, nodes, units)
            if chosen is not None:
                return chosen
        return None

    def mode(self, demand: Demand) -> int:
        """Return that nodes are filled one by one where a job leaves open what each gives."""
        mode = mode_of(demand)
        return PACK if mode == EVEN and demand.units is not None else mode

    def _below_switches(self, need: "_Need", nodes: IntArray, units: IntArray) -> IntArray | None:
        """Return nodes leaf after leaf, each the best fit for the nodes that are still missing."""
        choice = _Choice(need)
        order = np.argsort(self._leaf_of[nodes], kind="stable")
        ends = np.cumsum(np.bincount(self._leaf_of[nodes], minlength=self._leaves)).tolist()
        count = self._usable_below(nodes)
        distance = np.zeros(self._leaves, np.int64)
        open_ = [leaf for leaf, below in enumerate(count) if below[0]]
        while choice.is_incomplete and open_:
            leaf = _best_leaf(self._above_list, count, open_, distance.tolist(), choice.nodes)
            here = order[ends[leaf - 1] if leaf else 0 : ends[leaf]]
            choice.take(nodes[here], units[here])
            open_.remove(leaf)
            if choice.is_incomplete:
                distance += self._steps_from(leaf)
        return choice.chosen()

    def _usable_below(self, nodes: IntArray) -> list[list[int]]:
        """Return how many of ``nodes`` stand below each leaf and the switches above it."""
        rank = np.sort(self.topology.rank[nodes])
        low, high = np.searchsorted(rank, self.topology.low), np.searchsorted(rank, self.topology.high)
        counts: list[list[int]] = (high - low)[self._above].tolist()
        return counts

    def _steps_from(self, leaf: int) -> npt.NDArray[np.int16]:
        """Return the steps from a leaf to each other, up and down the tree."""
        if leaf in self._steps:
            return self._steps[leaf]
        depth, here = self.topology.depth, self._above[leaf]
        # Of the switches above both, the lowest: all from there up to the root are above both.
        different = (self._above != here).sum(axis=1)
        common = here[np.minimum(different, len(here) - 1)]
        steps: IntArray = depth[self._above[:, 0]] + depth[here[0]] - 2 * depth[common]
        self._steps[leaf] = steps.astype(np.int16)
        return self._steps[leaf]


class _Need:
    """What a job asks for, as Slurm's selection counts it."""

    def __init__(self, demand: Demand, found: Candidates) -> None:
        span, usable = demand.node_counts, len(found.nodes)
        self.units = demand.units or 0
        self.fewest = demand.fewest_nodes
        #: Of a range Slurm takes as many as it can get and as the job has tasks for, of a job
        #: without a node count as few as hold it.
        self.wanted = self.fewest
        if span is not None:
            most = min(span.maximum, usable, most_by_units(demand))
            self.wanted = max(most, self.fewest)
        self.most = min(found.variant.max_nodes, usable if span is None else span.maximum)
        self.least = max(demand.least, 1)
        self.contiguous = demand.contiguous
        self.spreads = demand.exclusive or demand.units is None

    def fewer_and_fewer(self, found: Candidates) -> Iterator[IntArray]:
        """Yield the usable nodes, then without those that have 1 unit, 2 units at most, and so on.

        Never fewer than the job's nodes are left.
        """
        nodes = found.nodes
        if self.most == 1:
            nodes = nodes[found.units[nodes] >= self.units]
        yield nodes
        for units in np.unique(found.units[nodes]).tolist()[:-1]:
            if len(nodes) <= self.fewest:
                return
            poor = np.flatnonzero(found.units[nodes] <= units)[: len(nodes) - self.fewest]
            nodes = np.delete(nodes, poor)
            yield nodes


class _Choice:
    """Nodes taken so far for one job, and what is still missing."""

    def __init__(self, need: _Need) -> None:
        self.nodes = need.wanted
        self.units = need.units
        self._need = need
        self._room = need.most
        self.fewest = need.fewest
        self._taken: list[IntArray] = []

    @property
    def is_incomplete(self) -> bool:
        """Return whether something is missing that more nodes could give."""
        return self._room > 0 and (self.nodes > 0 or self.units > 0)

    def take(self, nodes: IntArray, units: IntArray) -> None:
        """Take nodes from the first on, as many as are missing."""
        enough = int(np.searchsorted(np.cumsum(units), self.units)) + 1 if self.units > 0 else 0
        nodes = nodes[: min(max(enough, self.nodes), self._room)]
        self._taken.append(nodes)
        self.nodes -= len(nodes)
        self.fewest -= len(nodes)
        self._room -= len(nodes)
        # A node leaves the least for each one to come.
        kept = max(self.fewest, 0) * self._need.least if self.units > 0 else 0
        self.units = max(self.units - int(units[: len(nodes)].sum()), kept)

    def take_run(self, nodes: IntArray, units: IntArray) -> None:
        """Take nodes of one run: if one node will do, the fullest that holds all still missing."""
        alone = np.flatnonzero(units >= self.units) if self.nodes <= 1 else np.zeros(0, np.int64)
        if len(alone):
            best = alone[np.argmin(units[alone])]
            nodes, units = nodes[best : best + 1], units[best : best + 1]
        self.take(nodes, units)

    def chosen(self) -> IntArray | None:
        """Return all that was taken, None where it does not hold the job."""
        if self.fewest > 0 or self.units > 0 or not self._taken:
            return None
        nodes = np.concatenate(self._taken)
        # What each node gives at the least may be more than a job without a node count asks for.
        is_too_many = not self._need.spreads and len(nodes) * self._need.least > self._need.units
        return None if is_too_many else nodes


class _Runs:
    """Runs of consecutive usable nodes: where each starts, its nodes and its units."""

    def __init__(self, nodes: IntArray, units: IntArray) -> None:
        self._nodes, self._units = nodes, units
        begins = np.ones(len(nodes), np.bool_)
        begins[1:] = nodes[1:] - nodes[:-1] != 1
        self._starts = np.flatnonzero(begins)
        self._ends = np.append(self._starts[1:], len(nodes))
        self._sums = np.add.reduceat(units, self._starts) if len(nodes) else self._starts
        self._is_open = np.ones(len(self._starts), np.bool_)

    def enough(self, units: int, nodes: int) -> BoolArray:
        """Return which runs not taken yet have at least these units and nodes."""
        return self._is_open & (self._sums >= units) & (self._ends - self._starts >= nodes)

    def taken_for(self, need: _Need) -> IntArray | None:
        """Return nodes of the run of fewest units that will do, or of several, largest first."""
        choice = _Choice(need)
        while choice.is_incomplete and self._is_open.any():
            enough = self.enough(choice.units, choice.fewest)
            if enough.any():
                best = int(np.argmin(np.where(enough, self._sums, np.iinfo(np.int64).max)))
            else:
                best = int(np.argmax(np.where(self._is_open, self._sums, -1)))
            here = slice(int(self._starts[best]), int(self._ends[best]))
            choice.take_run(self._nodes[here], self._units[here])
            self._is_open[best] = False
            if need.contiguous:
                break
        return choice.chosen()


def _best_leaf(
    above: list[list[int]], count: list[list[int]], open_: list[int], distance: list[int], missing: int
) -> int:
    """Return the leaf to take next, looking at one after another.

    A leaf displaces the best when it is nearer to those taken and no worse, or as near and better.
    """
    best = open_[0]
    for leaf in open_:
        if distance[leaf] > distance[best] or leaf == best:
            continue
        if missing <= 1:
            # Any open leaf has enough: true for most jobs by cores alone, and for all at the end.
            better = (count[leaf][0] < count[best][0]) - (count[leaf][0] > count[best][0])
        else:
            better = _compared(count[leaf], count[best], above[leaf], above[best], missing)
        if better > 0 or (better == 0 and distance[leaf] < distance[best]):
            best = leaf
    return best


def _compared(one: list[int], other: list[int], above: list[int], others: list[int], missing: int) -> int:
    """Return 1 when the first leaf is better, −1 when the other is, 0 for neither.

    From the leaves up to where either has enough: there the fewer the better; below one switch that
    is the first to have enough, the more the better.

    ``one`` and ``other`` are the usable nodes below each leaf and each switch above it, ``above``
    and ``others`` those switches; ``missing`` nodes are still needed.
    """
    for step, (mine, its) in enumerate(zip(one, other, strict=True)):
        if mine >= missing and its >= missing:
            return (mine < its) - (mine > its)
        if mine >= missing or its >= missing:
            return 1 if mine >= missing else -1
        if step + 1 == len(above) or above[step + 1] == others[step + 1]:
            return (mine > its) - (mine < its)
    return 0
