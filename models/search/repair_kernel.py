"""Destroy and repair, as functions over columns, compiled (compiled_search.py) or plain.

For a repair some winners leave. Rounds of prices (Lagrangian, as in bounding.py) over the bids that
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
#: Shares of winners that leave, at least and at most; in how many of 1024 repairs as neighbours.
_FEWEST, _MOST, _NEAR = 0.1, 0.6, 512
#: How much worse an award may be that the next repair starts from, and in how many of 1024 repairs.
_WORSE, _OFTEN = 0.002, 102
#: Places of ``RepairState.counter``: the random number, the current award, that repairs start from,
#: the best one, the bids that still fit (below 0: no repair is under way), and repairs so far.
CURRENT, CURRENT_PREFERENCE, BEST, BEST_PREFERENCE, LIVE, REPAIRS = range(RANDOM + 1, 7)
COUNTS = 7


class RepairProblem(NamedTuple):
    """What does not change.

    Attributes:
        ends, first, end, amount: runs of rows of which a bid takes the same: those of bid ``i`` are
            ``ends[i]:ends[i + 1]``, each takes ``amount`` of the rows ``first ≤ row < end``.
        job, place: of each bid, shape (bids,): jobs ascend, places are where bids stand.
        weight, preference, value: of each bid, shape (bids,): integers that are compared, and what
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
    preference: Integers
    value: Floats
    capacity: Integers


class RepairState(NamedTuple):
    """What repairs change.

    Attributes:
        won, current, best: 1 for the winners of the repair, of the award that repairs start from,
            and of the best one met, shape (bids,).
        held: 1 for jobs that win in the repair, shape (jobs,).
        left: what is free of each row, shape (rows,).
        price: of each row in the repair, shape (rows,).
        live, share, gain, key: the bids that still fit, ascending; how often rounds chose a bid
            lately; room for their gains and keys, shape (bids,).
        chosen: room for bids that a round chooses, or winners, shape (bids,).
        local, wanted: the place of a row among those that live bids want; these, shape (rows + 1,).
        free, upto, used, move: over those rows: what is free, sums of prices before each, what is
            chosen and what moves prices, shape (rows + 1,).
        counter: at the places RANDOM to REPAIRS.
    """

    won: Integers
    current: Integers
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
def take(bid: int, bids: RepairProblem, state: RepairState) -> None:
    """Let a bid win that fits."""
    state.won[bid] = 1
    state.held[bids.job[bid]] = 1
    left = state.left
    for run in range(bids.ends[bid], bids.ends[bid + 1]):
        amount = bids.amount[run]
        for row in range(bids.first[run], bids.end[run]):
            left[row] -= amount


@kernel
def fits(bid: int, bids: RepairProblem, state: RepairState) -> bool:
    """Return whether a bid finds enough."""
    left = state.left
    for run in range(bids.ends[bid], bids.ends[bid + 1]):
        amount = bids.amount[run]
        for row in range(bids.first[run], bids.end[run]):
            if left[row] < amount:
                return False
    return True


@kernel
def leave(bids: RepairProblem, state: RepairState) -> None:  # noqa: C901 - one loop after another
    """Let the current winners win but for some, around a place or any."""
    winners, key, counter, count = state.chosen, state.key, state.counter, 0
    for bid in range(len(bids.weight)):
        state.won[bid] = 0
        if state.current[bid]:
            winners[count] = bid
            count += 1
    for job in range(len(state.held)):
        state.held[job] = 0
    for row in range(len(bids.capacity)):
        state.left[row] = bids.capacity[row]
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
        take(winners[at], bids, state)


@kernel
def begin(price: Floats, bids: RepairProblem, state: RepairState) -> None:
    """Begin a repair: some winners leave, and who fits now lives."""
    leave(bids, state)
    live = 0
    for bid in range(len(bids.weight)):
        state.share[bid] = 0.0
        if not state.held[bids.job[bid]] and fits(bid, bids, state):
            state.live[live] = bid
            live += 1
    for row in range(len(bids.capacity)):
        state.price[row] = price[row]
    state.counter[LIVE] = live


@kernel
def number_rows(bids: RepairProblem, state: RepairState) -> int:
    """Number the rows that live bids want, in their order, and return how many they are."""
    used, rows, live = state.used, len(bids.capacity), state.live
    for row in range(rows + 1):
        used[row] = 0
    for at in range(state.counter[LIVE]):
        for run in range(bids.ends[live[at]], bids.ends[live[at] + 1]):
            used[bids.first[run]] += 1
            used[bids.end[run]] -= 1
    count, wanting = 0, 0
    for row in range(rows):
        wanting += used[row]
        if wanting > 0:
            state.local[row] = count
            state.wanted[count] = row
            state.free[count] = state.left[row]
            count += 1
    return count


