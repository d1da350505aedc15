"""Members and JSON types of schedule and plan files, from which their schemas are made."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Wire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What every object of the file has in common: all members stand, no other does."""


class UseWire(_Wire):
    """What a job holds on a node; gres and memory stand where the job counts them."""

    cores: _Count
    gres: dict[_Name, Annotated[int, msgspec.Meta(ge=1)]] | msgspec.UnsetType = msgspec.UNSET
    memory_mib: _Count | msgspec.UnsetType = msgspec.UNSET


class BidWire(_Wire):
    """The winning bid: its class, the level of its nodes' lowest common switch, its preference."""

    class_: Literal["A", "B", "C"] = msgspec.field(name="class")
    level: _Count | None
    preference: float | None


class StartedWire(_Wire):
    """A job that starts, with what it holds on each node."""

    job: _Name
    nodes: Annotated[dict[_Name, UseWire], msgspec.Meta(min_length=1)]
    bid: BidWire


class PendingWire(_Wire):
    """A job that waits, and why."""

    job: _Name
    reason: Literal[
        "outbid",
        "no_fit",
        "ineligible",
        "bid_cap",
        "window",
        "not_expressible",
        "held",
        "not_eligible",
        "reservation",
        "set_aside",
        "limit",
        "share",
    ]
    detail: str


class ObjectiveWire(_Wire):
    """The award's worth; bound and gap are about the sum of priorities over the window's bids."""

    priority: Annotated[float, msgspec.Meta(ge=0)]
    preference: float | None
    bound: float | None
    gap: Annotated[float, msgspec.Meta(ge=0)] | None
    bound_over_placements: float | None = None


class AttemptWire(_Wire):
    """One solve: its window, how it ended, the sum of priorities it found, its wall time."""

    size: _Count
    status: str
    priority: Annotated[float, msgspec.Meta(ge=0)]
    seconds: _Seconds


class WindowWire(_Wire):
    """The window of the award that stands, what the next step should look at, and all solves."""

    size: _Count
    next: Annotated[int, msgspec.Meta(ge=1)]
    attempts: list[AttemptWire]


class SizesWire(_Wire):
    """The size of the winning attempt and of its integer program."""

    nodesets: _Count
    bids: _Count
    variables: _Count
    constraints: _Count
    nonzeros: _Count


class SecondsWire(_Wire):
    """Wall time of the step's parts."""

    bids: _Seconds
    build: _Seconds
    solve: _Seconds
    total: _Seconds


class ScheduleWire(_Wire):
    """Who starts where, who waits and why; every job of the snapshot stands in exactly one of the lists."""

    format: Literal["aucsched-schedule/1"]
    model: str
    status: Literal["optimal", "feasible", "no_solution"]
    objective: ObjectiveWire
    started: list[StartedWire]
    pending: list[PendingWire]
    window: WindowWire
    sizes: SizesWire
    seconds: SecondsWire


class PlannedWire(_Wire):
    """A job with its planned start and end, and what it will hold on each node; null: it never ends."""

    job: _Name
    start: _Seconds
    end: _Seconds | None
    nodes: Annotated[dict[_Name, UseWire], msgspec.Meta(min_length=1)]


class PlanWire(_Wire):
    """When and where each job will start; every pending job stands in exactly one of the two lists."""

    format: Literal["aucsched-plan/1"]
    time: _Seconds
    planned: list[PlannedWire]
    unplanned: list[PendingWire]
    overdue: list[_Name]
    endless: list[_Name]
