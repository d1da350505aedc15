"""``aucsched slurm``: the group; each of its commands is a file here, imported when it is called."""

from __future__ import annotations

import click

from ..groups import LazyGroup

#: Command name -> (module here, attribute, one line for --help).
COMMANDS = {
    "shadow": ("shadow", "shadow", "Log what the auction would start; Slurm schedules as before."),
    "run": ("run", "run", "Start the jobs behind the gate on the auction's nodes, pass after pass."),
    "doctor": ("doctor", "doctor", "Check whether the loop works with this Slurm."),
    "gate": ("gate", "gate", "Put the gate up or down, print its state, put waiting jobs behind it."),
    "report": ("report", "report", "Compare Slurm and the auction from a shadow's logs."),
    "status": ("status", "status", "Show the state of the cluster, the gate and the loops."),
    "config": ("config", "config", "Print a configuration file with every option's default."),
    "unit": ("unit", "unit", "Print the systemd unit of a loop."),
    "panel": ("unit", "panel", "Print a Grafana dashboard of the loops' figures."),
}


@click.group(cls=LazyGroup, table=COMMANDS, package=__package__)
def slurm() -> None:
    """Schedule a live Slurm from outside: watch it, run behind a gate, hand back."""
