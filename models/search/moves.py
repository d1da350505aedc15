"""Exchange and complete, as functions over columns, compiled (compiled_search.py) or plain.

A move inserts a losing bid and removes the bids in its way, at times their neighbours too; then
bids that fit into the free rest are put together anew by a small branch and bound (``complete``).
Prices keep it short: what free rows could still bring bounds every completion. The move stands if
it loses nothing, or little while its cycle is warm, else it is undone. No losing bid then fits.

A row on which no two bids fit together is hard: its bids exclude each other, which ``near`` holds
once for all rows that a pair shares. On other rows bids are sorted by what they want, with a mark
where those begin that find enough: only bids between what was left and what is left change.

Why only indexing, integers and plain sums of floats: the same lines then run over lists in plain
Python, bit for bit alike. Random numbers are drand48's, which never leave 64 bits.
"""

from typing import NamedTuple, TypeAlias

from ...cluster.kernels.harness import kernel
from ...cluster.resources.capacity import FloatArray, IntArray

#: Columns: arrays where the loop is compiled, lists where it is not, which Python indexes faster.
Integers: TypeAlias = IntArray | list[int]
Floats: TypeAlias = FloatArray | list[float]

#: drand48: x ← (a·x + c) mod 2⁴⁸, of which the upper bits are used.
FACTOR, ADDED, BITS = 25_214_903_917, 11, (1 << 48) - 1
#: Upper bits that are used, and one over how many numbers they make.
UPPER, UNIT = 17, 1.0 / (1 << 31)
#: Thresholds are drawn from a table of 2¹⁰ of them.
THRESHOLDS = 1024
#: Bids of which the most promising is taken where a cycle restarts.
_DRAWN_AT_RESTART = 6
#: Draws without a bid that fits after which a restarted award is filled in order.
_PATIENCE = 60
#: In how many of 1024 moves the bid removed from a soft row is the one worth least; and in how many
#: neighbours leave too, at most so many.
_LEAST, _AROUND, _MOST_AROUND = 512, 96, 3
#: Bids that are put together anew, branches that are looked at, and bids on a branch, at most.
COMPLETED, _BRANCHES, DEPTH = 48, 80, 40
#: Awards at the ends of cycles that are kept.
KEPT = 8
#: Places of ``MoveState.counter``.
RANDOM, TOTAL, PREFERENCE, BEST, BEST_PREFERENCE, MOVE, CYCLE = range(7)
CYCLE_BEGAN, CYCLE_LENGTH, STAMP, KIND = range(7, 11)
#: From here on stands what the last cycle of each kind ended with; how many kinds there are.
REACHED, KINDS = 11, 4
COUNTS = REACHED + KINDS


class MoveProblem(NamedTuple):
    """What does not change.

    Attributes:
        indptr, row, amount: what bid ``i`` takes of which row, shape (bids + 1,), (entries,). A job
            is a row of capacity 1.
        near_at, near: bids that bid ``i`` excludes through hard rows, shape (bids + 1,), (pairs,).
        by_row, bid, wanted: soft rows row by row, the largest amount first; hard ones are empty
            there, shape (rows + 1,), (soft entries,).
        room: where the winners on each row stand in ``MoveState.holder``, shape (rows + 1,).
        weight, preference: of each bid, shape (bids,).
        pool: bids that fit on the empty machine, shape (pool,).
        own: rows that are no jobs: the first, in the order of nodes.
        threshold: −ln u at 1024 places; × ``warmth`` of each kind of cycle: what a move may lose.
        drawn: of so many bids, kind by kind, the most promising is let in.
        noise: keys are at most so much more than gains.
    """

    indptr: Integers
    row: Integers
    amount: Integers
    near_at: Integers
    near: Integers
    by_row: Integers
    bid: Integers
    wanted: Integers
    room: Integers
    weight: Integers
    preference: Integers
    pool: Integers
    own: int
    threshold: Floats
    warmth: Floats
    drawn: Integers
    noise: float


