"""``aucsched workload slurm-events``: a workload from a Slurm site's submissions and its configuration."""

from __future__ import annotations

from pathlib import Path

import click

from .outputs import output_option


@click.command("slurm-events")
@click.argument("events", metavar="EVENTS", type=click.Path(allow_dash=True))
@click.option(
    "--conf",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder with slurm.conf, and gres.conf and topology.conf where the site has them.",
)
@output_option
def slurm_events(events: str, conf: Path, output: Path) -> None:
    """Import a Slurm site's submissions (an event file of the Slurm simulator, plain or gzip).

    What the workload does not hold is listed in its notes and on stderr.
    """
    from ..formats.native.workload_file import save_workload
    from ..slurm.site.scheduler_log import import_events
    from .snapshot import tell

    workload, notes = import_events(events, conf)
    save_workload(workload, output)
    tell(notes.summary())
