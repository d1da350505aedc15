"""What is left out before HiGHS gets a program: solutions, and what they are worth, stay the whole one's."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import ALONE, snapshot

from aucsched import schedule
from aucsched.cluster.resources.capacity import FloatArray
from aucsched.models.solve import presolve as smaller_module
from aucsched.models.solve.decomposition import dealing_of
from aucsched.models.solve.lexicographic import SolveSettings, exact_stages, solve_lexicographic
from aucsched.models.solve.presolve import presolved
from aucsched.models.solve.program import IntegerProgram, exclusions
from aucsched.models.solve.reduced_program import ReducedProgram, strengthened

#: A row: coefficients by column, and both sides.
Row = tuple[dict[int, int], float, float]
_INFINITE = float("inf")


def program(rows: list[Row], upper: list[float]) -> IntegerProgram:
    count = len(upper)
    return IntegerProgram(
        objective=np.zeros(count),
        lower=np.zeros(count),
        upper=np.array(upper),
        is_integer=np.ones(count, np.bool_),
        row_lower=np.array([low for _, low, _ in rows]),
        row_upper=np.array([high for _, _, high in rows]),
        indptr=np.cumsum([0, *(len(held) for held, _, _ in rows)]),
        index=np.array([column for held, _, _ in rows for column in held], np.int64),
        value=np.array([float(value) for held, _, _ in rows for value in held.values()]),
    )


def dense(one: IntegerProgram) -> FloatArray:
    held = np.zeros((one.rows, one.columns))
    np.add.at(held, (np.repeat(np.arange(one.rows), np.diff(one.indptr)), one.index), one.value)
    return held


def holds(one: IntegerProgram, values: npt.ArrayLike) -> Any:
    """Whether each row of values, or the only one, is a solution."""
    sums = np.asarray(values, np.float64) @ dense(one).T
    return ((sums >= one.row_lower) & (sums <= one.row_upper)).all(axis=-1)


def solutions(one: IntegerProgram, most: int = 2) -> set[tuple[float, ...]]:
    """Every solution, of columns without an upper bound those up to ``most``."""
    spans = [np.arange(int(min(high, most)) + 1.0) for high in one.upper]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*spans, indexing="ij")], axis=1)
    return {tuple(values) for values in points[holds(one, points)].tolist()}


@st.composite
def auctions(draw: st.DrawFn) -> IntegerProgram:
    """Two bids with u and r on one or two of three nodes each, as AUCSCHED1 states them."""
    bids = 2
    rows: list[Row] = []
    upper: list[float] = [1.0] * bids
    nodes: dict[int, dict[int, int]] = {}
    for bid in range(bids):
        held = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
        us = list(range(len(upper), len(upper) + len(held)))
        rs = list(range(us[-1] + 1, us[-1] + 1 + len(held)))
        upper += [1.0] * len(held) + [_INFINITE] * len(held)
        rows.append(({**dict.fromkeys(us, 1), bid: -len(held)}, 0, 0))
        total = draw(st.integers(len(held), 2 * len(held) + 1))
        rows.append(({**dict.fromkeys([*us, *rs], 1), bid: -total}, 0, 0))
        for node, u, r in zip(held, us, rs, strict=True):
            rows.append(({r: 1, u: -draw(st.integers(0, 2))}, -_INFINITE, 0))
            nodes.setdefault(node, {}).update({u: 1, r: 1})
    rows += [(held, -_INFINITE, draw(st.integers(1, 4))) for held in nodes.values()]
    if draw(st.booleans()):
        rows.append(({0: 1, 1: 1}, -_INFINITE, 1))
    return program(rows, upper)


@given(auctions())
@settings(max_examples=60, deadline=None)
def test_presolving_keeps_every_solution_and_makes_none(one: IntegerProgram) -> None:
    found = presolved(one)
    lifted = {tuple(found.lifted(np.array(values)).tolist()) for values in solutions(found.program)}
    whole = solutions(one)
    assert lifted == whole
    for values in whole:
        assert holds(found.program, np.array(values)[found.kept])
        weights = np.arange(1.0, one.columns + 1)
        assert found.folded(weights) @ np.array(values)[found.kept] == weights @ np.array(values)


@given(auctions(), st.data())
@settings(max_examples=60, deadline=None)
def test_an_auction_whose_cores_are_dealt_afterwards_has_the_same_best_award(
    one: IntegerProgram, data: st.DataObject
) -> None:
    weights = np.zeros(one.columns)
    weights[:2] = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=2))
    best = max(float(weights @ np.array(values)) for values in solutions(one))
    group = np.arange(one.columns)
    options = SolveSettings(time_limit_s=60, seed=0, clock=time.perf_counter)
    integers = [int(weight) for weight in weights]
    none = np.zeros(one.columns)
    solution = solve_lexicographic(one, group, integers, none, none, options)
    assert solution.proved
    assert holds(one, solution.values)
    assert float(weights @ solution.values) == best == solution.bound


@given(auctions())
@settings(max_examples=100, deadline=None)
def test_bids_exclude_each_other_where_their_cores_cannot_be_dealt(one: IntegerProgram) -> None:
    found = presolved(one)
    dealing = dealing_of(found.program, found.is_amount, np.zeros(len(found.kept), np.bool_))
    if dealing is None or not {0, 1} <= set(found.kept[dealing.kept].tolist()):
        return
    count = len(dealing.kept)
    excludes = dealing.excluding(np.zeros((count, count), np.bool_))
    known = np.add.outer(np.arange(count), np.arange(count)) % 3 == 0
    np.testing.assert_array_equal(dealing.excluding(known), excludes & ~known)
    assert not excludes.diagonal().any()
    assert (excludes == excludes.T).all()
    values = np.isin(found.kept[dealing.kept], (0, 1)).astype(np.float64)
    first, second = np.flatnonzero(values)
    fit = bool(holds(dealing.program, values)) and not excludes[first, second]
    awards = {award[:2] for award in solutions(one)}
    if (1.0, 1.0) in awards:
        assert fit
    elif {(1.0, 0.0), (0.0, 1.0)} <= awards:
        assert not fit


def test_amounts_are_dealt_and_where_they_cannot_be_a_cut_says_so() -> None:
    # Two bids of 3 cores on the nodes 0 and 1, of 2 cores each: 4 in all.
    rows: list[Row] = []
    for bid, first in ((0, 2), (1, 6)):
        u, r = [first, first + 1], [first + 2, first + 3]
        rows += [
            ({u[0]: 1, u[1]: 1, bid: -2}, 0, 0),
            ({u[0]: 1, u[1]: 1, r[0]: 1, r[1]: 1, bid: -3}, 0, 0),
            ({r[0]: 1, u[0]: -1}, -_INFINITE, 0),
            ({r[1]: 1, u[1]: -1}, -_INFINITE, 0),
        ]
    rows += [({2 + at: 1, 4 + at: 1, 6 + at: 1, 8 + at: 1}, -_INFINITE, 2) for at in (0, 1)]
    one = program(rows, [1.0] * 4 + [_INFINITE] * 2 + [1.0] * 2 + [_INFINITE] * 2)
    found = presolved(one)
    dealing = dealing_of(found.program, found.is_amount, np.zeros(len(found.kept), np.bool_))
    assert dealing is not None
    assert dealing.program.columns == 2
    alone = dealing.dealt(np.array([1.0, 0.0]))
    assert alone is not None
    assert holds(one, found.lifted(alone))
    assert dealing.dealt(np.array([1.0, 1.0])) is None
    [cut] = dealing.cuts
    assert cut.values @ np.ones(2) > cut.upper
    assert max(cut.values) <= cut.upper


@st.composite
def packings(draw: st.DrawFn) -> tuple[IntegerProgram, npt.NDArray[np.int64]]:
    """Up to eight bids of jobs with two each, over rows of a few units."""
    bids = draw(st.integers(2, 8))
    rows: list[Row] = [(dict.fromkeys((bid, bid + 1), 1), -_INFINITE, 1) for bid in range(0, bids - 1, 2)]
    for _ in range(draw(st.integers(1, 4))):
        held = draw(st.dictionaries(st.integers(0, bids - 1), st.sampled_from([1, 2, 6]), min_size=2))
        rows.append((held, -_INFINITE, 6))
    return program(rows, [1.0] * bids), np.arange(bids) // 2


@pytest.mark.parametrize("columns", [30, 150])
@pytest.mark.parametrize("seed", range(4))
def test_columns_exclude_each_other_that_no_row_holds_together(seed: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    held = rng.integers(1, 9, (12, columns)) * (rng.random((12, columns)) < 0.4)
    upper = rng.integers(2, 14, 12)
    # Half of the rows are cliques, one of them twice, one of a single column; one row is empty.
    upper[::2] = 1
    held[2], held[4], held[6, 1:] = held[0], 0, 0
    row, column = np.nonzero(held)
    indptr = np.searchsorted(row, np.arange(13))
    both = (held[:, :, None] > 0) & (held[:, None, :] > 0)
    over = held[:, :, None] + held[:, None, :] > upper[:, None, None]
    expected = np.array((both & over).any(axis=0))
    np.fill_diagonal(expected, val=False)
    found = exclusions(indptr, column, held[row, column], upper, columns)
    np.testing.assert_array_equal(found, expected)


@given(packings())
@settings(max_examples=150, deadline=None)
def test_tighter_rows_have_the_same_solutions(
    given_: tuple[IntegerProgram, npt.NDArray[np.int64]],
) -> None:
    one, group = given_
    assert solutions(strengthened(one, group)) == solutions(one)
    # Pairs that the rows do not know of: no two bids at odd places.
    pairs = np.zeros((one.columns, one.columns), np.bool_)
    pairs[1::2, 1::2] = True
    np.fill_diagonal(pairs, val=False)
    kept = {values for values in solutions(one) if sum(values[1::2]) <= 1}
    assert solutions(strengthened(one, group, lambda known: pairs & ~known)) == kept


def test_a_row_that_one_bid_fills_becomes_exclusions() -> None:
    # Bid 0 takes the node; of the others, three jobs', two units each, all fit.
    rows: list[Row] = [({0: 6, 1: 2, 2: 2, 3: 2}, -_INFINITE, 6)]
    found = strengthened(program(rows, [1.0] * 4), np.arange(4))
    pairs = {
        tuple(np.sort(found.index[a:b]).tolist())
        for a, b in zip(found.indptr, found.indptr[1:], strict=False)
    }
    assert pairs == {(0, 1), (0, 2), (0, 3)}
    assert found.value.tolist() == [1.0] * 6


@pytest.mark.parametrize("model", ["aucsched1", "aucsched2", "aucsched3", "ipsched"])
@pytest.mark.parametrize("weights", ["lexicographic", "paper"])
def test_steps_are_worth_what_the_whole_program_is_worth(
    model: Any, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    for _ in range(3):
        nodes = [{"name": f"n{place}", "cores": int(rng.integers(2, 9))} for place in range(4)]
        jobs = [{"cores": int(rng.integers(2, 17)), "priority": 4_294_901_760 - rank} for rank in range(4)]
        found = []
        for most in (500_000, -1):
            monkeypatch.setattr(smaller_module, "_MOST_ENTRIES", most)
            one = schedule(
                snapshot(nodes, jobs),
                **ALONE,
                model=model,
                weights=weights,
                strategy="exact",
                time_limit_s=60.0,
                max_bids_per_job=None if model == "ipsched" else 6,
            )
            preference = one.objective.preference
            liked = None if preference is None else pytest.approx(preference)
            found.append((one.status, one.objective.priority, liked))
        assert found[0] == found[1]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(-9, 9)), min_size=2, max_size=6),
    st.sampled_from([10_000, 4_294_901_760]),
)
@settings(max_examples=100, deadline=None)
def test_two_digits_are_one_stage_that_orders_sums_and_says_what_they_are_worth(
    digits: list[tuple[int, int]], base: int
) -> None:
    weights = [base, *(high * base + low for high, low in digits)]
    [stage] = exact_stages(np.arange(len(weights)), weights) or ()
    for chosen in product((0, 1), repeat=len(weights)):
        value = round(float(stage.values @ np.array(chosen)))
        assert stage.worth(value) == sum(weight for weight, wins in zip(weights, chosen, strict=True) if wins)
    bounds = [stage.worth(value) for value in range(50)]
    assert bounds == sorted(bounds)


def test_a_start_that_stands_is_returned_as_it_is() -> None:
    one = program([({0: 2, 1: 2}, -_INFINITE, 3)], [1.0, 1.0])
    start: FloatArray = np.array([1.0, 0.0])
    options = SolveSettings(time_limit_s=60, seed=0, clock=time.perf_counter)
    solution = solve_lexicographic(one, np.arange(2), [5, 5], np.zeros(2), start, options)
    assert solution.values.tolist() == [1.0, 0.0]
    assert solution.bound == 5
    assert ReducedProgram(one, np.arange(2), [np.ones(2)]).program.row_upper.tolist() == [1.0]
