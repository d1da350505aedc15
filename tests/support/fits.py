"""Whether a job fits, by trying every set of nodes; and a cluster as it is once an award holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from aucsched import Award, Job, Node, Snapshot
from aucsched.cluster.jobs import RunningJob
from aucsched.cluster.snapshot import held_resources


def with_awards(cluster: Snapshot, awards: Iterable[Award]) -> Snapshot:
    """Return the cluster with what awards hold no longer free, and an empty queue."""
    started = list(awards)
    held = held_resources(RunningJob(id=award.job, nodes=award.nodes) for award in started)
    jobs = {job.id: job for job in cluster.jobs}
    licenses = dict(cluster.licenses)
    for award in started:
        for name, count in jobs[award.job].request.licenses.items():
            licenses[name] = replace(licenses[name], free=licenses[name].free - count)
    nodes = tuple(replace(node, free=node.free.less(held.get(node.name))) for node in cluster.nodes)
    return replace(cluster, nodes=nodes, licenses=licenses, jobs=())


def fits_somewhere(cluster: Snapshot, job: Job) -> bool:
    """Return whether some set of nodes holds a job (without partitions, features and reservations)."""
    counts = job.request.node_counts
    if any(count > cluster.licenses[name].free for name, count in job.request.licenses.items()):
        return False
    usable = [place for place, node in enumerate(cluster.nodes) if _is_usable(node, job)]
    sizes = range(1, len(usable) + 1) if counts is None else range(counts.minimum, counts.maximum + 1)
    return any(_holds(cluster, job, places) for size in sizes for places in combinations(usable, size))


def _is_usable(node: Node, job: Job) -> bool:
    request, free = job.request, node.free
    if not node.state.takes_jobs or (request.exclusive and free != node.total):
        return False
    if any(free.gres.get(name, 0) < span.minimum for name, span in request.gres_per_node.items()):
        return False
    memory = request.memory_mib_per_node or 0
    enough = free.memory_mib is None or free.memory_mib >= memory
    return enough and _units(node, job) >= _least(job)


def _least(job: Job) -> int:
    request = job.request
    return -(-(request.cores_per_node or request.min_cores_per_node) // request.cores_per_task)


def _units(node: Node, job: Job) -> int:
    request = job.request
    units = node.free.cores // request.cores_per_task
    if request.memory_mib_per_core and node.free.memory_mib is not None:
        units = min(units, node.free.memory_mib // (request.memory_mib_per_core * request.cores_per_task))
    return units


def _holds(cluster: Snapshot, job: Job, places: tuple[int, ...]) -> bool:
    request = job.request
    nodes = [cluster.nodes[place] for place in places]
    names = {node.name for node in nodes}
    if not set(request.required_nodes) <= names:
        return False
    if request.contiguous and places[-1] - places[0] + 1 != len(places):
        return False
    leaves = sum(bool(names & set(switch.nodes)) for switch in cluster.switches or ())
    if request.max_switches is not None and leaves > request.max_switches:
        return False
    for name, span in request.gres_total.items():
        if sum(node.free.gres.get(name, 0) for node in nodes) < span.minimum:
            return False
    if request.cores_per_node is not None or request.cores is None:
        return True
    units = request.cores // request.cores_per_task
    least_fits = request.exclusive or len(nodes) * _least(job) <= units
    return least_fits and sum(_units(node, job) for node in nodes) >= units
