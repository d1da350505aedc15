"""First-fit by priority: each job in turn takes the first nodes that hold it.

What a plain scheduler would start. Each placement is also the job's first bid, so that the
auction's bids always hold an award as good as this one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..cluster.jobs import Job
from ..cluster.resources.allocation import Allocation, StartingJob, add_allocation, put
from ..cluster.resources.capacity import UNLIMITED_MIB, Capacity, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand, Variant
from ..cluster.resources.job_reservations import Guard, HeldBack, capped_by
from ..topology.tree import Topology
from .assemble import EXACT, PACK, WHOLE, mode_of
from .candidates import (
    CandidateCache,
    FreeView,
    GresChoice,
    GuardedViews,
    Reading,
    UsableNodes,
    could_stand,
    fewest_gres,
    runs_of,
    totals_of,
    usable_nodes,
    with_blocked,
)
from .job_windows import legal_sets, required_sets
from .table import BidTable, deal_evenly, even, pack
from .windows import field_of, first_window


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Placement:
    """Where a job starts: nodes in scan order and what each could give, as a bid's window needs.

    ``held`` is what it holds on each. Nodes that only keep other jobs off its blocks give no units.
    """

    asked: Reading
    nodes: IntArray
    units: IntArray
    mode: int
    held: Capacity

    def allocation(self) -> Allocation:
        """Return the nodes ascending, and what the job holds on each."""
        order = np.argsort(self.nodes)
        own = None if self.asked.demand.alone_in is None else (self.units[order] > 0).astype(np.int64)
        return Allocation(nodes=self.nodes[order], held=self.held.at(order), own=own)


class Placer(Protocol):
    """Says in which order jobs are placed, and which nodes each is tried on first."""

    def order(self, demands: Sequence[Demand]) -> Sequence[int]:
        """Return the places of the demands in the order in which they are to be placed."""

    def takes_first(self, demand: Demand) -> bool:
        """Return whether ``nodes_for`` yields the nodes as they stand, and nothing else."""

    def nodes_for(
        self, demand: Demand, nodes: IntArray, units: IntArray, free: Capacity
    ) -> Iterator[IntArray]:
        """Yield nodes to place a job on, those to be taken first in front, until it stands.

        Args:
            demand: of the job.
            nodes: usable ones in scan order, shape (m,).
            units: of cores that each could give, shape (m,).
            free: what the job may take beside those placed before it.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """What bids are made on: free resources, and what bids must not delay.

    Attributes:
        columns: free resources, with the rows of a balance where one is kept.
        topology: how far apart nodes are.
        guards: reservations.
        placer: makes first bids that keep a balance; None: they are made by priority.
        everywhere: jobs bid beyond a placer's first bids under every strategy.
    """

    columns: Columns
    topology: Topology
    guards: tuple[Guard, ...] = ()
    placer: Placer | None = None
    everywhere: bool = False


