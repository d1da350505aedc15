"""The auctions as policies over a machine of nodes: each pass is one step on arrays that stay.

What ``auction.step`` does for a snapshot, without building one: the window's jobs that could start are
auctioned by ``auction.attempt``; with reservations the award is made beside those of the first blocked jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...auction.attempt import AttemptResult, Cluster, attempt
from ...auction.forecast import Spot, guard_for, place_alone, spot_of_bid
from ...auction.ledger import FreeState
from ...auction.options import StepOptions
from ...auction.quick import QuickResult, quick_attempt
from ...bidgen.columns import Columns
from ...bidgen.demand import Demand
from ...bidgen.guard import Guard
from ...models.ipsched import cannot_express
from .future import Future
from .machine import Machine, Start
from .queue import NodeQueue
from .select import GuardedViews, View
from .sparing import Sparing


class Auction:
    """One attempt a pass (SPEC 1.9): after an unproved exact one the next pass's window is halved.

    Args:
        machine: where jobs run.
        options: of each step; its work limit, not a clock, ends an attempt.
        is_quick: awards are greedy (models/search/quick.py), not solved by HiGHS; None: where a step would
            search.
    """

    def __init__(self, machine: Machine, options: StepOptions, *, is_quick: bool | None = None) -> None:
        self._is_quick = options.is_anytime if is_quick is None else is_quick
        self.wants_more = False
        self.wakeup_s: float | None = None
        self._machine = machine
        self._options = options
        self._window = options.window
        #: State of the machine and window of the last pass that started nothing.
        self._idle: object = None

    def step(self, now: float, queue: NodeQueue) -> Sequence[Start]:
        """Run one step."""
        machine = self._machine
        window = self._first(queue)
        view = View(machine.columns, machine.columns.free)
        fitting = [demand for demand in window if self._could_start(demand, view)]
        key = (machine.changes, self._window, [demand.index for demand in fitting])
        if not fitting or key == self._idle:
            self.wants_more = False
            return ()
        started = self._pass(now, queue, window, fitting)
        self._idle = None if started else key
        return started

    def _pass(
        self, now: float, queue: NodeQueue, window: list[Demand], fitting: list[Demand]
    ) -> Sequence[Start]:
        """Auction what is free among the window's jobs that could start."""
        del queue
        return self._auctioned(now, window, fitting)

    def _first(self, queue: NodeQueue) -> list[Demand]:
        """Return the window: the first jobs that the model can express."""
        if self._options.model != "ipsched":
            return queue.first(self._window)
        jobs = (demand for demand in queue if not cannot_express(demand.job))
        return [demand for demand, _ in zip(jobs, range(self._window), strict=False)]

    def _could_start(self, demand: Demand, view: View) -> bool:
        return view.could_hold(demand) and self._machine.columns.pools.hold(demand.job)

    def _auctioned(self, now: float, window: list[Demand], fitting: list[Demand]) -> Sequence[Start]:
        reserved = Reserved(self._machine, now, self._options.reserve)
        can_start = {demand.index for demand in fitting}
        for demand in window:
            # No award can let these start: their reservations are known before the auction.
            if demand.index in can_start or not reserved.reserve(demand, ()):
                break
        found = self._sparing(window, fitting, reserved.guards)
        started = starts_of(fitting, found)
        if reserved.wants_more and self._reserve_losers(window, started, reserved, found):
            found = self._sparing(window, fitting, reserved.guards)
            started = starts_of(fitting, found)
        if not started and not self._machine.running:
            # Bids do not cover every place: what is only reserved must not keep an empty machine idle.
            found = self._sparing(window, fitting, ())
            started = starts_of(fitting, found)
        self._resize(found)
        if self._options.on_timeout == "discard" and not found.proved:
            return ()
        return started

    def _sparing(
        self, window: list[Demand], fitting: list[Demand], guards: tuple[Guard, ...]
    ) -> AttemptResult | QuickResult:
        """Let jobs bid on the nodes with the fewest gres to spare."""
        columns = self._machine.columns
        sparing = Sparing(GuardedViews(columns, columns.free, guards), window)
        return self._attempt([sparing.narrowed(demand) for demand in fitting], columns, guards)

    def _attempt(
        self, fitting: list[Demand], columns: Columns, guards: tuple[Guard, ...]
    ) -> AttemptResult | QuickResult:
        cluster = Cluster(columns=columns, topology=self._machine.topology, guards=guards)
        window = tuple(replace(demand, index=place) for place, demand in enumerate(fitting))
        run = quick_attempt if self._is_quick else attempt
        return run(window, cluster, self._options)

    def _reserve_losers(
        self,
        window: list[Demand],
        started: Sequence[Start],
        reserved: Reserved,
        found: AttemptResult | QuickResult,
    ) -> bool:
        """Reserve for the first jobs that did not start; return whether the award delays any of them."""
        winners = {start.demand.index: start for start in started}
        before: list[Start] = []
        for demand in window:
            if demand.index in winners:
                before.append(winners[demand.index])
            elif demand.index not in reserved.jobs:
                reserved.reserve(demand, before)
            if not reserved.wants_more:
                break
        state = FreeState(found.table, self._machine.columns, reserved.guards)
        delays = any(guard.is_now for guard in reserved.guards)
        for bid in found.chosen.tolist():
            delays = delays or state.delayed(bid) is not None
            state.take(bid)
        return delays

    def _resize(self, found: AttemptResult | QuickResult) -> None:
        """Halve the window after a limit without proof, double it back after a solved one."""
        self.wants_more = False
        if self._is_quick:
            return
        if found.proved:
            self._window = min(2 * self._window, self._options.window)
        else:
            self.wants_more = self._window > 1
            self._window = max(1, self._window // 2)


class Reserved:
    """Reservations of one step, made one after another.

    Args:
        machine: where jobs run.
        now: in seconds.
        count: of reservations.
        is_final: starts told here hold what they were given; otherwise their jobs bid again.
    """

    def __init__(self, machine: Machine, now: float, count: int, *, is_final: bool = False) -> None:
        self._machine = machine
        self._now = now
        self._count = count
        self._is_final = is_final
        self._kept: dict[str, Spot] = {}
        self.guards: tuple[Guard, ...] = ()
        self.jobs: set[int] = set()

    @property
    def wants_more(self) -> bool:
        """Whether more jobs are to get a reservation."""
        return len(self.guards) < self._count

    def reserve(self, demand: Demand, before: Sequence[Start]) -> bool:
        """Reserve for a job that could start later; return whether more are to get one."""
        if not self.wants_more:
            return False

        def fits(columns: Columns) -> Spot | None:
            if not View(columns, columns.free).could_hold(demand):
                return None
            return place_alone(demand, columns, self._machine.topology)

        kept = list(self._kept.values())
        found = Future(self._machine, self._now, before, kept).first(fits)
        if found is not None:
            time, spot = found
            free = Future(self._machine, self._now, (), kept).free_at(time)
            guard = guard_for(demand.job, self._now, time, spot, free, self._kept)
            for start in before if self._is_final else ():
                guard.take(start.demand.job, start.spot.nodes, start.spot.held)
            self.guards = (*self.guards, guard)
            self._kept[demand.job.id] = spot
        self.jobs.add(demand.index)
        return self.wants_more

    def take(self, start: Start) -> None:
        """Lessen the room beside the reservations by what a job takes that starts now."""
        for guard in self.guards:
            guard.take(start.demand.job, start.spot.nodes, start.spot.held)


def starts_of(fitting: list[Demand], found: AttemptResult | QuickResult) -> list[Start]:
    """Return the winners with what they hold."""
    table = found.table
    return [
        Start(demand=fitting[int(table.job[bid])], spot=spot_of_bid(table, bid))
        for bid in found.chosen.tolist()
    ]
