"""Proofs by branch and bound: the best award from any other, compiled or not, and instead of HiGHS."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from time import perf_counter
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packings import NOTHING, best_by_force, random_packing, scaled

from aucsched import winners
from aucsched.cluster.resources.capacity import ranges
from aucsched.models.search import anytime, proving
from aucsched.models.search.anytime import AnytimeSearch
from aucsched.models.search.bounding import find_prices
from aucsched.models.search.compiled_search import compiled_loop
from aucsched.models.search.packing import Packing, Worth
from aucsched.models.search.proving import best_among, proved_award
from aucsched.models.search.search_parameters import SearchLimits
from aucsched.models.solve.lexicographic import WindowSolution, solve_lexicographic
from aucsched.models.solve.program import IntegerProgram
from aucsched.models.solve.solver import SolverStatus
from aucsched.models.winners.determine import determine

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
    for name in ("_FIRST_LOOKS", "_LOOKS"):
        monkeypatch.setattr(proving, name, 1)
    assert not best_among(packing, worth, best, np.arange(len(packing)), price)[1]


def few_can_win(jobs: int, bids: int, nodes: int = 60, least: float = 0.2) -> tuple[Packing, Worth]:
    """Runs of up to half of the nodes, ``least`` the least share, with priorities that differ little."""
    rng = np.random.default_rng(jobs)
    wide = rng.integers(int(least * nodes), nodes // 2, jobs)
    length = np.repeat(wide, bids)
    begin = np.concatenate([rng.integers(0, nodes - width + 1, bids) for width in wide.tolist()])
    packing = Packing(
        job=np.repeat(np.arange(jobs), bids),
        first=np.arange(jobs) * bids,
        indptr=np.append(0, np.cumsum(length)),
        row=ranges(begin, length),
        amount=np.full(int(length.sum()), 12),
        capacity=np.full(nodes, 12),
        origin=np.arange(nodes),
    )
    weights = np.repeat(4_294_901_000 - np.arange(jobs), bids).tolist()
    return packing, Worth.scaled(weights, rng.random(jobs * bids))


@pytest.mark.parametrize("steps", [2, None])
def test_where_few_can_win_together_a_thousand_bids_are_proved(
    steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds by prices are far off there: three seconds of search and HiGHS left gaps of up to 87 %."""
    assert compiled_loop() is not None
    packing, worth = few_can_win(jobs=25, bids=48)
    deadline = None if steps else perf_counter() + 60
    limits = SearchLimits(deadline=deadline, steps=steps, seed=0, clock=perf_counter)
    programs: list[int] = []

    def solved(program: IntegerProgram, *others: Any) -> WindowSolution:
        programs.append(program.columns)
        return solve_lexicographic(program, *others)

    monkeypatch.setattr(anytime, "solve_lexicographic", solved)
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    assert found.proved
    assert found.status is SolverStatus.OPTIMAL
    # No other bid is left to HiGHS.
    assert all(columns <= len(found.award) for columns in programs)
    best = max(worth.of(np.array([bid])) for bid in range(len(packing)))
    assert worth.of(found.award) > best
    fits = (packing.use(found.award) <= packing.capacity).all()
    assert fits
    if steps:
        values, stated = list(worth.weights), lambda _: pytest.fail("stated")
        again = determine(packing, values, worth.preference, NOTHING, limits, build_program=stated)
        assert worth.of(again.award) == worth.of(found.award)


def test_the_best_of_few_that_fit_together_is_what_trying_all_pairs_finds() -> None:
    packing, worth = few_can_win(jobs=12, bids=20, nodes=30, least=0.27)
    pairs = [
        np.array(pair)
        for pair in combinations(range(len(packing)), 2)
        if packing.job[pair[0]] != packing.job[pair[1]]
        and (packing.use(np.array(pair)) <= packing.capacity).all()
    ]
    triples = [
        np.append(pair, bid)
        for pair in pairs
        for bid in range(int(pair[1]) + 1, len(packing))
        if packing.job[bid] != packing.job[pair[1]]
        and (packing.use(np.append(pair, bid)) <= packing.capacity).all()
    ]
    found, proved = best_among(packing, worth, NOTHING, np.arange(len(packing)))
    assert proved
    # Four take more than there is.
    assert worth.of(found) == max(worth.of(award) for award in (*pairs, *triples))


def test_sizes_hold_beside_a_bid_that_asks_for_far_more_than_there_is() -> None:
    """Sums over all bids lost so many digits that a job less was said to find room."""
    for capacity in range(2, 12):
        jobs = capacity + 1
        packing = Packing(
            job=np.arange(jobs),
            first=np.arange(jobs),
            indptr=np.arange(jobs + 1),
            row=np.zeros(jobs, np.int64),
            amount=np.append(10**10 + capacity, np.ones(capacity, np.int64)),
            capacity=np.array([capacity]),
            origin=np.arange(1),
        )
        worth = Worth.scaled([9, *[5] * capacity], np.zeros(jobs))
        found, proved = best_among(packing, worth, np.arange(1, capacity), np.arange(jobs))
        assert proved
        assert worth.of(found)[0] == 5 * capacity


