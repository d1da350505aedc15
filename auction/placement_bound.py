"""A bound over all placements: no award is worth more, wherever its jobs are placed.

A bound over bids says nothing about node sets without a bid. This one relaxes IPSCHED (Soner,
chapter 3) instead: nodes are not distinguished, only counted. A job takes the fewest cores, gres
and memory that it could hold, and *slots*: a node has min(⌊free cores / t⌋, ⌊free gres / h⌋) slots
of t cores and h gres. A job of many cores on few nodes needs some nodes with more than t free
cores. Jobs that want nodes whole share the empty ones. A *run* is a maximal set of consecutive
nodes that a job could use; a job that wants neighbours stands in one run, so each run holds only
whole jobs. What jobs ask of switches is left out. The linear program over jobs is solved by HiGHS;
the bound is computed from its prices, then lowered by how many jobs could start at most. The same
program in whole numbers chooses jobs for an auction, beside the first reservation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from ..bidgen.candidates import GuardedViews, UsableNodes, most_nodes, runs_of
from ..bidgen.first_fit import Cluster
from ..cluster.resources.capacity import UNLIMITED_MIB, BoolArray, FloatArray, IntArray, Resource
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.resources.pools import fewest
from ..models.model import has_one_worth, worth_of_start
from ..models.search.bounding import Relaxation, dot
from ..models.search.packing import Packing, Worth, packing_from
from ..models.search.proving import proved_soon
from ..models.solve.lexicographic import BoundByNumber, integer_weights

#: Above this a sum of weights is refused as one objective of floats: these hold not every integer.
LARGEST_SUM = 2**53
#: The largest priority becomes this for the solver.
_SCALE = 1e4
#: How many sizes make rows of a kind: the largest ones.
_MOST_SIZES = 40


@dataclass(frozen=True, slots=True)
class Least:
    """The least that a job takes: chunks of cores, nodes, cores and gres on each, gres in all."""

    chunks: int
    cores: int
    nodes: int
    cores_on_node: int
    gres_on_node: tuple[tuple[str, int], ...]
    gres: tuple[tuple[str, int], ...]


def bound_over_placements(
    demands: Sequence[Demand], columns: Columns, time_limit_s: float
) -> Fraction | int | None:
    """Return a sum of priorities that no award of these jobs exceeds; None if time is short."""
    views = GuardedViews(columns, columns.free)
    able = [demand for demand in demands if views.could_start(demand)]
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
    priorities = [Fraction(demand.job.priority) for demand in able]
    best = min(everyone, Fraction(int(found)) if whole else found)
    return BoundByNumber(priorities, np.arange(len(able))).of(best)


def costs_of_placements(
    demands: Sequence[Demand], worths: FloatArray, columns: Columns, time_limit_s: float
) -> tuple[FloatArray, float] | None:
    """Return each job's cost at the same program's prices, shape (jobs,), and that of what is free.

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


def most_valuable(demands: Sequence[Demand], objective: str, cluster: Cluster) -> list[Demand]:
    """Return the jobs that count most of those that the same rows let start; none: no proof soon.

    Every award keeps to the rows, and to those of what the first reservation leaves the jobs that
    would outlast it: no award counts more. Branch and bound proves it, the same on every machine.
    """
    columns = cluster.columns
    is_counted = all(has_one_worth(demand, objective) for demand in demands)
    weights, _ = integer_weights([worth_of_start(demand, objective) for demand in demands])
    if not is_counted or sum(weights) > LARGEST_SUM:
        return []
    packing = _sum_of_counts(demands, columns, cluster.guards[:1])
    found = proved_soon(packing, Worth.scaled(weights, np.zeros(len(demands))))
    return [] if found is None else [demands[place] for place in found.tolist()]


def _sum_of_counts(
    demands: Sequence[Demand], columns: Columns, guards: Sequence[Guard] | None = None
) -> Packing:
    """Return the program: a bid for each job, a row for each count that may be scarce.

    The jobs that a reservation limits, on whatever nodes, have the same rows of what it leaves.
    Where ``guards`` are given, rows are left as they are.
    """
    least = [least_of(demand, columns) for demand in demands]
    job, row, amount, capacity = _Rows(columns, least, demands).entries()
    for guard in guards or ():
        # On more nodes a job may be through before it.
        limited = [guard.limits(one.job) is True and not one.job.limits_by_nodes_s for one in demands]
        places = np.flatnonzero(limited)
        if len(places):
            mine = [demands[place] for place in places.tolist()]
            left = replace(columns, free=guard.capped(columns.free, mine[0].job))
            found = _Rows(left, [least[place] for place in places.tolist()], mine).entries()
            job, row = np.append(job, places[found[0]]), np.append(row, found[1] + len(capacity))
            amount, capacity = np.append(amount, found[2]), np.append(capacity, found[3])
    return packing_from(np.arange(len(demands)), job, row, amount, capacity, reduces=guards is None)