class FirstFitPlacer:
    """Places jobs one after another on what is still free.

    Args:
        cluster: what is free, beside which reservations; without a placer jobs are placed by
            priority, each on the first nodes that hold it.
        in_place: what starts is taken of its columns and reservations themselves.

    Attributes:
        placements: of the jobs that ``start`` started, in that order.
    """

    def __init__(self, cluster: Cluster, *, in_place: bool = False) -> None:
        self._columns = columns = cluster.columns
        self._topology = cluster.topology
        self._in_place = in_place
        self.placements: list[Placement] = []
        self._free = columns.free if in_place else columns.free.copy()
        held_back: list[HeldBack] = [*cluster.guards, *columns.kept]
        self._guards = held_back if in_place else [one.copy() for one in held_back]
        self._limited = columns.total.memory < UNLIMITED_MIB
        self._placer = cluster.placer
        self._pools = columns.pools if in_place else columns.pools.copy()
        self._candidates = CandidateCache(columns, self._free)
        #: Free cores of all nodes: where a moment to come is foreseen a node may lack some.
        self._cores = int(np.maximum(self._free.cores, 0).sum())
        self._placed: set[str] = set()
        #: Kinds for which there is not enough: less is free with each start and reservation, but
        #: what is reserved for a job itself it may take.
        self._hopeless: set[int] = set()
        self._own = {guard.job.id for guard in cluster.guards}
        #: Of what is free beside the guards; None: something has been placed since.
        self._views: GuardedViews | None = None

    def place_all(self, demands: Sequence[Demand]) -> list[Placement | None]:
        """Return where each job starts, None for those that do not."""
        if self._placer is None:
            return [self.place(demand) for demand in demands]
        found: list[Placement | None] = [None] * len(demands)
        for place in self._placer.order(demands):
            found[place] = self.place(demands[place])
        return found

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The reservations beside which jobs are placed."""
        return tuple(one for one in self._guards if isinstance(one, Guard))

    def keep(self, guards: Sequence[Guard]) -> None:
        """From now on place no job that would delay these reservations, which are all there are."""
        self._guards = [*(one for one in self._guards if not isinstance(one, Guard)), *guards]
        self._own = {guard.job.id for guard in guards}
        self._views = None

    def release(self) -> None:
        """Keep nothing any more for jobs that have started, or that may not start."""
        before = len(self._guards)
        self._guards = [
            one
            for one in self._guards
            if not isinstance(one, Guard) or (one.job.id not in self._placed and self._pools.keep(one.job))
        ]
        if len(self._guards) < before:
            self._views = None
            self._hopeless.clear()

    @property
    def has_counted(self) -> bool:
        """Whether ``could_hold`` was asked since a job was placed."""
        return self._views is not None

    def could_hold(self, demand: Demand) -> bool:
        """Return whether there is enough for a job beside those placed, by counting."""
        if demand.kind in self._hopeless and demand.job.id not in self._own:
            return False
        could = demand.fewest_cores <= self._cores and self._pools.hold(demand.job)
        could = could and self.view(demand).could_hold(demand)
        # Which cores are kept from a job depends on more than its kind.
        if not could and not self._columns.kept:
            self._hopeless.add(demand.kind)
        return could

    def view(self, demand: Demand) -> FreeView:
        """Return what a job may take: of reservations that it would run into, only the room."""
        if self._views is None:
            self._views = GuardedViews(self._columns, self._free, self._guards)
        return self._views.of(demand)

    def place(self, demand: Demand) -> Placement | None:
        """Return where the job starts and take it from free resources; None: it does not fit."""
        found = self.find(demand)
        if found is not None:
            self.take(demand.job, Allocation(nodes=found.nodes, held=found.held))
        return found

    def start(self, demand: Demand) -> StartingJob | None:
        """Start a job where ``place`` has it; None when it does not fit."""
        placed = self.place(demand)
        if placed is None:
            return None
        self.placements.append(placed)
        return StartingJob(demand=demand, allocation=placed.allocation())

    def find(self, demand: Demand) -> Placement | None:
        """Return where the job could start, None when it does not fit."""
        if demand.fewest_cores > self._cores or not self._pools.hold(demand.job):
            return None
        for asked in fewest_gres(demand):
            found = self._first(asked)
            if found is not None and not self._pools.hold(demand.job, found.held):
                # Limits may have room for fewer nodes, with more on each.
                most = self._pools.most_nodes(demand.job, len(found.nodes) - 1)
                found = self._first(asked._replace(variant=replace(asked.variant, max_nodes=most)))
            if found is not None and self._pools.hold(demand.job, found.held):
                return found
        return None

    def _first(self, asked: Reading) -> Placement | None:
        chosen, demand = None, asked.demand
        if self._may_take_first(asked):
            units = (demand.units or 0) if demand.node_counts is None else 0
            found = self._candidates.first(asked, demand.fewest_nodes, units)
            if found is None:
                return None
            chosen = _first_candidates(demand, asked.variant, found)
        chosen = chosen or self._among_all(asked, capped_by(self._guards, self._free, demand.job))
        if chosen is None:
            return None
        return placement_on(*chosen, asked, mode_of(demand), self._columns, self._free)

    def _may_take_first(self, asked: Reading) -> bool:
        """Return whether the very first nodes will do if they are enough, wherever they are."""
        # What a reservation leaves to one job is not what it leaves to the next one of its shape.
        is_as_listed = self._placer is None or self._placer.takes_first(asked.demand)
        return is_as_listed and not self._guards and _is_simple(asked.demand, asked.choice)

    def _among_all(self, asked: Reading, free: Capacity) -> UsableNodes | None:
        """Return the first nodes that hold a job together, as the placer orders them."""
        demand, columns = asked.demand, self._columns
        found = usable_nodes(asked, free, columns) if self._guards else self._candidates.all(asked)
        if _is_simple(demand, asked.choice) and not _are_enough(demand, asked.variant, found.units):
            return None
        if demand.contiguous:
            runs = runs_of(found) if self._guards else self._candidates.runs(asked)
            if not could_stand(runs, demand, asked.variant):
                return None
        if demand.max_switches is not None:
            found = found.at(np.argsort(self._topology.rank[found.nodes]))
        if self._placer is None:
            return self._on(asked, found)
        tried = self._placer.nodes_for(demand, found.nodes, found.units, free)
        held = (self._on(asked, found.only(nodes)) for nodes in tried)
        return next((some for some in held if some is not None), None)

    def _on(self, asked: Reading, found: UsableNodes) -> UsableNodes | None:
        """Return the first of some nodes that hold a job together."""
        if _is_simple(asked.demand, asked.choice):
            chosen = _first_candidates(asked.demand, asked.variant, found)
            if chosen is not None:
                return chosen
        totals = totals_of(asked.choice, self._free, found.nodes)
        field = field_of(*found, totals, self._topology)
        units = self._topology.units
        if units is not None and asked.demand.node_counts is not None and units.has(found.nodes):
            nodes = next(legal_sets(field, asked), None)
            return None if nodes is None else found.only(nodes)
        nodes = first_window(field, asked)
        if nodes is None and len(asked.demand.required) and not asked.demand.contiguous:
            nodes = next(required_sets(field, asked, 1, 0), None)
        return None if nodes is None else found.only(nodes)

    def take(self, job: Job, where: Allocation) -> None:
        """Let a job start."""
        nodes, held = where.nodes, where.held
        self._views = None
        self._candidates.less_is_free()
        self._placed.add(job.id)
        self._pools.take(job, held)
        self._cores -= int(held.cores.sum())
        if self._in_place:
            put(self._columns, where, -1, self._limited)
        else:
            add_allocation(self._free, where, -1, self._limited)
        for guard in self._guards:
            guard.take(job, nodes, held)


def _is_simple(demand: Demand, choice: GresChoice) -> bool:
    """Return whether nothing matters but the number of a job's nodes, and what each gives."""
    return not demand.is_tied and not choice.total


