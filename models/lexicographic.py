"""Two objectives in order: the sum of priorities exactly, then preference among the awards that reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np
import numpy.typing as npt

from .exact import ExactProgram, exact_program
from .solver import IntegerProgram, SolveReport, SolverOptions, SolverStatus, solve

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Weights are integers: a solve may stop once the bound is less than one above the value.
_LESS_THAN_ONE = 0.9
#: Preferences of two bids differ by at least 1/((|N|+1)(|S|+1)) or not at all.
_PREFERENCE_GAP = 1e-9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WindowSolution:
    """The winners of one attempt.

    Attributes:
        status: optimal only when every stage was proved.
        chosen: the winning bids, ascending.
        bound: no award over these bids has a greater sum of integer weights; None when not known.
        proved: the sum of weights was proved, whatever became of the preference.
    """

    status: SolverStatus
    chosen: IntArray
    bound: int | None
    proved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveSettings:
    """What an attempt is given: wall time, HiGHS's seed, and the clock that counts the time (seconds)."""

    time_limit_s: float
    seed: int
    clock: Callable[[], float]


def solve_lexicographic(
    program: IntegerProgram,
    job: IntArray,
    weights: list[int],
    preference: FloatArray,
    start: IntArray,
    settings: SolveSettings,
) -> WindowSolution:
    """Maximise Σ weights exactly, then Σ preference among the awards with that sum.

    Args:
        program: one binary column a bid.
        job: the job of each bid, ascending.
        weights: not negative integers.
        preference: not negative, higher is better.
        start: bids of an award that is possible.
        settings: limits, over all stages together.
    """
    deadline = settings.clock() + settings.time_limit_s
    exact = exact_program(program, job, weights)
    best = _as_values(start, exact.bids)
    current = exact.program
    reached = 0
    for stage in exact.stages:
        options = _options(settings, deadline, _LESS_THAN_ONE)
        report = solve(current.maximising(stage.values), options, exact.extended(best))
        best = _better(report, exact, stage.values, best)
        if report.status is not SolverStatus.OPTIMAL:
            bound = _bound(report, reached, stage.unit, stage.below)
            return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, bound, proved=False)
        value = round(float(stage.values @ exact.extended(best)))
        reached += value * stage.unit
        current = current.with_row(stage.values, value - 0.5)
    if sum(weights[bid] for bid in np.flatnonzero(best)) != reached:
        # The digits did not add up within the solver's tolerances: an award, but no proof.
        return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, None, proved=False)
    report = solve(
        current.maximising(_padded(preference, current.columns)),
        _options(settings, deadline, _PREFERENCE_GAP),
        exact.extended(best),
    )
    best = _better(report, exact, _padded(preference, current.columns), best)
    return _solution(report.status, best, reached, proved=True)


def solve_weighted(
    program: IntegerProgram, weights: FloatArray, start: IntArray, settings: SolveSettings
) -> tuple[WindowSolution, float | None]:
    """Maximise Σ weights as they are, the gap 0: the papers' objectives. Also returns the bound."""
    best = _as_values(start, program.columns)
    options = SolverOptions(time_limit_s=settings.time_limit_s, seed=settings.seed)
    report = solve(program.maximising(weights), options, best)
    if report.values is not None and weights @ report.values >= weights @ best:
        best = report.values
    is_optimal = report.status is SolverStatus.OPTIMAL
    return _solution(report.status, best, None, proved=is_optimal), report.bound


def _options(settings: SolveSettings, deadline: float, gap: float) -> SolverOptions:
    return SolverOptions(time_limit_s=deadline - settings.clock(), absolute_gap=gap, seed=settings.seed)


def _as_values(chosen: IntArray, bids: int) -> FloatArray:
    values = np.zeros(bids)
    values[chosen] = 1
    return values


def _padded(values: FloatArray, columns: int) -> FloatArray:
    return np.concatenate([values, np.zeros(columns - len(values))])


def _better(report: SolveReport, exact: ExactProgram, values: FloatArray, best: FloatArray) -> FloatArray:
    """Return the bids of the report's solution, unless the ones at hand are worth more."""
    if report.values is None:
        return best
    found = report.values[: exact.bids]
    if values @ exact.extended(found) >= values @ exact.extended(best):
        return found
    return best


def _bound(report: SolveReport, reached: int, unit: int, below: int) -> int | None:
    if report.bound is None:
        return None
    return reached + floor(report.bound + 1e-6) * unit + below


def _solution(status: SolverStatus, values: FloatArray, bound: int | None, *, proved: bool) -> WindowSolution:
    if status is not SolverStatus.OPTIMAL:
        status = SolverStatus.FEASIBLE_AT_LIMIT
    return WindowSolution(status=status, chosen=np.flatnonzero(values > 0.5), bound=bound, proved=proved)  # noqa: PLR2004 - 0/1 values
