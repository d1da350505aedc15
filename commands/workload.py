"""``aucsched workload``: look at workloads and make them."""

from pathlib import Path
from typing import Any

import click

from ..cluster.errors import OptionError, errors_in, shown_name
from .groups import HelpGroup
from .outputs import (
    format_option,
    output_option,
    plot_option,
    processors_option,
    read_jobs,
    workload_argument,
)
from .workload_logs import IMPORTS
from .workload_papers import GENERATORS, fit_log, ischeduler


@click.group(cls=HelpGroup)
def workload() -> None:
    """Describe and make workloads."""


for _command in (*GENERATORS, *IMPORTS, ischeduler, fit_log):
    workload.add_command(_command)


@workload.command(short_help="Print what a workload or a log holds.")
@workload_argument
@processors_option
@format_option
@output_option
@plot_option("Chart of sizes, times, hours and load")
def describe(workload: str, processors: int | None, form: str, output: Path, plot: Path | None) -> None:
    """Print what a workload or a log (SWF) holds, plain or gzip; - reads standard input.

    --processors and --plot are for logs only.
    """
    from ..formats.file_kinds import is_json
    from ..formats.reading import read_document
    from ..formats.writing import write_text
    from ..simulation.report import to_json

    content = read_document(workload, bytes)
    if is_json(content):
        figures, text = _described_workload(workload, content, processors, plot)
    else:
        figures, text = _described_log(workload, content, processors, plot)
    write_text(output, to_json(figures) if form == "json" else text)


def _described_workload(
    name: str, content: bytes, processors: int | None, plot: Path | None
) -> tuple[dict[str, Any], str]:
    """Return a workload's figures, and as text."""
    from ..formats.native.cluster_file import parse_workload
    from ..simulation.workloads.describe import cluster_text, describe_cluster

    for option, value in (("--processors", processors), ("--plot", plot)):
        if value is not None:
            raise OptionError(f"{option} is for logs: {shown_name(name)} is a workload and has its machine")
    with errors_in(name):
        figures = describe_cluster(parse_workload(content))
    return figures, cluster_text(figures, shown_name(name))


def _described_log(
    name: str, content: bytes, processors: int | None, plot: Path | None
) -> tuple[dict[str, Any], str]:
    """Return a log's figures, and as text; draw it where it is asked for."""
    from ..formats.swf import parse_swf
    from ..reports.curves import draw_workload
    from ..simulation.workloads.describe import describe as figures_of
    from ..simulation.workloads.describe import description_text

    with errors_in(name):
        log = parse_swf(content)
    jobs = read_jobs(name, log, processors, None)
    if plot is not None:
        draw_workload(jobs, log, plot)
    figures = figures_of(jobs, log)
    return figures, description_text(figures, shown_name(name))
