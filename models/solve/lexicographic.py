"""Two objectives in order: the sum of priorities exactly, then preference among its awards.

The solver computes in floating point. Priorities may be near 4·10⁹ and differ by 1 (Slurm's
priority/basic), or be fractions. HiGHS prunes by tolerances that such differences fall below. So
the weights are split into small integer digits, w = h·B + d with 2·Σ|d| < B, and the sum is
maximised digit by digit: first Σh, then Σd. Priorities that are nearly multiples of each other,
above all nearly equal ones, take this road. Where h·B' + d is small with the least B' above 2·Σ|d|,
both are one stage: the order of the sums is the same with any such base.

Weights that no base splits, as fractions beside 4·10⁹, have no stages: awards are cut off.
A stage's coefficients stay below 2²⁰ and its sums below 2³¹, where a tolerance of 10⁻⁶ decides
nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import ceil, floor, gcd, lcm, log2

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray
from .program import IntegerProgram, are_one
from .reduced_program import ReducedProgram, whole_values
from .solver import SolveReport, SolverOptions, SolverStatus

#: Weights are integers: a solve may stop once the bound is less than one above the value.
_LESS_THAN_ONE = 0.9
#: Preferences of two bids differ by at least 1/((|N|+1)(|S|+1)) or not at all.
_PREFERENCE_GAP = 1e-9
#: Seconds that stand for "no limit" where only work counts.
NO_LIMIT_S = 1e9
#: HiGHS may stay at the root for minutes without a node or a check, by which work is counted.
#: Seconds after which a solve that counts work must end; as many more for each node, or 40 checks.
STUCK_S, _CHECKS_OF_A_NODE = 20.0, 40
#: HiGHS's tolerances are absolute: with weights of 4·10⁹ it finds no end at the root of a program
#: of 400 columns, proved in a tenth of a second with weights up to 1024 (docs/decisions/0058).
_LARGE, _SCALED, _TOLERANCE = 2.0**20, 2.0**10, 1e-6
#: Looks for a greater sum, and for a more preferred award of it, before nothing is said to be
#: proved: 2 in most programs, 9 in the worst of 3 000.
_MOST_CUTS = 64


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
    """What an attempt has: wall time, HiGHS's seed, and the clock that counts the time (seconds).

    ``most_nodes`` and ``most_checks`` (SolverOptions) limit branch and bound in place of the time.
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
        group: a number for each column, ascending; of a group's weighted columns at most one is 1.
        weights: not negative integers, 0 for columns that only carry amounts; shape (columns,).
        preference: higher is better, shape (columns,).
        start: a solution, shape (columns,).
        settings: limits, over all stages together.
    """
    smaller = ReducedProgram(
        program, group, [np.array([float(weight != 0) for weight in weights]), preference]
    )
    task = _Task(
        smaller=smaller,
        group=group[smaller.kept],
        weights=smaller.folded_exactly(weights),
        preference=smaller.folded(preference),
        settings=settings,
        deadline=settings.clock() + settings.time_limit_s,
    )
    solution = _in_stages(task, start[smaller.kept])
    return replace(solution, values=whole_values(smaller, solution.values, start))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Task:
    """What is maximised over the columns that are left: the weights, then the preference."""

    smaller: ReducedProgram
    group: IntArray
    weights: list[int]
    preference: FloatArray
    settings: SolveSettings
    deadline: float

    def solve(
        self, program: IntegerProgram, objective: FloatArray, gap: float, best: FloatArray
    ) -> SolveReport:
        """Maximise an objective over a program of these columns, the best solution its start."""
        options = partial(_options, self.settings, self.deadline, gap)
        return self.smaller.solve(program.maximising(objective), options, best)


def _in_stages(task: _Task, best: FloatArray) -> WindowSolution:
    """Maximise the weights stage by stage, then preference, over the columns that are left."""
    stages = exact_stages(task.group, task.weights)
    if stages is None:
        return _by_cuts(task, best)
    current, reached = task.smaller.program, 0
    for stage in stages:
        report = task.solve(current, stage.values, _LESS_THAN_ONE, best)
        best = _better(report, stage.values, best)
        if report.status is not SolverStatus.OPTIMAL:
            bound = None
            if report.bound is not None:
                bound = reached + stage.worth(floor(report.bound + _TOLERANCE)) + stage.below
            return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, bound, proved=False)
        value = round(float(stage.values @ best))
        reached += stage.worth(value)
        current = current.with_row(stage.values, value - 0.5)
    if exact_sum(task.weights, best) != reached:
        # The stages did not add up within the solver's tolerances: an award, but no proof.
        return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, None, proved=False)
    preference = task.preference
    if not preference.any():
        return _solution(SolverStatus.OPTIMAL, best, reached, proved=True)
    report = task.solve(current, preference, _PREFERENCE_GAP, best)
    return _solution(report.status, _better(report, preference, best), reached, proved=True)


def _by_cuts(task: _Task, best: FloatArray) -> WindowSolution:
    """Maximise weights that no base splits, then preference, by rows of small coefficients alone.

    Each look is for an award with weights that sum to more than the best's: that sum is a row in
    rounded units. An award that keeps the row but sums to less is cut off by its shortfall. If
    there is none, the best sum is proved; then the most preferred award of it is sought likewise.
    """
    group, weights = task.group, task.weights
    program, rounded = task.smaller.program, _in_units(weights)
    for _ in range(_MOST_CUTS):
        more = exact_sum(weights, best) + 1
        report = task.solve(_with_sum(program, group, weights, more), rounded, _LESS_THAN_ONE, best)
        if report.status is SolverStatus.INFEASIBLE:
            return _most_preferred(task, best)
        if report.values is not None and exact_sum(weights, report.values) >= more:
            best = report.values
        elif report.values is not None:
            program = program.with_row(_needed(group, weights, report.values, more), 1.0)
        if report.status is not SolverStatus.OPTIMAL:
            break
    bound = largest_sum(weights, group)
    if report.bound is not None:
        bound = min(bound, floor(report.bound + _TOLERANCE) * _unit(weights))
    return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, bound, proved=False)


def _most_preferred(task: _Task, best: FloatArray) -> WindowSolution:
    """Maximise preference among the awards whose weights sum to ``best``'s, the greatest sum."""
    group, weights, preference = task.group, task.weights, task.preference
    reached = exact_sum(weights, best)
    if not preference.any():
        return _solution(SolverStatus.OPTIMAL, best, reached, proved=True)
    program = _with_sum(task.smaller.program, group, weights, reached)
    for _ in range(_MOST_CUTS):
        report = task.solve(program, preference, _PREFERENCE_GAP, best)
        if report.values is None:
            break
        if exact_sum(weights, report.values) == reached:
            found = report.values if preference @ report.values >= preference @ best else best
            return _solution(report.status, found, reached, proved=True)
        if report.status is not SolverStatus.OPTIMAL:
            break
        program = program.with_row(_needed(group, weights, report.values, reached), 1.0)
    return _solution(SolverStatus.FEASIBLE_AT_LIMIT, best, reached, proved=True)


