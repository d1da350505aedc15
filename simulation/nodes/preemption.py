"""Preemption paid for in credits (Soner, 9.1): who pays more a core-hour may stop who pays less.

docs/failures.md (Preemption) has the rule: which jobs a blocked one stops, and what users pay.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from math import inf

import numpy as np

from ...auction.forecast import first_found
from ...bidgen.candidates import GuardedViews
from ...bidgen.generate import place_alone
from ...cluster.resources.allocation import Allocation, StartingJob, add_allocations
from ...cluster.resources.capacity import FloatArray, IntArray, nothing_held
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import Demand
from ...cluster.workload import ClusterWorkload
from ..events import HOUR_S
from .node_machine import Holding, Machine
from .node_queue import NodeQueue

#: Stops of one job, after which it runs to its end.
MOST_STOPS = 3
#: Blocked jobs of a pass that are tried, those that pay most first.
_TRIED = 4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Preemption:
    """A job that starts in the place of others.

    Attributes:
        start: the job, and where.
        victims: the jobs that are stopped, by number.
        paid: credits that its user pays for their lost work, by their number.
    """

    start: StartingJob
    victims: tuple[int, ...]
    paid: dict[int, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Running:
    """The running jobs as columns, shape (jobs,): what they pay a core-hour, how often stopped."""

    number: IntArray
    rate: FloatArray
    start_s: FloatArray
    limit_end_s: FloatArray
    cores: IntArray
    stops: IntArray

    def earns(self, now: float, limit_s: float) -> FloatArray:
        """Return the credits that stopping each costs: for its work, and for what it would do."""
        seconds = now - self.start_s + np.minimum(limit_s, self.limit_end_s - now)
        found: FloatArray = self.rate * self.cores * seconds / HOUR_S
        return found


class Preemptor:
    """Finds the preemptions of each pass, and keeps the users' accounts.

    Args:
        workload: says what each job pays a core-hour.
        machine: where jobs run.
        first: credits that each user has at first.
    """

    def __init__(self, workload: ClusterWorkload, machine: Machine, first: float = inf) -> None:
        self._jobs = workload.jobs
        self._machine = machine
        self._first = first
        #: What users have paid (below 0) and were paid for lost work, by name.
        self.balance: defaultdict[str, float] = defaultdict(float)
        self._stops: Counter[int] = Counter()
        self._seen: tuple[int, _Running] | None = None
        self._rates = sorted({arriving.credits_per_core_h for arriving in workload.jobs})

    def preempt(self, now: float, queue: NodeQueue) -> Iterator[Preemption]:
        """Yield preemptions; each is carried out before the next one is asked for."""
        if len(self._rates) < 2:  # noqa: PLR2004 - all pay alike
            return
        blocked = nsmallest(_TRIED, queue, key=lambda demand: -self._rate(demand.index))
        for demand in blocked:
            found = self._for(demand, now)
            if found is None:
                continue
            for victim, amount in found.paid.items():
                self.balance[self._user(victim)] += amount
                self.balance[self._user(demand.index)] -= amount
            self._stops.update(found.victims)
            yield found

    def _rate(self, number: int) -> float:
        return self._jobs[number].credits_per_core_h

    def _user(self, number: int) -> str:
        return self._jobs[number].job.user

    def _for(self, demand: Demand, now: float) -> Preemption | None:
        """Return the preemption that lets a job start, None where none pays."""
        limit_s = demand.job.time_limit_s
        rate = self._rate(demand.index)
        if limit_s is None or rate <= self._rates[0]:
            return None
        running = self._running()
        able = (running.rate < rate) & (running.start_s < now) & (running.stops < MOST_STOPS)
        cost = running.earns(now, limit_s)
        cheapest = np.lexsort((running.number, cost))
        cheapest = cheapest[able[cheapest]]
        most = rate * demand.job.request.fewest_cores * limit_s / HOUR_S
        counts = demand.job.request.node_counts
        # A job that holds as many cores wherever it runs.
        if not demand.exclusive and (counts is None or counts.is_exact):
            # Who costs more alone than the job earns is stopped for nobody.
            cheapest = cheapest[cost[cheapest] < most]
            if most <= self._least(demand, running.cores[cheapest], cost[cheapest]):
                return None
        lesser = [(number, self._machine.running[number]) for number in running.number[cheapest].tolist()]
        allocation, victims = self._cheapest(demand, lesser)
        # Whatever its victims hold of licences and limits.
        pools = self._machine.columns.pools
        if allocation is None or not victims or any(pools.lacks(demand.job, allocation.held)):
            return None
        # The credits of the work that they have done.
        lost = {
            number: self._rate(number) * one.cores * (now - one.start_s) / HOUR_S for number, one in victims
        }
        costs = dict(zip(running.number.tolist(), cost.tolist(), strict=True))
        gain = rate * float(allocation.held.cores.sum()) * limit_s / HOUR_S
        if gain <= sum(costs[number] for number, _ in victims):
            return None
        user = self._user(demand.index)
        others = {number: amount for number, amount in lost.items() if self._user(number) != user}
        if self._first + self.balance[user] < sum(others.values()):
            return None
        return Preemption(
            start=StartingJob(demand=demand, allocation=allocation), victims=tuple(lost), paid=others
        )

    def _running(self) -> _Running:
        """Return the running jobs as columns; made anew after a start, an end or a stop."""
        if self._seen is not None and self._seen[0] == self._machine.changes:
            return self._seen[1]
        numbers, held = list(self._machine.running), list(self._machine.running.values())
        running = _Running(
            number=np.array(numbers, np.int64),
            rate=np.array([self._rate(number) for number in numbers], np.float64),
            start_s=np.array([one.start_s for one in held], np.float64),
            limit_end_s=np.array([one.end for one in held], np.float64),
            cores=np.array([one.cores for one in held], np.int64),
            stops=np.array([self._stops[number] for number in numbers], np.int64),
        )
        self._seen = self._machine.changes, running
        return running

    def _least(self, demand: Demand, cores: IntArray, cost: FloatArray) -> float:
        """Return the least that the missing cores cost, wherever they are: most jobs end here."""
        free = self._machine.columns.free.cores[self._machine.columns.takes_jobs]
        missing = demand.job.request.fewest_cores - int(free.sum())
        return least_cost(missing, cores, cost)

    def _cheapest(
        self, demand: Demand, lesser: Sequence[tuple[int, Holding]]
    ) -> tuple[Allocation | None, list[tuple[int, Holding]]]:
        """Return where a job fits once the fewest cheapest others go, and which have to go."""
        if not lesser:
            return None, []
        found = first_found(lambda last: self._place(demand, lesser[: last + 1]), len(lesser))
        if found is None:
            return None, []
        last, allocation = found
        taken, gone = set(allocation.nodes.tolist()), lesser[: last + 1]
        there = [pair for pair in gone if not taken.isdisjoint(pair[1].allocation.nodes.tolist())]
        return allocation, there if demand.exclusive else self._needed(allocation, there)

    def _needed(self, allocation: Allocation, there: list[tuple[int, Holding]]) -> list[tuple[int, Holding]]:
        """Return those that have to go: of others on the same nodes the dearest stay first."""
        kept = list(there)
        for pair in reversed(there):
            rest = [one for one in kept if one is not pair]
            if self._without(rest).free.at(allocation.nodes).covers(allocation.held):
                kept = rest
        return kept

    def _place(self, demand: Demand, gone: Sequence[tuple[int, Holding]]) -> Allocation | None:
        columns = self._without(gone)
        if not GuardedViews(columns, columns.free).of(demand).could_hold(demand):
            return None
        return place_alone(demand, columns, self._machine.topology)

    def _without(self, gone: Sequence[tuple[int, Holding]]) -> Columns:
        """Return the machine's columns as they would be without some running jobs."""
        columns = self._machine.columns
        free = columns.free.copy()
        is_empty = columns.is_empty.copy()
        add_allocations(free, [holding.allocation for _, holding in gone], self._machine.limited)
        nodes = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.allocation.nodes for _, one in gone)]))
        is_empty[nodes] = nothing_held(columns.total.at(nodes), free.at(nodes))
        return replace(columns, free=free, is_empty=is_empty)


def least_cost(missing: int, cores: IntArray, cost: FloatArray) -> float:
    """Return the least that so many cores cost, of jobs that may give part of theirs; inf: too few.

    Args:
        missing: cores.
        cores: of each job, shape (jobs,).
        cost: of all cores of each job, shape (jobs,).
    """
    if missing <= 0:
        return 0.0
    if missing > int(cores.sum()):
        return inf
    each = cost / np.maximum(cores, 1)
    order = np.lexsort((cores, each))
    held = np.cumsum(cores[order])
    last = int(np.searchsorted(held, missing))
    taken = cores[order[: last + 1]]
    taken[last] -= int(held[last]) - missing
    return float(each[order[: last + 1]] @ taken)
