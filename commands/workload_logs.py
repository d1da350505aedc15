"""``workload slurm-events, alibaba, from-swf, from-csv, from-sacct``: logs made into workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in, shown_name
from ..cluster.option_fields import Option
from ..cluster.text import one_line
from ..formats.alibaba_options import AlibabaOptions
from ..formats.notes import Notes
from .built_options import INPUT, filled_options
from .outputs import output_option, tell, workload_argument

if TYPE_CHECKING:
    from ..cluster.workload import ClusterWorkload

MOST_NODES = 100_000


@dataclass(kw_only=True)
class MachineRecord:
    """On which machine the jobs are put."""

    nodes: Option[str | None] = Option(
        "Equal nodes; or a file with the output of scontrol show nodes, plain or --json, or of sinfo --json "
        "of Slurm 22.05.",
        unit="NUMBER|FILE",
    )
    cores: Option[int | None] = Option("Number on each node.", low=1, high=10**6)
    gpus: Option[int] = Option("Number on each node.", default=0, low=0, high=1000)
    switch: Option[str | None] = Option(
        "Nodes per leaf switch, and leaf switches per upper switch; default: no switches.",
        unit="NODES[,LEAVES]",
    )


machine_options = filled_options(MachineRecord)


@click.command("from-swf")
@workload_argument
@machine_options
@output_option
def from_swf(workload: str, output: Path, **machine: Any) -> None:
    """Put a log's jobs (SWF, plain or gzip; - reads standard input) on equal nodes.

    Processors are cores, which spread freely over nodes. What is omitted or cut is listed in the
    workload's notes and on stderr.
    """
    from ..formats.swf import load_swf
    from ..simulation.workloads.imported import workload_of_log

    log = load_swf(workload)
    _write(workload, output, machine, lambda name, empty: workload_of_log(name, log, empty))


@click.command("from-csv")
@workload_argument
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="WHAT=NAME",
    help="Names of columns: id, time, duration, start, end, limit, nodes, cores, gpus, priority, user, "
    "account, partition, qos; several with commas. Columns of usual names are found.",
)
@machine_options
@output_option
def from_csv(workload: str, columns: tuple[str, ...], output: Path, **machine: Any) -> None:
    """Put the jobs of a CSV file, one in each row, on equal nodes.

    Times are seconds or dates, durations and limits seconds or [D-]HH:MM:SS. GPUs are of all a
    job's nodes together.
    """
    from ..formats.delimited import read_table
    from ..formats.reading import read_document
    from ..simulation.workloads.from_table import workload_of_table

    given, table = _pairs(columns), read_document(workload, read_table)
    _write(workload, output, machine, lambda name, empty: workload_of_table(name, table, given, empty))


@click.command("from-sacct")
@workload_argument
@machine_options
@output_option
def from_sacct(workload: str, output: Path, **machine: Any) -> None:
    """Put the jobs of sacct -X -P's output on nodes, each with its start, owner, memory and gres.

    It needs the columns JobID, Submit, ElapsedRaw (or Start and End); aucsched gain --help names
    all that it reads. Steps and jobs that never ran are left out and counted.
    """
    from ..formats.delimited import read_table
    from ..formats.reading import read_document
    from ..simulation.workloads.from_table import workload_of_sacct

    table = read_document(workload, lambda content: read_table(content, "|"))
    _write(workload, output, machine, lambda name, empty: workload_of_sacct(name, table, empty))


@click.command("slurm-events")
@click.argument("events", metavar="EVENTS", type=INPUT)
@click.option(
    "--conf",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder with slurm.conf, and gres.conf and topology.conf where the site has them.",
)
@output_option
def slurm_events(events: str, conf: Path, output: Path) -> None:
    """Import a Slurm site's submissions (an event file of the Slurm simulator, plain or gzip).

    What the workload does not hold is listed in its notes and on stderr.
    """
    from ..slurm.site.scheduler_log import import_events

    _save(output, *import_events(events, conf))


@click.command()
@click.option("--nodes", type=INPUT, required=True, help="Node list: openb_node_list_….csv, plain or gzip.")
@click.option("--pods", type=INPUT, required=True, help="Pod list: openb_pod_list_….csv, plain or gzip.")
@filled_options(AlibabaOptions)
@output_option
def alibaba(nodes: str, pods: str, output: Path, **options: Any) -> None:
    """Import a node list and a pod list of Alibaba's GPU cluster trace of 2023.

    A pod is one job on one node; cores count in 1/1000, GPUs as the gres gpu_milli. What the
    workload does not hold is listed in its notes and on stderr.
    """
    from ..formats.alibaba import import_alibaba

    _save(output, *import_alibaba(nodes, pods, AlibabaOptions(**options)))


#: In the order in which help lists them.
IMPORTS = (slurm_events, alibaba, from_swf, from_csv, from_sacct)


def read_machine(
    nodes: str | None, cores: int | None, gpus: int, switch: str | None
) -> tuple[ClusterWorkload, Notes]:
    """Return the machine that the options describe, without jobs, and what it does not hold.

    Raises:
        InputError: the file of nodes cannot be read; names it.
        OptionError: the options contradict each other.
    """
    from ..formats.reading import read_document
    from ..simulation.workloads.named_clusters import EvenCluster
    from ..slurm.answers.node_records import empty_machine

    if nodes is None:
        raise OptionError("--nodes is missing: a number of equal nodes, or a file of the site's")
    if not (nodes.isascii() and nodes.removeprefix("-").isdecimal()):
        for option, value in (("--cores", cores), ("--gpus", gpus), ("--switch", switch)):
            if value:
                raise OptionError(
                    f"{option} is for a number of equal nodes; {shown_name(nodes)} says what they have"
                )
        return read_document(nodes, empty_machine)
    if not 1 <= int(nodes) <= MOST_NODES:
        raise OptionError(f"--nodes {nodes} is not from 1 to {MOST_NODES}")
    if cores is None:
        raise OptionError("--nodes NUMBER needs --cores, the number on each node")
    size: dict[str, Any] = {"nodes": int(nodes), "cores": cores, "gpus": gpus}
    if switch is None:
        return EvenCluster(**size, tree=False).empty(), Notes()
    parts = switch.split(",")
    if len(parts) > 2 or not all(  # noqa: PLR2004 - two levels
        part.isascii() and part.isdecimal() and 0 < int(part) <= MOST_NODES for part in parts
    ):
        raise OptionError(f"--switch {switch}: neither NODES nor NODES,LEAVES")
    leaves = int(parts[1]) if len(parts) > 1 else MOST_NODES
    return EvenCluster(**size, leaf_nodes=int(parts[0]), switch_leaves=leaves).empty(), Notes()


def _pairs(columns: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for part in (part for text in columns for part in text.split(",")):
        what, equals, name = part.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--column {part!r} is not WHAT=NAME")
        if what.strip() in given:
            raise OptionError(f"--column: {what.strip()} is given twice")
        given[what.strip()] = name.strip()
    return given


def _write(
    source: str,
    output: Path,
    machine: dict[str, Any],
    make: Callable[[str, ClusterWorkload], tuple[ClusterWorkload, Notes]],
) -> None:
    """Write what is made of a log on a machine, and say what is left out; errors name the file."""
    empty, said = read_machine(**machine)
    with errors_in(source):
        made, notes = make(one_line(Path(source).name), empty)
    _save(output, made, said, notes)


def _save(output: Path, made: ClusterWorkload, *notes: Notes) -> None:
    """Write a workload and say what it does not hold."""
    from ..formats.native.cluster_file import save_workload

    save_workload(made, output)
    for one in notes:
        tell(one.summary())
