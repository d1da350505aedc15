"""``aucsched slurm report``: what a shadow's logs say, Slurm and the auction side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...cluster.text import plural, utc
from ..built_options import INPUT, OUTPUT, NumberRange
from ..outputs import (
    Output,
    file_name,
    html_option,
    note,
    output_options,
    print_table,
    tell,
    top_option,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ...slurm.live.shadow_report import ShadowReport

_HOUR_S = 3600


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=INPUT)
@click.option(
    "--starved",
    type=NumberRange(min=0),
    default=24,
    show_default=True,
    metavar="HOURS",
    help="A wait of so many hours or more is starvation.",
)
@click.option(
    "--workload",
    type=OUTPUT,
    help="Write the jobs as a workload file, for aucsched simulate under any policy.",
)
@html_option
@top_option
@output_options
def report(logs: tuple[str, ...], starved: float, workload: Path | None, out: Output) -> None:
    """Compare Slurm's starts with the auction's offers: waits, slowdowns, use, levels, gains and losses.

    LOG... are the shadow's logs, those put aside included, in any order.
    """
    from ...reports.run_pages import shadow_page
    from ...slurm.live.shadow_log import read_logs
    from ...slurm.live.shadow_report import report_on

    entries, torn = read_logs(logs)
    made = report_on(entries, starved_s=starved * _HOUR_S, torn=torn)
    if torn:
        note(f"lines cut short and left out: {torn}")
    if workload is not None:
        from ...formats.native.cluster_file import save_workload
        from ...slurm.live.replay import workload_of

        played, notes = workload_of(entries)
        save_workload(played, workload)
        tell(notes.texts())
    out.write(
        made.to_dict,
        lambda console: _render(made, console, out.top),
        lambda: shadow_page(made, file_name(logs[0])),
    )


def _render(made: ShadowReport, console: Console, top: int | None) -> None:
    from ...slurm.live.shadow_report import CAVEATS

    document = made.to_dict()
    passes = f"{plural(document['passes'], 'pass')} from {utc(document['from'])} to {utc(document['to'])}"
    console.print(
        f"{passes}, {plural(len(made.jobs), 'job')}: "
        + ", ".join(f"{count} {verdict}" for verdict, count in document["verdicts"].items() if count)
    )
    print_table(console, "Slurm and the auction", document["figures"])
    for what, rows in made.groups.items():
        print_table(console, f"Who gains and who loses, by {what}", rows, top, "not compared")
    for rule in document["unread"]:
        console.print(f"not looked at: {rule}")
    for caveat in CAVEATS:
        console.print(caveat)
