"""The adaptive API between an application and an iScheduler (Weissman, chapter 3): sensing and actuating."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Method(StrEnum):
    """How an application may be adapted."""

    ADD = "add"
    REMOVE = "remove"
    MIGRATE = "migrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Average seconds of an iteration.

    Attributes:
        predicted_s: over iterations to come; None where none were asked for.
        measured_s: over iterations past; None where there are none.
    """

    predicted_s: float | None
    measured_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What an application needs, and what it can use.

    Attributes:
        least, ideal: processors.
        memory_bytes: of all of it together.
    """

    least: int
    ideal: int
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBenefit:
    """What adapting would come to, in seconds of the application's time; a negative benefit is a loss."""

    cost_s: float
    benefit_s: float


class Adaptive(Protocol):
    """An application under an iScheduler.

    Adaptations happen at iteration boundaries: an actuating call returns when the application goes on with
    its new processors, or has ended.
    """

    @property
    def name(self) -> str:
        """What it is called; no two that run together share a name."""

    @property
    def processors(self) -> int:
        """Processors that it holds now."""

    @property
    def iterations_left(self) -> int:
        """Iterations to come."""

    def start(self, processors: int) -> None:
        """Begin to run; it ends by itself."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end, and return whether it has ended."""

    def exec_time(self, future_iters: int, past_iters: int) -> Timing:
        """Return the time of an iteration: predicted over some to come, measured over the last."""

    def exec_time_comp(self, future_iters: int, past_iters: int) -> Timing:
        """Return the computation's part of it."""

    def exec_time_comm(self, future_iters: int, past_iters: int) -> Timing:
        """Return the communication's part of it."""

    def resources(self) -> Resources:
        """Return the least and the ideal amounts."""

    def add_processors(self, count: int) -> None:
        """Take more processors."""

    def remove_processors(self, count: int) -> None:
        """Give processors back; they are free when this returns."""

    def migrate_processor(self, old: int, new: int) -> None:
        """Move the part of one processor, by its place among the application's, to another one."""

    def actuating_cost_benefit(self, method: Method, count: int) -> CostBenefit:
        """Return what an adaptation would cost and bring over the iterations to come."""
