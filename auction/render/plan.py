"""A plan as a person reads it: when and where each job starts, and which never do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ...cluster.schedule import Reason
from ...cluster.snapshot import Snapshot
from ...cluster.text import counted
from ..explain.words import duration, listed, number, shortened
from ..planning.plan import Plan


def render_plan(snapshot: Snapshot, plan: Plan, console: Console) -> None:
    """Print a plan; times are UTC where the snapshot has a time, else from now on."""
    for part in _parts(snapshot, plan):
        console.print(part)


def _parts(snapshot: Snapshot, plan: Plan) -> Iterator[RenderableType]:
    if plan.planned:
        yield _planned(snapshot, plan)
        yield Text()
    outside = [one for one in plan.unplanned if one.reason is Reason.WINDOW]
    inside = [one for one in plan.unplanned if one.reason is not Reason.WINDOW]
    if inside:
        table = _table(f"{counted(len(inside), 'job')} cannot be planned", "job", "reason", "why")
        for one in inside:
            table.add_row(one.job, one.reason.value, one.detail)
        yield table
        yield Text()
    now = sum(one.start == plan.time for one in plan.planned)
    yield Text(f"{counted(len(plan.planned), 'job')} planned, {now} start now. {_last(plan)}".rstrip())
    if outside:
        yield Text(f"{counted(len(outside), 'job')} left out by --jobs.")
    if plan.overdue:
        yield Text(f"Past their end, taken to end in a second: {listed(plan.overdue)}.")
    if plan.endless:
        yield Text(f"Running without an end, taken to run for ever: {listed(plan.endless)}.")


def _planned(snapshot: Snapshot, plan: Plan) -> Table:
    table = _table("The plan", "job", "priority", "starts in", "start", "end", "cores", "nodes", "where")
    for column in table.columns[5:7]:
        column.justify = "right"
    priority = {job.id: job.priority for job in snapshot.jobs}
    for one in sorted(plan.planned, key=lambda one: one.start):
        names = tuple(one.nodes)
        wait = one.start - plan.time
        table.add_row(
            one.job,
            number(priority[one.job]),
            duration(wait) if wait else "now",
            _moment(one.start, snapshot.time),
            "never" if one.end is None else _moment(one.end, snapshot.time),
            str(sum(use.cores for use in one.nodes.values())),
            str(len(names)),
            shortened(names),
        )
    return table


def _last(plan: Plan) -> str:
    ends = [one.end for one in plan.planned if one.end is not None]
    return f"The last ends in {duration(max(ends) - plan.time)}." if ends else ""


def _moment(time: float, now: float | None) -> str:
    if now is None:
        return f"{time:g} s"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
