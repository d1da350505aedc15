"""What awards are compared by: the exact sum of weights, then preference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray

#: The largest weight becomes this for the solver: room on both sides of its tolerances.
SCALE = 1e4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Worth:
    """What bids are worth.

    Attributes:
        weights: exact integers, compared as such.
        value: the same as floats for the solver, scaled so that the largest is near 10⁴.
        preference: second, not negative.
    """

    weights: Sequence[int]
    value: FloatArray
    preference: FloatArray

    @classmethod
    def scaled(cls, weights: list[int], preference: FloatArray) -> Worth:
        """Return the worth of bids by their weights, not negative, and their preference, shape (bids,)."""
        largest = max(weights, default=1) or 1
        value = np.array([weight / largest for weight in weights]) * SCALE
        return cls(weights=weights, value=value, preference=preference)

    def of(self, bids: IntArray) -> tuple[int, float]:
        """Return an award's exact sum and its preference."""
        return sum(self.weights[bid] for bid in bids.tolist()), round(float(self.preference[bids].sum()), 9)
