"""Two objectives in order: the sum of priorities exactly, then preference among the awards that reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, log2

import numpy as np
import numpy.typing as npt

from .exact import LARGEST_WEIGHT, ExactProgram, Stage, exact_program
from .reduced_program import ReducedProgram, whole_values
from .solver import IntegerProgram, SolveReport, SolverOptions, SolverStatus

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Weights are integers: a solve may stop once the bound is less than one above the value.
_LESS_THAN_ONE = 0.9
#: Preferences of two bids differ by at least 1/((|N|+1)(|S|+1)) or not at all.
_PREFERENCE_GAP = 1e-9
#: Seconds that stand for "no limit" where only work counts.
NO_LIMIT_S = 1e9
#: HiGHS may stay at the root for minutes without a node or a check, by which work is counted. Seconds after
#: which a solve that is to count work is ended all the same, and as many more for each node, or 40 checks.
STUCK_S, _CHECKS_OF_A_NODE = 20.0, 40
#: HiGHS's tolerances are absolute: with weights of 4·10⁹ it finds no end at the root of a program of 400
#: columns, which it proves in a tenth of a second with weights up to 1024 (docs/decisions/0058).
_LARGE, _SCALED, _TOLERANCE = 2.0**20, 2.0**10, 1e-6
#: Awards of a smaller sum that are cut off one by one before the preference stays unproved.
_MOST_CUTS = 64
#: Between the two values of a binary column.
_HALF = 0.5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WindowSolution:
    """The winners of one attempt.

    Attributes:
        status: optimal only when every stage was proved.
        values: of the program's columns.
        bound: no solution has a greater sum of integer weights; None when not known.
        proved: the sum of weights was proved, whatever became of the preference.
    """

    status: SolverStatus
    values: FloatArray
    bound: int | None
    proved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveSettings:
    """What an attempt is given: wall time, HiGHS's seed, and the clock that counts the time (seconds).

    ``most_nodes`` and ``most_checks`` (SolverOptions) limit branch and bound where the time must not decide.
    """

    time_limit_s: float
    seed: int
    clock: Callable[[], float]
    most_nodes: int | None = None
    most_checks: int | None = None


def solve_lexicographic(
    program: IntegerProgram,
    group: IntArray,
    weights: list[int],
    preference: FloatArray,
    start: FloatArray,
    settings: SolveSettings,
) -> WindowSolution:
    """Maximise Σ weights·x exactly, then Σ preference·x among the solutions with that sum.

    Args:
        program: the rows; columns with a weight are binary.
        group: a number for each column, ascending; of the weighted columns of a group at most one is 1.
        weights: not negative integers, 0 for columns that only carry amounts; shape (columns,).
        preference: higher is better, shape (columns,).
        start: a solution, shape (columns,).
        settings: limits, over all stages together.
    """
    deadline = settings.clock() + settings.time_limit_s
    smaller = ReducedProgram(
        program, group, [np.array([float(weight != 0) for weight in weights]), preference]
    )
    solution = _in_stages(
        smaller,
        group[smaller.kept],
        smaller.folded_exactly(weights),
        smaller.folded(preference),
        start[smaller.kept],
        settings,
        deadline,
    )
    return replace(solution, values=whole_values(smaller, solution.values, start))


def _in_stages(
    smaller: ReducedProgram,
    group: IntArray,
    weights: list[int],
    preference: FloatArray,
    start: FloatArray,
    settings: SolveSettings,
    deadline: float,
) -> WindowSolution:
    """Maximise the weights stage by stage, then preference, over the columns that are left."""
    exact = exact_program(smaller.program, group, weights)
    best = start
    current = exact.program
    reached = 0
    for stage in exact.stages:
        options = partial(_options, settings, deadline, _LESS_THAN_ONE, has_digits=bool(exact.digits))
        report = smaller.solve(current.maximising(stage.values), options, exact.extended(best))
        best = _better(report, exact, stage.values, best)
        if report.status is not SolverStatus.OPTIMAL:
            bound = _bound(report, reached, stage)
            return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, bound, proved=False)
        value = round(float(stage.values @ exact.extended(best)))
        reached += stage.worth(value)
        current = current.with_row(stage.values, value - 0.5)
    if exact_sum(weights, best) != reached:
        # The digits did not add up within the solver's tolerances: an award, but no proof.
        return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, None, proved=False)
    if not preference.any():
        return _solution(SolverStatus.OPTIMAL, best, reached, proved=True)
    if exact.digits:
        return _most_preferred(smaller, group, weights, preference, best, settings, deadline)
    report = smaller.solve(
        current.maximising(_padded(preference, current.columns)),
        partial(_options, settings, deadline, _PREFERENCE_GAP),
        exact.extended(best),
    )
    best = _better(report, exact, _padded(preference, current.columns), best)
    return _solution(report.status, best, reached, proved=True)


def _most_preferred(
    smaller: ReducedProgram,
    group: IntArray,
    weights: list[int],
    preference: FloatArray,
    best: FloatArray,
    settings: SolveSettings,
    deadline: float,
) -> WindowSolution:
    """Maximise preference among the awards whose weights sum to ``best``'s, the greatest sum there is.

    Rows that hold the digits of that sum lead HiGHS to call the wrong award the best: a carry off by a
    tolerance is worth many units of the digit below it. So the sum is held by rows of small coefficients that
    every such award keeps, and an award that sums to less is cut off: it lacks a bid that they must hold.
    """
    reached = exact_sum(weights, best)
    program = smaller.program.maximising(preference)
    for row, lower in _rows_of_sum(group, weights, reached):
        program = program.with_row(row, lower)
    options = partial(_options, settings, deadline, _PREFERENCE_GAP)
    for _ in range(_MOST_CUTS):
        report = smaller.solve(program, options, best)
        if report.values is None:
            break
        if exact_sum(weights, report.values) == reached:
            found = report.values if preference @ report.values >= preference @ best else best
            return _solution(report.status, found, reached, proved=True)
        if report.status is not SolverStatus.OPTIMAL:
            break
        won = np.where(report.values > _HALF, np.array(weights, object), 0)
        program = program.with_row(_needed(group, weights, won, reached), 1.0)
    return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, reached, proved=True)


def _rows_of_sum(group: IntArray, weights: list[int], reached: int) -> list[tuple[FloatArray, float]]:
    """Return rows, with their lower side, that every award whose weights sum to so much keeps.

    The first is that sum, its weights rounded up to small integers. Then, of each group without which no
    award sums to so much, the bids of which one must win.
    """
    unit = -(-max(weights) // LARGEST_WEIGHT)
    rounded = np.array([-(-weight // unit) for weight in weights], np.float64)
    rows = [(rounded, float(-(-reached // unit)))]
    weight = np.array(weights, object)
    most = {int(one): max(weight[group == one]) for one in np.unique(group)}
    spare = sum(most.values()) - reached
    for one, largest in most.items():
        if largest > spare:
            rows.append((((group == one) & (weight >= largest - spare)).astype(np.float64), 1.0))
    return rows


def _needed(group: IntArray, weights: list[int], won: npt.NDArray[np.object_], reached: int) -> FloatArray:
    """Return the bids of which an award whose weights sum to ``reached`` holds one at least, as 0 and 1.

    ``won`` holds the weights of an award that sums to less, and 0 where a bid lost. Any award in which no
    group counts more than in it sums to less, too; so do those in which groups count as much more as there
    is between the two sums.
    """
    weight = np.array(weights, object)
    counted = {int(one): max(won[group == one]) for one in np.unique(group)}
    between = reached - sum(counted.values()) - 1
    for one, least in counted.items():
        own = weight[group == one]
        counted[one] = max((*own[own <= least + between], least))
        between -= counted[one] - least
    cap = np.array([counted[one] for one in group.tolist()], object)
    return (weight > cap).astype(np.float64)


def solve_weighted(
    program: IntegerProgram, group: IntArray, weights: FloatArray, start: FloatArray, settings: SolveSettings
) -> tuple[WindowSolution, float | None]:
    """Maximise Σ weights as they are, the gap 0: the papers' objectives. Also returns the bound.

    Where nodes are counted, large weights are divided by a power of two; then nothing is said to be proved.
    """
    best = start
    options = partial(_options, settings, settings.clock() + settings.time_limit_s, 0.0)
    divisor = 1.0 if settings.most_nodes is None else _divisor(weights)
    smaller = ReducedProgram(program, group, [weights])
    asked = smaller.program.maximising(smaller.folded(weights) / divisor)
    report = smaller.solve(asked, options, best[smaller.kept])
    if report.values is not None:
        found = whole_values(smaller, report.values, start)
        best = found if weights @ found >= weights @ best else best
    is_optimal = report.status is SolverStatus.OPTIMAL and divisor == 1.0
    status = report.status if divisor == 1.0 else SolverStatus.FEASIBLE_AT_LIMIT
    bound = report.bound
    if bound is not None and divisor > 1.0:
        bound = (bound + _TOLERANCE) * divisor
    return _solution(status, best, None, proved=is_optimal), bound


def _divisor(weights: FloatArray) -> float:
    """Return the power of two that brings large weights below 1024; 1 where none is large."""
    largest = float(np.abs(weights).max(initial=0.0))
    return 1.0 if largest <= _LARGE else 2.0 ** ceil(log2(largest / _SCALED))


def _work_limit(settings: SolveSettings) -> float | None:
    """Return the nodes that a solve may take, or checks as nodes; None where the clock limits it."""
    if settings.most_nodes is not None:
        return settings.most_nodes
    return None if settings.most_checks is None else settings.most_checks / _CHECKS_OF_A_NODE


def exact_sum(weights: list[int], values: FloatArray) -> int:
    """Return Σ weights over the columns that are 1, in Python's integers."""
    return sum(weights[column] for column in np.flatnonzero(values > _HALF).tolist() if weights[column])


def _options(
    settings: SolveSettings, deadline: float, gap: float, *, has_digits: bool = False
) -> SolverOptions:
    extra: dict[str, float] = {} if settings.most_nodes is None else {"mip_max_nodes": settings.most_nodes}
    if has_digits:
        # A carry off by 10⁻⁶ is worth 0.07 of the digit below it: presolve missed awards of equal sums.
        extra["mip_feasibility_tolerance"] = 1e-9
    counted = _work_limit(settings)
    left_s = deadline - settings.clock()
    return SolverOptions(
        time_limit_s=left_s if counted is None else min(left_s, STUCK_S * (1 + counted)),
        absolute_gap=gap,
        seed=settings.seed,
        most_checks=settings.most_checks,
        extra=extra,
    )


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


def _bound(report: SolveReport, reached: int, stage: Stage) -> int | None:
    if report.bound is None:
        return None
    return reached + stage.worth(floor(report.bound + 1e-6)) + stage.below


def _solution(status: SolverStatus, values: FloatArray, bound: int | None, *, proved: bool) -> WindowSolution:
    if status is not SolverStatus.OPTIMAL:
        status = SolverStatus.FEASIBLE_AT_LIMIT
    return WindowSolution(status=status, values=values, bound=bound, proved=proved)
