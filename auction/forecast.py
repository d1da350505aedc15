"""When a waiting job could start at the latest, if running jobs end as estimated: its shadow time.

Resources only grow while running jobs end and nothing starts, so the first end at which the job
fits is found by bisection; each probe asks the same machinery that makes the auction's bids.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import inf, nextafter
from operator import itemgetter
from typing import TypeVar

import numpy as np

from ..bidgen.candidates import GuardedViews
from ..bidgen.generate import place_alone
from ..cluster.jobs import Job
from ..cluster.resources.allocation import Allocation, add_allocation, allocation_of_resources
from ..cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray, nothing_held
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.resources.pools import Held
from ..cluster.schedule import Award
from .state import Holds, SnapshotState, StepState

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowStart:
    """When and where a job could start at the latest.

    Attributes:
        time: seconds since the epoch; the snapshot's own time (0 where it has none) when nothing
            has to end first.
        nodes: names of the nodes, in snapshot order.
        at_once: ``time`` is the snapshot's own, and nothing that is past its end has to end first.
    """

    time: float
    nodes: tuple[str, ...]
    at_once: bool


def shadow_time(state: SnapshotState, job: Job, awards: Iterable[Award] = ()) -> ShadowStart | None:
    """Return when ``job`` could start at the latest if nothing else started before it.

    Running jobs return what they hold at their estimated end (one already past is now, an unknown
    one never comes), with their shares of limits. No running job names the licences that it holds;
    awarded jobs return theirs and their shares at their ends. Priority and hold do not matter.

    Args:
        state: the cluster; of its queue only the time limits of awarded jobs are looked at.
        job: the job that waits; it need not be of the snapshot's queue.
        awards: jobs of the queue that start now; each ends after its time limit, one without never.

    Returns:
        None when no end of running jobs lets it start: it asks for more than there is, or for nodes
        that are down or held by something without an end.
    """
    jobs = {one.id: one for one in state.snapshot.jobs}
    started = [(jobs[one.job], allocation_of_resources(one.nodes, state.columns)) for one in awards]
    # Who is past its end holds what it has, a moment longer.
    now, soon = state.now, nextafter(state.now, inf)
    after = state.with_starts(started)
    holds = Holds(replace(hold, end=max(hold.end, soon)) for hold in after.holds)
    # Places are looked for as if all that ends had ended; then what they hold of limits says when.
    pools = state.columns.pools.copy()
    for running in state.snapshot.running:
        if running.end_time is not None:
            pools.end(running, state.snapshot.time)
    forecast = Forecast(replace(after, holds=holds, columns=replace(after.columns, pools=pools)))
    found = forecast.first(job)
    if found is not None and (since := _pools_last(state, job, found[1].held, started)) > found[0]:
        found = None if since == inf else forecast.first(job, since=since)
    if found is None:
        return None
    time, allocation = found
    nodes = state.columns.named(allocation.nodes)
    return ShadowStart(time=now if time <= soon else time, nodes=nodes, at_once=time == now)


def _pools_last(
    state: SnapshotState, job: Job, held: Held, started: Sequence[tuple[Job, Allocation]]
) -> float:
    """Return when running and starting jobs leave enough licences and limits: −∞ now, ∞ never."""
    pools, since = state.columns.pools.copy(), -inf
    ends: list[tuple[float, Callable[[], None]]] = []
    for running in state.snapshot.running:
        end = inf if running.end_time is None else max(running.end_time, nextafter(state.now, inf))
        ends.append((end, partial(pools.end, running, state.snapshot.time)))
    for one, allocation in started:
        pools.take(one, allocation.held)
        limit_s = one.limit_on_s(len(allocation.nodes))
        end = inf if limit_s is None else state.now + limit_s
        ends.append((end, partial(pools.give, one, allocation.held)))
    for end, give in sorted(ends, key=itemgetter(0)):
        if pools.hold(job, held):
            break
        since = end
        give()
    return since if pools.hold(job, held) else inf


@dataclass(frozen=True, slots=True, eq=False)
class ReservedPlace:
    """A place kept clear for a waiting job, from a start up to an end (seconds since the epoch)."""

    allocation: Allocation
    start: float
    end: float

    @classmethod
    def of_run(cls, job: Job, start: float, allocation: Allocation) -> "ReservedPlace":
        """Return the place of a job for as long as it may run there."""
        limit_s = job.limit_on_s(len(allocation.nodes))
        return cls(allocation, start, inf if limit_s is None else start + limit_s)

    def is_held(self, time: float) -> bool:
        """Return whether it is kept clear at a time."""
        return self.start <= time < self.end


class Forecast:
    """The free resources now and at every later moment at which something ends.

    Args:
        state: the cluster.
        kept: reservations made before.
        is_over: whether there is no more time: places are then looked for by first-fit only.

    Attributes:
        times: now, then each later end of a running job, a start, a reservation or an advance
            reservation; ascending.
    """

    def __init__(
        self,
        state: StepState,
        kept: Iterable[ReservedPlace] = (),
        is_over: Callable[[], bool] | None = None,
    ) -> None:
        self._state = state
        self._is_over = is_over
        self._limited = state.columns.total.memory < UNLIMITED_MIB
        self._free = state.columns.free.copy()
        self._given_back = state.holds.laid_out(self._free.gres)
        self._ends = np.maximum(self._given_back.ends, state.now)
        self._keep(kept)

    def with_reservations(self, kept: Iterable[ReservedPlace], moments: Iterable[float] = ()) -> "Forecast":
        """Return the same with these reservations, and more moments at which jobs may start."""
        other = copy(self)
        other._keep(kept, moments)  # noqa: SLF001 - its own class
        return other

    def _keep(self, kept: Iterable[ReservedPlace], moments: Iterable[float] = ()) -> None:
        now = self._state.now
        self._kept = tuple(kept)
        #: Those that only lessen what is free, at all times alike.
        self._always = tuple(one for one in self._kept if one.start <= now and one.end == inf)
        ends = {*self._ends.tolist(), *(one.end for one in self._kept if one.end < inf)}
        more = ends | set(self._state.changes) | set(moments)
        self.times: list[float] = [now, *sorted(time for time in more if time > now)]
        #: Starts of reservations: only at these does less become free.
        self._starts = sorted({one.start for one in self._kept if one.start > now})

    def at(self, step: int) -> Columns:
        """Return the cluster's columns as they will be at ``times[step]``."""
        return self._at_time(self.times[step], self._kept)

    def free_at(self, time: float, kept: Sequence[ReservedPlace] | None = None) -> Capacity:
        """Return what will be free at a time, beside these reservations (None: all)."""
        back = self._given_back
        last = int(back.entries[np.searchsorted(self._ends, time, side="right")])
        node, held, free, columns = back.node[:last], back.held, self._free, self._state.columns
        memory = _added(free.memory, node, held.memory[:last])
        later = Capacity(
            cores=_added(free.cores, node, held.cores[:last]),
            memory=np.where(self._limited, np.minimum(memory, columns.total.memory), free.memory),
            gres={kind: _added(counts, node, held.gres[kind][:last]) for kind, counts in free.gres.items()},
        )
        for one in self._kept if kept is None else kept:
            if one.is_held(time):
                add_allocation(later, one.allocation, -1, self._limited)
        return later

    def _at_time(self, time: float, kept: Sequence[ReservedPlace]) -> Columns:
        later, columns = self.free_at(time, kept), self._state.columns
        return replace(
            columns,
            free=later,
            takes_jobs=self._takes_jobs(time),
            is_empty=nothing_held(columns.total, later),
        )

    def _takes_jobs(self, time: float) -> BoolArray:
        takes_jobs = self._state.columns.takes_jobs
        if self._state.comes_back is not None:
            back = self._given_back
            last = int(back.entries[np.searchsorted(self._ends, time, side="right")])
            takes_jobs = takes_jobs.copy()
            takes_jobs[back.node[:last]] |= self._state.comes_back[back.node[:last]]
        return takes_jobs

    def leaves(self, place: ReservedPlace, kept: Sequence[ReservedPlace]) -> bool:
        """Return whether a place is free from its start up to its end beside reservations."""
        nodes, held = place.allocation.nodes, place.allocation.held
        starts = {place.start, *(one.start for one in kept if place.start < one.start < place.end)}
        is_up = bool(self._takes_jobs(place.start)[nodes].all())
        return is_up and all(self.free_at(time, kept).at(nodes).covers(held) for time in starts)

    def during(self, start: float, end: float) -> Columns:
        """Return the columns with what stays free between two times, whatever ends until then."""
        columns = self._at_time(start, self._kept)
        starts = [time for time in self._starts if start < time < end]
        if not starts:
            return columns
        free = columns.free
        for time in starts:
            free = free.least(self.free_at(time))
        return replace(columns, free=free, is_empty=nothing_held(columns.total, free))

    def first(
        self,
        job: Job,
        demand: Demand | None = None,
        since: float = -inf,
        place: Callable[[Demand, Columns], Allocation | None] | None = None,
    ) -> tuple[float, Allocation] | None:
        """Return the first moment at which a job fits alone, and where; None: never.

        Without reservations to keep clear of, what fits once fits ever after: bisection.
        Reservations, and advance reservations to come, may stand in the way of a later start only,
        so from there on every moment is tried.

        Args:
            job: the job.
            demand: what it asks for where it asks for the same at every time.
            since: the earliest moment that counts.
            place: says where a job could start on what is free; None: as the auction would.
        """
        place = place or self._place

        def seen(step: int) -> tuple[Demand, Columns] | None:
            return self._seen(job, demand, step, self._always, honour=False)

        leaf = self._state.topology.leaf

        def holding(step: int) -> tuple[Demand, Columns] | None:
            found = seen(step)
            return found if found is not None and _could_hold(*found, leaf) else None

        steps = len(self.times)
        counted = first_found(holding, steps, max(self._first_with(demand), bisect_left(self.times, since)))
        if counted is None:
            return None

        def placed(known: tuple[Demand, Columns] | None) -> Allocation | None:
            return None if known is None else place(*known)

        low = first_found(
            lambda step: placed(counted[1] if step == counted[0] else seen(step)), steps, counted[0]
        )
        if low is None:
            return None
        if not self._state.changes and self._kept == self._always:
            return self.times[low[0]], low[1]
        for step in range(low[0], steps):
            found = placed(self._seen(job, demand, step, self._kept, honour=bool(self._state.changes)))
            if found is not None:
                return self.times[step], found
        return None

    def _first_with(self, demand: Demand | None) -> int:
        """Return a step before which a job's cores are not free, wherever they are."""
        if demand is None or demand.units is None or self._state.reread is not None:
            return 0
        lacking, back = demand.units * demand.unit - int(self._free.cores.sum()), self._given_back
        entry = int(np.searchsorted(np.cumsum(back.held.cores), lacking)) if lacking > 0 else -1
        ends = self._ends[np.searchsorted(back.entries, entry, side="right") - 1 :]
        return bisect_left(self.times, ends[0]) if entry >= 0 and len(ends) else 0

    def _seen(
        self, job: Job, demand: Demand | None, step: int, kept: tuple[ReservedPlace, ...], *, honour: bool
    ) -> tuple[Demand, Columns] | None:
        """Return what the job asks for at a step, and what reservations leave; None: no node."""
        state, time = self._state, self.times[step]
        longest = inf if job.longest_s is None else job.longest_s
        columns = self._at_time(time, kept) if kept == self._always else self.during(time, time + longest)
        if state.reread is not None:
            known = state.is_timed or step > 0
            demand = state.reread(job, columns, time if known else None, honour)
        return None if demand is None else (demand, columns)

    def _place(self, demand: Demand, columns: Columns) -> Allocation | None:
        """Return where a job could start, None when it fits nowhere."""
        return place_alone(demand, columns, self._state.topology, (), self._is_over)


