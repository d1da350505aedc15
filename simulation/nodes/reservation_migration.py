"""Promises that give way: their jobs are put elsewhere at the same starts, so that another may start now.

A promise keeps nodes. Where as many others are free then, a job that would still run on those is not to wait
for them: it is put on what is free now, the nodes first that were promised latest, and the places of the
promises are looked for anew beside it. None is put off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from ...auction.reserve import Promise, StepReservations
from ...auction.state import Hold, Holds, StepState
from ...bidgen.candidates import FreeView
from ...bidgen.first_fit import FirstFitPlacer
from ...cluster.resources.allocation import Allocation, add_allocation
from ...cluster.resources.capacity import UNLIMITED_MIB, Capacity, IntArray
from ...cluster.resources.demand import Demand
from ...cluster.resources.job_reservations import Guard
from ...cluster.resources.pools import use_of

#: Jobs for which places are looked for in vain in one pass.
TRIES = 3


def given_way(
    state: StepState, queue: Iterable[Demand], promised: Sequence[Promise]
) -> tuple[list[Promise], set[int]]:
    """Return the promises of those that do not start with their places, and the jobs that start by that.

    Args:
        state: the cluster; left alone.
        queue: the waiting jobs, those first that are to start first.
        promised: their promises, the earliest first, all of which can be kept.
    """
    trial = _Trial(state, promised)
    for demand in queue:
        if trial.failed >= TRIES:
            break
        trial.start(demand)
    return trial.promised, trial.helped


class _Trial:
    """Starts jobs one after another; promises may move."""

    def __init__(self, state: StepState, promised: Sequence[Promise]) -> None:
        columns = state.columns
        self._limited = columns.total.memory < UNLIMITED_MIB
        self._state = replace(
            state, columns=replace(columns, free=columns.free.copy(), pools=columns.pools.copy())
        )
        #: What places jobs beside the promises, made for the first job that could start.
        self._fit: FirstFitPlacer | None = None
        #: What is free, promised or not.
        self._view = FreeView(self._state.columns, self._state.columns.free)
        self._hopeless: set[int] = set()
        self.promised = list(promised)
        self.helped: set[int] = set()
        self.failed = 0

    def start(self, demand: Demand) -> None:
        """Start a job beside the promises, or with other places for them, where that is possible."""
        columns = self._state.columns
        if demand.kind in self._hopeless or not self._view.could_hold(demand):
            self._hopeless.add(demand.kind)
            return
        if self._fit is None:
            reservations = StepReservations(self._state, 0)
            for promise in self.promised:
                reservations.promise(promise)
            self._fit = self._beside(reservations.guards)
        placement = self._fit.place(demand)
        if placement is not None:
            self._take(demand, placement.allocation())
            return
        self._hopeless.add(demand.kind)
        placer = _PromisedLatest(len(columns.names), self.promised, self._state.now)
        placement = FirstFitPlacer(columns, self._state.topology, placer=placer).place(demand)
        if placement is None:
            return
        allocation = placement.allocation()
        before = self._state
        others = [one for one in self.promised if one.demand.index != demand.index]
        self._take(demand, allocation, is_new=True)
        moved = _moved(self._state, others)
        if moved is None:
            self._state = before
            self._view = FreeView(columns, columns.free)
            self.failed += 1
            return
        self.promised, guards = moved
        self._fit = self._beside(guards)
        self.helped.add(demand.index)

    def _beside(self, guards: tuple[Guard, ...]) -> FirstFitPlacer:
        return FirstFitPlacer(self._state.columns, self._state.topology, guards)

    def _take(self, demand: Demand, allocation: Allocation, *, is_new: bool = False) -> None:
        state, columns = self._state, self._state.columns
        if is_new:
            columns = replace(columns, free=columns.free.copy(), pools=columns.pools.copy())
        add_allocation(columns.free, allocation, -1, self._limited)
        columns.pools.take(demand.job, use_of(allocation.held))
        limit = demand.job.limit_on_s(len(allocation.nodes))
        hold = Hold(end=inf if limit is None else state.now + limit, allocation=allocation)
        self._state = replace(state, columns=columns, holds=Holds((*state.holds, hold)))
        self._view = FreeView(columns, columns.free)


def _moved(state: StepState, promised: Sequence[Promise]) -> tuple[list[Promise], tuple[Guard, ...]] | None:
    """Return the promises with places beside what runs and has started; None: one would be late."""
    reservations = StepReservations(state, 0)
    moved = []
    for promise in promised:
        kept = reservations.promise(promise)
        if kept is None or kept.start > max(promise.start, state.now):
            return None
        moved.append(promise._replace(allocation=kept.allocation))
    return moved, reservations.guards


class _PromisedLatest:
    """Places a job on the nodes first that nobody was promised, then on those promised latest."""

    def __init__(self, nodes: int, promised: Sequence[Promise], now: float) -> None:
        self._promised = np.full(nodes, inf)
        for promise in promised:
            if promise.allocation is not None:
                places = promise.allocation.nodes
                self._promised[places] = np.minimum(self._promised[places], max(promise.start, now))

    def order(self, demands: Sequence[Demand]) -> Sequence[int]:
        """Return the order in which they are."""
        return range(len(demands))

    def takes_first(self, demand: Demand) -> bool:
        """Return whether the job asks for neighbours: others take what nobody was promised."""
        return demand.contiguous or demand.max_switches is not None or demand.in_units

    def nodes_for(
        self,
        demand: Demand,
        nodes: IntArray,
        units: IntArray,  # noqa: ARG002 - as every placer is asked
        free: Capacity,  # noqa: ARG002
    ) -> Iterator[IntArray]:
        """Yield the nodes in that order where a job does not ask for neighbours, then as they stand."""
        if not self.takes_first(demand):
            yield nodes[np.argsort(-self._promised[nodes], kind="stable")]
        yield nodes
