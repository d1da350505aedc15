"""Free resources at every moment to come: running jobs end, planned jobs come and go.

One row a moment, from which on it holds up to the next: arrays of shape (moments, nodes). A job that starts
at a moment needs its resources on the same nodes until it ends: on each node, the least of the rows between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

import numpy as np

from ...bidgen.candidates import Candidates, FreeView, units_of, usable_in_any
from ...cluster.jobs import Job, RunningJob
from ...cluster.resources.allocation import Allocation
from ...cluster.resources.capacity import UNLIMITED_MIB, BoolArray, Capacity, IntArray, nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.resources.pools import use_of
from ..forecast import Forecast


class ClusterTimeline:
    """The cluster over time.

    Args:
        forecast: running jobs and when they end.
        columns: the nodes as they are now.
        running: the jobs that run.

    Attributes:
        times: moments in seconds, rising; the first is now.

    """

    def __init__(self, forecast: Forecast, columns: Columns, running: Iterable[RunningJob]) -> None:
        self._columns = columns
        self.times = np.array(forecast.times, np.float64)
        steps = [forecast.at(step) for step in range(len(forecast.times))]
        self._free = _stacked([step.free for step in steps])
        # By step of the forecast: nodes come back when jobs end, whatever is planned.
        self._takes_jobs = [step.takes_jobs for step in steps]
        self._ends = self.times
        self._pools = [columns.pools.copy() for _ in steps]
        now = forecast.times[0]
        for job in running:
            if job.end_time is not None:
                for pools in self._pools[int(np.searchsorted(self.times, job.end_time)) :]:
                    pools.end(job, now)
        self._limited: BoolArray = columns.total.memory < UNLIMITED_MIB

    def possible(self, demand: Demand, duration_s: float, since: float) -> IntArray:
        """Return the moments at which a job may fit, from a time on: enough nodes stay usable until its end.

        What a moment leaves out cannot fit; whether it fits is for ``columns`` and a placement to say.
        """
        first = int(np.searchsorted(self.times, since))
        stops = self._stops(first, duration_s) - first
        free = self._free.each(lambda rows: rows[first:])
        lacking = np.cumsum(~self._usable(demand, free), axis=0, dtype=np.int32)
        before = np.concatenate([np.zeros((1, lacking.shape[1]), np.int32), lacking])
        stays: BoolArray = before[stops] == before[:-1]
        counts = demand.node_counts
        enough = stays.sum(axis=1) >= (1 if counts is None else counts.minimum)
        if demand.units is not None:
            enough &= (stays * units_of(demand, free, self._columns)).sum(axis=1) >= demand.units
        found: IntArray = np.flatnonzero(enough) + first
        return found

    def columns(self, moment: int, duration_s: float) -> Columns:
        """Return the nodes as a job finds them that starts at a moment and stays."""
        stop = int(self._stops(moment, duration_s)[0])
        free = self._free.each(lambda rows: rows[moment:stop].min(axis=0))
        step = int(np.searchsorted(self._ends, self.times[moment], side="right")) - 1
        return replace(
            self._columns,
            free=free,
            takes_jobs=self._takes_jobs[step],
            is_empty=nothing_held(self._columns.total, free),
            pools=self._pools[moment].joined(self._pools[moment + 1 : stop]),
        )

    def may_hold(self, demand: Demand, columns: Columns, leaf: IntArray) -> bool:
        """Say whether nodes may hold a job, by counting: much faster than to look for a place that is not.

        ``leaf`` is the leaf switch of each node.
        """
        found = FreeView(columns, columns.free).candidates(demand)
        return any(one.could_hold(demand) and _near_enough(demand, one, leaf) for one in found)

    def take(self, allocation: Allocation, job: Job, start: float, end: float) -> None:
        """Let a job hold what it takes from a moment up to a time, which may be infinite."""
        first = self._cut(start)
        rows = slice(first, self._cut(end) if isfinite(end) else None)
        nodes, held = allocation.nodes, allocation.held
        self._free.cores[rows, nodes] -= held.cores
        self._free.memory[rows, nodes] -= np.where(self._limited[nodes], held.memory, 0)
        for kind, counts in held.gres.items():
            self._free.gres[kind][rows, nodes] -= counts
        use = use_of(held)
        during = self._pools[rows]
        # Asked once: most jobs take nothing of any pool, and moments are many.
        taken = list(self._pools[first].asked(job, use))
        going_on = self._pools[first].going_on(taken)
        spent = self._pools[first].spent(job, use)
        for later, pools in enumerate(during if taken else ()):
            pools.add(going_on if later else taken)
        if spent:
            for pools in (*self._pools[:first], *self._pools[first + len(during) :]):
                pools.add(spent)

    def _stops(self, first: int, duration_s: float) -> IntArray:
        """Return, for each moment from one on, the first at which a job that starts there is gone."""
        stops: IntArray = np.searchsorted(self.times, self.times[first:] + duration_s)
        return stops

    def _usable(self, demand: Demand, free: Capacity) -> BoolArray:
        """Return which nodes could be among the job's in each row, shape (moments, nodes)."""
        if demand.exclusive:
            eligible: BoolArray = np.any([variant.eligible for variant in demand.variants], axis=0)
            return nothing_held(self._columns.total, free) & eligible
        return usable_in_any(demand, free, self._columns)

    def _cut(self, time: float) -> int:
        """Return the moment at a time, made when there is none."""
        place = int(np.searchsorted(self.times, time))
        if place == len(self.times) or self.times[place] != time:
            self.times = np.insert(self.times, place, time)
            self._free = self._free.each(lambda rows: np.insert(rows, place, rows[place - 1], axis=0))
            self._pools.insert(place, self._pools[place - 1].copy())
            self._pools[place].begin_step()
        return place


def _near_enough(demand: Demand, found: Candidates, leaf: IntArray) -> bool:
    """Say whether as many leaf switches as the job allows have enough usable nodes below them."""
    if demand.max_switches is None:
        return True
    fewest = 1 if demand.node_counts is None else demand.node_counts.minimum
    below = leaf[found.nodes]
    nodes = np.sort(np.bincount(below))[::-1][: demand.max_switches]
    amounts = np.sort(np.bincount(below, found.units[found.nodes]))[::-1][: demand.max_switches]
    return bool(nodes.sum() >= fewest and amounts.sum() >= (demand.units or 0))


def _stacked(rows: list[Capacity]) -> Capacity:
    return Capacity(
        cores=np.stack([row.cores for row in rows]),
        memory=np.stack([row.memory for row in rows]),
        gres={kind: np.stack([row.gres[kind] for row in rows]) for kind in rows[0].gres},
    )
