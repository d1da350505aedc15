"""Combinatorial auctions of seven kinds, after Leyton-Brown, Pearson and Shoham (EC 2000), sections 4 and 5.

    python benchmarks/instances/families.py regions --seed 0 > regions-0.txt

Their proximity in space (regions), arbitrary relationships, temporal matching, paths in space and temporal
scheduling, and two of the older kinds that they list: decay of bundle sizes (L4) and exponential ones (L6).
The parameters are those that the paper's own program writes into its files. Written from the paper; random
numbers are Python's ``random()`` alone, so that a seed gives the same file everywhere. Dominated bids are
left out, as there. ``aucsched winners`` reads what is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import erf, exp, floor, hypot, isqrt, log, sqrt
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

#: Goods and price of a bid; bids of one bidder exclude each other.
Bid: TypeAlias = tuple[frozenset[int], float]
Bidder: TypeAlias = list[Bid]
#: Endless bidders for so many goods.
Family: TypeAlias = Callable[[Random, int], Iterator[Bidder]]
FloatArray: TypeAlias = npt.NDArray[np.float64]

BIDS, GOODS = 2000, 256
#: Prices in a file are integers: so many to one of the paper's.
_UNIT = 1000

#: Regions and arbitrary: what a good is worth to everybody, at most; the spread of what it is worth besides.
_MOST_COMMON, _SPREAD = 100.0, 30.0
_ANOTHER_GOOD, _ADDITIVITY, _BUDGET, _RESALE, _MOST_SUBSTITUTES = 0.9, 0.2, 1.5, 0.5, 5
_JUMP, _NO_NEIGHBOUR, _DIAGONAL = 0.05, 0.1, 0.2
#: Matching: airports (degrees west and north), pairs without flights, prices, flights' lengths and delays.
_AIRPORTS = ((87.9, 41.98), (77.04, 38.85), (73.87, 40.78), (73.78, 40.64))
_NO_FLIGHTS = ((2, 3),)
_MOST_AIRPORT, _LONGEST_FLIGHT, _DEVIATION = 5.0, 10, 0.5
_EARLY_START, _LATE_START, _EARLY_END, _LATE_END, _DELAYED, _LATE = 1, 2, 1, 2, 0.9, 0.75
#: Paths: nearest cities that a city is joined to, edges to a city in all (about as many as building brings),
#: what edges yet to build cost more, what shippers pay, and paths of one.
_CONNECTIONS, _DENSITY, _BUILDING, _SHIPPING, _MOST_PATHS = 2, 1.7, 1.7, 1.5, 5
#: Scheduling: the longest job, further deadlines, and what longer jobs are worth more.
_LONGEST_JOB, _ANOTHER_DEADLINE = 10, 0.7
#: L4 and L6: how bundles' sizes decay; prices a good.
_DECAY, _MEAN_SIZE, _LEAST_PRICE, _MOST_PRICE = 0.55, 5.0, 1.0, 1000.0


def _uniform(rng: Random, low: float, high: float) -> float:
    return low + (high - low) * rng.random()


def _whole(rng: Random, low: int, high: int) -> int:
    """Return an integer from ``low`` to ``high``, both included."""
    return low + floor(rng.random() * (high - low + 1))


def _normal(rng: Random, spread: float) -> float:
    """Return a normal number by the polar method."""
    while True:
        across, up = _uniform(rng, -1, 1), _uniform(rng, -1, 1)
        size = across * across + up * up
        if 0 < size < 1:
            normal: float = spread * across * sqrt(-2 * log(size) / size)
            return normal


def _weighted(rng: Random, weights: FloatArray) -> int:
    """Return a place, with a probability in proportion to its weight; none is negative, not all are 0."""
    ends = np.cumsum(weights)
    return min(int(np.searchsorted(ends, rng.random() * ends[-1], side="right")), len(weights) - 1)


def _chosen(rng: Random, count: int, size: int) -> frozenset[int]:
    """Return so many different goods."""
    found: set[int] = set()
    while len(found) < size:
        found.add(_whole(rng, 0, count - 1))
    return frozenset(found)


def _regions(rng: Random, goods: int) -> Iterator[Bidder]:
    return _related(rng, _plots(rng, goods), _JUMP, weighs=False)


def _arbitrary(rng: Random, goods: int) -> Iterator[Bidder]:
    near = np.zeros((goods, goods))
    for one in range(goods):
        for other in range(one):
            near[one, other] = near[other, one] = rng.random()
    return _related(rng, near, 0.0, weighs=True)


def _plots(rng: Random, goods: int) -> FloatArray:
    """Return which plots of a square map are neighbours: a grid that lacks some edges, and diagonals."""
    side = isqrt(goods)
    if side * side != goods:
        raise ValueError(f"{goods} goods make no square")
    near = np.zeros((goods, goods))

    def join(one: int, other: int) -> None:
        near[one, other] = near[other, one] = 1

    for row in range(side):
        for column in range(side):
            here = row * side + column
            inside = 0 < row < side - 1 and 0 < column < side - 1
            if row and not (inside and rng.random() < _NO_NEIGHBOUR):
                join(here, here - side)
            if column and not (inside and rng.random() < _NO_NEIGHBOUR):
                join(here, here - 1)
            if row and column and rng.random() < _DIAGONAL:
                # Of the two diagonals of a square one: they would cross.
                join(*((here, here - side - 1) if rng.random() < 0.5 else (here - 1, here - side)))
    return near


def _related(rng: Random, near: FloatArray, jump: float, *, weighs: bool) -> Iterator[Bidder]:
    """Bidders for goods that are worth more together the nearer they are (their figures 4, 5 and 6)."""
    goods = len(near)
    common = np.array([_uniform(rng, 1, _MOST_COMMON) for _ in range(goods)])
    while True:
        own = np.array([_normal(rng, _SPREAD) for _ in range(goods)])
        # The likelier to be wanted the more a good is worth to this bidder.
        wish = np.array([(1 + erf(one / (_SPREAD * sqrt(2)))) / 2 for one in own])

        def bundle(first: int, more: Callable[[int], bool]) -> frozenset[int]:
            taken = np.zeros(goods, np.bool_)
            taken[first] = True
            pull, count = near[first].copy(), 1
            while count < goods and more(count):
                weights = np.where(taken, 0.0, wish * pull)  # noqa: B023 - it is called in this turn only
                if rng.random() < jump or not weights.any():
                    weights = np.where(taken, 0.0, 1.0)
                good = _weighted(rng, weights)
                taken[good] = True
                pull, count = pull + near[good], count + 1
            return frozenset(np.flatnonzero(taken).tolist())

        def value(wanted: frozenset[int]) -> float:
            mine = sorted(wanted)
            together = float(near[np.ix_(mine, mine)].sum()) / 2 if weighs else float(len(mine))
            return float((common + own)[mine].sum() + together ** (1 + _ADDITIVITY))  # noqa: B023

        wanted = bundle(_weighted(rng, wish), lambda _: rng.random() < _ANOTHER_GOOD)
        worth = value(wanted)
        if worth <= 0:
            continue
        budget, resale = _BUDGET * worth, _RESALE * float(common[sorted(wanted)].sum())
        others = {bundle(good, lambda count: count < len(wanted)) for good in sorted(wanted)} - {wanted}  # noqa: B023
        valued = [(one, value(one)) for one in sorted(others, key=sorted)]
        could = [
            one for one in valued if 0 < one[1] <= budget and float(common[sorted(one[0])].sum()) >= resale
        ]
        could.sort(key=lambda one: (-one[1], sorted(one[0])))
        yield [(wanted, worth), *could[:_MOST_SUBSTITUTES]]


def _matching(rng: Random, goods: int) -> Iterator[Bidder]:
    """Flights that want a start and a landing, in time (their figure 9)."""
    airports, times = len(_AIRPORTS), goods // len(_AIRPORTS)
    price = [_uniform(rng, 0, _MOST_AIRPORT) for _ in range(airports)]
    away = {
        (one, other): hypot(_AIRPORTS[one][0] - _AIRPORTS[other][0], _AIRPORTS[one][1] - _AIRPORTS[other][1])
        for one in range(airports)
        for other in range(airports)
        if one != other and (min(one, other), max(one, other)) not in _NO_FLIGHTS
    }
    flights, longest = sorted(away), max(away.values())
    while True:
        start, end = flights[_whole(rng, 0, len(flights) - 1)]
        length = max(1, round(_LONGEST_FLIGHT * away[start, end] / longest))
        due = _whole(rng, 0, times - 1 - length)
        worth = _uniform(rng, 1 - _DEVIATION, 1 + _DEVIATION) * (price[start] + price[end])
        bids: Bidder = []
        for takeoff in range(max(0, due - _EARLY_START), min(times, due + _LATE_START + 1)):
            first = max(takeoff + length, due + length - _EARLY_END)
            for landing in range(first, min(times, due + length + _LATE_END + 1)):
                late, delay = max(landing - due - length, 0), landing - takeoff - length
                wanted = frozenset((takeoff * airports + start, landing * airports + end))
                bids.append((wanted, worth * _DELAYED**delay * _LATE**late))
        yield bids


def _paths(rng: Random, goods: int) -> Iterator[Bidder]:
    """Shippers who want a path between two cities (their figures 2 and 3); a good is an edge."""
    while True:
        place, edges = _roads(rng, goods)
        if len(edges) == goods:
            break
    number = {edge: at for at, edge in enumerate(edges)}
    beside: list[list[int]] = [[] for _ in place]
    for one, other in edges:
        beside[one].append(other)
        beside[other].append(one)
    away = np.hypot(*(place[:, None, :] - place[None, :, :]).transpose(2, 0, 1))
    while True:
        start, end = sorted(_chosen(rng, len(place), 2))
        most = _uniform(rng, 1, _SHIPPING) * float(away[start, end])
        found: list[tuple[float, list[int]]] = []
        _walk([start], 0.0, end, most, away, beside, found)
        found.sort()
        bids = [
            (
                frozenset(number[min(pair), max(pair)] for pair in pairwise(path)),
                most - far,
            )
            for far, path in found[:_MOST_PATHS]
        ]
        if bids:
            yield bids


def _walk(
    path: list[int],
    far: float,
    end: int,
    most: float,
    away: FloatArray,
    beside: list[list[int]],
    found: list[tuple[float, list[int]]],
) -> None:
    """Find every path to a city that is shorter than ``most``."""
    if path[-1] == end:
        found.append((far, list(path)))
        return
    for city in beside[path[-1]]:
        longer = far + float(away[path[-1], city])
        if city not in path and longer + float(away[city, end]) < most:
            path.append(city)
            _walk(path, longer, end, most, away, beside, found)
            path.pop()


def _roads(rng: Random, goods: int) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Return cities on a unit square and so many edges: to the nearest cities, then what shortens ways."""
    cities = max(3, round(goods / _DENSITY))
    place = np.array([(rng.random(), rng.random()) for _ in range(cities)])
    away = np.hypot(*(place[:, None, :] - place[None, :, :]).transpose(2, 0, 1))
    edges: dict[tuple[int, int], None] = {}
    for city in range(cities):
        for other in np.argsort(away[city], kind="stable")[1 : 1 + _CONNECTIONS].tolist():
            edges[min(city, other), max(city, other)] = None
    cost = away * _BUILDING
    for one, other in edges:
        cost[one, other] = cost[other, one] = away[one, other]
    tries = 0
    while len(edges) < goods and tries < 20 * goods:
        tries += 1
        start, end = sorted(_chosen(rng, cities, 2))
        path = _shortest(cost, start, end)
        for pair in pairwise(path):
            edge = min(pair), max(pair)
            if edge not in edges and len(edges) < goods:
                edges[edge] = None
                cost[edge] = cost[edge[::-1]] = away[edge]
    return place, sorted(edges)[:goods]


