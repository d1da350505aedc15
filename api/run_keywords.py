"""The options of ``simulate`` and ``sweep`` as keywords; docs/policies.md and docs/sweep.md say what they do.

A test holds them against ``PolicyOptions``, ``NodeOptions`` and the sweep's axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict, TypeVar

from ..auction.step_keywords import AuctionKeywords
from ..cluster.failures import Outage
from ..simulation.logs.advance import Advance
from ..simulation.logs.orderings import FlexiblePriorities, MultifactorWeights
from ..simulation.logs.queues import QueueLimits
from ..simulation.logs.start_rules import StartRule
from ..simulation.own_policy import Factory

#: Our policies by name.
PolicyName: TypeAlias = Literal[
    "fcfs",
    "easy",
    "conservative",
    "reservations",
    "backfill-slurm",
    "backfill-planned",
    "ipsched",
    "aucsched1",
    "aucsched2",
    "aucsched3",
    "first-fit",
    "best-fit",
    "next-fit",
    "queues",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
    "adaptive",
    "speculative",
    "planning",
]
#: Orders of the waiting queue by name.
OrderName: TypeAlias = Literal[
    "fcfs",
    "multifactor",
    "sjf",
    "ljf",
    "area",
    "width",
    "widest",
    "weight",
    "smith",
    "flexible",
    "slowdown",
]


class SimulateKeywords(AuctionKeywords, total=False):
    """Every option of a simulation; a policy that would ignore one refuses it."""

    preset: Literal["paper", "plugin"] | None
    queue_weights: str | Mapping[int, float] | None
    reservations: int | None
    lookahead_depth: int | None
    lookahead_ties: Literal["first", "last"] | None
    slack: float | None
    expansion_factor: float | None
    class_limits_s: Sequence[float] | None
    candidates: Sequence[str] | None
    adapt_every: int | None
    adapt_window: int | None
    speculation: float | None
    stops: int | None
    test_run_s: float | None
    advance: Sequence[Advance] | None
    release_unused_s: float | None
    start_rule: Sequence[StartRule] | None
    queue: Sequence[QueueLimits] | None
    heads: Literal["priority", "best-fit"] | None
    replan: Literal["keep", "rebuild"] | None
    multifactor: MultifactorWeights | None
    flexible: FlexiblePriorities | None
    interval_s: float | None
    selection: Literal["first", "best", "next"] | None
    backfill_interval_s: float | None
    preempt: bool | None
    credits: float | None
    failures: Sequence[Outage] | None
    mtbf_s: float | None
    mttr_s: float | None
    failure_seed: int | None
    on_failure: Literal["requeue", "lost"] | None
    max_requeues: int | None


_One = TypeVar("_One")
#: A value, or each of several.
Values: TypeAlias = _One | Iterable[_One]


class SweepKeywords(TypedDict, total=False):
    """Every option that a sweep may vary."""

    policy: Values[PolicyName | str | Factory]
    order: Values[OrderName]
    interval_s: Values[float]
    selection: Values[Literal["first", "best", "next"]]
    processors: Values[int]
    reservations: Values[int]
    lookahead_depth: Values[int]
    slack: Values[float]
    expansion_factor: Values[float]
    adapt_every: Values[int]
    adapt_window: Values[int]
    speculation: Values[float]
    stops: Values[int]
    model: Values[Literal["ipsched", "aucsched1", "aucsched2", "aucsched3"]]
    preset: Values[Literal["paper", "plugin"]]
    window: Values[int]
    max_bids: Values[int]
    max_bids_per_job: Values[int]
    bid_order: Values[Literal["spec", "figure-4.5"]]
    strategy: Values[Literal["exact", "anytime", "greedy"]]
    balance: Values[bool]
    award_alone: Values[bool]
    time_limit_s: Values[float]
    work_limit: Values[int]
    on_timeout: Values[Literal["halve", "incumbent", "discard"]]
    weights: Values[Literal["lexicographic", "paper"]]
    objective: Values[Literal["priority", "priority_cores", "response"]]
    promise: Values[str]
    reserve: Values[int]
    preference_table: Values[Literal["corrected", "printed"]]
    topology: Values[str]
    preempt: Values[bool]
    credits: Values[float]
    mapper: Values[Literal["greedy", "auction"]]
    decision: Values[Literal["paper", "objective"]]
    max_attempts: Values[int]
    depth: Values[int]
    shrink: Values[Literal["priority", "even", "fair", "long", "short", "low_impact", "priced"]]
    dependencies: Values[Literal["all", "one"]]
    equipartition: Values[Literal["all", "running"]]
    reject_idle: Values[Literal["useful", "any"]]
    parts: Values[int]
