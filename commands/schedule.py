"""``aucsched schedule``, ``explain``, ``compare``: one auction over a snapshot, and its results.

Why a job starts or waits; our award against first-fit's, Slurm's. ``plan``: when jobs will start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import unwrap
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in
from ..cluster.option_fields import Option, options_in
from ..cluster.option_table import OPTIONS_BY_NAME, PLANNED_JOBS, SCHEDULE, StepRecord, WithinOption
from ..formats.writing import write_bytes, write_text
from .built_options import EXPORT, INPUT, SectionCommand, click_option, filled_options
from .outputs import (
    Output,
    auction_options,
    file_name,
    html_option,
    note,
    output_options,
    plot_option,
    progress_over,
    snapshot_argument,
    text_output_option,
    top_option,
    topology_option,
    with_topology,
    write_rich,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ..api.forecasts import Forecasts
    from ..auction.explain.explanation import Explanation
    from ..auction.explain.overview import Overview
    from ..cluster.schedule import Schedule
    from ..cluster.snapshot import Snapshot


def _write_placement(snapshot: Snapshot, result: Schedule, output: str) -> None:
    """Write the commands that place the started jobs; tell on stderr which none can place."""
    from ..slurm.place import placement

    text, problems = placement(snapshot, result)
    # In UTF-8 whatever the terminal's encoding: an escape instead would be another argument.
    write_bytes(output, text.encode())
    for problem in problems:
        note(problem)


@click.command(cls=SectionCommand)
@snapshot_argument
@topology_option
@auction_options
@click_option(OPTIONS_BY_NAME["window_from"], SCHEDULE, type=INPUT)
@click_option(options_in(StepRecord)["export"], type=EXPORT)
@plot_option("Picture of the machine: who starts where, what stays free")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "slurm"]),
    default="text",
    show_default=True,
    help="A table, the schedule file, or the scontrol commands that place the jobs.",
)
@html_option
@top_option
@text_output_option
@click.pass_obj
def schedule(
    began: float | None,
    /,
    snapshot: str,
    form: str,
    output: str,
    plot: Path | None,
    html: Path | None,
    top: int | None,
    topology: str | None,
    **options: Any,
) -> None:
    """Run one auction over a snapshot and print who starts where.

    SNAPSHOT is a file, or - for standard input.
    """
    entered = perf_counter()
    from ..auction.options import options_with_preset
    from ..auction.step import run_step
    from ..cluster.schedule import Reason
    from ..formats.native.cluster_file import load_snapshot
    from ..formats.native.schedule_file import load_schedule
    from ..reports.machine_picture import draw_machine

    last = options.pop("window_from")
    window = None if last is None else load_schedule(last).next_window
    checked = options_with_preset(options)
    # A limit that is asked for is for all of the command but what another program takes to write.
    is_whole = snapshot != "-" and checked.time_limit_s is not None
    checked = replace(checked, began=(began or entered) if is_whole else None)
    loaded = with_topology(load_snapshot(snapshot), topology)
    with errors_in(snapshot):
        result = run_step(loaded, checked, window)
    for refusal in result.pending:
        if refusal.reason is Reason.SET_ASIDE:
            note(f"job {refusal.job} was set aside: {refusal.detail}")
    if checked.export and not result.attempts:
        note(f"no job takes part, {checked.export} is not written")
    elif checked.export.endswith(".mps"):
        note(f"{checked.export} minimises the negated objective")
    if plot is not None:
        draw_machine(loaded, result, plot)
    if html is not None or form == "text":
        from ..auction.explain.comparison import first_fit_by_priority

        baseline = first_fit_by_priority(loaded, checked.jobs_in_sight, checked.reservations)
    if html is not None:
        from ..reports.auction_pages import schedule_page

        write_text(html, schedule_page(loaded, result, baseline, file_name(snapshot)))
    if form == "json":
        write_text(output, result.to_json())
    elif form == "slurm":
        _write_placement(loaded, result, output)
    else:
        from ..reports.schedule_text import render

        write_rich(output, lambda console: render(loaded, result, baseline, console, top=top))


@click.command(cls=SectionCommand)
@snapshot_argument
@click.argument("job", metavar="[JOB]", required=False)
@auction_options
@click.option(
    "--award",
    type=INPUT,
    help="Schedule file of SNAPSHOT: explain its award instead of a new one.",
)
@click.option(
    "--forecast",
    "is_forecast",
    is_flag=True,
    help="Say too when the job, or each job of the queue, will start: P10, P50 and P90.",
)
@click.option(
    "--history", type=INPUT, metavar="FILE", help="With --forecast: output of sacct, for run times."
)
@html_option
@output_options
def explain(
    snapshot: str,
    job: str | None,
    award: str | None,
    out: Output,
    is_forecast: bool,
    history: str | None,
    **options: Any,
) -> None:
    """Say why one job starts or waits, and what it bid on.

    It runs the auction over SNAPSHOT. JOB is an id; without it the output is prices. The output
    shows the job's request and its bids, with their cost and what each lacks. It names jobs and
    nodes that keep it from starting and the least change of its request that would start it. It
    gives the latest start if running jobs end as estimated. Prices are in objective units.
    """
    from ..api.auctions import explain as explained
    from ..auction.explain.overview import Overview
    from ..formats.native.cluster_file import load_snapshot
    from ..reports.explanation_text import render_explanation, render_overview

    if award is not None and job is None:
        raise OptionError("--award explains what became of one job: name it")
    if history is not None and not is_forecast:
        raise OptionError("--history needs --forecast")
    loaded = load_snapshot(snapshot)
    with errors_in(snapshot if award is None else f"{snapshot}, {award}"):
        # Its errors name no keywords.
        found: Explanation | Overview = unwrap(explained)(loaded, job, award=award, **options)
    starts = None
    if is_forecast:
        from ..api.forecasts import forecast

        starts = forecast(loaded, job, history=() if history is None else history)

    def document() -> dict[str, Any]:
        return found.to_dict() | ({} if starts is None else {"forecast": starts.to_dict()["jobs"]})

    def render(console: Console) -> None:
        if isinstance(found, Overview):
            render_overview(found, console)
        else:
            render_explanation(found, console)
        if starts is not None:
            from ..reports.forecast_text import render_forecasts

            console.print()
            render_forecasts(starts, loaded.time, console)

    out.write(document, render, lambda: _page(found, file_name(snapshot), starts))


def _page(found: Explanation | Overview, name: str, starts: Forecasts | None) -> str:
    from ..auction.explain.overview import Overview
    from ..reports.auction_pages import explanation_page, prices_page
    from ..reports.forecast_text import interval_bars

    bars = [] if starts is None else [interval_bars(starts.forecasts)]
    if isinstance(found, Overview):
        return prices_page(found, name, bars)
    return explanation_page(found, name, bars)


@click.command(cls=SectionCommand)
@snapshot_argument
@filled_options(WithinOption)
@auction_options
@html_option
@top_option
@output_options
def compare(snapshot: str, out: Output, **options: Any) -> None:
    """Compare the auction with first-fit by priority and Slurm's own plan.

    All three start the queue of SNAPSHOT. Slurm's plan is what its backfill scheduler expected when
    the snapshot was taken: the jobs' expected_start_time, which aucsched snapshot slurm keeps.
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