def _in_units(weights: list[int]) -> FloatArray:
    """Return weights rounded up to whole units, the largest at most ``LARGEST_WEIGHT``."""
    unit = _unit(weights)
    return np.array([-(-weight // unit) for weight in weights], np.float64)


def _unit(weights: list[int]) -> int:
    return -(-max(weights) // LARGEST_WEIGHT)


def _with_sum(program: IntegerProgram, group: IntArray, weights: list[int], reached: int) -> IntegerProgram:
    """Return a program with rows that every award keeps whose weights sum to so much.

    The first is that sum, in units. Then, of each group without which no award sums to so much, the
    bids of which one must win.
    """
    program = program.with_row(_in_units(weights), float(-(-reached // _unit(weights))))
    weight = np.array(weights, object)
    most = {int(one): max(weight[group == one]) for one in np.unique(group)}
    spare = sum(most.values()) - reached
    for one, largest in most.items():
        if largest > spare:
            must = (group == one) & (weight >= largest - spare)
            program = program.with_row(must.astype(np.float64), 1.0)
    return program


def _needed(group: IntArray, weights: list[int], values: FloatArray, reached: int) -> FloatArray:
    """Return the bids, as 0 and 1, one of which each award of weights summing to ``reached`` holds.

    ``values`` are an award that sums to less. So does any award in which no group counts more than
    in it, and those in which groups together count more by less than the two sums differ.
    """
    weight = np.array(weights, object)
    won = np.where(are_one(values), weight, 0)
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

    Where nodes are counted, large weights are divided by a power of two: no proof is claimed then.
    """
    best = start
    options = partial(_options, settings, settings.clock() + settings.time_limit_s, 0.0)
    largest = float(np.abs(weights).max(initial=0.0))
    is_large = settings.most_nodes is not None and largest > _LARGE
    divisor = 2.0 ** ceil(log2(largest / _SCALED)) if is_large else 1.0
    smaller = ReducedProgram(program, group, [weights])
    asked = smaller.program.maximising(smaller.folded(weights) / divisor)
    report = smaller.solve(asked, options, best[smaller.kept])
    if report.values is not None:
        found = whole_values(smaller, report.values, start)
        best = found if weights @ found >= weights @ best else best
    status, bound = report.status, report.bound
    if divisor > 1.0 and status is SolverStatus.OPTIMAL:
        status = SolverStatus.WITHIN_TOLERANCE
    if bound is not None and divisor > 1.0:
        bound = (bound + _TOLERANCE) * divisor
    return _solution(status, best, None, proved=status is SolverStatus.OPTIMAL), bound


def exact_sum(weights: list[int], values: FloatArray) -> int:
    """Return Σ weights over the columns that are 1, in Python's integers."""
    return sum(weights[column] for column in np.flatnonzero(are_one(values)).tolist())


def _options(settings: SolveSettings, deadline: float, gap: float) -> SolverOptions:
    extra: dict[str, float] = {} if settings.most_nodes is None else {"mip_max_nodes": settings.most_nodes}
    # Nodes, or checks as nodes; None where the clock limits a solve.
    counted: float | None = settings.most_nodes
    if counted is None and settings.most_checks is not None:
        counted = settings.most_checks / _CHECKS_OF_A_NODE
    left_s = deadline - settings.clock()
    return SolverOptions(
        time_limit_s=left_s if counted is None else min(left_s, STUCK_S * (1 + counted)),
        absolute_gap=gap,
        seed=settings.seed,
        most_checks=settings.most_checks,
        extra=extra,
    )


def _better(report: SolveReport, values: FloatArray, best: FloatArray) -> FloatArray:
    """Return the report's solution, unless the one at hand is worth more."""
    if report.values is not None and values @ report.values >= values @ best:
        return report.values
    return best


def _solution(status: SolverStatus, values: FloatArray, bound: int | None, *, proved: bool) -> WindowSolution:
    if status not in (SolverStatus.OPTIMAL, SolverStatus.WITHIN_TOLERANCE):
        status = SolverStatus.FEASIBLE_AT_LIMIT
    return WindowSolution(status=status, values=values, bound=bound, proved=proved)


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
        """Return the sum of weights for a value of this objective, or for a bound on one."""
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
    # Most of a job's bids count the same.
    return sum(dict(sorted(set(zip(job.tolist(), map(abs, weights), strict=True)))).values())


class BoundByNumber:
    """Bounds a sum of weights by how many jobs can win: their least weights together are within it.

    So an award is worth no more than the largest weights of as many. Where weights are near to each
    other that is next to what an award of whole jobs can reach.

    Args:
        weights: of each bid, not negative.
        job: whose each is, shape (bids,).
    """

    def __init__(self, weights: Sequence[int | Fraction], job: IntArray) -> None:
        of_job = sorted(set(zip(job.tolist(), weights, strict=True)))
        most = dict(of_job)
        least = dict(reversed(of_job))
        self._least: list[int | Fraction] = list(accumulate(sorted(least.values())))
        largest = sorted(most.values(), reverse=True)
        self._most: list[int | Fraction] = list(accumulate(largest, initial=0))

    def of(self, bound: int | Fraction | None) -> int | Fraction:
        """Return a bound no higher than one that holds; None: none is known."""
        if bound is None:
            return self._most[-1]
        return min(bound, self._most[bisect_right(self._least, bound)])


def _is_small(weights: list[int], job: IntArray) -> bool:
    return max(map(abs, weights), default=0) <= LARGEST_WEIGHT and largest_sum(weights, job) <= LARGEST_SUM


def _split(weights: list[int], job: IntArray) -> list[tuple[list[int], int]] | None:
    """Return weight vectors with units to maximise one after another; None: no base splits."""
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
