"""A finished node-level simulation: the counts of result.py, and beside them where each job ran."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...cluster.resources.allocation import Allocation
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.workload import ClusterWorkload
from ...topology.tree import Topology
from ..log_columns import LARGEST_TIME_S, Requests, Workload, since
from ..result import Column, CutShort, Result
from .node_machine import Machine

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NodeResult(Result):
    """Who ran where under which policy. ``workload`` holds the jobs that ran to their ends, by arrival.

    Its sizes are the cores that jobs held, its run times the true ones. Every start is one of ``played``.

    Attributes:
        cluster: what was played.
        topology: of its nodes; columns: the empty machine's.
        played: by place in ``workload``.
        record: the kernel's, with the jobs that can never start and what failures did.
        nodes_fail: failures were asked for, whether or not any came.
        promises: by job number, the start that was promised; None: no promises were asked for.
        balance: credits that users paid (below 0) or were paid for stopped work; None: nobody might stop.
    """

    cluster: ClusterWorkload
    topology: Topology
    columns: Columns
    played: "tuple[PlayedJob, ...]"
    record: "NodeRun"
    nodes_fail: bool = False
    promises: Mapping[int, float] | None = None
    balance: Mapping[str, float] | None = None

    @property
    def never_started(self) -> list[dict[str, str]]:
        """The jobs that never started, each with its id as ``job`` and its ``reason``."""
        return self.named(self.record.never)

    def named(self, reasons: Mapping[int, str]) -> list[dict[str, str]]:
        """Return reasons by job number as rows with the jobs' ids, in order of arrival."""
        jobs = self.cluster.jobs
        return [{"job": jobs[one].job.id, "reason": why} for one, why in sorted(reasons.items())]

    @property
    def first_s(self) -> float:
        """The first arrival of a job that ended, on the workload's clock: the result's second 0."""
        return self.cluster.jobs[self.played[0].demand.index].arrival_s if self.played else 0.0

    @property
    def end(self) -> Column:
        """Ends in seconds, worked out on the machine's own clock: to the bit where the next starts are."""
        return np.array([one.start_s + one.run_s for one in self.played], np.float64) - self.first_s

    @property
    def cut_short(self) -> CutShort:
        """The runs that failures stopped."""
        stopped = self.record.stopped
        return CutShort(
            start=np.array([one.start_s for one in stopped], np.float64) - self.first_s,
            end=np.array([one.end_s for one in stopped], np.float64) - self.first_s,
            size=np.array([one.allocation.held.cores.sum() for one in stopped], np.float64),
            waits=np.array([one.job in self.record.played for one in stopped], np.float64),
        )

    def failure_counts(self) -> dict[str, float]:
        """Return how often nodes failed, and what that cost.

        Nodes that went down, jobs that waited again, jobs that were lost, and core-seconds of the
        runs that were stopped.
        """
        cut = self.cut_short
        return {
            "node_failures": len(self.record.outages),
            "requeues": self.record.requeues,
            "lost_jobs": len(self.record.lost),
            "lost_core_s": fsum((cut.size * (cut.end - cut.start)).tolist()),
        }

    def preemption_counts(self) -> dict[str, float]:
        """Return how often jobs were stopped for others, how many, and what that cost."""
        stops = self.record.preempted
        return {
            "preemptions": len(stops),
            "preempted_jobs": len({stop.job for stop in stops}),
            "preempted_core_s": fsum(stop.lost_core_s for stop in stops),
            "credits_paid": fsum(stop.credits for stop in stops),
        }

    def broken_promises(self) -> dict[int, str]:
        """Return why a job started after its promise, by number."""
        promises, outages, jobs = self.promises or {}, self.record.outages, self.cluster.jobs
        runs = ((one.demand.index, one.start_s) for one in self.played)
        return {
            number: "nodes were lost"
            if any(one.down_s < start for one in outages)
            else "no room, licence or share of a limit was left by "
            f"{since(promises[number], jobs[0].arrival_s):.15g} s"
            for number, start in runs
            if number in promises and start > promises[number]
        }

    @property
    def allocations(self) -> list[Allocation]:
        """Where each job ran."""
        return [one.allocation for one in self.played]

    @property
    def demands(self) -> list[Demand]:
        """What each job asked for."""
        return [one.demand for one in self.played]

    @cached_property
    def indptr(self) -> Counts:
        """Job ``i`` ran on ``node[indptr[i]:indptr[i + 1]]``, shape (jobs + 1,)."""
        return np.cumsum([0, *(len(allocation.nodes) for allocation in self.allocations)])

    @cached_property
    def node(self) -> Counts:
        """Nodes of all jobs, ascending within a job."""
        return np.concatenate([np.zeros(0, np.int64), *(allocation.nodes for allocation in self.allocations)])

    @cached_property
    def level(self) -> Counts:
        """Level of each job's lowest common switch, shape (jobs,)."""
        switches = self.topology.common_switch_of_sets(self.indptr, self.node)
        levels: Counts = self.topology.level[switches]
        return levels

    @cached_property
    def span(self) -> Counts:
        """Last node less first, plus one, of each job, shape (jobs,)."""
        spans: Counts = self.node[self.indptr[1:] - 1] - self.node[self.indptr[:-1]] + 1
        return spans

    @cached_property
    def node_count(self) -> Counts:
        """Nodes of each job, shape (jobs,)."""
        counts: Counts = np.diff(self.indptr)
        return counts

    @cached_property
    def blocks(self) -> Counts:
        """Runs of consecutive nodes of each job: its fragmentation, shape (jobs,)."""
        begins = np.diff(self.node, prepend=-2) != 1
        begins[self.indptr[:-1]] = True
        counts: Counts = np.add.reduceat(begins, self.indptr[:-1], dtype=np.int64)
        return counts

    @cached_property
    def hops(self) -> Column:
        """Mean links between two nodes of each job, shape (jobs,); 0 where it has one node."""
        means = np.zeros(len(self.played))
        for place, allocation in enumerate(self.allocations):
            first, last = (allocation.nodes[ends] for ends in np.triu_indices(len(allocation.nodes), 1))
            if len(first):
                means[place] = self.topology.hops(first, last).mean()
        return means

    def gres_held(self, kind: str) -> Column:
        """Return how many of a gres each job held, over all its nodes, shape (jobs,)."""
        held = [
            int(allocation.held.gres[kind].sum()) if kind in allocation.held.gres else 0
            for allocation in self.allocations
        ]
        return np.array(held, np.float64)


