"""Branch and bound over bids that seldom win together, compiled (compiled_search.py) or plain.

Jobs come one after another, those that pay most at the prices first; each wins with one of its
bids, or none. Below a winner only later jobs' bids that still fit are looked at: few where two bids
seldom fit together. A branch is left where the best of all jobs to come, or what prices still bound
(bounding.py's Lagrangian, job by job), cannot make an award that counts more than the best so far,
or as much and is preferred. Where every branch is left that award is proved.

Only indexing, integers and plain sums of floats, as in moves.py: the same lines run over lists in
plain Python, bit for bit alike.
"""

from typing import NamedTuple

from ...cluster.kernels.harness import kernel
from .moves import Floats, Integers

#: Sums of preferences that differ by less are equal.
_EQUAL = 1e-9


class ProofBids(NamedTuple):
    """The bids, job by job in the branches' order, each job's best first; what does not change.

    Attributes:
        job: of each bid, ascending, shape (bids,).
        indptr, row, amount: what each bid takes of which row, shape (bids + 1,), (entries,).
        weight, preference: of each bid, shape (bids,).
        size: what it takes, as shares of rows, shape (bids,).
        gain: what each counts beyond what it pays, in weights, shape (bids,).
    """

    job: Integers
    indptr: Integers
    row: Integers
    amount: Integers
    weight: Integers
    preference: Floats
    size: Floats
    gain: Floats


class Branch(NamedTuple):
    """The branch that is looked at: level ``k`` has what may win beside its ``k`` winners.

    Attributes:
        left: what is free of each row, shape (rows,).
        bid: bids that fit, a level after the other, shape (levels × bids,).
        begins: where each job's bids among them begin, and where the last end; ``most_weight``,
            ``most_preference``, ``most_gain``: what these jobs and all behind them could add at
            most; ``top_weight``, ``top_preference``: and one of them; shape (levels × (jobs + 1),).
        room: what is free, as shares of rows; ``more``: how many of a level's jobs find room
            together, at most: of the first level all of ``levels`` but one; shape (levels,).
        small: the least sizes of jobs, ascending, shape (levels,).
        jobs: how many a level has; ``job``: which of them comes next; ``next``: the bid that is
            tried next; ``taken``: the bid that wins, −1 for none; shape (levels,).
        weight, preference: of the winners before each level; ``bound``: what rows cost and these
            gain, shape (levels,).
        award: the winners of the best award that was found, then −1; its last is 1 once there is
            one, shape (levels,).
    """

    left: Integers
    bid: Integers
    begins: Integers
    most_weight: Integers
    most_preference: Floats
    most_gain: Floats
    top_weight: Integers
    top_preference: Floats
    room: Floats
    more: Integers
    small: Floats
    jobs: Integers
    job: Integers
    next: Integers
    taken: Integers
    weight: Integers
    preference: Floats
    bound: Floats
    award: Integers


@kernel
def fits(bid: int, bids: ProofBids, branch: Branch) -> bool:
    """Return whether a bid finds enough."""
    for entry in range(bids.indptr[bid], bids.indptr[bid + 1]):
        if branch.left[bids.row[entry]] < bids.amount[entry]:
            return False
    return True


@kernel
def take(bid: int, bids: ProofBids, branch: Branch, sign: int) -> None:
    """Let a bid win, or with −1 win no more; a bid below 0 is none."""
    if bid >= 0:
        for entry in range(bids.indptr[bid], bids.indptr[bid + 1]):
            branch.left[bids.row[entry]] -= sign * bids.amount[entry]


@kernel
def width_of(branch: Branch) -> int:
    """Return how many entries of ``begins`` a level has."""
    return len(branch.begins) // len(branch.jobs)


@kernel
def sum_to_come(level: int, bids: ProofBids, branch: Branch) -> None:
    """Sum up what a level's jobs could add at most, the last one first; count how many fit."""
    first = level * width_of(branch)
    last, most, kept = first + branch.jobs[level], branch.more[level], 0
    branch.most_weight[last] = branch.top_weight[last] = 0
    branch.most_preference[last] = branch.most_gain[last] = branch.top_preference[last] = 0.0
    for job in range(last - 1, first - 1, -1):
        weight, preference, gain = 0, 0.0, 0.0
        size = bids.size[branch.bid[branch.begins[job]]]
        for place in range(branch.begins[job], branch.begins[job + 1]):
            bid = branch.bid[place]
            weight = max(weight, bids.weight[bid])
            preference = max(preference, bids.preference[bid])
            gain, size = max(gain, bids.gain[bid]), min(size, bids.size[bid])
        branch.most_weight[job] = branch.most_weight[job + 1] + weight
        branch.most_preference[job] = branch.most_preference[job + 1] + preference
        branch.most_gain[job] = branch.most_gain[job + 1] + gain
        branch.top_weight[job] = max(branch.top_weight[job + 1], weight)
        branch.top_preference[job] = max(branch.top_preference[job + 1], preference)
        if kept < most or (kept > 0 and size < branch.small[kept - 1]):
            kept = min(kept + 1, most)
            place = kept - 1
            while place > 0 and branch.small[place - 1] > size:
                branch.small[place] = branch.small[place - 1]
                place -= 1
            branch.small[place] = size
    # More than floats can lose.
    room, more = branch.room[level] * (1.0 + 1e-9) + 1e-9, 0
    while more < kept and branch.small[more] <= room:
        room -= branch.small[more]
        more += 1
    branch.more[level] = more


