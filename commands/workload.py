"""``workload``: look at workloads; make the papers': ``esp`` to ``table-8.6``, ``ischeduler``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in, shown_name
from ..cluster.option_fields import Option, flag_of, options_in, refuse_given, taken_from
from ..cluster.text import one_line
from ..formats.writing import write_text
from ..simulation.workloads.workload_options import ContiguityOption, SonerOptions, TableOptions, TableRecord
from .built_options import INPUT, filled_options, in_order, record_options
from .groups import HelpGroup
from .outputs import (
    format_option,
    output_option,
    plot_option,
    processors_option,
    read_log,
    with_topology,
    workload_argument,
)
from .workload_logs import IMPORTS, MOST_NODES

if TYPE_CHECKING:
    from ..cluster.workload import ClusterWorkload
    from ..simulation.workloads.named_clusters import EvenCluster


@dataclass(kw_only=True)
class SeedOption:
    """What is drawn."""

    seed: Option[int] = Option("Seed of everything drawn.", default=0, low=0)


@dataclass(kw_only=True)
class ClusterOptions:
    """The size of a cluster of equal nodes."""

    nodes: Option[int] = Option("Number of nodes.", default=1408, low=1, high=MOST_NODES)
    cores: Option[int] = Option("Cores of each node.", default=12, low=1, high=10**6)
    gpus: Option[int] = Option("GPUs of each node.", default=3, low=0, high=1000)
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


_row = click.option("--id", "row", required=True, metavar="ID", help="Number of the workload in the table.")
_table_options = in_order([_row, record_options(SeedOption, TableRecord), output_option])


def _esp(name: str, about: str, *, gpus: bool) -> click.Command:
    """Return the command that makes an ESP workload, with what its help says."""

    @click.command(name, help=about)
    @record_options(EspOptions)
    @output_option
    def esp(output: Path, **options: Any) -> None:
        from ..formats.native.cluster_file import save_workload
        from ..simulation.workloads.esp import esp_workload

        given = taken_from(EspOptions, options)
        made = esp_workload(
            _taken_cluster(given),
            seed=given.seed,
            gpus=gpus,
            arrival_mean_s=given.arrival_mean_s,
            arrival_sd_s=given.arrival_sd_s,
        )
        save_workload(_on_network(made, given), output)

    return esp


@click.command("soner")
@click.option(
    "--id",
    "mix",
    type=click.Choice(("I", "II", "III", "IV", "V"), case_sensitive=False),
    required=True,
    help="Mix of table 7.2.",
)
@record_options(ClusterOptions, SeedOption, SonerOptions)
@output_option
def soner(mix: str, output: Path, **options: Any) -> None:
    """Make a workload of mix I to V (Soner, section 7.3.2)."""
    from ..formats.native.cluster_file import save_workload
    from ..simulation.workloads.soner import soner_workload

    given, seed = taken_from(ClusterOptions, options), taken_from(SeedOption, options).seed
    made = soner_workload(mix, _taken_cluster(given), seed=seed, options=taken_from(SonerOptions, options))
    save_workload(_on_network(made, given), output)


def _table(table: str, about: str, *more: type) -> click.Command:
    """Return the command that makes a table's workload, with its help text and more options."""

    @click.command(f"table-{table}", help=about)
    @record_options(*more)
    @_table_options
    def from_table(output: Path, **options: Any) -> None:
        from ..formats.native.cluster_file import save_workload
        from ..simulation.workloads.soner import table_workload

        read = {name: _numbers(flag_of(name), options[name]) for name in ("divisors", "cores_per_gpu")}
        chosen, seed = taken_from(TableOptions, {**options, **read}), taken_from(SeedOption, options).seed
        save_workload(table_workload(table, options["row"], seed=seed, options=chosen), output)

    return from_table


#: In the order of --help.
GENERATORS = (
    _esp("esp", "Make the ESP benchmark's 230 jobs (Soner, table 7.1).", gpus=False),
    _esp(
        "esp-gpu",
        "Make the 458 jobs of ESP with GPUs: each job but Z has a copy that asks for two a node.",
        gpus=True,
    ),
    soner,
    _table(
        "8.4",
        "Make workload 1 to 12 of table 8.4: 1408 nodes, cores only or all kinds.",
        ContiguityOption,
    ),
    _table("8.5", "Make workload 1 to 6, 5' or 6' of table 8.5: 1024 nodes below three levels of switches."),
    _table("8.6", "Make workload 1 to 9 of table 8.6: 1408 nodes, up to 3491 jobs.", ContiguityOption),
)


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the numbers that an option lists; None where it is not given."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isdecimal() and part.isascii() and 0 < int(part) <= MOST_NODES for part in parts):
        raise OptionError(f"{option}: {text!r} is not a list of numbers from 1 to {MOST_NODES}, like 4,8")
    return tuple(map(int, parts))


def _taken_cluster(given: ClusterOptions) -> EvenCluster:
    from ..simulation.workloads.named_clusters import EvenCluster

    return EvenCluster(nodes=given.nodes, cores=given.cores, gpus=given.gpus, tree=given.topology == "tree")


def _on_network(made: ClusterWorkload, given: ClusterOptions) -> ClusterWorkload:
    """Return a workload on the network of ``--topology``, where that is not the papers' tree."""
    return made if given.topology == "tree" else with_topology(made, given.topology)


