"""``aucsched slurm gate``: the reservation of licences that jobs wait behind."""

import time
from importlib.resources import files

import click

from ...cluster.errors import OptionError
from ...cluster.text import one_line, plural
from ..built_options import WholeRange
from ..groups import HelpGroup
from ..outputs import note
from .loops import licence_option

dry_run_option = click.option("--dry-run", is_flag=True, help="Print the commands; change nothing.")


@click.group(cls=HelpGroup)
def gate() -> None:
    """Put the gate up or down, put waiting jobs behind it, take it off them again."""


@gate.command()
@licence_option
@click.option(
    "--for",
    "seconds",
    metavar="S",
    type=WholeRange(10),
    default=600,
    show_default=True,
    help="It ends by itself this many seconds from now.",
)
def up(*, licence: str, seconds: int) -> None:
    """Put the gate up, or move its end to --for seconds from now; slurm run does so itself."""
    import socket

    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import (
        create_words,
        extend_words,
        gate_name,
        gates,
        licence_count,
        one_scontrol,
        own_user,
        require_done,
    )

    total = licence_count(ask_slurm, licence)
    found = gates(ask_slurm, licence)
    name = found[0].name if found else gate_name(licence, socket.gethostname())
    words = extend_words(name, seconds)
    if not found:
        words = create_words(name, licence, total, seconds, own_user())
    require_done(one_scontrol, words)
    click.echo(f"{name}: up, ends in {seconds} s unless its end is moved")


@gate.command()
@licence_option
def down(*, licence: str) -> None:
    """Put the gate down: Slurm starts the jobs behind it from now on."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import drop_words, gates, one_scontrol, require_done

    found = gates(ask_slurm, licence)
    for one in found:
        require_done(one_scontrol, drop_words(one.name))
        click.echo(f"{one_line(one.name)}: down")
    if not found:
        click.echo("no gate is up")


@gate.command()
@licence_option
def status(*, licence: str) -> int:
    """Say if the gate is up, for how long, and how many licences it holds; exit 1 if it is down."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import gates, licence_count

    total = licence_count(ask_slurm, licence)
    now = time.time()
    found = [one for one in gates(ask_slurm, licence) if one.is_up(now)]
    for one in found:
        click.echo(
            f"{one_line(one.name)}: up, ends in {one.end - now:.0f} s, "
            f"holds {one.held(licence)} of {total} licences {licence}"
        )
    if not found:
        click.echo(f"no gate is up: Slurm starts jobs with the licence {licence} itself")
    return 0 if found else 1


@gate.command()
@licence_option
@click.option("--partition", "partitions", multiple=True, metavar="NAME", help="Only its jobs; repeatable.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Only this user's jobs; repeatable.")
@dry_run_option
def add(*, licence: str, partitions: tuple[str, ...], users: tuple[str, ...], dry_run: bool) -> int:
    """Put waiting jobs behind the gate, if not yet there; for sites without its job_submit.lua.

    Exit 1 if Slurm refused some.
    """
    from pwd import getpwnam

    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import one_scontrol, shown_by
    from ...slurm.live.pass_plan import added, read_all

    known = ask_slurm(("sinfo", "-h", "-a", "-o", "%R")).decode(errors="replace").split()
    for name in set(partitions).difference(known):
        raise OptionError(f"--partition: {name!r} is none of {', '.join(known)}")
    jobs = read_all(ask_slurm)
    for name in set(users).difference(job.user for job in jobs):
        try:
            getpwnam(name)
        except (KeyError, ValueError):
            raise OptionError(f"--user: {name!r} has no job and is not a user of this host") from None
    commands, problems = added(jobs, licence, partitions, users)
    for problem in problems:
        note(problem)
    said = (shown_by(click.echo) if dry_run else one_scontrol)(commands) if commands else ()
    for text in said:
        note(text)
    if dry_run:
        return 0
    after = read_all(ask_slurm) if said else jobs
    # Others may have come since, or have started.
    still = added(after, licence, partitions, users)[0] if said else []
    refused = {job for _, job, _ in set(still).intersection(commands)}
    waiting = {f"JobId={job.whole}" for job in after if job.is_waiting}
    put = [job for _, job, _ in commands if job in waiting - refused]
    for job in sorted(refused):
        click.echo(one_line(f"{job.removeprefix('JobId=')}: not put behind the gate"))
    click.echo(f"{plural(len(put), 'job', 'was')} put behind the gate")
    return 1 if refused else 0


@gate.command("clear")
@licence_option
@dry_run_option
def take_off(*, licence: str, dry_run: bool) -> int:
    """Take everything of the gate off all jobs: pins, marks, the licence, unused reservations.

    Requests and comments become what they were. Stop slurm run first: it would pin jobs again. The
    command may be repeated; exit 1 if something is left.
    """
    from ...slurm.answers.live import RESERVATIONS, ask_slurm
    from ...slurm.answers.reservation_records import read_reservations
    from ...slurm.live.actions import Action, one_scontrol, shown_by
    from ...slurm.live.pass_plan import cleared, read_all

    def to_clear() -> list[Action]:
        reserved = read_reservations(ask_slurm(RESERVATIONS))
        return cleared(read_all(ask_slurm), licence, reserved)

    found = to_clear()
    commands = [words for one in found for words in one.commands]
    runner = shown_by(click.echo) if dry_run else one_scontrol
    for text in runner(commands) if commands else ():
        note(text)
    left = [] if dry_run else to_clear()
    at_fault = {one.job for one in left}
    for one in found:
        if one.job not in at_fault:
            then = "afterwards " if dry_run else ""
            click.echo(one_line(f"{one.job}: {then}{one.why}"), err=dry_run)
    for one in left:
        click.echo(one_line(f"{one.job}: {'still to do: afterwards ' if one.commands else ''}{one.why}"))
    if not found:
        click.echo("no job has anything of the gate")
    return 1 if left or any(not one.commands for one in found) else 0


@gate.command("lua")
def lua() -> None:
    """Print the job_submit.lua that puts each new job behind the gate."""
    # For the folder of slurm.conf, with JobSubmitPlugins=lua there.
    click.echo(files("aucsched.slurm.live").joinpath("job_submit.lua").read_text("utf-8"), nl=False)
