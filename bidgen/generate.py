"""Bids for a window of jobs (Soner, sections 4.1 and 5.2, figure 4.5 with its order corrected).

Each job's bids in order: where first-fit by priority would start it; class A; one *spread* bid and
one of class C; then B, remaining C and spread bids in turn. B starts are evenly apart and staggered
by the demand of higher-priority jobs. The caps are dealt by priority after one bid for everybody.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, product
from math import ceil

import numpy as np

from ..cluster.resources.allocation import Allocation
from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.value_types import copied
from ..topology.tree import Topology
from .assemble import GROUP, Assembler, Caps, ChosenWindows, NodesetArena, joined, mode_of
from .candidates import (
    GuardedViews,
    Reading,
    UsableNodes,
    key_of,
    readings_of,
    totals_of,
    usable,
    with_blocked,
)
from .families.registry import ROOM, within_pools
from .first_fit import Cluster, FirstFitPlacer, Placement, Placer, bids_at, is_settled
from .job_windows import (
    BidPhase,
    JobWindows,
    by_figure,
    count_of,
    exhaustive_bids,
    in_turn,
    interleaved,
    legal_sets,
    required_sets,
    spread,
)
from .table import BidTable
from .windows import Field, field_of, general_nodesets

#: Windows up to this many times the cap are all looked at for repeats.
_FEW = 4

#: Of so many bids of a job one at most is a further placer's; so many of these have bids.
_OF_PLACERS, _KEPT_PLACERS = 3, 6

#: Sets of nodes that a job's topology units allow, at most.
_UNIT_SETS = 256

#: Orders in which bids join nodes that are no neighbours, where neighbours give too few bids.
_OTHER_ORDERS = ("fullest", "fewest gres", *(f"shuffled{'+' * number}" for number in range(6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BidOptions:
    """How bids are made.

    Attributes:
        max_bids: MAXBIDS, over all jobs.
        max_bids_per_job: MAXBIDSPERJOB, all classes.
        use_switches: scan below every switch (AUCSCHED3).
        spreads_jobs: a job for cores alone bids on more nodes than it needs, too.
        order: ``spec`` as above, or ``figure-4.5``: A, B, C of each job in turn until MAXBIDS.
        placers: place the jobs one after another besides first-fit; of the best ones each placement
            is a bid.
        worth: what each job's start counts, by which placers are compared, shape (jobs,).
    """

    max_bids: int = 6000
    max_bids_per_job: int = 60
    use_switches: bool = True
    spreads_jobs: bool = True
    order: str = "spec"
    placers: tuple[Placer, ...] = ()
    worth: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bids:
    """A window's bids.

    Attributes:
        table: the bids.
        first_fit: which jobs first-fit by priority starts, each at its first bid. Shape (jobs,).
        placed: how many jobs first-fit by priority starts, with or without bid within the caps.
        complete: no job bid less because the time for bids was up.
        could_bid: which jobs had something to bid on, whatever the caps left. Shape (jobs,).
        listed: for each placer the bids where it has jobs, as far as the caps left them.
    """

    table: BidTable
    first_fit: BoolArray
    placed: int
    complete: bool
    could_bid: BoolArray
    listed: tuple[IntArray, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Others:
    """Jobs of a window that do not bid, seen from each that does; arrays of shape (bidding jobs,).

    Attributes:
        after: how many stand behind it.
        nodes_before: the nodes that those ask for between it and the bidding job before it.
    """

    after: IntArray
    nodes_before: IntArray


def generate_bids(
    demands: tuple[Demand, ...],
    cluster: Cluster,
    options: BidOptions,
    is_over: Callable[[], bool] | None = None,
    others: Others | None = None,
) -> Bids:
    """Return the bids of a window of jobs, highest priority first; none delays a guard's job.

    First bids are made as the cluster's placer says, by priority without one. Once ``is_over`` says
    that the time for bids is up, jobs bid where first-fit and placers have them only. ``others``
    are jobs of the window between these that cannot start: caps and staggers count them all the
    same. Where first-fit does not start every job, each bids besides where the options' placers
    have it: at most a third of its bids, which fit beside those of other jobs. Where MAXBIDS is
    tight, a third of it is dealt to all jobs alike for these.
    """
    columns, topology, guards = cluster.columns, cluster.topology, cluster.guards
    generator = _Generator(cluster, options, is_over or (lambda: False))
    by_figure = options.order == "figure-4.5"
    placements: list[Placement | None] = (
        [None] * len(demands) if by_figure else FirstFitPlacer(cluster).place_all(demands)
    )
    placers = () if by_figure or None not in placements else options.placers
    fits = (FirstFitPlacer(replace(cluster, placer=placer)) for placer in placers)
    listed = _best([fit.place_all(demands) for fit in fits if not generator.is_over()], options.worth)
    nobody = np.zeros(len(demands), np.int64)
    unable = others or Others(after=nobody, nodes_before=nobody)
    jobs = len(demands) + int(unable.after.max(initial=0))
    most = min(options.max_bids // max(jobs, 1), options.max_bids_per_job)
    # Each job has so many bids for further placers, however low its priority.
    for_each = 1 + min(len(listed), most // _OF_PLACERS)
    drafts: list[ChosenWindows] = []
    left, stagger = options.max_bids, 0
    for demand, placement in zip(demands, placements, strict=True):
        to_come = 0 if by_figure else len(demands) - demand.index - 1 + int(unable.after[demand.index])
        stagger += int(unable.nodes_before[demand.index])
        most = max(for_each, min(options.max_bids_per_job, left - to_come * for_each))
        of_placers = max(for_each - 1, most // _OF_PLACERS)
        made = [placement, *(award[demand.index] for award in listed[:of_placers])]
        if generator.is_over():
            draft = joined([generator.placed(one) for one in made if one is not None])
        else:
            draft = generator.bids_of(demand, made, most, stagger)
        left -= min(most, len(draft))
        stagger += demand.node_counts.minimum if demand.node_counts else int(draft[:1, 1].sum())
        drafts.append(draft)
    count = 0
    # Who asks for one bid drops a table that has none.
    if options.max_bids > 1 or any(map(len, drafts)):
        count = general_nodesets(columns, columns.free, topology, use_switches=options.use_switches)
    of_each = 0 if by_figure else for_each
    caps = Caps(all=options.max_bids, per_job=options.max_bids_per_job, for_each=of_each)
    table = Assembler(columns, topology, generator.pool, joined(drafts)).table(demands, caps, count)
    for guard in guards:
        table = table.only(~ROOM.delayed(guard, table))
    within = within_pools(table, columns)
    table = table if within.all() else table.only(within)
    present = np.bincount(table.job, minlength=len(demands)) > 0
    placed = np.array([placement is not None for placement in placements], np.bool_)
    could_bid = np.array([len(draft) > 0 for draft in drafts], np.bool_)
    return Bids(
        table=table,
        first_fit=placed & present,
        placed=int(placed.sum()),
        complete=not generator.is_cut,
        could_bid=could_bid,
        listed=tuple(bids_at(award, table, 1 + len(listed)) for award in listed),
    )


def _best(listed: list[list[Placement | None]], worth: FloatArray | None) -> list[list[Placement | None]]:
    """Return the placements that have bids, those whose jobs count most together first."""
    if worth is None:
        return listed[:_KEPT_PLACERS]
    starts = np.array([[one is not None for one in award] for award in listed], np.bool_)
    total = (starts.reshape(len(listed), len(worth)) * worth).sum(axis=1)
    return [listed[place] for place in np.argsort(-total, kind="stable")[:_KEPT_PLACERS].tolist()]


def first_fit_bids(demands: tuple[Demand, ...], cluster: Cluster, options: BidOptions) -> BidTable:
    """Return the bids of the jobs that first-fit starts, by priority or as a placer says."""
    placements = FirstFitPlacer(cluster).place_all(demands)
    return _bids_on([one for one in placements if one is not None], demands, cluster, options)


def placed_bids(placements: Sequence[Placement], cluster: Cluster, options: BidOptions) -> BidTable:
    """Return places as bids, a job's each."""
    demands = tuple(copied(one.asked.demand, index=place) for place, one in enumerate(placements))
    asked = [one.asked._replace(demand=demand) for one, demand in zip(placements, demands, strict=True)]
    placed = [copied(one, asked=reading) for one, reading in zip(placements, asked, strict=True)]
    return _bids_on(placed, demands, cluster, options)


