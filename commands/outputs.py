"""Options and outputs that commands share: inputs, the auction, files and tables, notes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ..cluster.errors import errors_in, shown_name
from ..cluster.option_fields import Option
from ..cluster.option_table import PAPERS, STEP, read_by
from ..cluster.tabular import indented_json
from ..cluster.text import one_line, plural
from ..formats.writing import write_text
from .built_options import (
    INPUT,
    OUTPUT,
    TEXT_OUTPUT,
    WholeRange,
    click_option,
    in_order,
    in_section,
    record_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ..cluster.snapshot import Snapshot
    from ..cluster.workload import ClusterWorkload
    from ..formats.swf import SwfLog
    from ..simulation.log_columns import Workload
    from ..simulation.report import RunReport
    from ..simulation.result import Simulation

T = TypeVar("T", "Snapshot", "ClusterWorkload")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: A note is a line: the whole text stands in the file.
_LONGEST_NOTE = 1000

html_option = click.option("--html", type=OUTPUT, help="Report as one self-contained web page.")


def plot_option(shows: str) -> Callable[[Decorated], Decorated]:
    """Return ``--plot FILE``."""
    return click.option("--plot", type=OUTPUT, help=f"{shows} (.png, .pdf, .svg).")


workload_argument = click.argument("workload", metavar="WORKLOAD", type=INPUT)
processors_option = click.option(
    "--processors", type=WholeRange(1, 10**9), help="Size of the machine; default: from the log's header."
)
format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
output_option = click.option(
    "-o", "--output", type=OUTPUT, default="-", help="File to write instead of standard output."
)


def file_name(path: str) -> str:
    """Return a file's name without its folders, as a page's title has it."""
    return "standard input" if path == "-" else one_line(Path(path).name)


def read_log(
    path: str, content: bytes, processors: int | None, queue_weights: str | None = None
) -> tuple[SwfLog, Workload]:
    """Return a file's log and its jobs; say on stderr how many rows were dropped, and why."""
    from ..formats.swf import parse_swf
    from ..simulation.log_columns import describe_dropped, workload_from_swf
    from ..simulation.logs.policies import weights_by_queue

    weights = weights_by_queue(queue_weights) if queue_weights is not None else None
    with errors_in(path):
        log = parse_swf(content)
        jobs = workload_from_swf(log, processors=processors, queue_weights=weights)
    if any(jobs.dropped.values()):
        say(f"aucsched: {shown_name(path)}: {describe_dropped(jobs.dropped, jobs.rows)}")
    return log, jobs


def write_report(run: RunReport, name: str, options: Mapping[str, Any]) -> None:
    """Write a row for each job where ``--jobs-out`` asks for it, then the document or the table."""
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], run.jobs_csv())
    write_text(options["output"], run.to_json() if options["form"] == "json" else run.to_text(name))


def say(text: str) -> None:
    """Print one line on stderr, whatever a text from outside holds."""
    click.echo(one_line(text), err=True)


def note(text: str) -> None:
    """Print a note on stderr, as one line."""
    say(f"note: {text}")


def note_unstarted(policy: str, left: int) -> None:
    """Say how many jobs never start under a policy."""
    if left:
        note(f"policy {policy} never starts {plural(left, 'job')}; its figures leave them out")


def tell(lines: Iterable[str]) -> None:
    """Print notes on stderr, a line each."""
    for line in lines:
        note(line if len(line) <= _LONGEST_NOTE else f"{line[:_LONGEST_NOTE]}…")


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


#: Numbers below have places behind the point in tables.
_SMALL = 10
snapshot_argument = click.argument("snapshot", metavar="SNAPSHOT", type=INPUT)


#: The options of the auction; those not given are None.
auction_options = in_order(
    in_section(name, *(click_option(one, STEP) for one in options))
    for name, options in (
        ("The auction", [one for one in read_by(STEP) if one.name not in PAPERS]),
        ("The auction of the papers", [one for one in read_by(STEP) if one.name in PAPERS]),
    )
)
text_output_option = click.option(
    "-o", "--output", type=TEXT_OUTPUT, default="-", help="File to write instead of standard output."
)
top_option = click.option(
    "--top", type=WholeRange(1), help="Rows of each table at most; the rest are counted."
)