@kernel
def choose(bids: RepairProblem, state: RepairState) -> int:
    """Write each live bid's gain; return how many win at the prices: each job's that gains most."""
    live, chosen, upto, count = state.live, state.chosen, state.upto, 0
    job, best, most = -1, -1, 0.0
    for at in range(state.counter[LIVE]):
        bid, paid = live[at], 0.0
        for run in range(bids.ends[bid], bids.ends[bid + 1]):
            start = state.local[bids.first[run]]
            length = bids.end[run] - bids.first[run]
            paid += bids.amount[run] * (upto[start + length] - upto[start])
        gain = bids.value[bid] - paid
        state.gain[bid] = gain
        state.share[bid] *= _KEPT
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
def price_round(rows: int, bids: RepairProblem, state: RepairState) -> bool:
    """Hold one round of prices over the wanted rows; return whether any price moved."""
    price, wanted, free, upto = state.price, state.wanted, state.free, state.upto
    used, move, chosen = state.used, state.move, state.chosen
    upto[0] = 0.0
    for at in range(rows):
        upto[at + 1] = upto[at] + price[wanted[at]]
        used[at] = 0
    used[rows] = 0
    count, bound = choose(bids, state), 0.0
    for at in range(count):
        bid = chosen[at]
        bound += state.gain[bid]
        state.share[bid] += 1.0 - _KEPT
        for run in range(bids.ends[bid], bids.ends[bid + 1]):
            start = state.local[bids.first[run]]
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
def take_some(bids: RepairProblem, state: RepairState) -> None:
    """Take the live bids that were chosen most often, as they fit."""
    live, key, job, jobs = state.live, state.key, -1, 0
    for at in range(state.counter[LIVE]):
        bid = live[at]
        key[at] = state.share[bid] * (1.0 + _NOISE * (draw(state.counter) * UNIT)) + _WORTH * bids.value[bid]
        state.share[bid] *= _KEPT_ON
        if bids.job[bid] != job:
            job = bids.job[bid]
            jobs += 1
    to_take = max(1, int(_TAKEN * jobs))
    while to_take > 0:
        most = -1
        for at in range(state.counter[LIVE]):
            if key[at] >= 0.0 and (most < 0 or key[at] > key[most]) and not state.held[bids.job[live[at]]]:
                most = at
        if most < 0:
            break
        key[most] = -1.0
        if fits(live[most], bids, state):
            take(live[most], bids, state)
            to_take -= 1


@kernel
def still_fit(bids: RepairProblem, state: RepairState) -> None:
    """Let those live on that fit into what is left."""
    live, count = state.live, 0
    for at in range(state.counter[LIVE]):
        bid = live[at]
        if not state.held[bids.job[bid]] and fits(bid, bids, state):
            live[count] = bid
            count += 1
    state.counter[LIVE] = count


@kernel
def end(bids: RepairProblem, state: RepairState) -> None:
    """End a repair: remember its award if it is the best, follow it if it is not much worse."""
    counter, total, preference = state.counter, 0, 0
    for bid in range(len(bids.weight)):
        if state.won[bid]:
            total += bids.weight[bid]
            preference += bids.preference[bid]
    if total > counter[BEST] or (total == counter[BEST] and preference > counter[BEST_PREFERENCE]):
        counter[BEST], counter[BEST_PREFERENCE] = total, preference
        for bid in range(len(bids.weight)):
            state.best[bid] = state.won[bid]
    current, reached = counter[CURRENT], counter[CURRENT_PREFERENCE]
    may_lose = int(_WORSE * current) if draw(counter) % 1024 < _OFTEN else 0
    if total > current - may_lose or (total == current and preference >= reached):
        counter[CURRENT], counter[CURRENT_PREFERENCE] = total, preference
        for bid in range(len(bids.weight)):
            state.current[bid] = state.won[bid]
    counter[LIVE] = -1
    counter[REPAIRS] += 1


@kernel
def make_repairs(bids: RepairProblem, state: RepairState, price: Floats, takings: int) -> None:
    """Repair until bids were taken so many times; a repair under way goes on with the next call.

    Args:
        bids: bids and rows, at least one bid.
        state: the award that repairs start from, and a repair under way; changed in place.
        price: of each row where a repair begins, in units of value, shape (rows,).
        takings: how often bids are taken, repairs begun and ended.
    """
    for _ in range(takings):
        if state.counter[LIVE] < 0:
            begin(price, bids, state)
        elif state.counter[LIVE] == 0:
            end(bids, state)
        else:
            rows, moves = number_rows(bids, state), True
            for _ in range(_ROUNDS):
                moves = moves and price_round(rows, bids, state)
            take_some(bids, state)
            still_fit(bids, state)