class MoveState(NamedTuple):
    """What moves change.

    Attributes:
        left: of each row, shape (rows,).
        place: by row, where in ``bid`` the first is that wants no more than is left, shape (rows,).
        held, holder: winners on each row, shape (rows,); who they are, from ``room`` on.
        short: winners that exclude a bid and soft rows on which it finds too little, shape (bids,);
            never 0 for a bid that is not in the pool.
        won, best: 1 for winners at hand, and of the best award met, shape (bids,).
        kept: the same for awards at the last cycles' ends, one by one, shape (KEPT × bids,).
        seen: the last stamp that made a bid a candidate, shape (bids,).
        candidate, key, out, into: room for a move's candidates and their keys, who left, who came,
            shape (bids,).
        marked: of rows, the last branch that counted them, shape (rows,).
        branch, ends, begins, worth, pick, found: of ``complete``: bids left to try at each depth,
            shape (DEPTH × COMPLETED,), where they end and begin, the weight so far, who was taken,
            shape (DEPTH,), and the best bids found.
        counter: at the places RANDOM to KIND, and from REACHED on.
    """

    left: Integers
    place: Integers
    held: Integers
    holder: Integers
    short: Integers
    won: Integers
    best: Integers
    kept: Integers
    seen: Integers
    candidate: Integers
    key: Floats
    out: Integers
    into: Integers
    marked: Integers
    branch: Integers
    ends: Integers
    begins: Integers
    worth: Integers
    pick: Integers
    found: Integers
    counter: Integers


@kernel
def draw(counter: Integers) -> int:
    """Return the upper bits of the next random number."""
    counter[RANDOM] = (counter[RANDOM] * FACTOR + ADDED) & BITS
    return counter[RANDOM] >> UPPER


@kernel
def insert(chosen: int, shape: MoveProblem, state: MoveState) -> None:
    """Let a bid in that fits."""
    row, amount, near = shape.row, shape.amount, shape.near
    by_row, bid, wanted = shape.by_row, shape.bid, shape.wanted
    left, place, held, short = state.left, state.place, state.held, state.short
    state.won[chosen] = 1
    for at in range(shape.near_at[chosen], shape.near_at[chosen + 1]):
        short[near[at]] += 1
    for at in range(shape.indptr[chosen], shape.indptr[chosen + 1]):
        here = row[at]
        now = left[here] - amount[at]
        left[here] = now
        state.holder[shape.room[here] + held[here]] = chosen
        held[here] += 1
        spot, last = place[here], by_row[here + 1]
        while spot < last and wanted[spot] > now:
            short[bid[spot]] += 1
            spot += 1
        place[here] = spot


@kernel
def remove_bid(chosen: int, shape: MoveProblem, state: MoveState, found: int) -> int:
    """Remove a winner; bids that fit now become candidates, behind the ``found`` ones."""
    row, amount, near = shape.row, shape.amount, shape.near
    by_row, bid, wanted = shape.by_row, shape.bid, shape.wanted
    left, place, held, holder, short = state.left, state.place, state.held, state.holder, state.short
    seen, candidate, stamp = state.seen, state.candidate, state.counter[STAMP]
    state.won[chosen] = 0
    for at in range(shape.near_at[chosen], shape.near_at[chosen + 1]):
        one = near[at]
        short[one] -= 1
        if short[one] == 0 and seen[one] != stamp:
            seen[one] = stamp
            candidate[found] = one
            found += 1
    if seen[chosen] != stamp:
        seen[chosen] = stamp
        candidate[found] = chosen
        found += 1
    for at in range(shape.indptr[chosen], shape.indptr[chosen + 1]):
        here = row[at]
        now = left[here] + amount[at]
        left[here] = now
        spot = shape.room[here]
        last = spot + held[here] - 1
        while holder[spot] != chosen:
            spot += 1
        holder[spot] = holder[last]
        held[here] -= 1
        begin, spot = by_row[here], place[here]
        while spot > begin and wanted[spot - 1] <= now:
            spot -= 1
            one = bid[spot]
            short[one] -= 1
            if short[one] == 0 and seen[one] != stamp:
                seen[one] = stamp
                candidate[found] = one
                found += 1
        place[here] = spot
    return found


