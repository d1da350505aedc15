"""Runs over a workload: a policy on a machine of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..auction.options import MODELS
from ..cluster.errors import OptionError
from ..cluster.workload import ClusterWorkload
from ..formats.native.workload import parse_workload
from ..simulation.nodes.metrics import node_metrics
from ..simulation.nodes.policies import READ_BY, NodeOptions, play, step_options
from . import negotiated_runs
from .axes import NEGOTIATED, Row, Value
from .kinds import Kind, on_network

#: Options of a simulation that take lists, under their names there.
_AXES = (
    *("policy", "order", "interval_s", "selection", "weights", "objective", "on_timeout", "reserve"),
    *("window", "max_bids", "max_bids_per_job", "work_limit", "strategy", "balance", "promise"),
    *("preempt", "credits", "bid_order", "award_alone"),
)
#: Axes that are on or off, and true or false in a simulation.
_SWITCHES = ("balance", "preempt", "award_alone")
#: Columns that are a step's options under the same name.
_OF_A_STEP = ("weights", "objective", "reserve", "window", "work_limit", "seed")


def _uses_seed(options: Mapping[str, Value]) -> bool:
    """Return whether a policy takes chances: the auctions do."""
    return str(options.get("policy")) in MODELS


def _resolve(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of the simulation, defaults included."""
    if options.get("policy") == negotiated_runs.POLICY:
        return negotiated_runs.resolve(on_network(workload, options), options)
    if lacking := [axis.option for axis in NEGOTIATED if axis.name in options]:
        raise OptionError(f"{lacking[0]} needs --policy {negotiated_runs.POLICY}")
    chosen = _node_options(options)
    row: Row = {"policy": chosen.policy, "order": chosen.order, "repeat": options["repeat"]}
    row |= chosen.settings() | {"topology": options.get("topology")}
    for name in ("preempt", "award_alone"):
        if (given := getattr(chosen, name)) is not None:
            row[name] = "on" if given else "off"
    on_network(workload, options)
    if _uses_seed(options):
        step = step_options(chosen)
        row |= {name: getattr(step, name) for name in _OF_A_STEP}
        if not step.is_greedy:
            row["on_timeout"] = step.on_timeout
        if step.auction.has_bids:
            row["strategy"] = step.chosen_strategy
            row["balance"] = "on" if chosen.balance else "off"
            row |= {"max_bids": step.bids_in_all, "max_bids_per_job": step.bids_per_job}
    return row


def _node_options(options: Mapping[str, Value]) -> NodeOptions:
    given: dict[str, Any] = {
        name: options[name] for name in (*_AXES, "seed") if options.get(name) is not None
    }
    given |= {name: given[name] == "on" for name in _SWITCHES if name in given}
    return NodeOptions(**given)


def _run(workload: ClusterWorkload, options: Row) -> Row:
    if options["policy"] == negotiated_runs.POLICY:
        return negotiated_runs.run(on_network(workload, options), options)
    result = play(on_network(workload, options), _node_options(options))
    values = node_metrics(result)
    return {
        "status": "done",
        "jobs": len(result.played),
        "never_started": len(result.record.never),
        "passes": result.record.passes,
        **{name: value for name, value in _flat(values).items() if value is not None},
    }


def _flat(values: Mapping[str, Any]) -> Row:
    """Return metrics as columns: shares by level become one for each."""
    row: Row = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{level}": float(share) for level, share in value.items()}
        else:
            row[name] = None if value is None else float(value)
    return row


def _reads(name: str, point: Mapping[str, Value]) -> bool:
    policy = str(point.get("policy", "easy"))
    if policy == negotiated_runs.POLICY:
        return negotiated_runs.reads(name)
    if name in {axis.name for axis in NEGOTIATED}:
        return False
    return name not in READ_BY or policy in READ_BY[name]


WORKLOAD = Kind(
    name="workload",
    title="a workload of nodes",
    axes=(*_AXES, "topology", *(axis.name for axis in NEGOTIATED)),
    uses_seed=_uses_seed,
    load=parse_workload,
    resolve=_resolve,
    run=_run,
    reads=_reads,
)
