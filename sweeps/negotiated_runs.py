"""Runs of policy ``negotiate`` over a workload: both schedulers, as the command has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..cluster.errors import OptionError
from ..cluster.workload import ClusterWorkload
from ..commands.negotiate_options import batch_settings, runtime_settings
from ..negotiation.parties.batch_state import BatchSettings
from ..runtime.settings import RuntimeSettings
from ..simulation.negotiated.plays import Play, play_of
from ..simulation.negotiated.report import negotiated_metrics
from ..simulation.negotiated.run import negotiate
from .axes import AXES, NEGOTIATED, Row, Value

#: The policy's name: both schedulers, each with its settings.
POLICY = "negotiate"
#: Axes of the command that other policies have too.
_ALSO = ("strategy", "work_limit")
#: The command's defaults, by its options' names.
_DEFAULTS: Mapping[str, Any] = {
    "mapper": "auction",
    "decision": "paper",
    "max_attempts": 5,
    "depth": 100,
    "shrink": "priority",
    "dependencies": "all",
    "equipartition": "all",
    "reject_idle": "useful",
    "parts": 1,
    "interval": 60.0,
    "transaction_seconds": 0.0,
    **dict.fromkeys(("no_last_backfill", "start_at_minimum", "atomic"), False),
    **dict.fromkeys(("third_of", "patience", "urgent", "strategy", "work_limit", "time_limit_s")),
}
_NAMES = tuple(axis.name for axis in NEGOTIATED)
#: Axis of names -> what it may be.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mapper": ("greedy", "auction"),
    "decision": ("paper", "objective"),
    "shrink": ("priority", "even", "fair", "long", "short", "low_impact", "priced"),
    "dependencies": ("all", "one"),
    "equipartition": ("all", "running"),
    "reject_idle": ("useful", "any"),
}


def reads(name: str) -> bool:
    """Return whether the policy reads an axis."""
    return name in _NAMES or name in _ALSO or name in {"topology", "policy"}


def resolve(workload: ClusterWorkload, options: Mapping[str, Value]) -> Row:
    """Return all options of a run, defaults included.

    Raises:
        InputError: the workload cannot be negotiated.
        OptionError: an option is none of the policy's, or cannot be.
    """
    for name in options:
        if name != "repeat" and not reads(name):
            raise OptionError(f"{AXES[name].option}: policy {POLICY} does not read it")
    for name, choices in _CHOICES.items():
        if name in options and options[name] not in choices:
            raise OptionError(f"{AXES[name].option}: {options[name]!r} is not one of {', '.join(choices)}")
    _settings(play_of(workload, None), options)
    row: Row = {"policy": POLICY, "repeat": options["repeat"]}
    row |= {name: options.get(name, _DEFAULTS[name]) for name in (*_NAMES, *_ALSO)}
    return row | {"topology": options.get("topology")}


def run(workload: ClusterWorkload, options: Row) -> Row:
    """Return what a negotiation comes to."""
    play = play_of(workload, None)
    result = negotiate(play, *_settings(play, options))
    metrics = negotiated_metrics(result)
    columns = {name: float(value) for name, value in metrics.items() if value is not None}
    return {"status": "done", "jobs": len(result.done), **columns}


def _settings(play: Play, options: Mapping[str, Value]) -> tuple[BatchSettings, RuntimeSettings]:
    given = {name: value for name, value in options.items() if name in _DEFAULTS and value is not None}
    every = {**_DEFAULTS, **given}
    every["attempts"] = every["max_attempts"]
    batch = batch_settings(play, every)
    runtime = runtime_settings(every)
    return batch, replace(runtime, max_attempts=batch.max_attempts, interval_s=batch.interval_s)
