"""Cliques: sets of bids of which no two can win together, as rows that tighten the linear relaxation.

A capacity's row says little where two bids each want more than half of it but not all. Bids exclude
each other through any capacity they share, and through their job; of a set of bids that all exclude
each other at most one wins.
"""

from __future__ import annotations

import numpy as np

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from .packing import Packing

#: Beyond so many bids the matrix of who excludes whom is not made (64 MB).
MOST_BIDS = 8000
#: Values below this are 0, and violations below this are none.
_NOTHING, _VIOLATED = 1e-4, 1e-3
#: Cliques looked for at once.
_MOST_CLIQUES = 200


def exclusions(packing: Packing) -> BoolArray:
    """Return which bids exclude each other, shape (bids, bids), the diagonal False."""
    excludes: BoolArray = packing.job[:, None] == packing.job[None, :]
    by_row = packing.by_row()
    for row, capacity in enumerate(packing.capacity.tolist()):
        bids, amount = by_row.of(row)
        # With the smallest of the others even the largest might fit: nothing to mark then.
        order = np.argsort(-amount, kind="stable")
        bids, amount = bids[order], amount[order]
        count = int(np.searchsorted(-(amount + amount[0]), -capacity, side="left")) if len(amount) else 0
        bids, amount = bids[:count], amount[:count]
        first, second = np.nonzero(amount[:, None] + amount[None, :] > capacity)
        excludes[bids[first], bids[second]] = True
    np.fill_diagonal(excludes, val=False)
    return excludes


def violated_cliques(excludes: BoolArray, values: FloatArray) -> list[IntArray]:
    """Return cliques whose values sum to more than 1, most violated first, each as large as can be.

    Args:
        excludes: of ``exclusions``.
        values: of a relaxed solution, shape (bids,).
    """
    support = np.flatnonzero(values > _NOTHING)
    among, mine = excludes[np.ix_(support, support)], values[support]
    found: dict[tuple[int, ...], float] = {}
    for seed in np.argsort(-mine, kind="stable").tolist():
        clique = _grown(among, mine, seed)
        total = float(mine[clique].sum())
        if total > 1 + _VIOLATED:
            found[tuple(sorted(clique))] = total
    order = sorted(found, key=lambda clique: (-found[clique], clique))[:_MOST_CLIQUES]
    return [_maximal(excludes, support[list(clique)]) for clique in order]


def _grown(among: BoolArray, values: FloatArray, seed: int) -> list[int]:
    """Grow a clique from one bid: by those that leave most value to choose from, then by the most valued."""
    clique, candidates = [seed], among[seed].copy()
    while candidates.any():
        place = np.flatnonzero(candidates)
        worth = values[place]
        if len(clique) % 2 == 0:
            worth = worth + among[np.ix_(place, place)] @ worth
        best = int(place[np.argmax(worth)])
        clique.append(best)
        candidates &= among[best]
    return clique


def _maximal(excludes: BoolArray, clique: IntArray) -> IntArray:
    """Return the clique with every bid added that excludes all of it, ascending."""
    candidates = np.flatnonzero(excludes[clique].all(axis=0))
    among = excludes[np.ix_(candidates, candidates)]
    grown, possible = clique.tolist(), np.ones(len(candidates), np.bool_)
    for place in np.argsort(-among.sum(axis=1), kind="stable").tolist():
        if possible[place]:
            grown.append(int(candidates[place]))
            possible &= among[place]
    return np.sort(np.array(grown, np.int64))
