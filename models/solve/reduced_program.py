"""A program as HiGHS gets it: presolved (presolve.py), its amounts dealt afterwards (decomposition.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .decomposition import dealing_of
from .presolve import presolved
from .program import FloatArray, IntArray, IntegerProgram
from .solver import SolveReport, SolverOptions, solve
from .strengthening import strengthened

#: Entries above which a program is left as it is: HiGHS looks for the same, in C++.
_MOST_ENTRIES = 500_000


class ReducedProgram:
    """A smaller program with the same solutions.

    Args:
        program: the whole one.
        group: of columns of one group at most one is 1, by the rows.
        counts: the objectives that it is to be solved for, each of shape (columns,).

    Attributes:
        program: what is left.
        kept: which columns of the whole program it has, ascending.
    """

    def __init__(self, program: IntegerProgram, group: IntArray, counts: Sequence[FloatArray]) -> None:
        self._presolved = presolved(program) if program.nonzeros <= _MOST_ENTRIES else None
        self._dealing = None
        self.program, self.kept = program, np.arange(program.columns)
        if self._presolved is None:
            return
        found = self._presolved
        self.program, self.kept = found.program, found.kept
        counted = np.zeros(len(found.kept), np.bool_)
        for one in counts:
            counted |= found.folded(one) != 0
        self._dealing = dealing_of(found.program, found.is_amount, counted)
        if self._dealing is not None:
            self.program, self.kept = self._dealing.program, found.kept[self._dealing.kept]
        excluding = None if self._dealing is None else self._dealing.excluding
        self.program = strengthened(self.program, group[self.kept], excluding)

    def folded(self, objective: FloatArray) -> FloatArray:
        """Return an objective over the columns that are left."""
        if self._presolved is None:
            return objective
        folded = self._presolved.folded(objective)
        return folded if self._dealing is None else folded[self._dealing.kept]

    def folded_exactly(self, weights: Sequence[int]) -> list[int]:
        """Return integer weights over the columns that are left."""
        if self._presolved is None:
            return list(weights)
        found, sums = self._presolved, [0] * len(self._presolved.kept)
        for column, weight in enumerate(weights):
            if weight:
                sums[found.leader[column]] += weight * int(found.times[column])
        return sums if self._dealing is None else [sums[column] for column in self._dealing.kept.tolist()]

    def lifted(self, values: FloatArray) -> FloatArray | None:
        """Return the whole program's values; None: their amounts cannot be dealt, which is a cut now."""
        if self._presolved is None:
            return values
        dealt = values if self._dealing is None else self._dealing.dealt(values)
        return None if dealt is None else self._presolved.lifted(dealt)

    def solve(
        self, program: IntegerProgram, options: Callable[[], SolverOptions], start: FloatArray
    ) -> SolveReport:
        """Solve what is left, with columns and rows that have come to it, until its amounts can be dealt.

        Args:
            program: ``self.program`` with further columns and rows behind its own.
            options: of each solve.
            start: a solution, whose amounts can be dealt.
        """
        while True:
            report = solve(self._with_cuts(program), options(), start)
            if report.values is None or self.lifted(report.values[: len(self.kept)]) is not None:
                return report

    def _with_cuts(self, program: IntegerProgram) -> IntegerProgram:
        for cut in () if self._dealing is None else self._dealing.cuts:
            program = program.with_row(cut.values, -np.inf, cut.upper)
        return program


def whole_values(smaller: ReducedProgram, values: FloatArray, start: FloatArray) -> FloatArray:
    """Return the whole program's values, the start's own where these are the start's."""
    if np.array_equal(values, start[smaller.kept]):
        return start
    lifted = smaller.lifted(values)
    return start if lifted is None else lifted
