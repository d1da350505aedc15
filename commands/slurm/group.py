"""``aucsched slurm``: the group; each of its commands is a file here, imported when it is called."""

from __future__ import annotations

import click

from ..groups import LazyGroup

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


@click.group(cls=LazyGroup, table=COMMANDS, package=__package__)
def slurm() -> None:
    """Drive a live Slurm from beside it: watch, run behind a gate, hand back."""
