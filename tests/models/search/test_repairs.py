"""Repairs: awards that fit, never a worse one, the same for the same seed, better than greedy orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, is_sound, random_packing, scaled

from aucsched.models.search import operators
from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.bounding import find_prices, runs_of
from aucsched.models.search.compiled_search import Repairs, as_lists, compiled_repairs
from aucsched.models.search.moves import RANDOM
from aucsched.models.search.operators import DestroyRepair, greedy_by
from aucsched.models.search.packing import Packing, Worth
from aucsched.models.search.repair_kernel import COUNTS, REPAIRS, RepairState, make_repairs
from aucsched.models.search.search_columns import bids_of, repairs_at
from aucsched.models.search.search_parameters import SearchLimits

SEEDS = st.integers(0, 10**6)


def intervals(seed: int, jobs: int = 40, nodes: int = 60) -> tuple[Packing, Worth]:
    """Jobs that want some cores on each of several nodes in a row, in three places each."""
    rng = np.random.default_rng(seed)
    length, cores = rng.integers(2, 12, jobs), rng.integers(2, 9, jobs)
    job = np.repeat(np.arange(jobs), 3)
    first = rng.integers(0, nodes - length[job] + 1)
    weights = (length * cores * rng.integers(80, 120, jobs))[job].tolist()
    packing = Packing(
        job=job,
        first=np.arange(jobs) * 3,
        indptr=np.concatenate([[0], np.cumsum(length[job])]),
        row=np.concatenate([np.arange(at, at + long) for at, long in zip(first, length[job], strict=True)]),
        amount=np.repeat(cores[job], length[job]),
        capacity=np.full(nodes, 12),
        origin=np.arange(nodes),
    )
    value = np.array(weights) / max(weights) * 1e4
    return packing, Worth(weights=weights, value=value, preference=np.zeros(len(job)))


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_what_runs_cost_and_take_is_what_their_entries_do(seed: int) -> None:
    packing, _ = random_packing(seed, jobs=12)
    rng = np.random.default_rng(seed)
    price = rng.random(len(packing.capacity))
    assert np.allclose(runs_of(packing).cost(price), packing.cost(price))


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_repairs_fit_and_never_lose_the_best(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=5)
    repair = DestroyRepair(packing, worth, np.zeros(len(packing.capacity)), NOTHING, seed)
    reached = repair.best
    for _ in range(60):
        repair.run(1, lambda: False)
        assert is_sound(packing, repair.award)
        assert repair.best == worth.of(repair.award) >= reached
        reached = repair.best
    assert reached[0] <= best_by_force(packing, worth)[0]


def test_a_dozen_repairs_are_better_than_greedy_and_the_same_again() -> None:
    for seed in range(5):
        packing, worth = intervals(seed)
        price = find_prices(packing, worth.value, 0.0, 80, lambda: False).price
        greedy = greedy_by(packing, np.argsort(-(worth.value - packing.cost(price)), kind="stable"))
        found = []
        for _ in range(2):
            repair = DestroyRepair(packing, worth, price, greedy, seed)
            for _ in range(12):
                repair.run(1, lambda: False)
            found.append(repair.award.tolist())
        assert found[0] == found[1]
        assert worth.of(repair.award)[0] > worth.of(greedy)[0]


def made(loop: Repairs, packing: Packing, worth: Worth, seed: int, takings: list[int]) -> RepairState:
    """Return where repairs end that were called so often, for so many takings each."""
    price = np.random.default_rng(seed).random(len(packing.capacity)) * 1e3
    counter = np.zeros(COUNTS, np.int64)
    counter[RANDOM] = seed
    arrays = bids_of(packing, worth)
    state = repairs_at(NOTHING, arrays, counter)
    if loop is make_repairs:
        arrays, state = as_lists(arrays), as_lists(state)
    for some in takings:
        loop(arrays, state, price, some)
    return state


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_repairs_are_the_same_compiled_and_not_and_however_they_are_cut(seed: int) -> None:
    loop = compiled_repairs()
    assert loop is not None
    for packing, worth in (random_packing(seed, jobs=6), intervals(seed, 15, 30)):
        compiled = made(loop, packing, worth, seed, [90])
        plain = made(make_repairs, packing, worth, seed, [1, 30, 7, 0, 52])
        for name, column in compiled._asdict().items():
            assert np.array_equal(column, np.asarray(getattr(plain, name))), name


def test_a_repair_that_is_broken_off_changes_nothing_and_goes_on() -> None:
    packing, worth = intervals(0)
    price = np.zeros(len(packing.capacity))
    whole, broken = (DestroyRepair(packing, worth, price, NOTHING, 0) for _ in range(2))
    whole.run(4, lambda: False)
    broken.run(4, lambda: True)
    assert not len(broken.award)
    asked = iter(range(10**6))
    for _ in range(200):
        broken.run(1, lambda: next(asked) % 3 > 0)
        if broken._state.counter[REPAIRS] == 4:  # noqa: SLF001 - how many repairs have ended
            break
    assert broken._state.counter[REPAIRS] == whole._state.counter[REPAIRS] == 4  # noqa: SLF001 - the same
    assert broken.award.tolist() == whole.award.tolist() != []


def test_every_repair_ends_with_an_award_that_nothing_fits_beside() -> None:
    packing, worth = intervals(1)
    repair = DestroyRepair(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 0)
    repair.run(1, lambda: False)
    left = packing.capacity - packing.use(repair.award)
    losers = ~np.isin(packing.job, packing.job[repair.award])
    assert len(repair.award)
    assert not (packing.fits(left) & losers).any()


def test_a_search_with_repairs_finds_the_same_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled_repairs() is not None
    packing, worth = intervals(2, 110, 200)
    limits = SearchLimits(deadline=None, steps=24, seed=1, clock=lambda: 0.0, solves=False)
    repaired: list[bool] = []

    def found() -> list[int]:
        contest = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
        return list(map(int, contest.award))

    ran = DestroyRepair.run

    def run(self: DestroyRepair, repairs: int, is_over: Callable[[], bool]) -> None:
        ran(self, repairs, is_over)
        repaired.append(not self.is_compiled)

    monkeypatch.setattr(DestroyRepair, "run", run)
    compiled = found()
    monkeypatch.setattr(operators, "is_loaded", lambda: False)
    monkeypatch.setattr(operators, "compiled_loop", lambda: None)
    assert found() == compiled
    assert sorted(set(repaired)) == [False, True]
