"""``aucsched slurm unit``, ``config`` and ``panel``: a service's unit, its options as TOML, its dashboard."""

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from ...cluster.errors import OptionError
from ...cluster.option_table import STEP, read_by
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


_WIDTH = 100
_HEAD = """\
# Options of aucsched's Slurm commands, with their defaults. Use:
#   aucsched --config THIS_FILE slurm shadow
# Options on the command line override this file. An option on a line "# name =" has no fixed
# default: remove the mark to set it.
"""
#: Commands of the group that have options worth keeping.
_KEPT = ("shadow", "run", "status", "doctor")
#: Options that say what one run is for.
_OF_ONE_RUN = {"once", "passes", "dry_run"}


@click.command()
@click.pass_context
def config(context: click.Context) -> None:
    """Print a configuration file with every option's default."""
    group = context.parent.command if context.parent else None
    if not isinstance(group, click.Group):
        raise TypeError("config stands in a group")
    click.echo(_HEAD, nl=False)
    for name in _KEPT:
        command = group.get_command(context, name)
        if command is not None:
            click.echo("".join(_table(command, name)), nl=False)


def _table(command: click.Command, name: str) -> Iterator[str]:
    yield f"\n[slurm.{name}]\n"
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in _OF_ONE_RUN:
            yield from _lines(option)


def _lines(option: click.Option) -> Iterator[str]:
    key = next(name for name in option.opts if name.startswith("--")).removeprefix("--")
    for line in textwrap.wrap(option.help or "", _WIDTH - 2):
        yield f"# {line}\n"
    default = option.to_info_dict()["default"]
    if default is not None and not option.multiple:
        yield f"{key} = {_value(default)}\n"
        return
    known = _OF_THE_TABLE.get(option.name or "")
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    typed = isinstance(known, (bool, int, float)) or known in choices
    yield f"# {key} = {_value(known)}\n" if typed else f"# {key} =\n"


#: The auction's defaults, which its options resolve themselves.
_OF_THE_TABLE = {one.name: one.default_of(STEP) for one in read_by(STEP)}


def _value(value: Any) -> str:
    """Return a value as TOML, which has numbers, texts, true and false as JSON does."""
    return json.dumps(value, default=str, ensure_ascii=False)


@click.command()
def panel() -> None:
    """Print a Grafana dashboard of the figures that --metrics serves."""
    from ...slurm.live.loop_metrics import dashboard

    click.echo(dashboard(), nl=False)