def _shortest(cost: FloatArray, start: int, end: int) -> list[int]:
    """Return a shortest path (Dijkstra's) in a graph that has every edge."""
    far = np.full(len(cost), np.inf)
    far[start] = 0.0
    before, is_open = np.full(len(cost), -1), np.ones(len(cost), np.bool_)
    while is_open[end]:
        here = int(np.argmin(np.where(is_open, far, np.inf)))
        is_open[here] = False
        through = far[here] + cost[here]
        nearer = is_open & (through < far)
        far[nearer], before[nearer] = through[nearer], here
    path = [end]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]


def _scheduling(rng: Random, goods: int) -> Iterator[Bidder]:
    """Jobs that want a block of time before deadlines, for less after each (their figure 10)."""
    while True:
        length = _whole(rng, 1, _LONGEST_JOB)
        deadline, passed = _whole(rng, length, goods), 0
        first = deadline
        worth = _uniform(rng, 1 - _DEVIATION, 1 + _DEVIATION) * length ** (1 + _ADDITIVITY)
        bids: Bidder = []
        while True:
            for end in range(max(length, passed + 1), deadline + 1):
                bids.append((frozenset(range(end - length, end)), worth * first / deadline))
            if deadline == goods or rng.random() >= _ANOTHER_DEADLINE:
                break
            passed, deadline = deadline, _whole(rng, deadline + 1, goods)
        yield bids


