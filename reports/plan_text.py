"""A plan as text: when and where each job starts, and which jobs never do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..auction.explain.arrays import waiting_rows
from ..auction.explain.words import duration, listed, number, shortened
from ..auction.planning.plan import Plan
from ..cluster.schedule import Reason
from ..cluster.snapshot import Snapshot
from ..cluster.text import plural
from .console_tables import Column, table_of


def render_plan(snapshot: Snapshot, plan: Plan, console: Console, *, top: int | None = None) -> None:
    """Print a plan, of each list the first ``top``; UTC where the snapshot has a time."""
    for part in _parts(snapshot, plan, console, top):
        console.print(part)


def _parts(snapshot: Snapshot, plan: Plan, console: Console, top: int | None) -> Iterator[RenderableType]:
    if plan.planned:
        yield _planned(snapshot, plan, console, top)
        yield Text()
    outside = [one for one in plan.unplanned if one.reason is Reason.WINDOW]
    inside = [one for one in plan.unplanned if one.reason is not Reason.WINDOW]
    if inside:
        waiting = waiting_rows(inside)
        rows = [(row.name, row.reason.value, row.detail) for row in waiting[:top]]
        if len(rows) < len(waiting):
            rows.append(("…", "", f"{sum(len(row.jobs) for row in waiting[len(rows) :])} more"))
        table = table_of(f"{plural(len(inside), 'job')} cannot be planned", _NEVER, rows, console)
        yield table
        yield Text()
    now = sum(one.start == plan.time for one in plan.planned)
    starts = "starts" if now == 1 else "start"
    yield Text(f"{plural(len(plan.planned), 'job')} planned, {now} {starts} now. {_last(plan)}".rstrip())
    if outside:
        yield Text(f"--jobs leaves out {plural(len(outside), 'job')}.")
    if plan.overdue:
        yield Text(f"Running past their end, planned to end in a second: {listed(plan.overdue)}.")
    if plan.endless:
        yield Text(f"Running without a time limit, planned never to end: {listed(plan.endless)}.")


_PLANNED = (
    Column(name="job"),
    Column(name="priority", is_right=True, leaves=3),
    Column(name="starts in"),
    Column(name="start", leaves=4),
    Column(name="end", leaves=2),
    Column(name="cores", is_right=True),
    Column(name="nodes", is_right=True, leaves=1),
    Column(name="where", is_text=True),
)
_NEVER = (Column(name="job"), Column(name="reason"), Column(name="why", is_text=True))


def _planned(snapshot: Snapshot, plan: Plan, console: Console, top: int | None) -> Table:
    priority = {job.id: job.priority for job in snapshot.jobs}
    rows: list[tuple[str, ...]] = []
    for one in sorted(plan.planned, key=lambda one: one.start)[:top]:
        names = tuple(one.nodes)
        wait = one.start - plan.time
        row = (
            one.job,
            number(priority[one.job]),
            duration(wait) if wait else "now",
            _moment(one.start, snapshot.time),
            "never" if one.end is None else _moment(one.end, snapshot.time),
            str(sum(use.cores for use in one.nodes.values())),
            str(len(names)),
            shortened(names),
        )
        rows.append(row)
    if len(rows) < len(plan.planned):
        rows.append(("…", *[""] * 6, f"{len(plan.planned) - len(rows)} more"))
    return table_of("The plan", _PLANNED, rows, console)


def _last(plan: Plan) -> str:
    ends = [one.end for one in plan.planned if one.end is not None]
    return f"The last ends in {duration(max(ends) - plan.time)}." if ends else ""


def _moment(time: float, now: float | None) -> str:
    if now is None:
        return f"{time:g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
