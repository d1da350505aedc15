"""Reservations for the first blocked jobs, so that narrower jobs cannot starve a wide one (SPEC 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bidgen.guard import Guard
from ..cluster.jobs import Job
from ..cluster.schedule import Award
from ..cluster.snapshot import Snapshot
from .forecast import Forecast, Spot, guard_for


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reserved:
    """A blocked job's reservation: what others must leave, and where the job stands."""

    guard: Guard
    spot: Spot


def reservations_for(
    snapshot: Snapshot, blocked: list[tuple[Job, list[Award]]], count: int
) -> tuple[Reserved, ...]:
    """Return reservations for the first ``count`` blocked jobs that can ever start.

    Each starts as soon as running jobs and the awards of jobs with higher priority leave enough beside the
    reservations made before it, which are taken to hold from now on and for ever. A job that fits beside
    those now is reserved for now: only jobs of lower priority stood in its way.

    Args:
        snapshot: the cluster and its queue.
        blocked: jobs of the window that do not start, in queue order, each with the awards of the jobs
            before it.
        count: K.
    """
    made: list[Reserved] = []
    for job, before in blocked:
        if len(made) == count:
            break
        found = Forecast(snapshot, before, [one.spot for one in made])
        start = found.first(job)
        if start is not None:
            step, spot = start
            time = found.times[step]
            alone = Forecast(snapshot, (), [one.spot for one in made])
            free = alone.at(int(np.searchsorted(alone.times, time, side="right")) - 1)
            spots = {one.guard.job.id: one.spot for one in made}
            guard = guard_for(job, alone.times[0], time, spot, free, spots)
            made.append(Reserved(guard=guard, spot=spot))
    return tuple(made)
