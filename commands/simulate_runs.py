"""The runs of ``aucsched simulate`` on logs and on nodes: their options, checks and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError, errors_in, shown_name
from ..cluster.option_fields import Option, flag_of, options_in, refuse_given
from ..cluster.option_table import SIMULATE, ValueOptions
from ..cluster.text import plural
from ..formats.writing import write_text
from ..simulation.policy_names import naming_as_typed, with_parameters
from ..simulation.simulate_options import (
    EVOLVING,
    MALLEABLE_POLICIES,
    NODE_ONLY_POLICIES,
    PROMISED,
    READ_ON_LOGS,
    RENAMED,
    NodeKeywords,
    OrderOptions,
    PolicyOptions,
    current_name,
    is_read,
)
from .built_options import record_options
from .outputs import (
    TopologyOption,
    file_name,
    note,
    note_unstarted,
    progress_over,
    read_log,
    tell,
    with_topology,
    write_rich,
    write_run,
)
from .policy_options import check_policy_options, refuse_malleable

if TYPE_CHECKING:
    from rich.console import Console

    from ..formats.swf import SwfLog
    from ..simulation.nodes.node_policies import NodeOptions
    from ..simulation.result import Simulation

FORMAT = "aucsched-simulations/1"
#: Files that hold one run.
_OF_ONE_RUN = ("jobs_out", "batsim_out", "swf_out", "gantt", "plot", "forecasts", "forecast_at")


#: When forecasts are asked where nothing is said.
_ASKED_AT = "arrival,0.25,0.5,0.75"


@dataclass(kw_only=True)
class ForecastOptions:
    """The options that ask for forecasts of a run's starts."""

    forecasts: Option[Path | None] = Option(
        "CSV of forecasts: P10, P50 and P90 of each job's start, the plan by limits, and the start."
    )
    forecast_at: Option[str | None] = Option(
        "With --forecasts: arrival and shares of the wait, below 1.", default=_ASKED_AT, unit="WHEN"
    )


def asked_at(options: dict[str, Any]) -> tuple[float, ...]:
    """Return the shares of the wait at which forecasts are asked.

    Raises:
        OptionError: it is no list of ``arrival`` and shares below 1, or nothing asks for forecasts.
    """
    given = options["forecast_at"]
    if given is not None and options["forecasts"] is None:
        raise OptionError("--forecast-at needs --forecasts")
    shares = []
    for part in (_ASKED_AT if given is None else given).split(","):
        try:
            share = 0.0 if part.strip() == "arrival" else float(part)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            raise OptionError(f"--forecast-at {given!r}: {part!r} is neither arrival nor a share below 1")
        shares.append(share)
    return tuple(dict.fromkeys(shares))


def _write_forecasts(
    path: Path,
    result: Simulation,
    options: dict[str, Any],
    log: SwfLog | None = None,
    rank: tuple[float, ...] | None = None,
) -> None:
    """Write the forecasts of a run: of a log, whose queue's order ``rank`` has, or on nodes."""
    from ..simulation.forecast.logged import PLAYED, forecasts_csv, forecasts_of
    from ..simulation.forecast.snapshot_queue import not_played
    from ..simulation.nodes.node_forecasts import node_forecasts_of
    from ..simulation.nodes.node_policies import SLURM_DEPTH
    from ..simulation.nodes.node_result import NodeSimulation

    by_worth = options["policy"] in (PROMISED, *RENAMED) and options["objective"] == "response"
    if not by_worth and RENAMED.get(options["policy"], options["policy"]) not in PLAYED:
        note(f"forecasts play EASY, not {options['policy']}: the calibration corrects what it can")
    depth = options["window"]
    if depth is None and options["policy"].startswith("backfill-"):
        depth = SLURM_DEPTH
    with progress_over(len(result.workload), "jobs forecast") as progress:
        asked: dict[str, Any] = {"asked_at": asked_at(options), "by_worth": by_worth}
        if isinstance(result, NodeSimulation):
            for words in not_played(result.cluster.snapshot()):
                note(words)
            found = node_forecasts_of(result, depth=depth, progress=progress, **asked)
        else:
            found = forecasts_of(result, log, rank=rank, progress=progress, **asked)
        write_text(path, forecasts_csv(result, found))


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


node_options = record_options(NodeKeywords, TopologyOption, reader=SIMULATE)


