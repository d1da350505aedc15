"""``aucsched slurm``: the group; each of its commands is a file here, imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from ..groups import Group

#: Command name -> (module here, attribute, one line for --help).
COMMANDS = {
    "shadow": ("shadow", "shadow", "Watch: what the auction would start, while Slurm goes on as ever."),
    "run": ("run", "run", "Start the jobs behind the gate where the auction puts them, pass after pass."),
    "doctor": ("doctor", "doctor", "Check whether the loop can work beside this Slurm."),
    "gate": ("gate", "gate", "Put the gate up or down, say how it stands, put waiting jobs behind it."),
    "report": ("report", "report", "Say what a shadow's logs say, Slurm and the auction side by side."),
    "status": ("status", "status", "Show how the cluster, the gate and the loops stand."),
    "config": ("config", "config", "Print a configuration file with every option's default."),
    "unit": ("unit", "unit", "Print the systemd unit of a loop."),
    "panel": ("unit", "panel", "Print a Grafana dashboard of the loops' figures."),
}


class SlurmGroup(Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands' names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f".{module}", __package__), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.{attribute} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=SlurmGroup)
def slurm() -> None:
    """Drive a live Slurm from beside it: watch, run behind a gate, hand back."""
