"""Reservations for the first blocked jobs, so that narrower jobs cannot starve a wide one.

Plain backfilling (``Backfilling``) starts jobs one after another, each on the first nodes that hold
it, beside them.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from ..bidgen.first_fit import FirstFitPlacer
from ..cluster.jobs import Job
from ..cluster.resources.allocation import Allocation, StartingJob
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from .forecast import Forecast, ReservedPlace, guard_for
from .state import StepState


class Promise(NamedTuple):
    """A start promised to a waiting job (seconds since the epoch), and where if that is known."""

    demand: Demand
    start: float
    allocation: Allocation | None = None


class StepReservations:
    """Reservations of one step, made one after another.

    Each job starts when running jobs and starts of higher priority leave enough next to the
    reservations and promises before it, each from its start for its job's longest time. A job that
    fits now is reserved for now: only jobs of lower priority stood in its way.

    Args:
        state: the cluster.
        count: K.
        later_only: reserve nothing for a job that fits now: it does not wait for resources.
        is_over: whether the step's time is up: first-fit alone then finds where jobs are to start,
            and no job but the first gets a reservation any more.
        place: says where a job could start on what is free; None: as the auction would.

    Attributes:
        asked: ids of the jobs that were to get one; some can never start.
    """

    def __init__(
        self,
        state: StepState,
        count: int,
        *,
        later_only: bool = False,
        is_over: Callable[[], bool] | None = None,
        place: Callable[[Demand, Columns], Allocation | None] | None = None,
    ) -> None:
        self._state = state
        self._place = place
        self._count = count
        self._later_only = later_only
        self._is_over = is_over
        self._kept: dict[str, ReservedPlace] = {}
        self._promised: dict[str, Job] = {}
        #: Those of the K.
        self._reserved: list[Job] = []
        #: Those before the job that is next to get one; how many of all do not count against K.
        self._before = self._reserved
        self._passed_on = 0
        self._guards: tuple[Guard, ...] | None = ()
        self.asked: set[str] = set()

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What others must leave free."""
        if self._guards is None:
            self._guards = tuple(self._guard(job) for job in (*self._promised.values(), *self._reserved))
        return self._guards

    @property
    def wants_more(self) -> bool:
        """Whether more jobs are to get a reservation."""
        standing = len(self._reserved) - self._passed_on
        is_late = standing > 0 and self._is_over is not None and self._is_over()
        return standing < self._count and not is_late

    def pass_on(self, started: Container[str], before: Container[str]) -> bool:
        """Return whether a job is to get one: of those before it fewer than K wait and have one."""
        self._before = [job for job in self._reserved if job.id in before]
        self._passed_on = len(self._reserved) - sum(job.id not in started for job in self._before)
        return self.wants_more

    def promise(self, promise: Promise) -> ReservedPlace | None:
        """Reserve for a job with a promised start, from then until its limit; return what is kept.

        Others may use its nodes until then. Where it cannot start by then it is reserved as soon as
        it can; None: nothing that ends lets it start beside the reservations made before, and what
        was kept for it stays. Its place is looked for where none is known, or where it is no longer
        free. Promises count beside the K, and come before them.
        """
        demand, time = promise.demand, max(promise.start, self._state.now)
        self.asked.add(demand.job.id)
        others = self._others(demand.job)
        kept = self._at(others, demand, time, promise.allocation) or self._first(others, demand, time)
        if kept is not None:
            self._kept[demand.job.id] = kept
            self._promised[demand.job.id] = demand.job
            self._guards = None
        return kept

    def sooner(
        self, promise: Promise, since: float, put_off: Callable[[float], float] | None = None
    ) -> ReservedPlace | None:
        """Move a promise to the first start from a time on that others leave; None: none is sooner.

        ``put_off`` says from when on to look instead of a start that is later than ``since``.
        """
        demand, now = promise.demand, self._state.now
        others, time = self._others(demand.job), max(since, now)
        kept = self._first(others, demand, time)
        if kept is not None and kept.start > time and put_off is not None:
            time = put_off(kept.start)
            if time < promise.start:
                kept = self._first(others, demand, time)
        if kept is None or max(kept.start, time) >= promise.start:
            return None
        self._kept[demand.job.id] = kept
        self._guards = None
        return kept

    def reserve(self, demand: Demand, before: Sequence[StartingJob]) -> bool:
        """Reserve for a job that could start later; return whether more are to get one.

        At most K get one for now: one that passed on for ever would leave nothing to auction.

        Args:
            demand: of a job that does not start now.
            before: starts of jobs of higher priority.
        """
        if not self.wants_more:
            return False
        job, starts = demand.job, [(one.demand.job, one.allocation) for one in before]
        self.asked.add(job.id)
        pools = self._state.columns.pools.copy()
        for started, allocation in starts:
            pools.take(started, allocation.held)
        # A forecast gives back nodes, but no licences and nothing of limits.
        if not pools.keep(job):
            return self.wants_more
        forecast = self._forecast
        if starts:
            forecast = Forecast(self._state.with_starts(starts), is_over=self._is_over)
        found = forecast.with_reservations(self._kept.values()).first(job, demand, place=self._place)
        at_once = sum(self._kept[one.id].start <= self._state.now for one in self._before)
        may_be_now = not self._later_only and at_once < self._count
        if found is not None and (may_be_now or found[0] > self._state.now):
            self._reserved.append(job)
            self._kept[job.id] = ReservedPlace.of_run(job, *found)
            self._guards = None
        return self.wants_more

    def _others(self, job: Job) -> tuple[ReservedPlace, ...]:
        """Return what is kept for others than a job."""
        return tuple(kept for name, kept in self._kept.items() if name != job.id)

    def _at(
        self, others: Sequence[ReservedPlace], demand: Demand, time: float, allocation: Allocation | None
    ) -> ReservedPlace | None:
        """Return a place kept for a job where it is still free for as long as the job may run."""
        if allocation is None or self._state.changes:
            return None
        place = ReservedPlace.of_run(demand.job, time, allocation)
        return place if self._forecast.leaves(place, others) else None

    def _first(self, kept: Iterable[ReservedPlace], demand: Demand, time: float) -> ReservedPlace | None:
        """Return the first place for a job from a time on beside what is kept, and until when."""
        forecast = self._forecast.with_reservations(kept, (time,))
        found = forecast.first(demand.job, demand, since=time, place=self._place)
        return None if found is None else ReservedPlace.of_run(demand.job, *found)

    @cached_property
    def _forecast(self) -> Forecast:
        """What is free beside no reservation."""
        return Forecast(self._state, is_over=self._is_over)

    def _guard(self, job: Job) -> Guard:
        """Return what others must leave free for a job, beside all that hold at its start."""
        mine = self._kept[job.id]
        time = mine.start
        holding = {name: one for name, one in self._kept.items() if name != job.id and one.is_held(time)}
        free = self._forecast.free_at(time, tuple(holding.values()))
        made = {name: one.allocation for name, one in holding.items()}
        return guard_for(job, self._state.now, time, mine.allocation, free, made)


