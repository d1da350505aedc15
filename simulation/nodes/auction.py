"""The auctions as policies over a machine of nodes: a pass is a step of auction/decide.py.

Promises give way: their jobs are put elsewhere at the same starts, so that another may start now. A
promise keeps nodes. Where as many others are free then, a job that would still run on those is not
to wait for them: it is put on what is free now, the nodes first that were promised latest, and the
places of the promises are looked for anew beside it. None is put off.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf

import numpy as np

from ...auction.check import AwardChecker
from ...auction.decide import decide
from ...auction.job_classes import ClassDemand, ClassMix, JobClass
from ...auction.options import StepOptions
from ...auction.reserve import Promise, StepReservations
from ...auction.state import StepState
from ...auction.step import ENDS_THE_STEP, failing_job
from ...auction.step_pass import StepPass
from ...bidgen.first_fit import Cluster, FirstFitPlacer
from ...cluster.jobs import Job
from ...cluster.resources.allocation import Allocation, StartingJob
from ...cluster.resources.capacity import Capacity, IntArray
from ...cluster.resources.demand import Demand
from ...cluster.resources.job_reservations import Guard
from .node_machine import Machine
from .node_promises import Promises
from .node_queue import NodePolicy, NodeQueue, turn_of_job


class NodeAuction(NodePolicy):
    """One decision a pass; what it says of the next window is kept from one pass to the next.

    Args:
        machine: where jobs run.
        options: of each step; a work limit, not a clock, ends it.
        promise: the starts that are promised; None: none.
        interval_s: seconds between passes; None: after every event.
    """

    wants_more = False
    alarm: float | None = None

    def __init__(
        self,
        machine: Machine,
        options: StepOptions,
        promise: str | None = None,
        *,
        interval_s: float | None = None,
    ) -> None:
        self._machine = machine
        self._options = options
        self.promises = None if promise is None else Promises(machine, promise, interval_s)
        self._window = options.window
        #: Without reservations many jobs are alike; a simulation wants no prices and no reasons.
        is_reserving = options.reservations or options.balance or options.backfills or promise
        self._all_bid_up_to = None if is_reserving else 0
        #: Who may not start in the present pass, by number.
        self._refused: frozenset[int] = frozenset()
        #: Who could start in it by counting, beside the promises or not.
        self._able: set[int] = set()
        #: State of the machine and window of the last pass that started nothing.
        self._idle: object = None
        #: What waits, summed by shape as jobs come and go, and the queue that tells of them.
        self._backlog = ClassDemand(machine.columns) if options.balance else None
        self._watched: NodeQueue | None = None

    def step(self, now: float, queue: NodeQueue) -> Sequence[StartingJob]:
        """Run one step."""
        machine, size = self._machine, self._window
        promised: Sequence[Promise] = ()
        if self.promises is not None:
            promised = self.promises.kept(now, queue.unsorted)
            # Whoever may not start sooner starts by its promise, though nothing happens then.
            self.alarm = min((one.start for one in promised if one.start > now), default=None)
        if not self._options.backfills:
            could = machine.state(now).views_on(machine.columns).startable(queue.unsorted)
            if self.promises is not None:
                self._refused = self.promises.refused(now, promised) if could else frozenset()
            able = {demand.index for demand in queue.unsorted if demand.job.id in could}
            self._able = able - self._refused
            if machine.running and not self._able and size == self._options.window:
                self.wants_more = False
                return ()
        mix = self._mix(queue)
        # Priorities may change while nobody comes or goes, and who may start.
        first = [demand.index for demand in queue.first(size)]
        key = (machine.changes, size, queue.changes, first, self._refused)
        if key == self._idle:
            self.wants_more = False
            return ()
        # With the priorities of now.
        waiting = {demand.index: demand for demand in queue} if promised else {}
        promised = [one._replace(demand=waiting[one.demand.index]) for one in promised]
        decision = self._within_plan(now, queue, promised, mix)
        self._window = decision.next_window
        self.wants_more = not decision.starts and self._window < size
        self._idle = None if decision.starts else key
        return decision.starts

    def _within_plan(
        self, now: float, queue: NodeQueue, promised: Sequence[Promise], mix: ClassMix | None
    ) -> StepPass:
        """Decide anew without the jobs that other starts leave no room for, until all have room."""
        while True:
            decision = self._decided(now, queue, promised, mix)
            if self.promises is None or not decision.starts:
                return decision
            starts = sorted(decision.starts, key=lambda start: turn_of_job(start.demand))
            too_many = self.promises.too_many(now, starts, promised)
            if not too_many:
                return decision
            self._refused |= too_many

    def _decided(
        self, now: float, queue: NodeQueue, promised: Sequence[Promise], mix: ClassMix | None
    ) -> StepPass:
        """Decide beside the promises, with their places moved where that lets jobs start."""
        state = self._machine.state(now)

        def beside(kept: Sequence[Promise]) -> StepPass:
            able = _due_first(now, kept, self._admitted(queue))
            return decide(
                state,
                able,
                self._options,
                window=self._window,
                mix=mix,
                promised=kept,
                all_bid_up_to=self._all_bid_up_to,
            )

        decision = beside(promised)
        left = len(self._able - self._refused) - len(decision.starts)
        # Where first-fit starts all that could start there is nobody to help.
        if self.promises is None or not promised or (not left and not decision.attempts):
            return decision
        able = (demand for demand in decision.window if demand.index in self._able)
        has_others = self._options.reservations or self._options.balance
        moved, helped = given_way(state, able, promised, () if has_others else decision.reserved.guards)
        if helped:
            other = beside(moved)
            started = {start.demand.index for start in other.starts}
            # Else the place that was promised is needed by whoever was to start and does not.
            if started >= helped & {promise.demand.index for promise in promised}:
                self.promises.move(moved)
                return other
        return decision

    def refuses(self, job: Job) -> str:
        """Return what of a job the model cannot express."""
        model = self._options.auction
        return model.cannot_express(job) or model.cannot_place(self._machine.reader.read(job, 0))

    def blame(self, error: Exception, now: float, queue: NodeQueue) -> tuple[Demand, str] | None:
        """Return the job that made the last step fail, and how; None when no job alone does."""
        if isinstance(error, ENDS_THE_STEP):
            return None
        window = tuple(self._admitted(queue))
        state = self._machine.state(now)
        found = failing_job(state, window, self._options, error, AwardChecker(self._machine.snapshot))
        if found is None:
            return None
        self._idle = None
        return next(demand for demand in window if demand.job.id == found.job), found.detail

    def _mix(self, queue: NodeQueue) -> ClassMix | None:
        """Return what waits and what runs, where a balance is kept."""
        if self._backlog is None:
            return None
        if self._watched is not queue:
            self._watched = queue
            queue.watch(self._backlog.note)
        held: Counter[JobClass] = Counter()
        for holding in self._machine.running.values():
            held[self._backlog.ask(holding.demand).shape] += len(holding.allocation.nodes)
        return ClassMix(waiting=self._backlog, held=held, since=self._machine.arrivals)

    def _admitted(self, queue: NodeQueue) -> Iterable[Demand]:
        """Return the jobs that may start, highest priority first."""
        refused = self._refused
        return (demand for demand in queue if demand.index not in refused) if refused else queue


def _due_first(now: float, promised: Sequence[Promise], jobs: Iterable[Demand]) -> Iterable[Demand]:
    """Return jobs in their order, but first those whose promised start has come."""
    due = [promise.demand for promise in promised if promise.start <= now]
    if not due:
        return jobs
    known = {demand.index for demand in due}
    return chain(due, (demand for demand in jobs if demand.index not in known))


#: Jobs for which places are looked for in vain in one pass.
TRIES = 3


def given_way(
    state: StepState, queue: Iterable[Demand], promised: Sequence[Promise], guards: tuple[Guard, ...] = ()
) -> tuple[list[Promise], set[int]]:
    """Return the promises of jobs that do not start, with places, and the jobs that start by that.

    Args:
        state: the cluster; left alone.
        queue: the waiting jobs, those first that are to start first.
        promised: their promises, the earliest first, all of which can be kept.
        guards: what these leave others, if that is known.
    """
    trial = _Trial(state, promised, guards)
    for demand in queue:
        if trial.failed >= TRIES:
            break
        trial.start(demand)
    return trial.promised, trial.helped


class _Trial:
    """Starts jobs one after another; promises may move."""

    def __init__(self, state: StepState, promised: Sequence[Promise], guards: tuple[Guard, ...]) -> None:
        self._state = state
        reservations = StepReservations(state, 0)
        for promise in () if guards else promised:
            reservations.promise(promise)
        #: What places jobs beside the promises.
        self._fit = self._beside(guards or reservations.guards)
        self._hopeless: set[int] = set()
        self.promised = list(promised)
        self.helped: set[int] = set()
        self.failed = 0

    def start(self, demand: Demand) -> None:
        """Start a job beside the promises, or with other places for them, where that can be."""
        if demand.kind in self._hopeless:
            return
        placement = self._fit.place(demand)
        if placement is not None:
            self._take(demand, placement.allocation())
            return
        self._hopeless.add(demand.kind)
        before = self._state
        placer = _PromisedLatest(len(before.columns.names), self.promised, before.now)
        placement = FirstFitPlacer(Cluster(before.columns, before.topology, placer=placer)).place(demand)
        if placement is None:
            return
        others = [one for one in self.promised if one.demand.index != demand.index]
        self._take(demand, placement.allocation())
        moved = _moved(self._state, others)
        if moved is None:
            self._state = before
            self.failed += 1
            return
        self.promised, guards = moved
        self._fit = self._beside(guards)
        self.helped.add(demand.index)

    def _beside(self, guards: tuple[Guard, ...]) -> FirstFitPlacer:
        return FirstFitPlacer(Cluster(self._state.columns, self._state.topology, guards))

    def _take(self, demand: Demand, allocation: Allocation) -> None:
        self._state = self._state.with_starts([(demand.job, allocation)])


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
        """Yield the nodes in that order if no neighbours are asked for; in any case as they are."""
        if not self.takes_first(demand):
            yield nodes[np.argsort(-self._promised[nodes], kind="stable")]
        yield nodes
