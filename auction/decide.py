"""The one place that awards: a state and a queue go in, a decision comes out.

Every command is an adapter of it: ``schedule`` (a snapshot), ``simulate`` and ``sweep`` (a machine whose
columns stay), and whoever imports it. One step:

1. the window: the first jobs of the queue;
2. those of it that could start now; of jobs that ask for the same no more than could start at once;
3. reservations for jobs that were promised a start, from then on, and for the first jobs that cannot start
   (``--reserve``); under promise ``backfill`` only those bid that plain backfilling would start beside them;
4. bids, and the best award by the options' strategy, within the time or work that is left;
5. reservations for jobs that lost; where the award would delay one of these, bid and award again beside them;
6. what the award leaves: every job that could start on it starts, in the window and behind it (complete.py),
   unless the award is to stand alone and starts somebody, or others run;
7. the next window: half after a limit without a proof, twice as many jobs after a proof.

No clock but the options' is read, nothing is kept: the same state, queue and options give the same decision
under a work limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from ..bidgen.first_fit import FirstFitPlacer
from ..bidgen.table import allocation_of_bid
from ..cluster.errors import OptionError
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from .attempt import AttemptResult, attempt
from .backfilled import backfilled
from .balance import Balance, balance_of
from .bidders import MANY, could_start, not_too_many_alike, split
from .complete import completed
from .job_classes import ClassMix, mix_of
from .ledger import FreeState
from .options import StepOptions
from .parts import attempt_in_parts
from .reserve import Promise, StepReservations
from .state import StepState
from .strategies import Cluster

#: Share of the limit after which a step has decided: the rest is for checking awards and finding reasons.
_FOR_DECIDING = 0.9
#: Seconds that this takes for each node and each job, where that is more, of at most half of the limit.
_REPORT_S_OF_NODE, _REPORT_S_OF_JOB, _MOST_FOR_REPORT = 1.5e-5, 2.5e-4, 0.5
#: Promises that a step keeps, the earliest.
_MOST_PROMISED = 64
#: Share of the time that is left for an attempt after which another may follow.
_FIRST_OF_TWO = 0.5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decision:
    """What a step decided and what it was made from.

    Attributes:
        window: the jobs that took part, highest priority first.
        left_out: ids of jobs that did not bid though they could start: as many that ask for the same did.
        passed: ids of jobs that did not bid though they could start: backfilling starts others before them.
        cluster: with the reservations, which the award does not delay.
        attempts: in the order in which they were made.
        best: the attempt whose award stands; None when no job could bid.
        starts: the award; empty when it is discarded.
        completed: every job of the queue was tried on what the award leaves.
        discarded: a limit came before a proof, and ``on_timeout`` is ``discard``.
        next_window: jobs that the next step should look at.
    """

    window: tuple[Demand, ...]
    left_out: frozenset[str]
    passed: frozenset[str]
    cluster: Cluster
    attempts: tuple[AttemptResult, ...]
    best: AttemptResult | None
    starts: tuple[StartingJob, ...]
    completed: bool
    discarded: bool
    next_window: int


def decide(
    state: StepState,
    queue: Iterable[Demand],
    options: StepOptions,
    *,
    window: int | None = None,
    mix: ClassMix | None = None,
    all_bid_up_to: int | None = None,
    promised: Sequence[Promise] | None = None,
) -> Decision:
    """Decide which jobs of a queue start now, and where.

    Args:
        state: the cluster; left alone.
        queue: the waiting jobs that the model can express, highest priority first.
        options: of the step.
        window: jobs that are looked at, ``options.window`` at most; None: as many as that.
        mix: what waits and what runs, where a balance is kept; None: as the whole queue and the state say.
        all_bid_up_to: with more jobs that could start, only some of those that ask alike bid; None: 100.
        promised: starts that jobs were promised, in the window or behind it; None: those of the queue.

    Raises:
        InputError: the weights are too large to be summed exactly.
        SolverError: HiGHS failed.
    """
    size = options.window if window is None else window
    jobs = iter(queue)
    waiting = tuple(islice(jobs, size))
    began = options.clock() if options.began is None else options.began
    many = MANY if all_bid_up_to is None else all_bid_up_to
    behind: Iterable[Demand] = jobs
    first: tuple[Promise, ...] = ()
    if options.promise != "none":
        if promised is None:
            behind = tuple(jobs)
            promised = _promises((*waiting, *behind))
        first = tuple(sorted(promised, key=lambda one: one.start)[:_MOST_PROMISED])
    if not options.balance:
        return _Step(state, _Waiting(waiting, behind, first), options, size, began, many).run()
    behind = tuple(behind)
    mix = mix_of(state, (*waiting, *behind)) if mix is None else mix
    free, topology, since = state.columns.free, state.topology, mix.since
    waits = {demand.job.id: state.now - since[demand.job.id] for demand in waiting if demand.job.id in since}
    balance = balance_of(mix.waiting, waiting, mix.held, free, topology, waits=waits)
    found = _Step(state, _Waiting(waiting, behind, first), options, size, began, many, balance).run()
    if found.starts or found.discarded or state.holds:
        return found
    if not balance.is_draining:
        # What no share holds must not keep an empty machine idle.
        drained = balance_of(mix.waiting, waiting, mix.held, free, topology, drain=True)
        found = _Step(state, _Waiting(waiting, behind, first), options, size, began, many, drained).run()
        if found.starts or found.discarded:
            return found
    # Nor what no even part of a job fits: first bids are not all places.
    return _Step(state, _Waiting(waiting, behind, first), options, size, began, many).run()


def _promises(waiting: Iterable[Demand]) -> list[Promise]:
    """Return the starts that jobs of a queue were promised."""
    return [
        Promise(demand, demand.job.promised_start)
        for demand in waiting
        if demand.job.promised_start is not None
    ]


class _Waiting(NamedTuple):
    """The jobs of the window, those behind it, and starts promised to them, the earliest first."""

    window: tuple[Demand, ...]
    behind: Iterable[Demand]
    promised: tuple[Promise, ...]


def _deciding_s(time_limit_s: float, nodes: int, jobs: int) -> float:
    """Return after how many seconds a step has decided."""
    report_s = nodes * _REPORT_S_OF_NODE + jobs * _REPORT_S_OF_JOB
    least = (1 - _MOST_FOR_REPORT) * time_limit_s
    return min(_FOR_DECIDING * time_limit_s, max(least, time_limit_s - report_s))


class _Step:
    """One step: its window, its reservations and its attempts."""

    def __init__(
        self,
        state: StepState,
        waiting: _Waiting,
        options: StepOptions,
        size: int,
        began: float,
        all_bid_up_to: int,
        balance: Balance | None = None,
    ) -> None:
        window = waiting.window
        self._state = state
        self._balance = balance
        self._columns = state.columns if balance is None else balance.on(state.columns)
        self._window = window
        self._behind = waiting.behind
        self._promised = waiting.promised
        self._options = options
        self._size = size
        nodes, most_s = len(self._columns.names), options.most_s
        self._deadline = None if most_s is None else began + _deciding_s(most_s, nodes, len(window))
        self._end = None if most_s is None else began + most_s
        self._behind_started: dict[str, Demand] = {}
        self._attempts: list[AttemptResult] = []
        self._could_start = could_start(window, self._columns)
        self._bidding = not_too_many_alike(
            window,
            self._could_start,
            self._columns,
            options.reservations,
            all_bid_up_to,
            however_long=balance is None and not self._is_reserving and options.objective != "response",
        )
        self._left_out = self._could_start - self._bidding
        self._passed: set[str] = set()
        self._overdue = frozenset[str]() if balance is None else balance.overdue

    @property
    def _is_reserving(self) -> bool:
        """Whether some jobs are reserved for, so that it matters how long others run."""
        return bool(self._options.reservations or self._promised or self._options.backfills)

    def run(self) -> Decision:
        """Make the step."""
        reserved = StepReservations(
            self._state,
            max(self._options.reservations, int(bool(self._overdue))),
            later_only=self._balance is not None or self._options.backfills,
            is_over=lambda: self._is_over(self._deadline),
        )
        for promise in self._promised:
            reserved.promise(promise)
        if self._options.backfills:
            self._bid_as_backfilled(reserved)
        else:
            self._reserve_for_blocked(reserved)
        best = self._auctioned(reserved.guards, share=_FIRST_OF_TWO if reserved.wants_more else 1.0)
        starts = self._starts(best)
        if reserved.wants_more and best is not None and self._delays(best, starts, reserved):
            best = self._auctioned(reserved.guards) or best
            starts = self._starts(best)
        guards = reserved.guards
        if not starts and not self._state.holds:
            best, guards = self._of_empty(best, guards)
        return self._decision(best, guards)

    def _reserve_for_blocked(self, reserved: StepReservations) -> None:
        """Reserve for the first jobs, up to one that may start: no award can let them start."""
        for demand in self._window:
            if demand.job.id in self._bidding:
                if self._passes_over(demand):
                    continue
                break
            if demand.job.id in reserved.asked:
                continue
            if not self._passes_over(demand) and not reserved.reserve(demand, ()):
                break

    def _bid_as_backfilled(self, reserved: StepReservations) -> None:
        """Reserve as plain backfilling would; the jobs that it would start bid, and no others."""
        fit = FirstFitPlacer(self._columns, self._state.topology, reserved.guards)
        starts = backfilled(self._window, fit, reserved, self._passes_over)
        due = {guard.job.id for guard in reserved.guards if guard.is_now}
        self._bidding = self._could_start & ({start.demand.job.id for start in starts} | due)
        self._left_out = set()
        self._passed = self._could_start - self._bidding

    def _of_empty(
        self, best: AttemptResult | None, guards: tuple[Guard, ...]
    ) -> tuple[AttemptResult | None, tuple[Guard, ...]]:
        """Return what starts on a machine that would stay empty, and the reservations that this is beside.

        Neither first bids nor bids cover every place: what is only reserved must not keep the machine idle.
        """
        bids_more = self._balance is not None and self._options.is_greedy
        for kept in (guards, ()) if guards else (guards,):
            if kept != guards:
                best = self._auctioned(kept) or best
            if bids_more and not self._starts(best):
                best = self._auctioned(kept, everywhere=True) or best
            if self._starts(best):
                return best, kept
        return best, ()

    def _decision(self, best: AttemptResult | None, guards: tuple[Guard, ...]) -> Decision:
        options = self._options
        is_late = best is not None and not options.is_greedy and not self._is_proved(best)
        discarded = is_late and options.on_timeout == "discard"
        # Nobody is to wait for ever beside an empty machine on which no bid of his stands.
        is_idle = not self._state.holds and not self._starts(best)
        completes = not discarded and (is_idle or not options.award_alone)
        if completes:
            best = self._completed(best, guards)
        starts = self._starts(best)
        return Decision(
            window=self._window,
            left_out=frozenset(self._left_out),
            passed=frozenset(self._passed),
            cluster=self._cluster(guards),
            attempts=tuple(self._attempts),
            best=best,
            starts=() if discarded else starts,
            completed=completes,
            discarded=discarded,
            next_window=self._next_window(is_late=is_late),
        )

    def _completed(self, best: AttemptResult | None, guards: tuple[Guard, ...]) -> AttemptResult | None:
        """Return the award with every job of the queue that could start on what it leaves."""
        behind: list[Demand] = []
        kept = iter(self._behind)

        def waiting(won: frozenset[str]) -> Iterable[Demand]:
            """Yield the jobs that wait beside some winners; those behind the window are read once."""
            # Who cannot start on all that is free cannot on what is left of it.
            losers = (
                demand
                for demand in self._window
                if demand.job.id in self._could_start and demand.job.id not in won
            )
            if self._balance is not None:
                # Jobs behind the window have no share: the next pass, which sees them, gives them theirs.
                yield from map(self._balance.valued, losers)
                return
            yield from losers
            yield from behind
            for demand in kept:
                behind.append(demand)
                yield demand

        window = frozenset(demand.job.id for demand in self._window)
        best, started = completed(
            best, waiting, self._cluster(guards), self._options, window, lambda: self._is_over(self._end)
        )
        self._behind_started = {demand.job.id: demand for demand in started}
        return best

    def _is_proved(self, best: AttemptResult) -> bool:
        """Return whether the best award of the whole window is proved, not of a half of it."""
        return best.proved and best.size == len(self._window)

    def _next_window(self, *, is_late: bool) -> int:
        options = self._options
        has_searched = options.is_anytime and options.most_work is not None
        if is_late and options.on_timeout is None and has_searched:
            # All steps that were asked for are no timeout: only the clock is.
            is_late = self._is_over(self._deadline)
            if not is_late:
                return self._size
        if options.is_greedy or (is_late and options.on_timeout == "incumbent"):
            return self._size
        if is_late:
            # Of a queue shorter than the window half of the jobs, else they would all be looked at again.
            return max(1, min(self._size, len(self._window)) // 2)
        return min(2 * self._size, self._options.window)

    def _cluster(self, guards: tuple[Guard, ...]) -> Cluster:
        topology = self._state.topology
        return Cluster(columns=self._columns, topology=topology, guards=guards, placer=self._balance)

    def _auctioned(
        self, guards: tuple[Guard, ...], *, share: float = 1.0, everywhere: bool = False
    ) -> AttemptResult | None:
        """Return the best attempt beside some reservations; None when nobody could bid."""
        made: list[AttemptResult] = []
        options, size = self._options, len(self._window)
        cluster = replace(self._cluster(guards), everywhere=everywhere)
        deadline = self._until(share)
        halves = options.chosen_on_timeout == "halve" and not options.is_anytime and not options.is_greedy
        while size and any(demand.job.id in self._bidding for demand in self._window[:size]):
            # The file is the whole window's: halved attempts leave it alone.
            asked = replace(options, export="") if made or self._attempts else options
            end = deadline
            if halves and size > 1 and deadline is not None and options.most_work is None:
                end = options.clock() + _FIRST_OF_TWO * (deadline - options.clock())
            made.append(self._attempt(size, cluster, asked, end))
            if made[-1].proved or not halves or size == 1 or self._is_over(deadline):
                break
            size //= 2
        self._attempts += made
        return max(made, key=lambda one: (one.value[0], one.value[1], one.proved), default=None)

    def _attempt(
        self, size: int, cluster: Cluster, options: StepOptions, deadline: float | None
    ) -> AttemptResult:
        demands, others = split(self._window[:size], self._bidding, self._could_start)
        if self._balance is not None:
            demands = tuple(self._balance.valued(demand) for demand in demands)
        in_parts = options.is_anytime and len(cluster.columns.names) > options.nodes_of_a_part
        if options.dask and not in_parts:
            nodes, most = len(cluster.columns.names), options.nodes_of_a_part
            raise OptionError(f"dask: {nodes} nodes are one part of at most {most} (part_nodes)")
        make = attempt_in_parts if in_parts else attempt
        return make(demands, cluster, options, size=size, deadline=deadline, others=others)

    def _until(self, share: float) -> float | None:
        if self._deadline is None or self._options.most_work is not None:
            return self._deadline
        now = self._options.clock()
        return now + share * max(0.0, self._deadline - now)

    def _is_over(self, deadline: float | None) -> bool:
        return deadline is not None and self._options.clock() >= deadline

    def _starts(self, best: AttemptResult | None) -> tuple[StartingJob, ...]:
        """Return the winners with what they hold, as the jobs of the window."""
        if best is None:
            return ()
        table = best.table
        jobs = self._behind_started | {demand.job.id: demand for demand in self._window}
        return tuple(
            StartingJob(
                demand=jobs[table.demands[int(table.job[bid])].job.id],
                allocation=allocation_of_bid(table, bid),
            )
            for bid in best.chosen.tolist()
        )

    def _passes_over(self, demand: Demand) -> bool:
        """Return whether nothing is reserved for a job, as for one whose limits are used up.

        Where no reservations are asked for, a balance has them for overdue jobs alone.
        """
        is_due = demand.job.id in self._overdue
        if self._balance is not None and not self._options.reservations and not is_due:
            return True
        return not demand.reserves or self._columns.pools.passes_over(demand.job)

    def _delays(self, best: AttemptResult, starts: Sequence[StartingJob], reserved: StepReservations) -> bool:
        """Reserve for the first jobs that did not start; return whether the award delays any of them."""
        winners = {start.demand.job.id: start for start in starts}
        before: list[StartingJob] = []
        for demand in self._window:
            if demand.job.id in winners:
                before.append(winners[demand.job.id])
            elif demand.job.id not in reserved.asked and not self._passes_over(demand):
                reserved.reserve(demand, before)
            if not reserved.wants_more:
                break
        ledger = FreeState(best.table, self._columns, reserved.guards)
        delays = any(guard.is_now for guard in reserved.guards)
        for bid in best.chosen.tolist():
            delays = delays or ledger.delayed(bid) is not None
            ledger.take(bid)
        return delays