class Backfilling:
    """What starts in the order of the queue beside reservations for the first blocked jobs.

    Reservations are looked for once a job behind could start: until then no job waits for them.

    Args:
        fit: places jobs, beside the reservations that there are.
        reserved: makes reservations for blocked jobs as long as it wants more.
        passes_over: whether a blocked job gets none.

    Attributes:
        starts: the jobs that start, and where, in the order of the queue.
    """

    def __init__(
        self,
        fit: FirstFitPlacer,
        reserved: StepReservations,
        passes_over: Callable[[Demand], bool] = lambda _: False,
    ) -> None:
        self.starts: list[StartingJob] = []
        self._fit = fit
        self._reserved = reserved
        self._passes_over = passes_over
        self._blocked: list[Demand] = []

    def start(self, waiting: Iterable[Demand]) -> None:
        """Start jobs, highest priority first."""
        for demand in waiting:
            # Until one is blocked first-fit comes first: it looks at fewer nodes than counts do.
            is_first = self._reserved.wants_more and not (self._blocked or self._fit.has_counted)
            if (could := is_first or self._fit.could_hold(demand)) and self._blocked:
                self.reserve()
                could = self._fit.could_hold(demand)
            start = self._fit.start(demand) if could else None
            if start is not None:
                self.starts.append(start)
            elif self._reserved.wants_more:
                self._blocked.append(demand)

    def reserve(self) -> None:
        """Keep nodes for the blocked jobs, next to started jobs that outlast their start."""
        for demand in self._blocked:
            if not self._reserved.wants_more:
                break
            if demand.job.id in self._reserved.asked or self._passes_over(demand):
                continue
            self._reserved.reserve(demand, self.starts)
        guards = [guard.copy() for guard in self._reserved.guards]
        for guard, start in product(guards, self.starts):
            guard.take(start.demand.job, start.allocation.nodes, start.allocation.held)
        self._fit.keep(guards)
        self._blocked.clear()
