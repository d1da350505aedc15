"""``aucsched workload alibaba``: a workload from Alibaba's GPU cluster traces of 2023."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .outputs import output_option

_PATH = click.Path(allow_dash=True)


@click.command()
@click.option("--nodes", type=_PATH, required=True, help="Node list: openb_node_list_….csv, plain or gzip.")
@click.option("--pods", type=_PATH, required=True, help="Pod list: openb_pod_list_….csv, plain or gzip.")
@click.option(
    "--gpus",
    type=click.Choice(["shares", "separate"]),
    default="shares",
    show_default=True,
    help="Count gpu_milli of all GPUs of a node together, or of each GPU separately: then no share is split.",
)
@click.option(
    "--unscheduled",
    type=click.Choice(["leave-out", "lifetime"]),
    default="leave-out",
    show_default=True,
    help="Pods that never ran: leave them out, or let them run from creation to deletion.",
)
@click.option(
    "--time-limits",
    type=click.Choice(["none", "run-time"]),
    default="none",
    show_default=True,
    help="Time limits of jobs: none, as in the trace, or each pod's true run time.",
)
@output_option
def alibaba(nodes: str, pods: str, output: Path, **options: Any) -> None:
    """Import a node list and a pod list of Alibaba's GPU cluster trace of 2023.

    A pod is one job on one node; cores count in 1/1000, GPUs as the gres gpu_milli. What the workload does
    not hold is listed in its notes and on stderr.
    """
    from ..cluster.errors import OptionError
    from ..formats.alibaba import AlibabaOptions, import_alibaba
    from ..formats.native.workload_file import save_workload
    from .snapshot import tell

    if nodes == pods == "-":
        raise OptionError("--nodes and --pods cannot both be standard input")
    workload, notes = import_alibaba(nodes, pods, AlibabaOptions(**options))
    save_workload(workload, output)
    tell(notes.summary())
