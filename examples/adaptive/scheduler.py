"""The decision function D(t, C, AA, QA, AR) over applications by name (Weissman 2.1).

What a live scheduler asks. It is harvesting.py over objects: the same functions play a simulation's jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

import numpy as np

from aucsched.cluster.errors import InputError
from aucsched.negotiation.malleable.application_columns import (
    TALLIED,
    Active,
    Context,
    JobColumns,
    empty_active,
)
from aucsched.negotiation.malleable.harvesting import admit, harvest, on_arrival, on_end, remember
from aucsched.negotiation.malleable.malleable_policies import IschedulerPolicy


def on_request(
    active: Active,
    running: int,
    free: int,
    place: int,
    wanted: int,
    now: float,
    context: Context,
) -> int:
    """Serve an application that asks for more: what is free, else what others give, all or nothing."""
    if wanted <= 0:
        return free
    if wanted > free and not harvest(active, running, wanted - free, place, now, context):
        return free
    active.held[place] += wanted
    return max(free - wanted, 0)


class Event(StrEnum):
    """When D is asked."""

    ARRIVAL = "arrival"
    END = "end"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application that runs (AA) or waits (QA).

    Attributes:
        name: which one.
        least, ideal: the fewest processors it runs on, and the most it can use.
        left_s: predicted seconds that its work left takes on the ideal processors (C).
        count: processors it holds; 0: it waits.
        start_s: of its run.
        harvests: how often it was harvested.
        request: processors that it asks for beyond those it holds (an event REQUEST).
        data: bytes that an adaptation moves, times the processors that hold them; below 0: it costs nothing.
    """

    name: str
    least: int
    ideal: int
    left_s: float
    count: int = 0
    start_s: float = 0.0
    harvests: int = 0
    request: int = 0
    data: float = -1.0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.ideal:
            raise InputError(f"not 1 <= least {self.least} <= ideal {self.ideal}", path=self.name)
        if self.count and not self.least <= self.count <= self.ideal:
            raise InputError(f"{self.count} processors are not within its range", path=self.name)
        if not isfinite(self.left_s) or self.left_s < 0 or self.request < 0:
            raise InputError("its work left or its request is not a number of at least 0", path=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of the applications.

    Attributes:
        counts: processors from now on of those whose count changes: those that give, get or start.
        harvested: who was harvested, an event each.
        free: processors that stay free.
    """

    counts: dict[str, int]
    harvested: tuple[str, ...]
    free: int


def decide(
    event: Event,
    now_s: float,
    model: str,
    active: Sequence[Application],
    queued: Sequence[Application],
    processors: int,
    policy: IschedulerPolicy,
) -> Decision:
    """Return what an event leads to.

    Args:
        event: ARRIVAL: the last of ``queued`` has just come. END: somebody has left ``active``. REQUEST: an
            application of ``active`` asks for more than it holds.
        now_s: the time t.
        model: the execution model by which processors turn into time, one of EXECUTION_MODELS (C).
        active: applications that run, in order of their starts (AA).
        queued: applications that wait, in order of arrival (QA).
        processors: of the machine; those that ``active`` does not hold are available (AR).
        policy: the components; backfilling is not one that decides here.

    Raises:
        InputError: applications that hold more than there is, or a name twice.
    """
    rules = policy.rules(model)
    everyone = [*active, *queued]
    free = processors - sum(application.count for application in active)
    if free < 0 or len({application.name for application in everyone}) < len(everyone):
        raise InputError("applications hold more processors than there are, or have one name", path="active")
    jobs = _jobs(everyone, is_ideal=policy.is_ideal, first_queued=len(active))
    columns = _columns(active, processors, jobs, now_s, rules.model)
    context = Context(jobs, rules, np.zeros(TALLIED, dtype=np.int64))
    running, tail = len(active), len(everyone)
    remember(columns, running)
    if event is Event.ARRIVAL:
        if len(queued) == 1:
            running, free = on_arrival(columns, running, free, tail - 1, now_s, context)
    elif event is Event.END:
        running, free, _ = on_end(columns, running, free, running, tail, now_s, context)
    else:
        for place, one in enumerate(active):
            wanted = min(one.request, one.ideal - one.count)
            free = on_request(columns, running, free, place, wanted, now_s, context)
    return _decision(columns, running, free, active, everyone)


def _jobs(everyone: Sequence[Application], *, is_ideal: bool, first_queued: int) -> JobColumns:
    """Return applications as the columns of a trace; those that run stand first."""
    least = [
        one.ideal if is_ideal and place >= first_queued else one.least for place, one in enumerate(everyone)
    ]
    return JobColumns(
        submit=np.zeros(len(everyone)),
        run=np.array([one.left_s for one in everyone], dtype=np.float64),
        least=np.array(least, dtype=np.int64),
        ideal=np.array([one.ideal for one in everyone], dtype=np.int64),
        data=np.array([one.data for one in everyone], dtype=np.float64),
    )


def _columns(
    active: Sequence[Application], processors: int, jobs: JobColumns, now_s: float, model: int
) -> Active:
    columns = empty_active(min(processors, len(jobs.run)))
    for place, one in enumerate(active):
        admit(columns, place, place, one.count, now_s, jobs, model)
        columns.start[place] = one.start_s
        columns.harvests[place] = one.harvests
    return columns


def _decision(
    columns: Active, running: int, free: int, active: Sequence[Application], everyone: Sequence[Application]
) -> Decision:
    counts = {
        everyone[columns.job[place]].name: int(columns.held[place])
        for place in range(running)
        if columns.held[place] != everyone[columns.job[place]].count
    }
    harvested = tuple(one.name for place, one in enumerate(active) if columns.harvests[place] > one.harvests)
    return Decision(counts=counts, harvested=harvested, free=int(free))