def check_log_options(options: dict[str, Any]) -> None:
    """Refuse what only a machine of nodes has."""
    if options["policy"] in NODE_ONLY_POLICIES:
        raise OptionError(f"--policy {options['policy']} needs a workload of nodes, not a log")
    if options["policy"] != PROMISED:
        refuse_given(options, _READ_ON_BOTH, f"needs --policy {PROMISED} on a log, not {options['policy']}")
    refuse_given(options, _NODES_ALONE, "needs a workload of nodes, not a log")


def simulate_on_nodes(path: str, content: bytes, options: dict[str, Any]) -> None:
    """Play a native workload, write the files that the options name, and print the metrics."""
    (run,) = _runs_on_nodes(path, content, options, [options])
    files = {name: options[name] for name in ("failures", "topology")}
    named = {name: shown_name(path) for name, path in files.items() if path is not None}
    if options["forecasts"] is not None:
        _write_forecasts(options["forecasts"], run, options)
    write_run(run, path, options, named=named)


def _runs_on_nodes(
    path: str, content: bytes, options: dict[str, Any], each: Sequence[dict[str, Any]]
) -> list[Simulation]:
    """Play a workload of nodes; ``each`` has options of a run, ``options`` those of the machine."""
    from ..cluster.workload import outages_by_node
    from ..formats.native.cluster_file import load_failures, parse_workload
    from ..simulation.nodes.node_policies import play
    from ..simulation.nodes.node_result import unread_members

    failures = None if options["failures"] is None else load_failures(options["failures"])
    chosen = [_chosen_options({**one, "failures": one["failures"] and failures}) for one in each]
    with errors_in(path):
        workload = parse_workload(content)
    workload = with_topology(workload, options["topology"])
    tell(unread_members(workload))
    if options["failures"] is not None:
        with errors_in(options["failures"]):
            takes_jobs = {node.name: node.state.takes_jobs for node in workload.nodes}
            outages_by_node(failures or (), takes_jobs)
    runs: list[Simulation] = []
    for one in chosen:
        with progress_over(len(workload.jobs), "jobs" if len(each) == 1 else one.policy) as progress:
            result = play(workload, one, progress)
        name = workload.name or shown_name(path) * (len(each) > 1)
        runs.append(replace(result, settings=one.settings(), name=name))
    return runs


def _chosen_options(options: dict[str, Any]) -> NodeOptions:
    """Return the options of a machine of nodes; one that would be ignored is refused."""
    from ..simulation.nodes.node_policies import NodeOptions

    check_policy_options(options)
    asked_at(options)
    refuse_given(options, _LOG_OPTIONS, "is for logs; this workload has nodes of its own")
    given = {name: options[name] for name in _NODE_OPTIONS}
    if options["reservations"] is not None:
        if given["reserve"] is not None:
            raise OptionError("--reserve and --reservations both say how many blocked jobs get a reservation")
        given["reserve"] = options["reservations"]
    return NodeOptions(policy=options["policy"], order=options["order"], **given)


def simulate_several(workload: str, policies: Sequence[str], options: dict[str, Any]) -> None:
    """Run every policy over one input and print one table; each gets the options that it reads.

    Raises:
        OptionError: no policy reads an option, or a policy or an output is for a single run.
    """
    from ..simulation.report import to_json

    runs = _several_runs(workload, policies, options)
    for run, typed in zip(runs, policies, strict=True):
        note_unstarted(typed, len(run.never_started))
    counts = Counter(run.policy for run in runs)
    # Those of one policy under several parameters are named as they were typed.
    named = [
        replace(run, policy=name) if counts[run.policy] > 1 else run
        for run, name in zip(runs, policies, strict=True)
    ]
    if options["html"] is not None:
        from ..reports.run_pages import simulation_page

        write_text(options["html"], simulation_page(named, file_name(workload)))
    if options["form"] == "json":
        write_text(options["output"], to_json({"format": FORMAT, "runs": [run.to_dict() for run in runs]}))
    else:
        write_rich(options["output"], lambda console: _render_runs(named, console))


