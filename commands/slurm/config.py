"""``aucsched slurm config``: a TOML file of every option of the commands beside Slurm, for ``--config``."""

import textwrap
from collections.abc import Iterator
from typing import Any

import click

from ...cluster.option_table import STEP, read_by

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
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
