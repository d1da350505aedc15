"""Proofs by branch and bound (proofs.py): is an award over few bids the best one?

HiGHS says so too, in forty times the time: beside some dozens of bids most of what it does is to begin. No
clock takes part: the same packing gives the same answer, compiled or not.
"""

from __future__ import annotations

import numpy as np

from ...bidgen.columns import FloatArray, IntArray
from .compiled import as_lists, compiled_proofs, is_loaded
from .packing import Packing
from .proofs import PROVED, Branch, Jobs, prove
from .worth import Worth

#: Looks at bids that a proof takes: a fifth of a second in plain Python.
_LOOKS = 200_000
#: Sums of weights that integers and floats hold.
_LARGEST_SUM = 1 << 52


def is_best(packing: Packing, worth: Worth, award: IntArray, bids: IntArray, price: FloatArray) -> bool:
    """Return whether branch and bound proves that nothing beats an award, by weights and then by preference.

    Args:
        packing: bids and capacities.
        worth: of the bids.
        award: bids, ascending.
        bids: that a better award could hold, ascending.
        price: of each row, any but better the nearer to the relaxation's, in units of ``worth.value``.
    """
    if not len(bids) or sum(worth.weights) >= _LARGEST_SUM:
        return False
    weight = np.array(worth.weights, np.int64)
    unit = float(worth.value.max()) / max(float(weight.max()), 1.0) or 1.0
    cost = packing.cost(price) / unit
    jobs = _jobs(packing, worth, bids, weight, cost)
    capacity = float((packing.capacity * price).sum()) / unit
    branch = _first(packing, jobs, capacity)
    best, liked = worth.of(award)
    # As bounds by prices are rounded elsewhere: more than floats can lose.
    slack = 1e-9 * (float(np.abs(jobs.gain).max()) + abs(float(branch.bound[0]))) + 1e-6
    compiled = compiled_proofs() if is_loaded() else None
    if compiled is None:
        ended = prove(as_lists(jobs), as_lists(branch), best, liked, slack, _LOOKS)
    else:
        ended = compiled(jobs, branch, best, liked, slack, _LOOKS)
    return ended == PROVED


def _jobs(packing: Packing, worth: Worth, bids: IntArray, weight: IntArray, cost: FloatArray) -> Jobs:
    """Return the bids in the order of the branches."""
    job = packing.job[bids]
    least = np.full(int(job.max()) + 1, np.inf)
    np.minimum.at(least, job, cost[bids])
    order = bids[np.lexsort((-worth.preference[bids], -weight[bids], job, -least[job]))]
    begins = np.flatnonzero(np.diff(packing.job[order], prepend=-1))
    entries = packing.entries(order)
    length = packing.indptr[order + 1] - packing.indptr[order]
    gain = weight[order] - cost[order]
    return Jobs(
        begins=np.append(begins, len(order)),
        indptr=np.concatenate([[0], np.cumsum(length)]),
        row=packing.row[entries],
        amount=packing.amount[entries],
        weight=weight[order],
        liked=worth.preference[order],
        gain=gain,
    )


def _first(packing: Packing, jobs: Jobs, capacity: float) -> Branch:
    """Return the branch in which no job is settled; ``capacity``: what all rows cost, in weights."""
    count = len(jobs.begins)
    bound = np.zeros(count)
    bound[0] = capacity
    return Branch(
        left=packing.capacity.copy(),
        next=np.zeros(count, np.int64),
        taken=np.full(count, -1),
        weight=np.zeros(count, np.int64),
        liked=np.zeros(count),
        bound=bound,
    )
