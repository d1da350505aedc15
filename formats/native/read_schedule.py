"""Schedules read back (``aucsched-schedule/1``), so that an award that was made can be explained later."""

from __future__ import annotations

from pathlib import Path

from ...cluster.errors import InputError
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
from ..file_kinds import SCHEDULE, instead
from ..jsontext import decode
from ..reading import read_document
from . import schedule_wire as wire


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
    try:
        document = decode(text, wire.ScheduleWire)
        if document.format != FORMAT:
            raise InputError(f"{document.format!r} is not {FORMAT!r}", path="format")  # noqa: TRY301
    except InputError as error:
        raise instead(text, SCHEDULE, error) from error
    objective, window = document.objective, document.window
    return Schedule(
        model=document.model,
        status=Status(document.status),
        objective=Objective(
            priority=exact_priority(objective.priority),
            preference=objective.preference,
            bound=objective.bound,
            gap=objective.gap,
            bound_over_placements=objective.bound_over_placements,
        ),
        started=tuple(map(_award, document.started)),
        pending=tuple(
            Refusal(job=one.job, reason=Reason(one.reason), detail=one.detail) for one in document.pending
        ),
        window=window.size,
        next_window=window.next,
        attempts=tuple(
            Attempt(
                size=one.size,
                status=one.status,
                priority=exact_priority(one.priority),
                seconds=one.seconds,
            )
            for one in window.attempts
        ),
        sizes=Sizes(**{name: getattr(document.sizes, name) for name in Sizes.__slots__}),
        seconds=Seconds(**{name: getattr(document.seconds, name) for name in Seconds.__slots__}),
    )


def _award(entry: wire.StartedWire) -> Award:
    bid = BidSummary(
        bid_class=BidClass(entry.bid.class_), level=entry.bid.level, preference=entry.bid.preference
    )
    return Award(job=entry.job, nodes={name: _use(one) for name, one in entry.nodes.items()}, bid=bid)


def _use(entry: wire.UseWire) -> Resources:
    gres = entry.gres if isinstance(entry.gres, dict) else {}
    memory = entry.memory_mib if isinstance(entry.memory_mib, int) else None
    return Resources(cores=entry.cores, memory_mib=memory, gres=gres)
