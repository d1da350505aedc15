"""What a plain scheduler would start: first-fit by priority, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..bidgen.columns import columns_of
from ..bidgen.first_fit import FirstFit
from ..cluster.snapshot import Snapshot
from ..topology.tree import topology_of
from .options import StepOptions
from .queue import queue_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The jobs that first-fit starts, with their node names, and the sum of their priorities."""

    started: Mapping[str, tuple[str, ...]]
    priority: Fraction | int


def first_fit_by_priority(snapshot: Snapshot, window: int) -> Baseline:
    """Return what starts when each job of the window, by priority, takes the first nodes that hold it."""
    columns = columns_of(snapshot)
    queue = queue_of(snapshot, columns, StepOptions(window=window))
    placements = FirstFit(columns, topology_of(snapshot)).place_all(queue.window)
    placed = [placement for placement in placements if placement is not None]
    return Baseline(
        started={
            one.demand.job.id: tuple(columns.names[node] for node in one.nodes.tolist()) for one in placed
        },
        priority=sum((one.demand.job.priority for one in placed), start=Fraction(0)),
    )
