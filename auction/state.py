"""A cluster's state at a moment, the input of each step: free resources, running jobs, their ends.

A snapshot becomes a state; so does a simulated machine, whose columns stay: a step cannot tell.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from math import inf
from operator import attrgetter, is_, is_not
from typing import Self

import numpy as np

from ..bidgen.candidates import GuardedViews
from ..bidgen.families.registry import columns_of, pools_of
from ..cluster.jobs import Job, RunningJob
from ..cluster.nodes import NodeState
from ..cluster.resources.allocation import Allocation, allocation_of_resources, columns_beside
from ..cluster.resources.capacity import BoolArray, Capacity, FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand, DemandReader
from ..cluster.snapshot import Snapshot
from ..topology.tree import Topology, topology_of

#: A node in one of these takes jobs again when one of its running jobs ends.
_COMES_BACK = (NodeState.ALLOCATED, NodeState.COMPLETING)

#: What a job asks for on columns as they will be at a time (seconds since the epoch, None when not
#: known), with or without advance reservations; None: no node could take it.
Reread = Callable[[Job, Columns, float | None, bool], Demand | None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hold:
    """What a running job holds, and when its time limit ends it (seconds); inf: unknown."""

    end: float
    allocation: Allocation


@dataclass(frozen=True, slots=True, eq=False)
class LaidOut:
    """What is given back, by time: one entry for each job and node of it.

    Attributes:
        ends: when, ascending, shape (jobs,); jobs whose end is not known are left out.
        entries: those of job ``i`` are ``entries[i]:entries[i + 1]``, shape (jobs + 1,).
        node: of each entry, shape (entries,).
        held: amounts on it; arrays of shape (entries,).
    """

    ends: FloatArray
    entries: IntArray
    node: IntArray
    held: Capacity


class Holds(tuple[Hold, ...]):  # noqa: SLOT001 - it keeps its layout
    """What runs; laid out once, however many forecasts ask."""

    _laid_out: LaidOut | None = None

    def laid_out(self, kinds: Collection[str]) -> LaidOut:
        """Return what is given back, with the gres of all nodes."""
        if self._laid_out is None:
            ending = sorted((hold for hold in self if hold.end < inf), key=lambda hold: hold.end)
            held = [hold.allocation.held for hold in ending]
            lengths = [len(hold.allocation.nodes) for hold in ending]
            entries = np.cumsum([0, *lengths])
            self._laid_out = LaidOut(
                ends=np.array([hold.end for hold in ending], np.float64),
                entries=entries,
                node=_joined([hold.allocation.nodes for hold in ending]),
                held=Capacity(
                    cores=_joined([one.cores for one in held]),
                    memory=_joined([one.memory for one in held]),
                    gres={kind: _gres(held, lengths, kind) for kind in kinds},
                ),
            )
        return self._laid_out


def _gres(held: Sequence[Capacity], lengths: Sequence[int], kind: str) -> IntArray:
    return _joined(
        [
            one.gres[kind] if kind in one.gres else np.zeros(length, np.int64)
            for one, length in zip(held, lengths, strict=True)
        ]
    )


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepState:
    """What a step decides on.

    Attributes:
        columns: the nodes' free resources and the free licences.
        topology: how far apart nodes are.
        now: seconds; 0 where a snapshot has no time.
        is_timed: whether ``now`` is known.
        holds: what runs.
        comes_back: nodes that take jobs again when a job on them ends, shape (nodes,); None: none.
        changes: later times at which jobs may use other nodes though nothing ends: the ends of
            advance reservations.
        reread: what a job asks for at a later time; None: the same as now.
        views: what has been found of the columns before, by what jobs ask for; None: nothing.
        impossible: what a job asks for that the machine never has; empty: it could run.
    """

    columns: Columns
    topology: Topology
    now: float
    is_timed: bool = True
    holds: Holds = Holds()
    comes_back: BoolArray | None = None
    changes: tuple[float, ...] = ()
    reread: Reread | None = None
    views: GuardedViews | None = None
    impossible: Callable[[Demand], str] = lambda _: ""

    def with_starts(self, starts: Iterable[tuple[Job, Allocation]]) -> Self:
        """Return the state in which jobs have started, each until its time limit."""
        started, holds = tuple(starts), [*self.holds]
        for job, allocation in started:
            limit_s = job.limit_on_s(len(allocation.nodes))
            holds.append(Hold(end=inf if limit_s is None else self.now + limit_s, allocation=allocation))
        columns = columns_beside(self.columns, started)
        return replace(self, columns=columns, holds=Holds(holds), views=None)

    def views_on(self, columns: Columns) -> GuardedViews:
        """Return who could start on columns by counting: on the state's own with what is known."""
        known = self.views if columns is self.columns else None
        return known or GuardedViews(columns, columns.free)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SnapshotState(StepState):
    """The state of a snapshot; ``reader`` reads what its jobs ask for."""

    snapshot: Snapshot
    reader: DemandReader

    def after(self, snapshot: Snapshot) -> tuple[Columns, Topology, DemandReader] | None:
        """Return a later snapshot's columns, distances, reader by the changes; None: too many."""
        before = self.snapshot
        pools = before.licenses, snapshot.licenses
        totals = [{name: one.total for name, one in pool.items()} for pool in pools]
        is_changed = totals[0] != totals[1] or before.limits != snapshot.limits
        if is_changed or not is_same_machine(before, snapshot):
            return None
        changed = list(compress(count(), map(is_not, before.nodes, snapshot.nodes)))
        columns = self.columns.renewed(snapshot.nodes, changed, pools_of(snapshot))
        return columns, self.topology, self.reader.after(snapshot, columns)

    def emptied(self) -> "SnapshotState":
        """Return the cluster with all nodes up and free: no reservations, limits and licences."""
        total, every = self.columns.total, np.ones(len(self.columns.names), np.bool_)
        pools = pools_of(Snapshot(nodes=self.snapshot.nodes[:1]))
        columns = replace(self.columns, free=total, takes_jobs=every, is_empty=every, pools=pools)
        reader = self.reader.at(columns, None, honour_reservations=False)
        return replace(self, columns=columns, reader=reader)