def _priced(rng: Random, goods: frozenset[int]) -> Bidder:
    return [(goods, len(goods) * _uniform(rng, _LEAST_PRICE, _MOST_PRICE))]


def _decay(rng: Random, goods: int) -> Iterator[Bidder]:
    while True:
        size = 1
        while size < goods and rng.random() < _DECAY:
            size += 1
        yield _priced(rng, _chosen(rng, goods, size))


def _exponential(rng: Random, goods: int) -> Iterator[Bidder]:
    """Sizes n with a probability that falls as e^(−n/5)."""
    all_of_it = 1 - exp(-goods / _MEAN_SIZE)
    while True:
        size = 1 + floor(-_MEAN_SIZE * log(1 - rng.random() * all_of_it))
        yield _priced(rng, _chosen(rng, goods, min(size, goods)))


FAMILIES: Mapping[str, Family] = {
    "regions": _regions,
    "arbitrary": _arbitrary,
    "L4": _decay,
    "L6": _exponential,
    "matching": _matching,
    "paths": _paths,
    "scheduling": _scheduling,
}


def auction_text(family: str, seed: int, bids: int = BIDS, goods: int = GOODS) -> str:
    """Return an auction as a file of the CATS format: at least so many bids, none dominated by another."""
    rng = Random(f"{family} {goods} {seed}")  # noqa: S311 - not a secret
    bidders = FAMILIES[family](rng, goods)
    kept: list[Bidder] = []
    while sum(map(len, kept)) < bids:
        missing, fresh = bids - sum(map(len, kept)), 0
        while fresh < missing:
            bidder = [(wanted, max(1, round(price * _UNIT))) for wanted, price in next(bidders)]
            kept.append([(wanted, float(price)) for wanted, price in bidder])
            fresh += len(bidder)
        kept = _without_dominated(kept, goods)
    return _text(kept, family, seed, goods)


