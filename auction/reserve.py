"""Reservations for the first blocked jobs, so that narrower jobs cannot starve a wide one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bidgen.demand import Demand
from ..bidgen.guard import Guard
from .forecast import Forecast, guard_for, limits_of
from .spot import Spot, Start
from .state import State


class Reservations:
    """Reservations of one step, made one after another.

    Each job starts as soon as running jobs and the starts of jobs with higher priority leave enough beside
    the reservations made before it, which are taken to hold from now on and for ever. A job that fits beside
    those now is reserved for now: only jobs of lower priority stood in its way.

    Args:
        state: the cluster.
        count: K.
        later_only: reserve nothing for a job that fits now: it is not for want of resources that it waits.
        is_over: whether the step's time is up: first-fit alone then finds where the jobs are to start.

    Attributes:
        guards: what others must leave free.
        asked: ids of the jobs that were to get one; some can never start.
    """

    def __init__(
        self,
        state: State,
        count: int,
        *,
        later_only: bool = False,
        is_over: Callable[[], bool] | None = None,
    ) -> None:
        self._state = state
        self._count = count
        self._later_only = later_only
        self._is_over = is_over
        self._kept: dict[str, Spot] = {}
        self.guards: tuple[Guard, ...] = ()
        self.asked: set[str] = set()

    @property
    def wants_more(self) -> bool:
        """Whether more jobs are to get a reservation."""
        return len(self.guards) < self._count

    def promise(self, demand: Demand, promised: float) -> float | None:
        """Reserve for a job that was promised a start, from then on; return its earliest start.

        Others may use its nodes until then. Where it cannot start by then it is reserved as soon as it can;
        None: nothing that ends lets it start beside the reservations made before. It counts beside the K.
        """
        kept = list(self._kept.values())
        found = Forecast(self._state, (), kept, self._is_over).first(demand.job, demand)
        self.asked.add(demand.job.id)
        if found is None:
            return None
        earliest, spot = found
        time = max(earliest, promised)
        free = Forecast(self._state, (), kept).free_at(time)
        self.guards = (*self.guards, guard_for(demand.job, self._state.now, time, spot, free, self._kept))
        self._kept[demand.job.id] = spot
        self._count += 1
        return earliest

    def reserve(self, demand: Demand, before: Sequence[Start]) -> bool:
        """Reserve for a job that could start later; return whether more are to get one.

        Args:
            demand: of a job that does not start now.
            before: starts of jobs of higher priority.
        """
        if not self.wants_more:
            return False
        kept = list(self._kept.values())
        found = Forecast(self._state, limits_of(before), kept, self._is_over).first(demand.job, demand)
        if found is not None and not (self._later_only and found[0] <= self._state.now):
            time, spot = found
            free = Forecast(self._state, (), kept).free_at(time)
            guard = guard_for(demand.job, self._state.now, time, spot, free, self._kept)
            self.guards = (*self.guards, guard)
            self._kept[demand.job.id] = spot
        self.asked.add(demand.job.id)
        return self.wants_more
