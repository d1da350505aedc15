"""``aucsched slurm unit`` and ``panel``: what a service manager and Grafana need."""

import re
import sys
from importlib.resources import files
from pathlib import Path

import click

from ...cluster.errors import OptionError
from ..outputs import note

_WHAT = {
    "shadow": "what the auction would start, nothing is changed",
    "run": "starts the jobs behind the gate",
}
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}", re.ASCII)
_PATH = re.compile(r"/[\w./+@-]*", re.ASCII)


@click.command()
@click.argument("loop", type=click.Choice(sorted(_WHAT)))
@click.option("--user", default="aucsched", show_default=True, help="User of the service; not root.")
@click.option(
    "--config",
    default="/etc/aucsched/slurm.toml",
    show_default=True,
    help="The service's options, in the form of aucsched slurm config.",
)
@click.option("--program", help="Path of aucsched. Default: this program's.")
def unit(*, loop: str, user: str, config: str, program: str | None) -> None:
    """Print the systemd unit of a loop."""
    program = str(Path(sys.argv[0]).resolve()) if program is None else program
    if not _USER.fullmatch(user):
        raise OptionError(f"--user: {user!r} is not a user's name")
    for option, path in (("--config", config), ("--program", program)):
        if not _PATH.fullmatch(path):
            raise OptionError(f"{option}: {path!r} is not a plain absolute path")
    if user == "root":
        note("the loop does not need root: give it a user of its own (useradd --system aucsched)")
    template = files("aucsched.slurm.live").joinpath("aucsched.service").read_text("utf-8")
    text = template.format(loop=loop, what=_WHAT[loop], user=user, config=config, program=program)
    click.echo(text, nl=False)


@click.command()
def panel() -> None:
    """Print a Grafana dashboard of the figures that --metrics tells."""
    from ...slurm.live.loop_metrics import dashboard

    click.echo(dashboard(), nl=False)
