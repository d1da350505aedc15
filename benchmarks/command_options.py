"""A command's parsed options, for benchmarks that call its parts in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from aucsched.cli import cli


def command_options(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command as it is called from the command line, defaults included.

    The command line stands above it: click keeps the help option that the first context gave to a command.
    """
    above = click.Context(cli, info_name="aucsched", **cli.context_settings)
    command = cli.get_command(above, name)
    if command is None:
        raise ValueError(f"no such command '{name}'")
    return dict(command.make_context(name, list(arguments), parent=above).params)
