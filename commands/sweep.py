"""``aucsched sweep``: every combination of options over one input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option
from ..formats.writing import is_stream, write_text
from ..sweeps.axes import AXES, Axis, Row
from .built_options import INPUT, OUTPUT, Decorator, SectionCommand, filled_options, in_order, in_section
from .outputs import html_option, note, note_unstarted, plot_option, progress_over, tell, write_rich
from .policy_options import PARAMETERS_SHOWN, note_old_flags

if TYPE_CHECKING:
    from ..sweeps.drive import Executor


def _option_of(axis: Axis) -> Decorator:
    """Return an axis's option: its values of all its uses, None where it is not given."""
    read = lambda _, __, texts: axis.values(",".join(texts)) if texts else None  # noqa: E731
    named = partial(click.option, axis.option, axis.name, metavar=axis.metavar, help=axis.help)
    option = named(multiple=True, hidden=axis.name in PARAMETERS_SHOWN, callback=read)
    return in_section(axis.section, option, shown=PARAMETERS_SHOWN)


_axes = in_order(map(_option_of, AXES.values()))


@dataclass(kw_only=True)
class RunOptions:
    """How often a point of the grid is run, and where."""

    repeat: Option[int] = Option("Runs at each point of the grid.", default=1, low=1)
    seed: Option[int | None] = Option(
        "Seed of the first run at each point; the next has one more. Default: 0.", low=0
    )
    workers: Option[int | None] = Option("Number of processes; default: the number of processors.", low=1)
    dask: Option[str | None] = Option(
        "Run on the Dask cluster with the scheduler at this address.", unit="ADDRESS"
    )
    retry_failed: Option[bool] = Option("When resuming: repeat the runs that failed.", default=False)


@click.command(cls=SectionCommand)
@click.argument("source", metavar="WORKLOAD|SNAPSHOT", type=INPUT)
@_axes
@filled_options(RunOptions)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    multiple=True,
    required=True,
    help="Table of the results (.csv, .parquet); may be given twice. The same command resumes it.",
)
@html_option
@plot_option("Quality and time over window and caps")
def sweep(
    source: str, outputs: tuple[Path, ...], plot: Path | None, html: Path | None, **options: Any
) -> None:
    """Run every combination of options in parallel; can be resumed.

    Options with N,… or NAME,… take lists: --window 25,50,100; each of several policies gets what it
    reads. Give the same command again to resume a stopped sweep: only runs in progress are lost.
    With more values or another option the sweep grows: completed runs are not repeated.
    """
    from ..reports.table_files import SUFFIXES, check_suffix
    from ..sweeps.call import Sweep
    from ..sweeps.drive import sweep as sweep_plan
    from ..sweeps.results import check_panels, draw_sweep, render_sweep
    from ..sweeps.run_plan import make_plan

    for path in outputs:
        check_suffix("-o", path, SUFFIXES)
    executor = _executor(options["dask"], options["workers"])
    given = {name: options[name] for name in AXES if options[name] is not None}
    plan = make_plan(source, given, repeat=options["repeat"], seed=options["seed"])
    tell(plan.notes)
    if plot is not None:
        check_panels(plan)
    retry = options["retry_failed"]
    # Runs may take minutes each: the speed is the whole sweep's.
    try:
        with progress_over(len(plan.runs), "runs", memory_s=inf) as bar:
            start = partial(_note_start, len(plan.runs))
            rows = sweep_plan(plan, outputs, executor, retry_failed=retry, on_start=start, progress=bar)
    except KeyboardInterrupt:
        note("the same command goes on where this one stopped")
        raise click.Abort from None
    has_failed = _note_failed(rows) == len(rows)
    found = Sweep(plan=plan, rows=tuple(rows))
    axes = [name for name, _ in plan.axes]
    if not any(map(is_stream, outputs)):
        # Beside a table that goes to standard output nothing else does.
        write_rich("-", lambda console: render_sweep(found.columns, axes, console))
    if html is not None:
        from ..reports.run_pages import sweep_page

        write_text(html, sweep_page(found.columns, axes, plan.subject.name))
    if plot is not None:
        draw_sweep(plan, rows, plot)
    note_old_flags(options)
    if has_failed:
        click.get_current_context().exit(1)


def _executor(dask: str | None, workers: int | None) -> Executor:
    """Return what runs the runs: processes here, or a Dask cluster."""
    if dask is not None:
        from ..auction.parts.workers import check_dask
        from ..sweeps.drive import run_on_dask

        if workers is not None:
            raise OptionError("--workers: with --dask the cluster's own workers run them")
        check_dask()
        return lambda subject, runs: run_on_dask(dask, subject, runs)
    from ..sweeps.drive import processors, run_locally

    return lambda subject, runs: run_locally(subject, runs, workers or processors())


def _note_start(runs: int, done: int, began_with: Mapping[str, Any]) -> None:
    """Say what is done already, and by which other versions."""
    from ..sweeps.run_plan import versions

    if done:
        note(f"{done} of {runs} runs are done already")
    now = versions()
    then = {name: value for name, value in began_with.items() if value != now.get(name)}
    if then:
        named = ", ".join(f"{name} {value} (now {now.get(name)})" for name, value in then.items())
        note(f"they were begun with {named}")


def _note_failed(rows: list[Row]) -> int:
    """Say what failed, and which jobs never start; return how many runs failed."""
    from ..sweeps.run_plan import FAILED

    failed = [row for row in rows if row["status"] == FAILED]
    if failed:
        first = failed[0]
        note(f"{len(failed)} of {len(rows)} runs failed; run {first['run']}: {first['error']}")
    if old := sum("bounded_slowdown_mean" in row and "never_started" not in row for row in rows):
        note(f"{old} of {len(rows)} runs by an older aucsched: jobs counts those that never start")
    left = [(int(str(row["never_started"])), row) for row in rows if row.get("never_started")]
    # Of each policy the run that leaves most.
    for policy, (most, row) in {one[1].get("policy"): one for one in sorted(left, key=itemgetter(0))}.items():
        note_unstarted(f"{policy}, run {row['run']},", most)
    return len(failed)
