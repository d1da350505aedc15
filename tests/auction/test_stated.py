"""The papers' program in PuLP: a default step states it where its search proves nothing."""

from __future__ import annotations

from typing import Any

import pytest
from clusters import fragmented

from aucsched import Snapshot, schedule
from aucsched.models.solve.lexicographic import WindowSolution, solve_lexicographic
from aucsched.models.solve.solver import read_pulp


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[WindowSolution]]:
    """Columns of the programs that PuLP states, and what HiGHS makes of each."""
    stated: list[int] = []
    solved: list[WindowSolution] = []

    def reading(problem: Any, variables: Any) -> Any:
        stated.append(len(variables))
        return read_pulp(problem, variables)

    def solving(*given: Any) -> WindowSolution:
        solved.append(solve_lexicographic(*given))
        return solved[-1]

    monkeypatch.setattr("aucsched.models.model.read_pulp", reading)
    monkeypatch.setattr("aucsched.models.search.anytime.solve_lexicographic", solving)
    return stated, solved


# Of seeds 5 and 7 branch and bound leaves nothing open.
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 6, 8, 9])
def test_what_the_search_leaves_open_is_stated_and_solved(seed: int, counted: Any) -> None:
    stated, solved = counted
    # The clock stands: how busy the machine is does not matter.
    result = schedule(window_of(seed), clock=lambda: 0.0)
    assert result.status == "feasible"
    assert len(stated) == len(solved) >= 1
    assert all(columns > 100 for columns in stated)
    assert all(one.status == "optimal" for one in solved)
    # Of some of the bids nothing is proved of all.
    assert result.objective.bound is not None
    assert result.objective.bound >= result.objective.priority


def test_what_the_search_proves_is_not_stated(counted: Any) -> None:
    stated, solved = counted
    assert schedule(window_of(0, jobs=30), clock=lambda: 0.0).status == "optimal"
    assert (stated, solved) == ([], [])


def test_a_clock_that_ends_the_search_leaves_the_program_its_share(counted: Any) -> None:
    stated, solved = counted
    ticks = iter(range(10**9))
    # The clock comes long before the steps are made: HiGHS has what is left of the three seconds.
    result = schedule(window_of(0), promise="none", reserve=0, clock=lambda: next(ticks) * 0.002)
    assert result.status == "feasible"
    assert len(stated) == len(solved) == 1


def window_of(seed: int, jobs: int = 50) -> Snapshot:
    return fragmented("tsubame", jobs, seed)
