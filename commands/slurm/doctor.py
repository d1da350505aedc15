"""``aucsched slurm doctor``: is this Slurm one that the loop can work beside?"""

import time

import click

from .live_options import licence_option, no_rest_options


@click.command()
@licence_option
@no_rest_options
def doctor(*, licence: str) -> int:
    """Check versions, clock, rights, topology, settings, licences, nodes and gate; exit 1 where one fails.

    Only asks: nothing is changed.
    """
    import getpass

    from ...cluster.text import one_line
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.findings import Severity, examine

    failed = False
    for finding in examine(ask_slurm, licence, getpass.getuser(), time.time):
        failed |= finding.level is Severity.FAIL
        click.echo(f"{finding.level.value:5}{finding.what:12}{one_line(finding.text)}")
    return 1 if failed else 0