def _bids_on(
    placements: Sequence[Placement], demands: tuple[Demand, ...], cluster: Cluster, options: BidOptions
) -> BidTable:
    """Return the bids of some of the jobs, where these are placed."""
    generator = _Generator(cluster, options)
    draft = joined([generator.placed(placement) for placement in placements])
    caps = Caps(all=len(demands), per_job=1)
    return Assembler(cluster.columns, cluster.topology, generator.pool, draft).table(demands, caps, 0)


def place_alone(
    demand: Demand,
    columns: Columns,
    topology: Topology,
    guards: tuple[Guard, ...] = (),
    is_over: Callable[[], bool] | None = None,
) -> Allocation | None:
    """Return where a job could start on what is free if nothing else did; None if it fits nowhere.

    It delays no guarded reservation. Once ``is_over`` says that there is no more time, only
    first-fit looks.
    """
    if not GuardedViews(columns, columns.free, guards).of(demand).could_hold(demand, topology.leaf):
        return None
    cluster = Cluster(columns, topology, guards)
    placement = FirstFitPlacer(cluster).place(demand)
    if placement is not None:
        return placement.allocation()
    if is_settled(demand) and columns.pools.are_empty:
        return None
    # The auction also bids on nodes that first-fit does not look at together.
    table = first_bid(demand, cluster, is_over)
    return table.allocation(0) if len(table) else None


