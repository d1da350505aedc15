"""Branch and bound over few bids, as functions, compiled (compiled_search.py) or run as they are.

Jobs come one after another, those first that pay most at the prices; each wins with one of its bids that
still fit, or with none. A branch is left where not even the best bids that still fit of all jobs to come, or
what the prices still bound (the Lagrangian of prices.py, job by job), make an award that counts more than the
best one so far, or as much and is liked more. Where every branch is left that award is proved.

Only indexing, integers and plain sums of floats, as in moves.py: the same lines run over lists in
plain Python, bit for bit alike.
"""

from typing import NamedTuple

from ...cluster.kernels.harness import kernel
from .moves import Floats, Integers

#: Sums of preferences that differ by less are equal.
_EQUAL = 1e-9


class ProofBids(NamedTuple):
    """The bids, job by job in the order of the branches, each job's best first; what does not change.

    Attributes:
        begins: bids of job ``k`` are ``begins[k]:begins[k + 1]``, shape (jobs + 1,).
        indptr, row, amount: what each bid takes of which row, shape (bids + 1,), (entries,).
        weight, liked: of each bid, shape (bids,).
        gain: what each counts beyond what it pays, in weights; ``joy``: how much it is liked beyond what it
            pays at the prices of preferences, shape (bids,).
    """

    begins: Integers
    indptr: Integers
    row: Integers
    amount: Integers
    weight: Integers
    liked: Floats
    gain: Floats
    joy: Floats


class Branch(NamedTuple):
    """The branch that is looked at.

    Attributes:
        left: what is free of each row, shape (rows,).
        next: the bid to be tried next of each job, shape (jobs + 1,).
        taken: the bid with which each wins, −1 for none, shape (jobs + 1,).
        award: the same of the best award that was found, shape (jobs + 1,); its last is 1 once there is one.
        weight, liked: of the jobs before each; ``bound``, ``joy``: what rows cost and these gain, by either
            prices, shape (jobs + 1,).
    """

    left: Integers
    next: Integers
    taken: Integers
    award: Integers
    weight: Integers
    liked: Floats
    bound: Floats
    joy: Floats


@kernel
def fits(bid: int, jobs: ProofBids, branch: Branch) -> bool:
    """Return whether a bid finds enough."""
    for entry in range(jobs.indptr[bid], jobs.indptr[bid + 1]):
        if branch.left[jobs.row[entry]] < jobs.amount[entry]:
            return False
    return True


@kernel
def take(bid: int, jobs: ProofBids, branch: Branch, sign: int) -> None:
    """Let a bid win, or with −1 win no more; a bid below 0 is none."""
    if bid >= 0:
        for entry in range(jobs.indptr[bid], jobs.indptr[bid + 1]):
            branch.left[jobs.row[entry]] -= sign * jobs.amount[entry]


@kernel
def enter(job: int, bid: int, jobs: ProofBids, branch: Branch) -> None:
    """Settle a job: it wins with a bid, or with none (−1)."""
    branch.taken[job] = bid
    branch.weight[job + 1] = branch.weight[job]
    branch.liked[job + 1] = branch.liked[job]
    branch.bound[job + 1] = branch.bound[job]
    branch.joy[job + 1] = branch.joy[job]
    if bid >= 0:
        branch.weight[job + 1] += jobs.weight[bid]
        branch.liked[job + 1] += jobs.liked[bid]
        branch.bound[job + 1] += jobs.gain[bid]
        branch.joy[job + 1] += jobs.joy[bid]
    take(bid, jobs, branch, 1)


@kernel
def is_left(job: int, jobs: ProofBids, branch: Branch, best: int, best_liked: float, slack: float) -> bool:
    """Return whether nothing better can come once the jobs before one are settled; ``slack``: of floats."""
    weight, liked = branch.weight[job], branch.liked[job]
    bound, joy = branch.bound[job] + slack, branch.joy[job]
    for later in range(job, len(jobs.begins) - 1):
        most_weight, most_liked, most_gain, most_joy = 0, 0.0, 0.0, 0.0
        for bid in range(jobs.begins[later], jobs.begins[later + 1]):
            if fits(bid, jobs, branch):
                most_weight = max(most_weight, jobs.weight[bid])
                most_liked = max(most_liked, jobs.liked[bid])
                most_gain = max(most_gain, jobs.gain[bid])
                most_joy = max(most_joy, jobs.joy[bid])
        weight += most_weight
        liked += most_liked
        bound += most_gain
        joy += most_joy
    if weight < best or bound < best:
        return True
    if weight > best and bound >= best + 1:
        return False
    return min(liked, joy) <= best_liked + _EQUAL


@kernel
def prove(jobs: ProofBids, branch: Branch, best: int, best_liked: float, slack: float, looks: int) -> bool:
    """Return whether every branch could be left: then no award beats ``branch.award``, or the one at hand.

    Args:
        jobs: the bids.
        branch: the first: ``left``, ``bound[0]`` and ``joy[0]`` are set.
        best: what the award at hand counts.
        best_liked: how much it is liked.
        slack: what the bounds by prices may have lost in floats.
        looks: at bids, at most about so many.
    """
    count, job, looked = len(jobs.begins) - 1, 0, 0
    branch.next[0], branch.taken[0] = 0, -1
    while job >= 0:
        take(branch.taken[job], jobs, branch, -1)
        branch.taken[job] = -1
        bid, end = branch.next[job], jobs.begins[job + 1]
        looked += 1
        if looked > looks:
            return False
        if bid > end:
            job -= 1
            continue
        branch.next[job] = bid + 1
        if bid < end and not fits(bid, jobs, branch):
            continue
        enter(job, bid if bid < end else -1, jobs, branch)
        looked += jobs.begins[count] - end
        if is_left(job + 1, jobs, branch, best, best_liked, slack):
            continue
        if job == count - 1:
            best, best_liked = branch.weight[count], branch.liked[count]
            branch.award[count] = 1
            for settled in range(count):
                branch.award[settled] = branch.taken[settled]
            continue
        job += 1
        branch.next[job], branch.taken[job] = jobs.begins[job], -1
    return True