@dataclass(kw_only=True)
class TraceSize:
    """How large a trace is."""

    jobs: Option[int] = Option("", default=10_000, low=1, high=10**6)
    processors: Option[int | None] = Option(
        "Processors of the machine; default: 128 for system, 64 for a user.", low=1, high=10**6
    )


@dataclass(kw_only=True)
class SystemTrace:
    """What a trace of a system's jobs reads."""

    load: Option[float | None] = Option("For system: offered load; default 0.7.", low=0, high=100)
    model: Option[str | None] = Option(
        "For system: model that `workload fit` wrote; default: SDSC SP2's first rows.", unit="FILE"
    )
    max_size: Option[int | None] = Option(
        "For system: largest size of a job; default: half the machine.", low=1
    )


@dataclass(kw_only=True)
class UserTrace:
    """What a trace of one user's jobs reads."""

    beta: Option[float | None] = Option(
        "For a user: factor on the time between arrivals; default 0.5.", low=0, high=10**9
    )
    ge_p4_s: Option[float | None] = Option(
        "Run time of GE's P4; default 22300 (table 1 prints 3857).", low=0, high=10**9, spelling="ge-p4-s"
    )
    block_bytes: Option[float | None] = Option("SeqBlockSize of CL; default 1000.", low=0, high=10**9)


@click.command("ischeduler")
@click.argument("kind", type=click.Choice(["system", "STEN", "GE", "CL", "MIXED"]))
@filled_options(TraceSize, SeedOption, SystemTrace, UserTrace)
@output_option
def ischeduler(kind: str, output: Path, **options: Any) -> None:
    """Make a trace of applications (SWF): a system's jobs, or one user's (Weissman, 4.1 and 4.2).

    What a job asks for are its ideal processors, its run time is the one on those. A file with the
    ending .gz is compressed.
    """
    from ..formats.reading import read_document
    from ..formats.swf import write_swf
    from ..simulation.workloads.application_traces import SDSC_SP2, model_of, system_trace, user_trace

    own, foreign = (SystemTrace, UserTrace) if kind == "system" else (UserTrace, SystemTrace)
    refuse_given(options, options_in(foreign), f"is not of a {kind} trace")
    given = {name: options[name] for name in options_in(own) if options[name] is not None and name != "model"}
    if options["processors"] is not None:
        given["processors"] = options["processors"]
    given |= {"jobs": options["jobs"], "seed": options["seed"]}
    model = SDSC_SP2 if options["model"] is None else read_document(options["model"], model_of)
    made = system_trace(model, **given) if kind == "system" else user_trace(kind, **given)
    write_swf(output, made)


@click.command("fit")
@click.argument("log", type=INPUT)
@output_option
def fit_log(log: str, output: Path) -> None:
    """Fit a model of system-centric traces to a log (SWF): JSON that ischeduler --model reads."""
    from ..formats.swf import load_swf
    from ..simulation.report import to_json
    from ..simulation.workloads.application_traces import fit

    rows = load_swf(log)
    source = rows.header("Computer")
    name = shown_name(log) if source is None else f"{one_line(source)} ({shown_name(log)})"
    with errors_in(log):
        model = fit(rows, name)
    write_text(output, to_json(model.to_document()))


@click.group(cls=HelpGroup)
def workload() -> None:
    """Describe logs; make and import workloads."""


for _command in (*GENERATORS, *IMPORTS, ischeduler, fit_log):
    workload.add_command(_command)


@workload.command()
@workload_argument
@processors_option
@format_option
@output_option
@plot_option("Chart of sizes, times, hours and load")
def describe(workload: str, processors: int | None, form: str, output: Path, plot: Path | None) -> None:
    """Print what a workload or a log holds.

    Both are read plain or gzip; a log is in the Standard Workload Format; - reads standard input.
    --processors and --plot are for logs only.
    """
    from ..formats.file_kinds import is_json
    from ..formats.reading import read_document
    from ..simulation.report import to_json

    content = read_document(workload, bytes)
    if is_json(content):
        figures, text = _described_workload(workload, content, processors, plot)
    else:
        figures, text = _described_log(workload, content, processors, plot)
    write_text(output, to_json(figures) if form == "json" else text)


def _described_workload(
    name: str, content: bytes, processors: int | None, plot: Path | None
) -> tuple[dict[str, Any], str]:
    """Return a workload's figures, and as text."""
    from ..formats.native.cluster_file import parse_workload
    from ..simulation.workloads.describe import cluster_text, describe_cluster

    for option, value in (("--processors", processors), ("--plot", plot)):
        if value is not None:
            raise OptionError(f"{option} is for logs: {shown_name(name)} is a workload and has its machine")
    with errors_in(name):
        figures = describe_cluster(parse_workload(content))
    return figures, cluster_text(figures, shown_name(name))


def _described_log(
    name: str, content: bytes, processors: int | None, plot: Path | None
) -> tuple[dict[str, Any], str]:
    """Return a log's figures, and as text; draw it where it is asked for."""
    from ..reports.curves import draw_workload
    from ..simulation.workloads.describe import describe as figures_of
    from ..simulation.workloads.describe import description_text

    log, jobs = read_log(name, content, processors)
    if plot is not None:
        with errors_in(name):
            draw_workload(jobs, log, plot)
    figures = figures_of(jobs, log)
    return figures, description_text(figures, shown_name(name))
