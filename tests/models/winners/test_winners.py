"""Winner determination against brute force, and against everything that is no auction."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances.families import auction_text

from aucsched import BidArrays, InputError, Node, OptionError, Snapshot, Status, Winners, schedule, winners
from aucsched.formats.auction_file import load_auction
from aucsched.models.search import operators
from aucsched.models.winners import determine as determining
from aucsched.models.winners import instance as reading
from aucsched.models.winners.determine import winners_of
from aucsched.models.winners.instance import ProblemInstance, read_instance

#: A bid, its value exact.
Exact = tuple[Any, Fraction, Mapping[str, Fraction]]


def as_fraction(number: Any) -> Fraction:
    return Fraction(str(number)) if isinstance(number, (float, np.floating, Decimal)) else Fraction(number)


def exactly(bids: list[Any]) -> list[Exact]:
    return [
        (bidder, as_fraction(value), {item: as_fraction(amount) for item, amount in items.items()})
        for bidder, value, items in bids
    ]


def best_by_force(bids: list[Exact], capacities: Mapping[str, Any], groups: list[Any]) -> Fraction:
    """Return the most that an award is worth, by trying every set of bids that fits."""

    def best(at: int, left: dict[str, Fraction], used: frozenset[Any]) -> Fraction:
        if at == len(bids):
            return Fraction(0)
        found = best(at + 1, left, used)
        _, value, items = bids[at]
        group = groups[at]
        if group in used or any(left[item] < amount for item, amount in items.items()):
            return found
        after = left | {item: left[item] - amount for item, amount in items.items()}
        return max(found, value + best(at + 1, after, used if group is None else used | {group}))

    return best(0, {item: as_fraction(one) for item, one in capacities.items()}, frozenset())


def check_award(found: Winners, bids: list[Exact], capacities: Mapping[str, Any], groups: list[Any]) -> None:
    """Count the award again, from what was given alone."""
    assert list(found.chosen) == sorted(set(found.chosen))
    assert found.value == sum(bids[place][1] for place in found.chosen)
    won = [groups[place] for place in found.chosen if groups[place] is not None]
    assert len(won) == len(set(won))
    for item, capacity in capacities.items():
        taken = sum((bids[place][2].get(item, Fraction(0)) for place in found.chosen), Fraction(0))
        assert taken <= as_fraction(capacity)
    assert found.bound >= found.value
    assert (found.status is Status.OPTIMAL) == found.proved


VALUES: list[Callable[[random.Random], Any]] = [
    lambda rng: rng.randint(0, 20),
    lambda rng: Fraction(rng.randint(0, 50), rng.randint(1, 7)),
    lambda rng: rng.random() * 10,
    lambda rng: np.float32(rng.random()),
    lambda rng: np.int64(rng.randint(0, 9)),
    lambda rng: 10**9 + rng.randint(0, 5),
    lambda rng: rng.randint(0, 10**30),
    lambda rng: Decimal(rng.randint(0, 999)).scaleb(-2),
]


def tiny_auction(seed: int) -> tuple[list[Any], dict[str, Any], str | list[Any], list[Any]]:
    """Return bids, capacities, groups as they are given, and the group of each bid."""
    rng = random.Random(seed)
    items = [f"item{number}" for number in range(rng.randint(1, 6))]
    value = rng.choice(VALUES)
    parts = rng.choice([1, 1, 1, 2, 10])
    amount = (lambda: rng.randint(0, 3)) if parts == 1 else (lambda: rng.randint(0, 3 * parts) / parts)
    bids = [
        (
            rng.choice(["ann", "bob", "cid", "dan", None]),
            value(rng),
            {item: amount() for item in rng.sample(items, rng.randint(0, len(items)))},
        )
        for _ in range(rng.randint(0, 11))
    ]
    capacities = {item: rng.choice([0, 1, 1, 1, 2, 5, 2.5 if parts > 1 else 3]) for item in items}
    groups: Any = rng.choice(["xor", "or", [rng.choice([1, 2, None]) for _ in bids]])
    named = [bid[0] for bid in bids] if groups == "xor" else [None] * len(bids) if groups == "or" else groups
    return bids, capacities, groups, list(named)


@pytest.mark.parametrize("part", range(20))
def test_2000_tiny_auctions_are_proved_at_what_brute_force_finds(part: int) -> None:
    """Soner: equations (2.4)-(2.15) knapsacks: integer, 0-1, m-dimensional, multiple."""
    for seed in range(100 * part, 100 * part + 100):
        bids, capacities, groups, named = tiny_auction(seed)
        limit: dict[str, Any] = {"work_limit": 40} if seed % 2 else {"time_limit_s": 5.0}
        found = winners(bids, capacities, groups=groups, **limit)
        read = exactly(bids)
        check_award(found, read, capacities, named)
        assert found.proved, seed
        assert found.value == found.bound == best_by_force(read, capacities, named), seed
        assert found.gap == 0


@pytest.mark.parametrize("seed", range(60))
def test_every_strategy_and_columns_give_an_award_that_fits(seed: int) -> None:
    bids, capacities, groups, named = tiny_auction(seed)
    read = exactly(bids)
    best = best_by_force(read, capacities, named)
    exact = winners(bids, capacities, groups=groups, strategy="exact", time_limit_s=5.0)
    assert exact.proved
    assert exact.value == best
    greedy = winners(bids, capacities, groups=groups, strategy="greedy")
    check_award(greedy, read, capacities, named)
    assert greedy.value <= best <= greedy.bound
    place = {item: number for number, item in enumerate(capacities)}
    columns = BidArrays(
        value=[bid[1] for bid in bids],
        indptr=np.cumsum([0, *(len(bid[2]) for bid in bids)]),
        item=np.array([place[item] for bid in bids for item in bid[2]], np.int32),
        amount=[amount for bid in bids for amount in bid[2].values()],
    )
    given = winners(columns, list(capacities.values()), groups=named, work_limit=40)
    assert given.value == best
    assert set(given.prices) == set(range(len(capacities)))


def test_the_worked_example() -> None:
    bids = [("ann", 10, {"gpu": 2}), ("ann", 7, {"gpu": 1}), ("bob", 5, {"gpu": 1})]
    found = winners(bids, {"gpu": 2})
    assert (found.chosen, found.value, found.bound, found.gap) == ((1, 2), 12, 12, 0.0)
    assert winners(bids, {"gpu": 3}, groups="or").value == 17
    assert winners(bids, {"gpu": 3}).value == 15


def test_the_second_objective_decides_among_equals() -> None:
    bids = [("ann", 5, {"a": 1}), ("ann", 5, {"b": 1}), ("bob", 5, {"a": 1}), ("bob", 5, {"b": 1})]
    capacities = {"a": 1, "b": 1}
    assert winners(bids, capacities, second=[0, 1, 1, 0]).chosen == (1, 2)
    assert winners(bids, capacities, second=[1, 0, 0.5, 1]).chosen == (0, 3)


def test_a_start_is_never_lost() -> None:
    bids = [(None, 3, {"a": 1}), (None, 4, {"a": 1}), (None, 1, {"b": 1})]
    found = winners(bids, {"a": 1, "b": 1}, start=[0, 2], work_limit=0)
    assert found.value >= 4
    assert winners(bids, {"a": 1, "b": 1}, start=[1, 2], strategy="greedy").value == 5


@pytest.mark.parametrize("strategy", ["greedy", "exact"])
def test_parameters_of_a_search_that_is_not_made_are_refused(strategy: Any) -> None:
    with pytest.raises(OptionError, match="parameters: only strategy anytime searches"):
        winners([(None, 3, {"a": 1})], {"a": 1}, strategy=strategy, parameters={"moves": 50})


def test_a_float_is_the_decimal_that_it_prints_as() -> None:
    found = winners([(None, 0.1, {"a": 0.1})] * 11, {"a": 1.0})
    assert found.value == 1
    assert len(found.chosen) == 10


def test_bids_for_nothing_and_auctions_of_nothing() -> None:
    assert winners([], {}).chosen == ()
    assert winners([], {}).proved
    assert winners([("ann", 1, {}), ("ann", 2, {}), (None, 0, {})], {}).value == 2
    assert winners([("ann", 1, {"a": 1})], {"a": 0}).value == 0


def test_prices_are_of_one_however_bids_are_given() -> None:
    """Amounts of 4 are one unit of a packing: a price is of one all the same."""
    values, items = [10, 7, 6, 4], {"gpu": 8}
    tuples = winners([(place, value, {"gpu": 4}) for place, value in enumerate(values)], items)
    halves = winners([(place, value, {"gpu": 0.5}) for place, value in enumerate(values)], {"gpu": 1})
    indptr = np.arange(5)
    arrays = BidArrays(value=values, indptr=indptr, item=np.zeros(4, np.int64), amount=np.full(4, 4))
    assert tuples.prices["gpu"] == pytest.approx(winners(arrays, [8]).prices[0], rel=0.01)
    assert tuples.prices["gpu"] > 0
    assert halves.prices["gpu"] == pytest.approx(8 * tuples.prices["gpu"])


def test_a_price_above_every_float_is_the_largest() -> None:
    tiny = Decimal(10) ** -299
    bids = [("a", 10**21, {"x": 2 * tiny}), ("b", 9 * 10**20, {"x": tiny}), ("c", 5 * 10**20, {"x": tiny})]
    found = winners(bids, {"x": 2 * tiny}, work_limit=5)
    assert found.chosen == (1, 2)
    assert found.prices == {"x": sys.float_info.max}
    assert json.loads(found.to_json())["prices"] == found.prices


def test_prices_support_the_bound() -> None:
    rng = random.Random(5)
    items = {f"i{number}": rng.randint(1, 4) for number in range(30)}
    bids = [
        (None, rng.randint(50, 99), {item: rng.randint(1, 2) for item in rng.sample(sorted(items), 4)})
        for _ in range(200)
    ]
    found = winners(bids, items, time_limit_s=1.0)
    paid = [sum(found.prices[item] * amount for item, amount in bid[2].items()) for bid in bids]
    above = sum(max(0.0, bid[1] - cost) for bid, cost in zip(bids, paid, strict=True))
    supported = above + sum(found.prices[item] * capacity for item, capacity in items.items())
    assert supported >= found.value - 1e-6
    assert all(price >= 0 for price in found.prices.values())


WRONG: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([("a", -1, {})], {}, {}, r"bids\[0\].value: -1 is below 0"),
    ([("a", float("nan"), {})], {}, {}, r"bids\[0\].value: nan is not a finite number"),
    ([("a", np.float64("inf"), {})], {}, {}, r"bids\[0\].value: .*is not a finite number"),
    ([("a", True, {})], {}, {}, r"bids\[0\].value: True is not a number"),
    ([("a", np.bool_(True), {})], {}, {}, r"bids\[0\].value: True is not a number"),
    ([("a", "5", {})], {}, {}, r"bids\[0\].value: '5' is not a number"),
    ([("a", 1)], {}, {}, r"bids\[0\]: \('a', 1\) is not \(bidder, value, items\)"),
    ([("a", 1, ["x"])], {"x": 1}, {}, r"bids\[0\].items: \['x'\] is not a mapping"),
    ([("a", 1, {"y": 1})], {"x": 1}, {}, r"bids\[0\].items: 'y' is not among the capacities"),
    ([("a", 1, {"x": -2})], {"x": 1}, {}, r"bids\[0\].items.x: -2 is below 0"),
    ([("a", 1, {"x": None})], {"x": 1}, {}, r"bids\[0\].items.x: None is not a number"),
    ([([], 1, {})], {}, {}, r"bids\[0\].bidder: \[\] cannot name"),
    ([("a", 10**300, {})], {}, {}, r"bids\[0\].value: .* is 10\^300 or more"),
    ([("a", Decimal("1e301"), {})], {}, {}, r"bids\[0\].value: 1E\+301 is 10\^300 or more"),
    (
        [("a", 10**299, {}), ("b", Decimal("1e-9"), {})],
        {},
        {},
        r"bids\[1\].value: 1e-09 is too fine beside 1e\+299: in its units their sum is beyond floats",
    ),
    ([("a", 1e-300, {})], {}, {}, r"bids\[0\].value: 1e-300 is a fraction with a denominator"),
    ([("a", Decimal("1e-301"), {})], {}, {}, r"bids\[0\].value: 1E-301 is closer to 0 than 10\^-300"),
    ([("a", 1, {})], {"x": -1}, {}, r"capacities.x: -1 is below 0"),
    ([("a", 1, {})], {}, {"groups": "and"}, r"groups: 'and' is not one of xor, or"),
    ([("a", 1, {})], {}, {"groups": [1, 2]}, r"groups: 2 entries instead of 1"),
    ([("a", 1, {})], {}, {"second": [1, 2]}, r"second: 2 entries instead of 1"),
    ([("a", 1, {})], {}, {"second": [-1]}, r"second\[0\]: -1 is below 0"),
    ([("a", 1, {})], {}, {"second": 5}, r"second: 5 is not a sequence"),
    ([("a", 1, {})], {}, {"start": 0}, r"start: 0 is not a sequence"),
    ([("a", 1, {})], {}, {"start": None}, r"start: None is not a sequence"),
    ([("a", 1, {})], {}, {"start": np.array(0)}, r"start: an array of 0 dimensions"),
    ([("a", 1, {})], {}, {"start": [1]}, r"start\[0\]: 1 is none of the 1 bids"),
    ([("a", 1, {}), ("a", 1, {})], {}, {"start": [0, 1]}, r"start: two bids of one group"),
    ([(None, 1, {"x": 1})] * 2, {"x": 1}, {"start": [0, 1]}, r"start: these bids do not fit together"),
    (
        [(None, 1, {"x": 10**16 + 1}), (None, 1, {"x": 10**16})],
        {"x": 10**16 + 5},
        {},
        r"capacities: amounts of 'x' take more than 53 bits",
    ),
]


@pytest.mark.parametrize(("bids", "capacities", "options", "message"), WRONG)
def test_what_is_no_auction_is_one_error(
    bids: Any, capacities: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        winners(bids, capacities, **options)


FAR_APART: list[Any] = [("a", 10**299, {"x": 2}), ("b", 10**299, {"x": 1}), ("c", Decimal("1e-9"), {"x": 1})]


@pytest.mark.parametrize(("strategy", "chosen"), [("exact", (1, 2)), ("greedy", (0,))])
def test_values_too_far_apart_for_a_search_are_none_for_other_strategies(strategy: Any, chosen: Any) -> None:
    found = winners(FAR_APART, {"x": 2}, strategy=strategy)
    assert (found.chosen, found.value) == (chosen, sum(as_fraction(FAR_APART[bid][1]) for bid in chosen))
    with pytest.raises(InputError, match="beyond floats"):
        winners(FAR_APART, {"x": 2}, strategy="exact", work_limit=5)


def test_the_unit_of_usual_values_is_not_looked_for_when_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 50 000 bids that took longer than all else that is read."""
    monkeypatch.setattr(reading, "integer_weights", None)
    bids: list[Any] = [("a", 0.1, {"x": 1}), ("b", 12345.6789, {"x": 1}), ("c", Fraction(1, 7), {})]
    assert len(read_instance(bids, {"x": 1}, "xor").values) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indptr": [0, 1]}, r"indptr: 2 entries instead of 3"),
        ({"indptr": [0, 2, 1]}, r"indptr: it does not rise from 0 to 2"),
        ({"indptr": [0.0, 1.0, 2.0]}, r"indptr: it is not an array of integers"),
        ({"item": [0, 2]}, r"item\[1\]: 2 is none of the 2 capacities"),
        ({"indptr": [0, 2, 2], "item": [1, 1]}, r"item\[1\]: 1 is listed twice in one bid"),
        ({"amount": np.array([1, -1])}, r"amount\[1\]: -1 is below 0"),
        ({"amount": [1]}, r"amount: 1 entries instead of 2"),
        ({"value": np.ones((2, 2))}, r"value: an array of 2 dimensions"),
        ({"bidder": ["a"]}, r"bidder: 1 entries instead of 2"),
    ],
)
def test_columns_that_are_none_are_one_error(changed: dict[str, Any], message: str) -> None:
    columns: dict[str, Any] = {"value": [1, 2], "indptr": [0, 1, 2], "item": [0, 1], "amount": [1, 1]}
    with pytest.raises(InputError, match=f"^{message}"):
        winners(BidArrays(**(columns | changed)), [1, 1])


