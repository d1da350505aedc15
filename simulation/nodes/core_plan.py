"""A plan of all waiting jobs, by cores: which may not start now, so that no other starts too late.

One promise at a time keeps nodes (node_promises.py). The plan that the auction on counts keeps
(promised/), here of cores, saves the jobs due behind it from being overtaken without end. It says
which jobs may not start: the auction decides where jobs start, and which of the others. On nodes of
several kinds, and for jobs that ask for more than cores, free cores say little: no job is refused.
"""

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any

import numpy as np

from ...cluster.resources.allocation import StartingJob
from ...cluster.resources.capacity import IntArray
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ..backfilling.easy import FREE, RUNNING, STARTED, easy_columns
from ..log_columns import LogColumns
from ..promised.awards import REFUSE
from ..promised.promise_plan import PROMISE_DUE, PROMISED, WAITING, PromiseRules, empty_state
from .node_machine import Machine


class CoreLevelPlan:
    """The plan of a machine's waiting jobs by cores."""

    def __init__(self, machine: Machine, rules: PromiseRules) -> None:
        jobs = len(machine.arrivals)
        entries = (PROMISE_DUE, REFUSE)
        found = [entry.for_jobs(jobs) for entry in entries]
        self._is_compiled = all(is_compiled for _, is_compiled in found)
        loops = [loop for loop, _ in found] if self._is_compiled else [entry.plain for entry in entries]
        self._promise_due, self._refuse = loops
        nothing: Any = [0] * jobs
        columns = LogColumns(nothing, nothing, nothing, nothing, nothing, True, True)
        state = empty_state(rules, columns, nothing, is_compiled=True)
        asked = state.jobs
        running = easy_columns(rules.processors, asked.size, asked.estimate, is_compiled=self._is_compiled)
        self._state = state._replace(machine=state.machine._replace(easy=running))
        self._machine = machine
        #: Whether cores say who could start: nodes are alike, and jobs have asked for cores only.
        self.is_kept = bool((machine.columns.total.cores == machine.columns.total.cores[:1]).all())
        #: Those that wait, by number; of all jobs, what they ask for and what they were promised.
        self._waiting: set[int] = set()
        self._asked: IntArray = np.zeros(jobs, np.int64)
        self._promise = np.full(jobs, inf)
        self._refused: IntArray = np.zeros(jobs + 1, np.int64)

    def follow(self, now: float, queue: Iterable[Demand], longest_s: float) -> None:
        """Plan who waits, and promise starts to whom is due.

        Args:
            now: in seconds.
            queue: who waits.
            longest_s: the longest wait under EASY so far.
        """
        if not self.is_kept or not self._meet(queue):
            return
        self._fill(now)
        machine, jobs = self._state.machine, self._state.jobs
        waiting = machine.waiting[: machine.counts[WAITING]]
        jobs.promise[waiting] = self._promise[waiting]
        jobs.due[waiting[machine.counts[PROMISED] :]] = inf
        self._promise_due(self._state, float(now), float(longest_s), True)
        waiting = machine.waiting[: machine.counts[WAITING]]
        self._promise[waiting] = jobs.promise[waiting]
        # What nobody who starts now could help is nobody's fault: passes are late, nodes fail.
        jobs.promise[waiting] = np.maximum(jobs.promise[waiting], machine.planned[: len(waiting)])

    def order(self) -> dict[int, int]:
        """Return where each waiting job stands, by number: those that are due first."""
        machine = self._state.machine
        waiting = machine.waiting[: machine.counts[WAITING]].tolist()
        return {job: place for place, job in enumerate(waiting)}

    def refused(self, now: float) -> frozenset[int]:
        """Return who may not start in the pass followed last, whoever else does, by number."""
        if not self.is_kept or not self._machine.running:
            return frozenset()
        machine = self._state.machine
        waiting = machine.waiting[: machine.counts[WAITING]]
        # Those are left out for which there is no room.
        places = np.flatnonzero(self._state.jobs.size[waiting] <= machine.easy.counts[FREE])
        return self._late(now, places, are_together=False)

    def too_many(self, now: float, starts: Sequence[StartingJob], sure: Collection[int]) -> frozenset[int]:
        """Return which of a pass's starts the others leave no room for, in the order of the starts.

        Args:
            now: in seconds.
            starts: of jobs that wait and are not ``refused``, in the order in which they start.
            sure: jobs that start in any case, by number.
        """
        # One that starts alone may, as ``refused`` has found where anything runs.
        if not self.is_kept or (len(starts) == 1 and self._machine.running):
            return frozenset()
        self._fill(now)
        place = self.order()
        ordered = sorted((start.demand.index for start in starts), key=lambda job: job not in sure)
        places = np.array([place[job] for job in ordered], np.int64)
        return self._late(now, places, sure=sum(job in sure for job in ordered))

    def _late(
        self, now: float, places: IntArray, *, are_together: bool = True, sure: int = 0
    ) -> frozenset[int]:
        count = self._refuse(self._state, float(now), are_together, sure, places, self._refused)
        return frozenset(self._refused[:count].tolist())

    def _meet(self, queue: Iterable[Demand]) -> bool:
        """Notice who has come and who waits no more; return whether the plan is of use."""
        machine, jobs = self._state.machine, self._state.jobs
        before, self._waiting = self._waiting, {demand.index for demand in queue}
        if self._waiting == before:
            return True
        new = [demand for demand in queue if demand.index not in before]
        for demand in new:
            if not _is_counted(demand, self._machine.columns):
                self.is_kept = False
                return False
            job = demand.index
            jobs.submit[job] = self._machine.arrivals[demand.job.id]
            jobs.estimate[job] = demand.limit_s
            self._asked[job] = _cores(demand, self._machine.columns)
            self._promise[job] = inf
        count, promised = machine.counts[WAITING], machine.counts[PROMISED]
        stays = np.array([job in self._waiting for job in machine.waiting[:count].tolist()], np.bool_)
        kept = np.concatenate([machine.waiting[:count][stays], [demand.index for demand in new]])
        machine.counts[PROMISED] = stays[:promised].sum()
        machine.counts[WAITING] = len(kept)
        machine.waiting[: len(kept)] = kept
        return True

    def _fill(self, now: float) -> None:
        """Take what runs and what is free from the machine."""
        machine, easy, columns = self._state.machine, self._state.machine.easy, self._machine.columns
        running = self._machine.running.values()
        held = sorted((max(holding.end, now), holding.cores) for holding in running)
        # An array is as long as it ever gets, a list as what is in use.
        used = slice(len(held) if self._is_compiled else None)
        easy.ends[used] = [end for end, _ in held]
        easy.held[used] = [cores for _, cores in held]
        free = int(columns.free.cores[columns.takes_jobs].sum())
        easy.counts[FREE], easy.counts[RUNNING], easy.counts[STARTED] = free, len(held), 0
        # When down nodes come back is unknown: the widest possible job stands for a wider one.
        waiting = machine.waiting[: machine.counts[WAITING]]
        self._state.jobs.size[waiting] = np.minimum(self._asked[waiting], free + sum(easy.held[used]))
        self._state.jobs.start[waiting] = -inf


