"""The options of ``schedule``, ``explain`` and ``compare`` as keywords; docs/options.md says what each does.

A test holds names, choices and types against the table of options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict


class AuctionKeywords(TypedDict, total=False):
    """Options of every auction, of one step and of a simulation's; None is the default."""

    window: int | None
    max_bids: int | None
    max_bids_per_job: int | None
    bid_order: Literal["spec", "figure-4.5"] | None
    strategy: Literal["exact", "anytime", "greedy"] | None
    balance: bool | None
    award_alone: bool | None
    work_limit: int | None
    on_timeout: Literal["halve", "incumbent", "discard"] | None
    weights: Literal["lexicographic", "paper"] | None
    objective: Literal["priority", "priority_cores", "response"] | None
    promise: str | None
    reserve: int | None
    seed: int | None


class StepKeywords(AuctionKeywords, total=False):
    """Every option of one step."""

    model: Literal["ipsched", "aucsched1", "aucsched2", "aucsched3"] | None
    preset: Literal["paper", "plugin"] | None
    time_limit_s: float | None
    part_nodes: int | None
    preference_table: Literal["corrected", "printed"] | None
    workers: int | None
    dask: str | None
    export: str | None
    clock: Callable[[], float] | None