def _several_runs(workload: str, policies: Sequence[str], options: dict[str, Any]) -> list[Simulation]:
    from ..formats.file_kinds import is_json
    from ..formats.reading import read_document

    for name in policies:
        if name.partition(":")[0] in (EVOLVING, *MALLEABLE_POLICIES):
            raise OptionError(f"--policy {name} cannot be combined with others: its jobs change at run time")
    refuse_given(options, _OF_ONE_RUN, "is of one run: name one policy")
    refuse_malleable(options)
    content = read_document(workload, bytes)
    if is_json(content):
        from ..simulation.nodes.node_policies import READ_BY

        readers = {**READ_BY, "reservations": ("reservations",)}
        each = _narrowed(options, policies, readers, lambda name, policy: policy in readers[name])
        return _runs_on_nodes(workload, content, options, each)
    policies = [current_name(name) for name in policies]
    if len(set(policies)) < len(policies):
        raise OptionError(f"--policy {','.join(policies)}: one is listed twice")
    candidates = tuple((options["candidates"] or "").split(","))
    reads = partial(is_read, candidates=candidates)
    each = _narrowed(options, policies, READ_ON_LOGS, reads)
    for one in each:
        check_log_options(one)
        check_policy_options(one)
    return _runs_on_log(workload, content, options, dict(zip(policies, each, strict=True)))[0]


def simulate_on_log(path: str, content: bytes, policy: str, options: dict[str, Any]) -> None:
    """Play a log under a policy as typed, write what the options name, and print the metrics."""
    from ..simulation.logs.policies import queue_rank

    (run,), log, (choice,) = _runs_on_log(path, content, options, {policy: options})
    if options["forecasts"] is not None:
        rank = queue_rank(run.workload.requests, options["order"], choice.flexible)
        _write_forecasts(options["forecasts"], run, options, log, rank)
    write_run(run, path, options, log=log)


def machine_processors(options: dict[str, Any]) -> int | None:
    """Return the machine's size as options give it: a number, or a snapshot's cores."""
    if options["processors"] is not None and options["cluster"] is not None:
        raise OptionError("--processors and --cluster both give the machine's size")
    if options["cluster"] is None:
        processors: int | None = options["processors"]
        return processors
    from ..formats.native.cluster_file import load_snapshot

    return sum(node.total.cores for node in load_snapshot(options["cluster"]).nodes)


def _runs_on_log(
    path: str, content: bytes, options: dict[str, Any], each: Mapping[str, dict[str, Any]]
) -> tuple[list[Simulation], SwfLog, list[PolicyOptions]]:
    """Play a log; return the runs, the log, and what the policy of each reads.

    ``each`` has options of a run by its policy as typed, ``options`` those of the log.
    """
    from ..api.simulations import chosen_on_log, parsed
    from ..simulation.logs.policies import play_log

    chosen, names = [], options_in(PolicyOptions, OrderOptions)
    for typed, one in each.items():
        given = {name: one[name] for name in names if one.get(name) not in (None, ())}
        with naming_as_typed(typed):
            chosen.append(chosen_on_log(one["policy"], one["order"], parsed(given)))
    processors = machine_processors(options)
    log, jobs = read_log(path, content, processors, options["queue_weights"])
    runs: list[Simulation] = []
    for (typed, one), (choice, settings) in zip(each.items(), chosen, strict=True):
        policy = one["policy"]
        with (
            naming_as_typed(typed),
            progress_over(len(jobs), "jobs" if len(each) == 1 else policy) as progress,
        ):
            result = play_log(
                jobs, policy, order=one["order"], options=choice, checked=one["check"], progress=progress
            )
        runs.append(replace(result, settings=settings, name=shown_name(path)))
    return runs, log, [choice for choice, _ in chosen]


def _narrowed(
    options: dict[str, Any],
    policies: Sequence[str],
    names: Iterable[str],
    reads: Callable[[str, str], bool],
) -> list[dict[str, Any]]:
    """Return the options as each policy would get them alone; of some ``reads`` says who does."""
    found = [{**options, "policy": policy} for policy in policies]
    for name in names:
        if options[name] in {None, ()}:
            continue
        reads_it = [policy for policy in policies if reads(name, policy.partition(":")[0])]
        if not reads_it:
            raise OptionError(f"{flag_of(name)}: none of {', '.join(policies)} reads it")
        for one in found:
            if one["policy"] not in reads_it:
                one[name] = () if isinstance(options[name], tuple) else None
    return [with_parameters(one, one["policy"]) for one in found]


def _render_runs(runs: Sequence[Simulation], console: Console) -> None:
    """Print one table, a line for each policy."""
    from ..reports.console_tables import figure_columns, table_of

    first = runs[0]
    requests = first.workload.requests
    order = "" if first.order == "fcfs" else f", {first.order} order"
    rows = [
        {"policy": run.policy, **run.metrics, "unstarted": len(run.never_started) or None} for run in runs
    ]
    jobs = plural(len(first.started) + len(first.never_started), "job")
    title = f"{first.name}{order}: {jobs}, {plural(requests.processors, 'processor')}"
    console.print(table_of(title, figure_columns(["policy"], rows), rows, console))
