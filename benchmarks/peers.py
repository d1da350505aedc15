"""Other solvers on an exported program, each in a process of its own, on one thread.

    python benchmarks/peers.py SOLVER PROGRAM SECONDS ANSWER START

START is a JSON file of the columns that are 1 in the solution that every solver begins with, none where the
auction has none either.
ANSWER is a JSON file: how the solve ended, its bound, seconds, and the values of the best solution by name
of column. Seconds are of the processor, so that a busy machine takes nothing from anybody (CP-SAT knows no
limit but of the wall). Reading the program does not count, except of CBC, a process that reads it itself.
A solver that is not installed ends with ImportError; one that wants more than 10 GiB fails.
"""

from __future__ import annotations

import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from mps import Program, read_mps

Values = dict[str, float]

#: What a solver may allocate: CBC's clique strengthening fills any memory on 9408 nodes.
MEMORY_BYTES = 10 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a solver says: nothing here is believed before it is checked.

    Attributes:
        bound: no solution is worth more; None when none is known.
        cpu: seconds of processor time of the whole process, reading included.
        values: by column, those not named are 0; None without a solution of the program.
        worth, jobs: of an award that is no solution of the program, by the auction's own check.
    """

    status: str
    bound: float | None
    seconds: float
    values: Values | None
    worth: float | None = None
    jobs: int | None = None
    cpu: float = 0.0


def write_answer(path: str, answer: Answer) -> None:
    """Write an answer's file, with the processor time so far of this process and those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    Path(path).write_bytes(msgspec.json.encode(replace(answer, cpu=cpu)))


def read_answer(path: str | Path) -> Answer:
    """Read an answer's file."""
    return msgspec.json.decode(Path(path).read_bytes(), type=Answer)


def write_start(path: Path, names: Sequence[str]) -> None:
    """Write the columns that are 1 in the solution that every solver begins with."""
    path.write_bytes(msgspec.json.encode(list(names)))


def read_start(path: str) -> list[str]:
    """Read them."""
    return msgspec.json.decode(Path(path).read_bytes(), type=list[str])


def highs(path: str, seconds: float, start: Sequence[str]) -> Answer:
    """Solve with HiGHS as it is; its own limit is of the wall, so it is interrupted."""
    module: Any = import_module("highspy")
    solver = module.Highs()
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.readModel(path)
    if start:
        begin, ones = module.HighsSolution(), set(start)
        begin.col_value = [float(name in ones) for name in solver.getLp().col_names_]
        solver.setSolution(begin)
    began = time.process_time()

    def asked(event: Any) -> None:
        if time.process_time() - began > seconds:
            event.interrupt()

    for callback in (solver.cbMipInterrupt, solver.cbSimplexInterrupt, solver.cbIpmInterrupt):
        callback.subscribe(asked)
    solver.run()
    took = time.process_time() - began
    info, program = solver.getInfo(), solver.getLp()
    found = info.primal_solution_status == int(module.SolutionStatus.kSolutionStatusFeasible)
    values = _named(program.col_names_, solver.getSolution().col_value) if found else None
    status = solver.modelStatusToString(solver.getModelStatus())
    return Answer(status=status, bound=_negated(info.mip_dual_bound), seconds=took, values=values)


def cpsat(path: str, seconds: float, start: Sequence[str]) -> Answer:
    """Solve with CP-SAT; rows of ones under one are given as at-most-one."""
    module: Any = import_module("ortools.sat.python.cp_model")
    program = read_mps(path)
    model = module.CpModel()
    columns = [_cpsat_column(model, program, place) for place in range(len(program.names))]
    _add_rows(module, model, program, columns)
    model.minimize(module.LinearExpr.weighted_sum(columns, _numbers(program.objective)))
    if start:
        ones = set(start)
        for name, column in zip(program.names, columns, strict=True):
            model.add_hint(column, int(name in ones))
    solver = module.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    began = time.process_time()
    ended = solver.solve(model)
    took = time.process_time() - began
    found = ended in (module.OPTIMAL, module.FEASIBLE)
    values = _named(program.names, [solver.value(column) for column in columns]) if found else None
    bound = _negated(solver.best_objective_bound)
    return Answer(status=solver.status_name(ended), bound=bound, seconds=took, values=values)


def _cpsat_column(model: Any, program: Program, place: int) -> Any:
    low, high, name = program.lower[place], program.upper[place], program.names[place]
    if low == 0 and high == 1:
        return model.new_bool_var(name)
    return model.new_int_var(int(low), 2**31 if math.isinf(high) else int(high), name)


