"""Runs over a snapshot: one auction each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..auction.options import StepOptions, options_with_preset
from ..auction.step import run_step
from ..cluster.errors import OptionError
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot
from ..formats.native.read import parse_snapshot
from .axes import Row, Value
from .kinds import Kind, on_network

#: Axes that are on or off, and true or false in a step.
_SWITCHES = ("balance", "award_alone")
#: Columns that are the step's options under the same name.
_PLAIN = ("model", "weights", "objective", "on_timeout", "preference_table", "bid_order", "reserve", "window")


#: Columns that are no options of a step.
_BESIDE = frozenset({"preset", "repeat", "topology"})


def _resolve(snapshot: Snapshot, options: Mapping[str, Value]) -> Row:
    """Return all options of the step, defaults included."""
    if "time_limit_s" in options and "work_limit" in options:
        raise OptionError(
            "--time-limit and --work-limit: a run that counts its steps has no clock; give one of them"
        )
    explicit = _as_step_has({name: value for name, value in options.items() if name not in _BESIDE})
    preset = options.get("preset")
    step = options_with_preset(None if preset is None else str(preset), explicit)
    by_clock = step.work_limit is None
    on_network(snapshot, options)
    return {
        "preset": preset,
        "strategy": step.chosen_strategy,
        **{name: "on" if getattr(step, name) else "off" for name in _SWITCHES},
        **{name: getattr(step, name) for name in _PLAIN},
        "max_bids": step.bids_in_all,
        "max_bids_per_job": step.bids_per_job,
        "time_limit_s": float(step.time_limit_s) if by_clock else None,
        "work_limit": step.work_limit,
        "topology": options.get("topology"),
        "repeat": options["repeat"],
        "seed": step.seed,
    }


def _run(snapshot: Snapshot, options: Row) -> Row:
    given = {name: value for name, value in options.items() if name not in _BESIDE and value is not None}
    return _columns(run_step(on_network(snapshot, options), StepOptions(**_as_step_has(given))))


def _as_step_has(options: Mapping[str, Value]) -> dict[str, Any]:
    """Return options as a step has them."""
    return dict(options) | {name: options[name] == "on" for name in _SWITCHES if name in options}


def _columns(result: Schedule) -> Row:
    """Return a schedule's figures, named as in its file."""
    objective, sizes, seconds = result.objective, result.sizes, result.seconds
    held = [use for award in result.started for use in award.nodes.values()]
    return {
        "status": result.status.value,
        "priority": float(objective.priority),
        "bound": objective.bound,
        "gap": objective.gap,
        "preference": objective.preference,
        "jobs_started": len(result.started),
        "jobs_pending": len(result.pending),
        "cores": sum(use.cores for use in held),
        "gres": sum(sum(use.gres.values()) for use in held),
        "window_awarded": result.window,
        "attempts": len(result.attempts),
        "nodesets": sizes.nodesets,
        "bids": sizes.bids,
        "variables": sizes.variables,
        "constraints": sizes.constraints,
        "nonzeros": sizes.nonzeros,
        "seconds.bids": seconds.bids,
        "seconds.build": seconds.build,
        "seconds.solve": seconds.solve,
        "seconds.step": seconds.total,
    }


SNAPSHOT = Kind(
    name="snapshot",
    title="a snapshot",
    axes=(
        *(
            "preset",
            "model",
            "strategy",
            "balance",
            "award_alone",
            "weights",
            "objective",
            "on_timeout",
            "preference_table",
            "bid_order",
            "reserve",
        ),
        *("window", "max_bids", "max_bids_per_job", "time_limit_s", "work_limit", "topology"),
    ),
    uses_seed=lambda _: True,
    load=parse_snapshot,
    resolve=_resolve,
    run=_run,
)
