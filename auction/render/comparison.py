"""A comparison as a person reads it."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..explain.comparison import Comparison, Line, Total, least_cores
from ..explain.words import duration, number


def render_comparison(found: Comparison, console: Console) -> None:
    """Print the jobs on which any of the three would act, then the totals."""
    shown = [line for line in found.lines if line.auction or line.first_fit or line.planned is not None]
    table = _table("job", "priority", "cores", "auction", "first-fit", right=("priority", "cores"))
    if found.slurm is not None:
        table.add_column("Slurm's plan")
    for line in shown:
        table.add_row(*_row(line, planned=found.slurm is not None))
    hidden = len(found.lines) - len(shown)
    console.print(table)
    if hidden:
        waits = "job waits" if hidden == 1 else "jobs wait"
        console.print(Text(f"{hidden} more {waits} under all of them."))
    console.print(Text(), _totals(found), sep="\n")
    if found.slurm is None:
        console.print(Text("\nNo job of the snapshot has an expected start time: Slurm's plan is not known."))


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _row(line: Line, *, planned: bool) -> list[str]:
    row = [
        line.job.id,
        number(line.job.priority),
        str(least_cores(line.job)),
        "now" if line.auction else "waits",
        "now" if line.first_fit else "waits",
    ]
    return [*row, _plan(line)] if planned else row


def _plan(line: Line) -> str:
    if line.planned is None:
        return "not planned"
    moment = datetime.fromtimestamp(line.planned, UTC).strftime("%H:%M:%S UTC")
    return moment if line.planned_wait_s is None else f"{moment} (+{duration(line.planned_wait_s)})"


def _totals(found: Comparison) -> Table:
    table = _table("", "jobs", "cores", "priority", right=("jobs", "cores", "priority"))
    table.add_row("the auction starts now", *_figures(found.auction))
    table.add_row("first-fit by priority starts now", *_figures(found.first_fit))
    if found.slurm is not None:
        table.add_row(f"Slurm's plan starts within {duration(found.within_s)}", *_figures(found.slurm))
    return table


def _figures(total: Total) -> tuple[str, str, str]:
    return str(total.jobs), str(total.cores), number(total.priority)
