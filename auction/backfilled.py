"""Plain backfilling: the jobs that start one after another, each on the first nodes that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..bidgen.first_fit import FirstFitPlacer
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.demand import Demand
from .reserve import StepReservations


def backfilled(
    waiting: Iterable[Demand],
    fit: FirstFitPlacer,
    reserved: StepReservations,
    passes_over: Callable[[Demand], bool] = lambda _: False,
) -> list[StartingJob]:
    """Return what starts in the order of the queue beside reservations for the first blocked jobs.

    Args:
        waiting: jobs, highest priority first.
        fit: places them, beside the reservations that there are.
        reserved: makes reservations for blocked jobs as long as it wants more.
        passes_over: whether a blocked job gets none.
    """
    starts: list[StartingJob] = []
    for demand in waiting:
        placement = fit.place(demand)
        if placement is not None:
            starts.append(StartingJob(demand=demand, allocation=placement.allocation()))
        elif reserved.wants_more and demand.job.id not in reserved.asked and not passes_over(demand):
            _reserve(demand, reserved, starts, fit)
    return starts


def _reserve(
    demand: Demand, reserved: StepReservations, starts: list[StartingJob], fit: FirstFitPlacer
) -> None:
    """Keep nodes for a blocked job: what has started and outlasts its start stands beside it."""
    before = len(reserved.guards)
    reserved.reserve(demand, starts)
    for made in reserved.guards[before:]:
        guard = made.copy()
        for start in starts:
            guard.take(start.demand.job, start.allocation.nodes, start.allocation.held)
        fit.keep(guard)
