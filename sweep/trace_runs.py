"""Runs over a trace: a policy on a machine that counts processors."""

from __future__ import annotations

from collections.abc import Mapping

from ..cluster.errors import OptionError
from ..formats.swf import SwfLog, unpack_swf
from ..simulation.counts import simulate_counts
from ..simulation.metrics import metrics
from ..simulation.policy import PolicyOptions, make_policy
from ..simulation.result import Result
from ..simulation.workload import Requests, machine_size, workload_from_swf
from .axes import Row, Value
from .kinds import Kind

_NO_JOBS = Requests(processors=1, submit=(), size=(), estimate=(), user=(), weight=())


def _resolve(log: SwfLog, options: Mapping[str, Value]) -> Row:
    """Return everything that the simulation is told, defaults included."""
    policy, order = str(options.get("policy", "easy")), str(options.get("order", "fcfs"))
    make_policy(policy, _NO_JOBS, order=order)
    reserving = policy == "reservations"
    if "reservations" in options and not reserving:
        raise OptionError(f"--reservations needs --policy reservations, not {policy}")
    reservations, processors = _count(options, "reservations"), _count(options, "processors")
    return {
        "policy": policy,
        "order": order,
        "reservations": (reservations or PolicyOptions().reservations) if reserving else None,
        "processors": machine_size(log, processors),
        "repeat": options["repeat"],
    }


def _count(options: Mapping[str, Value], name: str) -> int | None:
    """Return an option that counts, None where it is not given."""
    value = options.get(name)
    if value is not None and int(value) < 1:
        raise OptionError(f"--{name}: {value} is below 1")
    return None if value is None else int(value)


def _run(log: SwfLog, options: Row) -> Row:
    jobs = workload_from_swf(log, processors=_count(options, "processors"))
    choice = PolicyOptions(reservations=_count(options, "reservations") or PolicyOptions().reservations)
    policy, order = str(options["policy"]), str(options["order"])
    starts = simulate_counts(jobs, make_policy(policy, jobs.requests, order=order, options=choice))
    result = Result(workload=jobs, policy=policy, order=order, starts=tuple(starts), seconds=0.0)
    return {
        "status": "done",
        "jobs": len(jobs),
        "dropped": sum(jobs.dropped.values()),
        # What needs nodes is null for a machine that counts, in every row: no columns.
        **{name: float(value) for name, value in metrics(result).items() if value is not None},
    }


TRACE = Kind(
    name="trace",
    title="an SWF log",
    axes=("policy", "order", "reservations", "processors"),
    has_seeds=False,
    load=unpack_swf,
    resolve=_resolve,
    run=_run,
)