def first_bid(
    demand: Demand,
    cluster: Cluster,
    is_over: Callable[[], bool] | None = None,
    *,
    use_switches: bool = True,
) -> BidTable:
    """Return a job's first bid that licences and limits suffice for, an empty table without one."""
    most = 1 if cluster.columns.pools.are_empty else BidOptions().max_bids_per_job
    few = BidOptions(max_bids=most, max_bids_per_job=most, use_switches=use_switches)
    table = generate_bids((copied(demand, index=0),), cluster, few, is_over).table
    return table.at(np.arange(min(len(table), 1)))


@lru_cache(maxsize=64)
def _shuffled(seed: int, count: int) -> IntArray:
    return np.random.default_rng(seed).permutation(count)


class _Generator:
    """Finds each job's windows; fields and windows that jobs have in common are computed once."""

    def __init__(
        self, cluster: Cluster, options: BidOptions, is_late: Callable[[], bool] = lambda: False
    ) -> None:
        columns, topology, guards = cluster.columns, cluster.topology, cluster.guards
        self.is_cut = False
        self._is_late = is_late
        self.pool = NodesetArena()
        self._reserved = guards
        self._views = GuardedViews(columns, columns.free, guards)
        self._columns = columns
        self._topology = topology
        self._options = options
        self._nodes: dict[object, tuple[BoolArray, IntArray]] = {}
        self._fields: dict[object, Field] = {}
        self._is_in_order = topology.in_snapshot_order

    def is_over(self) -> bool:
        """Return whether the time for bids is up; from then on it stays so."""
        self.is_cut = self.is_cut or self._is_late()
        return self.is_cut

    def bids_of(
        self, demand: Demand, placements: Sequence[Placement | None], most: int, stagger: int
    ) -> ChosenWindows:
        """Return placements, then windows, best first; more than ``most``: some may repeat."""
        most += ceil(most / 8) + 1
        if not self._columns.pools.hold(demand.job):
            return joined([])
        readings = readings_of(demand)
        kept: dict[BidPhase, list[ChosenWindows]] = {phase: [] for phase in BidPhase}
        for part, asked in product(self._by_limits(demand), readings):
            if self.is_over():
                break
            for phase, draft in self._families(asked._replace(demand=part), most, stagger):
                kept[phase].append(draft)
        if self._options.order == "figure-4.5":
            return by_figure(kept, most)
        if not (demand.contiguous or demand.in_units):
            self._scatter(kept, demand, readings, most, stagger)
        # Where windows are few, many repeat others: all are kept until the repeats are found.
        taken = count_of(kept) if count_of(kept) <= _FEW * most else most
        draft = in_turn({phase: interleaved(drafts) for phase, drafts in kept.items()}, most, taken)
        placed = [self.placed(placement) for placement in placements if placement is not None]
        return joined([*placed, draft]) if placed else draft

    def _by_limits(self, demand: Demand) -> list[Demand]:
        """Return a job once for each set of reservations that limits it on some of its node counts.

        On more nodes a job may be through before a reservation that it would run into on fewer.
        """
        job = demand.job
        if not job.limits_by_nodes_s or not self._reserved:
            return [demand]
        counts: dict[tuple[bool, ...], dict[int, float]] = {}
        for count, seconds in job.limits_by_nodes_s.items():
            outlasted = tuple(guard.outlasts(job, count) for guard in self._reserved)
            counts.setdefault(outlasted, {})[count] = seconds
        if len(counts) == 1:
            return [demand]
        return [
            replace(demand, job=replace(job, limits_by_nodes_s=mine, time_limit_s=ceil(max(mine.values()))))
            for mine in counts.values()
        ]

    def _scatter(
        self,
        kept: dict[BidPhase, list[ChosenWindows]],
        demand: Demand,
        readings: list[Reading],
        most: int,
        stagger: int,
    ) -> None:
        """Add bids on nodes that are no neighbours, where neighbours give too few bids or none."""
        drafts: dict[tuple[int, int], list[ChosenWindows]] = {}
        count = count_of(kept)
        for order in _OTHER_ORDERS if not len(demand.required) else ():
            if count >= 2 * most:
                return
            for asked in readings:
                if self.is_over():
                    return
                field = self._field(asked, order)
                key = (id(asked), id(field))
                if key not in drafts:
                    windows = self._windows(asked, field, self.pool.add_group(asked), most, stagger)
                    drafts[key] = list(windows.unordered()) if len(field) else []
                kept[BidPhase.EXTRA].extend(drafts[key])
                count += sum(map(len, drafts[key]))
        if not count:
            kept[BidPhase.EXTRA].extend(self._searched(asked) for asked in readings)

    def placed(self, placement: Placement) -> ChosenWindows:
        """Return the first-fit placement as a bid."""
        asked, nodes = placement.asked, placement.nodes
        own = nodes if asked.demand.alone_in is None else nodes[placement.units > 0]
        place, group = self.pool.add(nodes, placement.units), self.pool.add_group(asked)
        return np.array([[place, len(nodes), group, placement.mode, False, self._is_aligned(asked, own)]])

    def _is_aligned(self, asked: Reading, nodes: IntArray) -> bool:
        """Return whether nodes touch an end of their nodeset as things are before any award."""
        first, last, end = int(nodes.min()), int(nodes.max()), len(self._columns.names) - 1
        beside = np.array([max(first - 1, 0), min(last + 1, end)])
        edges = [first == 0, last == end]
        edges.extend(~self._usable(asked)[0][beside])
        if self._options.use_switches:
            switch = self._topology.common_switch_of_sets(np.array([0, len(nodes)]), nodes)
            edges.extend(~self._topology.below(beside, switch))
        return any(edges)

    def _key(self, asked: Reading) -> tuple[object, ...]:
        return *key_of(asked), asked.choice.total, self._views.limits(asked.demand)

    def _usable(self, asked: Reading) -> tuple[BoolArray, IntArray]:
        """Return which nodes could be among the job's, and the units that each could give."""
        key = self._key(asked)
        if key not in self._nodes:
            self._nodes[key] = usable(asked, self._views.of(asked.demand).free, self._columns)
        return self._nodes[key]

    def _field(self, asked: Reading, order: str) -> Field:
        key = (order, *self._key(asked))
        if key not in self._fields:
            mask, units = self._usable(asked)
            nodes = self._scan(np.flatnonzero(mask), units, order)
            # Orders of few nodes, or of nodes alike, are often the same: they share a field.
            same = (nodes.tobytes(), *key[1:])
            if same not in self._fields:
                totals = totals_of(asked.choice, self._views.of(asked.demand).free, nodes)
                below = self._options.use_switches
                self._fields[same] = field_of(nodes, units[nodes], totals, self._topology, use_switches=below)
            self._fields[key] = self._fields[same]
        return self._fields[key]

    def _scan(self, nodes: IntArray, units: IntArray, order: str) -> IntArray:
        """Return usable nodes in scan order: snapshot, by switch, fullest first, shuffled."""
        if order == "tree":
            return nodes[np.argsort(self._topology.rank[nodes])]
        if order == "fullest":
            return nodes[np.argsort(units[nodes], kind="stable")]
        if order == "fewest gres":
            return nodes[np.lexsort((units[nodes], self._columns.free.gres_count[nodes]))]
        if order.startswith("shuffled"):
            return nodes[_shuffled(len(order), len(nodes))]
        return nodes

    def _orders(self, demand: Demand) -> list[str]:
        below = self._options.use_switches or demand.max_switches is not None
        if not below or self._is_in_order:
            return ["snapshot"]
        return ["snapshot"] if demand.contiguous and demand.max_switches is None else ["tree", "snapshot"]

    def _families(self, asked: Reading, most: int, stagger: int) -> Iterator[tuple[BidPhase, ChosenWindows]]:
        """Yield drafts of every kind, each best first."""
        demand = asked.demand
        group = -1
        for order in self._orders(demand):
            field = self._field(asked, order)
            if not len(field):
                return
            if group < 0:
                group = self.pool.add_group(asked)
            if demand.in_units:
                yield BidPhase.EXTRA, self._in_units(asked, field, group, most, stagger)
                return
            yield from self._windows(asked, field, group, most, stagger).choices()
            if len(demand.required) and not demand.contiguous:
                sets = required_sets(field, asked, most, stagger)
                yield BidPhase.EXTRA, self._on_sets(list(sets), asked)

    def _in_units(self, asked: Reading, field: Field, group: int, most: int, stagger: int) -> ChosenWindows:
        """Return bids on node sets that topology units allow, equal for jobs that ask alike."""
        sets = islice(legal_sets(field, asked), _UNIT_SETS)
        key = ("units", asked.demand.form, asked.choice)
        found: ChosenWindows = field.once(key, lambda: self._on_sets(list(sets), asked))
        # The best, and others from all over the machine, in turn.
        apart = spread(len(found), most, stagger).tolist()
        places = list(dict.fromkeys(chain.from_iterable(zip(range(len(apart)), apart, strict=True))))[:most]
        chosen: ChosenWindows = found[np.array(places, np.int64)]
        chosen[:, GROUP] = group
        return chosen

    def _windows(self, asked: Reading, field: Field, group: int, most: int, stagger: int) -> JobWindows:
        spreads, by_figure = self._options.spreads_jobs, self._options.order == "figure-4.5"
        return JobWindows(self.pool, field, asked, group, most, stagger, spreads, by_figure)

    def _searched(self, asked: Reading) -> ChosenWindows:
        """Return one bid on nodes that stand together in no scan order, if there are any."""
        field = self._field(asked, "snapshot")
        nodes = exhaustive_bids(field, asked, self.is_over) if len(field) else None
        return self._on_sets([] if nodes is None else [nodes], asked)

    def _on_sets(self, sets: list[IntArray], asked: Reading) -> ChosenWindows:
        """Return a bid on each of the node sets."""
        demand = asked.demand
        group = self.pool.add_group(asked)
        units = self._usable(asked)[1]
        held = [with_blocked(demand, UsableNodes(nodes, units[nodes]), self._columns) for nodes in sets]
        chosen = np.zeros((len(sets), 6), np.int64)
        for row, (some, nodes) in enumerate(zip(held, sets, strict=True)):
            is_aligned = self._is_aligned(asked, nodes)
            chosen[row] = self.pool.add(*some), len(some.nodes), group, mode_of(demand), False, is_aligned
        return chosen
