"""The choices of a runtime scheduler."""

from dataclasses import dataclass
from typing import Literal

from ...cluster.checks import at_least
from ...cluster.errors import OptionError
from ..messages import LEAST_INTERVAL_S
from .share import ShrinkOrder, Steps
from .tentative import Dependencies

#: How far an urgent job may go: shrink others; suspend them too; kill them instead of suspending.
Urgency = Literal["shrink", "suspend", "kill"]

MAX_ATTEMPTS = 5


def check_interval(interval_s: float) -> None:
    """Raise OptionError where periodic steps would come too close together, or never."""
    if not LEAST_INTERVAL_S <= interval_s < float("inf"):
        raise OptionError(f"interval {interval_s:g} s is not a time of at least {LEAST_INTERVAL_S:g} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """Choices of the runtime scheduler, as its options describe them (RuntimeOptions).

    Attributes:
        max_attempts: of a transaction; the last one is accepted by both.
        interval_s: between periodic steps.
        last_backfill: plan once more after holders were expanded (DBES; the thesis leaves it out).
        transaction_s: what a transaction costs on the clock (the thesis: 1-2 s).
        urgency: what may be done to running jobs for an urgent one.
    """

    max_attempts: int = MAX_ATTEMPTS
    interval_s: float = 60.0
    dependencies: Dependencies = "all"
    last_backfill: bool = True
    equipartition: Literal["all", "running"] = "all"
    reject_idle: Literal["useful", "any"] = "useful"
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
