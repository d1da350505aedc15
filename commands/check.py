"""``aucsched check``: reads a snapshot and reports what it holds."""

import click

from .outputs import Output, output_options, snapshot_argument


@click.command()
@snapshot_argument
@output_options
@click.option(
    "--strict", is_flag=True, help="Refuse a snapshot whose source has rules that are not looked at."
)
def check(snapshot: str, out: Output, *, strict: bool) -> None:
    """Read SNAPSHOT (a file, or - for standard input), check it, and report what it holds."""
    from ..auction.explain.snapshot_report import render_report, report_on
    from ..cluster.errors import InputError, shown_name
    from ..cluster.text import plural
    from ..formats.native.cluster_file import load_snapshot

    report = report_on(load_snapshot(snapshot))
    if strict and report["unread"]:
        rules = plural(len(report["unread"]), "rule")
        raise InputError(
            f"{rules} of the site not looked at: {'; '.join(report['unread'])}", file=shown_name(snapshot)
        )
    out.write(lambda: report, lambda console: render_report(report, console))
