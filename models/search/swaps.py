"""Swaps, as functions over columns, made to be compiled (compiled.py) and to run without.

For packings of sets alone: no two bids that share a row could both win. In a swap the losing bid that adds
most, or loses least, comes in, and those that it excludes leave; for a few swaps they may not come back (tabu
search, Glover 1989; such swaps for weighted cliques: Wu, Hao, Glover 2012, for auctions: Wu, Hao 2015). After
many swaps without a better award the search goes back to the best one, and some bids come in by chance.

Only indexing and integers, as in moves.py: the same lines run over lists in plain Python, alike.
"""

from __future__ import annotations

from typing import NamedTuple

from .moves import Integers, Shape

#: drand48, as in moves.py.
_FACTOR, _ADDED, _BITS, _UPPER = 25_214_903_917, 11, (1 << 48) - 1, 17
#: Swaps for which a bid that left may not come back: at least, and how many more by chance.
_AWAY, _LONGER = 3, 5
#: Swaps without a better award after which the search goes back, and how many bids then come in by chance.
_PATIENCE, _BY_CHANCE = 1000, 3
#: Less than any bid adds.
_NOTHING = -(1 << 60)
#: Places of ``Swaps.counter``: the random number, what the award at hand counts, the best one, and the best
#: since the search last went back; when that was met; swaps so far.
RANDOM, TOTAL, BEST, REACHED, SINCE, SWAPS = range(6)
COUNTS = 6


class Swaps(NamedTuple):
    """What swaps change; of each bid, shape (bids,).

    Attributes:
        won, best: 1 for the winners at hand, and of the best award met.
        against: what the winners that a bid excludes count together.
        until: the last swap in which it may not come in.
        counter: at the places RANDOM to SWAPS.
    """

    won: Integers
    best: Integers
    against: Integers
    until: Integers
    counter: Integers


def swap_in(chosen: int, swap: int, shape: Shape, swaps: Swaps) -> None:
    """Let a bid in, and whom it excludes leave."""
    near_at, near, weight = shape.near_at, shape.near, shape.weight
    won, against, until, counter = swaps.won, swaps.against, swaps.until, swaps.counter
    if against[chosen] > 0:
        for at in range(near_at[chosen], near_at[chosen + 1]):
            one = near[at]
            if won[one]:
                won[one] = 0
                counter[TOTAL] -= weight[one]
                random = (counter[RANDOM] * _FACTOR + _ADDED) & _BITS
                counter[RANDOM] = random
                until[one] = swap + _AWAY + (random >> _UPPER) % _LONGER
                for other in range(near_at[one], near_at[one + 1]):
                    against[near[other]] -= weight[one]
    won[chosen] = 1
    counter[TOTAL] += weight[chosen]
    for at in range(near_at[chosen], near_at[chosen + 1]):
        against[near[at]] += weight[chosen]


def go_back(swap: int, shape: Shape, swaps: Swaps) -> None:
    """Go back to the best award, and let some bids in by chance."""
    won, best, against, pool, counter = swaps.won, swaps.best, swaps.against, shape.pool, swaps.counter
    for bid in range(len(won)):
        change = best[bid] - won[bid]
        if change != 0:
            won[bid] = best[bid]
            for at in range(shape.near_at[bid], shape.near_at[bid + 1]):
                against[shape.near[at]] += change * shape.weight[bid]
    counter[TOTAL] = counter[BEST]
    for _ in range(_BY_CHANCE):
        random = (counter[RANDOM] * _FACTOR + _ADDED) & _BITS
        counter[RANDOM] = random
        chosen = pool[(random >> _UPPER) % len(pool)]
        if not won[chosen]:
            swap_in(chosen, swap, shape, swaps)


def next_in(swap: int, shape: Shape, swaps: Swaps) -> int:
    """Return the bid that adds most of those that may come in, any of equals; −1 for none."""
    pool, weight, counter = shape.pool, shape.weight, swaps.counter
    won, against, until = swaps.won, swaps.against, swaps.until
    random = counter[RANDOM]
    most, chosen, equal = _NOTHING, -1, 0
    for at in range(len(pool)):
        bid = pool[at]
        if won[bid] == 0 and until[bid] < swap:
            adds = weight[bid] - against[bid]
            if adds > most:
                most, chosen, equal = adds, bid, 1
            elif adds == most:
                equal += 1
                random = (random * _FACTOR + _ADDED) & _BITS
                if (random >> _UPPER) % equal == 0:
                    chosen = bid
    counter[RANDOM] = random
    return chosen


def make_swaps(shape: Shape, swaps: Swaps, count: int) -> None:
    """Make so many swaps; what they change is changed in place.

    Args:
        shape: bids and rows, all of them hard (moves.py); the pool is not empty.
        swaps: an award.
        count: how many.
    """
    counter = swaps.counter
    for swap in range(counter[SWAPS] + 1, counter[SWAPS] + count + 1):
        chosen = next_in(swap, shape, swaps)
        if chosen >= 0:
            swap_in(chosen, swap, shape, swaps)
        if counter[TOTAL] > counter[REACHED]:
            counter[REACHED], counter[SINCE] = counter[TOTAL], swap
            if counter[TOTAL] > counter[BEST]:
                counter[BEST] = counter[TOTAL]
                for bid in range(len(swaps.won)):
                    swaps.best[bid] = swaps.won[bid]
        if swap - counter[SINCE] > _PATIENCE:
            go_back(swap, shape, swaps)
            counter[REACHED], counter[SINCE] = counter[TOTAL], swap
    counter[SWAPS] += count
