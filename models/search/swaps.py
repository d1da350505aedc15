"""Swaps, as functions over columns, made to be compiled (compiled_search.py) and to run without.

For packings of sets alone: no two bids that share a row could both win. In a swap the losing bid
that adds most (loses least) comes in, and those that it excludes leave; for some swaps they may not
return (tabu search, Glover 1989; weighted cliques: Wu, Hao, Glover 2012; auctions: Wu, Hao 2015).

After some swaps without a better award a run goes back to its best one, and two bids come in that
are more promising than others (iterated local search, Lourenço, Martin, Stützle 2003). A run that
has gone back often without a better award ends; the next begins with the winners that two of the
best ends so far have in common, or with some bids by chance (a memetic search, as Wu and Hao's).

Only indexing and comparisons, as in moves.py: the same lines run over lists in plain Python, alike.
"""

from typing import NamedTuple

from ...cluster.kernels.harness import kernel
from .moves import RANDOM, Floats, Integers, MoveProblem, draw

#: Swaps for which a bid that left may not come back: at least, and how many more by chance.
_AWAY, _LONGER = 3, 5
#: Swaps without a better award after which a run goes back, how many bids then come in, and of how
#: many drawn by chance each is the most promising.
_PATIENCE, _COME, _DRAWN = 60, 2, 10
#: How often a run goes back without a better award before it ends, ends that are kept, how many of
#: 100 runs begin with what two of them share, and with how many bids by chance the others begin.
_TIRED, KEPT, _COMMON, _BY_CHANCE = 100, 4, 70, 20
#: More than any award counts: what a bid that may not come in adds is so much less.
FAR = 1 << 59
#: Places of ``Swaps.counter``: the random number, what the award at hand counts, the best one, the
#: best since the run last went back, and the run's best; when it last met a better one or went
#: back; how often it has gone back since its best; how many bids are away; swaps so far.
TOTAL, BEST, REACHED, RUN, SINCE, IDLE, GONE, SWAPS = range(RANDOM + 1, 9)
COUNTS = 9


class Swaps(NamedTuple):
    """What swaps change; of each bid, shape (bids,), but for ``ends`` and ``counter``.

    Attributes:
        won, best, run: 1 for the winners at hand, of the best award met, and of this run's best.
        adds: what a bid adds: its weight less that of the winners whom it excludes; FAR less if it
            has won or is away, 2 FAR less if it is in no pool.
        away, until: the first ``counter[GONE]`` places: bids that may not return; up to which swap.
        ends: 1 for the winners at the best ends of runs, one after another, shape (KEPT × bids,).
        worth: what these count, 0 for none, shape (KEPT,).
        counter: at the places RANDOM to SWAPS.
    """

    won: Integers
    best: Integers
    run: Integers
    adds: Integers
    away: Integers
    until: Integers
    ends: Integers
    worth: Integers
    counter: Integers


@kernel
def swap_in(chosen: int, swap: int, shape: MoveProblem, swaps: Swaps) -> None:
    """Let a bid in that is not away, and whom it excludes leave."""
    near_at, near, weight = shape.near_at, shape.near, shape.weight
    won, adds, counter = swaps.won, swaps.adds, swaps.counter
    for at in range(near_at[chosen], near_at[chosen + 1]):
        one = near[at]
        if won[one]:
            won[one] = 0
            counter[TOTAL] -= weight[one]
            # It stays FAR below the others: it has left, and is away.
            swaps.away[counter[GONE]] = one
            swaps.until[counter[GONE]] = swap + _AWAY + draw(counter) % _LONGER
            counter[GONE] += 1
            for other in range(near_at[one], near_at[one + 1]):
                adds[near[other]] += weight[one]
    won[chosen] = 1
    adds[chosen] -= FAR
    counter[TOTAL] += weight[chosen]
    for at in range(near_at[chosen], near_at[chosen + 1]):
        adds[near[at]] -= weight[chosen]


@kernel
def come_back(swap: int, swaps: Swaps) -> None:
    """Let those come in again whose time is over."""
    away, until, counter = swaps.away, swaps.until, swaps.counter
    at = 0
    while at < counter[GONE]:
        if until[at] < swap:
            swaps.adds[away[at]] += FAR
            counter[GONE] -= 1
            away[at], until[at] = away[counter[GONE]], until[counter[GONE]]
        else:
            at += 1


@kernel
def next_in(shape: MoveProblem, swaps: Swaps) -> int:
    """Return the bid that adds most of those that may come in, any of equals; −1 for none."""
    adds, counter = swaps.adds, swaps.counter
    count = len(shape.weight)
    # Two looks: the first, at numbers only, takes a quarter of the time of one that notes bids.
    most = -4 * FAR
    for bid in range(count):
        most = max(most, adds[bid])
    if most < -(FAR >> 1):
        return -1
    chosen = draw(counter) % count
    while adds[chosen] != most:
        chosen += 1
        if chosen == count:
            chosen = 0
    return chosen