def least_of(demand: Demand, columns: Columns) -> Least:
    """Return the least that a job takes, wherever it stands."""
    nodes = demand.fewest_nodes
    variant = demand.variants[0]
    if demand.exclusive:
        total = columns.total.cores
        sizes = total[demand.eligible]
        if demand.units is not None:
            # All cores of its nodes are the job's, and together as many as it asks for.
            most = int(sizes.max(initial=0)) // demand.unit
            nodes = max(nodes, ceil(demand.units / max(most, 1)))
        on_node = int(sizes.min(initial=total.max(initial=1)))
        chunks, cores = nodes, on_node
    elif demand.units_per_node is not None:
        on_node = demand.units_per_node * demand.unit
        chunks, cores = nodes, on_node
    else:
        on_node = demand.least * demand.unit
        chunks, cores = demand.fewest_cores // demand.unit, demand.unit
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
        self._free = columns.free.cores
        self._least = least
        self._demands = demands
        numbers = [(one.chunks, one.cores, one.nodes, one.cores_on_node) for one in least]
        self._chunks, self._size, self._nodes, self._on_node = np.array(numbers, np.int64).reshape(-1, 4).T
        self._is_contiguous = np.array([demand.contiguous for demand in demands], np.bool_)
        self._rows: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []

    def entries(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return job, row and amount of each entry, and the capacities."""
        for add in (self._cores, self._beyond, self._whole, self._gres, self._slots, self._memory):
            add()
        self._pools()
        none = np.zeros(0, np.int64)
        capacity, row, job, amount = zip((none, none, none, none), *self._rows, strict=True)
        before = np.cumsum([0, *map(len, capacity[:-1])]).tolist()
        rows = [one + start for one, start in zip(row, before, strict=True)]
        return np.concatenate(job), np.concatenate(rows), np.concatenate(amount), np.concatenate(capacity)

    def _take(self, jobs: IntArray, amounts: IntArray, nodes: BoolArray, supply: IntArray) -> None:
        """Σ amounts ≤ Σ supply; of jobs wanting neighbours Σ ⌊amount/u⌋ ≤ Σ ⌊a run's supply/u⌋.

        The second for each u that is the amount of one of these jobs: a run holds only whole jobs.

        Args:
            jobs: their places.
            amounts: what each takes, shape (jobs,).
            nodes: a mask of those where any of them could stand.
            supply: what each of these nodes has.
        """
        self._add(supply.sum()[None], jobs, amounts[:, None])
        own = self._is_contiguous[jobs]
        if own.any() and len(units := _largest(amounts[own])):
            runs = runs_of(UsableNodes(np.flatnonzero(nodes), supply)).units[:, None]
            self._add((runs // units).sum(axis=0), jobs[own], amounts[own, None] // units)

    def _add(self, capacity: IntArray, jobs: IntArray, amounts: IntArray) -> None:
        """Add rows, shape (rows,) and (jobs, rows), but none with enough capacity for all jobs."""
        binds = amounts.sum(axis=0) > capacity
        if binds.any():
            row, place = amounts.T[binds].nonzero()
            amount = amounts.T[binds][row, place]
            self._rows.append((np.maximum(capacity[binds], 0), row, jobs[place], amount))

    def _mask(self, jobs: IntArray) -> BoolArray:
        """Return the nodes that one of some jobs may use, with the cores that it needs on each."""
        mask = np.zeros(len(self._columns.names), np.bool_)
        known = {id(self._demands[job].variants): self._demands[job].variants for job in jobs.tolist()}
        for variant in (variant for variants in known.values() for variant in variants):
            mask |= variant.eligible
        return mask & (self._free >= self._on_node[jobs].min()) if len(jobs) else mask

    def _on_each(self, kind: str) -> IntArray:
        """Return how many gres of a kind each job wants on each of its nodes."""
        return np.array([dict(one.gres_on_node).get(kind, 0) for one in self._least], np.int64)

    def _cores(self) -> None:
        """Σ chunks·⌊cores / t⌋ ≤ Σ ⌊free cores / t⌋ for each t; a chunk's cores are on one node."""
        for size in _largest(self._size).tolist():
            jobs = np.flatnonzero(self._size >= size)
            mask = self._mask(jobs)
            self._take(jobs, self._chunks[jobs] * (self._size[jobs] // size), mask, self._free[mask] // size)

    def _beyond(self) -> None:
        """Σ (cores - nodes·t)⁺ ≤ Σ (free cores - t)⁺ for each t.

        At least so many cores of a job are above its nodes' first t. For each count of gres there
        is such a row over jobs that want it on each node, and the nodes with it.
        """
        usable = len(self._free)
        counts = [max(most_nodes(one, variant, usable) for variant in one.variants) for one in self._demands]
        # Jobs with as much on each node get no less than that on the fewest.
        most = np.where(self._chunks == self._nodes, self._nodes, np.array(counts, np.int64))
        everyone = np.arange(len(self._least))
        groups = [(everyone, self._mask(everyone))]
        wanted = {one for least in self._least for one in least.gres_on_node}
        for kind, count in sorted(wanted, reverse=True)[:_MOST_SIZES]:
            jobs = np.flatnonzero(self._on_each(kind) >= count)
            groups.append((jobs, self._mask(jobs) & (self._columns.free.gres[kind] >= count)))
        for jobs, mask in groups:
            cores, free = self._chunks[jobs] * self._size[jobs], self._free[mask]
            largest = (-(-cores // np.maximum(most[jobs], 1))).max(initial=0)
            for size in [0, *_largest(free[free < largest]).tolist()]:
                amounts = np.maximum(cores - most[jobs] * size, 0)
                self._take(jobs, amounts, mask, np.maximum(free - size, 0))

    def _whole(self) -> None:
        """Σ nodes ≤ empty nodes, over jobs that want their nodes whole."""
        jobs = np.flatnonzero([demand.exclusive for demand in self._demands])
        columns = self._columns
        mask = self._mask(jobs) & columns.is_empty & (self._free == columns.total.cores)
        self._take(jobs, self._nodes[jobs], mask, np.ones(mask.sum(), np.int64))

    def _gres(self) -> None:
        """Σ gres ≤ Σ free gres of each kind."""
        for kind, free in self._columns.free.gres.items():
            counts = np.array([dict(one.gres).get(kind, 0) for one in self._least], np.int64)
            jobs = np.flatnonzero(counts)
            mask = self._mask(jobs)
            self._take(jobs, counts[jobs], mask, free[mask])

    def _slots(self) -> None:
        """Σ nodes·min(⌊cores/t⌋, ⌊gres/h⌋) ≤ Σ min(⌊free cores/t⌋, ⌊free gres/h⌋) for all t, h."""
        sizes = {(kind, one.cores_on_node, count) for one in self._least for kind, count in one.gres_on_node}
        for kind, cores, count in sorted(sizes, reverse=True)[:_MOST_SIZES]:
            amounts = self._nodes * np.minimum(self._on_node // cores, self._on_each(kind) // count)
            jobs = np.flatnonzero(amounts)
            slots = np.minimum(self._free // cores, self._columns.free.gres[kind] // count)
            mask = self._mask(jobs) & (slots > 0)
            self._take(jobs, amounts[jobs], mask, slots[mask])

    def _memory(self) -> None:
        """Σ memory ≤ Σ free memory, if no node's memory is unlimited."""
        amounts = [(demand.memory_per_node, demand.memory_per_core) for demand in self._demands]
        per_node, per_core = np.array(amounts, np.int64).reshape(-1, 2).T
        wanted = per_node * self._nodes + per_core * self._chunks * self._size
        jobs = np.flatnonzero(wanted)
        mask = self._mask(jobs)
        free = self._columns.free.memory[mask]
        if len(free) and (free < UNLIMITED_MIB).all():
            self._take(jobs, wanted[jobs], mask, free)

    def _pools(self) -> None:
        """Add a row per licence, limit and share; a job takes the least of it that it could."""
        pools = self._columns.pools
        if pools.are_empty:
            return
        amounts: dict[Resource, list[tuple[int, int]]] = {}
        for job, demand in enumerate(self._demands):
            for resource, amount in pools.asked(demand.job, fewest(demand.job)):
                amounts.setdefault(resource, []).append((job, amount))
        for resource, entries in amounts.items():
            jobs, wanted = np.array(entries, np.int64).T
            self._add(np.array([pools.remaining(resource)]), jobs, wanted[:, None])


def _largest(values: IntArray) -> IntArray:
    """Return the largest of some values above 0, each once."""
    return np.unique(values[values > 0])[::-1][:_MOST_SIZES]
