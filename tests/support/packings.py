"""Random packings, and the best award of a tiny one by trying all."""

from __future__ import annotations

from itertools import product

import numpy as np

from aucsched.cluster.resources.capacity import IntArray
from aucsched.models.search.packing import Packing, Worth
from aucsched.models.solve.program import IntegerProgram

NOTHING = np.zeros(0, np.int64)


def random_packing(seed: int, jobs: int, rows: int = 5) -> tuple[Packing, Worth]:
    """Jobs of one to three bids; some bids take nothing, some more than there is."""
    rng = np.random.default_rng(seed)
    job = np.repeat(np.arange(jobs), rng.integers(1, 4, jobs))
    taken = [np.flatnonzero(rng.random(rows) < 0.5) for _ in job]
    length = np.array([len(one) for one in taken])
    packing = Packing(
        job=job,
        first=np.flatnonzero(np.diff(job, prepend=-1)),
        indptr=np.concatenate([[0], np.cumsum(length)]),
        row=np.concatenate([NOTHING, *taken]),
        amount=rng.integers(1, 6, int(length.sum())),
        capacity=rng.integers(2, 9, rows),
        origin=np.arange(rows),
    )
    weights = rng.integers(0, 9, len(job)).tolist()
    liked = rng.integers(0, 4, len(job)) / 4
    return packing, Worth(weights=weights, value=np.array(weights, np.float64), preference=liked)


def scaled(worth: Worth) -> Worth:
    """Return what bids are worth with the values that a search goes by."""
    return Worth.scaled(list(worth.weights), worth.preference)


def best_by_force(packing: Packing, worth: Worth) -> tuple[int, float]:
    """Return the worth of the best award, by trying each bid or none of each job."""
    ends = np.append(packing.first[1:], len(packing))
    choices = [[-1, *range(first, end)] for first, end in zip(packing.first, ends, strict=True)]
    awards = (np.array([bid for bid in chosen if bid >= 0], np.int64) for chosen in product(*choices))
    return max(worth.of(award) for award in awards if (packing.use(award) <= packing.capacity).all())


def is_sound(packing: Packing, award: IntArray) -> bool:
    return len(np.unique(packing.job[award])) == len(award) and bool(
        (packing.use(award) <= packing.capacity).all()
    )


def knapsack(sizes: list[int], room: int) -> IntegerProgram:
    """Return the program of things of which the room holds some; none counts anything yet."""
    count = len(sizes)
    return IntegerProgram(
        objective=np.zeros(count),
        lower=np.zeros(count),
        upper=np.ones(count),
        is_integer=np.ones(count, np.bool_),
        row_lower=np.array([-np.inf]),
        row_upper=np.array([float(room)]),
        indptr=np.array([0, count]),
        index=np.arange(count),
        value=np.array(sizes, np.float64),
    )
