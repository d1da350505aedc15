"""``aucsched workload``: look at workloads and make them."""

from __future__ import annotations

from pathlib import Path

import click

from ..formats.slurm_events_command import slurm_events
from .shared_command import (
    OUTPUT,
    format_option,
    output_option,
    processors_option,
    read_jobs,
    read_log,
    shown,
    workload_argument,
)
from .workload_generators_command import GENERATORS


@click.group()
def workload() -> None:
    """Look at workloads and make them."""


for _command in (*GENERATORS, slurm_events):
    workload.add_command(_command)


@workload.command(short_help="Print what a log holds.")
@workload_argument
@processors_option
@format_option
@output_option
@click.option("--plot", type=OUTPUT, help="Chart of sizes, times, hours and load (.png, .pdf, .svg).")
def describe(workload: str, processors: int | None, form: str, output: Path, plot: Path | None) -> None:
    """Print what a log (SWF, plain or gzip; - reads standard input) holds."""
    from ..formats.drawing import check_drawing
    from ..formats.write import write_text
    from .describe import describe as figures_of
    from .describe import description_text
    from .plot_workload import draw_workload
    from .report import to_json

    check_drawing("--plot", plot)
    log = read_log(workload)
    jobs = read_jobs(workload, log, processors, None)
    if plot is not None:
        draw_workload(jobs, log, plot)
    figures = figures_of(jobs, log)
    write_text(output, to_json(figures) if form == "json" else description_text(figures, shown(workload)))
