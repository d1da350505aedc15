"""PuLP's variables and rows that stand in one program after another."""

from __future__ import annotations

import numpy as np
import pytest
from pulp import LpMaximize, PulpError

from aucsched.models.solve.solver import LpConstraint, read_pulp
from aucsched.models.solve.variables import Problem, add_multiples, binaries, integers


def stated(times: list[tuple[int, int]], count: int) -> Problem:
    problem = Problem("p", LpMaximize)
    amounts, chosen = integers(problem, "amount", count), binaries(problem, "chosen", count)
    add_multiples(problem, "most", (amounts, chosen), times)
    return problem


def read(times: list[tuple[int, int]], count: int) -> list[list[float]]:
    """Each row's coefficients, of the amounts and then of the binaries."""
    problem = stated(times, count)
    program = read_pulp(problem, [*integers(problem, "amount", count), *binaries(problem, "chosen", count)])
    rows = np.zeros((program.rows, 2 * count))
    rows[np.repeat(np.arange(program.rows), np.diff(program.indptr)), program.index] = program.value
    assert (program.row_upper == 0).all()
    assert np.isneginf(program.row_lower).all()
    return rows.tolist()


def test_rows_that_are_kept_are_those_of_the_program_that_asks() -> None:
    assert read([(0, 3), (1, 3)], 2) == [[1, 0, -3, 0], [0, 1, 0, -3]]
    # Other factors, other rows; then the first ones again, in another order and alone.
    assert read([(0, 5), (1, 3)], 2) == [[1, 0, -5, 0], [0, 1, 0, -3]]
    assert read([(1, 3), (0, 3)], 2) == [[0, 1, 0, -3], [1, 0, -3, 0]]
    assert read([(1, 0)], 2) == [[0, 1, 0, 0]]


def test_a_row_is_made_once() -> None:
    first, second = stated([(0, 7), (1, 7)], 2), stated([(1, 7), (0, 8)], 2)
    assert second.get_constraint_by_name("most1") is first.get_constraint_by_name("most1")
    assert second.get_constraint_by_name("most0") is not first.get_constraint_by_name("most0")


def test_what_is_beyond_the_kept_ones_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aucsched.models.solve.variables._MOST_KEPT", 1)
    problem = Problem("p", LpMaximize)
    amounts, chosen = integers(problem, "few", 2), binaries(problem, "fewer", 2)
    add_multiples(problem, "beyond_few", (amounts, chosen), [(0, 2), (1, 2)])
    again = Problem("p", LpMaximize)
    amounts, chosen = integers(again, "few", 2), binaries(again, "fewer", 2)
    add_multiples(again, "beyond_few", (amounts, chosen), [(0, 2), (1, 2)])
    program = read_pulp(again, [*amounts, *chosen])
    assert program.value.tolist() == [1, -2, 1, -2]
    assert program.index.tolist() == [0, 2, 1, 3]


def test_two_rows_of_one_name_are_refused() -> None:
    problem = stated([(0, 3)], 1)
    with pytest.raises(PulpError, match="most0"):
        problem.add_rows({"most0": LpConstraint(binaries(problem, "chosen", 1)[0], name="most0", rhs=1)})


def test_pulp_finds_the_variables_of_rows() -> None:
    assert [one.name for one in stated([(0, 3), (1, 2)], 2).variables()] == [
        "amount0",
        "amount1",
        "chosen0",
        "chosen1",
    ]