@dataclass(kw_only=True)
class PlanOptions:
    """How many jobs are planned, and their chart."""

    jobs: Option[int] = Option(
        "How many jobs of highest priority to plan; the time rises with their square.",
        default=PLANNED_JOBS,
        low=1,
    )
    gantt: Option[Path | None] = Option("Chart of all nodes over time (.png, .pdf, .svg).")


@click.command()
@snapshot_argument
@filled_options(PlanOptions)
@top_option
@output_options
def plan(snapshot: str, jobs: int, gantt: Path | None, out: Output) -> None:
    """Plan a snapshot: when and where each of its jobs will start.

    SNAPSHOT is a file, or - for standard input. The plan gives each job, by priority, the earliest
    start that running jobs, licences, advance reservations and jobs planned before it allow. To
    replan after a change, plan a new snapshot.
    """
    from ..auction.planning.plan import plan as make_plan
    from ..formats.native.cluster_file import load_snapshot
    from ..reports.gantt import draw_plan
    from ..reports.schedule_text import render_plan

    loaded = load_snapshot(snapshot)
    with errors_in(snapshot):
        if len(loaded.jobs) > jobs:
            note(f"the first {jobs} of {len(loaded.jobs)} jobs are planned: --jobs plans more")
        with progress_over(min(len(loaded.jobs), jobs)) as progress:
            found = make_plan(loaded, jobs=jobs, progress=progress)
    if gantt is not None:
        draw_plan(loaded, found, gantt)
    out.write(found.to_json, lambda console: render_plan(loaded, found, console, top=out.top))