@pytest.mark.parametrize(
    "options", [{"time_limit_s": 0}, {"work_limit": -1}, {"seed": 0.5}, {"strategy": "best"}]
)
def test_options_are_those_of_the_table(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        winners([], {}, **options)


def hard_auction() -> tuple[list[Any], dict[str, int]]:
    """Bids that no solver proves within a few steps."""
    rng = random.Random(11)
    items = {f"i{number}": rng.choice([1, 1, 1, 3]) for number in range(60)}
    bids = [
        (None, rng.randint(900, 999) * size, dict.fromkeys(rng.sample(sorted(items), size), 1))
        for size in (rng.randint(3, 9) for _ in range(420))
    ]
    return bids, items


def test_any_number_of_processes_gives_the_same_award_under_a_work_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Several searches after a few steps already: who makes which of them, this process says.
    monkeypatch.setattr(determining, "ALONE", 4)
    bids, items = hard_auction()
    one = winners(bids, items, work_limit=28, seed=2)
    four = winners(bids, items, work_limit=28, seed=2, workers=4)
    assert (one.chosen, one.value) == (four.chosen, four.value)
    assert (one.bound, one.prices) == (four.bound, four.prices)


def test_more_work_is_never_worse() -> None:
    bids, items = hard_auction()
    reached = [winners(bids, items, work_limit=steps).value for steps in (0, 1, 10, 40, 120)]
    assert reached == sorted(reached)
    assert reached[-1] > reached[0]


def test_searches_at_once_share_a_time_limit() -> None:
    bids, items = hard_auction()
    found = winners(bids, items, time_limit_s=3.0, workers=2)
    check_award(found, exactly(bids), items, [None] * len(bids))
    assert found.value > 0


@pytest.fixture(scope="module")
def whole_goods(tmp_path_factory: pytest.TempPathFactory) -> ProblemInstance:
    """Bids on whole goods, of which reductions leave fewer."""
    file = tmp_path_factory.mktemp("auction") / "arbitrary.txt"
    file.write_text(auction_text("arbitrary", 1, 350, 81), encoding="utf-8")
    auction = load_auction(file)
    return read_instance(auction.bids, auction.capacities, auction.groups)


def test_more_work_is_never_worse_among_whole_goods(whole_goods: ProblemInstance) -> None:
    found = [winners_of(whole_goods, work_limit=steps, seed=3) for steps in (0, 1, 3, 8, 20, 60)]
    values, bounds = [one.value for one in found], [one.bound for one in found]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    assert values[-1] > values[0]
    again = winners_of(whole_goods, work_limit=60, seed=3)
    assert (again.chosen, again.bound, again.prices) == (found[-1].chosen, found[-1].bound, found[-1].prices)


def test_plain_python_does_the_same_with_whole_goods(
    whole_goods: ProblemInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    compiled = winners_of(whole_goods, work_limit=12, seed=1)
    monkeypatch.setattr(operators, "compiled_loop", lambda: None)
    monkeypatch.setattr(operators, "is_loaded", lambda: False)
    plain = winners_of(whole_goods, work_limit=12, seed=1)
    assert (plain.chosen, plain.bound, plain.prices) == (compiled.chosen, compiled.bound, compiled.prices)


def test_what_steers_the_search_can_be_given_and_is_named() -> None:
    bids = [("ann", 10, {"gpu": 2}), ("bob", 5, {"gpu": 1})]
    plain = winners(bids, {"gpu": 2})
    assert plain.parameters == {}
    assert "parameters" not in plain.to_dict()
    found = winners(bids, {"gpu": 2}, parameters={"moves": 50, "near": 0.01})
    assert (found.value, dict(found.parameters)) == (10, {"moves": 50})
    assert found.to_dict()["parameters"] == {"moves": 50}
    assert winners(bids, {"gpu": 2}, parameters="moves=50:near=0.01").parameters == {"moves": 50}
    for wrong, says in (
        ({"move": 1}, "parameters: the search has no parameter move"),
        ({"moves": 0.5}, "parameters: moves: 0.5 is not a whole number"),
        ({"auction_every": 0}, "parameters: auction_every: 0 is not from 1"),
        ({"whole_share": 2.0}, "parameters: whole_share: 2.0 is not from 0 to 1"),
        ({"moves": float("inf")}, "parameters: moves: inf is not a whole number"),
        ({"moves": float("nan")}, "parameters: moves: nan is not a whole number"),
        ({"moves": 1e300}, r"parameters: moves: 10+\d+ is not from 0 to 1e\+09"),
        ({"near": float("nan")}, "parameters: near: nan is not from 0 to 1e"),
        ({"near": "x"}, "parameters: near: 'x' is not a number"),
        (5, "parameters: 5 is not a mapping"),
    ):
        with pytest.raises(OptionError, match=says):
            winners(bids, {"gpu": 2}, parameters=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="search_parameters: moves: -1 is not from 0"):
        schedule(Snapshot(nodes=[Node(name="n", cores=1)]), search_parameters="moves=-1")
