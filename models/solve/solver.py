"""The only file that knows PuLP and HiGHS.

PuLP holds the papers' models as they are printed; its expressions are read into arrays here and
passed to HiGHS directly. PuLP's own HiGHS class is not used: it reports a limit as "Optimal",
ignores misspelt options and warm starts, and turns the bound's sign round when maximising.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from math import inf
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType

import numpy as np
from pulp import (
    LpAffineExpression,
    LpBinary,
    LpConstraint,
    LpConstraintEQ,
    LpConstraintGE,
    LpConstraintLE,
    LpInteger,
    LpMaximize,
    LpProblem,
    LpVariable,
    PulpError,
)
from pulp.mps_lp import MPSVariable

from ...cluster.errors import SolverError
from ...cluster.resources.capacity import FloatArray, IntArray, sums_before
from ...formats.writing import write_bytes
from .program import IntegerProgram, is_too_large, reduced

try:
    import highspy
except ImportError as _error:
    if "ortools" not in sys.modules:
        raise
    raise SolverError(
        "HiGHS cannot be loaded after OR-Tools in one process: both bring a library libhighs; "
        "run aucsched in a process of its own, e.g. subprocess or multiprocessing with spawn"
    ) from _error

#: What the models take of PuLP.
__all__ = [
    "LpAffineExpression",
    "LpBinary",
    "LpConstraint",
    "LpConstraintEQ",
    "LpConstraintGE",
    "LpConstraintLE",
    "LpInteger",
    "LpMaximize",
    "LpProblem",
    "LpVariable",
    "MPSVariable",
    "PulpError",
]

#: How far from an integer a solver's value may be before it is rounded.
INTEGRALITY = 1e-5


class SolverStatus(StrEnum):
    """How a solve ended; ``within_tolerance``: by itself, of weights that it cannot tell apart."""

    OPTIMAL = "optimal"
    WITHIN_TOLERANCE = "within_tolerance"
    FEASIBLE_AT_LIMIT = "feasible_at_limit"
    NO_SOLUTION_AT_LIMIT = "no_solution_at_limit"
    INFEASIBLE = "infeasible"
    ERROR = "error"


def read_pulp(problem: LpProblem, variables: Sequence[LpVariable]) -> IntegerProgram:
    """Return a PuLP problem as arrays, its columns in the order of ``variables``.

    A minimisation is turned round. Variables in no constraint keep their column.

    Raises:
        SolverError: an expression holds a variable that is not among ``variables``.
    """
    constraints = problem.constraints()
    expressions = list(map(attrgetter("expr"), constraints))
    lengths = np.fromiter(map(len, expressions), np.int64, len(expressions))
    count = int(lengths.sum())
    column = _Columns(variables)
    sign = 1.0 if problem.sense == LpMaximize else -1.0
    objective = np.zeros(len(variables))
    if problem.objective is not None:
        terms = problem.objective
        objective[column.of(terms, len(terms))] = np.fromiter(terms.values(), np.float64, len(terms)) * sign
    sense = np.fromiter(map(attrgetter("sense"), constraints), np.int64, len(expressions))
    right = 0.0 - np.fromiter(map(attrgetter("constant"), constraints), np.float64, len(expressions))
    return IntegerProgram(
        objective=objective,
        lower=_bounds(map(attrgetter("lowBound"), variables), -np.inf),
        upper=_bounds(map(attrgetter("upBound"), variables), np.inf),
        is_integer=np.array([cat == LpInteger for cat in map(attrgetter("cat"), variables)], np.bool_),
        row_lower=np.where(sense == LpConstraintLE, -np.inf, right),
        row_upper=np.where(sense == LpConstraintGE, np.inf, right),
        indptr=sums_before(lengths),
        index=column.of(chain.from_iterable(expressions), count),
        value=np.fromiter(chain.from_iterable(map(dict.values, expressions)), np.float64, count),
    )


class _Columns:
    """Column numbers of PuLP variables, by identity: a million calls of their own hash are slow."""

    def __init__(self, variables: Sequence[LpVariable]) -> None:
        identities = np.fromiter(map(id, variables), np.int64, len(variables))
        self._order = np.argsort(identities)
        self._sorted = identities[self._order]

    def of(self, variables: Mapping[object, float] | chain[object], count: int) -> IntArray:
        """Return the column of each variable."""
        identities = np.fromiter(map(id, variables), np.int64, count)
        place = np.searchsorted(self._sorted, identities)
        place[place == len(self._sorted)] = 0
        if count and not (self._sorted[place] == identities).all():
            raise SolverError("a constraint holds a variable that the model did not name")
        return self._order[place]


def _bounds(values: Iterable[float | None], absent: float) -> FloatArray:
    # None, which no bound is, becomes NaN.
    bounds = np.array(list(values), np.float64)
    return np.where(np.isnan(bounds), absent, bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions:
    """How HiGHS is to solve.

    Attributes:
        time_limit_s: wall time, presolve included.
        absolute_gap: stop once bound − value is at most this; the relative gap is 0.
        seed: HiGHS's random seed.
        most_checks: end a branch and bound after HiGHS asked so often whether to go on: as long on
            every machine, and finer than nodes, of which the first may take most of the time.
        extra: further HiGHS options by name; an unknown name or a bad value is an error.
    """

    time_limit_s: float
    absolute_gap: float = 0.0
    seed: int = 0
    most_checks: int | None = None
    extra: Mapping[str, bool | int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SolveReport:
    """What HiGHS found. ``values``, ``objective``: None without a solution, ``bound`` without one.

    The bound is an upper one: no solution is worth more.
    """

    status: SolverStatus
    values: FloatArray | None
    objective: float | None
    bound: float | None = None


def solve(program: IntegerProgram, options: SolverOptions, start: FloatArray | None = None) -> SolveReport:
    """Solve with HiGHS on one thread, from ``start`` when given (shape (columns,)).

    A program with coefficients unsafe for HiGHS ends at once, as at a limit (program.py).

    Raises:
        SolverError: HiGHS refuses the model, an option or the start, or fails.
    """
    if program.columns == 0:
        return SolveReport(status=SolverStatus.OPTIMAL, values=np.zeros(0), objective=0.0, bound=0.0)
    program = reduced(program)
    if is_too_large(program):
        # The start is what is known of a program that HiGHS is not given.
        return SolveReport(
            status=SolverStatus.NO_SOLUTION_AT_LIMIT if start is None else SolverStatus.FEASIBLE_AT_LIMIT,
            values=start,
            objective=None if start is None else float(program.objective @ start),
        )
    highs = prepared(program, options)
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start
        _checked(highs.setSolution(solution), "refused the start")
    if options.most_checks is not None:
        _stop_after(highs, options.most_checks)
    _checked(highs.run(), "failed")
    return _report(highs, program)


def _stop_after(highs: highspy.Highs, checks: int) -> None:
    left = itertools.count(checks - 1, -1)

    def asked(event: highspy.highs.HighsCallbackEvent) -> None:
        if next(left) <= 0:
            event.interrupt()

    highs.cbMipInterrupt.subscribe(asked)


#: The simplex method on a program as it stands.
_SIMPLEX: Mapping[str, bool | int | float | str] = MappingProxyType({"solver": "simplex", "presolve": "off"})


class RelaxedSolver:
    """HiGHS over a program without its integers; rows may be added, and solving goes on from there.

    Args:
        program: whose integers are left out.
        clock: that limits count by (seconds): HiGHS's is of the wall, another one interrupts it.
        is_small: solve it as it is by the simplex method.

    Attributes:
        objective: of the last optimal solution.
        values: of its columns, shape (columns,).
        duals: of its rows, shape (rows,); not negative where an upper side binds.
    """

    def __init__(
        self,
        program: IntegerProgram,
        clock: Callable[[], float] = time.perf_counter,
        *,
        is_small: bool = False,
    ) -> None:
        linear = replace(program, is_integer=np.zeros(program.columns, np.bool_))
        # Dense columns: the interior-point method is several times faster from nothing.
        method = _SIMPLEX if is_small else {"solver": "ipm"}
        self._highs = prepared(linear, SolverOptions(time_limit_s=0.0, extra=method))
        self.values: FloatArray = np.zeros(program.columns)
        self.duals: FloatArray = np.zeros(program.rows)
        self.objective = inf
        self._clock, self._end = clock, 0.0
        if clock is not time.perf_counter:
            self._highs.cbSimplexInterrupt.subscribe(self._asked)
            self._highs.cbIpmInterrupt.subscribe(self._asked)

    def _asked(self, event: highspy.highs.HighsCallbackEvent) -> None:
        if self._clock() > self._end:
            event.interrupt()

    def solve(self, time_limit_s: float) -> bool:
        """Solve within so many seconds from now; False when that is too short, or HiGHS fails."""
        highs = self._highs
        self._end = self._clock() + time_limit_s
        # HiGHS counts the time of all its runs together.
        end_s = highs.getRunTime() + max(time_limit_s, 0.0) if self._clock is time.perf_counter else inf
        highs.setOptionValue("time_limit", end_s)
        # An interior-point run has failed under a clock that interrupts it.
        failed = highs.run() == highspy.HighsStatus.kError
        if failed or highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        solution = highs.getSolution()
        self.values, self.duals = np.array(solution.col_value), np.array(solution.row_dual)
        self.objective = float(highs.getInfo().objective_function_value)
        return True

    def add_rows(self, rows: Sequence[IntArray]) -> None:
        """Add rows that let the columns of each sum to at most 1."""
        count = np.array([len(row) for row in rows])
        starts = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int32)
        index = np.concatenate(rows).astype(np.int32)
        status = self._highs.addRows(
            len(rows),
            np.full(len(rows), -np.inf),
            np.ones(len(rows)),
            len(index),
            starts,
            index,
            np.ones(len(index)),
        )
        _checked(status, "refused a row")
        # From a solution at hand the dual simplex needs few steps.
        _set_values(self._highs, _SIMPLEX)


def prepared(program: IntegerProgram, options: SolverOptions) -> highspy.Highs:
    """Return HiGHS with the options set and the program passed to it, ready to run."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    values: dict[str, bool | int | float | str] = {
        "output_flag": False,
        # More threads than cores overran a 20 s limit to 42 s; on one, answers repeat.
        "threads": 1,
        "time_limit": max(options.time_limit_s, 0.0),
        "mip_rel_gap": 0.0,
        "mip_abs_gap": options.absolute_gap,
        "random_seed": options.seed,
        **options.extra,
    }
    _set_values(highs, values)
    status = highs.passModel(
        program.columns,
        program.rows,
        program.nonzeros,
        0,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.HessianFormat.kTriangular),
        int(highspy.ObjSense.kMaximize),
        0.0,
        program.objective,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        program.indptr.astype(np.int32),
        program.index.astype(np.int32),
        program.value,
        np.zeros(program.columns + 1, np.int32),
        np.zeros(0, np.int32),
        np.zeros(0),
        program.is_integer.astype(np.int32),
    )
    _checked(status, "refused the model")
    return highs


