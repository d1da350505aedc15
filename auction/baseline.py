"""First-fit by priority, the award of a plain scheduler, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..bidgen.first_fit import FirstFitPlacer
from ..cluster.snapshot import Snapshot
from .backfilled import backfilled
from .options import StepOptions
from .queue import queue_of
from .reserve import StepReservations
from .state import state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The jobs that first-fit starts, with their node names, and the sum of their priorities."""

    started: Mapping[str, tuple[str, ...]]
    priority: Fraction | int


def first_fit_by_priority(snapshot: Snapshot, window: int, reserve: int = 0) -> Baseline:
    """Return what starts when each job of the window, by priority, takes the first nodes that hold it.

    Args:
        snapshot: the cluster and its queue.
        window: jobs of highest priority that are looked at.
        reserve: this many of the first blocked jobs get a reservation, which later jobs do not delay, as in
            plain backfill.
    """
    state = state_of(snapshot)
    queue = queue_of(snapshot, state.columns, StepOptions(window=window))
    fit = FirstFitPlacer(state.columns, state.topology)
    starts = backfilled(queue.window, fit, StepReservations(state, reserve, later_only=True))
    names = state.columns.names
    return Baseline(
        started={
            start.demand.job.id: tuple(names[node] for node in start.allocation.nodes.tolist())
            for start in starts
        },
        priority=sum((start.demand.job.priority for start in starts), start=Fraction(0)),
    )
