"""The solver boundary: exact sums, statuses, bounds, options; against brute force."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import numpy as np
import pulp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.packings import knapsack

from aucsched.cluster.errors import SolverError
from aucsched.models.solve import reduced_program
from aucsched.models.solve.lexicographic import (
    BoundByNumber,
    SolveSettings,
    exact_stages,
    integer_weights,
    solve_lexicographic,
)
from aucsched.models.solve.program import IntegerProgram
from aucsched.models.solve.solver import SolverOptions, SolverStatus, read_pulp, solve

SETTINGS = SolveSettings(time_limit_s=30, seed=0, clock=time.perf_counter)


def test_a_bound_by_number_is_what_whole_jobs_can_reach() -> None:
    """By brute force over every choice of a bid or none of each job."""
    for seed in range(200):
        draw = np.random.default_rng(seed)
        job = np.sort(draw.integers(0, 4, int(draw.integers(1, 9))))
        low, high = [(1, 9), (90, 100), (0, 3)][seed % 3]
        weights = draw.integers(low, high, len(job)).tolist()
        of_job = [[0, *(weights[bid] for bid in np.flatnonzero(job == one))] for one in set(job.tolist())]
        sums = sorted(map(sum, itertools.product(*of_job)))
        by_number = BoundByNumber(weights, job)
        assert by_number.of(None) == sums[-1]
        for bound in range(sums[-1] + 2):
            reached = max(one for one in sums if one <= bound)
            assert reached <= by_number.of(bound) <= bound
    # Two of three jobs of about 100 are within 299, and count 201 at most.
    assert BoundByNumber([99, 100, 101], np.arange(3)).of(299) == 201
    assert BoundByNumber([99, 100, 101], np.arange(3)).of(300) == 300


def best_by_hand(
    sizes: list[int], room: int, weights: list[int], preference: list[float]
) -> tuple[int, float]:
    fitting = (
        chosen
        for chosen in itertools.product((0, 1), repeat=len(sizes))
        if sum(itertools.compress(sizes, chosen)) <= room
    )
    return max(
        (sum(itertools.compress(weights, chosen)), sum(itertools.compress(preference, chosen)))
        for chosen in fitting
    )


items = st.integers(1, 9).flatmap(
    lambda count: st.tuples(
        st.lists(st.integers(1, 20), min_size=count, max_size=count),
        st.one_of(
            st.lists(st.integers(1, 50), min_size=count, max_size=count),
            st.lists(st.integers(4 * 10**9, 4 * 10**9 + 5), min_size=count, max_size=count),
            st.lists(st.integers(1, 2**32), min_size=count, max_size=count),
            st.lists(st.integers(1, 2**49), min_size=count, max_size=count),
            st.lists(st.integers(1, 10**24), min_size=count, max_size=count),
            st.lists(
                st.sampled_from([10**9, 2 * 10**9, 10**9 + 1, 2 * 10**9 - 1]), min_size=count, max_size=count
            ),
        ),
        st.lists(st.integers(0, 8), min_size=count, max_size=count),
    )
)


@given(items, st.integers(0, 60))
@settings(deadline=None, max_examples=300)
@example(([2, 1, 1], [8_000_000_001, 4_000_000_000, 4_000_000_000], [0, 1, 1]), 2)
@example(([2, 1, 1], [7_999_999_999, 4_000_000_000, 4_000_000_000], [0, 1, 1]), 2)
def test_sums_of_weights_of_any_size_are_exact_and_preference_comes_second(
    given_items: tuple[list[int], list[int], list[int]], room: int
) -> None:
    sizes, weights, eighths = given_items
    preference = np.array(eighths) / 8
    start = np.zeros(len(sizes))
    found = solve_lexicographic(
        knapsack(sizes, room), np.arange(len(sizes)), weights, preference, start, SETTINGS
    )
    assert found.status is SolverStatus.OPTIMAL
    chosen = np.flatnonzero(found.values > 0.5)
    value = sum(weights[bid] for bid in chosen)
    assert (value, float(preference[chosen].sum())) == best_by_hand(sizes, room, weights, list(preference))
    assert found.bound == value
    assert sum(sizes[bid] for bid in chosen) <= room


def test_nearly_equal_priorities_are_one_stage() -> None:
    weights = [4 * 10**9 - rank for rank in range(1000)]
    [stage] = exact_stages(np.arange(1000), weights) or ()
    assert len(stage.values) == 1000
    assert stage.worth(int(stage.values.sum())) == sum(weights)


def test_common_factors_and_fractions_become_small_integers() -> None:
    assert integer_weights([Fraction(1, 2), Fraction(3, 4), 1]) == ([2, 3, 4], Fraction(1, 4))
    assert integer_weights([10**12, 3 * 10**12]) == ([1, 3], Fraction(10**12))
    assert integer_weights([]) == ([], Fraction(1))


def hard_program(seed: int) -> IntegerProgram:
    """A multidimensional knapsack that HiGHS does not prove in a moment."""
    rng = np.random.default_rng(seed)
    rows, columns = 30, 200
    values = rng.integers(1, 1000, (rows, columns)).astype(np.float64)
    return IntegerProgram(
        objective=values.mean(axis=0) + rng.integers(0, 500, columns),
        lower=np.zeros(columns),
        upper=np.ones(columns),
        is_integer=np.ones(columns, np.bool_),
        row_lower=np.full(rows, -np.inf),
        row_upper=values.sum(axis=1) / 2,
        indptr=np.arange(rows + 1) * columns,
        index=np.tile(np.arange(columns), rows),
        value=values.ravel(),
    )


def test_a_limit_is_reported_as_one_with_incumbent_and_upper_bound() -> None:
    report = solve(hard_program(0), SolverOptions(time_limit_s=0.5), np.zeros(200))
    assert report.status is SolverStatus.FEASIBLE_AT_LIMIT
    assert report.values is not None
    assert report.objective is not None
    assert report.bound is not None
    assert report.bound > report.objective > 0


def test_a_warm_start_reaches_the_solver() -> None:
    program = hard_program(1)
    found = solve(program, SolverOptions(time_limit_s=1.0), np.zeros(200))
    again = solve(program, SolverOptions(time_limit_s=5.0, extra={"mip_max_nodes": 0}), found.values)
    cold = solve(
        program, SolverOptions(time_limit_s=5.0, extra={"mip_max_nodes": 0, "mip_heuristic_effort": 0.0})
    )
    assert again.objective is not None
    assert found.objective is not None
    assert again.objective >= found.objective > (cold.objective or 0)


def test_no_time_at_all_still_returns_the_start() -> None:
    start = np.zeros(200)
    start[:5] = 1
    report = solve(hard_program(2), SolverOptions(time_limit_s=0.0), start)
    assert report.status in {SolverStatus.FEASIBLE_AT_LIMIT, SolverStatus.NO_SOLUTION_AT_LIMIT}
    if report.values is not None:
        assert report.objective is not None
        assert report.objective >= hard_program(2).objective @ start


def test_infeasible_programs_say_so() -> None:
    program = knapsack([1, 1], 2).with_row(np.array([1.0, 1.0]), 3.0)
    report = solve(program, SolverOptions(time_limit_s=5))
    assert report.status is SolverStatus.INFEASIBLE
    assert report.values is None
    assert report.objective is None


@pytest.mark.parametrize("extra", [{"mip_rel_gab": 0.1}, {"threads": "many"}, {"presolve": "perhaps"}])
def test_unknown_options_and_values_are_refused(extra: dict[str, bool | int | float | str]) -> None:
    with pytest.raises(SolverError, match=next(iter(extra))):
        solve(knapsack([1], 1), SolverOptions(time_limit_s=1, extra=extra))


def test_pulp_expressions_arrive_as_arrays() -> None:
    """Soner: equations (2.1)-(2.3) linear program."""
    problem = pulp.LpProblem("p", pulp.LpMinimize)
    x = [
        problem.add_variable(name, 0, high, cat)
        for name, high, cat in (("x", 4, "Integer"), ("y", None, "Continuous"))
    ]
    problem += 2 * x[0] - 3 * x[1]
    problem += x[0] + 5 * x[1] <= 7
    problem += x[0] - x[1] >= -1
    problem += x[1] == 1
    program = read_pulp(problem, x)
    assert program.objective.tolist() == [-2, 3]
    assert program.upper.tolist() == [4, np.inf]
    assert program.is_integer.tolist() == [True, False]
    assert program.row_lower.tolist() == [-np.inf, -1, 1]
    assert program.row_upper.tolist() == [7, np.inf, 1]
    dense = np.zeros((3, 2))
    dense[np.repeat(np.arange(3), np.diff(program.indptr)), program.index] = program.value
    assert dense.tolist() == [[1, 5], [1, -1], [0, 1]]


def test_a_variable_the_model_did_not_name_is_refused() -> None:
    problem = pulp.LpProblem("p", pulp.LpMaximize)
    x, y = problem.add_variable("x"), problem.add_variable("y")
    problem += x + y <= 1
    with pytest.raises(SolverError):
        read_pulp(problem, [x])


@pytest.mark.parametrize(
    ("limits", "least_s"),
    [({"most_nodes": 0}, 20), ({"most_nodes": 1000}, 20_000), ({"most_checks": 32}, 20), ({}, 0)],
)
def test_seconds_end_a_solve_that_counts_work_only_where_it_is_stuck(
    limits: dict[str, int], least_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock may not cut work that goes on: the more may be done, the longer; and it is never endless."""
    given: list[float] = []

    def seen(asked: IntegerProgram, options: SolverOptions, start: object) -> object:
        given.append(options.time_limit_s)
        return solve(asked, options, start)  # type: ignore[arg-type]

    monkeypatch.setattr(reduced_program, "solve", seen)
    endless = SolveSettings(time_limit_s=1e9, seed=0, clock=time.perf_counter, **limits)
    settings = endless if limits else SETTINGS
    solve_lexicographic(knapsack([3, 5], 6), np.arange(2), [4, 9], np.zeros(2), np.zeros(2), settings)
    assert given
    assert all(least_s <= seconds <= max(least_s * 2, SETTINGS.time_limit_s * 2) for seconds in given)
