"""When a job that waits could start at the latest, if running jobs end as estimated (SPEC 6: shadow time).

Resources only grow while running jobs end and nothing starts, so the first end at which the job fits is
found by bisection; each probe asks the same machinery that makes the auction's bids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bidgen.columns import UNLIMITED_MIB, BoolArray, Capacity, Columns, IntArray, columns_of, nothing_held
from ..bidgen.dealing import deal_evenly
from ..bidgen.demand import Demand, DemandReader
from ..bidgen.first_fit import FirstFit, Placement, cores_on
from ..bidgen.generate import BidOptions, generate_bids
from ..bidgen.guard import Guard
from ..bidgen.table import BidTable
from ..cluster.jobs import Job
from ..cluster.nodes import NodeState, Resources
from ..cluster.schedule import Award
from ..cluster.snapshot import Snapshot
from ..topology.tree import Topology, topology_of

#: A node in one of these takes jobs again when one of its running jobs ends.
_COMES_BACK = (NodeState.ALLOCATED, NodeState.COMPLETING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowStart:
    """When and where a job could start at the latest.

    Attributes:
        time: seconds since the epoch; the snapshot's own time (0 where it has none) when nothing has to
            end first.
        nodes: names of the nodes, in snapshot order.
        at_once: ``time`` is the snapshot's own: nothing has to end first but what is past its end.
    """

    time: float
    nodes: tuple[str, ...]
    at_once: bool


def shadow_time(snapshot: Snapshot, job: Job, awards: Iterable[Award] = ()) -> ShadowStart | None:
    """Return when ``job`` could start at the latest if nothing else started before it.

    Running jobs give back what they hold at their estimated end (one already past counts as now, one not
    known never comes). Licences stay as they are: no running job says which it holds. The job's priority
    and hold do not matter.

    Args:
        snapshot: the cluster; of its queue only the time limits of awarded jobs are looked at.
        job: the job that waits; it need not be of the snapshot's queue.
        awards: jobs of the queue that start now; each ends after its time limit, one without never.

    Returns:
        None when no end of running jobs lets it start: it asks for more than there is, or for nodes that
        are down or held by something without an end.
    """
    forecast = Forecast(snapshot, awards)
    found = forecast.first(job)
    if found is None:
        return None
    step, spot = found
    names = tuple(snapshot.nodes[node].name for node in spot.nodes.tolist())
    return ShadowStart(time=forecast.times[step], nodes=names, at_once=step == 0)


def earliest_start(snapshot: Snapshot, job_id: str, awards: Iterable[Award] = ()) -> ShadowStart | None:
    """Return ``shadow_time`` of the queue's job of that name (KeyError when there is none)."""
    return shadow_time(snapshot, {job.id: job for job in snapshot.jobs}[job_id], awards)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """What a job holds, and when it gives it back."""

    end: float
    nodes: Mapping[str, Resources]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Spot:
    """Where a job could start: nodes, ascending, and what it would hold on each, shape (nodes,).

    ``placement`` is the first-fit placement, None when only the auction's bids found the spot.
    """

    nodes: IntArray
    held: Capacity
    placement: Placement | None


