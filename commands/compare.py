"""``aucsched compare``: our award compared with first-fit by priority and with Slurm's own plan."""

from inspect import unwrap
from typing import Any

import click

from ..cluster.errors import errors_in
from ..cluster.option_table import WithinOption
from .built_options import SectionCommand, filled_options
from .outputs import (
    Output,
    auction_options,
    file_name,
    html_option,
    output_options,
    snapshot_argument,
    top_option,
)


@click.command(cls=SectionCommand)
@snapshot_argument
@filled_options(WithinOption)
@auction_options
@html_option
@top_option
@output_options
def compare(snapshot: str, out: Output, **options: Any) -> None:
    """Run the auction over SNAPSHOT and compare its award with first-fit by priority and Slurm's own plan.

    Slurm's plan is what its backfill scheduler expected when the snapshot was taken: the jobs'
    expected_start_time, which aucsched snapshot slurm keeps.
    """
    from ..api.auctions import compare as compared
    from ..formats.native.cluster_file import load_snapshot
    from ..reports.auction_pages import comparison_page
    from ..reports.schedule_text import render_comparison

    loaded = load_snapshot(snapshot)
    with errors_in(snapshot):
        found = unwrap(compared)(loaded, **options)  # its errors name no keywords
    out.write(
        found.to_dict,
        lambda console: render_comparison(found, console, top=out.top),
        lambda: comparison_page(loaded, found, file_name(snapshot)),
    )
