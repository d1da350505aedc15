"""Bids that need no search: what is left gives a best award of all, by brute force."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from aucsched import winners
from aucsched.cluster.resources.capacity import IntArray
from aucsched.models.search.packing import Packing, Worth, packing_from
from aucsched.models.search.reductions import reduced


def packing_of(rows: list[list[int]], groups: list[int], goods: int, amount: int = 1) -> Packing:
    bid = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat = np.array([good for row in rows for good in row], np.int64)
    capacity = np.full(goods, 2 * amount - 1, np.int64)
    return packing_from(np.array(groups, np.int64), bid, flat, np.full(len(flat), amount), capacity)


def drawn(rng: Random) -> tuple[Packing, list[int], list[float]]:
    """Return a few bids on whole goods, some in groups, many worth the same."""
    bids, goods = rng.randint(2, 11), rng.randint(1, 7)
    rows = [sorted(rng.sample(range(goods), rng.randint(0, min(3, goods)))) for _ in range(bids)]
    groups = sorted(rng.randint(0, bids) for _ in range(bids))
    weights = [rng.choice([0, 1, 2, 3, 5, 8, rng.randint(1, 20)]) for _ in range(bids)]
    liked = [rng.choice([0.0, 0.25, 1.0]) for _ in range(bids)] if rng.random() < 0.5 else [0.0] * bids
    return packing_of(rows, groups, goods, amount=rng.randint(1, 3)), weights, liked


def fits(packing: Packing, award: IntArray) -> bool:
    alone = len(np.unique(packing.job[award])) == len(award)
    return alone and bool((packing.use(award) <= packing.capacity).all())


def best(packing: Packing, weights: list[int], liked: list[float]) -> tuple[int, float]:
    awards = (np.flatnonzero(chosen) for chosen in product([False, True], repeat=len(packing)))
    return max(worth(award, weights, liked) for award in awards if fits(packing, award))


def worth(award: IntArray, weights: list[int], liked: list[float]) -> tuple[int, float]:
    return sum(weights[bid] for bid in award.tolist()), sum(liked[bid] for bid in award.tolist())


@pytest.mark.parametrize("seed", range(150))
def test_a_best_award_of_what_is_left_is_a_best_award_of_all(seed: int) -> None:
    packing, weights, liked = drawn(Random(seed))
    reduction = reduced(packing, Worth.scaled(weights, np.array(liked)))
    if reduction is None:
        return
    left = [liked[bid] for bid in reduction.kept.tolist()]
    reached = best(reduction.packing, reduction.worth.weights, left) if len(reduction.kept) else (0, 0.0)
    awards = (np.flatnonzero(one) for one in product([False, True], repeat=len(reduction.kept)))
    lifted = [
        reduction.lifted(award)
        for award in awards
        if fits(reduction.packing, award) and worth(award, reduction.worth.weights, left) == reached
    ]
    assert lifted
    for award in lifted:
        assert fits(packing, award)
        assert worth(award, weights, liked) == best(packing, weights, liked)
    assert reached[0] + reduction.offset == best(packing, weights, liked)[0]


@pytest.mark.parametrize("seed", range(60))
def test_a_start_is_not_worth_less_among_what_is_left(seed: int) -> None:
    rng = Random(seed)
    packing, weights, liked = drawn(rng)
    reduction = reduced(packing, Worth.scaled(weights, np.array(liked)))
    chosen: list[int] = []
    for bid in rng.sample(range(len(packing)), len(packing)):
        if fits(packing, np.array(sorted([*chosen, bid]))):
            chosen.append(bid)
    if reduction is None:
        return
    start = np.array(sorted(chosen))
    lowered = reduction.lowered(start)
    assert fits(reduction.packing, lowered)
    assert worth(reduction.lifted(lowered), weights, liked) >= worth(start, weights, liked)


def test_a_path_of_three_goods_is_gone_altogether() -> None:
    # The two ends exclude the middle only, which is worth more than each, less than both.
    packing = packing_of([[0], [0, 1], [1]], [0, 1, 2], 2)
    reduction = reduced(packing, Worth.scaled([3, 5, 4], np.zeros(3)))
    assert reduction is not None
    assert len(reduction.kept) == 0
    assert reduction.offset == 7
    assert reduction.lifted(np.zeros(0, np.int64)).tolist() == [0, 2]


def test_shared_capacities_are_left_as_they_are() -> None:
    packing = packing_from(
        np.arange(3), np.arange(3), np.zeros(3, np.int64), np.ones(3, np.int64), np.array([2])
    )
    assert reduced(packing, Worth.scaled([1, 2, 3], np.zeros(3))) is None


def test_prices_support_the_bound_where_one_good_is_all_that_rivals_want() -> None:
    bids = [("a", 9, {"x": 1}), ("b", 7, {"x": 1, "y": 1}), ("c", 4, {"y": 1}), ("d", 3, {"z": 1})]
    found = winners(bids, {"x": 1, "y": 1, "z": 1})
    assert (found.chosen, found.value, found.proved) == ((0, 2, 3), 16, True)
    paid = [sum(found.prices[item] for item in items) for _, _, items in bids]
    gains = [max(0.0, value - cost) for (_, value, _), cost in zip(bids, paid, strict=True)]
    assert sum(found.prices.values()) + sum(gains) >= 16


@pytest.mark.parametrize("seed", range(40))
def test_winners_of_sets_are_those_of_brute_force(seed: int) -> None:
    rng = Random(1000 + seed)
    packing, weights, liked = drawn(rng)
    found = winners(
        [
            (
                int(packing.job[bid]),
                weights[bid],
                {
                    int(packing.row[at]): int(packing.amount[at])
                    for at in range(packing.indptr[bid], packing.indptr[bid + 1])
                },
            )
            for bid in range(len(packing))
        ],
        dict(enumerate(packing.capacity.tolist())),
        second=liked,
    )
    assert found.proved
    assert worth(np.array(found.chosen, np.int64), weights, liked) == pytest.approx(
        best(packing, weights, liked)
    )
