"""Forecasts for a snapshot: its queue and what runs, told to a forecaster of the site's past.

Nodes are pools of cores, and requests cores of pools: what a future counts.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, inf

import numpy as np

from ...auction.options import StepOptions
from ...auction.planning.plan import Planner
from ...auction.queue import in_order
from ...auction.step import run_step
from ...bidgen.candidates import fewest_gres, usable
from ...cluster.jobs import Job, JobType, RunningJob, may_start, running_job
from ...cluster.limits import AMOUNTS, Lasting, Limit
from ...cluster.nodes import Node, NodeState
from ...cluster.resources.allocation import Allocation, allocation_of_resources
from ...cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand, Variant
from ...cluster.schedule import Reason
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from ..workloads.imported import LoggedJob
from .calibration import LEVELS, Calibrator
from .forecaster import FUTURES, Forecaster, QueuedRequest, StartForecast
from .futures_kernel import EASY, RESPONSE

#: Waiting jobs that a pass looks at, as Slurm's.
DEPTH = 2500
#: Bits of a set of pools: nodes beyond are counted with the last pool.
MOST_POOLS = 60
#: What stands before the particulars of a reason.
_BEFORE = {
    Reason.NO_FIT: "when all is empty ",
    Reason.HELD: "it is held: ",
    Reason.NOT_ELIGIBLE: "it waits: ",
}


def not_played(snapshot: Snapshot) -> tuple[str, ...]:
    """Return what of a cluster and its jobs no future plays, in words."""
    licensed = sum(bool(job.request.licenses) for job in snapshot.jobs)
    alone = sum(bool(_unspent(limit)) for limit in snapshot.limits)
    budgets = sum(_unspent(limit) != limit.most for limit in snapshot.limits)
    reserved = [one for one in snapshot.reservations if one.end > (snapshot.time or 0.0)]
    counted = (
        (licensed, f"the licences of {plural(licensed, 'waiting job')}"),
        (alone, f"{plural(alone, 'limit')} of accounts, users or QOS"),
        (len(reserved), f"{plural(len(reserved), 'advance reservation')}"),
    )
    found = [words for count, words in counted if count]
    return (
        *(f"forecasts look at {one} for each job alone: starts may come later" for one in found),
        *[f"forecasts look at no budget ({budgets} of core-seconds): starts may come later"] * bool(budgets),
        *snapshot.unread,
    )


class SnapshotForecaster:
    """Says when the jobs of a snapshot will start.

    Args:
        snapshot: the cluster and its queue now.
        history: jobs that have ended or run, in seconds since the epoch.
        by_worth: the scheduler favours short jobs (``--objective response``).
        decides: ``schedule`` makes the pass of now; otherwise futures do.
        futures, seed, calibrator: as ``Forecaster`` takes them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        history: Sequence[LoggedJob] = (),
        *,
        by_worth: bool = False,
        decides: bool = True,
        futures: int = FUTURES,
        seed: int = 0,
        calibrator: Calibrator | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._empty = _emptied(snapshot)
        #: Says when a job could start if no other did.
        self._alone = Planner(self._empty)
        self._pools = NodePools(self._empty.nodes, self._alone.columns, self._alone.reader.partition_masks)
        # Without a time reservations hold always.
        always = snapshot.time is None
        self._reader = self._alone.reader.at(self._pools.columns, None, honour_reservations=always)
        self.now = snapshot.time or 0.0
        self._options = StepOptions(objective="response" if by_worth else "priority") if decides else None
        self._make = partial(
            Forecaster,
            self._pools.cores,
            policy=RESPONSE if by_worth else EASY,
            is_exact=False,
            depth=DEPTH,
            futures=futures,
            seed=seed,
            calibrator=calibrator,
        )
        self._history = history
        self._queue = in_order(snapshot.jobs)

    def forecasts(
        self, ids: Collection[str] | None = None, *, changed: Mapping[str, Job] | None = None
    ) -> list[StartForecast]:
        """Return the forecasts of some jobs, of all without ``ids``, in the queue's order.

        Args:
            ids: of pending jobs.
            changed: jobs that take the place of those with their ids.
        """
        queue = [(changed or {}).get(job.id, job) for job in self._queue]
        wanted = [job for job in queue if ids is None or job.id in ids]
        requests = [one for rank, job in enumerate(queue) if (one := self._request(job, rank)) is not None]
        able = {request.id for request in requests}
        asked = [job.id for job in wanted if job.id in able]
        found = {one.id: one for one in self._found(asked, requests, queue)} if asked else {}
        never = self._why_never([job for job in wanted if job.id not in able])
        # The forecaster counts GPUs and whole nodes as cores; a table says what a job asks for.
        return [
            replace(found[job.id], cores=job.request.fewest_cores)
            if job.id in found
            else StartForecast(
                id=job.id, asked_s=self.now, cores=job.request.fewest_cores, never=never.get(job.id, "")
            )
            for job in wanted
        ]

    def _found(
        self, asked: Sequence[str], requests: Sequence[QueuedRequest], queue: Sequence[Job]
    ) -> Iterator[StartForecast]:
        """Yield the forecasts of jobs that can start; those that ``schedule`` starts now do."""
        started = self._started(queue)
        forecaster = self._forecaster([*self._snapshot.running, *started.values()], started)
        # It takes jobs in the order in which they may start.
        for request in sorted(requests, key=lambda one: max(one.submit_s, self.now)):
            if request.id not in started:
                forecaster.submit(request)
        is_decided = self._options is not None and bool(forecaster.running)
        waiting = [job for job in asked if job not in started]
        yield from forecaster.forecast(self.now, waiting, is_decided=is_decided)
        for job in started:
            now = (0.0,) * len(LEVELS)
            yield StartForecast(id=job, asked_s=self.now, cores=0, quantiles=now, plan_s=0.0)

    def _started(self, queue: Sequence[Job]) -> dict[str, RunningJob]:
        """Return the jobs that ``schedule`` starts now, as they run then."""
        if self._options is None:
            return {}
        jobs = {job.id: job for job in queue}
        awards = run_step(replace(self._snapshot, jobs=tuple(queue)), self._options).started
        return {one.job: running_job(jobs[one.job], one.nodes, self.now) for one in awards}

    def _forecaster(self, jobs: Sequence[RunningJob], started: Collection[str]) -> Forecaster:
        """Return a forecaster that knows the past and what runs, some of which has started now."""
        forecaster = self._make()
        running = {one.id for one in self._snapshot.running}
        over = [
            (_past(job), job.start_s or job.submit_s, job.run_s)
            for job in self._history
            if job.run_s > 0 and job.id not in running
        ]
        forecaster.remember([one for one in over if one[1] + one[2] <= self.now or not self._snapshot.time])
        since = {job.id: job.start_s for job in self._history if job.id in running}
        columns = self._pools.columns
        held = [*self._pools.held_at_once([allocation_of_resources(one.nodes, columns) for one in jobs])]
        for one, cores in zip(jobs, held, strict=True):
            self._run(forecaster, one, sum(cores), self.now if one.id in started else since.get(one.id))
        forecaster.hold(held)
        return forecaster

    def _run(self, forecaster: Forecaster, job: RunningJob, cores: int, since: float | None) -> None:
        """Let a job of the snapshot run; only the history knows how long it has run.

        A job that the history does not know is taken to have run for as long as it may still run.
        """
        left = None if job.end_time is None else max(job.end_time - self.now, 1.0)
        start = max(self.now - (left or 0.0), 0.0) if since is None else min(since, self.now)
        key: Hashable = ("running", job.id)
        limit = None if left is None else self.now + left - start
        forecaster.submit(QueuedRequest.of(job, id=key, submit_s=start, cores=cores, limit_s=limit))
        forecaster.start(key, start)

    def _request(self, job: Job, rank: int) -> QueuedRequest | None:
        """Return a job as a forecast sees it; None where it cannot start as things are."""
        demand = self._reader.demand(job, rank) if may_start(job) and not job.unsupported else None
        if demand is None or (earliest := self._alone.earliest(demand)) == inf:
            return None
        if self._snapshot.reservations and self._snapshot.time is not None:
            demand = self._reader.at(self._pools.columns, earliest).demand(job, rank) or demand
        cores, pools = self._pools.requested(demand)
        if not pools:
            return None
        submit = self.now if job.submit_time is None else min(job.submit_time, self.now)
        return QueuedRequest.of(
            job,
            id=job.id,
            submit_s=submit if earliest <= self.now else earliest,
            cores=cores,
            limit_s=job.longest_s,
            queue=job.partition or None,
            pools=pools,
            rank=float(rank),
        )

    def _why_never(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Return why jobs cannot start though no other does, as ``schedule`` says it."""
        if not jobs:
            return {}
        alone = replace(self._empty, jobs=tuple(jobs))
        refused = run_step(alone, StepOptions(work_limit=0, window=len(jobs))).pending
        return {one.job: _BEFORE.get(one.reason, "") + one.detail for one in refused}


def _emptied(snapshot: Snapshot) -> Snapshot:
    """Return a cluster on which nothing runs or waits, and no budget is spent."""
    # Reservations are honoured by themselves: what one holds until its end works then.
    now, idle = snapshot.time or 0.0, NodeState.IDLE
    held = {name for one in snapshot.reservations if one.start <= now < one.end < inf for name in one.nodes}
    nodes = (
        replace(node, free=node.total, state=idle if node.state.is_working or is_held else node.state)
        for node in snapshot.nodes
        for is_held in [node.name in held and node.state in (NodeState.RESERVED, NodeState.MAINT)]
    )
    licenses = {name: replace(one, free=one.total) for name, one in snapshot.licenses.items()}
    limits = tuple(replace(limit, most=_unspent(limit)) for limit in snapshot.limits if _unspent(limit))
    return replace(snapshot, nodes=tuple(nodes), licenses=licenses, limits=limits, running=(), jobs=())


def _unspent(limit: Limit) -> dict[str, int]:
    """Return a limit's entries but budgets: what is left of a budget may be more at a start."""
    return {what: most for what, most in limit.most.items() if AMOUNTS.get(what) is not Lasting.BUDGET}


def _past(job: LoggedJob) -> QueuedRequest:
    return QueuedRequest.of(
        job,
        id=job.id,
        submit_s=job.submit_s,
        cores=job.cores or job.nodes or 1,
        limit_s=job.limit_s,
        rank=float("inf"),
    )


class NodePools:
    """The nodes of a cluster, those that the same jobs can use in one pool.

    A job that takes a larger share of a node's memory or gres than of its cores counts for that
    share of the cores. Nodes of a pool are not told apart, so that a future may start a job whose
    cores are scattered.

    Args:
        nodes: of the cluster.
        columns: of the nodes.
        members: the nodes of each partition, shape (nodes,).

    Attributes:
        cores: by pool, of the nodes that work.
        pool: by node.
        columns: of the nodes; those that work take jobs in them, now or later.
    """

    def __init__(self, nodes: Sequence[Node], columns: Columns, members: Mapping[str, BoolArray]) -> None:
        self.columns = replace(
            columns, takes_jobs=np.array([node.state.is_working for node in nodes], np.bool_)
        )
        self._total: Capacity = columns.total
        partitions = np.array([*members.values()], np.bool_).reshape(len(members), len(nodes)).T
        keys = [(mine.tobytes(), _key(node)) for mine, node in zip(partitions, nodes, strict=True)]
        numbers = {key: min(place, MOST_POOLS - 1) for place, key in enumerate(dict.fromkeys(keys))}
        self.pool: IntArray = np.array([numbers[key] for key in keys], np.int64)
        self.cores = self._by_pool(slice(None), columns.total.cores, min(len(numbers), MOST_POOLS))

    def requested(self, demand: Demand) -> tuple[int, int]:
        """Return the cores that a job counts for, and the pools that it can use as bits."""
        bits = cores = 0
        for asked in fewest_gres(demand):
            fitting, _ = usable(asked, self._total, self.columns)
            for kind, _, low, _ in asked.choice.total:
                # A node without any would never help.
                fitting &= np.greater(self._total.gres.get(kind, 0), 0) | (low == 0)
            for pool in np.unique(self.pool[fitting]).tolist():
                bits |= 1 << pool
            if fitting.any() and not cores:
                cores = self._cores_on(demand, asked.variant, int(np.flatnonzero(fitting)[0]))
        return cores or demand.job.request.fewest_cores, bits

    def held_at_once(self, allocations: Sequence[Allocation]) -> Iterator[list[int]]:
        """Yield the cores by pool that each of the running jobs counts for.

        Jobs of a node together count for the largest share of any resource that is in use there:
        one that holds all GPUs and one that holds the other cores count for no core twice.
        """
        used = self._total.each(np.zeros_like)
        for one in allocations:
            for resource in one.held.resources():
                used.amounts(resource)[one.nodes] += one.held.amounts(resource)
        room = self._in_cores(np.arange(len(used.cores)), used) - used.cores
        for one in allocations:
            more = np.minimum(self._in_cores(one.nodes, one.held) - one.held.cores, room[one.nodes])
            room[one.nodes] -= more
            yield self._by_pool(one.nodes, one.held.cores + more, len(self.cores))

    def _by_pool(self, nodes: IntArray | slice, cores: IntArray, pools: int) -> list[int]:
        """Return the sums of cores on some nodes by pool; nodes that do not work add none."""
        working = np.where(self.columns.takes_jobs[nodes], cores, 0)
        return [int(count) for count in np.bincount(self.pool[nodes], working, pools)]

    def _in_cores(self, nodes: IntArray, held: Capacity) -> IntArray:
        """Return what is held on nodes as cores: the largest share of any of their resources."""
        total = self._total.at(nodes)
        parts = [(held.cores, total.cores), (held.memory, total.memory * (total.memory < UNLIMITED_MIB))]
        parts += [(held.gres[kind], counts) for kind, counts in total.gres.items() if kind in held.gres]
        shares = [np.where(there > 0, amount / np.maximum(there, 1), 0.0) for amount, there in parts]
        cores = np.ceil(np.max(shares, axis=0) * total.cores - 1e-9)
        found: IntArray = np.minimum(cores, total.cores).astype(np.int64)
        return found

    def _cores_on(self, demand: Demand, variant: Variant, node: int) -> int:
        """Return the cores that a job counts for where all its nodes are like one."""
        request = demand.job.request
        whole = int(self._total.cores[node])
        per_gres = sum(
            ceil(span.minimum / max(int(self._total.gres[kind][node]), 1))
            for kind, _, span in variant.gres_total
            if kind in self._total.gres
        )
        nodes = max(request.fewest_nodes, per_gres, 1)
        if request.type is JobType.CORES:
            nodes = max(nodes, ceil(request.fewest_cores / max(whole, 1)))
        if demand.exclusive:
            return nodes * whole
        each = ceil(request.fewest_cores / nodes)
        gres = {kind: span.minimum / 1 for kind, _, span in variant.gres}
        gres |= {kind: span.minimum / nodes for kind, _, span in variant.gres_total}
        held = Capacity(
            cores=np.array([each]),
            memory=np.array([demand.memory_per_node + demand.memory_per_core * each]),
            gres={kind: np.array([count]) for kind, count in gres.items()},
        )
        share = int(self._in_cores(np.array([node]), held)[0])
        return nodes * share if share > each else request.fewest_cores


def _key(node: Node) -> object:
    """Return what jobs can tell nodes of the same partitions apart by."""
    gres = tuple(sorted(node.total.gres.items()))
    return (node.features, node.total.cores, node.total.memory_mib, gres)
