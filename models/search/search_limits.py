"""What a search is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...cluster.resources.capacity import FloatArray, IntArray
from ..solve.lexicographic import NO_LIMIT_S
from ..solve.solver import IntegerProgram, SolverStatus
from .search_parameters import DEFAULT_PARAMETERS, SearchParameters

#: States the integer program over some bids, ascending.
Stating = Callable[[IntArray], IntegerProgram]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """What the search is given.

    Attributes:
        deadline: when to stop, by ``clock`` (seconds); None when only ``steps`` count.
        steps: steps to make at most; None when only the clock counts. Where there are both, steps
            count, and what is done depends on the clock only once the deadline has come.
        seed: of every random choice.
        solves: whether HiGHS gets programs that are small enough; otherwise there is search alone.
        parameters: what steers the search.
        ends: whether the model is stated at the end though nothing is proved: not where more search
            follows.
    """

    deadline: float | None
    steps: int | None
    seed: int
    clock: Callable[[], float]
    parameters: SearchParameters = DEFAULT_PARAMETERS
    solves: bool = True
    ends: bool = True

    @property
    def counts_steps(self) -> bool:
        """Whether steps are counted, not seconds."""
        return self.deadline is None or self.steps is not None

    def left_s(self) -> float:
        """Return the seconds that may be shared out: endless where steps are counted."""
        return NO_LIMIT_S if self.counts_steps else self.ends_in_s()

    def ends_in_s(self) -> float:
        """Return the seconds until the deadline."""
        return NO_LIMIT_S if self.deadline is None else self.deadline - self.clock()

    def shortened(self, share: float) -> SearchLimits:
        """Return the same limits without the last share of the time that is left now."""
        if self.deadline is None:
            return self
        return replace(self, deadline=self.deadline - share * max(0.0, self.ends_in_s()))

    def over(self, share: float) -> Callable[[], bool]:
        """Return what tells whether a share of the time that is left now is used up."""
        left = self.left_s()
        return lambda: self.is_over() or self.left_s() <= (1 - share) * left

    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self.deadline is not None and self.ends_in_s() <= 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """What a search found.

    Attributes:
        award: bids, ascending.
        status: optimal only where preference is proved too; ``proved``: the sum of weights is.
        bound: on the sum of integer weights; None: none is known.
        steps: that were made.
        price: of each row of the packing at the bound, in units of weight, shape (rows,).
        earlier: awards that were the best before it, where steps are counted, not time.
    """

    award: IntArray
    status: SolverStatus
    proved: bool
    bound: int | None
    steps: int
    price: FloatArray
    earlier: tuple[IntArray, ...] = ()
