"""Options shared by the commands over logs: the log, the machine's size and the outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import errors_in
from ..cluster.text import one_line

if TYPE_CHECKING:
    from ..formats.swf import SwfLog
    from ..simulation.log_columns import Workload
    from ..simulation.report import RunReport

OUTPUT = click.Path(dir_okay=False, path_type=Path)

html_option = click.option("--html", type=OUTPUT, help="Report as one self-contained web page.")

workload_argument = click.argument("workload", metavar="WORKLOAD", type=click.Path(allow_dash=True))
processors_option = click.option(
    "--processors", type=click.IntRange(1, 10**9), help="Size of the machine; default: from the log's header."
)
format_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
output_option = click.option(
    "-o", "--output", type=OUTPUT, default="-", help="File to write instead of standard output."
)


def shown(path: str) -> str:
    """Return the name that messages call a file by."""
    return "standard input" if path == "-" else one_line(path)


def file_name(path: str) -> str:
    """Return a file's name without its folders, as a page's title has it."""
    return "standard input" if path == "-" else one_line(Path(path).name)


def read_log(path: str) -> SwfLog:
    """Return a log's rows; ``-`` reads standard input."""
    from ..formats.swf import load_swf

    return load_swf(path)


def read_jobs(path: str, log: SwfLog, processors: int | None, queue_weights: str | None) -> Workload:
    """Return the log's jobs; say on stderr how many rows were dropped, and why."""
    from ..simulation.log_columns import describe_dropped, workload_from_swf
    from ..simulation.logs.policies import weights_by_queue

    weights = weights_by_queue(queue_weights) if queue_weights is not None else None
    with errors_in(path):
        jobs = workload_from_swf(log, processors=processors, queue_weights=weights)
    if any(jobs.dropped.values()):
        say(f"aucsched: {shown(path)}: {describe_dropped(jobs.dropped, jobs.rows)}")
    return jobs


def write_report(run: RunReport, name: str, options: Mapping[str, Any]) -> None:
    """Write a row for each job where ``--jobs-out`` asks for it, then the document or the table."""
    from ..formats.native.write import write_text

    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], run.jobs_csv())
    write_text(options["output"], run.to_json() if options["form"] == "json" else run.to_text(name))


def say(text: str) -> None:
    """Print one line on stderr, whatever a text from outside holds."""
    click.echo(one_line(text), err=True)


def note(text: str) -> None:
    """Print a note on stderr, as one line."""
    say(f"note: {text}")


@contextmanager
def progress_over(
    count: int, things: str = "jobs", *, memory_s: float = 30
) -> Iterator[Callable[[int], None] | None]:
    """Give a function that moves a bar on the terminal, None where stderr is none.

    The time left follows from the speed of the last ``memory_s`` seconds.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=memory_s) as bar:
        task = bar.add_task(things, total=count)
        yield lambda done: bar.update(task, completed=done)
