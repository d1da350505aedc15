"""``aucsched simulate`` with a workload of nodes: its options and outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..cluster.errors import InputError, OptionError
from ..cluster.option_table import SIMULATE, read_by
from .built_options import click_option
from .outputs import file_name, progress_over, shown
from .topology_override import note_unread, topology_option, with_topology

if TYPE_CHECKING:
    from ..cluster.workload import ClusterWorkload
    from ..simulation.nodes.node_policies import NodeOptions
    from ..simulation.nodes.node_result import NodeResult

F = TypeVar("F", bound=Callable[..., Any])

#: Repeated here so that --help need not load numpy.
NODE_ONLY_POLICIES = ("backfill-slurm", "backfill-planned", "ipsched", "aucsched1", "aucsched2")
#: The auction that plays logs too, and what it reads there of the options of an auction.
ON_BOTH, READ_ON_BOTH = "aucsched3", ("objective", "promise")
#: How many bytes of a file distinguish JSON from a log.
_BEGINNING = 512
_COUNT = click.IntRange(1, 10**7)
#: Options of a machine of nodes, by parameter.
_NODE_OPTIONS: dict[str, Callable[[Any], Any]] = {
    **{
        option.name: click_option(option, SIMULATE, before="On nodes. ", ranges=True)
        for option in read_by(SIMULATE)
    },
    "interval_s": click.option(
        "--interval",
        "interval_s",
        type=click.FloatRange(0, 10**6, min_open=True),
        metavar="SECONDS",
        help="On nodes: seconds between passes (SCHED_INTERVAL); default: a pass after every event.",
    ),
    "selection": click.option(
        "--selection",
        type=click.Choice(["first", "best", "next"]),
        help="On nodes: how fcfs, easy and reservations choose nodes; default first.",
    ),
    "backfill_interval_s": click.option(
        "--backfill-interval",
        "backfill_interval_s",
        type=click.FloatRange(0, 10**6),
        metavar="SECONDS",
        help="On nodes, for Slurm's backfills: bf_interval; default 30; 0: in every pass.",
    ),
    "preempt": click.option(
        "--preempt",
        is_flag=True,
        default=None,
        help="On nodes: blocked jobs may stop running ones that pay less (credits_per_core_h), where that "
        "earns more than it loses; their work is paid for.",
    ),
    "credits": click.option(
        "--credits",
        type=click.FloatRange(0, 10**15),
        help="On nodes, with --preempt: credits of each user at the start; default: unlimited.",
    ),
    "topology": topology_option,
    "failures": click.option(
        "--failures",
        type=click.Path(allow_dash=True),
        help="On nodes: file of outages (JSON, see docs/nodes.md).",
    ),
    "mtbf_s": click.option(
        "--mtbf",
        "mtbf_s",
        type=click.FloatRange(0, 10**12, min_open=True),
        metavar="SECONDS",
        help="On nodes: mean time between failures of a node, exponential; needs --mttr.",
    ),
    "mttr_s": click.option(
        "--mttr",
        "mttr_s",
        type=click.FloatRange(0, 10**12, min_open=True),
        metavar="SECONDS",
        help="On nodes: mean time to repair of a node, exponential.",
    ),
    "failure_seed": click.option(
        "--failure-seed", type=click.IntRange(0, 2**31 - 1), help="On nodes: seed of the failures; default 0."
    ),
    "on_failure": click.option(
        "--on-failure",
        type=click.Choice(["requeue", "lost"]),
        help="On nodes: what happens to the jobs of a failed node; default requeue.",
    ),
    "max_requeues": click.option(
        "--max-requeues",
        type=click.IntRange(0, 10**7),
        help="On nodes: requeues of one job before it counts as lost; default 100.",
    ),
}
#: Options of logs, by parameter, with the value that means: not given.
_LOG_OPTIONS: dict[str, Any] = {
    "processors": None,
    "cluster": None,
    "check": False,
    "batsim_out": None,
    "swf_out": None,
    "forecasts": None,
    "forecast_at": None,
    "queue_weights": None,
    "priorities": None,
    "log_begins": None,
    "user_priorities": None,
    "multifactor": None,
}


def node_options(command: F) -> F:
    """Give a command the options of a machine of nodes."""
    for option in reversed(_NODE_OPTIONS.values()):
        command = option(command)
    return command


def is_native(path: str) -> bool:
    """Return whether a workload file, plain or gzip, is our JSON and no log.

    Raises:
        InputError: it cannot be read.
    """
    import zlib

    from ..formats.reading import GZIP

    try:
        if path == "-":
            beginning = sys.stdin.buffer.peek(_BEGINNING)[:_BEGINNING]  # type: ignore[union-attr]
        else:
            with Path(path).open("rb") as file:
                beginning = file.read(_BEGINNING)
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        text = unpacking.decompress(beginning) if beginning.startswith(GZIP) else beginning
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from error
    except zlib.error:
        # The log's reader says what is wrong with it.
        return False
    return text.lstrip()[:1] == b"{"


def check_log_options(options: dict[str, Any]) -> None:
    """Refuse what only a machine of nodes has."""
    if options["policy"] in NODE_ONLY_POLICIES:
        raise OptionError(f"--policy {options['policy']} needs a workload of nodes, not a log")
    for name in _NODE_OPTIONS:
        if options[name] is None or (name in READ_ON_BOTH and options["policy"] == ON_BOTH):
            continue
        if name in READ_ON_BOTH:
            raise OptionError(f"{_flag(name)} needs --policy {ON_BOTH} on a log, not {options['policy']}")
        raise OptionError(f"{_flag(name)} needs a workload of nodes, not a log")


def _flag(name: str) -> str:
    return f"--{name.removesuffix('_s').replace('_', '-')}"


def simulate_on_nodes(path: str, options: dict[str, Any]) -> None:
    """Play a native workload, write the files that the options name, and print the metrics."""
    from ..formats.drawing import check_drawing
    from ..formats.native.workload_file import load_workload
    from ..formats.native.write import write_text
    from ..simulation.nodes.node_policies import play
    from ..simulation.nodes.node_report import to_node_document, to_node_text
    from ..simulation.report import to_json

    chosen = chosen_options(options)
    if path == "-" == options["failures"]:
        raise OptionError("--failures - and the workload would both read standard input")
    check_drawing("--gantt", options["gantt"])
    check_drawing("--plot", options["plot"])
    workload = with_topology(load_workload(path), options["topology"])
    note_unread(workload)
    chosen = with_failures(chosen, workload, options["failures"])
    with progress_over(len(workload.jobs)) as progress:
        result = play(workload, chosen, progress)
    _write(result, options, workload.name or file_name(path))
    if options["html"] is not None:
        from ..api.simulations import Simulation
        from ..reports.run_pages import simulation_page

        run = Simulation(result=result, settings=chosen.settings(), name=workload.name)
        write_text(options["html"], simulation_page([run], workload.name or file_name(path)))
    if options["form"] == "json":
        files = ("failures", "topology")
        named = {name: shown(options[name]) for name in files if options[name] is not None}
        write_text(options["output"], to_json(to_node_document(result, {**chosen.settings(), **named})))
    else:
        write_text(options["output"], to_node_text(result, workload.name or shown(path)))


def chosen_options(options: dict[str, Any]) -> NodeOptions:
    """Return the options of a machine of nodes; one that would be ignored is refused."""
    from ..simulation.nodes.node_policies import NodeOptions
    from .log_options import check_policy_options

    check_policy_options(options)
    for name, absent in _LOG_OPTIONS.items():
        if options[name] != absent:
            raise OptionError(f"--{name.replace('_', '-')} is for logs; this workload has nodes of its own")
    given = {name: options[name] for name in _NODE_OPTIONS if name != "topology"}
    if given["failures"] is not None:
        # They are read when the machine is known.
        given["failures"] = ()
    if options["reservations"] is not None:
        if given["reserve"] is not None:
            raise OptionError("--reserve and --reservations both say how many blocked jobs get a reservation")
        given["reserve"] = options["reservations"]
    return NodeOptions(policy=options["policy"], order=options["order"], **given)


def read_by_nodes() -> dict[str, tuple[str, ...]]:
    """Return which policies read an option, where not all do."""
    from ..simulation.nodes.node_policies import READ_BY

    return dict(READ_BY)


def with_failures(chosen: NodeOptions, workload: ClusterWorkload, path: str | None) -> NodeOptions:
    """Return the options with the failures of a file, checked against the machine."""
    if path is None:
        return chosen
    from ..cluster.failures import outages_by_node
    from ..formats.native.failures_file import load_failures

    outages = load_failures(path)
    try:
        outages_by_node(outages, {node.name: node.state.takes_jobs for node in workload.nodes})
    except InputError as error:
        raise error.in_file(shown(path)) from error
    return replace(chosen, failures=outages)


def _write(result: NodeResult, options: dict[str, Any], name: str) -> None:
    """Write the files that the options name."""
    from ..formats.native.write import write_text
    from ..simulation.charts.curves import draw_utilization
    from ..simulation.charts.gantt import draw_gantt
    from ..simulation.nodes.node_report import node_jobs_csv
    from ..simulation.placement import place_on_nodes

    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], node_jobs_csv(result))
    if options["gantt"] is not None:
        columns = result.columns
        nodes = (columns.names, columns.total.cores.tolist())
        draw_gantt(result, options["gantt"], place_on_nodes(result), name=name, nodes=nodes)
    if options["plot"] is not None:
        draw_utilization(result, options["plot"], name=name)
