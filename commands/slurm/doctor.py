"""``aucsched slurm doctor``: is this Slurm one that the loop can work beside?"""

from __future__ import annotations

import time
from pathlib import Path

import click

from .options import licence_option, rest_options, rest_server


@click.command()
@licence_option
@rest_options
def doctor(*, licence: str, rest: str | None, rest_token: Path | None) -> int:
    """Check versions, clock, rights, topology, licence, gate and answers; exit 1 where one fails.

    Only asks: nothing is changed.
    """
    import getpass

    from ...cluster.text import one_line
    from ...live.doctor import Level, examine
    from ...live.gate import check_licence
    from ...slurm.answers.live import ask_slurm

    failed = False
    server = rest_server(rest, rest_token)
    for finding in examine(ask_slurm, check_licence(licence), getpass.getuser(), time.time, server):
        failed |= finding.level is Level.FAIL
        click.echo(f"{finding.level.value:5}{finding.what:12}{one_line(finding.text)}")
    return 1 if failed else 0
