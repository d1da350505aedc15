"""What ``aucsched simulate`` writes of a run: files, charts, a page, and the metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.option_fields import Option
from .outputs import file_name, shown, write_report

if TYPE_CHECKING:
    from ..api.simulations import Simulation
    from ..formats.swf import SwfLog


@dataclass(kw_only=True)
class RunFiles:
    """The files that a run can write."""

    jobs_out: Option[Path | None] = Option("CSV with one row for each job, in order of submission.")
    batsim_out: Option[Path | None] = Option("CSV in the format of Batsim's jobs.csv.")
    swf_out: Option[Path | None] = Option("The log with the simulated waits (SWF).")
    gantt: Option[Path | None] = Option("Chart of the jobs (.png, .pdf, .svg).")
    html: Option[Path | None] = Option("Report as one self-contained web page.")
    plot: Option[Path | None] = Option("Chart of utilisation and queue (.png, .pdf, .svg).")


def check_charts(options: dict[str, Any]) -> None:
    """Refuse charts that could not be drawn, before anything runs."""
    from ..formats.drawing import check_drawing

    check_drawing("--gantt", options["gantt"])
    check_drawing("--plot", options["plot"])


def write_run(
    run: Simulation,
    path: str,
    options: dict[str, Any],
    *,
    log: SwfLog | None = None,
    named: dict[str, str] | None = None,
) -> None:
    """Write the files that the options name, then the metrics.

    Args:
        run: what came of it.
        path: of the input.
        options: the command's.
        log: the input, where it is a log.
        named: settings that only the JSON has.
    """
    from ..formats.native.write import write_text
    from ..formats.swf import write_swf
    from ..simulation.report import batsim_csv, simulated_log

    name = run.name or file_name(path)
    if log is not None:
        name = file_name(path)
        if options["batsim_out"] is not None:
            write_text(options["batsim_out"], batsim_csv(run.result))
        if options["swf_out"] is not None:
            write_swf(options["swf_out"], simulated_log(run.result, log))
    drawn = replace(run, name=name)
    if options["gantt"] is not None:
        drawn.plot(options["gantt"], chart="gantt")
    if options["plot"] is not None:
        drawn.plot(options["plot"])
    if options["html"] is not None:
        from ..reports.run_pages import simulation_page

        write_text(options["html"], simulation_page([run], name))
    told = replace(run, settings={**run.settings, **(named or {})})
    write_report(told, run.name or shown(path), options)