class Forecast:
    """The cluster's free resources at every moment at which something ends.

    Args:
        snapshot: the cluster.
        awards: jobs that start now.
        kept: what is never given back, by node index: reservations made before.

    Attributes:
        times: now, then each later end of a running job, an award or a reservation; ascending.
    """

    def __init__(self, snapshot: Snapshot, awards: Iterable[Award], kept: Iterable[Spot] = ()) -> None:
        self._snapshot = snapshot
        self._columns = columns_of(snapshot)
        self._topology: Topology = topology_of(snapshot)
        now = snapshot.time or 0.0
        started = list(awards)
        holds = [*_running(snapshot, now), *_awarded(snapshot, started, now)]
        ends = {hold.end for hold in holds} | {entry.end for entry in snapshot.reservations}
        self.times = [now, *sorted(end for end in ends if end > now)]
        self._free = less_awards(self._columns, started)
        for spot in kept:
            _keep(self._free, spot)
        self._release = _Release(self._columns, holds)
        self._comes_back = np.array([node.state in _COMES_BACK for node in snapshot.nodes], np.bool_)

    def first(self, job: Job) -> tuple[int, Spot] | None:
        """Return the first step at which the job fits alone, and its nodes.

        Without reservations to keep clear of, what fits once fits ever after: bisection. A reservation
        to come may stand in the way of a later start only, so from there on every step is tried.
        """
        last = len(self.times) - 1
        low = self._bisected(job, last)
        if low is None or not self._snapshot.reservations:
            return low
        steps = ((step, self._fits(job, step)) for step in range(low[0], last + 1))
        return next(((step, spot) for step, spot in steps if spot is not None), None)

    def _bisected(self, job: Job, last: int) -> tuple[int, Spot] | None:
        found = self._fits(job, 0, reservations=False)
        if found is not None:
            return 0, found
        found = self._fits(job, last, reservations=False)
        if found is None:
            return None
        low, high = 0, last
        while high - low > 1:
            middle = (low + high) // 2
            nodes = self._fits(job, middle, reservations=False)
            if nodes is None:
                low = middle
            else:
                high, found = middle, nodes
        return high, found

    def _fits(self, job: Job, step: int, *, reservations: bool = True) -> Spot | None:
        """Return where the job could start at a step, None when it fits nowhere."""
        columns = self.columns_at(step)
        reader = DemandReader(self.cluster_at(step), columns, honour_reservations=reservations)
        demand = reader.read(job, 0)
        return place_alone(demand, columns, self._topology) if isinstance(demand, Demand) else None

    def at(self, step: int) -> Capacity:
        """Return what is free at a step."""
        return self.columns_at(step).free

    def cluster_at(self, step: int) -> Snapshot:
        """Return the cluster without jobs, at a step's time: what a request is read against."""
        known = self._snapshot.time is not None or step > 0
        return Snapshot(
            nodes=self._snapshot.nodes,
            time=self.times[step] if known else None,
            partitions=self._snapshot.partitions,
            reservations=self._snapshot.reservations,
        )

    def columns_at(self, step: int) -> Columns:
        """Return the nodes as they will be at a step."""
        free, ended = self._release.by(self.times[step], self._free, self._columns.total)
        takes_jobs = self._columns.takes_jobs | (self._comes_back & ended)
        return replace(
            self._columns, free=free, takes_jobs=takes_jobs, is_empty=nothing_held(self._columns.total, free)
        )


def place_alone(demand: Demand, columns: Columns, topology: Topology) -> Spot | None:
    """Return where a job could start on what is free if nothing else did, None when it fits nowhere."""
    placement = FirstFit(columns, topology).place(demand)
    if placement is not None:
        return spot_of_placement(placement, columns)
    # The auction also bids on nodes that first-fit does not look at together.
    options = BidOptions(max_bids=1, max_bids_per_job=1)
    table = generate_bids((replace(demand, index=0),), columns, topology, options).table
    return spot_of_bid(table, 0) if len(table) else None


def resources_of(demand: Demand, spot: Spot, names: Sequence[str]) -> dict[str, Resources]:
    """Return what a job holds at a spot, by node name; memory where the job counts it."""
    counts_memory = demand.counts_memory
    memory = spot.held.memory.tolist()
    gres = {kind: counts.tolist() for kind, counts in spot.held.gres.items() if counts.any()}
    return {
        names[node]: Resources(
            cores=cores,
            memory_mib=memory[place] if counts_memory else None,
            gres={kind: counts[place] for kind, counts in gres.items() if counts[place]},
        )
        for place, (node, cores) in enumerate(zip(spot.nodes.tolist(), spot.held.cores.tolist(), strict=True))
    }


def guard_for(
    job: Job, now: float, time: float, spot: Spot, free: Capacity, made: Mapping[str, Spot]
) -> Guard:
    """Return a reservation as what others must leave free.

    Args:
        job: the job that waits.
        now: seconds since the epoch.
        time: when it starts.
        spot: where.
        free: what is free then if nothing started before, on every node, less the reservations made.
        made: those, by job.
    """
    nodes, kinds = spot.nodes, free.gres
    left = free.at(nodes).less(_held_on(spot, nodes, kinds))
    room = Capacity(
        cores=np.maximum(left.cores, 0),
        memory=np.maximum(left.memory, 0),
        gres={kind: np.maximum(counts, 0) for kind, counts in left.gres.items()},
    )
    kept = {job: _held_on(one, nodes, kinds) for job, one in made.items()}
    return Guard(job=job, time=time, now=now, nodes=nodes, room=room, kept=kept)


def _held_on(spot: Spot, nodes: IntArray, kinds: Iterable[str]) -> Capacity:
    """Return what a spot holds on some nodes; arrays of shape (nodes,)."""
    place = np.minimum(np.searchsorted(spot.nodes, nodes), len(spot.nodes) - 1)
    there, none = spot.nodes[place] == nodes, np.zeros(len(nodes), np.int64)
    gres = spot.held.gres
    return Capacity(
        cores=spot.held.cores[place] * there,
        memory=spot.held.memory[place] * there,
        gres={kind: gres[kind][place] * there if kind in gres else none for kind in kinds},
    )