def write_rich(output: str, render: Callable[[Console], None]) -> None:
    """Print to the terminal in its width and colours; to a file or a pipe as plain text."""
    from ..reports.console_tables import LiteralConsole, plain_text

    if output == "-" and sys.stdout.isatty():
        render(LiteralConsole())
        return
    write_text(output, plain_text(render))


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a command's result goes, and in which form.

    Attributes:
        form: ``text`` or ``json``.
        output: a file, ``-`` for standard output.
        html: a file for the page; None: none.
        top: rows of each table at most; None: all.
    """

    form: str
    output: str
    html: Path | None = None
    top: int | None = None

    def write(
        self,
        document: Callable[[], Any],
        render: Callable[[Console], None],
        page: Callable[[], str] | None = None,
    ) -> None:
        """Write a page if ``--html`` asks for it, then JSON (``document``) or what people read."""
        if self.html is not None and page is not None:
            write_text(self.html, page())
        if self.form == "json":
            made = document()
            write_text(self.output, made if isinstance(made, str) else indented_json(made))
        else:
            write_rich(self.output, render)


def output_options(command: Decorated) -> Decorated:
    """Add ``--format`` and ``-o``; a command gets them, ``--html`` and ``--top`` as its ``out``."""

    @wraps(command)
    def called(*given: Any, **options: Any) -> Any:
        own = {one.name: options.pop(one.name) for one in fields(Output) if one.name in options}
        return command(*given, out=Output(**own), **options)

    return in_order([format_option, text_output_option])(cast("Decorated", called))


def print_table(
    console: Console,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    top: int | None = None,
    leaving: str = "",
) -> None:
    """Print the first ``top`` rows as a table; column ``leaving`` leaves where it is too wide."""
    from ..reports.console_tables import Column, and_more, table_of

    first, *others = rows[0] if rows else [""]
    columns = [Column(first, partial(_cell, first), is_text=True)]
    for name in others:
        # A unit stays beside its word.
        head = name.replace(" ", "\n", name.count(" ") - name.endswith((")", "%")))
        columns.append(Column(head, partial(_cell, name), is_right=True, leaves=name == leaving))
    more = and_more(columns[-1].name, len(rows) - len(rows[:top]))
    console.print(table_of(title, columns, rows[:top], console, more), "", sep="\n")


def _cell(name: str, row: Mapping[str, Any]) -> str:
    """Return a value for people: small numbers have places behind the point, seconds none."""
    value = row[name]
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return " to ".join(_cell(name, {name: end}) for end in value)
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < _SMALL else f"{value:.0f}"


@dataclass(kw_only=True)
class RunFiles:
    """The files that a run can write."""

    jobs_out: Option[Path | None] = Option("CSV with one row for each job, in order of submission.")
    batsim_out: Option[Path | None] = Option("CSV in the format of Batsim's jobs.csv.")
    swf_out: Option[Path | None] = Option(
        "The log with the simulated waits, run times (cut at the estimates) and processors (SWF)."
    )
    gantt: Option[Path | None] = Option("Chart of the jobs (.png, .pdf, .svg).")
    html: Option[Path | None] = Option("Report as one self-contained web page.")
    plot: Option[Path | None] = Option("Chart of utilisation and queue (.png, .pdf, .svg).")


def write_run(
    run: Simulation,
    path: str,
    options: dict[str, Any],
    *,
    log: SwfLog | None = None,
    named: dict[str, str] | None = None,
) -> None:
    """Write the files that the options name, then the metrics."""
    from ..formats.swf import write_swf
    from ..simulation.result import batsim_csv, simulated_log

    name = run.name or file_name(path)
    if log is not None:
        name = file_name(path)
        if options["batsim_out"] is not None:
            write_text(options["batsim_out"], batsim_csv(run))
        if options["swf_out"] is not None:
            write_swf(options["swf_out"], simulated_log(run, log))
    drawn = replace(run, name=name)
    if options["gantt"] is not None:
        drawn.plot(options["gantt"], chart="gantt")
    if options["plot"] is not None:
        drawn.plot(options["plot"])
    if options["html"] is not None:
        from ..reports.run_pages import simulation_page

        write_text(options["html"], simulation_page([run], name))
    told = replace(run, settings={**run.settings, **(named or {})})
    write_report(told, run.name or shown_name(path), options)
    note_unstarted(run.policy, len(run.never_started))


@dataclass(kw_only=True)
class TopologyOption:
    """Which network the nodes are on."""

    topology: Option[str | None] = Option(
        "Put its nodes on another network in the file's order: linear, or what aucsched topology reads "
        "(a file, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, blocks:8x18).",
        unit="TOPOLOGY",
    )


topology_option = record_options(TopologyOption)


def with_topology(read: T, source: str | None) -> T:
    """Return a snapshot or workload with its nodes on a network; as it is where none is named.

    Raises:
        InputError: the network cannot be read, or is none of these nodes.
    """
    if source is None:
        return read
    from ..formats.notes import Notes
    from ..slurm.answers.topology_any import laid_on

    notes = Notes()
    with errors_in(source):
        made = laid_on(read, source, notes)
    tell(notes.summary())
    return made
