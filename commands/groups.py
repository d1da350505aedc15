"""Groups of commands: help on standard output where nothing is asked for, a suggestion for a slip."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

#: Command name -> (module below the group's package, attribute, one line for --help).
Table = Mapping[str, tuple[str, str, str]]


class HelpGroup(click.Group):
    """A group that prints its help when called alone, and says what a mistyped command may have meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without any print the help and be done."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named.

        Raises:
            click.UsageError: there is none, or it is something else that looks like one.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), n=2, cutoff=0.5)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            path = ctx.command_path
            raise click.UsageError(f"no such command '{name}'.{meant} {path} --help lists them.", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(HelpGroup):
    """A group whose commands are imported when they are called; ``--help`` reads their lines from a table.

    Args:
        table: its commands, in the order of the help.
        package: the package that the table's modules stand in.
        given: as for ``click.Group``.
    """

    def __init__(self, *, table: Table, package: str, **given: Any) -> None:
        super().__init__(**given)
        self._table = table
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands' names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, None when there is none of that name."""
        if cmd_name not in self._table:
            return None
        module, attribute, _ = self._table[cmd_name]
        command = getattr(import_module(f".{module}", self._package), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.{attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._table.items()])
