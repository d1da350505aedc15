"""Large coefficients: divided where that changes no solution, kept from HiGHS where it does not help."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.models.solve.program import LARGEST, IntegerProgram, is_too_large, reduced
from aucsched.models.solve.solver import SolverOptions, SolverStatus, solve


def program(sizes: list[float], lower: float, upper: float, *, is_integer: bool = True) -> IntegerProgram:
    count = len(sizes)
    return IntegerProgram(
        objective=np.arange(1.0, count + 1),
        lower=np.zeros(count),
        upper=np.ones(count),
        is_integer=np.full(count, is_integer),
        row_lower=np.array([lower]),
        row_upper=np.array([upper]),
        indptr=np.array([0, count]),
        index=np.arange(count),
        value=np.array(sizes, np.float64),
    )


def solutions(one: IntegerProgram) -> set[tuple[int, ...]]:
    return {
        choice
        for choice in itertools.product((0, 1), repeat=one.columns)
        if one.row_lower[0] <= float(one.value @ np.array(choice)) <= one.row_upper[0]
    }


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=6),
    st.sampled_from([1, 3, 2**20, 10**9, 2**31]),
    st.integers(-60, 60),
    st.integers(0, 60),
    st.integers(-5, 5),
)
def test_dividing_a_row_keeps_its_solutions(
    sizes: list[int], unit: int, lower: int, width: int, off: int
) -> None:
    one = program([size * unit for size in sizes], lower * unit + off, (lower + width) * unit + off)
    smaller = reduced(one)
    assert solutions(smaller) == solutions(one)
    largest = max(map(abs, sizes)) * unit
    if largest >= 2**20:
        assert np.abs(smaller.value).max() == largest / np.gcd.reduce(np.array(sizes) * unit)


def test_rows_of_fractions_or_over_continuous_columns_stay() -> None:
    for one in (
        program([2.0**30 + 0.5, 2.0**30], 0, 2.0**31),
        program([2.0**30, 2.0**31], 0, 2.0**31, is_integer=False),
    ):
        assert reduced(one).value.tolist() == one.value.tolist()


@pytest.mark.parametrize("unit", [2**31, 10**12])
def test_amounts_with_a_common_divisor_are_solved(unit: int) -> None:
    found = solve(program([3.0 * unit, 2.0 * unit, 2.0 * unit], -np.inf, 4.9 * unit), OPTIONS)
    assert found.status is SolverStatus.OPTIMAL
    assert found.values is not None
    assert found.values.tolist() == [0, 1, 1]


def test_what_stays_too_large_ends_at_once_with_the_start_and_no_bound() -> None:
    one = program([2.0**31 + 1, 1.0, 5.0], -np.inf, 2.0**31 + 1)
    assert is_too_large(one)
    assert not is_too_large(program([LARGEST, 1.0], -np.inf, 1.0))
    began = time.process_time()
    found = solve(one, OPTIONS, np.array([0.0, 1.0, 0.0]))
    assert time.process_time() - began < 1
    assert (found.status, found.objective, found.bound) == (SolverStatus.FEASIBLE_AT_LIMIT, 2.0, None)
    assert solve(one, OPTIONS).status is SolverStatus.NO_SOLUTION_AT_LIMIT


OPTIONS = SolverOptions(time_limit_s=30)
