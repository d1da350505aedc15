"""Schedule and plan files: members and JSON types; schedules read back (``aucsched-schedule/1``).

Their schemas are made from these types, and an award that was made can be explained later.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec

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
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]
#: JSON types of members, by their types in cluster/schedule.py.
_JSON: Mapping[Any, Any] = {
    int: _Count,
    float: _Seconds,
    Fraction | int: _Seconds,
    str: str,
    int | None: _Count | None,
    float | None: float | None,
    **{words: Literal[tuple(one.value for one in words)] for words in (Reason, BidClass, Status)},
}


class _Wire(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What every object of the file has in common: all members stand, no other does."""


def _wire(cls: type, name: str = "", **own: Any) -> Any:
    """Return the object of a class: its members, ``own`` ones as given, its first sentence."""
    hints = get_type_hints(cls)
    members = [(name, *(own[name] if name in own else (_JSON[hints[name]],))) for name in hints]
    about = f"{(cls.__doc__ or '').partition('.')[0]}."
    return msgspec.defstruct(
        f"{name or cls.__name__}Wire", members, bases=(_Wire,), namespace={"__doc__": about}
    )


class UseWire(_Wire):
    """What a job holds on a node; gres and memory stand where the job counts them, not null."""

    cores: _Count
    gres: dict[_Name, Annotated[int, msgspec.Meta(ge=1)]] = {}
    memory_mib: _Count = msgspec.field(default_factory=lambda: None)  # type: ignore[assignment]


_Bid = _wire(BidSummary, "Bid", bid_class=(_JSON[BidClass], msgspec.field(name="class")))
_Refusal = _wire(Refusal, "Pending", job=(_Name,))
_Objective = _wire(Objective, gap=(_Seconds | None,), bound_over_placements=(float | None, None))
_Attempt, _Sizes, _SecondsOfParts = map(_wire, (Attempt, Sizes, Seconds))


class StartedWire(_Wire):
    """A job that starts, with what it holds on each node."""

    job: _Name
    nodes: Annotated[dict[_Name, UseWire], msgspec.Meta(min_length=1)]
    bid: _Bid  # type: ignore[valid-type]


class WindowWire(_Wire):
    """The window of the award that stands, what the next step should look at, and all solves."""

    size: _Count
    next: Annotated[int, msgspec.Meta(ge=1)]
    attempts: list[_Attempt]  # type: ignore[valid-type]


class ScheduleWire(_Wire):
    """Which jobs start where, which wait and why; each job of the snapshot is in one list only."""

    format: Literal["aucsched-schedule/1"]
    model: str
    status: _JSON[Status]  # type: ignore[valid-type]
    objective: _Objective  # type: ignore[valid-type]
    started: list[StartedWire]
    pending: list[_Refusal]  # type: ignore[valid-type]
    window: WindowWire
    sizes: _Sizes  # type: ignore[valid-type]
    seconds: _SecondsOfParts  # type: ignore[valid-type]
    search_parameters: dict[_Name, _Count | _Seconds] = {}


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
    unplanned: list[_Refusal]  # type: ignore[valid-type]
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
        objective=_with_priority(Objective, document.objective),
        started=_made(tuple[Award, ...], document.started),
        pending=_made(tuple[Refusal, ...], document.pending),
        window=window.size,
        next_window=window.next,
        attempts=tuple(_with_priority(Attempt, one) for one in window.attempts),
        sizes=_made(Sizes, document.sizes),
        seconds=_made(Seconds, document.seconds),
        search_parameters=document.search_parameters,
    )


def _made(kind: type[T], entry: Any) -> T:
    """Return what objects describe."""
    return msgspec.convert(entry, kind, from_attributes=True)


def _with_priority(cls: type[T], entry: msgspec.Struct) -> T:
    """Return what an object with a priority describes, which is exact."""
    members = msgspec.structs.asdict(entry)
    return cls(**members | {"priority": exact_priority(members["priority"])})
