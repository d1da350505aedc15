"""What jobs ask for, in words, and what of it a cluster lacks even with all nodes up and free."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..bidgen.candidates import GuardedViews, usable_in_any
from ..cluster.jobs import Job, Request
from ..cluster.resources.capacity import BoolArray, Capacity, IntArray
from ..cluster.resources.demand import Demand, is_type_of
from ..cluster.text import listed, plural
from ..formats.hostlist import fold
from ..topology.tree import Topology
from .state import SnapshotState


class ImpossibleRequests:
    """Says what jobs ask for that a cluster has not, even with all its nodes up and free."""

    def __init__(self, state: SnapshotState) -> None:
        self._state = state

    @cached_property
    def _empty(self) -> SnapshotState:
        return self._state.emptied()

    @cached_property
    def _views(self) -> GuardedViews:
        return GuardedViews(self._empty.columns, self._empty.columns.free)

    def why(self, demand: Demand) -> str:
        """Return what too much a job asks for, the same for all alike; empty: it could run."""
        known = self._state.reader.impossible
        if demand.form not in known:
            known[demand.form] = next(self._too_much(demand), "")
        return known[demand.form]

    def able(self, demand: Demand) -> BoolArray:
        """Return the nodes that could be among the job's if all were up and free, shape (n,)."""
        alone, columns = self._empty.reader.demand(demand.job) or demand, self._empty.columns
        return usable_in_any(alone, columns.free, columns)

    def _too_much(self, demand: Demand) -> Iterator[str]:
        job, request, total = demand.job, demand.job.request, self._state.columns.total
        described = self._state.reader.described_by(job)
        whose = f"partition {job.partition} has" if job.partition else "there are"
        if request.features or request.excluded_nodes:
            whose = "the nodes that it may use have"
        count, cores = int(described.sum()), int(total.cores[described].sum())
        if request.fewest_nodes > count:
            yield f"it asks for {plural(request.fewest_nodes, 'node')}, {whose} {count}"
        if request.fewest_cores > cores:
            yield f"it asks for {plural(request.fewest_cores, 'core')}, {whose} {cores}"
        short = short_of_units(demand, self._state.topology, np.arange(len(described)))
        if short:
            yield f"when all is empty {short}"
        for asked, unit, amounts in _of_each_node(request, total):
            most = int(amounts[described].max(initial=0))
            if asked > most:
                yield f"it asks for {asked} {unit} on a node, the largest that it may use has {most}"
        for name, asked in request.licenses.items():
            most = self._state.snapshot.licenses[name].total
            if asked > most:
                yield f"it asks for {plural(asked, f'{name} licence')}, there are {most} in all"
        alone = self._empty.reader.demand(job)
        if alone is not None and not self._views.of(alone).could_hold(alone, self._empty.topology.leaf):
            yield f"when all is empty no nodeset holds {of_nodes(job)}"


def _of_each_node(request: Request, total: Capacity) -> Iterator[tuple[int, str, IntArray]]:
    """Yield what a job asks for on each node, in which unit, and what each has, shape (n,)."""
    cores = request.cores_per_node or 0
    yield cores, "core" if cores == 1 else "cores", total.cores
    yield request.memory_mib_per_node or 0, "MiB", total.memory
    for name, span in request.gres_per_node.items():
        counts = [counts for kind, counts in total.gres.items() if is_type_of(kind, name)]
        yield span.minimum, name, np.max([np.zeros_like(total.cores), *counts], axis=0)


def short_of_units(demand: Demand, topology: Topology, nodes: IntArray) -> str:
    """Return what blocks, rings or tori lack for a job on some nodes; empty where nothing."""
    units, asked = topology.units, demand.job.request.node_counts
    if units is None or asked is None or not (demand.in_units or demand.max_switches == 1):
        return ""
    return units.shortage(demand, nodes, (demand.node_counts or asked).minimum)


def of_nodes(job: Job) -> str:
    """Return in words what a job asks of its nodes, wherever it may run."""
    required = [f"with {listed(fold(job.request.required_nodes))}"] if job.request.required_nodes else []
    return ", ".join([*size_words(job.request), *place_words(job.request), *required])


def size_words(request: Request) -> Iterator[str]:
    """Yield the nodes, cores, gres and memory of a request in words."""
    if request.node_counts is not None:
        counts, thing = request.node_counts, "empty node" if request.exclusive else "node"
        exact = plural(counts.minimum, thing)
        yield exact if counts.is_exact else f"{counts.minimum} to {counts.maximum} {thing}s"
    elif request.exclusive:
        yield "empty nodes"
    if request.cores_per_node is not None:
        yield f"{plural(request.cores_per_node, 'core')} a node"
    elif request.cores is not None:
        yield plural(request.cores, "core")
    if request.min_cores_per_node > 1:
        yield f"at least {request.min_cores_per_node} cores a node"
    if request.cores_per_task > 1:
        yield f"{request.cores_per_task} cores a task"
    yield from _amount_words(request)


def _amount_words(request: Request) -> Iterator[str]:
    for spans, where in ((request.gres_per_node, "a node"), (request.gres_total, "in all")):
        for name, span in spans.items():
            count = f"{span.minimum}" if span.is_exact else f"{span.minimum} to {span.maximum}"
            yield f"{count} {name} {where}"
    if request.memory_mib_per_node:
        yield f"{request.memory_mib_per_node} MiB a node"
    if request.memory_mib_per_core:
        yield f"{request.memory_mib_per_core} MiB a core"


def place_words(request: Request) -> Iterator[str]:
    """Yield in words how the nodes of a request must stand to each other."""
    if request.contiguous:
        yield "consecutive nodes"
    if request.max_switches is not None:
        yield f"at most {plural(request.max_switches, 'leaf switch')}"
    if request.segment is not None:
        ways = {"spread": request.spread_segments, "consolidated": request.consolidate_segments}
        yield ", ".join([f"segments of {request.segment}", *(word for word, holds in ways.items() if holds)])
    if request.exclusive_topo:
        yield "no other job in its blocks"