def _without_dominated(bidders: list[Bidder], goods: int) -> list[Bidder]:
    """Leave out bids for which another, of its bidder or of one with no other bid, wants less for more."""
    flat = [(place, wanted, price) for place, mine in enumerate(bidders) for wanted, price in mine]
    owner = np.array([place for place, _, _ in flat])
    price = np.array([price for _, _, price in flat])
    holds = np.zeros((len(flat), goods), np.float32)
    for row, (_, wanted, _) in enumerate(flat):
        holds[row, sorted(wanted)] = 1
    size = holds.sum(axis=1)
    may = np.array([len(bidders[place]) == 1 for place in owner])
    within = (holds @ holds.T) == size[:, None]
    better = within & (price[:, None] >= price[None, :]) & ((owner[:, None] == owner[None, :]) | may[:, None])
    equal = (size[:, None] == size[None, :]) & (price[:, None] == price[None, :])
    order = np.arange(len(flat))
    better &= ~equal | (order[:, None] < order[None, :])
    np.fill_diagonal(better, val=False)
    dominated = better.any(axis=0)
    kept: list[Bidder] = [[] for _ in bidders]
    for (place, wanted, paid), is_out in zip(flat, dominated.tolist(), strict=True):
        if not is_out:
            kept[place].append((wanted, paid))
    return [mine for mine in kept if mine]


def _text(bidders: list[Bidder], family: str, seed: int, goods: int) -> str:
    """Return the file; bids of one bidder share a dummy good."""
    lines: list[str] = []
    dummies = 0
    for mine in bidders:
        dummy = [goods + dummies] if len(mine) > 1 else []
        dummies += len(dummy)
        for wanted, price in mine:
            cells = [len(lines), int(price), *sorted(wanted), *dummy, "#"]
            lines.append("\t".join(map(str, cells)))
    head = f"% {family}, seed {seed}\ngoods {goods}\nbids {len(lines)}\ndummy {dummies}\n"
    return head + "\n".join(lines) + "\n"


def main() -> int:
    """Print an auction."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bids", type=int, default=BIDS, help=f"at least ({BIDS})")
    parser.add_argument("--goods", type=int, default=GOODS, help=f"a square for regions ({GOODS})")
    arguments = parser.parse_args()
    sys.stdout.write(auction_text(arguments.family, arguments.seed, arguments.bids, arguments.goods))
    return 0


if __name__ == "__main__":
    sys.exit(main())
