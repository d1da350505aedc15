"""A job's placement: its nodes and what it holds on each, from a start, a bid, or tried alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bidgen.columns import BoolArray, Capacity, Columns, IntArray
from ..bidgen.demand import Demand
from ..bidgen.even_totals import deal_evenly
from ..bidgen.first_fit import FirstFitPlacer, Placement
from ..bidgen.generate import BidOptions, generate_bids
from ..bidgen.table import BidTable
from ..cluster.nodes import Resources
from ..topology.tree import Topology


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Allocation:
    """Where a job could start: nodes, ascending, and what it would hold on each, shape (nodes,).

    ``placement`` is the first-fit placement, None when only the auction's bids found the allocation.
    """

    nodes: IntArray
    held: Capacity
    placement: Placement | None


def place_alone(
    demand: Demand, columns: Columns, topology: Topology, is_over: Callable[[], bool] | None = None
) -> Allocation | None:
    """Return where a job could start on what is free if nothing else did, None when it fits nowhere.

    Once ``is_over`` says that there is no more time, only first-fit looks.
    """
    placement = FirstFitPlacer(columns, topology).place(demand)
    if placement is not None:
        return allocation_of_placement(placement, columns)
    # The auction also bids on nodes that first-fit does not look at together.
    options = BidOptions(max_bids=1, max_bids_per_job=1)
    table = generate_bids((replace(demand, index=0),), columns, topology, options, is_over=is_over).table
    return allocation_of_bid(table, 0) if len(table) else None


def resources_of(demand: Demand, allocation: Allocation, names: Sequence[str]) -> dict[str, Resources]:
    """Return what a job holds at an allocation, by node name; memory where the job counts it."""
    counts_memory = demand.counts_memory
    memory = allocation.held.memory.tolist()
    gres = {kind: counts.tolist() for kind, counts in allocation.held.gres.items() if counts.any()}
    return {
        names[node]: Resources(
            cores=cores,
            memory_mib=memory[place] if counts_memory else None,
            gres={kind: counts[place] for kind, counts in gres.items() if counts[place]},
        )
        for place, (node, cores) in enumerate(
            zip(allocation.nodes.tolist(), allocation.held.cores.tolist(), strict=True)
        )
    }


def allocation_of_placement(placement: Placement, columns: Columns) -> Allocation:
    """Return what a first-fit placement holds."""
    demand = placement.demand
    order = np.argsort(placement.nodes)
    nodes = placement.nodes[order]
    cores = placement.cores[order]
    gres = {kind: np.zeros(len(nodes), np.int64) for kind in columns.total.gres}
    for kind, _, count in placement.choice.per_node:
        if kind in gres:
            gres[kind] += count
    for kind, _, _, high in placement.choice.total:
        if kind in gres:
            free = columns.free.gres[kind][placement.nodes]
            gres[kind] += deal_evenly(free, np.array([0, len(nodes)]), np.array([high]))[order]
    if demand.exclusive:
        gres = {kind: counts[nodes] for kind, counts in columns.total.gres.items()}
    memory = demand.memory_on(cores)
    held = Capacity(cores=cores, memory=np.asarray(memory, np.int64), gres=gres)
    return Allocation(nodes=nodes, held=held, placement=placement)


def allocation_of_bid(table: BidTable, bid: int) -> Allocation:
    """Return what a bid holds, in arrays of its own: a view would keep all bids of its auction in memory."""
    entries = table.entries(bid)
    nodes = table.node[entries].copy()
    memory = np.zeros(len(nodes), np.int64) if table.memory is None else table.memory[entries].copy()
    gres = {kind: counts[entries].copy() for kind, counts in table.gres.items()}
    held = Capacity(cores=table.cores[entries].copy(), memory=memory, gres=gres)
    return Allocation(nodes=nodes, held=held, placement=None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StartingJob:
    """A waiting job starts now, on these nodes with these amounts."""

    demand: Demand
    allocation: Allocation


def add_allocation(capacity: Capacity, allocation: Allocation, sign: int, limited: BoolArray) -> None:
    """Add (+1) or take (−1) what an allocation holds; ``limited`` marks the nodes whose memory is counted."""
    nodes, held = allocation.nodes, allocation.held
    capacity.cores[nodes] += sign * held.cores
    capacity.memory[nodes] += sign * np.where(limited[nodes], held.memory, 0)
    for kind, counts in held.gres.items():
        capacity.gres[kind][nodes] += sign * counts


def add_allocations(capacity: Capacity, allocations: Sequence[Allocation], limited: BoolArray) -> None:
    """Add what many allocations hold, which may share nodes: ``add_allocation`` of each, at once."""
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


def allocation_of_resources(nodes: Mapping[str, Resources], columns: Columns) -> Allocation:
    """Return what a job holds by node name as an allocation."""
    places = sorted(((columns.index[name], use) for name, use in nodes.items()), key=lambda one: one[0])
    uses = [use for _, use in places]
    held = Capacity(
        cores=np.array([use.cores for use in uses], np.int64),
        memory=np.array([use.memory_mib or 0 for use in uses], np.int64),
        gres={
            kind: np.array([use.gres.get(kind, 0) for use in uses], np.int64) for kind in columns.total.gres
        },
    )
    return Allocation(nodes=np.array([place for place, _ in places], np.int64), held=held, placement=None)