def whole_nodes(demand: Demand, columns: Columns) -> int:
    """Return how many nodes a job takes where any whole ones do; 0: it may take others."""
    cores, counts = columns.total.cores, demand.node_counts
    is_exact = cores[0] == 1 if counts is None else counts.is_exact
    is_exact = is_exact and not demand.job.limits_by_nodes_s and not columns.total.gres
    if not (is_exact and columns.pools.are_empty and columns.takes_jobs.all()):
        return 0
    # A job of several partitions takes nodes of the first that holds it, maybe not the first nodes.
    if (cores != cores[0]).any() or not all(variant.eligible.all() for variant in demand.variants):
        return 0
    return _cores(demand, columns) // int(cores[0]) if _is_counted(demand, columns) else 0


def _is_counted(demand: Demand, columns: Columns) -> bool:
    """Return whether any cores would do for a job, or any whole nodes."""
    if demand.counts_memory or demand.job.request.licenses or demand.unit > 1:
        return False
    if any(variant.gres or variant.gres_total for variant in demand.variants):
        return False
    if demand.is_tied:
        return False
    if not any(variant.eligible.all() for variant in demand.variants):
        return False
    cores = int(columns.total.cores[0])
    takes_whole_nodes = demand.exclusive or demand.units_per_node == cores
    if demand.node_counts is None:
        return demand.least <= 1 and (cores == 1 or not takes_whole_nodes)
    return takes_whole_nodes


def _cores(demand: Demand, columns: Columns) -> int:
    """Return the cores that a job takes at its fewest nodes."""
    if demand.node_counts is None:
        return demand.units or 0
    return demand.node_counts.minimum * int(columns.total.cores[0])
