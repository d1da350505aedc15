"""Schedule and plan files: members and JSON types; schedules read back (``aucsched-schedule/1``).

Their schemas are made from these types, and an award that was made can be explained later.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_type_hints

import msgspec

from ...cluster.nodes import Resources
from ...cluster.schedule import (
    FORMAT,
    Attempt,
    Award,
    BidClass,
    BidSummary,
    Objective,
    Reason,
    Refusal,
    Schedule,
    Seconds,
    Sizes,
    Status,
)
from ...cluster.value_types import exact_priority
from ..jsontext import decode
from ..reading import read_document

T = TypeVar("T")
if TYPE_CHECKING:
    _ReasonWord: TypeAlias = str
    _ClassWord: TypeAlias = str
    _StatusWord: TypeAlias = str
else:
    _ReasonWord, _ClassWord, _StatusWord = (
        Literal[tuple(one.value for one in words)] for words in (Reason, BidClass, Status)
    )
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

    class_: _ClassWord = msgspec.field(name="class")
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
    reason: _ReasonWord
    detail: str


class ObjectiveWire(_Wire):
    """The award's worth; bound and gap are about the sum of priorities over the window's bids."""

    priority: Annotated[float, msgspec.Meta(ge=0)]
    preference: float | None
    bound: float | None
    gap: Annotated[float, msgspec.Meta(ge=0)] | None
    bound_over_placements: float | None = None


#: JSON types of figures.
_FIGURES: Mapping[Any, Any] = {int: _Count, float: _Seconds, Fraction | int: _Seconds, str: str}


def _of_figures(cls: type) -> Any:
    """Return the object of a class of figures: its members, and the first sentence about it."""
    members = [(name, _FIGURES[kind]) for name, kind in get_type_hints(cls).items()]
    about = f"{(cls.__doc__ or '').partition('.')[0]}."
    return msgspec.defstruct(f"{cls.__name__}Wire", members, bases=(_Wire,), namespace={"__doc__": about})


_Attempt, _Sizes, _SecondsOfParts = map(_of_figures, (Attempt, Sizes, Seconds))


class WindowWire(_Wire):
    """The window of the award that stands, what the next step should look at, and all solves."""

    size: _Count
    next: Annotated[int, msgspec.Meta(ge=1)]
    attempts: list[_Attempt]  # type: ignore[valid-type]


class ScheduleWire(_Wire):
    """Which jobs start where, which wait and why; each job of the snapshot is in one list only."""

    format: Literal["aucsched-schedule/1"]
    model: str
    status: _StatusWord
    objective: ObjectiveWire
    started: list[StartedWire]
    pending: list[PendingWire]
    window: WindowWire
    sizes: _Sizes  # type: ignore[valid-type]
    seconds: _SecondsOfParts  # type: ignore[valid-type]


class PlannedWire(_Wire):
    """A job with its planned start and end, and its use of each node; null: it never ends."""

    job: _Name
    start: _Seconds
    end: _Seconds | None
    nodes: Annotated[dict[_Name, UseWire], msgspec.Meta(min_length=1)]


class PlanWire(_Wire):
    """When and where each job will start; every pending job is in exactly one of the two lists."""

    format: Literal["aucsched-plan/1"]
    time: _Seconds
    planned: list[PlannedWire]
    unplanned: list[PendingWire]
    overdue: list[_Name]
    endless: list[_Name]


def load_schedule(path: str | Path) -> Schedule:
    """Read a schedule file, plain or gzip; ``-`` reads standard input.

    Raises:
        InputError: the file cannot be read or is no schedule; names file, path and value.

    Examples:
        >>> import aucsched
        >>> from pathlib import Path
        >>> made = aucsched.schedule(aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)]))
        >>> _ = Path("award.json").write_text(made.to_json())
        >>> load_schedule("award.json").status.value
        'optimal'
    """
    return read_document(path, parse_schedule)


def parse_schedule(text: bytes) -> Schedule:
    """Return the schedule in a file's text; errors name the path and the value."""
    document = decode(text, ScheduleWire, FORMAT)
    window = document.window
    return Schedule(
        model=document.model,
        status=Status(document.status),
        objective=_made(Objective, document.objective),
        started=tuple(map(_award, document.started)),
        pending=tuple(_made(Refusal, one, reason=Reason(one.reason)) for one in document.pending),
        window=window.size,
        next_window=window.next,
        attempts=tuple(_made(Attempt, one) for one in window.attempts),
        sizes=_made(Sizes, document.sizes),
        seconds=_made(Seconds, document.seconds),
    )


def _made(cls: type[T], entry: msgspec.Struct, **members: Any) -> T:
    """Return what an object describes, some members made already; priorities are exact."""
    for name in msgspec.structs.asdict(entry).keys() - members.keys():
        value = getattr(entry, name)
        members[name] = exact_priority(value) if name == "priority" else value
    return cls(**members)


def _award(entry: StartedWire) -> Award:
    bid = BidSummary(
        bid_class=BidClass(entry.bid.class_), level=entry.bid.level, preference=entry.bid.preference
    )
    return Award(job=entry.job, nodes={name: _use(one) for name, one in entry.nodes.items()}, bid=bid)


def _use(entry: UseWire) -> Resources:
    gres = entry.gres if isinstance(entry.gres, dict) else {}
    memory = entry.memory_mib if isinstance(entry.memory_mib, int) else None
    return Resources(cores=entry.cores, memory_mib=memory, gres=gres)
