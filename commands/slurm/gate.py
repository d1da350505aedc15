"""``aucsched slurm gate``: the reservation of licences that jobs wait behind."""

from __future__ import annotations

import time

import click

from ..groups import Group
from .options import licence_option


@click.group(cls=Group)
def gate() -> None:
    """Put the gate up or down, say how it stands, put waiting jobs behind it."""


@gate.command()
@licence_option
@click.option(
    "--for",
    "seconds",
    metavar="S",
    type=click.IntRange(10),
    default=600,
    show_default=True,
    help="It ends by itself so many seconds from now.",
)
def up(*, licence: str, seconds: int) -> None:
    """Put the gate up, or move its end to --for seconds from now; slurm run does so itself."""
    import getpass
    import socket

    from ...live.gate import check_licence, create_words, extend_words, gate_name, gates, licence_count
    from ...live.hands import must, one_scontrol
    from ...slurm.answers.live import ask_slurm

    total = licence_count(ask_slurm, check_licence(licence))
    found = gates(ask_slurm, licence)
    if found:
        name = found[0].name
        must(one_scontrol, extend_words(name, seconds))
    else:
        name = gate_name(licence, socket.gethostname())
        must(one_scontrol, create_words(name, licence, total, seconds, getpass.getuser()))
    click.echo(f"{name}: up, ends in {seconds} s unless its end is moved")


@gate.command()
@licence_option
def down(*, licence: str) -> None:
    """Put the gate down: Slurm starts the jobs behind it from now on."""
    from ...live.gate import check_licence, drop_words, gates
    from ...live.hands import must, one_scontrol
    from ...slurm.answers.live import ask_slurm

    found = gates(ask_slurm, check_licence(licence))
    for one in found:
        must(one_scontrol, drop_words(one.name))
        click.echo(f"{one.name}: down")
    if not found:
        click.echo("no gate is up")


@gate.command()
@licence_option
def status(*, licence: str) -> int:
    """Say whether the gate is up, for how long, and how many licences it holds; exit 1 where it is down."""
    from ...live.gate import check_licence, gates, licence_count
    from ...slurm.answers.live import ask_slurm

    total = licence_count(ask_slurm, check_licence(licence))
    now = time.time()
    found = [one for one in gates(ask_slurm, licence) if one.is_up(now)]
    for one in found:
        click.echo(
            f"{one.name}: up, ends in {one.end - now:.0f} s, holds {one.held} of {total} licences {licence}"
        )
    if not found:
        click.echo(f"no gate is up: Slurm starts jobs with the licence {licence} itself")
    return 0 if found else 1


@gate.command()
@licence_option
@click.option(
    "--partition", "partitions", multiple=True, help="Only jobs of this partition; repeat it for more."
)
@click.option("--user", "users", multiple=True, help="Only jobs of this user; repeat it for more.")
@click.option("--dry-run", is_flag=True, help="Print the commands; change nothing.")
def add(*, licence: str, partitions: tuple[str, ...], users: tuple[str, ...], dry_run: bool) -> None:
    """Put the waiting jobs behind the gate that are not: the way where no job_submit.lua does it."""
    from ...live.adding import added, read_waiting
    from ...live.gate import check_licence
    from ...live.hands import Shown, one_scontrol
    from ...slurm.answers.live import ask_slurm
    from ..outputs import note

    waiting = read_waiting(ask_slurm)
    commands, problems = added(waiting, check_licence(licence), partitions, users)
    for problem in problems:
        note(problem)
    said = (Shown(click.echo) if dry_run else one_scontrol)(commands) if commands else ()
    for text in said:
        note(text)
    if not dry_run:
        click.echo(f"{len(commands) - len(said)} jobs were put behind the gate")


@gate.command("lua")
def lua() -> None:
    """Print the job_submit.lua that puts each new job behind the gate."""
    from ...live.plugin import job_submit_lua

    click.echo(job_submit_lua(), nl=False)
