"""``aucsched schedule``: one auction over a snapshot."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot

_MODELS = ("aucsched2", "aucsched3")


def _write_placement(snapshot: Snapshot, result: Schedule, output: str) -> None:
    """Write the commands that place the started jobs; tell on stderr which none can place."""
    from ..formats.place_slurm import placement
    from ..formats.write import write_text

    placed = placement(snapshot, result)
    write_text(output, placed.text)
    for problem in placed.problems:
        click.echo(f"note: {problem}", err=True)


@click.command()
@click.argument("snapshot", metavar="SNAPSHOT")
@click.option(
    "--model", type=click.Choice(_MODELS), default="aucsched3", show_default=True, help="Which auction."
)
@click.option(
    "--window", type=int, default=100, show_default=True, help="Jobs of highest priority that take part."
)
@click.option("--max-bids", type=int, default=6000, show_default=True, help="Bids of all jobs together.")
@click.option("--max-bids-per-job", type=int, default=60, show_default=True, help="Bids of one job.")
@click.option(
    "--time-limit", "time_limit_s", type=float, default=3.0, show_default=True, help="Seconds of each solve."
)
@click.option(
    "--on-timeout",
    type=click.Choice(["halve", "incumbent", "discard"]),
    default="halve",
    show_default=True,
    help="After a solve without proof: try half the window, start what was found, or start nothing.",
)
@click.option(
    "--weights",
    type=click.Choice(["lexicographic", "paper"]),
    default="lexicographic",
    show_default=True,
    help="Priorities exactly before preference, or the papers' weighted sum.",
)
@click.option(
    "--objective",
    type=click.Choice(["priority", "priority_cores"]),
    default="priority",
    show_default=True,
    help="What a started job is worth.",
)
@click.option(
    "--preference-table",
    type=click.Choice(["corrected", "printed"]),
    default="corrected",
    show_default=True,
    help="Constants of AUCSCHED2's preference: table 5.2 corrected or as printed.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The solver's random seed.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "slurm"]), default="text", show_default=True
)
@click.option("-o", "--output", default="-", help="File to write instead of standard output.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Picture of the machine: who starts where, what stays free (.png, .pdf, .svg).",
)
def schedule(snapshot: str, form: str, output: str, plot: Path | None, **options: Any) -> None:
    """Run one auction over SNAPSHOT (a file, or - for standard input) and print who starts where."""
    from ..cluster.errors import InputError
    from ..formats.native import load_snapshot
    from ..formats.write import write_text
    from .options import StepOptions
    from .picture import check_picture, draw_machine
    from .step import run_step

    check_picture("--plot", plot)
    checked = StepOptions(**options)
    loaded = load_snapshot(snapshot)
    try:
        result = run_step(loaded, checked)
    except InputError as error:
        raise error.in_file(snapshot) from error
    if plot is not None:
        draw_machine(loaded, result, plot)
    if form == "json":
        write_text(output, result.to_json())
        return
    if form == "slurm":
        _write_placement(loaded, result, output)
        return
    from rich.console import Console

    from .baseline import first_fit_by_priority
    from .text import PLAIN_WIDTH, render

    baseline = first_fit_by_priority(loaded, checked.window)
    if output == "-" and sys.stdout.isatty():
        render(loaded, result, baseline, Console())
        return
    plain = Console(file=io.StringIO(), width=PLAIN_WIDTH)
    render(loaded, result, baseline, plain)
    write_text(output, plain.file.getvalue())  # type: ignore[attr-defined]
