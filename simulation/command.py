"""``aucsched simulate`` and ``aucsched workload``: thin commands over the simulator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import InputError, OptionError

if TYPE_CHECKING:
    from ..formats.swf import SwfLog
    from .policy import PolicyOptions
    from .result import Result
    from .workload import Workload

_POLICIES = ("fcfs", "easy", "conservative", "reservations")
_ORDERS = ("fcfs", "sjf", "ljf", "area", "weight", "smith", "multifactor")
_OUTPUT = click.Path(dir_okay=False, path_type=Path)

_workload_argument = click.argument("workload", metavar="WORKLOAD", type=click.Path(allow_dash=True))
_processors_option = click.option(
    "--processors", type=click.IntRange(1, 10**9), help="The machine's size; default: the log's header."
)
_format_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
_output_option = click.option("-o", "--output", type=_OUTPUT, default="-", help="Instead of standard output.")


@click.command()
@_workload_argument
@click.option("--policy", type=click.Choice(_POLICIES), default="easy", show_default=True)
@click.option(
    "--order", type=click.Choice(_ORDERS), default="fcfs", show_default=True, help="Of the waiting queue."
)
@_processors_option
@click.option(
    "--cluster", type=click.Path(allow_dash=True), help="A snapshot whose cores are the machine's processors."
)
@click.option("--reservations", type=click.IntRange(1), help="How many, for policy reservations; default 4.")
@click.option(
    "--multifactor",
    metavar="NAME=NUMBER,…",
    help="For order multifactor: age, size, fairshare, age_max_s, half_life_s.",
)
@click.option("--queue-weights", metavar="QUEUE=WEIGHT,…", help="Job weights by the log's queues; default 1.")
@click.option("--check", is_flag=True, help="Check every start against every rule; the results are the same.")
@_format_option
@_output_option
@click.option("--jobs-out", type=_OUTPUT, help="CSV, one row a job in order of submission.")
@click.option("--batsim-out", type=_OUTPUT, help="CSV as Batsim's jobs file.")
@click.option("--swf-out", type=_OUTPUT, help="The log as the simulated machine would have written it.")
@click.option("--gantt", type=_OUTPUT, help="Chart of the jobs (.png, .pdf, .svg).")
@click.option("--plot", type=_OUTPUT, help="Chart of utilisation and queue (.png, .pdf, .svg).")
def simulate(workload: str, **options: Any) -> None:
    """Simulate a log (SWF, plain or gzip; - reads standard input) under a policy, and print the metrics."""
    _check_simulate(options)
    log = _read(workload)
    jobs = _jobs(workload, log, _processors(options), options["queue_weights"])
    choice, settings = _policy_options(options)
    result = _run(jobs, options, choice)
    _write(result, log, options)
    from ..formats.write import write_text
    from .report import to_document, to_json, to_text

    name = _shown(workload)
    text = to_json(to_document(result, settings)) if options["form"] == "json" else to_text(result, name)
    write_text(options["output"], text)


@click.group()
def workload() -> None:
    """Look at workloads."""


@workload.command(short_help="Print what a log holds.")
@_workload_argument
@_processors_option
@_format_option
@_output_option
@click.option("--plot", type=_OUTPUT, help="Chart of sizes, times, hours and load (.png, .pdf, .svg).")
def describe(workload: str, processors: int | None, form: str, output: Path, plot: Path | None) -> None:
    """Print what a log (SWF, plain or gzip; - reads standard input) holds."""
    from ..formats.drawing import check_drawing
    from ..formats.write import write_text
    from .describe import describe as figures_of
    from .describe import description_text
    from .plot_workload import draw_workload
    from .report import to_json

    check_drawing("--plot", plot)
    log = _read(workload)
    jobs = _jobs(workload, log, processors, None)
    if plot is not None:
        draw_workload(jobs, log, plot)
    figures = figures_of(jobs, log)
    write_text(output, to_json(figures) if form == "json" else description_text(figures, _shown(workload)))


def _check_simulate(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored, and charts that could not be drawn."""
    from ..formats.drawing import check_drawing

    for option, needed, value in (
        ("reservations", "policy", ("reservations",)),
        ("multifactor", "order", ("multifactor",)),
        ("queue_weights", "order", ("weight", "smith")),
    ):
        if options[option] is not None and options[needed] not in value:
            name = f"--{option.replace('_', '-')}"
            raise OptionError(f"{name} needs --{needed} {' or '.join(value)}, not {options[needed]}")
    if options["processors"] is not None and options["cluster"] is not None:
        raise OptionError("--processors and --cluster both give the machine's size")
    check_drawing("--gantt", options["gantt"])
    check_drawing("--plot", options["plot"])


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def _read(path: str) -> SwfLog:
    from ..formats.swf import read_swf

    return read_swf(path)


