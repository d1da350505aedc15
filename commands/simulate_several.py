"""``aucsched simulate --policy A,B,C``: one input under several policies, one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError, shown_name
from ..cluster.option_fields import flag_of, refuse_given
from ..cluster.text import plural
from ..simulation.policy_names import naming_as_typed, with_parameters
from ..simulation.simulate_options import EVOLVING, MALLEABLE_POLICIES, READ_ON_LOGS, current_name, is_read
from .malleable_options import refuse_malleable
from .node_options import check_log_options, is_native, runs_on_nodes
from .outputs import progress_over, read_jobs, read_log
from .policy_options import check_policy_options, chosen_policy

if TYPE_CHECKING:
    from rich.console import Console

    from ..api.simulations import Simulation
    from ..formats.swf import SwfLog
    from ..simulation.simulate_options import PolicyOptions

FORMAT = "aucsched-simulations/1"
#: Files that hold one run.
_OF_ONE_RUN = ("jobs_out", "batsim_out", "swf_out", "gantt", "plot", "forecasts", "forecast_at")


def simulate_several(
    workload: str, policies: Sequence[str], options: dict[str, Any], processors: int | None
) -> list[Simulation]:
    """Return a run for each policy; an option that one of them reads is for that one.

    Raises:
        OptionError: no policy reads an option, or a policy or an output is for a single run.
    """
    for name in policies:
        if name.partition(":")[0] in (EVOLVING, *MALLEABLE_POLICIES):
            raise OptionError(f"--policy {name} cannot be combined with others: its jobs change at run time")
    refuse_given(options, _OF_ONE_RUN, "is of one run: name one policy")
    refuse_malleable(options)
    if is_native(workload):
        from ..simulation.nodes.node_policies import READ_BY

        readers = {**READ_BY, "reservations": ("reservations",)}
        reading = {
            name: [one for one in policies if one.partition(":")[0] in by] for name, by in readers.items()
        }
        return runs_on_nodes(workload, options, _narrowed(options, policies, reading))
    policies = [current_name(name) for name in policies]
    if len(set(policies)) < len(policies):
        raise OptionError(f"--policy {','.join(policies)}: one stands there twice")
    candidates = tuple((options["candidates"] or "").split(","))
    reading = {
        member: [one for one in policies if is_read(member, one.partition(":")[0], candidates)]
        for member in READ_ON_LOGS
    }
    each = _narrowed(options, policies, reading)
    for one in each:
        check_log_options(one)
        check_policy_options(one)
    return runs_on_log(workload, options, dict(zip(policies, each, strict=True)), processors)[0]


def named_apart(runs: Sequence[Simulation], typed: Sequence[str]) -> list[Simulation]:
    """Return the runs, those of one policy under several parameters named as they were typed."""
    counts = Counter(run.policy for run in runs)
    return [
        replace(run, result=replace(run.result, policy=name)) if counts[run.policy] > 1 else run
        for run, name in zip(runs, typed, strict=True)
    ]


def runs_on_log(
    path: str, options: dict[str, Any], each: Mapping[str, dict[str, Any]], processors: int | None
) -> tuple[list[Simulation], SwfLog, list[PolicyOptions]]:
    """Play a log; return the runs, the log, and what the policy of each reads.

    ``each`` has options of a run by its policy as typed, ``options`` those of the log.
    """
    from ..api.simulations import Simulation
    from ..simulation.logs.policies import play_log

    chosen = []
    for typed, one in each.items():
        with naming_as_typed(typed):
            chosen.append(chosen_policy(one))
    log = read_log(path)
    jobs = read_jobs(path, log, processors, options["queue_weights"])
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
        runs.append(Simulation(result=result, settings=settings, name=shown_name(path)))
    return runs, log, [choice for choice, _ in chosen]


def _narrowed(
    options: dict[str, Any], policies: Sequence[str], readers: Mapping[str, Iterable[str]]
) -> list[dict[str, Any]]:
    """Return the options as each policy alone would be given them."""
    found = [{**options, "policy": policy} for policy in policies]
    for name, reading in readers.items():
        reads_it = tuple(reading)
        if options[name] in {None, ()}:
            continue
        if not reads_it:
            raise OptionError(f"{flag_of(name)}: none of {', '.join(policies)} reads it")
        for one in found:
            if one["policy"] not in reads_it:
                one[name] = () if isinstance(options[name], tuple) else None
    return [with_parameters(one, one["policy"]) for one in found]


def render_runs(runs: Sequence[Simulation], console: Console) -> None:
    """Print one table, a line for each policy."""
    from ..reports.console_tables import figure_columns, table_of

    first = runs[0]
    requests = first.result.workload.requests
    order = "" if first.result.order == "fcfs" else f", {first.result.order} order"
    rows = [
        {"policy": run.policy, **run.metrics, "unstarted": len(run.result.never_started) or None}
        for run in runs
    ]
    jobs = plural(len(first.result.started) + len(first.result.never_started), "job")
    title = f"{first.name}{order}: {jobs}, {plural(requests.processors, 'processor')}"
    console.print(table_of(title, figure_columns(["policy"], rows), rows, console))