def is_settled(demand: Demand) -> bool:
    """Return whether what first-fit does not place fits nowhere: it looks at every node set."""
    if demand.job.limits_by_nodes_s or any(variant.gres_total for variant in demand.variants):
        return False
    if demand.contiguous:
        return demand.max_switches is None
    is_plain = demand.max_switches is None and not len(demand.required)
    return is_plain and demand.units_per_node is not None


def _are_enough(demand: Demand, variant: Variant, units: IntArray) -> bool:
    """Return whether nodes that give so many units could hold a simple job, wherever they stand."""
    counts = demand.node_counts
    if len(units) < demand.fewest_nodes:
        return False
    most = variant.max_nodes if counts is None else min(variant.max_nodes, counts.maximum)
    if len(units) > most:
        units = np.partition(units, len(units) - most)[-most:] if most else units[:0]
    return demand.units is None or int(units.sum()) >= demand.units


def _first_candidates(demand: Demand, variant: Variant, found: UsableNodes) -> UsableNodes | None:
    """Return the first of some nodes, as many as a simple job takes; None: it does not fit."""
    sums = np.cumsum(found.units)
    if demand.node_counts is None:
        count = int(np.searchsorted(sums, demand.units or 0)) + 1
    else:
        count = demand.node_counts.minimum
    if count > min(len(found.nodes), variant.max_nodes):
        return None
    total = demand.units or 0
    if sums[count - 1] < total or (
        demand.units is not None and not demand.exclusive and count * demand.least > total
    ):
        return None
    return found.at(slice(count))


def bids_at(placements: Sequence[Placement | None], table: BidTable, most: int) -> IntArray:
    """Return the bids that hold what placed jobs hold, among the first ``most`` of each job."""
    begin = np.searchsorted(table.job, np.arange(len(placements) + 1)).tolist()
    found: list[int] = []
    for place, placement in enumerate(placements):
        if placement is None:
            continue
        mine = placement.allocation()
        for bid in range(begin[place], min(begin[place] + most, begin[place + 1])):
            entries = table.entries(bid)
            if np.array_equal(table.node[entries], mine.nodes) and np.array_equal(
                table.cores[entries], mine.held.cores
            ):
                found.append(bid)
                break
    return np.array(found, np.int64)


def placement_on(
    nodes: IntArray,
    units: IntArray,
    asked: Reading,
    mode: int,
    columns: Columns,
    free: Capacity,
) -> Placement:
    """Return a job's placement on nodes of which each could give so many units.

    Gres that it asks for over all nodes are dealt from what is ``free``.
    """
    nodes, units = with_blocked(asked.demand, UsableNodes(nodes, units), columns)
    cores = _cores_on(nodes, units, asked.demand, mode, columns)
    gres: dict[str, IntArray] = {}
    if mode == WHOLE:
        gres = {kind: counts[nodes] for kind, counts in columns.total.gres.items()}
    else:
        for kind, _, count in asked.choice.per_node:
            if count:
                gres[kind] = gres.get(kind, 0) + np.full(len(nodes), count)
        for kind, _, _, high in asked.choice.total:
            if high:
                left = free.gres[kind][nodes] - gres.get(kind, 0)
                dealt = deal_evenly(left, np.array([0, len(nodes)]), np.array([high]))
                gres[kind] = gres.get(kind, 0) + dealt
    memory = asked.demand.memory_on(cores)
    if asked.demand.alone_in is not None:
        memory *= units > 0
    held = Capacity(cores=cores, memory=memory, gres=dict(sorted(gres.items())))
    return Placement(asked=asked, nodes=nodes, units=units, mode=mode, held=held)


def _cores_on(nodes: IntArray, units: IntArray, demand: Demand, mode: int, columns: Columns) -> IntArray:
    """Return the cores that a placement holds on each of its nodes."""
    count = len(nodes)
    if mode == WHOLE:
        return columns.total.cores[nodes]
    if mode == EXACT:
        return np.full(count, (demand.units_per_node or 0) * demand.unit)
    if count == 1:
        return np.full(1, max(demand.units or 0, demand.least) * demand.unit)
    if int(units.sum()) == demand.units:
        return units * demand.unit
    fill = pack if mode == PACK else even
    ends = np.array([0, count])
    return fill(units, ends, np.array([demand.least]), np.array([demand.units or 0])) * demand.unit
