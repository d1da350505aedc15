"""The choices of a runtime scheduler."""

from dataclasses import dataclass
from typing import Literal

from ...cluster.checks import at_least
from ...cluster.errors import OptionError
from ..messages import LEAST_INTERVAL_S
from .backfill_plan import Dependencies
from .share import ShrinkOrder, Steps

#: Among whom algorithm 5 shares idle nodes at its end: jobs that run, or also those that start.
Equipartition = Literal["all", "running"]
#: Which idle nodes let the runtime scheduler reject: those that a job could use, or any (the thesis).
RejectIdle = Literal["useful", "any"]
#: How far an urgent job may go: shrink others; suspend them too; kill them instead of suspending.
Urgency = Literal["shrink", "suspend", "kill"]

MAX_ATTEMPTS = 5


def check_interval(interval_s: float) -> None:
    """Raise OptionError where periodic steps would come too close together, or never."""
    if not LEAST_INTERVAL_S <= interval_s < float("inf"):
        raise OptionError(f"interval {interval_s:g} s is not a time from {LEAST_INTERVAL_S:g} s on")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """Choices of the runtime scheduler.

    Attributes:
        max_attempts: of a transaction; the last one is accepted by both.
        interval_s: between periodic steps.
        dependencies: whether all running jobs that end when a waiting one could start count as its
            dependencies, or one of them (the thesis).
        last_backfill: plan once more after holders were expanded (DBES; the thesis leaves it out).
        equipartition: who shares idle nodes at the end: jobs that run and those that start, or the former
            alone (the thesis: among other remaining running malleable jobs).
        reject_idle: reject while nodes stay idle that a job could use, or while any stay idle (the thesis).
        start_at_minimum: account a new job at its minimum until its first periodic step (the thesis's
            simulation).
        transaction_s: what a transaction costs on the clock (the thesis: 1-2 s).
        shrink: who gives first for a waiting job, within the classes of algorithm 5.
        steps: how a job's range is divided by the attempts (negotiation/runtime/share.py).
        urgency: what may be done to running jobs for an urgent one.
        parts: equal parts, sockets or cores, in which nodes are given out; 1: whole nodes.
    """

    max_attempts: int = MAX_ATTEMPTS
    interval_s: float = 60.0
    dependencies: Dependencies = "all"
    last_backfill: bool = True
    equipartition: Equipartition = "all"
    reject_idle: RejectIdle = "useful"
    start_at_minimum: bool = False
    transaction_s: float = 0.0
    shrink: ShrinkOrder = "priority"
    steps: Steps = "ceiling"
    urgency: Urgency = "suspend"
    parts: int = 1

    def __post_init__(self) -> None:
        at_least(self.max_attempts, 1, "max_attempts")
        at_least(self.parts, 1, "parts")
        check_interval(self.interval_s)
        if not 0 <= self.transaction_s < float("inf"):
            raise OptionError(f"transaction {self.transaction_s:g} is below 0 s")