@kernel
def go_to(award: Integers, first: int, other: int, shape: MoveProblem, swaps: Swaps) -> None:
    """Go to an award, or what two have in common: flags from two places on; none stays away."""
    won, adds, counter, weight = swaps.won, swaps.adds, swaps.counter, shape.weight
    for at in range(counter[GONE]):
        adds[swaps.away[at]] += FAR
    counter[GONE] = 0
    for bid in range(len(won)):
        change = award[first + bid] * award[other + bid] - won[bid]
        if change != 0:
            won[bid] += change
            counter[TOTAL] += change * weight[bid]
            adds[bid] -= change * FAR
            for at in range(shape.near_at[bid], shape.near_at[bid + 1]):
                adds[shape.near[at]] -= change * weight[bid]


@kernel
def let_in_drawn(count: int, swap: int, shape: MoveProblem, swaps: Swaps, gain: Floats) -> None:
    """Let in some bids, each the most promising of a few drawn by chance."""
    pool, won, away, counter = shape.pool, swaps.won, swaps.away, swaps.counter
    for _ in range(count):
        chosen = -1
        for _drawn in range(_DRAWN):
            bid = pool[draw(counter) % len(pool)]
            if chosen < 0 or gain[bid] > gain[chosen]:
                chosen = bid
        if not won[chosen]:
            for at in range(counter[GONE]):
                if away[at] == chosen:
                    swaps.adds[chosen] += FAR
                    counter[GONE] -= 1
                    away[at], swaps.until[at] = away[counter[GONE]], swaps.until[counter[GONE]]
                    break
            swap_in(chosen, swap, shape, swaps)


@kernel
def keep_end(swaps: Swaps) -> None:
    """Keep a run's best award at its end, in place of the worst one kept, unless it is worse."""
    worth, counter = swaps.worth, swaps.counter
    bids, worst = len(swaps.won), 0
    for one in range(KEPT):
        # Awards that count the same are taken to be one.
        if worth[one] == counter[RUN]:
            return
        if worth[one] < worth[worst]:
            worst = one
    if worth[worst] < counter[RUN]:
        worth[worst] = counter[RUN]
        for bid in range(bids):
            swaps.ends[worst * bids + bid] = swaps.run[bid]


@kernel
def begin_run(swap: int, shape: MoveProblem, swaps: Swaps, gain: Floats) -> None:
    """Begin a run: with what two ends have in common, or with bids by chance."""
    counter, bids = swaps.counter, len(swaps.won)
    missing = 0
    for one in range(KEPT):
        if swaps.worth[one] == 0:
            missing += 1
    drawn, first, second = draw(counter), draw(counter), draw(counter)
    if missing == 0 and drawn % 100 < _COMMON:
        one, other = first % KEPT, second % KEPT
        go_to(swaps.ends, one * bids, other * bids, shape, swaps)
        let_in_drawn(_COME, swap, shape, swaps, gain)
    else:
        for bid in range(bids):
            swaps.run[bid] = 0
        go_to(swaps.run, 0, 0, shape, swaps)
        let_in_drawn(_BY_CHANCE, swap, shape, swaps, gain)
    counter[RUN], counter[IDLE] = counter[TOTAL], 0
    for bid in range(bids):
        swaps.run[bid] = swaps.won[bid]


@kernel
def note_better(swap: int, swaps: Swaps) -> None:
    """Note an award that is better than all since the run last went back."""
    won, counter = swaps.won, swaps.counter
    counter[REACHED], counter[SINCE] = counter[TOTAL], swap
    if counter[TOTAL] > counter[RUN]:
        counter[RUN], counter[IDLE] = counter[TOTAL], 0
        for bid in range(len(won)):
            swaps.run[bid] = won[bid]
        if counter[TOTAL] > counter[BEST]:
            counter[BEST] = counter[TOTAL]
            for bid in range(len(won)):
                swaps.best[bid] = won[bid]


@kernel
def make_swaps(shape: MoveProblem, swaps: Swaps, gain: Floats, count: int) -> None:
    """Make so many swaps; what they change is changed in place.

    Args:
        shape: bids and rows, all of them hard (moves.py); the pool is not empty.
        swaps: an award.
        gain: of each bid at some prices, shape (bids,): the larger the more promising.
        count: how many.
    """
    counter = swaps.counter
    for swap in range(counter[SWAPS] + 1, counter[SWAPS] + count + 1):
        come_back(swap, swaps)
        chosen = next_in(shape, swaps)
        if chosen >= 0:
            swap_in(chosen, swap, shape, swaps)
        if counter[TOTAL] > counter[REACHED]:
            note_better(swap, swaps)
        if swap - counter[SINCE] > _PATIENCE:
            counter[IDLE] += 1
            if counter[IDLE] > _TIRED:
                keep_end(swaps)
                begin_run(swap, shape, swaps, gain)
            else:
                go_to(swaps.run, 0, 0, shape, swaps)
                let_in_drawn(_COME, swap, shape, swaps, gain)
            counter[REACHED], counter[SINCE] = counter[TOTAL], swap
    counter[SWAPS] += count
