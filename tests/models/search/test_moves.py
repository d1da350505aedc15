"""The search's loop: awards that fit, the optimum of tiny packings, the same answers compiled and not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, is_sound, random_packing, scaled

from aucsched.cluster.kernels import harness
from aucsched.models.search import compiled_search, operators
from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.operators import ExchangeSearch, greedy_by
from aucsched.models.search.packing import Packing, Worth
from aucsched.models.search.search_columns import moves_at, rows_of
from aucsched.models.search.search_parameters import SearchLimits, SearchParameters

SEEDS = st.integers(0, 10**6)
EXAMPLE = Path(__file__).parents[3] / "examples" / "emulated-1408-queue.json"


def in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "compiled_loop", lambda: None)


@given(SEEDS)
@settings(max_examples=40)
def test_moves_reach_the_optimum_of_tiny_packings_preference_included(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=6)
    moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, seed)
    moves.run(2000, lambda: False)
    assert is_sound(packing, moves.award)
    assert worth.of(moves.award) == moves.best == best_by_force(packing, worth)


@given(SEEDS, st.integers(5, 40))
@settings(max_examples=60)
def test_the_loop_keeps_its_books_whatever_it_did(seed: int, jobs: int) -> None:
    """What moves left behind is what the award at hand would begin with: no drift, nothing fits beside it."""
    packing, worth = random_packing(seed, jobs)
    moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, seed)
    alive = np.random.default_rng(seed).random((5, len(packing))) < 0.8
    for narrowed in alive:
        moves.run(37, lambda: False)
        state, best = moves._state, moves.best  # noqa: SLF001 - the books are inside
        award = np.flatnonzero(np.asarray(state.won))
        assert is_sound(packing, award)
        fresh = moves_at(packing, award, moves._arrays, np.array(state.counter))  # noqa: SLF001
        for name in ("left", "place", "held", "short"):
            assert np.array_equal(getattr(fresh, name), getattr(state, name)), name
        assert not (np.asarray(state.short)[np.asarray(state.won) == 0] == 0).any()
        assert worth.of(moves.award) == best
        # Bids that no better award holds stay out from now on, unless they win.
        moves.narrow(narrowed | (np.asarray(state.won) == 1))


def taken_in_turn(packing: Packing, order: list[int]) -> list[int]:
    """The award that takes bids in an order as they fit, one after another."""
    left, won, award = packing.capacity.copy(), set(), []
    for bid in order:
        entries = slice(int(packing.indptr[bid]), int(packing.indptr[bid + 1]))
        fits = (left[packing.row[entries]] >= packing.amount[entries]).all()
        if fits and packing.job[bid] not in won:
            left[packing.row[entries]] -= packing.amount[entries]
            won.add(packing.job[bid])
            award.append(bid)
    return sorted(award)


@given(SEEDS, st.integers(1, 150))
@settings(max_examples=30)
def test_greedy_awards_look_at_many_bids_together_and_are_the_same(seed: int, jobs: int) -> None:
    packing, _ = random_packing(seed, jobs)
    order = np.random.default_rng(seed).permutation(len(packing))
    assert greedy_by(packing, order).tolist() == taken_in_turn(packing, order.tolist())


@given(SEEDS, st.integers(2, 60))
@settings(max_examples=30)
def test_bids_exclude_each_other_where_a_row_holds_no_two(seed: int, jobs: int) -> None:
    packing, worth = random_packing(seed, jobs)
    rows = rows_of(packing, worth)
    bid_of = np.repeat(np.arange(len(packing)), np.diff(rows.indptr))
    # Rows that the loop does not count are those that exclude: none may be forgotten, none be too many.
    hard = np.flatnonzero(
        (np.diff(rows.by_row) == 0) & (np.bincount(rows.row, minlength=len(rows.by_row) - 1) > 1)
    )
    near: list[set[int]] = [set() for _ in range(len(packing))]
    for row in hard.tolist():
        bidders = set(bid_of[rows.row == row].tolist())
        for bid in bidders:
            near[bid] |= bidders - {bid}
    near_of = np.asarray(rows.near)
    found = [set(near_of[rows.near_at[bid] : rows.near_at[bid + 1]].tolist()) for bid in range(len(packing))]
    assert found == near


@given(SEEDS)
@settings(max_examples=20)
def test_no_award_is_below_plain_greedy_ones_when_the_time_is_over(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=60)
    weights = list(worth.weights)
    over = SearchLimits(deadline=0.0, steps=None, seed=0, clock=lambda: 1.0)
    found = AnytimeSearch(packing, scaled(worth), NOTHING, over).run()
    entries = np.maximum(np.diff(packing.indptr), 1)
    for key in (np.array(weights, float), np.array(weights, float) / entries):
        award = taken_in_turn(packing, np.argsort(-key, kind="stable").tolist())
        assert sum(weights[bid] for bid in found.award.tolist()) >= sum(weights[bid] for bid in award)


@given(SEEDS)
@settings(max_examples=30)
def test_more_moves_are_never_worse_and_pieces_make_no_difference(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=30)
    whole, pieces = (
        ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 3) for _ in range(2)
    )
    before = whole.best
    whole.run(300, lambda: False)
    for piece in (1, 99, 150, 50):
        pieces.run(piece, lambda: False)
        assert pieces.best >= before
        before = pieces.best
    assert pieces.best == whole.best
    assert np.array_equal(pieces.award, whole.award)


def as_if_nothing_were_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_TOLD", set())
    for entry in compiled_search.ENTRIES:
        monkeypatch.setattr(entry, "_loaded", [])


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has looked for nothing yet, and in which numba cannot be imported."""
    as_if_nothing_were_loaded(monkeypatch)
    monkeypatch.setitem(sys.modules, "numba", None)
    return iter(())


