"""``aucsched snapshot`` and ``check``: a snapshot file of a cluster or its saved output; what one holds."""

import re

import click

from ..cluster.errors import InputError, OptionError, errors_in
from ..cluster.option_fields import options_in
from ..slurm.answers.slurm_files import SlurmFiles
from .built_options import INPUT, TEXT_OUTPUT, record_options
from .groups import HelpGroup
from .outputs import Output, output_options, snapshot_argument, tell


@click.group(cls=HelpGroup)
def snapshot() -> None:
    """Make a snapshot of a live cluster or of its saved output."""


_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)


answer_options = record_options(SlurmFiles, more={name: {"type": INPUT} for name in options_in(SlurmFiles)})


@snapshot.command()
@answer_options
@click.option(
    "--held",
    type=click.Choice(["skip", "schedule"]),
    default="skip",
    show_default=True,
    help="Jobs held by hand: leave them held, or schedule them: with their saved priorities, those without "
    "one behind all others. A job saved with priority 0 was held then, and stays held.",
)
@click.option(
    "--time", metavar="T", help="Time of the snapshot: ISO 8601 or epoch. Default: the last scheduling pass."
)
@click.option("-o", "--output", type=TEXT_OUTPUT, default="-", show_default=True, help="The snapshot file.")
def slurm(*, held: str, time: str | None, output: str, **files: str | None) -> None:
    """Make a snapshot from Slurm 21.08 to 26.05: from files of its output, and live for what is not given.

    A file - is standard input. What the snapshot cannot express is listed in its notes and in a
    job's unsupported, and reported on stderr.
    """
    # Imported here so that --help stays fast.
    from ..cluster.checks import check_partitions
    from ..formats.native.cluster_file import save_snapshot
    from ..slurm.answers.live import collect
    from ..slurm.answers.snapshot_of_answers import import_slurm

    moment = None if time is None else parse_time("time", time)
    sources, notes = collect(SlurmFiles(**files))
    made, notes = import_slurm(sources, time=moment, schedule_held=held == "schedule", notes=notes)
    if files["jobs"] is not None:
        there = [part.name for part in made.partitions] + [
            name for one in made.nodes for name in one.partitions
        ]
        with errors_in(files["jobs"]):
            check_partitions((job.partition for job in (*made.jobs, *made.running)), there)
    save_snapshot(made, output)
    tell(notes.summary())


def parse_time(name: str, text: str) -> float:
    """Return an option's time in seconds since the epoch; an ISO 8601 time without a zone is UTC.

    Raises:
        OptionError: it is neither a number of seconds from 0 on nor an ISO 8601 time from 1970 to 9999.
    """
    from ..formats.native.forms import read_time

    try:
        return read_time(float(text) if _SECONDS.fullmatch(text) else text, "")
    except InputError:
        message = f"--{name}: {text!r} is neither ISO 8601, from 1970 on, nor seconds since 1970"
        raise OptionError(message) from None


@click.command()
@snapshot_argument
@output_options
@click.option(
    "--strict", is_flag=True, help="Refuse a snapshot whose source has rules that aucsched ignores."
)
def check(snapshot: str, out: Output, *, strict: bool) -> None:
    """Read SNAPSHOT (a file, or - for standard input), check it, and report what it holds."""
    from ..auction.explain.snapshot_report import render_report, report_on
    from ..cluster.errors import shown_name
    from ..cluster.text import plural
    from ..formats.native.cluster_file import load_snapshot

    report = report_on(load_snapshot(snapshot))
    if strict and report["unread"]:
        rules = plural(len(report["unread"]), "rule")
        raise InputError(
            f"{rules} of the site not looked at: {'; '.join(report['unread'])}", file=shown_name(snapshot)
        )
    out.write(lambda: report, lambda console: render_report(report, console))
