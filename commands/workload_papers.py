"""``aucsched workload esp … table-8.6``: make the papers' workloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, taken_from
from .built_options import in_order, record_options
from .outputs import output_option, with_topology

if TYPE_CHECKING:
    from ..cluster.workload import ClusterWorkload
    from ..simulation.workloads.named_clusters import EvenCluster

_MOST_NODES = 100_000


@dataclass(kw_only=True)
class SeedOption:
    """What is drawn."""

    seed: Option[int] = Option("Seed of everything drawn.", default=0, low=0)


@dataclass(kw_only=True)
class SpreadOption:
    """When jobs arrive."""

    arrival_share: Option[float] = Option(
        "Arrivals are uniform over this share of the theoretical run time.",
        default=0.25,
        low=0,
        high=1000,
        includes_low=True,
        spelling="arrival-spread",
    )


@dataclass(kw_only=True)
class ClusterOptions:
    """The size of a cluster of equal nodes."""

    nodes: Option[int] = Option("Number of nodes.", default=1408, low=1, high=_MOST_NODES)
    cores: Option[int] = Option("Number on each node.", default=12, low=1, high=10**6)
    gpus: Option[int] = Option("Number on each node.", default=3, low=0, high=1000)
    topology: Option[str] = Option(
        "tree (16 nodes a leaf switch, 8 leaves a switch), linear, or what aucsched topology reads (a file, "
        "torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, blocks:8x18).",
        default="tree",
        unit="TOPOLOGY",
    )


@dataclass(kw_only=True)
class EspOptions(SeedOption, ClusterOptions):
    """The options of both ESP workloads."""

    arrival_mean_s: Option[float | None] = Option(
        "Mean seconds between arrivals.",
        default="spread over a quarter of the theoretical run time",
        low=0,
        high=10**9,
        includes_low=True,
        spelling="arrival-mean-s",
    )
    arrival_sd_s: Option[float | None] = Option(
        "Standard deviation of the seconds between arrivals.",
        default="half the mean",
        low=0,
        high=10**9,
        includes_low=True,
        spelling="arrival-sd-s",
    )


@dataclass(kw_only=True)
class MixOptions(SpreadOption, SeedOption, ClusterOptions):
    """The options of a mix of section 7.3.2."""

    hours: Option[float] = Option("Theoretical run time of the workload.", default=4.0, low=0, high=10_000)
    max_cores: Option[int | None] = Option(
        "Cores of the largest job.", default="those of 43 whole nodes", low=1
    )
    for_ipsched: Option[bool] = Option(
        "Write node jobs as (cores, nodes): ipsched has no cores per node.", default=False
    )


@dataclass(kw_only=True)
class TableRecord(SpreadOption, SeedOption):
    """The options of every table of chapter 8."""

    divisors: Option[str | None] = Option(
        "Kinds B to E ask for (cores / one of these) nodes.", default="4,8 (8.5: 8,16)", unit="N,…"
    )
    cores_per_gpu: Option[str | None] = Option(
        "Kinds C to E ask for cores / (one of these · GPUs a node) nodes, as in section 7.3.2 of the thesis.",
        default="as kind B, by --divisors",
        unit="N,…",
    )
    gpu_ranges: Option[bool] = Option(
        "Kinds C and D ask for 1-3 and 2-3 GPUs per node (C', D').", default=False
    )


@dataclass(kw_only=True)
class ContiguityOption:
    """Whether jobs ask for consecutive nodes."""

    contiguity: Option[Literal["honour", "drop"]] = Option(
        "Jobs ask for consecutive nodes as in the table, or none does (table A.5).", default="honour"
    )


_esp = in_order([record_options(EspOptions), output_option])
_row = click.option("--id", "row", required=True, metavar="ID", help="Number of the workload in the table.")
_table_options = in_order([_row, record_options(TableRecord), output_option])
_contiguity = record_options(ContiguityOption)


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

    given = taken_from(EspOptions, options)
    made = esp_workload(
        _taken_cluster(given),
        seed=given.seed,
        gpus=gpus,
        arrival_mean_s=given.arrival_mean_s,
        arrival_sd_s=given.arrival_sd_s,
    )
    _write(output, _on_network(made, given))


@click.command("soner")
@click.option(
    "--id",
    "mix",
    type=click.Choice(("I", "II", "III", "IV", "V"), case_sensitive=False),
    required=True,
    help="Mix of table 7.2.",
)
@record_options(MixOptions)
@output_option
def soner(mix: str, output: Path, **options: Any) -> None:
    """Make a workload of mix I to V (Soner, section 7.3.2)."""
    from ..simulation.workloads.soner import SonerOptions, soner_workload

    given = taken_from(MixOptions, options)
    chosen = SonerOptions(
        hours=given.hours,
        max_cores=given.max_cores,
        for_ipsched=given.for_ipsched,
        arrival_share=given.arrival_share,
    )
    made = soner_workload(mix, _taken_cluster(given), seed=given.seed, options=chosen)
    _write(output, _on_network(made, given))


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
    from ..simulation.workloads.soner import TableOptions, table_workload

    given = taken_from(TableRecord, options)
    chosen = TableOptions(
        drop_contiguity=options.get("contiguity") == "drop",
        gpu_ranges=given.gpu_ranges,
        divisors=_numbers("--divisors", given.divisors),
        cores_per_gpu=_numbers("--cores-per-gpu", given.cores_per_gpu) or (),
        arrival_share=given.arrival_share,
    )
    _write(output, table_workload(table, options["row"], seed=given.seed, options=chosen))


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the numbers that an option lists; None where it is not given."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isdecimal() and part.isascii() and 0 < int(part) <= _MOST_NODES for part in parts):
        raise OptionError(f"{option}: {text!r} is not a list of numbers from 1 to {_MOST_NODES}, like 4,8")
    return tuple(map(int, parts))


def _taken_cluster(given: ClusterOptions) -> EvenCluster:
    from ..simulation.workloads.named_clusters import EvenCluster

    return EvenCluster(nodes=given.nodes, cores=given.cores, gpus=given.gpus, tree=given.topology == "tree")


def _on_network(made: ClusterWorkload, given: ClusterOptions) -> ClusterWorkload:
    """Return a workload on the network of ``--topology``, where that is not the papers' tree."""
    return made if given.topology == "tree" else with_topology(made, given.topology)


def _write(output: Path, made: ClusterWorkload) -> None:
    from ..formats.native.cluster_file import save_workload

    save_workload(made, output)
