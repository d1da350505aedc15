"""``aucsched slurm gate``: the reservation of licences that jobs wait behind."""

from __future__ import annotations

import time

import click

from ..groups import Group
from .options import licence_option


@click.group(cls=Group)
def gate() -> None:
    """Put the gate up or down, or say how it stands."""


@gate.command()
@licence_option
def status(*, licence: str) -> int:
    """Say whether the gate is up, for how long, and how many licences it holds; exit 1 where it is down."""
    from ...live.gate import check_licence, gates, licence_count
    from ...slurm.answers.live import ask_slurm

    total = licence_count(ask_slurm, check_licence(licence))
    now = time.time()
    up = [one for one in gates(ask_slurm, licence) if one.start <= now < one.end]
    for one in up:
        click.echo(
            f"{one.name}: up, ends in {one.end - now:.0f} s, holds {one.held} of {total} licences {licence}"
        )
    if not up:
        click.echo(f"no gate is up: Slurm starts jobs with the licence {licence} itself")
    return 0 if up else 1
