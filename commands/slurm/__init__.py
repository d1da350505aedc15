"""``aucsched slurm``: commands beside a live Slurm, imported when they are called."""

import click

from ..groups import LazyGroup

#: Where each command stands below the package -> one line for --help.
COMMANDS = {
    "commands.slurm.loops:shadow": "Log what the auction would start; Slurm schedules as before.",
    "commands.slurm.loops:run": "Start the jobs behind the gate on the auction's nodes, pass after pass.",
    "commands.slurm.operate:doctor": "Check whether the loop works with this Slurm.",
    "commands.slurm.gate": "Put the gate up or down, put waiting jobs behind it, take it off them again.",
    "commands.slurm.loops:report": "Compare Slurm and the auction from a shadow's logs.",
    "commands.slurm.operate:status": "Show the state of the cluster, the gate and the loops; Ctrl-C ends it.",
    "commands.slurm.operate:config": "Print a configuration file with every option's default.",
    "commands.slurm.operate:unit": "Print the systemd unit of a loop.",
    "commands.slurm.operate:panel": "Print a Grafana dashboard of the figures that --metrics serves.",
}


@click.group(cls=LazyGroup, table=COMMANDS, package=__package__.partition(".")[0])
def slurm() -> None:
    """Schedule a live Slurm from outside: watch it, run behind a gate, hand back.

    The gate is a Slurm reservation of licences: a job that asks for the licence waits until
    aucsched pins it, that is, names its nodes and takes the licence off. Slurm then starts it.
    """
