"""``aucsched simulate``: a thin command over the simulator."""

from typing import Any

import click

from ..cluster.errors import OptionError
from ..simulation.policy_names import split_policies, with_parameters
from ..simulation.simulate_options import EVOLVING, MALLEABLE_POLICIES, current_name
from .built_options import INPUT, SectionCommand, click_option, in_section, record_options
from .evolve import evolving_options, refuse_evolving, simulate_evolving_workload
from .forecast_options import ForecastOptions, asked_at, write_forecasts
from .malleable_options import (
    check_malleable,
    malleable_options,
    refuse_malleable,
    simulate_malleable_log,
)
from .node_options import check_log_options, is_native, node_options, simulate_on_nodes
from .outputs import (
    RunFiles,
    file_name,
    format_option,
    note_unstarted,
    output_option,
    processors_option,
    workload_argument,
    write_rich,
    write_run,
)
from .policy_options import ORDER_OPTIONS, check_policy_options, note_old_flags, policy_options

#: What options are where nothing is said, if not None.
_DEFAULTS: dict[str, Any] = {"check": False, "form": "text", "output": "-"}
_EXAMPLES = """\b
Examples:
  aucsched simulate examples/days.swf --policy easy,slack:factor=0.5
  aucsched simulate examples/overtaken.json --policy aucsched3 --gantt run.svg
  aucsched simulate dynamic-esp --policy evolving --requests refuse
"""


@click.command(cls=SectionCommand, epilog=_EXAMPLES)
@workload_argument
@policy_options
@in_section(
    "Logs: a machine of equal processors",
    processors_option,
    click.option(
        "--cluster",
        type=INPUT,
        help="A snapshot whose cores are the machine's processors.",
    ),
    click.option(
        "--check", is_flag=True, help="Check every start against every rule; results do not change."
    ),
    *(click_option(one) for one in ORDER_OPTIONS),
)
@in_section("Nodes: a machine of nodes, and auctions on it", node_options)
@in_section("Malleable: applications of a log that grow and shrink", malleable_options)
@in_section("Evolving: running jobs of dynamic-esp or quadflow that ask for more", evolving_options)
@in_section("Output", format_option, output_option, record_options(RunFiles, ForecastOptions))
def simulate(workload: str, **options: Any) -> None:
    """Simulate a log (SWF) or a workload of nodes under a policy, and print the metrics.

    A log is read plain or gzip; a workload of nodes is what aucsched workload makes; - reads standard
    input. Under --policy evolving it is dynamic-esp or quadflow, in an order that --seed draws.
    """
    policies = split_policies(options["policy"])
    if len(policies) > 1:
        _simulate_several(workload, policies, options)
    else:
        _simulate_one(workload, policies[0], with_parameters(options, policies[0]))
    note_old_flags(options)


def _simulate_one(workload: str, policy: str, options: dict[str, Any]) -> None:
    """Run one policy over the machine that the input and the policy ask for."""
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
    options["policy"] = current_name(options["policy"])
    check_log_options(options)
    check_policy_options(options)
    asked_at(options)
    if options["processors"] is not None and options["cluster"] is not None:
        raise OptionError("--processors and --cluster both give the machine's size")
    if is_malleable:
        check_malleable(options)
        simulate_malleable_log(workload, options, _processors(options))
        return
    refuse_malleable(options)
    _simulate_log(workload, policy, options)


def _simulate_log(path: str, policy: str, options: dict[str, Any]) -> None:
    from ..simulation.logs.policies import queue_rank
    from .simulate_several import runs_on_log

    (run,), log, (choice,) = runs_on_log(path, options, {policy: options}, _processors(options))
    if options["forecasts"] is not None:
        rank = queue_rank(run.result.workload.requests, options["order"], choice.flexible)
        write_forecasts(options["forecasts"], run.result, options, log, rank)
    write_run(run, path, options, log=log)


def _simulate_several(workload: str, policies: list[str], options: dict[str, Any]) -> None:
    """Run every policy over one input and print one table."""
    from ..formats.writing import write_text
    from ..simulation.report import to_json
    from .simulate_several import FORMAT, named_apart, render_runs, simulate_several

    refuse_evolving(workload, options)
    runs = simulate_several(workload, policies, options, _processors(options))
    for run, typed in zip(runs, policies, strict=True):
        note_unstarted(typed, len(run.result.never_started))
    if options["html"] is not None:
        from ..reports.run_pages import simulation_page

        write_text(options["html"], simulation_page(named_apart(runs, policies), file_name(workload)))
    if options["form"] == "json":
        write_text(options["output"], to_json({"format": FORMAT, "runs": [run.to_dict() for run in runs]}))
    else:
        write_rich(options["output"], lambda console: render_runs(named_apart(runs, policies), console))


def _processors(options: dict[str, Any]) -> int | None:
    """Return the machine's size as options give it: a number, or a snapshot's cores."""
    if options["cluster"] is None:
        processors: int | None = options["processors"]
        return processors
    from ..formats.native.cluster_file import load_snapshot

    return sum(node.total.cores for node in load_snapshot(options["cluster"]).nodes)
