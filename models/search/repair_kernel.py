"""Dives, as functions over columns, made to be compiled (compiled_search.py) and to run without.

In a dive some winners leave. Rounds of prices (Lagrangian, as in bounding.py) over the bids that
fit into the free rest tell which win most often; a few of those are taken, the rest shrinks, and
rounds go on from the prices at hand until nothing fits. Rows that no such bid wants take no part.

Only indexing, integers and plain sums of floats, as in moves.py: the same lines run over lists in
plain Python, bit for bit alike.
"""

from typing import NamedTuple

from ...cluster.kernels.harness import kernel
from .moves import RANDOM, UNIT, Floats, Integers, draw

#: Rounds of prices before some bids are taken, how many of the jobs that still bid then win, and
#: how far the bound is thought to be above the best award, which sets the length of a round's step.
_ROUNDS, _TAKEN, _STEP = 8, 0.03, 0.1
#: How much of what rounds chose before counts after one more round, and after bids were taken.
_KEPT, _KEPT_ON = 0.85, 0.3
#: Chance multiplies the share by which bids are taken: by 1 to 1 + this; and what worth adds.
_NOISE, _WORTH = 0.3, 1e-6
#: Shares of winners that leave, at least and at most; in how many of 1024 dives as neighbours.
_FEWEST, _MOST, _NEAR = 0.1, 0.6, 512
#: How much worse an award may be that the next dive starts from, and in how many of 1024 dives.
_WORSE, _OFTEN = 0.002, 102
#: Places of ``Dive.counter``: the random number, the award that dives start from, the best one, the
#: bids that still fit (below 0: no dive is under way), and dives so far.
HAND, HAND_LIKED, BEST, BEST_LIKED, LIVE, DIVES = range(RANDOM + 1, 7)
COUNTS = 7


class DiveBids(NamedTuple):
    """What does not change.

    Attributes:
        ends, first, end, amount: runs of rows of which a bid takes the same: those of bid ``i`` are
            ``ends[i]:ends[i + 1]``, each takes ``amount`` of the rows ``first ≤ row < end``.
        job, place: of each bid, shape (bids,): jobs ascend, places are where bids stand.
        weight, liked, value: of each bid, shape (bids,): integers that are compared, and what
            prices are compared with.
        capacity: of each row, shape (rows,).
    """

    ends: Integers
    first: Integers
    end: Integers
    amount: Integers
    job: Integers
    place: Integers
    weight: Integers
    liked: Integers
    value: Floats
    capacity: Integers


class Dive(NamedTuple):
    """What dives change.

    Attributes:
        won, hand, best: 1 for the winners of the dive, of the award that dives start from, and of
            the best one met, shape (bids,).
        held: 1 for jobs that win in the dive, shape (jobs,).
        left: what is free of each row, shape (rows,).
        price: of each row in the dive, shape (rows,).
        live, share, gain, key: the bids that still fit, ascending; how often rounds chose a bid
            lately; room for their gains and keys, shape (bids,).
        chosen: room for bids that a round chooses, or winners, shape (bids,).
        local, wanted: the place of a row among those that live bids want; these, shape (rows + 1,).
        free, upto, used, move: over those rows: what is free, sums of prices before each, what is
            chosen and what moves prices, shape (rows + 1,).
        counter: at the places RANDOM to DIVES.
    """

    won: Integers
    hand: Integers
    best: Integers
    held: Integers
    left: Integers
    price: Floats
    live: Integers
    share: Floats
    gain: Floats
    key: Floats
    chosen: Integers
    local: Integers
    wanted: Integers
    free: Integers
    upto: Floats
    used: Integers
    move: Floats
    counter: Integers


@kernel
def take(bid: int, bids: DiveBids, dive: Dive) -> None:
    """Let a bid win that fits."""
    dive.won[bid] = 1
    dive.held[bids.job[bid]] = 1
    left = dive.left
    for run in range(bids.ends[bid], bids.ends[bid + 1]):
        amount = bids.amount[run]
        for row in range(bids.first[run], bids.end[run]):
            left[row] -= amount


