"""``aucsched board``: a log under published policies and ours, in one table."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from .outputs import (
    note_unstarted,
    output_options,
    plot_option,
    print_table,
    processors_option,
    progress_over,
    read_jobs,
    read_log,
    shown,
    write_found,
)

FORMAT = "aucsched-board/1"


@click.command()
@click.argument("log")
@click.option("--policy", "policies", multiple=True, metavar="NAME|FILE.py:CLASS", help="Play it too.")
@processors_option
@plot_option("Chart of slowdown and longest wait")
@output_options
def board(
    log: str, policies: tuple[str, ...], processors: int | None, plot: Path | None, form: str, output: str
) -> None:
    """Play LOG, in the Standard Workload Format, under published policies and ours.

    The table has the lowest mean bounded slowdown first. A policy on the edge has no other below it
    in both slowdown and longest wait, and leaves no job unstarted.
    """
    from ..api.simulations import board as played
    from ..api.simulations import on_edge

    jobs = read_jobs(log, read_log(log), processors, None)
    rows = played(jobs, policies, progress=progress_over)
    edge = {row["policy"] for row in on_edge(rows)}
    if plot is not None:
        from ..reports.curves import draw_board

        draw_board({Path(log).name: rows}, plot)
    document = [{**row, "on_edge": row["policy"] in edge} for row in rows]
    by_slowdown = sorted(document, key=itemgetter("bounded_slowdown_mean"))
    lines = [_line(row) for row in sorted(by_slowdown, key=lambda row: bool(row["never_started"]))]
    for row in rows:
        note_unstarted(row["policy"], row["never_started"])
    title = f"{shown(log)}: {len(jobs)} jobs on {jobs.requests.processors} processors"
    write_found(
        output,
        form,
        lambda: {"format": FORMAT, "jobs": len(jobs), "policies": document},
        lambda console: print_table(console, title, lines),
    )


def _line(row: dict[str, Any]) -> dict[str, str]:
    """Return a row for people."""
    left = row["never_started"]
    return {
        "policy": row["policy"],
        "slowdown": f"{row['bounded_slowdown_mean']:.2f}",
        "95 %": _span(row["bounded_slowdown_interval"], 1),
        "longest wait (h)": f"{row['wait_max_s'] / 3600:.1f}",
        "mean wait (s)": f"{row['wait_mean_s']:.0f}",
        "95 % (s)": _span(row["wait_interval_s"], 0),
        "CPU %": f"{row['cpu_utilization'] * 100:.1f}",
        "edge": "yes" if row["on_edge"] else f"{left} never start" if left else "",
    }


def _span(interval: tuple[float, float] | None, digits: int) -> str:
    return "-" if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"
