"""``aucsched compare``: our award compared with first-fit by priority and with Slurm's own plan."""

from pathlib import Path
from typing import Any

import click

from ..cluster.errors import errors_in
from ..cluster.option_table import WithinOption
from .built_options import SectionCommand, filled_options
from .outputs import (
    auction_options,
    file_name,
    html_option,
    output_options,
    snapshot_argument,
    top_option,
    write_found,
)


@click.command(cls=SectionCommand)
@snapshot_argument
@filled_options(WithinOption)
@auction_options
@html_option
@top_option
@output_options
def compare(
    snapshot: str,
    within_s: int,
    form: str,
    output: str,
    html: Path | None,
    top: int | None,
    **options: Any,
) -> None:
    """Run the auction over SNAPSHOT and compare its award with first-fit by priority and Slurm's own plan.

    Slurm's plan is what its backfill scheduler expected when the snapshot was taken: the jobs'
    expected_start_time, which aucsched snapshot slurm keeps.
    """
    from ..auction.explain.comparison import compare as compared
    from ..auction.explain.comparison import first_fit_by_priority
    from ..auction.options import options_with_preset
    from ..auction.step import run_step
    from ..formats.native.cluster_file import load_snapshot
    from ..formats.writing import write_text
    from ..reports.schedule_text import render_comparison

    checked = options_with_preset(options)
    loaded = load_snapshot(snapshot)
    with errors_in(snapshot):
        result = run_step(loaded, checked)
    found = compared(
        loaded, result, first_fit_by_priority(loaded, checked.jobs_in_sight, checked.reservations), within_s
    )
    if html is not None:
        from ..reports.auction_pages import comparison_page

        write_text(html, comparison_page(loaded, found, file_name(snapshot)))
    write_found(output, form, found.to_dict, lambda console: render_comparison(found, console, top=top))
