"""Runs over a trace: a policy on a machine that counts processors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..commands.log_options import check_policy_options, read_policy_options
from ..formats.swf import SwfLog, unpack_swf
from ..simulation.logs.play import play_log
from ..simulation.logs.policies import PolicyOptions, make_policy
from ..simulation.logs.reading import READ_BY, is_read
from ..simulation.metrics import metrics
from ..simulation.requests import Requests, machine_size, workload_from_swf
from .axes import Row, Value
from .kinds import Kind

_NO_JOBS = Requests(processors=1, submit=(), size=(), estimate=(), user=(), weight=())
_MEMBERS = tuple(entry.name for entry in fields(PolicyOptions))


def _resolve(log: SwfLog, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    values = _as_simulate_reads(options)
    check_policy_options(values)
    choice, settings = read_policy_options(values)
    make_policy(values["policy"], _NO_JOBS, order=values["order"], options=choice)
    processors = options.get("processors")
    return {
        "policy": values["policy"],
        "order": values["order"],
        **{name: _text(value) for name, value in settings.items()},
        "processors": machine_size(log, None if processors is None else int(processors)),
        "repeat": options["repeat"],
    }


def _as_simulate_reads(options: Mapping[str, Value]) -> dict[str, Any]:
    """Return the options as ``aucsched simulate`` gets them: None where one is not given."""
    names = (*_MEMBERS, "queue_weights", "priorities", "user_priorities", "log_begins")
    given: dict[str, Any] = {name: options.get(name) for name in names}
    return {**given, "policy": options.get("policy", "easy"), "order": options.get("order", "fcfs")}


def _text(value: Any) -> Value:
    """Return a setting as it is given on the command line."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number:g}" for name, number in value.items())
    if isinstance(value, (tuple, list)):
        return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in value)
    plain: Value = value
    return plain


def _run(log: SwfLog, options: Row) -> Row:
    values = _as_simulate_reads(options)
    choice, _ = read_policy_options(values)
    jobs = workload_from_swf(log, processors=int(str(options["processors"])))
    result = play_log(jobs, values["policy"], order=values["order"], options=choice)
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
    axes=(
        *("policy", "order", "processors", "reservations", "lookahead_depth", "slack", "expansion_factor"),
        *("adapt_every", "adapt_window", "speculation", "stops", "objective", "promise"),
    ),
    uses_seed=lambda _: False,
    load=unpack_swf,
    resolve=_resolve,
    run=_run,
    reads=lambda name, point: name not in READ_BY or is_read(name, str(point.get("policy", "easy"))),
)
