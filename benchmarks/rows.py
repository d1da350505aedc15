"""Lines of a comparison: a solver's answer, checked against the program before its value counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from known import Known
from mps import Program, WrongAnswerError
from peers import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; ``value`` None without a solution that holds.

    ``limit`` is the seconds it was given, ``columns`` those that are 1 in its solution. ``in_program`` tells
    whether the value is of a solution of the program: the auction may bid otherwise.
    """

    solver: str
    note: str
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    cpu: float | None = None
    jobs: int | None = None
    in_program: bool = True
    limit: float | None = None
    columns: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The solver and its limit."""
        return self.solver if self.limit is None else f"{self.solver} {self.limit:g} s"

    @property
    def gap(self) -> float | None:
        """(bound − value) / value."""
        if self.value is None or self.bound is None or self.value <= 0:
            return None
        return (self.bound - self.value) / self.value


def judged(solver: str, program: Program, answer: Answer) -> Row:
    """Return a solver's row, its value worked out from its own solution; a wrong one gives none."""
    row = Row(solver=solver, note=answer.status, bound=answer.bound, seconds=answer.seconds, cpu=answer.cpu)
    if answer.values is not None:
        try:
            values = program.checked(answer.values)
        except WrongAnswerError as error:
            return replace(row, note=f"refused: {error}")
        columns = tuple(np.flatnonzero(values).tolist())
        return replace(row, value=program.worth(values), jobs=program.jobs(values), columns=columns)
    if answer.worth is None:
        return row
    note = f"{answer.status}, bids of its own"
    return replace(row, value=answer.worth, jobs=answer.jobs, note=note, in_program=False)


def holds(bound: float | None, value: float) -> bool:
    """Return whether a bound is one beside a checked value; solvers leave it a rounding short."""
    return bound is not None and bound >= value * (1 - 1e-9)


def table(name: str, program: Program, rows: Sequence[Row], known: Known | None) -> str:
    """Return the rows as Markdown, with what was known before."""
    best = max((row.value for row in rows if row.value is not None and row.in_program), default=0.0)
    lines = [
        f"### {name}",
        "",
        f"{len(program.names)} columns, {len(program.row_lower)} rows, {len(program.value)} entries",
        "",
        "| solver | value | bound | gap | seconds | CPU s | jobs | |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *(_line(row, best) for row in rows),
    ]
    if known is not None and known.program == program.digest():
        bound = _number(known.bound, ",.0f")
        lines.append(f"| best known before | {known.value:,.0f} | {bound} | | | | | {known.by} |")
    return "\n".join(lines) + "\n"


def _line(row: Row, best: float) -> str:
    bound = _number(row.bound, ",.0f")
    if row.bound is not None and not holds(row.bound, best):
        bound = f"({bound})"
    times = (_number(row.seconds, ".1f"), _number(row.cpu, ".1f"))
    cells = (_number(row.value, ",.0f"), bound, _number(row.gap, ".2%"), *times)
    return f"| {row.name} | {' | '.join(cells)} | {'' if row.jobs is None else row.jobs} | {row.note} |"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
