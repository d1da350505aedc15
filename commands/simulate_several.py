"""``aucsched simulate --policy A,B,C``: one input under several policies, one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError
from ..cluster.option_fields import flag_of
from ..cluster.text import plural
from ..simulation.policy_names import naming_as_typed
from ..simulation.simulate_options import EVOLVING, MALLEABLE_POLICIES, READ_ON_LOGS, current_name, is_read
from .malleable_options import refuse_malleable
from .node_options import check_log_options, chosen_options, is_native, run_on_nodes, with_failures
from .outputs import progress_over, read_jobs, read_log, shown
from .policy_options import check_policy_options, chosen_policy, with_parameters
from .topology_override import note_unread, with_topology

if TYPE_CHECKING:
    from ..api.simulations import Simulation
    from ..simulation.log_columns import Workload
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
    for name in _OF_ONE_RUN:
        if options[name] is not None:
            raise OptionError(f"--{name.replace('_', '-')} is of one run: name one policy")
    refuse_malleable(options)
    if is_native(workload):
        return _on_nodes(workload, policies, options)
    policies = [current_name(name) for name in policies]
    check_log_options({**options, "policy": policies[0].partition(":")[0]})
    return _on_log(workload, policies, options, processors)


def _on_log(
    workload: str, policies: Sequence[str], options: dict[str, Any], processors: int | None
) -> list[Simulation]:
    candidates = tuple((options["candidates"] or "").split(","))
    narrowed = _narrowed(
        options,
        policies,
        {
            member: [one for one in policies if is_read(member, one.partition(":")[0], candidates)]
            for member in READ_ON_LOGS
        },
    )
    settled = []
    for name, one in zip(policies, narrowed, strict=True):
        check_log_options(one)
        check_policy_options(one)
        with naming_as_typed(name):
            settled.append(chosen_policy(one))
    jobs = read_jobs(workload, read_log(workload), processors, options["queue_weights"])
    runs: list[Simulation] = []
    for name, one, (choice, settings) in zip(policies, narrowed, settled, strict=True):
        with naming_as_typed(name):
            runs.append(run_on_log(jobs, one, choice, settings, shown(workload), one["policy"]))
    return runs


def run_on_log(
    jobs: Workload,
    options: dict[str, Any],
    choice: PolicyOptions,
    settings: dict[str, Any],
    name: str,
    label: str = "jobs",
) -> Simulation:
    """Play a log's jobs under one policy.

    Args:
        jobs: what ``read_jobs`` returns.
        options: the command's.
        choice: what the policy may read,
        settings: and what it does read.
        name: of the log.
        label: of the bar on a terminal.
    """
    from ..api.simulations import Simulation
    from ..simulation.logs.policies import play_log

    policy, order = options["policy"], options["order"]
    with progress_over(len(jobs), label) as progress:
        result = play_log(
            jobs, policy, order=order, options=choice, checked=options["check"], progress=progress
        )
    return Simulation(result=result, settings=settings, name=name)


def _on_nodes(workload: str, policies: Sequence[str], options: dict[str, Any]) -> list[Simulation]:
    from ..formats.native.workload_file import load_workload
    from ..simulation.nodes.node_policies import READ_BY

    readers = {**READ_BY, "reservations": ("reservations",)}
    narrowed = _narrowed(
        options,
        policies,
        {name: [one for one in policies if one.partition(":")[0] in read] for name, read in readers.items()},
    )
    chosen = [chosen_options(one) for one in narrowed]
    loaded = with_topology(load_workload(workload), options["topology"])
    note_unread(loaded)
    chosen = [with_failures(one, loaded, options["failures"]) for one in chosen]
    return [run_on_nodes(loaded, one, loaded.name or shown(workload), one.policy) for one in chosen]


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


def document_of(runs: Sequence[Simulation]) -> dict[str, Any]:
    """Return the runs as one document."""
    return {"format": FORMAT, "runs": [run.to_dict() for run in runs]}


#: Columns of the table: what people read, how wide, metric, what it is multiplied by, digits after the point.
_COLUMNS = (
    ("mean wait", 11, "wait_mean_s", 1.0, 0),
    ("longest", 10, "wait_max_s", 1.0, 0),
    ("slowdown", 10, "bounded_slowdown_mean", 1.0, 1),
    ("CPU %", 7, "cpu_utilization", 100.0, 1),
    ("GPU %", 7, "gpu_utilization", 100.0, 1),
    ("hours", 8, "makespan_s", 1 / 3600, 1),
)


def text_of(runs: Sequence[Simulation]) -> str:
    """Return one table, a line for each policy: waits in seconds, bounded slowdown, the makespan in hours."""
    first = runs[0]
    requests = first.result.workload.requests
    order = "" if first.result.order == "fcfs" else f", {first.result.order} order"
    columns = [one for one in _COLUMNS if any(run.metrics.get(one[2]) is not None for run in runs)]
    wide = max(6, *(len(run.policy) for run in runs))
    of = f"{plural(len(first.result.workload), 'job')}, {plural(requests.processors, 'processor')}"
    lines = [
        f"{first.name}{order}: {of}",
        "waits in seconds",
        "",
        f"{'policy':<{wide}}" + "".join(f"{label:>{width}}" for label, width, *_ in columns),
    ]
    for run in runs:
        cells = (
            f"{_figure(run.metrics.get(metric), factor, digits):>{width}}"
            for _, width, metric, factor, digits in columns
        )
        lines.append(f"{run.policy:<{wide}}{''.join(cells)}")
    return "\n".join(lines) + "\n"


def _figure(value: float | None, factor: float, digits: int) -> str:
    return "-" if value is None else f"{value * factor:.{digits}f}"