@kernel
def complete(count: int, least: int, price: Floats, shape: MoveProblem, state: MoveState) -> int:  # noqa: C901, PLR0912 - one loop, no recursion
    """Return how many of the first candidates together are worth most and more than ``least``.

    They stand in ``MoveState.found``; −1 where none are worth so much, as far as _BRANCHES branches
    tell. What rows that candidates could still take are worth at their prices bounds what a branch
    can add: no bid is worth more than what it pays.
    """
    indptr, row, amount, left = shape.indptr, shape.row, shape.amount, state.left
    branch, ends, begins, worth, pick = state.branch, state.ends, state.begins, state.worth, state.pick
    marked, counter = state.marked, state.counter
    for at in range(count):
        branch[at] = state.candidate[at]
    begins[0], ends[0], worth[0] = 0, count, 0
    most, size, depth = least, -1, 0
    for _ in range(_BRANCHES):
        counter[STAMP] += 1
        stamp = counter[STAMP]
        base = depth * COMPLETED
        kept, could = begins[depth], 0.0
        for at in range(begins[depth], ends[depth]):
            one = branch[base + at]
            fits = True
            for entry in range(indptr[one], indptr[one + 1]):
                if left[row[entry]] < amount[entry]:
                    fits = False
                    break
            if fits:
                branch[base + kept] = one
                kept += 1
                for entry in range(indptr[one], indptr[one + 1]):
                    here = row[entry]
                    if marked[here] != stamp:
                        marked[here] = stamp
                        could += price[here] * left[here]
        ends[depth] = kept
        if begins[depth] >= kept or worth[depth] + could <= most or depth == DEPTH - 1:
            depth -= 1
            if depth < 0:
                break
            one = pick[depth]
            for entry in range(indptr[one], indptr[one + 1]):
                left[row[entry]] += amount[entry]
            continue
        one = branch[base + begins[depth]]
        begins[depth] += 1
        for entry in range(indptr[one], indptr[one + 1]):
            left[row[entry]] -= amount[entry]
        pick[depth] = one
        now = worth[depth] + shape.weight[one]
        if now > most:
            most, size = now, depth + 1
            for at in range(size):
                state.found[at] = pick[at]
        for at in range(begins[depth], kept):
            branch[base + COMPLETED + at - begins[depth]] = branch[base + at]
        ends[depth + 1], begins[depth + 1], worth[depth + 1] = kept - begins[depth], 0, now
        depth += 1
    while depth > 0:
        depth -= 1
        one = pick[depth]
        for entry in range(indptr[one], indptr[one + 1]):
            left[row[entry]] += amount[entry]
    return size


@kernel
def restart(gain: Floats, shape: MoveProblem, state: MoveState) -> None:  # noqa: C901 - loops
    """Remove all winners and fill the empty machine, the promising first."""
    pool, short, won, counter = shape.pool, state.short, state.won, state.counter
    counter[STAMP] += 1
    for one in range(len(won)):
        if won[one]:
            remove_bid(one, shape, state, 0)
            counter[STAMP] += 1
    in_pool, missed = len(pool), 0
    while missed < _PATIENCE:
        chosen = -1
        for _ in range(_DRAWN_AT_RESTART):
            one = pool[draw(counter) % in_pool]
            if short[one] == 0 and not won[one] and (chosen < 0 or gain[one] > gain[chosen]):
                chosen = one
        if chosen < 0:
            missed += 1
        else:
            missed = 0
            insert(chosen, shape, state)
    for at in range(in_pool):
        if short[pool[at]] == 0 and not won[pool[at]]:
            insert(pool[at], shape, state)
    total, preference = 0, 0
    for one in range(len(won)):
        if won[one]:
            total += shape.weight[one]
            preference += shape.preference[one]
    counter[TOTAL], counter[PREFERENCE] = total, preference


@kernel
def keep_best(shape: MoveProblem, state: MoveState) -> None:
    """Remember the award at hand where it is the best one met."""
    counter, won, best = state.counter, state.won, state.best
    total, preference = counter[TOTAL], counter[PREFERENCE]
    if total > counter[BEST] or (total == counter[BEST] and preference > counter[BEST_PREFERENCE]):
        counter[BEST], counter[BEST_PREFERENCE] = total, preference
        for one in range(len(shape.weight)):
            best[one] = won[one]


@kernel
def next_cycle(move: int, gain: Floats, shape: MoveProblem, state: MoveState) -> None:
    """Keep the award at hand, and begin the next cycle."""
    counter, bids = state.counter, len(state.won)
    slot = counter[CYCLE] % KEPT * bids
    for one in range(bids):
        state.kept[slot + one] = state.won[one]
    counter[REACHED + counter[KIND]] = counter[TOTAL]
    counter[CYCLE_BEGAN] = move
    counter[CYCLE] += 1
    kind = counter[CYCLE] % KINDS
    if kind == 0:
        counter[CYCLE_LENGTH] *= 2
    # Once each has been tried, every second cycle is of the kind that ended best.
    if counter[CYCLE] > KINDS and counter[CYCLE] % 2 == 0:
        for other in range(KINDS):
            if counter[REACHED + other] > counter[REACHED + kind]:
                kind = other
    counter[KIND] = kind
    restart(gain, shape, state)
    keep_best(shape, state)


