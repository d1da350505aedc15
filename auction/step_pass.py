"""A pass's record, which the functions of decide.py read and write: at its end the decision."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..bidgen.candidates import GuardedViews
from ..bidgen.first_fit import Cluster, Placement
from ..bidgen.generate import Others
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.value_types import copied
from .balance import BalancePolicy
from .ledger import allocations_of
from .options import StepOptions
from .reserve import Promise, StepReservations
from .state import StepState
from .strategies import AttemptResult


class WaitingJobs(NamedTuple):
    """The queue of a pass.

    Attributes:
        window: the jobs that are looked at, highest priority first.
        size: how many were asked for.
        behind: the jobs behind it, read as far as there is time.
        promised: starts that jobs were promised, the earliest first.
    """

    window: tuple[Demand, ...]
    size: int
    behind: Iterable[Demand]
    promised: tuple[Promise, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class StepPass:
    """The record of a pass: what its five functions read and leave, and what was decided.

    Attributes:
        state, options, balance, waiting: the cluster, the options, the balance policy, the queue.
        columns, views: set by ``open_window``: what is free, with the rows of the balance, and who
            could start on it.
        deadline, end: as well: when to have decided, and when the step is over, by the options'
            clock; None: never.
        reserved: reservations; ``reserve`` and ``award`` add to them.
        able, bidding: set by ``open_window``, under promise ``backfill`` by ``reserve``: ids of the
            jobs that could start, and of those of them that bid.
        passed: set by ``reserve``: ids of those that backfilling passes over for others.
        counted, placed: set by ``reserve`` or ``award``: what starts where that needed no auction,
            and on which nodes; None: it does.
        selected: set by ``award``: ids of the jobs that alone bid in the auction of the whole
            window, as counts say that no award is worth more than theirs; empty: all bid.
        guards, guards_of_bids: as well: those beside the award, and beside the last bids.
        attempts, best: as well: all auctions in their order, and the one whose award stands, which
            ``complete`` extends; None where no job could bid.
        completed: set by ``decide``: every job of the queue is tried on what the award leaves.
        is_late: set by ``complete``: a limit came before a proof of the whole window's best award.
        behind_started: as well: jobs that start on what the award leaves, by id.
        starts, next_window: set by ``close``: the award, empty when it is discarded, and how many
            jobs the next pass should look at.
    """

    state: StepState
    options: StepOptions
    balance: BalancePolicy
    waiting: WaitingJobs
    columns: Columns
    views: GuardedViews
    deadline: float | None
    end: float | None
    reserved: StepReservations
    able: set[str] = field(default_factory=set)
    bidding: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    counted: list[StartingJob] | None = None
    placed: tuple[Placement, ...] = ()
    selected: frozenset[str] = frozenset()
    guards: tuple[Guard, ...] = ()
    guards_of_bids: tuple[Guard, ...] = ()
    attempts: list[AttemptResult] = field(default_factory=list)
    best: AttemptResult | None = None
    completed: bool = False
    is_late: bool = False
    behind_started: dict[str, Demand] = field(default_factory=dict)
    starts: tuple[StartingJob, ...] = ()
    next_window: int = 0

    @property
    def window(self) -> tuple[Demand, ...]:
        """The jobs that are looked at, highest priority first."""
        return self.waiting.window

    @property
    def cluster(self) -> Cluster:
        """The cluster with the reservations that the award is beside."""
        topology, placer = self.state.topology, self.balance.placer
        return Cluster(columns=self.columns, topology=topology, guards=self.guards, placer=placer)

    @property
    def left_out(self) -> set[str]:
        """Ids of jobs that could start but did not bid: as many that ask for the same did."""
        return self.able - self.bidding - self.passed

    def alike(self, demand: Demand) -> int:
        """Return a number that jobs share of which one may start in another's place.

        Time limits are no matter where nothing is kept for later and none makes a job count more.
        """
        keeps = self.balance.keeps_shares or self.options.reservations or self.waiting.promised
        return demand.kind if keeps or self.options.valuation.of_waits else demand.form

    def winners(self) -> tuple[StartingJob, ...]:
        """Return the winners so far with what they hold, as the jobs of the queue."""
        if self.best is None:
            return tuple(self.counted or ())
        table = self.best.answer.table
        jobs = self.behind_started | {demand.job.id: demand for demand in self.window}
        starts = allocations_of(table, self.best.answer.chosen)
        return tuple(StartingJob(demand=jobs[job.id], allocation=where) for job, where in starts)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing starts."""
        won = self.best is not None and len(self.best.answer.chosen)
        return not (self.state.holds or self.counted or won)

    @property
    def discarded(self) -> bool:
        """Whether the award is void: a limit came before a proof under ``on_timeout=discard``."""
        return self.is_late and self.options.on_timeout == "discard"

    def bidders(self, size: int) -> tuple[tuple[Demand, ...], Others]:
        """Return the bidders among the first jobs, placed, and what the others are to them."""
        is_whole = size == len(self.window)
        bidding = self.bidding & self.selected if self.selected and is_whole else self.bidding
        demands, others = split(self.window[:size], bidding, self.able)
        return tuple(map(self.balance.valued, demands)), others

    def is_over(self, deadline: float | None) -> bool:
        """Return whether a time has come."""
        return deadline is not None and self.options.clock() >= deadline

    def has_left(self, seconds: float) -> bool:
        """Return whether so much time is left before the step is over."""
        return self.end is None or self.options.clock() + seconds < self.end

    def passes_over(self, demand: Demand) -> bool:
        """Return whether nothing is reserved for a job, as for one whose limits are used up."""
        if not self.balance.reserves_for(demand, self.options.reservations):
            return True
        return not demand.reserves or self.columns.pools.passes_over(demand.job)

    def unreserved(self, winners: Container[str]) -> Iterator[tuple[Demand, Iterable[str]]]:
        """Yield the first jobs that an award leaves waiting, who are still to get a reservation.

        Each with the ids of the jobs before it, in the order of the queue. Who is reserved for
        meanwhile counts.
        """
        before: dict[str, None] = {}
        for demand in self.window:
            job = demand.job.id
            if not self.reserved.pass_on(winners, before):
                break
            if job not in winners and job not in self.reserved.asked and not self.passes_over(demand):
                yield demand, before
            before[job] = None

    def until(self, share: float) -> float | None:
        """Return when a share of the time that is left now is over."""
        if self.deadline is None or self.options.most_work is not None:
            return self.deadline
        now = self.options.clock()
        return now + share * max(0.0, self.deadline - now)

    def close(self) -> None:
        """Say what starts, and how many jobs the next pass should look at."""
        self.starts = () if self.discarded else self.winners()
        self.next_window = self._next_window()

    def _next_window(self) -> int:
        options, size, is_late = self.options, self.waiting.size, self.is_late
        has_searched = options.is_anytime and options.most_work is not None
        if is_late and options.on_timeout is None and has_searched:
            # All steps that were asked for are no timeout: only the clock is.
            is_late = self.is_over(self.deadline)
            if not is_late:
                return size
        if options.is_greedy or (is_late and options.on_timeout == "incumbent"):
            return size
        if is_late:
            # Of a queue shorter than the window half of it, else all would be looked at again.
            return max(1, min(size, len(self.window)) // 2)
        return min(2 * size, options.window)


def split(window: tuple[Demand, ...], bidding: set[str], able: set[str]) -> tuple[tuple[Demand, ...], Others]:
    """Return the bidders with their places, and the jobs that cannot start as each sees them."""
    demands: list[Demand] = []
    after: list[int] = []
    nodes_before: list[int] = []
    nodes = unable = 0
    for demand in window:
        if demand.job.id in bidding:
            place = len(demands)
            demands.append(demand if demand.index == place else copied(demand, index=place))
            after.append(unable)
            nodes_before.append(nodes)
            nodes = 0
        elif demand.job.id not in able:
            unable += 1
            nodes += 0 if demand.node_counts is None else demand.node_counts.minimum
    others = Others(after=unable - np.array(after, np.int64), nodes_before=np.array(nodes_before, np.int64))
    return tuple(demands), others