def _add_rows(module: Any, model: Any, program: Program, columns: list[Any]) -> None:
    order = np.argsort(program.row, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(program.row, minlength=len(program.row_lower)))[:-1])
    for row, part in enumerate(parts):
        low, high, factors = program.row_lower[row], program.row_upper[row], program.value[part]
        chosen = [columns[place] for place in program.column[part].tolist()]
        if (factors % 1 != 0).any():
            raise ValueError(f"row {row} has a factor that is not an integer")
        if high == 1 and math.isinf(low) and (factors == 1).all():
            model.add_at_most_one(chosen)
            continue
        total = module.LinearExpr.weighted_sum(chosen, factors.astype(int).tolist())
        if not math.isinf(high):
            model.add(total <= math.floor(high))
        if not math.isinf(low):
            model.add(total >= math.ceil(low))


def _numbers(values: np.ndarray) -> list[Any]:
    """Return integers where all are: CP-SAT scales fractions, and rounds."""
    return list(values.astype(int).tolist() if (values % 1 == 0).all() else values.tolist())


def scip(path: str, seconds: float, start: Sequence[str]) -> Answer:
    """Solve with SCIP as it is."""
    model: Any = import_module("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(path)
    options = {"limits/time": seconds, "lp/threads": 1, "parallel/maxnthreads": 1}
    # Clock 1 is the processor's.
    for name, value in {**options, "timing/clocktype": 1}.items():
        model.setParam(name, value)
    columns = model.getVars()
    if start:
        begin, ones = model.createSol(), set(start)
        for column in columns:
            model.setSolVal(begin, column, float(column.name in ones))
        model.addSol(begin)
    began = time.process_time()
    model.optimize()
    took = time.process_time() - began
    values = None
    if model.getNSols():
        best = model.getBestSol()
        values = _named([column.name for column in columns], [best[column] for column in columns])
    return Answer(status=model.getStatus(), bound=_negated(model.getDualbound()), seconds=took, values=values)


def cbc(path: str, seconds: float, start: Sequence[str]) -> Answer:
    """Solve with CBC as it is: its program, on the file."""
    program: str = import_module("cbcbox").cbc_bin_path()
    with tempfile.TemporaryDirectory() as folder:
        solution = Path(folder) / "solution.txt"
        limits = ["-timeMode", "cpu", "-seconds", str(seconds), "-ratioGap", "0", "-allowableGap", "0"]
        begin = Path(folder) / "start.txt"
        lines = [f"{number} {name} 1 0" for number, name in enumerate(start)]
        begin.write_text("\n".join(["Stopped - objective value 0", *lines, ""]), encoding="utf-8")
        mips = ["-mipstart", str(begin)] if start else []
        command = [program, path, *limits, *mips, "-solve", "-solution", str(solution)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a solver's
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = used.ru_utime + used.ru_stime
        if ended.returncode:
            raise SystemExit(f"CBC ended with {ended.returncode} after {took:.0f} s")
        lines = solution.read_text(encoding="utf-8").splitlines() if solution.exists() else [""]
    return Answer(
        status=lines[0].partition(" - objective")[0] or "no solution",
        bound=_cbc_bound(ended.stdout),
        seconds=took,
        values=_cbc_values(lines),
    )


def _cbc_values(lines: list[str]) -> Values | None:
    """Return a solution file's values; a solution that breaks rows is marked, and read all the same."""
    if not lines[0] or "no integer solution" in lines[0] or "Infeasible" in lines[0]:
        return None
    rows = (line.removeprefix("**").split() for line in lines[1:])
    return {row[1]: float(row[2]) for row in rows if len(row) > 2 and float(row[2])}


def _cbc_bound(log: str) -> float | None:
    """Return the last bound in a log: at its end, or beside the best solution when time was up."""
    number = r"(-?\d[\d.]*(?:e[+-]?\d+)?)"
    at_end = re.findall(rf"^(?:Lower bound|Objective value):\s+{number}", log, re.MULTILINE)
    on_way = re.findall(rf"best possible {number}", log)
    found = at_end[-1:] or on_way[-1:]
    return _negated(float(found[0])) if found else None


def _named(names: Any, values: Any) -> Values:
    return {name: float(value) for name, value in zip(names, values, strict=True) if value}


def _negated(bound: float) -> float | None:
    """Return the bound on the sum; solvers write 10²⁰ or infinity for none."""
    return None if not math.isfinite(bound) or abs(bound) >= 1e20 else -bound


#: Solver → what it needs installed, what runs it.
PEERS: Mapping[str, tuple[str, Callable[[str, float, Sequence[str]], Answer]]] = {
    "highs": ("highspy", highs),
    "cpsat": ("ortools", cpsat),
    "scip": ("pyscipopt", scip),
    "cbc": ("cbcbox", cbc),
}


def installed() -> list[str]:
    """Return the solvers that can run here; none is imported."""
    return [name for name, (module, _) in PEERS.items() if find_spec(module) is not None]


def main() -> int:
    """Solve, write the answer."""
    name, program, seconds, answer, start = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    write_answer(answer, PEERS[name][1](program, float(seconds), read_start(start)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
