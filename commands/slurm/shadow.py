"""``aucsched slurm shadow`` and ``report``: what the auction would start, pass after pass, beside Slurm.

The shadow writes a log while Slurm goes on as ever; the report sets both side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.option_fields import Option, options_in
from ...cluster.text import plural, utc
from ...slurm.answers.slurm_files import SlurmFiles
from ...slurm.live.loop_options import LoopOptions
from ..built_options import INPUT, FilePath, SectionCommand, filled_options
from ..outputs import (
    Output,
    auction_options,
    file_name,
    html_option,
    note,
    output_options,
    print_table,
    say,
    tell,
    top_option,
)
from ..snapshot import answer_options
from .live_options import log_of, looping, say_unknown_release

if TYPE_CHECKING:
    from rich.console import Console

    from ...cluster.errors import InputError
    from ...slurm.live.passes import LivePass
    from ...slurm.live.shadow_log import ShadowPass
    from ...slurm.live.shadow_report import ShadowReport


@click.command(cls=SectionCommand)
@click.option(
    "--log",
    "-o",
    type=FilePath(is_output=True, in_place=True, dir_okay=False, allow_dash=True),
    default="-",
    show_default=True,
    help="The log, a line of JSON for each pass; - prints it.",
)
@filled_options(LoopOptions)
@answer_options
@auction_options
def shadow(*, log: str, **options: Any) -> None:
    """Watch a live Slurm: every interval a snapshot, the auction, a line of a log. Nothing is changed.

    It needs no root: squeue, scontrol show and sinfo are all that is run. Answers that are given as
    files are read again in each pass.
    """
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.passes import watch

    own = LoopOptions(**{name: options.pop(name) for name in options_in(LoopOptions)})
    files = SlurmFiles(**{name: options.pop(name) for name in options_in(SlurmFiles)})
    take = _taking(files, options)
    if files.jobs is None:
        say_unknown_release()

    def failed(error: InputError) -> None:
        """Say why a pass failed: the next one may not; where there is none, end the command."""
        if own.once:
            raise error
        say(f"aucsched: {error}")

    given = {name: str(value) for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        figures, ticker = stack.enter_context(looping("shadow", own))
        watch(
            take,
            _writing(stack, log, own),
            ticker,
            figures,
            options=given,
            failed=failed,
            forecasts=LiveForecasts() if own.forecasts else None,
        )


def _taking(files: Any, options: dict[str, Any]) -> Callable[[], LivePass]:
    """Return what makes a pass; options that cannot be used are refused before the first."""
    from ...auction.options import options_with_preset
    from ...auction.step import check_queue_promise
    from ...slurm.answers.answer_record import Known
    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.passes import take_look, take_pass

    checked, known = options_with_preset(options), Known()
    check_queue_promise(checked)
    last: LivePass | None = None

    def taken() -> LivePass:
        nonlocal last
        last = take_pass(take_look(files, known=known, at_once=AT_ONCE), checked, last=last)
        return last

    return taken


def _writing(stack: ExitStack, log: str, options: LoopOptions) -> Callable[[ShadowPass], None]:
    from ...slurm.live.shadow_log import encode

    if log == "-":
        return lambda entry: click.echo(encode(entry), nl=False)
    opened = stack.enter_context(log_of(log, options))
    return lambda entry: opened.append(encode(entry))


_HOUR_S = 3600


@dataclass(kw_only=True)
class ReportOptions:
    """What a report counts, and what else it writes."""

    starved: Option[float] = Option(
        "A wait of so many hours or more is starvation.", default=24, low=0, includes_low=True, unit="HOURS"
    )
    workload: Option[Path | None] = Option(
        "Write the jobs as a workload file, for aucsched simulate under any policy."
    )


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=INPUT)
@filled_options(ReportOptions)
@html_option
@top_option
@output_options
def report(logs: tuple[str, ...], starved: float, workload: Path | None, out: Output) -> None:
    """Compare Slurm's starts with the auction's offers: waits, slowdowns, use, levels, gains and losses.

    LOG... are the shadow's logs, with the renamed ones, in any order.
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
