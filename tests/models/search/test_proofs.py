"""Proofs by branch and bound: the best award from any other, compiled or not, and instead of HiGHS."""

from __future__ import annotations

from dataclasses import replace

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, random_packing

from aucsched.models.search import anytime, proving
from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.compiled_search import compiled_loop
from aucsched.models.search.packing import Packing
from aucsched.models.search.prices import find_prices
from aucsched.models.search.proving import best_among
from aucsched.models.search.search_parameters import SearchLimits
from aucsched.models.solve.solver import SolverStatus

SEEDS = st.integers(0, 10**6)


def awards(packing: Packing) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return every award, one bid of a job after another."""
    found = [NOTHING]
    for bid in range(len(packing)):
        held = packing.job[bid]
        more = [
            np.append(one, bid)
            for one in found
            if held not in packing.job[one] and (packing.use(np.append(one, bid)) <= packing.capacity).all()
        ]
        found += more
    return found


@given(SEEDS, st.booleans(), st.sampled_from(["none", "any", "rounds"]), st.sampled_from([0, 60]))
@settings(max_examples=80, deadline=None)
def test_from_every_award_the_best_is_found_and_proved(
    seed: int, is_loaded: bool, prices: str, larger: int
) -> None:
    packing, worth = random_packing(seed, jobs=4)
    # Sums beyond what floats and 64 bits hold: fractions of a priority beside priorities of 4·10⁹.
    worth = replace(worth, weights=[weight << larger for weight in worth.weights])
    price = {
        "none": np.zeros(len(packing.capacity)),
        "any": np.random.default_rng(seed).random(len(packing.capacity)) * 9,
        "rounds": find_prices(packing, worth.value, 0.0, 80, lambda: False).price,
    }[prices]
    best, every = best_by_force(packing, worth), awards(packing)
    some = [*every[:: max(1, len(every) // 40)], max(every, key=worth.of)]
    assert compiled_loop() is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(proving, "is_loaded", lambda: is_loaded)
        for award in some:
            found, proved = best_among(packing, worth, award, np.arange(len(packing)), price)
            assert proved
            assert worth.of(found) == best
            assert (packing.use(found) <= packing.capacity).all()
            assert found is award or worth.of(award) < best


def test_what_takes_too_many_looks_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    packing, worth = random_packing(3, jobs=5)
    best = max(awards(packing), key=worth.of)
    price = np.zeros(len(packing.capacity))
    assert best_among(packing, worth, best, np.arange(len(packing)), price)[1]
    monkeypatch.setattr(proving, "_LOOKS", 1)
    assert not best_among(packing, worth, best, np.arange(len(packing)), price)[1]


@pytest.mark.parametrize("seed", range(12))
def test_where_steps_are_counted_highs_is_not_asked_for_what_is_proved(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packing, worth = random_packing(seed, jobs=6)
    best = best_by_force(packing, worth)
    limits = SearchLimits(deadline=None, steps=2, seed=0, clock=lambda: 0.0)
    weights = list(worth.weights)
    found = AnytimeSearch(packing, weights, worth.preference, NOTHING, limits).run()
    assert worth.of(found.award) == best

    def refused(*_: object) -> None:
        raise AssertionError("HiGHS is asked")

    monkeypatch.setattr(anytime, "solve_lexicographic", refused)
    again = AnytimeSearch(packing, weights, worth.preference, found.award, limits).run()
    assert worth.of(again.award) == best
    assert again.proved
    assert again.status is SolverStatus.OPTIMAL
    assert again.bound == best[0]


@pytest.mark.parametrize("seed", range(6))
def test_without_prices_of_preference_the_best_is_proved_all_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS's simplex may give up: that ended a simulation."""
    packing, worth = random_packing(seed, jobs=4)
    monkeypatch.setattr(highspy.Highs, "run", lambda _: highspy.HighsStatus.kError)
    found, proved = best_among(
        packing, worth, NOTHING, np.arange(len(packing)), np.zeros(len(packing.capacity))
    )
    assert proved
    assert worth.of(found) == best_by_force(packing, worth)