def is_same_machine(before: Snapshot, after: Snapshot) -> bool:
    """Return whether two clusters are the same with all nodes up and free."""
    is_same = len(before.nodes) == len(after.nodes) and _machine(before) == _machine(after)
    pairs = compress(zip(before.nodes, after.nodes, strict=True), map(is_not, before.nodes, after.nodes))
    return is_same and all(_kept(one) == _kept(other) for one, other in pairs)


_machine = attrgetter("switches", "network", "partitions")
_kept = attrgetter("name", "total", "features", "partitions")


def state_of(snapshot: Snapshot, last: SnapshotState | None = None) -> SnapshotState:
    """Return a snapshot's cluster as a state.

    ``last``: that of an earlier snapshot, from which is taken what has not changed. The state is
    the same without it.
    """
    kept = None if last is None else last.after(snapshot)
    if kept is None:
        columns = columns_of(snapshot)
        kept = columns, topology_of(snapshot), DemandReader(snapshot, columns)
        last = None
    columns, topology, reader = kept
    # Of the same objects the same holds; where nothing began or ended, their layout too.
    known = {} if last is None else dict(zip(map(id, last.snapshot.running), last.holds, strict=True))
    holds = Holds(known.get(id(one)) or _hold(one, columns) for one in snapshot.running)
    if last is not None and len(holds) == len(known) and all(map(is_, holds, last.holds)):
        holds = last.holds

    def reread(job: Job, later: Columns, time: float | None, honour: bool) -> Demand | None:
        return reader.at(later, time, honour_reservations=honour).demand(job)

    return SnapshotState(
        columns=columns,
        topology=topology,
        now=snapshot.time or 0.0,
        is_timed=snapshot.time is not None,
        holds=holds,
        comes_back=np.array([node.state in _COMES_BACK for node in snapshot.nodes], np.bool_),
        changes=tuple(entry.end for entry in snapshot.reservations),
        reread=reread,
        snapshot=snapshot,
        reader=reader,
    )


def _hold(running: RunningJob, columns: Columns) -> Hold:
    end = inf if running.end_time is None else running.end_time
    return Hold(end=end, allocation=allocation_of_resources(running.nodes, columns))
