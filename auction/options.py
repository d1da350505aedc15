"""The options of a step, checked on construction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..cluster.errors import OptionError
from ..models.aucsched2 import Aucsched2
from ..models.aucsched3 import Aucsched3
from ..models.auction_model import AuctionModel
from ..models.preference import PREFERENCE_TABLES

#: Every model that can be asked for by name.
MODELS: Mapping[str, type[Aucsched2 | Aucsched3]] = {
    "aucsched2": Aucsched2,
    "aucsched3": Aucsched3,
}

WEIGHTS = ("lexicographic", "paper")
OBJECTIVES = ("priority", "priority_cores")
STRATEGIES = ("exact",)
ON_TIMEOUT = ("halve", "incumbent", "discard")

#: What a window, a cap or a seed may be at most: beyond it is a slip of the keyboard.
_LARGEST = 10**7
_LARGEST_SEED = 2**31 - 1

__all__ = ["MODELS", "OBJECTIVES", "ON_TIMEOUT", "STRATEGIES", "WEIGHTS", "AuctionModel", "StepOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How a step is to run.

    Attributes:
        model: name in MODELS.
        window: jobs of highest priority that take part (MAX_JOB_COUNT).
        max_bids, max_bids_per_job: MAXBIDS and MAXBIDSPERJOB.
        time_limit_s: wall time of each attempt's solve.
        weights: ``lexicographic``, priorities exactly before preference; ``paper``, the printed sum.
        objective: ``priority`` or ``priority_cores`` (each priority times the job's cores).
        strategy: ``exact``, the papers': HiGHS, halving the window on a timeout.
        on_timeout: ``halve``, ``incumbent`` or ``discard`` (SPEC 1.9).
        reserve: blocked jobs that get a reservation; 0 until reservations are built.
        seed: HiGHS's random seed.
        preference_table: constants of (5.7): ``corrected`` or ``printed`` (table 5.2).
        clock: seconds of wall time.
    """

    model: str = "aucsched3"
    window: int = 100
    max_bids: int = 6000
    max_bids_per_job: int = 60
    time_limit_s: float = 3.0
    weights: str = "lexicographic"
    objective: str = "priority"
    strategy: str = "exact"
    on_timeout: str = "halve"
    reserve: int = 0
    seed: int = 0
    preference_table: str = "corrected"
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        _one_of("model", self.model, tuple(MODELS))
        _one_of("weights", self.weights, WEIGHTS)
        _one_of("objective", self.objective, OBJECTIVES)
        _one_of("strategy", self.strategy, STRATEGIES)
        _one_of("on_timeout", self.on_timeout, ON_TIMEOUT)
        _one_of("preference_table", self.preference_table, tuple(PREFERENCE_TABLES))
        for name in ("window", "max_bids", "max_bids_per_job"):
            _within(name, getattr(self, name), 1, _LARGEST)
        _within("seed", self.seed, 0, _LARGEST_SEED)
        _within("reserve", self.reserve, 0, 0)
        limit = self.time_limit_s
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 0 < limit < float("inf"):
            raise OptionError(f"time_limit_s: {limit!r} is not a positive number of seconds")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name}: {value!r} is not one of {', '.join(choices)}")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise OptionError(f"{name}: {value!r} is not an integer")
    if value < low:
        raise OptionError(f"{name}: {value} is below {low}")
    if value > high:
        raise OptionError(f"{name}: {value} is above {high}")
