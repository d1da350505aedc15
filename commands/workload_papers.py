"""``aucsched workload esp … table-8.6``: make the papers' workloads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..cluster.errors import OptionError
from .outputs import output_option
from .topology_override import with_topology

if TYPE_CHECKING:
    from ..cluster.workload import ClusterWorkload
    from ..simulation.workloads.named_clusters import EvenCluster

F = TypeVar("F", bound=Callable[..., Any])

_MOST_NODES = 100_000
_MIXES = ("I", "II", "III", "IV", "V")
_SECONDS = click.FloatRange(0, 10**9)

_seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything drawn."
)
_spread = click.option(
    "--arrival-spread",
    "arrival_share",
    type=click.FloatRange(0, 1000),
    default=0.25,
    show_default=True,
    help="Arrivals are uniform over this share of the theoretical run time.",
)


def _cluster(command: F) -> F:
    """Add the options that size a cluster of equal nodes."""
    for option in (
        click.option(
            "--topology",
            metavar="TOPOLOGY",
            default="tree",
            show_default=True,
            help="16 nodes a leaf switch, 8 leaves a switch; linear; or what aucsched topology reads "
            "(a file, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16).",
        ),
        click.option(
            "--gpus", type=click.IntRange(0, 1000), default=3, show_default=True, help="Number on each node."
        ),
        click.option(
            "--cores",
            type=click.IntRange(1, 10**6),
            default=12,
            show_default=True,
            help="Number on each node.",
        ),
        click.option("--nodes", type=click.IntRange(1, _MOST_NODES), default=1408, show_default=True),
    ):
        command = option(command)
    return command


def _esp(command: F) -> F:
    """Add the options of both ESP workloads."""
    for option in (
        output_option,
        click.option(
            "--arrival-sd-s",
            type=_SECONDS,
            help="Standard deviation of the seconds between arrivals; default: half the mean.",
        ),
        click.option(
            "--arrival-mean-s",
            type=_SECONDS,
            help="Mean seconds between arrivals; default: spread over a quarter of the theoretical run time.",
        ),
        _seed,
        _cluster,
    ):
        command = option(command)
    return command


@click.command("esp")
@_esp
def esp(output: Path, **options: Any) -> None:
    """Make the ESP benchmark's 230 jobs (Soner, table 7.1)."""
    _write_esp(output, options, gpus=False)


@click.command("esp-gpu")
@_esp
def esp_gpu(output: Path, **options: Any) -> None:
    """Make the 458 jobs of ESP with GPUs: each job but Z has a copy that asks for two a node."""
    _write_esp(output, options, gpus=True)


def _write_esp(output: Path, options: dict[str, Any], *, gpus: bool) -> None:
    from ..simulation.workloads.esp import esp_workload

    made = esp_workload(
        _taken_cluster(options),
        seed=options["seed"],
        gpus=gpus,
        arrival_mean_s=options["arrival_mean_s"],
        arrival_sd_s=options["arrival_sd_s"],
    )
    _write(output, _on_network(made, options))


@click.command("soner")
@click.option(
    "--id", "mix", type=click.Choice(_MIXES, case_sensitive=False), required=True, help="Mix of table 7.2."
)
@_cluster
@_seed
@_spread
@click.option(
    "--hours",
    type=click.FloatRange(0, 10_000, min_open=True),
    default=4.0,
    show_default=True,
    help="Theoretical run time of the workload.",
)
@click.option(
    "--max-cores", type=click.IntRange(1), help="Cores of the largest job; default: those of 43 whole nodes."
)
@click.option(
    "--for-ipsched", is_flag=True, help="Write node jobs as (cores, nodes): ipsched has no cores per node."
)
@output_option
def soner(mix: str, output: Path, **options: Any) -> None:
    """Make a workload of mix I to V (Soner, section 7.3.2)."""
    from ..simulation.workloads.soner import SonerOptions, soner_workload

    chosen = SonerOptions(
        hours=options["hours"],
        max_cores=options["max_cores"],
        for_ipsched=options["for_ipsched"],
        arrival_share=options["arrival_share"],
    )
    made = soner_workload(mix, _taken_cluster(options), seed=options["seed"], options=chosen)
    _write(output, _on_network(made, options))


def _table_options(command: F) -> F:
    """Add the options of every table."""
    for option in (
        output_option,
        click.option(
            "--gpu-ranges", is_flag=True, help="Kinds C and D ask for 1-3 and 2-3 GPUs per node (C', D')."
        ),
        click.option(
            "--divisors",
            metavar="N,…",
            help="Kinds B to E ask for (cores / one of these) nodes; default: 4,8 (8.5: 8,16).",
        ),
        _spread,
        _seed,
        click.option("--id", "row", required=True, metavar="ID", help="Number of the workload in the table."),
    ):
        command = option(command)
    return command


_contiguity = click.option(
    "--contiguity",
    type=click.Choice(["honour", "drop"]),
    default="honour",
    show_default=True,
    help="Jobs ask for consecutive nodes as in the table, or none does (table A.5).",
)


@click.command("table-8.4")
@_contiguity
@_table_options
def table_8_4(output: Path, **options: Any) -> None:
    """Make workload 1 to 12 of table 8.4: 1408 nodes, cores only or all kinds."""
    _write_table("8.4", output, options)


@click.command("table-8.5")
@_table_options
def table_8_5(output: Path, **options: Any) -> None:
    """Make workload 1 to 6, 5' or 6' of table 8.5: 1024 nodes below three levels of switches."""
    _write_table("8.5", output, options)


@click.command("table-8.6")
@_contiguity
@_table_options
def table_8_6(output: Path, **options: Any) -> None:
    """Make workload 1 to 9 of table 8.6: 1408 nodes, up to 3491 jobs."""
    _write_table("8.6", output, options)


#: In the order of --help.
GENERATORS = (esp, esp_gpu, soner, table_8_4, table_8_5, table_8_6)


def _write_table(table: str, output: Path, options: dict[str, Any]) -> None:
    from ..simulation.workloads.thesis_tables import TableOptions, table_workload

    chosen = TableOptions(
        drop_contiguity=options.get("contiguity") == "drop",
        gpu_ranges=options["gpu_ranges"],
        divisors=_divisors(options["divisors"]),
        arrival_share=options["arrival_share"],
    )
    _write(output, table_workload(table, options["row"], seed=options["seed"], options=chosen))


def _divisors(text: str | None) -> tuple[int, ...] | None:
    """Return the divisors of ``--divisors``, None where none are given."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isdecimal() and part.isascii() and 0 < int(part) <= _MOST_NODES for part in parts):
        raise OptionError(f"--divisors: {text!r} is not a list of numbers from 1 to {_MOST_NODES}, like 4,8")
    return tuple(map(int, parts))


def _taken_cluster(options: dict[str, Any]) -> EvenCluster:
    from ..simulation.workloads.named_clusters import EvenCluster

    return EvenCluster(
        nodes=options["nodes"],
        cores=options["cores"],
        gpus=options["gpus"],
        tree=options["topology"] == "tree",
    )


def _on_network(made: ClusterWorkload, options: dict[str, Any]) -> ClusterWorkload:
    """Return a workload on the network of ``--topology``, where that is not the papers' tree."""
    source = options["topology"]
    return made if source == "tree" else with_topology(made, source)


def _write(output: Path, made: ClusterWorkload) -> None:
    from ..formats.native.workload_file import save_workload

    save_workload(made, output)
