"""A finished node-level simulation: result.py's, and where each job ran (Soner, section 7.4)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...bidgen.candidates import FreeView, node_key
from ...cluster.limits import of_gres
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import Capacity
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.text import plural
from ...cluster.workload import ArrivingJob, ClusterWorkload
from ...formats.hostlist import fold
from ...topology.tree import Topology
from ..log_columns import LARGEST_TIME_S, Requests, Workload, since
from ..placement import Runs, Stay, lowest_first
from ..report import Column, count_lines, csv_of, mean_and_std, ratio, sum_of
from ..result import CutShort, Simulation
from .kernel import NodeRun, PlayedJob
from .node_machine import Machine

Counts = NDArray[np.int64]
#: A row of each job.
_COLUMNS = (
    *("id", "submit_s", "start_s", "end_s", "cores", "nodes", "wait_s", "run_s", "estimate_s"),
    *("user", "account", "gpus", "level", "span", "fragmentation"),
)
#: Jobs that never start which the table names before it says how many more there are.
_LISTED = 5
#: Members of arriving jobs that only negotiations read.
_NEGOTIATED = ("not_before_s", "deadline_s", "budget_core_h")


def unread_members(workload: ClusterWorkload) -> Iterator[str]:
    """Yield which members of a workload's jobs no simulation of nodes looks at."""
    for name in _NEGOTIATED:
        if count := sum(getattr(arriving, name) is not None for arriving in workload.jobs):
            yield f"{name} of {plural(count, 'job')} is not looked at: aucsched negotiate honours it"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NodeSimulation(Simulation):
    """Who ran where under which policy. ``workload`` holds the jobs that ran to an end, by arrival.

    Its sizes are the cores that jobs held, its run times the true ones. ``played`` has every start.

    Attributes:
        cluster: what was played.
        topology: of its nodes; empty: the columns of the empty machine.
        played: by place in ``workload``.
        record: the kernel's, with the jobs that can never start and what failures did.
        nodes_fail: failures were asked for, whether or not any came.
        promises: by job number, the start that was promised; None: no promises were asked for.
        balance: credits that users paid (below 0) or got for stopped work; None: no preemption.
    """

    spreads: ClassVar[Mapping[str, tuple[str, str]]] = {
        **Simulation.spreads,
        "span (nodes)": ("span", ""),
        "spread": ("spread", ""),
        "level": ("level", ""),
        "fragmentation": ("fragmentation", ""),
        "packing factor": ("packing_factor", ""),
    }
    figures: ClassVar[Mapping[str, tuple[str, str]]] = {
        **Simulation.figures,
        "GPU utilisation": ("gpu_utilization", ""),
    }

    cluster: ClusterWorkload
    topology: Topology
    empty: Columns
    played: tuple[PlayedJob, ...]
    record: NodeRun
    nodes_fail: bool = False
    promises: Mapping[int, float] | None = None
    balance: Mapping[str, float] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeSimulation) or self.cluster != other.cluster:
            return False
        mine, theirs = ({**one.to_dict(), "seconds": None} for one in (self, other))
        return mine == theirs and self.columns == other.columns

    def __hash__(self) -> int:
        return hash((self.policy, self.starts))

    @property
    def never_started(self) -> list[dict[str, str]]:
        """The jobs that never started, each with its id as ``job`` and its ``reason``."""
        return self.named(self.record.never)

    def named(self, reasons: Mapping[int, str]) -> list[dict[str, str]]:
        """Return reasons by job number as rows with the jobs' ids, in order of arrival."""
        jobs = self.cluster.jobs
        return [{"job": jobs[one].job.id, "reason": why} for one, why in sorted(reasons.items())]

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the workload no simulation of nodes looks at, a text each."""
        return tuple(unread_members(self.cluster))

    @property
    def first_s(self) -> float:
        """The first arrival by the workload's clock, even if it never starts: the result's 0."""
        return next((one.arrival_s for one in self.cluster.jobs), 0.0)

    @property
    def end(self) -> Column:
        """Ends in seconds by the machine's own clock: to the bit where the next starts are."""
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
    def gpus(self) -> Counts:
        """GPUs of each job, shape (jobs,)."""
        return np.array([_gpus_of(one.held) for one in self.allocations], np.int64)

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

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Every metric by name: those of any machine, and those of nodes.

        - ``theoretical_runtime_s`` (7.2) with the run time at the fewest gres, so that it is the
          same for every policy; ``cpu_utilization`` (7.3) is its ratio to the makespan.
        - ``gpu_utilization``: GPU-seconds held over GPUs × makespan; null without GPUs.
        - ``level``: of the lowest common switch, leaf = 0; ``level_job_shares`` and
          ``level_time_shares`` by level, of the jobs and of their run times; null where there are
          no switches.
        - ``hops``: on a torus, dragonfly or graph: mean links between nodes of jobs with several.
        - ``span``: last node less first, plus one; ``spread``: span over nodes.
        - ``fragmentation``: runs of consecutive nodes.
        - ``packing_factor``: nodes over the fewest of the empty cluster that hold the request.
        """
        values = super().metrics
        if not len(self.started):
            return values
        values["gpu_utilization"] = self._gpu_utilization()
        columns: dict[str, NDArray[Any]] = {
            "span": self.span,
            "spread": self.span / self.node_count,
            "fragmentation": self.blocks,
            "packing_factor": self.node_count / self._fewest(),
        }
        if not self.topology.is_linear:
            columns["level"] = self.level
            values["level_job_shares"] = self._shares(np.ones(len(self.level)))
            values["level_time_shares"] = self._shares(self.run)
        several = self.node_count > 1
        if self.topology.distances is not None and several.any():
            columns["hops"] = self.hops[several]
        for name, column in columns.items():
            values[f"{name}_mean"], values[f"{name}_std"] = mean_and_std(column)
        return values

    def _theoretical_s(self) -> float:
        jobs = self.cluster.jobs
        work = []
        for demand in self.demands:
            arriving = jobs[demand.index]
            limit = arriving.job.limit_on_s(demand.fewest_nodes)
            run = arriving.run_time_s if limit is None else min(arriving.run_time_s, limit)
            work.append(run * demand.job.request.fewest_cores)
        return fsum(work) / self.workload.requests.processors

    def _gpu_utilization(self) -> float | None:
        return ratio(sum_of(self.run * self.gpus), _gpus_of(self.empty.total) * self.makespan)

    def _shares(self, weight: Column) -> dict[str, float]:
        whole = fsum(weight.tolist())
        levels = range(self.topology.max_level + 1)
        return {str(level): fsum(weight[self.level == level].tolist()) / whole for level in levels}

    def _fewest(self) -> Counts:
        """Return the fewest nodes of the empty cluster that hold each job."""
        view = FreeView(self.empty, self.empty.total)
        known: dict[object, int] = {}
        fewest = []
        for demand in self.demands:
            key = (node_key(demand), demand.units, demand.node_counts)
            if key not in known:
                most = (one.most_units for one in view.candidates(demand))
                of_units = min(int(np.searchsorted(units, demand.units or 0)) for units in most)
                known[key] = max(demand.fewest_nodes, of_units)
            fewest.append(known[key])
        return np.array(fewest, np.int64)

    def _members_of_machine(self) -> dict[str, Any]:
        """Return the document's part on nodes: all jobs, counted or listed; only what was asked."""
        failed = {**self.failure_counts(), "lost": self.named(self.record.lost)}
        promised = {
            "promises": len(self.promises or ()),
            "broken_promises": self.named(self.broken_promises()),
        }
        preempted = {**self.preemption_counts(), "balances": dict(sorted((self.balance or {}).items()))}
        return {
            "nodes": len(self.empty.names),
            "passes": self.record.passes,
            **(failed if self.nodes_fail else {}),
            **(promised if self.promises is not None else {}),
            **(preempted if self.balance is not None else {}),
        }

    def _lines_of_machine(self) -> list[str]:
        lines = []
        for what in ("job", "time"):
            shares = self.metrics.get(f"level_{what}_shares")
            if shares:
                levels = "  ".join(f"{level}: {share:.1%}" for level, share in shares.items())
                lines.append(f"{f'{what} share by level':<22}  {levels}")
        if self.nodes_fail:
            lines += count_lines(self.failure_counts())
        if self.balance is not None:
            lines += count_lines(self.preemption_counts())
        if self.promises is not None:
            broken = self.broken_promises()
            lines += count_lines({"promises": len(self.promises), "broken_promises": len(broken)})
            lines += self._listed(broken, "starts late")
        lines += self._listed(self.record.never, "never starts")
        return lines + self._listed(self.record.lost, "is lost")

    def _listed(self, reasons: Mapping[int, str], what: str) -> list[str]:
        """Return a line for each of the first jobs, and how many more there are."""
        named = self.named(reasons)
        lines = [f"job {one['job']} {what}: {one['reason']}" for one in named[:_LISTED]]
        if (more := len(named) - _LISTED) > 0:
            lines.append(f"and {plural(more, 'more job', what)}; --format json lists all")
        return lines

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job in order of arrival, by column; None where a job never started.

        Times count from the first arrival; ``nodes`` is a hostlist.
        """
        places = {one.demand.index: place for place, one in enumerate(self.played)}
        jobs = enumerate(self.cluster.jobs)
        rows = [self._row(arriving, places.get(number)) for number, arriving in jobs]
        return {name: [row[name] for row in rows] for name in _COLUMNS}

    def _row(self, arriving: ArrivingJob, place: int | None) -> dict[str, Any]:
        """Return a job's row of a table; ``place``: its place among ended jobs, None: not ended."""
        begin, job = self.first_s, arriving.job
        submit = since(arriving.arrival_s, begin)
        row = dict.fromkeys(_COLUMNS) | {
            "id": job.id,
            "submit_s": submit,
            "run_s": arriving.run_time_s,
            "estimate_s": job.time_limit_s,
            "user": job.user,
            "account": job.account,
        }
        if place is None:
            return row
        # An end has the float of the start that takes its place.
        one = self.played[place]
        start, held = since(one.start_s, begin), one.allocation.held
        return row | {
            "start_s": start,
            "end_s": since(one.start_s + one.run_s, begin),
            "cores": int(held.cores.sum()),
            "nodes": ",".join(fold([self.empty.names[node] for node in one.allocation.nodes.tolist()])),
            "wait_s": round(start - submit, 6),
            "run_s": one.run_s,
            "gpus": int(self.gpus[place]),
            "level": None if self.topology.is_linear else int(self.level[place]),
            "span": int(self.span[place]),
            "fragmentation": int(self.blocks[place]),
        }

    @property
    def placed(self) -> dict[int, Runs]:
        """The cores of each job, numbered through all nodes in order: each node's lowest free."""
        # The machine's own clock: counted from the first submission, rounding may put an end after
        # a start that it made room for.
        stays = {}
        for job, one in enumerate(self.played):
            nodes, cores = one.allocation.nodes.tolist(), one.allocation.held.cores.tolist()
            stays[job] = Stay(one.start_s, one.start_s + one.run_s, list(zip(nodes, cores, strict=True)))
        return lowest_first(self.empty.total.cores.tolist(), stays)

    def jobs_csv(self) -> str:
        """Return the jobs as CSV (``columns`` without accounts).

        Beside the columns of the counts-only machine: GPUs held, level (empty without switches),
        span and runs of consecutive nodes; where nodes fail, how often the job was stopped.
        """
        columns = self.columns
        columns.pop("account", None)
        if self.nodes_fail:
            stops = Counter(one.job for one in self.record.stopped)
            columns["stops"] = [stops[number] for number in range(len(self.cluster.jobs))]
        return csv_of(columns, quoted="nodes")


def _gpus_of(amounts: Capacity) -> int:
    return of_gres("gpu", {kind: int(counts.sum()) for kind, counts in amounts.gres.items()})


def node_result(
    cluster: ClusterWorkload, machine: Machine, record: NodeRun, **members: Any
) -> NodeSimulation:
    """Return a finished run as a result, with other members that it has.

    Times count from the first arrival.
    """
    played = tuple(record.played.values())
    arrivals = [cluster.jobs[one.demand.index].arrival_s for one in played]
    first = next((one.arrival_s for one in cluster.jobs), 0.0)
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
    return NodeSimulation(
        workload=workload,
        starts=tuple(one.start_s - first for one in played),
        cluster=cluster,
        topology=machine.topology,
        empty=machine.columns,
        played=played,
        record=record,
        **members,
    )