def _processors(options: dict[str, Any]) -> int | None:
    """Return the machine's size as options give it: a number, or a snapshot's cores."""
    if options["cluster"] is None:
        processors: int | None = options["processors"]
        return processors
    from ..formats.native import load_snapshot

    return sum(node.total.cores for node in load_snapshot(options["cluster"]).nodes)


def _jobs(path: str, log: SwfLog, processors: int | None, queue_weights: str | None) -> Workload:
    """Return the log's jobs; say on stderr how many rows were dropped, and why."""
    from .policy import weights_by_queue
    from .workload import describe_dropped, workload_from_swf

    weights = weights_by_queue(queue_weights) if queue_weights is not None else None
    try:
        jobs = workload_from_swf(log, processors=processors, queue_weights=weights)
    except InputError as error:
        raise error.in_file(_shown(path)) from error
    if any(jobs.dropped.values()):
        click.echo(f"aucsched: {_shown(path)}: {describe_dropped(jobs.dropped, jobs.rows)}", err=True)
    return jobs


def _policy_options(options: dict[str, Any]) -> tuple[PolicyOptions, dict[str, Any]]:
    """Return what the policy is told, and the part of it that this run reads."""
    from dataclasses import asdict

    from .orderings import MultifactorWeights
    from .policy import PolicyOptions

    text = options["multifactor"]
    weights = MultifactorWeights() if text is None else MultifactorWeights.from_text(text)
    choice = PolicyOptions(reservations=options["reservations"] or 4, multifactor=weights)
    settings: dict[str, Any] = {}
    if options["policy"] == "reservations":
        settings["reservations"] = choice.reservations
    if options["order"] == "multifactor":
        settings["multifactor"] = asdict(weights)
    return choice, settings


def _run(jobs: Workload, options: dict[str, Any], choice: PolicyOptions) -> Result:
    from .checked import simulate_checked
    from .counts import simulate_counts
    from .policy import make_policy
    from .result import Result

    kernel = simulate_checked if options["check"] else simulate_counts
    with _progress(len(jobs)) as progress:
        began = time.perf_counter()
        policy = make_policy(options["policy"], jobs.requests, order=options["order"], options=choice)
        starts = kernel(jobs, policy, progress)
        seconds = time.perf_counter() - began
    return Result(
        workload=jobs,
        policy=options["policy"],
        order=options["order"],
        starts=tuple(starts),
        seconds=seconds,
    )


@contextmanager
def _progress(jobs: int) -> Iterator[Callable[[int], None] | None]:
    """Give a function that moves a bar on the terminal, None where stderr is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("jobs", total=jobs)
        yield lambda done: bar.update(task, completed=done)


def _write(result: Result, log: SwfLog, options: dict[str, Any]) -> None:
    """Write the files that the options name."""
    from ..formats.swf import write_swf
    from ..formats.write import write_text
    from .plot_gantt import draw_gantt
    from .plot_use import draw_utilization
    from .report import batsim_csv, jobs_csv, simulated_log

    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], jobs_csv(result))
    if options["batsim_out"] is not None:
        write_text(options["batsim_out"], batsim_csv(result))
    if options["swf_out"] is not None:
        write_swf(options["swf_out"], simulated_log(result, log))
    if options["gantt"] is not None:
        draw_gantt(result, options["gantt"])
    if options["plot"] is not None:
        draw_utilization(result, options["plot"])
