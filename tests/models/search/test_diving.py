"""Dives: awards that fit, never a worse one, the same for the same seed, better than greedy orders."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, is_sound, random_packing

from aucsched.models.search.columns import bids_of, dive_at
from aucsched.models.search.compiled import Dives, as_lists, compiled_dives
from aucsched.models.search.dives import COUNTS, RANDOM, Dive, make_dives
from aucsched.models.search.diving import Diving
from aucsched.models.search.packing import Packing
from aucsched.models.search.prices import find_prices, runs_of
from aucsched.models.search.repacking import greedy_by
from aucsched.models.search.worth import Worth

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
    bids = np.flatnonzero(rng.random(len(packing)) < 0.5)
    price = rng.random(len(packing.capacity))
    some = runs_of(packing).of(bids)
    assert np.allclose(some.cost(price), packing.cost(price)[bids])
    few = np.flatnonzero(rng.random(len(bids)) < 0.5)
    assert some.use(few, len(packing.capacity)).tolist() == packing.use(bids[few]).tolist()


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_dives_fit_and_never_lose_the_best(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=5)
    diving = Diving(packing, worth, np.zeros(len(packing.capacity)), NOTHING, seed)
    reached = diving.best
    for _ in range(60):
        diving.run(1, lambda: False)
        assert is_sound(packing, diving.award)
        assert diving.best == worth.of(diving.award) >= reached
        reached = diving.best
    assert reached[0] <= best_by_force(packing, worth)[0]


def test_a_dozen_dives_are_better_than_greedy_and_the_same_again() -> None:
    for seed in range(5):
        packing, worth = intervals(seed)
        price = find_prices(packing, worth.value, 0.0, 80, lambda: False).price
        greedy = greedy_by(packing, np.argsort(-(worth.value - packing.cost(price)), kind="stable"))
        found = []
        for _ in range(2):
            diving = Diving(packing, worth, price, greedy, seed)
            for _ in range(12):
                diving.run(1, lambda: False)
            found.append(diving.award.tolist())
        assert found[0] == found[1]
        assert worth.of(diving.award)[0] > worth.of(greedy)[0]


def made(loop: Dives, packing: Packing, worth: Worth, seed: int, takings: list[int]) -> Dive:
    """Return where dives end that were called so often, for so many takings each."""
    price = np.random.default_rng(seed).random(len(packing.capacity)) * 1e3
    counter = np.zeros(COUNTS, np.int64)
    counter[RANDOM] = seed
    arrays = bids_of(packing, worth)
    state = dive_at(NOTHING, arrays, counter)
    if loop is make_dives:
        arrays, state = as_lists(arrays), as_lists(state)
    for some in takings:
        loop(arrays, state, price, some)
    return state


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_dives_are_the_same_compiled_and_not_and_however_they_are_cut(seed: int) -> None:
    loop = compiled_dives()
    assert loop is not None
    for packing, worth in (random_packing(seed, jobs=6), intervals(seed, 15, 30)):
        compiled = made(loop, packing, worth, seed, [90])
        plain = made(make_dives, packing, worth, seed, [1, 30, 7, 0, 52])
        for name, column in compiled._asdict().items():
            assert np.array_equal(column, np.asarray(getattr(plain, name))), name


def test_a_dive_that_is_broken_off_changes_nothing_and_goes_on() -> None:
    packing, worth = intervals(0)
    price = np.zeros(len(packing.capacity))
    whole, broken = (Diving(packing, worth, price, NOTHING, 0) for _ in range(2))
    whole.run(4, lambda: False)
    broken.run(4, lambda: True)
    assert not len(broken.award)
    asked = iter(range(10**6))
    for _ in range(200):
        broken.run(1, lambda: next(asked) % 3 > 0)
        if broken.dives == 4:
            break
    assert broken.dives == whole.dives == 4
    assert broken.award.tolist() == whole.award.tolist() != []


def test_every_dive_ends_with_an_award_that_nothing_fits_beside() -> None:
    packing, worth = intervals(1)
    diving = Diving(packing, worth, np.zeros(len(packing.capacity)), NOTHING, 0)
    diving.run(1, lambda: False)
    left = packing.capacity - packing.use(diving.award)
    losers = ~np.isin(packing.job, packing.job[diving.award])
    assert len(diving.award)
    assert not (packing.fits(left) & losers).any()
