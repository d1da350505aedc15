"""The nodes that jobs may use now, found once for all jobs that ask alike for each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .columns import Capacity, Columns, IntArray
from .demand import Demand, Variant
from .families.shares import KeptCores
from .fields import GresChoice, gres_choices, units_of, usable
from .guard import Guard, capped_by

#: More nodes than any machine has.
_ANY_COUNT = 10**9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidates:
    """The nodes that jobs of one shape may use now.

    Attributes:
        variant, choice: how the request is read.
        nodes: usable nodes, ascending, shape (m,); units: what each could give, shape (n,).
        most_units: what the richest k of them could give together, shape (m + 1,).
    """

    variant: Variant
    choice: GresChoice
    nodes: IntArray
    units: IntArray
    most_units: IntArray

    def could_hold(self, demand: Demand) -> bool:
        """Return whether there are enough nodes and cores for a job: wherever they stand, or together."""
        span, count = demand.node_counts, len(self.nodes)
        most = min(self.variant.max_nodes, count if span is None else span.maximum, count)
        most = min(most, most_by_units(demand))
        fewest = 1 if span is None else span.minimum
        if most < fewest or int(self.most_units[most]) < (demand.units or 0):
            return False
        if not demand.contiguous:
            return True
        starts = np.flatnonzero(np.diff(self.nodes, prepend=-2) != 1)
        run_nodes = np.diff(starts, append=count)
        run_units = np.add.reduceat(self.units[self.nodes], starts) if count else starts
        return bool(((run_nodes >= fewest) & (run_units >= (demand.units or 0))).any())


def most_by_units(demand: Demand) -> int:
    """Return on how many nodes a job's units can stand at most: each holds the least of them."""
    if demand.units is None or demand.exclusive:
        return _ANY_COUNT
    return demand.units // max(demand.least, 1)


class FreeView:
    """Free resources as one pass sees them; nodes for jobs of one shape are found once for each state."""

    def __init__(self, columns: Columns, free: Capacity) -> None:
        self.columns = columns
        self.free = free
        self._known: dict[object, list[Candidates]] = {}

    def changed(self) -> None:
        """Forget what was computed: the free resources have changed."""
        self._known.clear()

    def candidates(self, demand: Demand) -> list[Candidates]:
        """Return what a job may use in each of its variants, at the fewest gres of its ranges."""
        key = shape_of(demand)
        if key not in self._known:
            self._known[key] = [self._of(demand, variant) for variant in demand.variants]
        return self._known[key]

    def _of(self, demand: Demand, variant: Variant) -> Candidates:
        choice = gres_choices(variant)[-1]
        mask = usable(demand, variant, choice, self.free, self.columns)
        units = units_of(demand, self.free, self.columns)
        nodes = np.flatnonzero(mask)
        richest = np.concatenate([[0], np.cumsum(np.sort(units[nodes])[::-1])])
        return Candidates(
            variant=variant,
            choice=choice,
            nodes=nodes,
            units=units,
            most_units=richest,
        )

    def could_hold(self, demand: Demand) -> bool:
        """Return whether there are enough nodes and cores for a job: wherever they stand, or together."""
        return any(found.could_hold(demand) for found in self.candidates(demand))


class GuardedViews:
    """What jobs may take beside reservations: of the nodes of those that a job would run into, the room.

    Cores that the columns keep for others are left as well.

    Args:
        columns: the machine's.
        free: what is free now.
        guards: the reservations.
    """

    def __init__(self, columns: Columns, free: Capacity, guards: Sequence[Guard] = ()) -> None:
        self.free = free
        self._columns = columns
        self._guards: tuple[Guard | KeptCores, ...] = (*guards, *columns.kept)
        self._views: dict[tuple[bool | str, ...], FreeView] = {}

    def limits(self, demand: Demand) -> tuple[bool | str, ...]:
        """Return which reservations and kept cores limit a job; jobs with equal answers may take the same."""
        return tuple(guard.limits(demand.job) for guard in self._guards)

    def of(self, demand: Demand) -> FreeView:
        """Return what a job may take."""
        limits = self.limits(demand)
        if limits not in self._views:
            self._views[limits] = FreeView(self._columns, capped_by(self._guards, self.free, demand.job))
        return self._views[limits]


def shape_of(demand: Demand) -> tuple[object, ...]:
    """Return what decides which nodes a job may use: the same for all that ask alike for each node."""
    return (
        id(demand.variants),
        demand.unit,
        demand.least,
        demand.memory_per_node,
        demand.memory_per_unit,
        demand.exclusive,
    )


def most_at_once(demand: Demand, view: FreeView) -> int:
    """Return a number of jobs like this one that cannot be exceeded on what a view has free."""
    return sum(_most_among(demand, found, view) for found in view.candidates(demand))


def _most_among(demand: Demand, found: Candidates, view: FreeView) -> int:
    nodes, units, span = found.nodes, found.units[found.nodes], demand.node_counts
    fewest = 1 if span is None else span.minimum
    each = demand.units_per_node or demand.least
    if span is not None and span.maximum == 1:
        each = max(each, demand.units or 0)
    most = np.minimum(units // each, 1) if demand.exclusive else units // each
    if demand.memory_per_node:
        most = np.minimum(most, view.free.memory[nodes] // demand.memory_per_node)
    for kind, _, count in found.choice.per_node:
        if count:
            most = np.minimum(most, view.free.gres[kind][nodes] // count)
    bound = int(most.sum()) // fewest
    return min(bound, int(units.sum()) // demand.units) if demand.units and not demand.exclusive else bound