@kernel
def fits(bid: int, bids: DiveBids, dive: Dive) -> bool:
    """Return whether a bid finds enough."""
    left = dive.left
    for run in range(bids.ends[bid], bids.ends[bid + 1]):
        amount = bids.amount[run]
        for row in range(bids.first[run], bids.end[run]):
            if left[row] < amount:
                return False
    return True


@kernel
def leave(bids: DiveBids, dive: Dive) -> None:  # noqa: C901 - one loop after another
    """Let the winners at hand win but for some, around a place or any."""
    winners, key, counter, count = dive.chosen, dive.key, dive.counter, 0
    for bid in range(len(bids.weight)):
        dive.won[bid] = 0
        if dive.hand[bid]:
            winners[count] = bid
            count += 1
    for job in range(len(dive.held)):
        dive.held[job] = 0
    for row in range(len(bids.capacity)):
        dive.left[row] = bids.capacity[row]
    leaving = int(count * (_FEWEST + (_MOST - _FEWEST) * (draw(counter) * UNIT)))
    is_near = draw(counter) % 1024 < _NEAR
    drawn = draw(counter)
    centre = bids.place[winners[drawn % count]] if count > 0 else 0
    for at in range(count):
        key[at] = draw(counter) * UNIT
        if is_near:
            key[at] += abs(bids.place[winners[at]] - centre)
    for at in range(leaving):
        least = at
        for other in range(at + 1, count):
            if key[other] < key[least]:
                least = other
        key[at], key[least] = key[least], key[at]
        winners[at], winners[least] = winners[least], winners[at]
    for at in range(leaving, count):
        take(winners[at], bids, dive)


@kernel
def begin(price: Floats, bids: DiveBids, dive: Dive) -> None:
    """Begin a dive: some winners leave, and who fits now lives."""
    leave(bids, dive)
    live = 0
    for bid in range(len(bids.weight)):
        dive.share[bid] = 0.0
        if not dive.held[bids.job[bid]] and fits(bid, bids, dive):
            dive.live[live] = bid
            live += 1
    for row in range(len(bids.capacity)):
        dive.price[row] = price[row]
    dive.counter[LIVE] = live


@kernel
def number_rows(bids: DiveBids, dive: Dive) -> int:
    """Number the rows that live bids want, in their order, and return how many they are."""
    used, rows, live = dive.used, len(bids.capacity), dive.live
    for row in range(rows + 1):
        used[row] = 0
    for at in range(dive.counter[LIVE]):
        for run in range(bids.ends[live[at]], bids.ends[live[at] + 1]):
            used[bids.first[run]] += 1
            used[bids.end[run]] -= 1
    count, wanting = 0, 0
    for row in range(rows):
        wanting += used[row]
        if wanting > 0:
            dive.local[row] = count
            dive.wanted[count] = row
            dive.free[count] = dive.left[row]
            count += 1
    return count


@kernel
def choose(bids: DiveBids, dive: Dive) -> int:
    """Write each live bid's gain; return how many win at the prices: each job's that gains most."""
    live, chosen, upto, count = dive.live, dive.chosen, dive.upto, 0
    job, best, most = -1, -1, 0.0
    for at in range(dive.counter[LIVE]):
        bid, paid = live[at], 0.0
        for run in range(bids.ends[bid], bids.ends[bid + 1]):
            start = dive.local[bids.first[run]]
            length = bids.end[run] - bids.first[run]
            paid += bids.amount[run] * (upto[start + length] - upto[start])
        gain = bids.value[bid] - paid
        dive.gain[bid] = gain
        dive.share[bid] *= _KEPT
        if bids.job[bid] != job:
            if best >= 0:
                chosen[count] = best
                count += 1
            job, best, most = bids.job[bid], -1, 0.0
        if gain > most:
            best, most = bid, gain
    if best >= 0:
        chosen[count] = best
        count += 1
    return count