def node_result(
    cluster: ClusterWorkload,
    machine: Machine,
    record: "NodeRun",
    *,
    policy: str,
    order: str,
    seconds: float,
) -> NodeResult:
    """Return a finished run as a result; times count from the first arrival of a job that ran to its end."""
    played = tuple(record.played.values())
    arrivals = [cluster.jobs[one.demand.index].arrival_s for one in played]
    first = arrivals[0] if arrivals else 0.0
    users = {name: place for place, name in enumerate(sorted({one.demand.job.user for one in played}))}
    requests = Requests(
        processors=int(machine.columns.total.cores.sum()),
        submit=tuple(arrival - first for arrival in arrivals),
        size=tuple(int(one.allocation.held.cores.sum()) for one in played),
        estimate=tuple(min(one.demand.limit_s, LARGEST_TIME_S) for one in played),
        user=tuple(users[one.demand.job.user] for one in played),
        weight=(1,) * len(played),
    )
    workload = Workload(
        requests=requests,
        run=tuple(one.run_s for one in played),
        ids=tuple(one.demand.job.id for one in played),
        row=tuple(one.demand.index for one in played),
        rows=len(cluster.jobs),
        killed=frozenset(place for place, one in enumerate(played) if one.killed),
    )
    return NodeResult(
        workload=workload,
        policy=policy,
        order=order,
        starts=tuple(one.start_s - first for one in played),
        seconds=seconds,
        cluster=cluster,
        topology=machine.topology,
        columns=machine.columns,
        played=played,
        record=record,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlayedJob:
    """What became of a job that started; ``run_s`` is its true run time, cut at its time limit."""

    demand: Demand
    allocation: Allocation
    start_s: float
    run_s: float
    killed: bool


class StoppedAttempt(NamedTuple):
    """A run that ended when one of its nodes went down: the job's number, where and when it ran."""

    job: int
    allocation: Allocation
    start_s: float
    end_s: float


class NodeOutage(NamedTuple):
    """A node that was down: its place, since when, and when it came back; infinite where it never did."""

    node: int
    down_s: float
    up_s: float


class Preempted(NamedTuple):
    """A run that a job which paid more ended: both numbers, when, core-seconds lost, credits paid."""

    job: int
    by: int
    time_s: float
    lost_core_s: float
    credits: float


@dataclass(slots=True, eq=False, kw_only=True)
class NodeRun:
    """A finished simulation.

    Attributes:
        played: the runs that came to their ends, by job number, ascending.
        never: why a job can never start, or never again, by job number.
        lost: why a job that a failure stopped is lost, by job number; every job stands in one of
            the three.
        preempted: runs that other jobs stopped, in that order; they stand in ``stopped`` too.
        stopped: runs that failures or other jobs stopped, in that order; a job may have several.
        outages: nodes that went down while there was something to do, in that order.
        requeues: how often a job that a failure stopped waited again.
        passes: how often the policy was asked.
    """

    played: dict[int, PlayedJob] = field(default_factory=dict)
    never: dict[int, str] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    stopped: list[StoppedAttempt] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    outages: list[NodeOutage] = field(default_factory=list)
    requeues: int = 0
    passes: int = 0
