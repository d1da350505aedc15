"""A comparison as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from ..auction.explain.comparison import Comparison, Line, Total, least_cores
from ..auction.explain.words import duration, number
from ..cluster.text import plural
from .console_tables import Column, table_of

_COLUMNS = (
    Column(name="job"),
    Column(name="priority", is_right=True),
    Column(name="cores", is_right=True, leaves=1),
    Column(name="auction"),
    Column(name="first-fit"),
    Column(name="Slurm's plan", is_text=True),
)
_TOTALS = (
    Column(name="", is_text=True),
    *(Column(name=name, is_right=True) for name in ("jobs", "cores", "priority")),
)


def render_comparison(found: Comparison, console: Console, *, top: int | None = None) -> None:
    """Print the first ``top`` jobs on which any of the three would act, then the totals."""
    acting = [line for line in found.lines if line.auction or line.first_fit or line.planned is not None]
    columns = _COLUMNS if found.slurm is not None else _COLUMNS[:-1]
    console.print(table_of("", columns, [_row(line)[: len(columns)] for line in acting[:top]], console))
    if top is not None and len(acting) > top:
        console.print(Text(f"{plural(len(acting) - top, 'more job')} on which any of them would act."))
    hidden = len(found.lines) - len(acting)
    if hidden:
        waits = "waits" if hidden == 1 else "wait"
        console.print(Text(f"{plural(hidden, 'more job')} {waits} under all of them."))
    console.print(Text(), table_of("", _TOTALS, list(_totals(found)), console), sep="\n")
    if found.slurm is None:
        console.print(Text("\nNo job of the snapshot has an expected start time: Slurm's plan is not known."))


def _row(line: Line) -> tuple[str, ...]:
    return (
        line.job.id,
        number(line.job.priority),
        str(least_cores(line.job)),
        "now" if line.auction else "waits",
        "now" if line.first_fit else "waits",
        _plan(line),
    )


def _plan(line: Line) -> str:
    if line.planned is None:
        return "not planned"
    moment = datetime.fromtimestamp(line.planned, UTC).strftime("%H:%M:%S UTC")
    return moment if line.planned_wait_s is None else f"{moment} (+{duration(line.planned_wait_s)})"


def _totals(found: Comparison) -> Iterator[tuple[str, ...]]:
    yield ("the auction starts now", *_figures(found.auction))
    yield ("first-fit by priority starts now", *_figures(found.first_fit))
    if found.slurm is not None:
        yield (f"Slurm's plan starts within {duration(found.within_s)}", *_figures(found.slurm))


def _figures(total: Total) -> tuple[str, str, str]:
    return str(total.jobs), str(total.cores), number(total.priority)
