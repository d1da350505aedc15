"""The nodes a job may use now, in scan order, with what its bids need to know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from ..cluster.checks import LARGEST_COUNT
from ..cluster.jobs import Span
from .columns import BoolArray, Capacity, Columns, IntArray
from .demand import Demand, Variant

#: Ranges up to this many counts are tried at every count, wider ones at a few.
_EVERY_COUNT = 8
_SOME_COUNTS = 5
_MOST_CHOICES = 16

#: All nodes.
ALL = slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GresChoice:
    """Counts that a group of bids asks for: on each node, and over all nodes from ``low`` to ``high``."""

    per_node: tuple[tuple[str, str, int], ...]
    total: tuple[tuple[str, str, int, int], ...]


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


def _joint_counts(spans: list[Span]) -> list[tuple[int, ...]]:
    """Return joint counts of several ranges, the largest first; along the diagonal where they are many."""
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


@dataclass(slots=True, eq=False, kw_only=True)
class Field:
    """Usable nodes of one job at one gres choice, in one scan order; arrays of shape (m,) or (m + 1,).

    Attributes:
        nodes: node indices in scan order.
        units: units of cores that each could give (all of the node's when the job is exclusive).
        run: number of the nodeset each stands in: a maximal run consecutive in snapshot order.
        run_first, run_last: positions of the ends of that run.
        sums: prefix sums of ``units``, from 0.
        total_sums: prefix sums of each gres asked for over all nodes, from 0.
        offset: where ``nodes`` starts in the generator's pool, −1 before it is put there.
        windows: what was found of its windows already, by what was asked.
    """

    nodes: IntArray
    units: IntArray
    run: IntArray
    run_first: IntArray
    run_last: IntArray
    sums: IntArray
    total_sums: tuple[IntArray, ...]
    offset: int = -1
    windows: dict[object, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)


def usable(
    demand: Demand,
    variant: Variant,
    choice: GresChoice,
    free: Capacity,
    columns: Columns,
    nodes: IntArray | slice = ALL,
) -> BoolArray:
    """Return which of some nodes could be among the job's: the conditions of a nodeset (section 4.1) too."""
    mask = variant.eligible[nodes] & (units_of(demand, free, columns, nodes) >= demand.least)
    if demand.memory_per_node:
        mask &= free.memory[nodes] >= demand.memory_per_node
    if demand.exclusive:
        mask &= columns.is_empty[nodes] & (free.cores[nodes] == columns.total.cores[nodes])
        if demand.memory_per_unit:
            # The award holds all the node's cores, so its memory is that of all of them.
            mask &= _memory(free, nodes) // demand.memory_per_core >= columns.total.cores[nodes]
    for kind, _, count in choice.per_node:
        if count and kind not in free.gres:
            mask[:] = False
        elif count:
            mask &= free.gres[kind][nodes] >= count
    return mask


def units_of(demand: Demand, free: Capacity, columns: Columns, nodes: IntArray | slice = ALL) -> IntArray:
    """Return the units of cores that each of some nodes could give the job, its memory counted too."""
    if demand.exclusive:
        return columns.total.cores[nodes] // demand.unit
    units = free.cores[nodes] // demand.unit
    if demand.memory_per_unit:
        units = np.minimum(units, _memory(free, nodes) // demand.memory_per_unit)
    return units


def _memory(free: Capacity, nodes: IntArray | slice) -> IntArray:
    """Return the MiB a job may hold on each node: where memory is not limited, what an amount may be."""
    memory: IntArray = np.minimum(free.memory[nodes], LARGEST_COUNT)
    return memory


def field_of(nodes: IntArray, units: IntArray, totals: tuple[IntArray, ...]) -> Field:
    """Return the field of ``nodes`` in the order given, with what each of them gives."""
    breaks = np.ones(len(nodes), np.bool_)
    np.not_equal(nodes[1:], nodes[:-1] + 1, out=breaks[1:])
    run = np.cumsum(breaks) - 1
    firsts = np.flatnonzero(breaks)
    lasts = np.append(firsts[1:], len(nodes)) - 1
    return Field(
        nodes=nodes,
        units=units,
        run=run,
        run_first=firsts[run],
        run_last=lasts[run],
        sums=_sums(units),
        total_sums=tuple(_sums(total) for total in totals),
    )


def totals_of(choice: GresChoice, free: Capacity, nodes: IntArray) -> tuple[IntArray, ...]:
    """Return what some nodes have of each gres that is asked for over all nodes; shape (nodes,) each."""
    none = np.zeros(len(nodes), np.int64)
    return tuple(free.gres[kind][nodes] if kind in free.gres else none for kind, _, _, _ in choice.total)


def _sums(values: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
