"""``aucsched board``: a log under published policies and ours, in one table."""

from pathlib import Path

import click

from ..cluster.errors import shown_name
from ..cluster.text import plural
from ..simulation.policy_names import split_policies
from .built_options import INPUT
from .outputs import (
    Output,
    note_unstarted,
    output_options,
    plot_option,
    processors_option,
    progress_over,
    read_jobs,
)

FORMAT = "aucsched-board/1"
_POLICIES = "Play this policy, too, such as slack:factor=0.5."


@click.command()
@click.argument("log", type=INPUT)
@click.option("--policy", "policies", metavar="NAME|FILE.py:CLASS,…", multiple=True, help=_POLICIES)
@processors_option
@plot_option("Chart of bounded slowdown and longest wait, without FCFS")
@output_options
def board(
    log: str, policies: tuple[str, ...], processors: int | None, plot: Path | None, out: Output
) -> None:
    """Play LOG, in the Standard Workload Format, under published policies and ours.

    The table has the lowest mean bounded slowdown first. SJF, Smith, WFP3, UNICEP and F1 to F4 are
    orders of the queue, each under EASY backfilling. A policy is on the edge if no other is at least
    as good in both bounded slowdown and longest wait and better in one, and it leaves no job unstarted.
    """
    from ..api.simulations import FEWEST_BLOCKS, on_edge
    from ..api.simulations import board as played
    from ..formats.swf import load_swf
    from ..reports.console_tables import Column, figure_columns, table_of

    jobs = read_jobs(log, load_swf(log), processors, None)
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
    intervals = f"95 % of the mean: days or weeks of submissions drawn anew; from {FEWEST_BLOCKS} on"
    out.write(
        lambda: {"format": FORMAT, "jobs": len(jobs), "intervals": intervals, "policies": document},
        lambda console: console.print(table_of(title, columns, lines, console)),
    )