def _keep(free: Capacity, spot: Spot) -> None:
    free.cores[spot.nodes] -= spot.held.cores
    free.memory[spot.nodes] -= spot.held.memory
    for kind, counts in spot.held.gres.items():
        free.gres[kind][spot.nodes] -= counts


def spot_of_placement(placement: Placement, columns: Columns) -> Spot:
    """Return what a first-fit placement holds."""
    demand = placement.demand
    order = np.argsort(placement.nodes)
    nodes = placement.nodes[order]
    cores = cores_on(placement, columns)[order]
    gres = {kind: np.zeros(len(nodes), np.int64) for kind in columns.total.gres}
    for kind, _, count in placement.choice.per_node:
        if kind in gres:
            gres[kind] += count
    for kind, _, _, high in placement.choice.total:
        if kind in gres:
            free = columns.free.gres[kind][placement.nodes]
            gres[kind] += deal_evenly(free, np.array([0, len(nodes)]), np.array([high]))[order]
    if demand.exclusive:
        gres = {kind: counts[nodes] for kind, counts in columns.total.gres.items()}
    memory = demand.memory_on(cores)
    held = Capacity(cores=cores, memory=np.asarray(memory, np.int64), gres=gres)
    return Spot(nodes=nodes, held=held, placement=placement)


def spot_of_bid(table: BidTable, bid: int) -> Spot:
    """Return what a bid holds."""
    entries = table.entries(bid)
    nodes = table.node[entries]
    memory = np.zeros(len(nodes), np.int64) if table.memory is None else table.memory[entries]
    gres = {kind: counts[entries] for kind, counts in table.gres.items()}
    return Spot(
        nodes=nodes, held=Capacity(cores=table.cores[entries], memory=memory, gres=gres), placement=None
    )


class _Release:
    """What is given back, as columns with one entry for each job and node of it, by end time."""

    def __init__(self, columns: Columns, holds: Iterable[_Hold]) -> None:
        entries = sorted(_entries(columns, holds), key=lambda entry: entry[0])
        uses = [use for _, _, use in entries]
        self._end = np.array([end for end, _, _ in entries], np.float64)
        self._node: IntArray = np.array([node for _, node, _ in entries], np.int64)
        self._cores = np.array([use.cores for use in uses], np.int64)
        self._memory = np.array([use.memory_mib or 0 for use in uses], np.int64)
        self._gres = {
            kind: np.array([use.gres.get(kind, 0) for use in uses], np.int64) for kind in columns.total.gres
        }

    def by(self, time: float, free: Capacity, total: Capacity) -> tuple[Capacity, BoolArray]:
        """Return what is free at ``time``, and on which nodes something has ended by then."""
        count = int(np.searchsorted(self._end, time, side="right"))
        nodes = self._node[:count]
        after = free.copy()
        np.add.at(after.cores, nodes, self._cores[:count])
        np.add.at(after.memory, nodes, self._memory[:count])
        for kind, counts in after.gres.items():
            np.add.at(counts, nodes, self._gres[kind][:count])
        # Memory that is not limited stays as it is, and nothing grows beyond what the node has.
        np.minimum(after.memory, total.memory, out=after.memory)
        ended = np.zeros(len(free.cores), np.bool_)
        ended[nodes] = True
        return after, ended


def _entries(columns: Columns, holds: Iterable[_Hold]) -> Iterator[tuple[float, int, Resources]]:
    return ((hold.end, columns.index[name], use) for hold in holds for name, use in hold.nodes.items())


def _running(snapshot: Snapshot, now: float) -> Iterator[_Hold]:
    for job in snapshot.running:
        if job.end_time is not None:
            yield _Hold(end=max(job.end_time, now), nodes=job.nodes)


def _awarded(snapshot: Snapshot, awards: Iterable[Award], now: float) -> Iterator[_Hold]:
    limits = {job.id: job.time_limit_s for job in snapshot.jobs}
    for award in awards:
        limit = limits[award.job]
        if limit is not None:
            yield _Hold(end=now + limit, nodes=award.nodes)


def less_awards(columns: Columns, awards: Iterable[Award]) -> Capacity:
    """Return what is free now less what awards take."""
    free = columns.free.copy()
    limited = columns.total.memory < UNLIMITED_MIB
    for award in awards:
        for name, use in award.nodes.items():
            node = columns.index[name]
            free.cores[node] -= use.cores
            free.memory[node] -= (use.memory_mib or 0) if limited[node] else 0
            for kind, count in use.gres.items():
                free.gres[kind][node] -= count
    return free
