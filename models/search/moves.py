"""Ruin and recreate as one loop over plain arrays, made to be compiled (compiled.py) and to run without that.

A move lets a losing bid in and takes out who stands in its way, or takes out winners around a place; then it
adds what fits, the most promising first. It stands when it loses nothing, or little while the cycle is warm;
otherwise it is taken back. After each move no bid fits beside the award.

Why one long function: a bid changes sides for four reasons (room is made, a bid let in, room filled, a move
taken back), and all of them stand at one place this way, in one loop that stays in registers; parted into
small functions an earlier version lost most of its speed. Why only indexing, integers and plain sums of
floats: the same lines then run over lists in plain Python, bit for bit alike. Random numbers are drand48's,
which never leave 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ...bidgen.columns import FloatArray, IntArray

#: Columns: arrays where the loop is compiled, lists where it is not, which Python indexes faster.
Integers: TypeAlias = IntArray | list[int]
Floats: TypeAlias = FloatArray | list[float]

#: drand48: x ← (a·x + c) mod 2⁴⁸, of which the upper bits are used.
_FACTOR, _ADDED, _BITS = 25_214_903_917, 11, (1 << 48) - 1
#: Upper bits that are used, and one over how many numbers they make.
_UPPER, _UNIT = 17, 1.0 / (1 << 31)
#: What a shuffled key is at most more than the key, as a share.
_NOISE = 0.4
#: Thresholds are drawn from a table of 2¹⁰ of them.
THRESHOLDS = 1024
#: In how many of 1024 moves who was taken out comes back only where nobody else fits; who leaves is drawn,
#: not the least worth.
_BARRED, _DRAWN = 900, 512
#: In how many of 1024 moves winners around a place are taken out instead; at least and at most so many.
_AROUND, _FEWEST, _MOST = 150, 2, 8
#: Places of ``State.counter``.
RANDOM, TOTAL, LIKED, BEST, BEST_LIKED, MOVE, CYCLE, CYCLE_BEGAN, CYCLE_LENGTH, COUNTS = range(10)
#: Phases of a move.
_MAKE_ROOM, _FILL, _TAKE_BACK = range(3)


class Shape(NamedTuple):
    """What does not change.

    Attributes:
        indptr, row, amount: what bid ``i`` takes of which row, shape (bids + 1,), (entries,). A job is
            a row of capacity 1.
        by_row, bid, wanted: the same row by row, the largest amount first, shape (rows + 1,), (entries,).
        weight, liked: of each bid, shape (bids,).
        pool: bids that fit on the empty machine, shape (pool,).
        own: rows that are no jobs: the first, in the order of nodes.
        threshold: −ln u at 1024 places, ``warmth`` of each cycle in turn, what a move may lose times that.
    """

    indptr: Integers
    row: Integers
    amount: Integers
    by_row: Integers
    bid: Integers
    wanted: Integers
    weight: Integers
    liked: Integers
    pool: Integers
    own: int
    threshold: Floats
    warmth: Floats


class State(NamedTuple):
    """What moves change.

    Attributes:
        left: of each row, shape (rows,).
        place: of each row, where in ``bid`` the first stands that wants no more than is left, shape (rows,).
        held, holder: winners on each row, shape (rows,); who they are, from ``by_row`` on, shape (entries,).
        short: rows on which a bid finds too little, shape (bids,).
        won, best: 1 for winners at hand, and of the best award met, shape (bids,).
        seen: the last move that made a bid a candidate, shape (bids,).
        candidate, key, out, into: room for a move's candidates and their keys, who left, who came, shape
            (bids,).
        counter: at the places RANDOM to CYCLE_LENGTH.
    """

    left: Integers
    place: Integers
    held: Integers
    holder: Integers
    short: Integers
    won: Integers
    best: Integers
    seen: Integers
    candidate: Integers
    key: Floats
    out: Integers
    into: Integers
    counter: Integers


def make_moves(shape: Shape, state: State, promise: Floats, moves: int) -> None:  # noqa: C901, PLR0912, PLR0915 - see the module
    """Make so many moves; the state is changed in place.

    Args:
        shape: bids and rows; the pool is not empty.
        state: an award beside which nothing fits.
        promise: keys of each bid by which room is filled, not negative, all bids' first key first, shape
            (keys × bids,). Bids are let in by the first key.
        moves: how many.
    """
    indptr, row, amount, by_row, bid, wanted, weight, liked, pool, own, threshold, warmth = shape
    left, place, held, holder, short, won, best, seen, candidate, key, out, into, counter = state
    random, total, total_liked = counter[RANDOM], counter[TOTAL], counter[LIKED]
    bids, in_pool, keys, cycles = len(won), len(pool), len(promise) // len(won), len(warmth)
    for move in range(counter[MOVE] + 1, counter[MOVE] + moves + 1):
        if move - counter[CYCLE_BEGAN] > counter[CYCLE_LENGTH]:
            counter[CYCLE_BEGAN] = move
            counter[CYCLE] += 1
            if counter[CYCLE] % cycles == 0:
                counter[CYCLE_LENGTH] *= 2
        cycle = counter[CYCLE] % cycles
        warm = warmth[cycle] * (1.0 - (move - counter[CYCLE_BEGAN]) / counter[CYCLE_LENGTH])
        random = (random * _FACTOR + _ADDED) & _BITS
        is_barred = (random >> _UPPER) % 1024 < _BARRED
        random = (random * _FACTOR + _ADDED) & _BITS
        is_drawn = (random >> _UPPER) % 1024 < _DRAWN
        random = (random * _FACTOR + _ADDED) & _BITS
        first_key = ((random >> _UPPER) % keys) * bids
        random = (random * _FACTOR + _ADDED) & _BITS
        is_around = (random >> _UPPER) % 1024 < _AROUND and own > 0
        random = (random * _FACTOR + _ADDED) & _BITS
        admitted, entry, end, centre, near, leave = -1, 0, 0, 0, 0, 0
        if is_around:
            centre = (random >> _UPPER) % own
            random = (random * _FACTOR + _ADDED) & _BITS
            leave = _FEWEST + (random >> _UPPER) % (_MOST - _FEWEST + 1)
        else:
            # The more promising of two bids, or the one of them that has not won.
            admitted = pool[(random >> _UPPER) % in_pool]
            random = (random * _FACTOR + _ADDED) & _BITS
            other = pool[(random >> _UPPER) % in_pool]
            if won[admitted] or (not won[other] and promise[other] > promise[admitted]):
                admitted = other
            if won[admitted]:
                continue
            entry, end = indptr[admitted], indptr[admitted + 1]
        left_out, came, found, undone = 0, 0, 0, 0
        lost, lost_liked = 0, 0
        phase = _MAKE_ROOM
        while True:
            # Who leaves or comes next.
            chosen, sign = -1, -1
            if phase == _MAKE_ROOM:
                while entry < end and left[row[entry]] >= amount[entry]:
                    entry += 1
                if entry < end:
                    begin, holders = by_row[row[entry]], held[row[entry]]
                    random = (random * _FACTOR + _ADDED) & _BITS
                    chosen, sign = holder[begin + (random >> _UPPER) % holders], 1
                    if not is_drawn:
                        for at in range(begin, begin + holders):
                            if weight[holder[at]] < weight[chosen]:
                                chosen = holder[at]
                elif is_around:
                    # Rows left and right of the centre in turn, ever farther.
                    while leave > 0 and near < 2 * own:
                        here = centre + (near + 1) // 2 * (1 - 2 * (near % 2))
                        if 0 <= here < own and held[here] > 0:
                            chosen, sign = holder[by_row[here]], 1
                            break
                        near += 1
                    leave -= 1
                    if chosen < 0:
                        phase = _FILL
                        continue
                else:
                    chosen, phase = admitted, _FILL
            elif phase == _FILL:
                kept, most = 0, -1.0
                for at in range(found):
                    one = candidate[at]
                    if short[one] == 0 and not won[one]:
                        candidate[kept], key[kept] = one, key[at]
                        if key[at] > most:
                            chosen, most = one, key[at]
                        kept += 1
                found = kept
                if chosen < 0 and is_barred:
                    # Who left may come back into what nobody else could use.
                    is_barred = False
                    for at in range(left_out):
                        candidate[found], key[found] = out[at], promise[first_key + out[at]]
                        found += 1
                    continue
                if chosen < 0:
                    random = (random * _FACTOR + _ADDED) & _BITS
                    stands = lost < 0
                    if lost == 0:
                        stands = lost_liked <= 0
                    elif lost > 0:
                        stands = lost <= warm * threshold[(random >> _UPPER) % THRESHOLDS]
                    if stands:
                        total -= lost
                        total_liked -= lost_liked
                        if total > counter[BEST] or (
                            total == counter[BEST] and total_liked > counter[BEST_LIKED]
                        ):
                            counter[BEST], counter[BEST_LIKED] = total, total_liked
                            for one in range(bids):
                                best[one] = won[one]
                        break
                    phase = _TAKE_BACK
            if phase == _TAKE_BACK:
                if undone < came:
                    chosen, sign = into[undone], 1
                elif undone < came + left_out:
                    chosen = out[undone - came]
                else:
                    break
                undone += 1
            elif sign > 0:
                out[left_out] = chosen
                left_out += 1
                lost += weight[chosen]
                lost_liked += liked[chosen]
            else:
                into[came] = chosen
                came += 1
                lost -= weight[chosen]
                lost_liked -= liked[chosen]
            # It does so; on each of its rows, only bids between what was left and what is left now change.
            if sign < 0:
                won[chosen] = 1
                for at in range(indptr[chosen], indptr[chosen + 1]):
                    here = row[at]
                    now = left[here] - amount[at]
                    left[here] = now
                    holder[by_row[here] + held[here]] = chosen
                    held[here] += 1
                    spot, last = place[here], by_row[here + 1]
                    while spot < last and wanted[spot] > now:
                        short[bid[spot]] += 1
                        spot += 1
                    place[here] = spot
            else:
                won[chosen] = 0
                if is_barred and phase == _MAKE_ROOM:
                    seen[chosen] = move
                for at in range(indptr[chosen], indptr[chosen + 1]):
                    here = row[at]
                    now = left[here] + amount[at]
                    left[here] = now
                    begin = by_row[here]
                    spot = begin
                    while holder[spot] != chosen:
                        spot += 1
                    held[here] -= 1
                    holder[spot] = holder[begin + held[here]]
                    spot = place[here]
                    while spot > begin and wanted[spot - 1] <= now:
                        spot -= 1
                        one = bid[spot]
                        short[one] -= 1
                        if short[one] == 0 and seen[one] != move and phase == _MAKE_ROOM:
                            seen[one] = move
                            random = (random * _FACTOR + _ADDED) & _BITS
                            noise = 1.0 + _NOISE * ((random >> _UPPER) * _UNIT)
                            candidate[found], key[found] = one, promise[first_key + one] * noise
                            found += 1
                    place[here] = spot
    counter[RANDOM], counter[TOTAL], counter[LIKED] = random, total, total_liked
    counter[MOVE] += moves
