"""The state of a cluster at one moment, the input of every step: free resources, running jobs and their ends.

A snapshot becomes a state, and so does a simulated machine, whose columns stay: the step does not know which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from ..bidgen.columns import BoolArray, Columns, columns_of
from ..bidgen.demand import Demand, DemandReader
from ..cluster.jobs import Job, RunningJob
from ..cluster.nodes import NodeState
from ..cluster.snapshot import Snapshot
from ..topology.tree import Topology, topology_of
from .spot import Spot, spot_of_resources

#: A node in one of these takes jobs again when one of its running jobs ends.
_COMES_BACK = (NodeState.ALLOCATED, NodeState.COMPLETING)

#: What a job asks for on columns as they will be at a time (seconds since the epoch, None when not known),
#: with or without advance reservations; None: no node could take it.
Reread = Callable[[Job, Columns, float | None, bool], Demand | None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hold:
    """What a running job holds, and when it gives it back by its time limit (seconds); inf: not known."""

    end: float
    spot: Spot


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class State:
    """What a step decides on.

    Attributes:
        columns: the nodes' free resources and the free licences.
        topology: how far apart nodes are.
        now: seconds; 0 where a snapshot has no time.
        is_timed: whether ``now`` is known.
        holds: what runs.
        comes_back: nodes that take jobs again when a job on them ends, shape (nodes,); None: none.
        changes: later times at which jobs may use other nodes though nothing ends: the ends of advance
            reservations.
        reread: what a job asks for at a later time; None: the same as now.
    """

    columns: Columns
    topology: Topology
    now: float
    is_timed: bool = True
    holds: tuple[Hold, ...] = ()
    comes_back: BoolArray | None = None
    changes: tuple[float, ...] = ()
    reread: Reread | None = None


def state_of(snapshot: Snapshot) -> State:
    """Return a snapshot's cluster as a state."""
    columns = columns_of(snapshot)
    return State(
        columns=columns,
        topology=topology_of(snapshot),
        now=snapshot.time or 0.0,
        is_timed=snapshot.time is not None,
        holds=tuple(_hold(running, columns) for running in snapshot.running),
        comes_back=np.array([node.state in _COMES_BACK for node in snapshot.nodes], np.bool_),
        changes=tuple(entry.end for entry in snapshot.reservations),
        reread=lambda job, later, time, honour: _reread(snapshot, job, later, time, honour=honour),
    )


def _hold(running: RunningJob, columns: Columns) -> Hold:
    end = inf if running.end_time is None else running.end_time
    return Hold(end=end, spot=spot_of_resources(running.nodes, columns))


def _reread(
    snapshot: Snapshot, job: Job, columns: Columns, time: float | None, *, honour: bool
) -> Demand | None:
    """Return what a job asks for on columns as they will be at a time."""
    cluster = Snapshot(
        nodes=snapshot.nodes,
        time=time,
        partitions=snapshot.partitions,
        reservations=snapshot.reservations,
    )
    demand = DemandReader(cluster, columns, honour_reservations=honour).read(job, 0)
    return demand if isinstance(demand, Demand) else None
