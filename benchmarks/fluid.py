"""The fluid bound: the machine as one pool, jobs first come first served, those that do not fit skipped."""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil, inf

from aucsched.cluster.workload import ArrivingJob, ClusterWorkload


def fluid_utilization(workload: ClusterWorkload, interval_s: float | None = None) -> float:
    """Return theoretical run time over makespan when nodes, switches and contiguity do not matter.

    Cores and GPUs are pools of the machine's; every job takes its cores and its fewest GPUs for its run time
    at the fewest. A pass starts, in order of arrival, every waiting job that fits; passes are made after each
    event, or at multiples of ``interval_s``.
    """
    cores, gpus = _pools(workload)
    jobs = [_needs(arriving) for arriving in workload.jobs]
    work = sum(need * arriving.run_time_s for (need, _), arriving in zip(jobs, workload.jobs, strict=True))
    free_cores, free_gpus, last = cores, gpus, 0.0
    waiting: list[int] = []
    ends: list[tuple[float, int]] = []
    come = 0
    while come < len(jobs) or waiting or ends:
        coming = workload.jobs[come].arrival_s if come < len(jobs) else inf
        now = min(coming, ends[0][0] if ends else inf)
        if interval_s is not None:
            now = ceil(now / interval_s) * interval_s
        while ends and ends[0][0] <= now:
            need, gpu = jobs[heappop(ends)[1]]
            free_cores, free_gpus = free_cores + need, free_gpus + gpu
        while come < len(jobs) and workload.jobs[come].arrival_s <= now:
            waiting.append(come)
            come += 1
        left = []
        for job in waiting:
            need, gpu = jobs[job]
            if need <= free_cores and gpu <= free_gpus:
                free_cores, free_gpus = free_cores - need, free_gpus - gpu
                end = now + workload.jobs[job].run_time_s
                heappush(ends, (end, job))
                last = max(last, end)
            else:
                left.append(job)
        waiting = left
    return work / cores / (last - workload.jobs[0].arrival_s)


def _pools(workload: ClusterWorkload) -> tuple[int, int]:
    cores = sum(node.total.cores for node in workload.nodes)
    return cores, sum(node.total.gres.get("gpu", 0) for node in workload.nodes)


def _needs(arriving: ArrivingJob) -> tuple[int, int]:
    """Return a job's cores and fewest GPUs."""
    request = arriving.job.request
    nodes = request.node_counts.minimum if request.node_counts else 1
    gpus = sum(span.minimum for span in request.gres_per_node.values()) * nodes
    return request.cores or nodes * (request.cores_per_node or 0), gpus
