"""Swaps: the optimum of tiny sets, books that stay true, the same compiled and not, only where they may."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, is_sound, random_packing, scaled

from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.compiled_search import as_lists, compiled_swaps
from aucsched.models.search.moves import RANDOM, MoveProblem
from aucsched.models.search.operators import ExchangeSearch, Swapping, greedy_by
from aucsched.models.search.packing import Packing, Worth
from aucsched.models.search.search_columns import rows_of, swaps_at
from aucsched.models.search.search_parameters import SearchLimits
from aucsched.models.search.swaps import (
    BEST,
    COUNTS,
    FAR,
    GONE,
    KEPT,
    REACHED,
    RUN,
    SINCE,
    SWAPS,
    TOTAL,
    make_swaps,
)

SEEDS = st.integers(0, 10**6)


def of_sets(seed: int, jobs: int, goods: int, most: int = 4) -> tuple[Packing, Worth]:
    """Bids, one a bidder, that want some of a few goods, each of which is there once."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, most + 1, jobs)
    row = np.concatenate([np.sort(rng.choice(goods, size, replace=False)) for size in length])
    weights = (length * rng.integers(50, 150, jobs)).tolist()
    packing = Packing(
        job=np.arange(jobs),
        first=np.arange(jobs),
        indptr=np.concatenate([[0], np.cumsum(length)]),
        row=row,
        amount=np.ones(len(row), np.int64),
        capacity=np.ones(goods, np.int64),
        origin=np.arange(goods),
    )
    return packing, Worth.scaled(weights, np.zeros(jobs))


def shape_of(packing: Packing, worth: Worth) -> MoveProblem:
    assert compiled_swaps() is not None
    sets = ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 0).sets
    assert sets is not None
    return sets


def swapping(packing: Packing, worth: Worth, seed: int) -> Swapping:
    loop = compiled_swaps()
    assert loop is not None
    return Swapping(loop, shape_of(packing, worth), worth, worth.value, NOTHING, seed)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_swaps_reach_the_optimum_of_tiny_sets(seed: int) -> None:
    packing, worth = of_sets(seed, 14, 10)
    swaps = swapping(packing, worth, seed)
    swaps.run(5000, lambda: False)
    assert is_sound(packing, swaps.award)
    assert worth.of(swaps.award) == swaps.best == best_by_force(packing, worth)


@given(SEEDS, st.integers(5, 60))
@settings(max_examples=40, deadline=None)
def test_the_books_stay_true_compiled_and_not_and_however_runs_are_cut(seed: int, jobs: int) -> None:
    loop = compiled_swaps()
    assert loop is not None
    packing, worth = of_sets(seed, jobs, 20)
    arrays = shape_of(packing, worth)
    begin = greedy_by(packing, np.arange(jobs))
    states = []
    gain = np.random.default_rng(seed).random(jobs)
    # Long enough for runs that end, and for some that begin with what two ends have in common.
    count = 40_000 if seed % 5 == 0 else 2500
    for is_plain, parts in ((False, [count]), (True, [1, 0, 1200, count - 1201])):
        counter = np.zeros(COUNTS, np.int64)
        counter[RANDOM] = seed
        state = swaps_at(begin, arrays, counter)
        shape = as_lists(arrays) if is_plain else arrays
        state = as_lists(state) if is_plain else state
        for part in parts:
            (make_swaps if is_plain else loop)(shape, state, gain.tolist() if is_plain else gain, part)
        states.append(state)
    for name, column in states[0]._asdict().items():
        assert np.array_equal(column, np.asarray(getattr(states[1], name))), name
    found = states[0]
    won, adds, away, worths = map(np.asarray, (found.won, found.adds, found.away, found.worth))
    ends = np.asarray(found.ends).reshape(KEPT, jobs)
    of_run = ((found.won, TOTAL), (found.best, BEST), (found.run, RUN))
    counted = [(flags, found.counter[total]) for flags, total in of_run]
    for flags, total in [*counted, *zip(ends, worths, strict=True)]:
        award = np.flatnonzero(flags)
        assert is_sound(packing, award)
        assert total == worth.of(award)[0]
    kept = worths[worths > 0].tolist()
    assert len(set(kept)) == len(kept)
    assert kept or count == 2500
    fresh = np.asarray(swaps_at(np.flatnonzero(won), arrays, np.zeros(COUNTS, np.int64)).adds)
    away = away[: found.counter[GONE]]
    assert len(set(away.tolist())) == len(away)
    assert not won[away].any()
    fresh[away] -= FAR
    assert np.array_equal(fresh, adds)
    assert found.counter[SWAPS] == count
    assert found.counter[REACHED] <= found.counter[RUN] <= found.counter[BEST]
    assert 0 <= found.counter[SINCE] <= count


def test_swaps_go_on_from_a_better_award_and_let_in_only_the_pool() -> None:
    packing, worth = of_sets(3, 80, 40)
    swaps = swapping(packing, worth, 0)
    better = greedy_by(packing, np.argsort(-worth.value))
    swaps.adopt(better, worth.of(better))
    assert swaps.award.tolist() == better.tolist()
    swaps.guide(-worth.value)
    few = np.flatnonzero(worth.value > np.median(worth.value))
    swaps.narrow(few)
    swaps.run(3000, lambda: False)
    assert set(swaps.award.tolist()) <= {*few.tolist(), *better.tolist()}
    before = swaps.best
    swaps.adopt(NOTHING, (0, 0.0))
    assert swaps.best == before
    swaps.run(3000, lambda: True)
    assert swaps.best == before


def test_ends_of_runs_are_kept_through_better_awards_of_others() -> None:
    packing, worth = of_sets(3, 400, 60, 6)
    swaps = swapping(packing, worth, 0)
    assert not swaps.others()
    swaps.run(60_000, lambda: False)
    ends = swaps.others()
    assert 1 < len(ends) <= KEPT
    assert all(is_sound(packing, end) for end in ends)
    assert max(worth.of(end) for end in ends) == swaps.best
    made = [end.tolist() for end in ends]
    swaps.adopt(swaps.award, (swaps.best[0] + 1, 0.0))
    assert [end.tolist() for end in swaps.others()] == made


def test_where_bids_share_rows_there_are_no_swaps() -> None:
    packing, worth = random_packing(0, jobs=12)
    assert len(rows_of(packing, worth).bid)
    assert ExchangeSearch(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 0).sets is None


def test_where_a_clock_counts_swaps_take_turns_with_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    packing, worth = of_sets(1, 400, 120, 6)
    made: list[int] = []
    ran = Swapping.run

    def run(self: Swapping, swaps: int, is_over: Callable[[], bool]) -> None:
        ran(self, swaps, is_over)
        made.append(int(self._state.counter[SWAPS]))

    monkeypatch.setattr(Swapping, "run", run)
    assert compiled_swaps() is not None

    def solved(limits: SearchLimits) -> int:
        found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
        assert is_sound(packing, found.award)
        return worth.of(found.award)[0]

    clock = time.process_time
    timed = solved(SearchLimits(deadline=clock() + 0.6, steps=None, seed=0, clock=clock, solves=False))
    assert made[-1] > 1000
    made.clear()
    assert solved(SearchLimits(deadline=None, steps=24, seed=0, clock=clock, solves=False)) > 0
    # Where steps are counted, the awards of a seed stay those of earlier releases.
    assert not made
    assert timed > 0