def test_of_thousands_that_could_all_win_no_proof_is_tried() -> None:
    jobs = 3000
    packing = Packing(
        job=np.arange(jobs),
        first=np.arange(jobs),
        indptr=np.arange(jobs + 1),
        row=np.zeros(jobs, np.int64),
        amount=np.ones(jobs, np.int64),
        capacity=np.array([jobs - 1]),
        origin=np.arange(1),
    )
    # A count of jobs times the largest weight is beyond 64 bits.
    worth = Worth.scaled([*[1] * (jobs - 1), (1 << 52) - 2 * jobs], np.zeros(jobs))
    found, proved = best_among(packing, worth, NOTHING, np.arange(jobs))
    assert (len(found), proved) == (0, False)


def test_no_proof_is_begun_where_less_than_half_a_second_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    packing, worth = few_can_win(jobs=25, bids=48)
    monkeypatch.setattr(anytime, "best_among", lambda *_, **__: pytest.fail("begun"))
    limits = SearchLimits(deadline=perf_counter() + 0.4, steps=None, seed=0, clock=perf_counter)
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    assert not found.proved
    monkeypatch.setattr("aucsched.models.winners.determine.best_among", lambda *_, **__: pytest.fail("begun"))
    counted = replace(limits, deadline=perf_counter() + 0.4, steps=1)
    values, stated = list(worth.weights), lambda bids: packing.program(bids, packing.capacity)
    assert len(determine(packing, values, worth.preference, NOTHING, counted, build_program=stated).award)


@pytest.mark.parametrize("seed", range(12))
def test_where_steps_are_counted_highs_is_not_asked_for_what_is_proved(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packing, worth = random_packing(seed, jobs=6)
    best = best_by_force(packing, worth)
    limits = SearchLimits(deadline=None, steps=2, seed=0, clock=lambda: 0.0)
    found = AnytimeSearch(packing, scaled(worth), NOTHING, limits).run()
    assert worth.of(found.award) == best

    def refused(*_: object) -> None:
        raise AssertionError("HiGHS is asked")

    monkeypatch.setattr(anytime, "solve_lexicographic", refused)
    again = AnytimeSearch(packing, scaled(worth), found.award, limits).run()
    assert worth.of(again.award) == best
    assert again.proved
    assert again.status is SolverStatus.OPTIMAL
    assert again.bound == best[0]


@pytest.mark.parametrize("seed", range(6))
def test_without_prices_of_the_relaxation_the_best_is_proved_all_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS's simplex may give up: that ended a simulation."""
    packing, worth = random_packing(seed, jobs=4)
    asked: list[int] = []

    def failed(_: highspy.Highs) -> highspy.HighsStatus:
        asked.append(1)
        return highspy.HighsStatus.kError

    monkeypatch.setattr(highspy.Highs, "run", failed)
    monkeypatch.setattr(proving, "_FIRST_LOOKS", 0)
    limits = SearchLimits(deadline=None, steps=1, seed=0, clock=perf_counter)
    found = proved_award(packing, worth, NOTHING, limits)
    assert asked
    assert found is not None
    assert worth.of(found[0]) == best_by_force(packing, worth)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_few_looks_or_prices_prove_awards_of_the_same_worth(seed: int) -> None:
    packing, worth = random_packing(seed, jobs=6)
    limits = SearchLimits(deadline=None, steps=1, seed=0, clock=perf_counter)
    for looks in (0, 20_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(proving, "_FIRST_LOOKS", looks)
            found = proved_award(packing, worth, NOTHING, limits)
        assert found is not None
        assert worth.of(found[0]) == best_by_force(packing, worth)


def test_of_bids_that_each_ask_for_more_than_there_is_none_wins() -> None:
    found = winners(
        [("ann", 1, {"gpu": 3}), ("bob", 2, {"gpu": 5})], {"gpu": 2}, strategy="exact", work_limit=2
    )
    assert (found.chosen, found.value, found.proved) == ((), 0, True)


def test_an_award_of_the_best_bid_of_every_job_is_proved_without_a_branch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Columns of branches are megabytes: on 20 000 nodes each look that needs none took half a second."""

    def no_branch(*_: object) -> None:
        raise AssertionError("a branch was made")

    proved = 0
    for seed, larger in ((seed, larger) for seed in range(60) for larger in (0, 60)):
        packing, worth = random_packing(seed, jobs=3)
        worth = replace(worth, weights=[weight << larger for weight in worth.weights])
        award, is_proved = best_among(packing, worth, NOTHING, np.arange(len(packing)))
        assert is_proved
        jobs = [np.flatnonzero(packing.job == job) for job in np.unique(packing.job)]
        values = ([worth.weights[bid] for bid in award], worth.preference[award])
        most = (
            [max(worth.weights[bid] for bid in bids) for bids in jobs],
            [worth.preference[bids].max() for bids in jobs],
        )
        if sum(values[0]) < sum(most[0]) or values[1].sum() < sum(most[1]):
            continue
        with monkeypatch.context() as patched:
            patched.setattr(proving, "_first", no_branch)
            again, is_proved = best_among(packing, worth, award, np.arange(len(packing)))
        assert is_proved
        assert again.tolist() == award.tolist()
        proved += 1
    assert proved > 9
