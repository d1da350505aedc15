"""Allocations: the nodes of a job, and what it holds on each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..jobs import Job
from ..nodes import Resources
from .capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray, capacity_of, nothing_held
from .columns import Columns
from .demand import Demand


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Allocation:
    """Where a job could start: nodes, ascending, and what it would hold on each, shape (nodes,).

    Attributes:
        own: 1 for nodes that the job gets, 0 for those that it only keeps others from, as the rest
            of a block that must be its alone; None: it gets all.
    """

    nodes: IntArray
    held: Capacity
    own: IntArray | None = None


def resources_of(demand: Demand, allocation: Allocation, names: Sequence[str]) -> dict[str, Resources]:
    """Return what a job gets at an allocation, by node name; memory where the job counts it.

    Nodes with the same amounts share one object.
    """
    if allocation.own is not None:
        own = np.flatnonzero(allocation.own)
        allocation = Allocation(nodes=allocation.nodes[own], held=allocation.held.at(own))
    held, made = allocation.held, dict[tuple[int, ...], Resources]()
    gres = {kind: counts.tolist() for kind, counts in held.gres.items() if counts.any()}
    amounts = list(zip(held.cores.tolist(), held.memory.tolist(), *gres.values(), strict=True))
    for one in dict.fromkeys(amounts):
        cores, memory, *counts = one
        made[one] = Resources(
            cores=cores,
            memory_mib=memory if demand.counts_memory else None,
            gres={kind: count for kind, count in zip(gres, counts, strict=True) if count},
        )
    places = zip(allocation.nodes.tolist(), amounts, strict=True)
    return {names[node]: made[one] for node, one in places}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StartingJob:
    """A waiting job starts now, on these nodes with these amounts."""

    demand: Demand
    allocation: Allocation


def add_allocation(capacity: Capacity, allocation: Allocation, sign: int, limited: BoolArray) -> None:
    """Add (+1) or take (−1) what an allocation holds, in every row where a capacity has several.

    ``limited`` marks the nodes whose memory is counted.
    """
    nodes, held = allocation.nodes, allocation.held
    capacity.cores[..., nodes] += sign * held.cores
    if np.count_nonzero(held.memory):
        capacity.memory[..., nodes] += sign * np.where(limited[nodes], held.memory, 0)
    for kind, counts in held.gres.items():
        capacity.gres[kind][..., nodes] += sign * counts


def add_allocations(capacity: Capacity, allocations: Sequence[Allocation], limited: BoolArray) -> None:
    """Add what many allocations hold, which may share nodes: all ``add_allocation`` at once."""
    if not allocations:
        return
    nodes = np.concatenate([allocation.nodes for allocation in allocations])
    np.add.at(capacity.cores, nodes, np.concatenate([allocation.held.cores for allocation in allocations]))
    memory = np.concatenate([allocation.held.memory for allocation in allocations])
    np.add.at(capacity.memory, nodes, np.where(limited[nodes], memory, 0))
    for kind, free in capacity.gres.items():
        holding = [allocation for allocation in allocations if kind in allocation.held.gres]
        if holding:
            there = np.concatenate([allocation.nodes for allocation in holding])
            np.add.at(free, there, np.concatenate([allocation.held.gres[kind] for allocation in holding]))


def put(columns: Columns, allocation: Allocation, sign: int, limited: BoolArray) -> None:
    """Give back (+1) or take (−1) what an allocation holds of the columns themselves."""
    nodes, free = allocation.nodes, columns.free
    add_allocation(free, allocation, sign, limited)
    columns.is_empty[nodes] = nothing_held(columns.total.at(nodes), free.at(nodes))


def columns_beside(columns: Columns, starts: Iterable[tuple[Job, Allocation]]) -> Columns:
    """Return columns without what jobs take that start at allocations."""
    free, pools, empty = columns.free.copy(), columns.pools.copy(), columns.is_empty.copy()
    kept = tuple(one.copy() for one in columns.kept)
    beside = replace(columns, free=free, pools=pools, kept=kept, is_empty=empty)
    limited = columns.total.memory < UNLIMITED_MIB
    for job, where in starts:
        put(beside, where, -1, limited)
        pools.take(job, where.held)
        for one in kept:
            one.take(job, where.nodes, where.held)
    return beside


def allocation_of_resources(nodes: Mapping[str, Resources], columns: Columns) -> Allocation:
    """Return what a job holds by node name as an allocation."""
    places = sorted(((columns.index[name], use) for name, use in nodes.items()), key=lambda one: one[0])
    held = capacity_of([use for _, use in places], columns.total.gres, 0)
    return Allocation(nodes=np.array([place for place, _ in places], np.int64), held=held)
