"""``aucsched plan``: a start for every job of a snapshot."""

from pathlib import Path

import click

from ..cluster.errors import errors_in
from .built_options import OUTPUT
from .outputs import Output, note, output_options, progress_over, snapshot_argument, top_option, write_rich

#: Jobs that are planned where no number is given: some minutes at most.
MOST_JOBS = 5_000


@click.command()
@snapshot_argument
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=MOST_JOBS,
    show_default=True,
    help="How many jobs of highest priority to plan; the time rises with their square.",
)
@click.option("--gantt", type=OUTPUT, help="Chart of all nodes over time (.png, .pdf, .svg).")
@top_option
@output_options
def plan(snapshot: str, jobs: int, gantt: Path | None, out: Output) -> None:
    """Plan SNAPSHOT (a file, or - for standard input): when and where each of its jobs will start.

    The plan gives each job, in order of priority, the earliest start that running jobs, advance reservations,
    licences and the jobs planned before it allow. To replan after a change, plan a new snapshot.
    """
    from ..auction.planning.plan import plan as make_plan
    from ..formats.native.cluster_file import load_snapshot
    from ..formats.writing import write_text
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
    if out.form == "json":
        write_text(out.output, found.to_json())
        return
    write_rich(out.output, lambda console: render_plan(loaded, found, console, top=out.top))
