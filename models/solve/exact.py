"""Maximising sums of large integer weights exactly, with a solver that computes in floating point.

Priorities may be near 4·10⁹ and differ by 1 (Slurm's priority/basic), or be fractions. HiGHS prunes by
tolerances that such differences fall below. So the weights are split into small integer digits, w = h·B + d
with 2·Σ|d| < B, and the sum is maximised digit by digit: first Σh, then Σd. Priorities that are nearly
multiples of each other, above all nearly equal ones, take this road. Where h·B' + d is small with the least
B' above 2·Σ|d|, both are one stage: the order of the sums is the same with any such base.

Weights that no base splits, as fractions beside 4·10⁹, have no stages: lexicographic.py cuts awards off.
A stage's coefficients stay below 2²⁰ and its sums below 2³¹, where a tolerance of 10⁻⁶ decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Largest weight and largest sum of weights that one stage maximises directly.
LARGEST_WEIGHT = 2**20
LARGEST_SUM = 2**31


def integer_weights(weights: Sequence[int | Fraction]) -> tuple[list[int], Fraction]:
    """Return integers proportional to the weights, and how much one unit of them is worth."""
    # Most columns count nothing, and a job's bids the same.
    different = set(weights)
    scale = lcm(*(Fraction(weight).denominator for weight in different)) if weights else 1
    common = gcd(*(int(weight * scale) for weight in different)) or 1
    whole = {weight: int(weight * scale) // common for weight in different}
    return [whole[weight] for weight in weights], Fraction(common, scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One objective of the sequence.

    Attributes:
        values: integer coefficients of the program's columns.
        unit: how many units of weight one unit of this objective is.
        below: the most that all later stages together can add.
        narrowed: B' where values are h·B' + d, B being ``unit``; 0: they are no two digits.
    """

    values: FloatArray
    unit: int
    below: int
    narrowed: int = 0

    def worth(self, value: int) -> int:
        """Return the sum of weights that a value of this objective, or a bound on one, stands for."""
        if not self.narrowed:
            return value * self.unit
        half = self.narrowed // 2
        high, low = divmod(value + half, self.narrowed)
        return high * self.unit + low - half


def exact_stages(job: IntArray, weights: Sequence[int]) -> tuple[Stage, ...] | None:
    """Split the maximisation of Σ w_i·b_i into exact stages; None where no base splits the weights.

    Args:
        job: the job of each bid, ascending; at most one bid of a job wins.
        weights: not negative.
    """
    parts = _split(list(weights), job)
    if parts is None:
        return None
    narrow = _narrowed(parts, job)
    if narrow is not None:
        return (narrow,)
    below = [largest_sum([unit * value for value in part], job) for part, unit in parts]
    return tuple(
        Stage(values=np.array(part, np.float64), unit=unit, below=sum(below[number + 1 :]))
        for number, (part, unit) in enumerate(parts)
    )


def _narrowed(parts: list[tuple[list[int], int]], job: IntArray) -> Stage | None:
    """Return two digits of every weight as one stage, where they are small beside each other."""
    if len(parts) != 2:  # noqa: PLR2004 - a base splits in two
        return None
    (high, base), (rest, _) = parts
    narrowed = 2 * largest_sum(rest, job) + 1
    both = [narrowed * times + weight for times, weight in zip(high, rest, strict=True)]
    if not _is_small(both, job):
        return None
    return Stage(values=np.array(both, np.float64), unit=base, below=0, narrowed=narrowed)


def largest_sum(weights: Sequence[int], job: IntArray) -> int:
    """Return Σ over jobs of the largest of its bids' |weights|: no award is worth more."""
    pairs = zip(job.tolist(), map(abs, weights), strict=True)
    return sum(max(weight for _, weight in bids) for _, bids in groupby(pairs, key=lambda pair: pair[0]))


def _is_small(weights: list[int], job: IntArray) -> bool:
    return max(map(abs, weights), default=0) <= LARGEST_WEIGHT and largest_sum(weights, job) <= LARGEST_SUM


def _split(weights: list[int], job: IntArray) -> list[tuple[list[int], int]] | None:
    """Return weight vectors, each with its unit, to maximise one after another; None when no base splits."""
    if _is_small(weights, job):
        return [(weights, 1)]
    positive = sorted(abs(weight) for weight in weights if weight)
    bases = {positive[0], positive[len(positive) // 2], positive[-1]} if positive else set[int]()
    for base in sorted(bases):
        high = [(2 * weight + base) // (2 * base) for weight in weights]
        rest = [weight - base * times for weight, times in zip(weights, high, strict=True)]
        # Two awards differ in Σd by at most the spread of both: below B, the greater Σh decides.
        if 2 * largest_sum(rest, job) >= base or not _is_small(high, job):
            continue
        below = _split(rest, job)
        if below is not None:
            return [(high, base), *below]
    return None