@kernel
def price_round(rows: int, bids: DiveBids, dive: Dive) -> bool:
    """Hold one round of prices over the wanted rows; return whether any price moved."""
    price, wanted, free, upto = dive.price, dive.wanted, dive.free, dive.upto
    used, move, chosen = dive.used, dive.move, dive.chosen
    upto[0] = 0.0
    for at in range(rows):
        upto[at + 1] = upto[at] + price[wanted[at]]
        used[at] = 0
    used[rows] = 0
    count, bound = choose(bids, dive), 0.0
    for at in range(count):
        bid = chosen[at]
        bound += dive.gain[bid]
        dive.share[bid] += 1.0 - _KEPT
        for run in range(bids.ends[bid], bids.ends[bid + 1]):
            start = dive.local[bids.first[run]]
            used[start] += bids.amount[run]
            used[start + bids.end[run] - bids.first[run]] -= bids.amount[run]
    taken, norm = 0, 0.0
    for at in range(rows):
        taken += used[at]
        excess, now = taken - free[at], price[wanted[at]]
        bound += free[at] * now
        move[at] = 0.0 if excess < 0 and now <= 0 else excess / max(free[at], 1)
        norm += move[at] * move[at]
    if norm == 0.0:
        return False
    step = _STEP * bound / norm
    for at in range(rows):
        if move[at] != 0.0:
            price[wanted[at]] = max(0.0, price[wanted[at]] + step * move[at] / max(free[at], 1))
    return True


@kernel
def take_some(bids: DiveBids, dive: Dive) -> None:
    """Take the live bids that were chosen most often, as they fit."""
    live, key, job, jobs = dive.live, dive.key, -1, 0
    for at in range(dive.counter[LIVE]):
        bid = live[at]
        key[at] = dive.share[bid] * (1.0 + _NOISE * (draw(dive.counter) * UNIT)) + _WORTH * bids.value[bid]
        dive.share[bid] *= _KEPT_ON
        if bids.job[bid] != job:
            job = bids.job[bid]
            jobs += 1
    to_take = max(1, int(_TAKEN * jobs))
    while to_take > 0:
        most = -1
        for at in range(dive.counter[LIVE]):
            if key[at] >= 0.0 and (most < 0 or key[at] > key[most]) and not dive.held[bids.job[live[at]]]:
                most = at
        if most < 0:
            break
        key[most] = -1.0
        if fits(live[most], bids, dive):
            take(live[most], bids, dive)
            to_take -= 1


@kernel
def still_fit(bids: DiveBids, dive: Dive) -> None:
    """Let those live on that fit into what is left."""
    live, count = dive.live, 0
    for at in range(dive.counter[LIVE]):
        bid = live[at]
        if not dive.held[bids.job[bid]] and fits(bid, bids, dive):
            live[count] = bid
            count += 1
    dive.counter[LIVE] = count


@kernel
def end(bids: DiveBids, dive: Dive) -> None:
    """End a dive: remember its award if it is the best, follow it if it is not much worse."""
    counter, total, liked = dive.counter, 0, 0
    for bid in range(len(bids.weight)):
        if dive.won[bid]:
            total += bids.weight[bid]
            liked += bids.liked[bid]
    if total > counter[BEST] or (total == counter[BEST] and liked > counter[BEST_LIKED]):
        counter[BEST], counter[BEST_LIKED] = total, liked
        for bid in range(len(bids.weight)):
            dive.best[bid] = dive.won[bid]
    may_lose = int(_WORSE * counter[HAND]) if draw(counter) % 1024 < _OFTEN else 0
    is_better = total > counter[HAND] - may_lose or (total == counter[HAND] and liked >= counter[HAND_LIKED])
    if is_better:
        counter[HAND], counter[HAND_LIKED] = total, liked
        for bid in range(len(bids.weight)):
            dive.hand[bid] = dive.won[bid]
    counter[LIVE] = -1
    counter[DIVES] += 1


@kernel
def make_dives(bids: DiveBids, dive: Dive, price: Floats, takings: int) -> None:
    """Dive until bids were taken so many times; a dive under way goes on with the next call.

    Args:
        bids: bids and rows, at least one bid.
        dive: the award that dives start from, and a dive under way; changed in place.
        price: of each row where a dive begins, in units of value, shape (rows,).
        takings: how often bids are taken, dives begun and ended.
    """
    for _ in range(takings):
        if dive.counter[LIVE] < 0:
            begin(price, bids, dive)
        elif dive.counter[LIVE] == 0:
            end(bids, dive)
        else:
            rows, moves = number_rows(bids, dive), True
            for _ in range(_ROUNDS):
                moves = moves and price_round(rows, bids, dive)
            take_some(bids, dive)
            still_fit(bids, dive)
