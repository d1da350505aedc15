"""``aucsched check``: reads a snapshot and reports what it holds."""

from __future__ import annotations

import click

from .auction_options import output_options, snapshot_argument


@click.command()
@snapshot_argument
@output_options
def check(snapshot: str, form: str, output: str) -> None:
    """Read SNAPSHOT (a file, or - for standard input), check it, and report what it holds."""
    from ..auction.explain.report import render_report, report_document, report_on
    from ..formats.native.read import load_snapshot
    from .auction_options import write_json, write_rich

    report = report_on(load_snapshot(snapshot))
    if form == "json":
        write_json(output, report_document(report))
        return
    write_rich(output, lambda console: render_report(report, console))