def _could_hold(demand: Demand, columns: Columns, leaf: IntArray) -> bool:
    """Return whether counts are enough for a job alone; ``leaf``: the switch of each node."""
    return GuardedViews(columns, columns.free).of(demand).could_hold(demand, leaf)


def first_found(
    fits: Callable[[int], _Found | None], count: int, first: int = 0
) -> tuple[int, _Found] | None:
    """Return the first of some steps with something found, and that; None if the last has nothing.

    Bisection from a first step on, which is tried first: counts mostly say where a job fits.
    """
    low, high = first - 1, count - 1
    if first and (found := fits(first)) is not None:
        return first, found
    found = fits(high)
    if found is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        earlier = fits(middle)
        if earlier is None:
            low = middle
        else:
            high, found = middle, earlier
    return high, found


def _added(counts: IntArray, node: IntArray, amount: IntArray) -> IntArray:
    # Sums of counts stay far below 2⁵³, so that bincount's floats hold them exactly.
    more: IntArray = np.bincount(node, weights=amount, minlength=len(counts)).astype(np.int64)
    return counts + more


def guard_for(
    job: Job, now: float, time: float, allocation: Allocation, free: Capacity, made: Mapping[str, Allocation]
) -> Guard:
    """Return a reservation as what others must leave free.

    Args:
        job: the job that waits.
        now: seconds since the epoch.
        time: when it starts.
        allocation: where.
        free: what is free then if nothing started before, on each node, less reservations made.
        made: those, by job.
    """
    nodes, kinds = allocation.nodes, free.gres
    left = free.at(nodes).less(_held_on(allocation, nodes, kinds))
    room = left.each(lambda counts: np.maximum(counts, 0))
    kept = {job: _held_on(one, nodes, kinds) for job, one in made.items()}
    return Guard(job=job, time=time, now=now, nodes=nodes, room=room, kept=kept)


def _held_on(allocation: Allocation, nodes: IntArray, kinds: Iterable[str]) -> Capacity:
    """Return what an allocation holds on some nodes; arrays of shape (nodes,)."""
    place = np.minimum(np.searchsorted(allocation.nodes, nodes), len(allocation.nodes) - 1)
    there, none = allocation.nodes[place] == nodes, np.zeros(len(nodes), np.int64)
    gres = allocation.held.gres
    return Capacity(
        cores=allocation.held.cores[place] * there,
        memory=allocation.held.memory[place] * there,
        gres={kind: gres[kind][place] * there if kind in gres else none for kind in kinds},
    )
