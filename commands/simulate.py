"""``aucsched simulate``: a thin command over the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError
from .evolving_options import (
    EVOLVING,
    evolving_options,
    refuse_evolving,
    simulate_evolving_workload,
)
from .forecast_options import asked_at, forecast_options, write_forecasts
from .log_options import check_policy_options, policy_options, read_policy_options
from .malleable_options import (
    MALLEABLE_POLICIES,
    check_malleable,
    malleable_options,
    refuse_malleable,
    simulate_malleable_log,
)
from .node_options import check_log_options, is_native, node_options, simulate_on_nodes
from .outputs import (
    OUTPUT,
    file_name,
    format_option,
    html_option,
    output_option,
    processors_option,
    progress_over,
    read_jobs,
    read_log,
    shown,
    workload_argument,
)

if TYPE_CHECKING:
    from ..formats.swf import SwfLog
    from ..simulation.log_columns import Workload
    from ..simulation.logs.policies import PolicyOptions
    from ..simulation.result import Result

#: What options are where nothing is said, if not None.
_DEFAULTS: dict[str, Any] = {"check": False, "form": "text", "output": "-"}


@click.command()
@workload_argument
@policy_options
@node_options
@malleable_options
@evolving_options
@processors_option
@click.option(
    "--cluster", type=click.Path(allow_dash=True), help="A snapshot whose cores are the machine's processors."
)
@click.option("--check", is_flag=True, help="Check every start against every rule; results do not change.")
@format_option
@output_option
@click.option("--jobs-out", type=OUTPUT, help="CSV with one row for each job, in order of submission.")
@click.option("--batsim-out", type=OUTPUT, help="CSV in the format of Batsim's jobs.csv.")
@click.option("--swf-out", type=OUTPUT, help="The log with the simulated waits (SWF).")
@click.option("--gantt", type=OUTPUT, help="Chart of the jobs (.png, .pdf, .svg).")
@html_option
@click.option("--plot", type=OUTPUT, help="Chart of utilisation and queue (.png, .pdf, .svg).")
@forecast_options
def simulate(workload: str, **options: Any) -> None:
    """Simulate a log (SWF) or a workload of nodes under a policy, and print the metrics.

    A log is read plain or gzip; a workload of nodes is what ``aucsched workload`` makes; - reads standard
    input. Under --policy evolving it is dynamic-esp or quadflow, in an order that --seed draws.
    """
    policies = options["policy"].split(",")
    if len(policies) > 1:
        _simulate_several(workload, policies, options)
        return
    if options["policy"] == EVOLVING:
        simulate_evolving_workload(workload, options, _DEFAULTS)
        return
    refuse_evolving(workload, options)
    is_malleable = options["policy"] in MALLEABLE_POLICIES
    if is_native(workload):
        if is_malleable:
            raise OptionError(f"--policy {options['policy']} needs a log, not a workload of nodes")
        refuse_malleable(options)
        simulate_on_nodes(workload, options)
        return
    check_log_options(options)
    _check_simulate(options)
    if is_malleable:
        check_malleable(options)
        simulate_malleable_log(workload, options, _processors(options))
        return
    refuse_malleable(options)
    log = read_log(workload)
    jobs = read_jobs(workload, log, _processors(options), options["queue_weights"])
    choice, settings = read_policy_options(options)
    result = _run(jobs, options, choice)
    _write(result, log, options, choice, file_name(workload))
    from ..formats.native.write import write_text
    from ..simulation.report import to_document, to_json, to_text

    name = shown(workload)
    if options["html"] is not None:
        from ..api.simulations import Simulation
        from ..reports.run_pages import simulation_page

        run = Simulation(result=result, settings=settings, name=name)
        write_text(options["html"], simulation_page([run], file_name(workload)))
    text = to_json(to_document(result, settings)) if options["form"] == "json" else to_text(result, name)
    write_text(options["output"], text)


def _simulate_several(workload: str, policies: list[str], options: dict[str, Any]) -> None:
    """Run every policy over one input and print one table."""
    from ..formats.native.write import write_text
    from ..simulation.report import to_json
    from .simulate_several import document_of, simulate_several, text_of

    refuse_evolving(workload, options)
    runs = simulate_several(workload, policies, options, _processors(options))
    if options["html"] is not None:
        from ..reports.run_pages import simulation_page

        write_text(options["html"], simulation_page(runs, file_name(workload)))
    text = to_json(document_of(runs)) if options["form"] == "json" else text_of(runs)
    write_text(options["output"], text)


def _check_simulate(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored, and charts that could not be drawn."""
    from ..formats.drawing import check_drawing

    check_policy_options(options)
    asked_at(options)
    if options["processors"] is not None and options["cluster"] is not None:
        raise OptionError("--processors and --cluster both give the machine's size")
    check_drawing("--gantt", options["gantt"])
    check_drawing("--plot", options["plot"])


def _processors(options: dict[str, Any]) -> int | None:
    """Return the machine's size as options give it: a number, or a snapshot's cores."""
    if options["cluster"] is None:
        processors: int | None = options["processors"]
        return processors
    from ..formats.native.read import load_snapshot

    return sum(node.total.cores for node in load_snapshot(options["cluster"]).nodes)


def _run(jobs: Workload, options: dict[str, Any], choice: PolicyOptions) -> Result:
    from ..simulation.logs.play import play_log

    with progress_over(len(jobs)) as progress:
        return play_log(
            jobs,
            options["policy"],
            order=options["order"],
            options=choice,
            checked=options["check"],
            progress=progress,
        )


def _write(result: Result, log: SwfLog, options: dict[str, Any], choice: PolicyOptions, name: str) -> None:
    """Write the files that the options name."""
    from ..formats.native.write import write_text
    from ..formats.swf import write_swf
    from ..simulation.charts.curves import draw_utilization
    from ..simulation.charts.gantt import draw_gantt
    from ..simulation.logs.policies import queue_rank
    from ..simulation.report import batsim_csv, jobs_csv, simulated_log

    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], jobs_csv(result))
    if options["batsim_out"] is not None:
        write_text(options["batsim_out"], batsim_csv(result))
    if options["swf_out"] is not None:
        write_swf(options["swf_out"], simulated_log(result, log))
    if options["gantt"] is not None:
        draw_gantt(result, options["gantt"], name=name)
    if options["plot"] is not None:
        draw_utilization(result, options["plot"], name=name)
    if options["forecasts"] is not None:
        rank = queue_rank(result.workload.requests, options["order"], choice.flexible)
        write_forecasts(options["forecasts"], result, log, options, rank)
