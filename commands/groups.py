"""Groups of commands: help on standard output where nothing is asked for, a suggestion for a slip."""

from __future__ import annotations

from difflib import get_close_matches

import click


class Group(click.Group):
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
