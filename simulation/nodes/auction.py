"""The auctions as policies over a machine of nodes: each pass is a step of the engine (auction/decide.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice

from ...auction.check import AwardChecker
from ...auction.decide import decide
from ...auction.job_classes import ClassDemand, ClassMix, JobClass
from ...auction.options import StepOptions
from ...auction.reserve import Promise
from ...auction.step import ENDS_THE_STEP, failing_job
from ...auction.step_pass import Decision
from ...cluster.resources.allocation import StartingJob
from ...cluster.resources.demand import Demand
from .node_machine import Machine
from .node_promises import Promises
from .node_queue import NodePolicy, NodeQueue, turn_of_job
from .reservation_migration import given_way


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
        #: Where nothing is reserved many jobs are alike; in a simulation nobody asks for prices or reasons.
        is_reserving = options.reservations or options.balance or options.backfills or promise
        self._all_bid_up_to = None if is_reserving else 0
        #: Who may not start in the present pass, by number.
        self._refused: frozenset[int] = frozenset()
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
            promised = self.promises.kept(now, queue)
            self._refused = self.promises.refused(now, promised)
            # Whoever may not start sooner starts by its promise, though nothing happens then.
            self.alarm = min((one.start for one in promised if one.start > now), default=None)
        mix = self._mix(queue)
        # Priorities may change while nobody comes or goes, and who may start.
        first = [demand.index for demand in queue.first(size)]
        key = (machine.changes, size, queue.changes, first, self._refused)
        if key == self._idle:
            self.wants_more = False
            return ()
        decision = self._within_plan(now, queue, promised, mix)
        self._window = decision.next_window
        self.wants_more = not decision.starts and self._window < size
        self._idle = None if decision.starts else key
        return decision.starts

    def _within_plan(
        self, now: float, queue: NodeQueue, promised: Sequence[Promise], mix: ClassMix | None
    ) -> Decision:
        """Decide anew without whom the others that start leave no room for, until all that start have it."""
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
    ) -> Decision:
        """Decide beside the promises, with their places moved where that lets jobs start."""
        state = self._machine.state(now)

        def beside(kept: Sequence[Promise]) -> Decision:
            able = _due_first(now, kept, self._able(queue))
            return decide(
                state,
                able,
                self._options,
                window=self._window,
                mix=mix,
                promised=kept,
                all_bid_up_to=self._all_bid_up_to,
                only_starts=True,
            )

        if self.promises is None or not promised:
            return beside(promised)
        first = islice(_due_first(now, promised, self._able(queue)), self._window)
        moved, helped = given_way(state, first, promised)
        if helped:
            decision = beside(moved)
            started = {start.demand.index for start in decision.starts}
            if started >= helped & {promise.demand.index for promise in promised}:
                self.promises.move(moved)
                return decision
            # Who was to start and does not needs the place that was promised.
        return beside(promised)

    def blame(self, error: Exception, now: float, queue: NodeQueue) -> tuple[Demand, str] | None:
        """Return the job that made the last step fail, and how; None when no job alone does."""
        if isinstance(error, ENDS_THE_STEP):
            return None
        window = tuple(self._able(queue))
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

    def _able(self, queue: NodeQueue) -> Iterable[Demand]:
        """Return the jobs that may start and that the model can express, highest priority first."""
        model, refused = self._options.auction, self._refused
        if not model.lacks and not refused:
            return queue
        able = (demand for demand in queue if demand.index not in refused)
        return (one for one in able if not model.cannot_express(one.job)) if model.lacks else able


def _due_first(now: float, promised: Sequence[Promise], jobs: Iterable[Demand]) -> Iterable[Demand]:
    """Return jobs in their order, but first those whose promised start has come."""
    due = [promise.demand for promise in promised if promise.start <= now]
    if not due:
        return jobs
    known = {demand.index for demand in due}
    return chain(due, (demand for demand in jobs if demand.index not in known))
