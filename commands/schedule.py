"""``aucsched schedule``: one auction over a snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import errors_in
from ..cluster.option_fields import options_in
from ..cluster.option_table import OPTIONS_BY_NAME, SCHEDULE, StepRecord
from .built_options import INPUT, TEXT_OUTPUT, SectionCommand, click_option
from .outputs import (
    auction_options,
    file_name,
    html_option,
    note,
    plot_option,
    snapshot_argument,
    text_output_option,
    top_option,
    topology_option,
    with_topology,
    write_rich,
)

if TYPE_CHECKING:
    from ..cluster.schedule import Schedule
    from ..cluster.snapshot import Snapshot


def _write_placement(snapshot: Snapshot, result: Schedule, output: str) -> None:
    """Write the commands that place the started jobs; tell on stderr which none can place."""
    from ..formats.writing import write_bytes
    from ..slurm.place import placement

    text, problems = placement(snapshot, result)
    # In UTF-8 whatever the terminal's encoding is: an escape in its place would be another argument.
    write_bytes(output, text.encode())
    for problem in problems:
        note(problem)


@click.command(cls=SectionCommand)
@snapshot_argument
@topology_option
@auction_options
@click_option(OPTIONS_BY_NAME["window_from"], SCHEDULE, type=INPUT)
@click_option(options_in(StepRecord)["export"], type=TEXT_OUTPUT)
@plot_option("Picture of the machine: who starts where, what stays free")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "slurm"]),
    default="text",
    show_default=True,
    help="A table, the schedule file, or the scontrol commands that place the jobs.",
)
@html_option
@top_option
@text_output_option
@click.pass_obj
def schedule(
    began: float | None,
    /,
    snapshot: str,
    form: str,
    output: str,
    plot: Path | None,
    html: Path | None,
    top: int | None,
    topology: str | None,
    **options: Any,
) -> None:
    """Run one auction over SNAPSHOT (a file, or - for standard input) and print who starts where."""
    entered = perf_counter()
    from ..auction.options import options_with_preset
    from ..auction.step import run_step
    from ..cluster.schedule import Reason
    from ..formats.native.cluster_file import load_snapshot
    from ..formats.native.schedule_file import load_schedule
    from ..formats.writing import write_text
    from ..reports.machine_picture import draw_machine

    last = options.pop("window_from")
    window = None if last is None else load_schedule(last).next_window
    checked = options_with_preset(options)
    # A limit that is asked for is for all of the command but what another program takes to write.
    is_whole = snapshot != "-" and checked.time_limit_s is not None
    checked = replace(checked, began=(began or entered) if is_whole else None)
    loaded = with_topology(load_snapshot(snapshot), topology)
    with errors_in(snapshot):
        result = run_step(loaded, checked, window)
    for refusal in result.pending:
        if refusal.reason is Reason.SET_ASIDE:
            note(f"job {refusal.job} was set aside: {refusal.detail}")
    if checked.export and not result.attempts:
        note(f"no job takes part, {checked.export} is not written")
    elif checked.export.endswith(".mps"):
        note(f"{checked.export} minimises the negated objective")
    if plot is not None:
        draw_machine(loaded, result, plot)
    if html is not None or form == "text":
        from ..auction.explain.comparison import first_fit_by_priority

        baseline = first_fit_by_priority(loaded, checked.jobs_in_sight, checked.reservations)
    if html is not None:
        from ..reports.auction_pages import schedule_page

        write_text(html, schedule_page(loaded, result, baseline, file_name(snapshot)))
    if form == "json":
        write_text(output, result.to_json())
    elif form == "slurm":
        _write_placement(loaded, result, output)
    else:
        from ..reports.schedule_text import render

        write_rich(output, lambda console: render(loaded, result, baseline, console, top=top))