def _set_values(highs: highspy.Highs, values: Mapping[str, bool | int | float | str]) -> None:
    for name, value in values.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS does not take the option {name} = {value!r}")


#: Endings of files that are written.
EXPORTS = (".mps", ".lp")


def export_program(program: IntegerProgram, names: Sequence[str], path: str, what: str) -> None:
    """Write a program that maximises ``what`` (said at its top) to ``path``, .mps or .lp.

    MPS readers differ about a maximising section, so an .mps file minimises the negated sum.

    Raises:
        InputError: the file cannot be written.
    """
    ending = Path(path).suffix
    is_mps = ending == ".mps"
    asked = program.maximising(-program.objective) if is_mps else program
    highs = prepared(asked, SolverOptions(time_limit_s=1.0))
    if is_mps:
        _checked(highs.changeObjectiveSense(highspy.ObjSense.kMinimize), "refused the sense")
    for column, name in enumerate(names):
        highs.passColName(column, name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"program{ending}"
        _checked(highs.writeModel(str(file)), "could not write the model")
        content = file.read_bytes()
    remark = "* Minimise: the objective is the negated sum" if is_mps else "\\ Maximise the sum"
    write_bytes(path, f"{remark} of {what}\n".encode() + content)


def _checked(status: highspy.HighsStatus, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS {what}")


#: HiGHS's model status → ours when there is a solution, and when there is none.
_LIMITS = (SolverStatus.FEASIBLE_AT_LIMIT, SolverStatus.NO_SOLUTION_AT_LIMIT)
_STATUSES = {
    highspy.HighsModelStatus.kOptimal: (SolverStatus.OPTIMAL, SolverStatus.ERROR),
    highspy.HighsModelStatus.kInfeasible: (SolverStatus.ERROR, SolverStatus.INFEASIBLE),
    highspy.HighsModelStatus.kTimeLimit: _LIMITS,
    highspy.HighsModelStatus.kIterationLimit: _LIMITS,
    highspy.HighsModelStatus.kSolutionLimit: _LIMITS,
    highspy.HighsModelStatus.kInterrupt: _LIMITS,
}


def _report(highs: highspy.Highs, program: IntegerProgram) -> SolveReport:
    info = highs.getInfo()
    has_solution = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    ended = _STATUSES.get(highs.getModelStatus(), (SolverStatus.ERROR, SolverStatus.ERROR))
    status = ended[0] if has_solution else ended[1]
    if status is SolverStatus.ERROR:
        raise SolverError(f"HiGHS ended with the status {highs.modelStatusToString(highs.getModelStatus())}")
    values = _rounded(np.array(highs.getSolution().col_value), program) if has_solution else None
    bound = info.mip_dual_bound if program.is_integer.any() else info.objective_function_value
    return SolveReport(
        status=status,
        values=values,
        objective=None if values is None else float(program.objective @ values),
        bound=float(bound) if np.isfinite(bound) else None,
    )


def _rounded(values: FloatArray, program: IntegerProgram) -> FloatArray:
    """Round integer columns that are integers but for the solver's tolerance."""
    nearest = np.round(values)
    if (np.abs(values - nearest)[program.is_integer] > INTEGRALITY).any():
        raise SolverError("HiGHS returned a fraction where the model asks for an integer")
    return np.where(program.is_integer, nearest, values)
