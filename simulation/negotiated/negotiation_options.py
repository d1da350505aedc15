"""The options of both schedulers of a negotiation, and of the preset of the thesis.

No numpy here: ``--help`` reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...cluster.option_fields import Option, options_in
from ...cluster.option_table import StepRecord


@dataclass(kw_only=True, unsafe_hash=True)
class SharedOptions:
    """What both parties of a negotiation read."""

    steps: Option[Literal["ceiling", "printed"]] = Option(
        "How attempts divide a job's range: rounded up, or as the thesis prints it (--preset thesis).",
        default="ceiling",
    )
    urgent: Option[Literal["shrink", "suspend", "kill"] | None] = Option(
        "How urgent jobs get nodes (esp: adds both Z; a file: jobs of qos urgent, default suspend)."
    )


@dataclass(kw_only=True, unsafe_hash=True)
class BatchOptions:
    """What the batch scheduler reads."""

    mapper: Option[Literal["greedy", "auction"]] = Option(
        "What maps the queue to an offer.", default="auction", is_swept=True
    )
    decision: Option[Literal["paper", "objective"]] = Option(
        "When the batch scheduler accepts an offer.", default="paper", is_swept=True
    )
    max_attempts: Option[int] = Option(
        "Attempts of a transaction.", default=5, low=1, high=1000, is_swept=True
    )
    depth: Option[int] = Option("Unmapped jobs forwarded at most.", default=100, low=1, is_swept=True)
    third_of: Option[Literal["forwarded", "queue"] | None] = Option(
        "For decision paper: it wants a third of these jobs mapped. Default: forwarded."
    )
    interval: Option[float] = Option(
        "Seconds between periodic steps, at least 1.", default=60.0, low=1, includes_low=True
    )
    patience: Option[float | None] = Option(
        "Mapper auction: seconds of wait after which no job may delay a waiting one; default 5400.",
        low=0,
        includes_low=True,
    )
    history: Option[Path | None] = Option(
        "SQLite file of past run times by job name and node count: expected ends follow it, and this run's "
        "times are added."
    )
    atomic: Option[bool] = Option("Start each Map as a whole or not at all.", default=False)


@dataclass(kw_only=True, unsafe_hash=True)
class RuntimeOptions:
    """What the runtime scheduler reads."""

    shrink: Option[Literal["priority", "even", "fair", "long", "short", "low_impact", "priced"]] = Option(
        "Which running jobs give nodes first: by priority (the thesis), or by a harvest policy.",
        default="priority",
        is_swept=True,
    )
    dependencies: Option[Literal["all", "one"]] = Option(
        "Which running jobs a waiting one depends on: all that end when it could start, or one of them.",
        default="all",
        is_swept=True,
    )
    no_last_backfill: Option[bool] = Option(
        "Leave out the last backfilling of DBES, as the thesis does.", default=False
    )
    equipartition: Option[Literal["all", "running"]] = Option(
        "Who shares idle nodes after a transformation: also jobs that start, or not (the thesis).",
        default="all",
        is_swept=True,
    )
    reject_idle: Option[Literal["useful", "any"]] = Option(
        "Reject a Map while nodes stay idle that a job could use, or while any do (the thesis).",
        default="useful",
        is_swept=True,
    )
    parts: Option[int] = Option(
        "Equal parts (sockets, cores) of a node in which the runtime scheduler gives it out: jobs that "
        "ask for less than a node share one, malleable ones grow and shrink by parts.",
        default=1,
        low=1,
        high=1024,
        is_swept=True,
    )
    start_at_minimum: Option[bool] = Option(
        "Account new jobs at their minimum until a periodic step.", default=False
    )
    transaction_seconds: Option[float] = Option(
        "Cost of a transaction, in seconds.", default=0.0, low=0, includes_low=True
    )


@dataclass(kw_only=True, unsafe_hash=True)
class NegotiationOptions(RuntimeOptions, BatchOptions, SharedOptions, StepRecord):
    """What both read, and how mapper auction finds each Map (the options read by NEGOTIATE)."""


#: Options of both that a sweep varies, by the names of their columns.
SWEPT = {name: one for name, one in options_in(BatchOptions, RuntimeOptions).items() if one.is_swept}

#: DN-DBES as in chapter 5 of the thesis: the values of ``--preset thesis``.
THESIS: Mapping[str, Any] = {
    "mapper": "greedy",
    "decision": "paper",
    "third_of": "queue",
    "max_attempts": 5,
    "steps": "printed",
    "shrink": "priority",
    "dependencies": "one",
    "no_last_backfill": True,
    "equipartition": "running",
    "reject_idle": "any",
}
