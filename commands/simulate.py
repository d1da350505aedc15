"""``aucsched simulate`` and ``board``: runs of one policy or several; a log under many."""

from pathlib import Path
from typing import Any

import click

from ..cluster.errors import OptionError, shown_name
from ..cluster.text import plural
from ..simulation.policy_names import split_policies, with_parameters
from ..simulation.simulate_options import EVOLVING, LOG_POLICIES, MALLEABLE_POLICIES, RENAMED, current_name
from .built_options import INPUT, SectionCommand, click_option, in_section, record_options
from .evolve import evolving_options, refuse_evolving, simulate_evolving_workload
from .outputs import (
    Output,
    RunFiles,
    format_option,
    note_unstarted,
    output_option,
    output_options,
    plot_option,
    processors_option,
    progress_over,
    read_log,
    workload_argument,
)
from .policy_options import (
    ORDER_OPTIONS,
    PolicyNames,
    check_malleable,
    check_policy_options,
    malleable_options,
    note_old_flags,
    policy_options,
    refuse_malleable,
    simulate_malleable_log,
)
from .simulate_runs import (
    ForecastOptions,
    asked_at,
    check_log_options,
    machine_processors,
    node_options,
    simulate_on_log,
    simulate_on_nodes,
    simulate_several,
)

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
    """Simulate a log under a policy and print the metrics.

    A log (SWF) is read plain or gzip; a workload of nodes comes from aucsched workload; - reads
    standard input. Under --policy evolving it is dynamic-esp or quadflow, in an order that --seed
    draws.
    """
    policies = split_policies(options["policy"])
    if len(policies) > 1:
        refuse_evolving(workload, options)
        simulate_several(workload, policies, options)
    else:
        _simulate_one(workload, policies[0], with_parameters(options, policies[0]))
    note_old_flags(options)


def _simulate_one(workload: str, policy: str, options: dict[str, Any]) -> None:
    """Run one policy over the machine that the input and the policy ask for."""
    from ..formats.file_kinds import is_json
    from ..formats.reading import read_document

    if options["policy"] == EVOLVING:
        simulate_evolving_workload(workload, options)
        return
    refuse_evolving(workload, options)
    is_malleable = options["policy"] in MALLEABLE_POLICIES
    content = read_document(workload, bytes)
    if is_json(content):
        if is_malleable:
            raise OptionError(f"--policy {options['policy']} needs a log, not a workload of nodes")
        refuse_malleable(options)
        simulate_on_nodes(workload, content, options)
        return
    options["policy"] = current_name(options["policy"])
    check_log_options(options)
    check_policy_options(options)
    asked_at(options)
    if is_malleable:
        check_malleable(options)
        simulate_malleable_log(workload, content, options, machine_processors(options))
        return
    refuse_malleable(options)
    simulate_on_log(workload, content, policy, options)


FORMAT = "aucsched-board/1"
_POLICIES = "Play this policy, too, such as slack:factor=0.5."


@click.command()
@click.argument("log", type=INPUT)
@click.option(
    "--policy",
    "policies",
    type=PolicyNames((*LOG_POLICIES, *RENAMED)),
    metavar="NAME|FILE.py:CLASS,…",
    multiple=True,
    help=_POLICIES,
)
@processors_option
@plot_option("Chart of bounded slowdown and longest wait, without FCFS")
@output_options
def board(
    log: str, policies: tuple[str, ...], processors: int | None, plot: Path | None, out: Output
) -> None:
    """Compare published policies and ours on a log.

    LOG is in the Standard Workload Format. The table has the lowest mean bounded slowdown first.
    SJF, Smith, WFP3, UNICEP and F1 to F4 are queue orders, each under EASY backfilling. A policy is
    on the edge if it leaves no job unstarted and no other is at least as good in both bounded
    slowdown and longest wait and better in one.
    """
    from ..api.simulations import FEWEST_BLOCKS, on_edge
    from ..api.simulations import board as played
    from ..formats.reading import read_document
    from ..reports.console_tables import Column, figure_columns, table_of

    _, jobs = read_log(log, read_document(log, bytes), processors)
    rows = played(jobs, [one for text in policies for one in split_policies(text)], progress=progress_over)
    edge = {row["policy"] for row in on_edge(rows)}
    if plot is not None:
        from ..reports.curves import draw_board

        draw_board({Path(log).name: rows}, plot)
    document = [{**row, "on_edge": row["policy"] in edge} for row in rows]
    ranked = sorted(document, key=lambda one: (one["never_started"] > 0, one["bounded_slowdown_mean"]))
    # Without intervals their columns have dashes.
    lines = [{name: (None,) if one is None else one for name, one in row.items()} for row in ranked]
    for row in rows:
        note_unstarted(row["policy"], row["never_started"])
    left = {row["policy"]: f"{row['never_started']} never start" for row in rows if row["never_started"]}
    told = left | dict.fromkeys(edge, "yes")
    columns = [*figure_columns(["policy"], lines), Column("edge", lambda row: told.get(row["policy"], ""))]
    machine = plural(jobs.requests.processors, "processor")
    title = f"{shown_name(log)}: {plural(len(jobs), 'job')} on {machine}"
    intervals = f"95 % of the mean: days or weeks of submissions drawn anew; at least {FEWEST_BLOCKS} of them"
    out.write(
        lambda: {"format": FORMAT, "jobs": len(jobs), "intervals": intervals, "policies": document},
        lambda console: console.print(table_of(title, columns, lines, console)),
    )