@kernel
def make_moves(shape: MoveProblem, state: MoveState, gain: Floats, price: Floats, moves: int) -> None:  # noqa: C901, PLR0912, PLR0915 - a move from its first to its last step
    """Make so many moves; the state is changed in place.

    Args:
        shape: bids and rows; the pool is not empty.
        state: an award beside which nothing fits.
        gain: what a bid is worth beyond its payment at the prices, never above 0, shape (bids,).
        price: of a unit of each row, in units of weight, shape (rows,).
        moves: how many.
    """
    indptr, row, amount = shape.indptr, shape.row, shape.amount
    weight, preference = shape.weight, shape.preference
    left, held, holder, short, won = state.left, state.held, state.holder, state.short, state.won
    candidate, key, out, into, counter = state.candidate, state.key, state.out, state.into, state.counter
    pool, in_pool, own = shape.pool, len(shape.pool), shape.own
    for move in range(counter[MOVE] + 1, counter[MOVE] + moves + 1):
        if move - counter[CYCLE_BEGAN] > counter[CYCLE_LENGTH]:
            next_cycle(move, gain, shape, state)
        share = 1.0 - (move - counter[CYCLE_BEGAN]) / counter[CYCLE_LENGTH]
        kind = counter[KIND]
        warm = shape.warmth[kind] * share
        # The most promising of some losers.
        admitted = -1
        for _ in range(shape.drawn[kind]):
            one = pool[draw(counter) % in_pool]
            if not won[one] and (admitted < 0 or gain[one] > gain[admitted]):
                admitted = one
        if admitted < 0:
            continue
        takes_least = draw(counter) % 1024 < _LEAST
        drawn, around = draw(counter), 0
        if drawn % 1024 < _AROUND:
            around = 1 + drawn // 1024 % _MOST_AROUND
        counter[STAMP] += 1
        found, left_out, came = 0, 0, 0
        lost, lost_preference = -weight[admitted], -preference[admitted]
        # Room for it.
        for entry in range(indptr[admitted], indptr[admitted + 1]):
            here = row[entry]
            while left[here] < amount[entry]:
                begin, holders = shape.room[here], held[here]
                chosen = holder[begin]
                if holders > 1:
                    chosen = holder[begin + draw(counter) % holders]
                    if takes_least:
                        for at in range(begin, begin + holders):
                            if weight[holder[at]] < weight[chosen]:
                                chosen = holder[at]
                found = remove_bid(chosen, shape, state, found)
                out[left_out] = chosen
                left_out += 1
                lost += weight[chosen]
                lost_preference += preference[chosen]
        insert(admitted, shape, state)
        if around > 0 and own > 0 and indptr[admitted + 1] > indptr[admitted]:
            # Winners on rows left and right of one of its own in turn, ever farther.
            entries = indptr[admitted + 1] - indptr[admitted]
            centre, near = row[indptr[admitted] + draw(counter) % entries], 0
            while around > 0 and near < 2 * own and centre < own:
                here = centre + (near + 1) // 2 * (1 - 2 * (near % 2))
                near += 1
                if 0 <= here < own and held[here] > 0:
                    chosen = holder[shape.room[here]]
                    if chosen != admitted:
                        found = remove_bid(chosen, shape, state, found)
                        out[left_out] = chosen
                        left_out += 1
                        lost += weight[chosen]
                        lost_preference += preference[chosen]
                        around -= 1
        # Candidates that fit beside it, the most promising first.
        kept = 0
        for at in range(found):
            one = candidate[at]
            if short[one] == 0 and not won[one]:
                candidate[kept] = one
                key[kept] = gain[one] + shape.noise * (draw(counter) * UNIT)
                kept += 1
        found = kept
        first = min(found, COMPLETED)
        for at in range(first):
            most = at
            for other in range(at + 1, found):
                if key[other] > key[most]:
                    most = other
            candidate[at], candidate[most] = candidate[most], candidate[at]
            key[at], key[most] = key[most], key[at]
        may_lose = int(warm * shape.threshold[draw(counter) % THRESHOLDS])
        least = lost - may_lose - 1
        size = complete(first, least, price, shape, state)
        if size < 0 and least < 0:
            size = 0
        if size >= 0:
            for at in range(size):
                into[came] = state.found[at]
                came += 1
                insert(state.found[at], shape, state)
            for at in range(found):
                if short[candidate[at]] == 0 and not won[candidate[at]]:
                    into[came] = candidate[at]
                    came += 1
                    insert(candidate[at], shape, state)
            for at in range(came):
                lost -= weight[into[at]]
                lost_preference -= preference[into[at]]
        if size >= 0 and (lost != 0 or lost_preference <= 0 or may_lose > 0):
            counter[TOTAL] -= lost
            counter[PREFERENCE] -= lost_preference
            keep_best(shape, state)
            continue
        for at in range(came):
            remove_bid(into[at], shape, state, 0)
        counter[STAMP] += 1
        remove_bid(admitted, shape, state, 0)
        for at in range(left_out):
            insert(out[at], shape, state)
    counter[MOVE] += moves
