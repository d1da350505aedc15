"""``aucsched snapshot``, ``check``, ``topology``, ``schema``: make and describe cluster files."""

import re
from pathlib import Path

import click

from ..cluster.checks import check_partitions
from ..cluster.errors import InputError, OptionError, errors_in, shown_name
from ..cluster.option_fields import options_in
from ..cluster.tabular import indented_json
from ..cluster.text import plural
from ..formats.writing import write_text
from ..slurm.answers.slurm_files import SlurmFiles
from .built_options import INPUT, TEXT_OUTPUT, record_options
from .groups import HelpGroup
from .outputs import Output, output_option, output_options, plot_option, snapshot_argument, tell


@click.group(cls=HelpGroup)
def snapshot() -> None:
    """Make a snapshot of a live cluster or of its saved output."""


_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)


answer_options = record_options(SlurmFiles, more={name: {"type": INPUT} for name in options_in(SlurmFiles)})


@snapshot.command()
@answer_options
@click.option(
    "--held",
    type=click.Choice(["skip", "schedule"]),
    default="skip",
    show_default=True,
    help="Jobs held by hand: leave them held, or schedule them: with their saved priorities, those without "
    "one behind all others. A job saved with priority 0 was held then, and stays held.",
)
@click.option(
    "--time",
    metavar="T",
    help="Time of the snapshot: ISO 8601 (UTC) or epoch. Default: the last scheduling pass.",
)
@click.option("-o", "--output", type=TEXT_OUTPUT, default="-", show_default=True, help="The snapshot file.")
def slurm(*, held: str, time: str | None, output: str, **files: str | None) -> None:
    """Make a snapshot from Slurm 21.08 to 26.05: from files of its output, live for the rest.

    A file - is standard input. What the snapshot cannot express is listed in its notes and in a
    job's unsupported, and reported on stderr.
    """
    # Imported here so that --help stays fast.
    from ..formats.native.cluster_file import save_snapshot
    from ..slurm.answers.live import collect
    from ..slurm.answers.snapshot_of_answers import import_slurm

    moment = None if time is None else parse_time("time", time)
    sources, notes = collect(SlurmFiles(**files))
    made, notes = import_slurm(sources, time=moment, schedule_held=held == "schedule", notes=notes)
    if files["jobs"] is not None:
        there = [part.name for part in made.partitions] + [
            name for one in made.nodes for name in one.partitions
        ]
        with errors_in(files["jobs"]):
            check_partitions((job.partition for job in (*made.jobs, *made.running)), there)
    save_snapshot(made, output)
    tell(notes.summary())


def parse_time(name: str, text: str) -> float:
    """Return an option's time in seconds since the epoch; an ISO 8601 time without a zone is UTC.

    Raises:
        OptionError: it is neither seconds from 0 on nor an ISO 8601 time from 1970 to 9999.
    """
    from ..formats.native.forms import read_time

    try:
        return read_time(float(text) if _SECONDS.fullmatch(text) else text, "")
    except InputError:
        message = f"--{name}: {text!r} is neither an ISO 8601 time of 1970 or later nor seconds since 1970"
        raise OptionError(message) from None


@click.command()
@snapshot_argument
@output_options
@click.option(
    "--strict", is_flag=True, help="Refuse a snapshot whose source has rules that aucsched ignores."
)
def check(snapshot: str, out: Output, *, strict: bool) -> None:
    """Read a snapshot, check it, and report what it holds.

    SNAPSHOT is a file, or - for standard input.
    """
    from ..auction.explain.snapshot_report import render_report, report_on
    from ..formats.native.cluster_file import load_snapshot

    report = report_on(load_snapshot(snapshot))
    if strict and report["unread"]:
        rules = plural(len(report["unread"]), "rule")
        raise InputError(
            f"{rules} of the site not looked at: {'; '.join(report['unread'])}", file=shown_name(snapshot)
        )
    out.write(lambda: report, lambda console: render_report(report, console))


@click.command()
@click.argument("topology", metavar="TOPOLOGY", type=INPUT)
@plot_option("Picture of the network: nodes by leaf group, and their order")
@output_options
def topology(topology: str, plot: Path | None, out: Output) -> None:
    """Check a network as a graph; describe it and draw it.

    The output has its levels, groups and distances, and the order of its nodes. TOPOLOGY is
    topology.conf, topology.yaml, scontrol show topology, a snapshot or workload, the topology
    member of one, GraphML, node-link JSON (- for standard input); or torus:16x8x8,
    dragonfly:9x4x2x2 (groups, routers of each, nodes and global links of a router), fat-tree:3x16
    (levels, radix), blocks:8x18 (blocks, nodes of each).
    """
    from ..auction.explain.snapshot_report import network_document, network_report, render_network
    from ..formats.notes import Notes
    from ..slurm.answers.topology_any import load_topology

    notes = Notes()
    with errors_in(topology):
        named = load_topology(topology, None, notes)
        report = network_report(named.names, named.laid.switches, named.laid.network)
    tell(notes.summary())
    if plot is not None:
        from ..reports.machine_picture import draw_network

        draw_network(report, plot)
    out.write(lambda: network_document(report), lambda console: render_network(report, console))


_FILES = ("snapshot", "workload", "schedule", "plan")


@click.command()
@click.argument("name", metavar="|".join(_FILES), type=click.Choice(_FILES))
@output_option
def schema(name: str, output: Path) -> None:
    """Print the JSON Schema of a snapshot, workload, schedule or plan.

    The draft is 2020-12.
    """
    from ..formats.native.json_schema import schema_of

    write_text(output, indented_json(schema_of(name)))
