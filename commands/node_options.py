"""``aucsched simulate`` with a workload of nodes: its options and outputs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError, errors_in, shown_name, system_errors
from ..cluster.option_fields import options_in, refuse_given
from ..cluster.option_table import SIMULATE, ValueOptions
from ..simulation.simulate_options import NODE_ONLY_POLICIES, PROMISED, NodeKeywords
from .built_options import click_option, in_order, record_options
from .forecast_options import asked_at, write_forecasts
from .outputs import TopologyOption, note_unread, progress_over, with_topology, write_run

if TYPE_CHECKING:
    from ..api.simulations import Simulation
    from ..cluster.workload import ClusterWorkload
    from ..simulation.nodes.node_policies import NodeOptions

#: How many bytes of a file distinguish JSON from a log.
_BEGINNING = 512
#: Options of a machine of nodes, by parameter, and what it reads of them on a log.
_NODE_OPTIONS = options_in(NodeKeywords)
_READ_ON_BOTH = options_in(ValueOptions)
_EVERY = _NODE_OPTIONS | options_in(TopologyOption)
_NODES_ALONE = {name: one for name, one in _EVERY.items() if name not in _READ_ON_BOTH}
#: Options of logs, by parameter.
_LOG_OPTIONS = (
    *("processors", "cluster", "check", "batsim_out", "swf_out", "log_begins"),
    *("queue_weights", "priorities", "user_priorities", "multifactor"),
)


node_options = in_order(
    [*(click_option(one, SIMULATE) for one in _NODE_OPTIONS.values()), record_options(TopologyOption)]
)


def is_native(path: str) -> bool:
    """Return whether a workload file, plain or gzip, is our JSON and no log.

    Raises:
        InputError: it cannot be read.
    """
    import zlib

    from ..formats.reading import GZIP

    with system_errors(path), suppress(zlib.error):  # the log's reader says what is wrong with it
        if path == "-":
            beginning = sys.stdin.buffer.peek(_BEGINNING)[:_BEGINNING]  # type: ignore[union-attr]
        else:
            with Path(path).open("rb") as file:
                beginning = file.read(_BEGINNING)
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        text = unpacking.decompress(beginning) if beginning.startswith(GZIP) else beginning
        return text.lstrip()[:1] == b"{"
    return False


def check_log_options(options: dict[str, Any]) -> None:
    """Refuse what only a machine of nodes has."""
    if options["policy"] in NODE_ONLY_POLICIES:
        raise OptionError(f"--policy {options['policy']} needs a workload of nodes, not a log")
    if options["policy"] != PROMISED:
        refuse_given(options, _READ_ON_BOTH, f"needs --policy {PROMISED} on a log, not {options['policy']}")
    refuse_given(options, _NODES_ALONE, "needs a workload of nodes, not a log")


def simulate_on_nodes(path: str, options: dict[str, Any]) -> None:
    """Play a native workload, write the files that the options name, and print the metrics."""
    (run,) = runs_on_nodes(path, options, [options])
    files = {name: options[name] for name in ("failures", "topology")}
    named = {name: shown_name(path) for name, path in files.items() if path is not None}
    if options["forecasts"] is not None:
        write_forecasts(options["forecasts"], run.result, options)
    write_run(run, path, options, named=named)


def runs_on_nodes(path: str, options: dict[str, Any], each: Sequence[dict[str, Any]]) -> list[Simulation]:
    """Play a workload of nodes; ``each`` has options of a run, ``options`` those of the machine."""
    from ..api.simulations import Simulation
    from ..formats.native.cluster_file import load_workload
    from ..simulation.nodes.node_policies import play

    chosen = [chosen_options(one) for one in each]
    workload = with_topology(load_workload(path), options["topology"])
    note_unread(workload)
    chosen = [with_failures(one, workload, options["failures"]) for one in chosen]
    runs = []
    for one in chosen:
        with progress_over(len(workload.jobs), "jobs" if len(each) == 1 else one.policy) as progress:
            result = play(workload, one, progress)
        name = workload.name or shown_name(path) * (len(each) > 1)
        runs.append(Simulation(result=result, settings=one.settings(), name=name))
    return runs


def chosen_options(options: dict[str, Any]) -> NodeOptions:
    """Return the options of a machine of nodes; one that would be ignored is refused."""
    from ..simulation.nodes.node_policies import NodeOptions
    from .policy_options import check_policy_options

    check_policy_options(options)
    asked_at(options)
    refuse_given(options, _LOG_OPTIONS, "is for logs; this workload has nodes of its own")
    given = {name: options[name] for name in _NODE_OPTIONS}
    if given["failures"] is not None:
        # They are read when the machine is known.
        given["failures"] = ()
    if options["reservations"] is not None:
        if given["reserve"] is not None:
            raise OptionError("--reserve and --reservations both say how many blocked jobs get a reservation")
        given["reserve"] = options["reservations"]
    return NodeOptions(policy=options["policy"], order=options["order"], **given)


def with_failures(chosen: NodeOptions, workload: ClusterWorkload, path: str | None) -> NodeOptions:
    """Return the options with the failures of a file, checked against the machine."""
    if path is None:
        return chosen
    from ..cluster.workload import outages_by_node
    from ..formats.native.cluster_file import load_failures

    outages = load_failures(path)
    with errors_in(path):
        outages_by_node(outages, {node.name: node.state.takes_jobs for node in workload.nodes})
    return chosen.with_failures(outages)
