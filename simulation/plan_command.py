"""``aucsched plan``: a start for every job of a snapshot."""

from __future__ import annotations

from pathlib import Path

import click

from ..auction.shared_command import output_options, snapshot_argument
from .shared_command import OUTPUT, progress_over


@click.command()
@snapshot_argument
@click.option("--jobs", type=click.IntRange(1), help="Plan so many jobs of highest priority; default: all.")
@click.option("--gantt", type=OUTPUT, help="Chart of all nodes over time (.png, .pdf, .svg).")
@output_options
def plan(snapshot: str, jobs: int | None, gantt: Path | None, form: str, output: str) -> None:
    """Plan SNAPSHOT (a file, or - for standard input): when and where each of its jobs will start.

    Each job in order of priority is given the earliest start beside running jobs, until their ends, advance
    reservations, licences and the jobs planned before it. To replan after a change, plan a new snapshot.
    """
    from ..auction.plan import make_plan
    from ..auction.plan_text import render_plan
    from ..auction.shared_command import write_rich
    from ..cluster.errors import InputError
    from ..formats.drawing import check_drawing
    from ..formats.native import load_snapshot
    from ..formats.write import write_text
    from .plot_plan import draw_plan

    check_drawing("--gantt", gantt)
    loaded = load_snapshot(snapshot)
    try:
        with progress_over(min(len(loaded.jobs), jobs or len(loaded.jobs))) as progress:
            found = make_plan(loaded, jobs=jobs, progress=progress)
    except InputError as error:
        raise error.in_file(snapshot) from error
    if gantt is not None:
        draw_plan(loaded, found, gantt)
    if form == "json":
        write_text(output, found.to_json())
        return
    write_rich(output, lambda console: render_plan(loaded, found, console))