@kernel
def begin(level: int, bid: int, bids: ProofBids, branch: Branch) -> None:
    """Count what the winners before the next level are with a bid."""
    below = level + 1
    branch.weight[below] = branch.weight[level] + bids.weight[bid]
    branch.preference[below] = branch.preference[level] + bids.preference[bid]
    branch.bound[below] = branch.bound[level] + bids.gain[bid]
    branch.room[below] = branch.room[level] - bids.size[bid]
    branch.more[below] = branch.more[level] - 1


@kernel
def enter(level: int, bid: int, bids: ProofBids, branch: Branch) -> int:
    """Let a bid of a level win; list later jobs' bids that still fit; return how many it saw."""
    take(bid, bids, branch, 1)
    branch.taken[level] = bid
    below, width = level + 1, width_of(branch)
    first = branch.begins[level * width + branch.job[level] + 1]
    last = branch.begins[level * width + branch.jobs[level]]
    at, count, before = below * len(bids.job), 0, -1
    for place in range(first, last):
        later = branch.bid[place]
        if fits(later, bids, branch):
            if bids.job[later] != before:
                before = bids.job[later]
                branch.begins[below * width + count] = at
                count += 1
            branch.bid[at] = later
            at += 1
    branch.begins[below * width + count] = at
    branch.jobs[below], branch.job[below], branch.taken[below] = count, 0, -1
    branch.next[below] = branch.begins[below * width]
    sum_to_come(below, bids, branch)
    return last - first


@kernel
def is_left(
    level: int, place: int, more: int, branch: Branch, best: int, preference: float, slack: float
) -> bool:
    """Return whether some jobs bring the winners before a level nothing better.

    Args:
        level: the level.
        place: of the first of these jobs, among all levels'.
        more: of them find room at most.
        branch: the branch.
        best: what the best award counts.
        preference: its sum of preferences.
        slack: what the bounds by prices may have lost in floats.
    """
    weight = branch.weight[level] + min(branch.most_weight[place], more * branch.top_weight[place])
    bound = branch.bound[level] + slack + branch.most_gain[place]
    if weight < best or bound < best:
        return True
    if weight > best and bound >= best + 1:
        return False
    most = min(branch.most_preference[place], more * branch.top_preference[place])
    return branch.preference[level] + most <= preference + _EQUAL


@kernel
def keep(level: int, branch: Branch) -> None:
    """Keep the winners before a level as the best award."""
    for place in range(len(branch.award) - 1):
        branch.award[place] = branch.taken[place] if place < level else -1
    branch.award[len(branch.award) - 1] = 1


@kernel
def prove(bids: ProofBids, branch: Branch, best: int, preference: float, slack: float, looks: int) -> bool:
    """Return whether all branches could be left: none beats ``branch.award`` or the award at hand.

    Args:
        bids: all of them.
        branch: the first: ``left``, ``bound[0]``, ``room[0]``, ``more``, level 0's bids are set.
        best: what the award at hand counts.
        preference: its sum of preferences.
        slack: what the bounds by prices may have lost in floats.
        looks: at bids, at most about so many.
    """
    level, looked, width = 0, 0, width_of(branch)
    sum_to_come(0, bids, branch)
    while level >= 0 and looked <= looks:
        take(branch.taken[level], bids, branch, -1)
        branch.taken[level] = -1
        job, at = branch.job[level], branch.next[level]
        if job == branch.jobs[level]:
            level -= 1
            continue
        looked += 1
        below, behind, more = level, level * width + job + 1, branch.more[level]
        if at < branch.begins[behind]:
            branch.next[level] = at + 1
            begin(level, branch.bid[at], bids, branch)
            if is_left(level + 1, behind, more - 1, branch, best, preference, slack):
                continue
            looked += enter(level, branch.bid[at], bids, branch)
            below, job = level + 1, 0
            behind, more = below * width, branch.more[below]
        else:
            # It wins with none.
            job += 1
            branch.job[level] = job
        if is_left(below, behind, more, branch, best, preference, slack):
            if below == level:
                branch.job[level] = branch.jobs[level]
        elif job == branch.jobs[below]:
            best, preference = branch.weight[below], branch.preference[below]
            keep(below, branch)
        else:
            level = below
    return looked <= looks