def searched(packing: Packing, worth: Worth, steps: int) -> tuple[list[int], object]:
    limits = SearchLimits(deadline=None, steps=steps, seed=5, clock=lambda: 0.0)
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    return found.award.tolist(), found.bound


def test_compiled_or_not_a_work_limit_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    packing, worth = random_packing(2, jobs=400, rows=60)
    assert len(packing) > operators.FEW_BIDS
    fast = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 1)
    assert fast.is_compiled
    fast.run(1500, lambda: False)
    with_steps = searched(packing, worth, 20)
    in_plain_python(monkeypatch)
    slow = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 1)
    assert not slow.is_compiled
    slow.run(1500, lambda: False)
    assert slow.best == fast.best
    assert np.array_equal(slow.award, fast.award)
    assert list(slow._state.counter) == list(fast._state.counter)  # noqa: SLF001 - every number drawn alike
    assert searched(packing, worth, 20) == with_steps


def test_what_is_compiled_ahead_is_what_a_search_runs() -> None:
    """Columns of another type would be compiled while a clock runs."""
    pytest.importorskip("numba")
    loop = compiled_search.compiled_loop()
    packing, worth = random_packing(3, jobs=400, rows=60)
    moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 1)
    moves.run(200, lambda: False)
    moves.guide(np.ones(len(packing.capacity)))
    moves.run(200, lambda: False)
    assert moves.is_compiled
    assert len(loop.signatures) == 1  # type: ignore[union-attr]


@pytest.mark.usefixtures("without_numba")
def test_without_numba_plain_python_does_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    packing, worth = random_packing(2, jobs=400, rows=60)
    moves = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 1)
    assert not moves.is_compiled
    moves.run(20, lambda: False)
    assert is_sound(packing, moves.award)
    assert not caplog.records


def test_a_numba_that_fails_is_named_once_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    numba = pytest.importorskip("numba")

    def broken(**_: object) -> object:
        raise RuntimeError("no compiler")

    as_if_nothing_were_loaded(monkeypatch)
    monkeypatch.setattr(numba, "njit", broken)
    assert compiled_search.compiled_loop() is None
    assert compiled_search.compiled_loop() is None
    said = "aucsched: numba cannot be used, the search runs in plain Python: "
    (record,) = caplog.records
    assert record.getMessage() == f"{said}no compiler"


def test_a_clock_that_runs_never_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    packing, worth = random_packing(2, jobs=400, rows=60)

    def forbidden() -> None:
        raise AssertionError("loaded while the clock ran")

    as_if_nothing_were_loaded(monkeypatch)
    monkeypatch.setattr(operators, "compiled_loop", forbidden)
    ticks = iter(range(10**6))
    limits = SearchLimits(deadline=300.0, steps=None, seed=0, clock=lambda: float(next(ticks)))
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    assert is_sound(packing, found.award)


def test_moves_may_have_all_of_the_time() -> None:
    packing, worth = random_packing(2, jobs=400, rows=60)
    ticks = iter(range(10**6))
    limits = SearchLimits(
        deadline=300.0,
        steps=None,
        seed=0,
        clock=lambda: next(ticks) / 10,
        solves=False,
        parameters=SearchParameters(move_share=1, move_share_beside=1, swap_share=1),
    )
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    assert is_sound(packing, found.award)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


_HELP = """
from aucsched.cli import run
run(["schedule", "--help"])
"""


@pytest.mark.parametrize("code", ["import aucsched", _HELP])
def test_nobody_who_does_not_search_imports_numba(code: str) -> None:
    done = python(f"{code}\nimport sys\nassert 'numba' not in sys.modules")
    assert done.stderr == ""


_SCHEDULE = """
import aucsched
from aucsched.models.search import compiled_search

aucsched.schedule({example!r}, promise="none", reserve=0, work_limit=2)
assert not compiled_search.is_loaded()
"""


def test_a_broken_numba_is_named_and_the_step_goes_on_without(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise RuntimeError('numba needs another numpy')\n")
    code = _SCHEDULE.format(example=str(EXAMPLE))
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = python(code, PYTHONPATH=path)
    said = "aucsched: numba cannot be used, the search runs in plain Python: numba needs another numpy\n"
    assert done.stderr == said


def test_the_switch_leaves_numba_alone() -> None:
    code = (
        "import sys\nfrom aucsched.models.search import compiled_search\n"
        "assert compiled_search.compiled_loop() is None\nassert 'numba' not in sys.modules"
    )
    python(code, **{harness.SWITCH: "0"})
