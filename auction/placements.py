"""A bound over all placements: no award is worth more, wherever its jobs are placed.

A bound over bids says nothing about node sets without a bid. This one relaxes IPSCHED (Soner, chapter
3) instead: nodes are not distinguished, only counted. A job takes the fewest cores, gres and memory that it
could hold, and one *slot* for each node on which it needs as much at once: of slots of t cores and h gres a
node has min(⌊free cores / t⌋, ⌊free gres / h⌋), wherever they are. Jobs that want nodes whole share the empty
ones. What jobs ask of switches and neighbours is left out. The linear program over jobs is solved by HiGHS,
and the bound computed from its prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from ..bidgen.candidates import GuardedViews
from ..cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Cell, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.pools import fewest
from ..models.search.packing import Packing, packing_from
from ..models.search.prices import dot
from ..models.search.relaxation import Relaxation

#: The largest priority becomes this for the solver.
_SCALE = 1e4
#: How many sizes of slots make rows: the largest ones.
_MOST_SIZES = 40


@dataclass(frozen=True, slots=True)
class Least:
    """The least that a job takes: chunks of cores, nodes with cores and gres on each, and gres in all."""

    chunks: int
    cores: int
    nodes: int
    cores_on_node: int
    gres_on_node: tuple[tuple[str, int], ...]
    gres: tuple[tuple[str, int], ...]


def bound_over_placements(
    demands: Sequence[Demand], columns: Columns, time_limit_s: float
) -> Fraction | int | None:
    """Return a sum of priorities that no award of these jobs exceeds; None without the time for it.

    Args:
        demands: the jobs that wait.
        columns: what is free.
        time_limit_s: seconds for the linear program.
    """
    able = _able(demands, columns)
    everyone = sum((demand.job.priority for demand in able), start=Fraction(0))
    if not able:
        return 0
    largest = float(max(demand.job.priority for demand in able))
    value = np.array([float(demand.job.priority) / largest * _SCALE for demand in able])
    packing = _sum_of_counts(able, columns)
    if not len(packing.capacity):
        return everyone
    relaxed = Relaxation(packing, value).solve(time_limit_s)
    if relaxed is None:
        return None
    # Rounded up by more than floats may have lost.
    found = Fraction(relaxed.bound * (1 + 1e-9) + 1e-6) * Fraction(largest) / Fraction(_SCALE)
    whole = all(Fraction(demand.job.priority).denominator == 1 for demand in able)
    return min(everyone, Fraction(int(found)) if whole else found)


def costs_of_placements(
    demands: Sequence[Demand], worths: FloatArray, columns: Columns, time_limit_s: float
) -> tuple[FloatArray, float] | None:
    """Return what each job would pay at the same program's prices, shape (jobs,), and what is free costs.

    In units of the worths; None where no row is scarce, or there is no time to solve it.
    """
    packing = _sum_of_counts(demands, columns)
    largest = float(worths.max(initial=0.0))
    if not len(packing.capacity) or not largest:
        return None
    relaxed = Relaxation(packing, worths / largest * _SCALE).solve(time_limit_s)
    if relaxed is None:
        return None
    unit = largest / _SCALE
    return packing.cost(relaxed.price) * unit, dot(packing.capacity.astype(np.float64), relaxed.price) * unit


def _able(demands: Sequence[Demand], columns: Columns) -> list[Demand]:
    """Return the jobs that could start alone, by counting."""
    views = GuardedViews(columns, columns.free)
    return [
        demand for demand in demands if columns.pools.hold(demand.job) and views.of(demand).could_hold(demand)
    ]


def _sum_of_counts(demands: Sequence[Demand], columns: Columns) -> Packing:
    """Return the program: a bid for each job, a row for each count that may be scarce."""
    rows = _Rows(columns, [least_of(demand, columns) for demand in demands], demands)
    return packing_from(np.arange(len(demands)), *rows.entries())


def least_of(demand: Demand, columns: Columns) -> Least:
    """Return the least that a job takes, wherever it stands."""
    counts = demand.node_counts
    nodes = 1 if counts is None else counts.minimum
    variant = demand.variants[0]
    if demand.exclusive:
        total = columns.total.cores
        sizes = total[np.logical_or.reduce([one.eligible for one in demand.variants])]
        if demand.units is not None:
            # All cores of its nodes are the job's, and together as many as it asks for.
            most = int(sizes.max(initial=0)) // demand.unit
            nodes = max(nodes, ceil(demand.units / max(most, 1)))
        on_node = int(sizes.min(initial=total.max(initial=1)))
        chunks, cores = nodes, on_node
    elif demand.units_per_node is not None:
        on_node = demand.units_per_node * demand.unit
        if counts is None and demand.units is not None:
            nodes = ceil(demand.units / demand.units_per_node)
        chunks, cores = nodes, on_node
    else:
        on_node = demand.least * demand.unit
        units = nodes * demand.least if demand.units is None else demand.units
        chunks, cores = max(units, nodes * demand.least), demand.unit
    # Where a request can be read in several ways, which gres it takes is open.
    is_one = len(demand.variants) == 1
    on_each = tuple((kind, span.minimum) for kind, _, span in variant.gres if is_one and span.minimum)
    joint = tuple((kind, span.minimum) for kind, _, span in variant.gres_total if is_one and span.minimum)
    in_all = (*((kind, count * nodes) for kind, count in on_each), *joint)
    return Least(chunks, max(cores, 1), nodes, max(on_node, 1), on_each, in_all)


class _Rows:
    """The rows of the linear program: capacities, and what each job takes of them."""

    def __init__(self, columns: Columns, least: Sequence[Least], demands: Sequence[Demand]) -> None:
        self._columns = columns
        self._least = least
        self._demands = demands
        self._capacity: list[int] = []
        self._job: list[int] = []
        self._row: list[int] = []
        self._amount: list[int] = []

    def entries(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return job, row and amount of each entry, and the capacities."""
        for add in (self._cores, self._whole, self._gres, self._slots, self._memory, self._pools):
            add()
        arrays = (self._job, self._row, self._amount, self._capacity)
        job, row, amount, capacity = (np.array(values, np.int64) for values in arrays)
        return job, row, amount, capacity

    def _take(self, capacity: int, amounts: Iterator[tuple[int, int]]) -> None:
        row = len(self._capacity)
        self._capacity.append(max(capacity, 0))
        for job, amount in amounts:
            if amount:
                self._job.append(job)
                self._row.append(row)
                self._amount.append(amount)

    def _mask(self, jobs: Sequence[int]) -> BoolArray:
        """Return the nodes that any of some jobs may use."""
        mask = np.zeros(len(self._columns.names), np.bool_)
        known = {id(self._demands[job].variants): self._demands[job].variants for job in jobs}
        for variant in (variant for variants in known.values() for variant in variants):
            mask |= variant.eligible
        return mask

    def _cores(self) -> None:
        """Σ chunks·⌊cores / t⌋ ≤ Σ ⌊free cores / t⌋ for each size t, over jobs with chunks no smaller."""
        sizes = sorted({1, *(one.cores for one in self._least)}, reverse=True)
        for size in [*sizes[:_MOST_SIZES], 1]:
            jobs = [job for job, one in enumerate(self._least) if one.cores >= size]
            free = self._columns.free.cores[self._mask(jobs)]
            amounts = ((job, self._least[job].chunks * (self._least[job].cores // size)) for job in jobs)
            self._take(int((free // size).sum()), amounts)

    def _whole(self) -> None:
        """Σ nodes ≤ empty nodes, over jobs that want their nodes whole."""
        jobs = [job for job, demand in enumerate(self._demands) if demand.exclusive]
        columns = self._columns
        is_empty = columns.is_empty & (columns.free.cores == columns.total.cores)
        if jobs:
            amounts = ((job, self._least[job].nodes) for job in jobs)
            self._take(int((self._mask(jobs) & is_empty).sum()), amounts)

    def _gres(self) -> None:
        """Σ gres ≤ Σ free gres of each kind."""
        for kind, free in self._columns.free.gres.items():
            counts = [(job, dict(one.gres).get(kind, 0)) for job, one in enumerate(self._least)]
            jobs = [job for job, count in counts if count]
            if jobs:
                self._take(int(free[self._mask(jobs)].sum()), iter(counts))

    def _slots(self) -> None:
        """Σ nodes·min(⌊cores / t⌋, ⌊gres / h⌋) ≤ Σ min(⌊free cores / t⌋, ⌊free gres / h⌋) for all t, h."""
        sizes = {(kind, one.cores_on_node, count) for one in self._least for kind, count in one.gres_on_node}
        for kind, cores, count in sorted(sizes, reverse=True)[:_MOST_SIZES]:
            amounts: list[tuple[int, int]] = []
            for job, one in enumerate(self._least):
                mine = dict(one.gres_on_node).get(kind, 0)
                amounts.append((job, one.nodes * min(one.cores_on_node // cores, mine // count)))
            jobs = [job for job, amount in amounts if amount]
            mask, free = self._mask(jobs), self._columns.free
            slots = np.minimum(free.cores[mask] // cores, free.gres[kind][mask] // count)
            self._take(int(slots.sum()), iter(amounts))

    def _memory(self) -> None:
        """Σ memory ≤ Σ free memory, where every node's is limited."""
        wanted = [
            (
                job,
                demand.memory_per_node * one.nodes + demand.memory_per_core * one.chunks * one.cores,
            )
            for job, (demand, one) in enumerate(zip(self._demands, self._least, strict=True))
        ]
        jobs = [job for job, amount in wanted if amount]
        free = self._columns.free.memory[self._mask(jobs)] if jobs else np.zeros(0, np.int64)
        if len(free) and (free < UNLIMITED_MIB).all():
            self._take(int(free.sum()), iter(wanted))

    def _pools(self) -> None:
        """Take the least of licences, limits and shares."""
        pools = self._columns.pools
        amounts: dict[Cell, list[tuple[int, int]]] = {}
        left: dict[Cell, int] = {}
        for job, demand in enumerate(self._demands):
            for cell, amount in pools.asked(demand.job, fewest(demand.job)):
                amounts.setdefault(cell, []).append((job, amount))
                left[cell] = pools.remaining(cell)
        for cell, entries in amounts.items():
            self._take(left[cell], iter(entries))
