"""The nodes that a job gets: first, best and next fit along the nodes (Slurm's choice: slurm_select.py).

Every selection takes the free resources and returns nodes; cores are then distributed over them as in the
auctions' bids. Jobs whose nodes must be contiguous, below few switches, or hold named nodes or a
total of some gres are looked for run by run of usable nodes (bidgen); all others node by node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...bidgen.assemble import mode_of
from ...bidgen.candidates import Candidates, FreeView, most_by_units, totals_of
from ...bidgen.first_fit import placement_on
from ...bidgen.generate import place_alone
from ...bidgen.scattered_sets import legal_sets, required_sets
from ...bidgen.windows import (
    Field,
    WindowRules,
    Windows,
    fewest_windows,
    field_of,
    fixed_windows,
    node_counts,
)
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import IntArray, nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...topology.tree import Topology


class Selector:
    """Finds an allocation for a job in a view."""

    def __init__(self, columns: Columns, topology: Topology) -> None:
        self._columns = columns
        self.topology = topology
        self._rules = WindowRules(topology=topology, use_switches=False)

    def allocation(self, demand: Demand, view: FreeView) -> Allocation | None:
        """Return where a job starts, None when it does not fit.

        Where all its nodes are empty it starts wherever the auctions would let it: a habit that misses the
        only place there is must not let the job wait for ever.
        """
        allocation = self._by_habit(demand, view)
        if allocation is None and is_idle(demand, view):
            return place_alone(demand, replace(view.columns, free=view.free), self.topology)
        return allocation

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
        field = field_of(nodes, found.units[nodes], totals)
        if demand.in_units:
            return next(legal_sets(field, found.asked(demand), self.topology), None)
        for windows in self._windows(field, demand, found):
            if len(windows):
                best = self.best_window(field, windows)
                start = int(windows.start[best])
                return field.nodes[start : start + int(windows.length[best])]
        if len(demand.required) and not demand.contiguous:
            sets = required_sets(field, found.asked(demand), self._rules, 1, 0)
            return next(iter(sets), None)
        return None

    def _windows(self, field: Field, demand: Demand, found: Candidates) -> list[Windows]:
        if demand.node_counts is None:
            windows = fewest_windows(field, found.asked(demand), self._rules)
            return [windows.only(windows.length <= found.variant.max_nodes)]
        counts = sorted(node_counts(found.asked(demand), len(field)))
        return [fixed_windows(field, count, found.asked(demand), self._rules) for count in counts]

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
    """Return whether nothing is in use or kept on any node that a job may use; nodes that are down apart."""
    columns = view.columns
    empty = nothing_held(columns.total, view.free) | ~columns.takes_jobs
    return all(bool(empty[variant.eligible].all()) for variant in demand.variants)


def take_in_order(demand: Demand, found: Candidates, order: IntArray) -> IntArray | None:
    """Return the first of ``order`` that hold the job, else its richest, None when neither do."""
    if demand.node_counts is None:
        most = min(len(order), found.variant.max_nodes, most_by_units(demand))
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
