"""Bids that exclude each other: cliques of them, and those that need no search.

A capacity's row says little where two bids each want more than half of it but not all. Bids exclude
each other through any capacity they share, and through their job; of a set of bids that all exclude
each other (a clique) at most one wins, which as a row tightens the linear relaxation.

Where no two bids that share a row could both win, the packing is one of sets. Then awards are
independent sets of a graph in which bids that exclude each other are joined. What is known of those
(Lamm, Schulz, Strash, Williger, Zhang, ALENEX 2019) holds: a bid is dominated by one that excludes
no more than it does (both included) and is worth as much; a bid that excludes none wins; one whose
rivals all exclude each other (simplicial) wins where none of them does: they compare by their worth
beyond it. All is exact: the best award of the rest gives a best one of all.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ..solve.program import exclusions as excluding
from .packing import EXACT_SUM, Packing, Worth, packing_from

#: Words of 64 bids that are compared at most: about a tenth of a second.
_MOST_WORDS = 60_000_000
#: Rivals that a simplicial bid may have.
_MOST_RIVALS = 200
_BITS = 64


class _Gone(NamedTuple):
    """A bid that left, and its weight then.

    ``by`` dominates it (−1: it wins, −2: it wins where none of its ``rivals`` does).
    """

    bid: int
    by: int
    weight: int
    rivals: IntArray


_WINS, _LENDS = -1, -2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Reduction:
    """A packing of which some bids are gone.

    Attributes:
        whole: the packing with all bids.
        packing: those that are left.
        kept: which of the whole packing's bids they are, ascending, shape (bids left,).
        worth: what they count for now.
        offset: what has to be added to a sum of their weights.
        gone: the bids that left, in that order.
    """

    whole: Packing
    packing: Packing
    kept: IntArray
    worth: Worth
    offset: int
    gone: tuple[_Gone, ...]

    def lifted(self, award: IntArray) -> IntArray:
        """Return the award of the whole packing (ascending) for one of what is left."""
        wins = np.zeros(len(self.whole), np.bool_)
        wins[self.kept[award]] = True
        for one in reversed(self.gone):
            if one.by == _WINS or (one.by == _LENDS and not wins[one.rivals].any()):
                wins[one.bid] = True
        return np.flatnonzero(wins)

    def lowered(self, award: IntArray) -> IntArray:
        """Return an award of what is left that lifts to one worth as much as ``award`` at least."""
        wins = np.zeros(len(self.whole), np.bool_)
        wins[award] = True
        for one in self.gone:
            if wins[one.bid]:
                wins[one.bid] = False
                if one.by >= 0:
                    wins[one.by] = True
        return np.flatnonzero(wins[self.kept])

    def prices(self, price: FloatArray) -> FloatArray:
        """Return prices of the whole packing's rows for prices of those left, in units of weight.

        Rivals of a bid that lends its weight pay that too, on a row that most of them want; those
        that a winner outbids would have to pay what the best of them is worth.
        """
        found = np.zeros(len(self.whole.capacity))
        found[self.packing.origin] = price
        outbid: dict[int, list[_Gone]] = {}
        for one in self.gone:
            if one.by >= 0:
                outbid.setdefault(one.by, []).append(one)
            elif one.by == _LENDS:
                self._raise(found, one.bid, one.rivals, one.weight)
            elif one.bid in outbid:
                rivals = np.array([other.bid for other in outbid[one.bid]])
                self._raise(found, one.bid, rivals, max(other.weight for other in outbid[one.bid]))
        return found

    def _raise(self, price: FloatArray, bid: int, rivals: IntArray, weight: int) -> None:
        """Raise the price of a bid's row that most rivals want by so much a bid."""
        mine = self.whole.entries(np.array([bid]))
        if not len(mine):
            return
        rows = self.whole.row[mine]
        wanted = np.bincount(self.whole.row[self.whole.entries(rivals)], minlength=len(price))[rows]
        place = int(np.argmax(wanted))
        price[rows[place]] += weight / float(self.whole.amount[mine[place]])


def reduced(packing: Packing, worth: Worth) -> Reduction | None:
    """Return the rest of a packing; None: it is none of sets, too large, or nothing can go.

    Args:
        packing: bids and capacities; every bid fits alone.
        worth: of the bids; among awards of equal weight one with the most preference is wanted.
    """
    weights, preference = worth.weights, worth.preference
    if not 1 < len(packing) <= MOST_BIDS or max(weights) >= EXACT_SUM or not _is_of_sets(packing):
        return None
    reducing = _Reducing(exclusions(packing), np.array(weights, np.int64), preference)
    reducing.run()
    if not reducing.gone:
        return None
    kept = np.flatnonzero(reducing.alive)
    left = packing_from(packing.job[kept], *packing.taken(kept), packing.capacity)
    return Reduction(
        whole=packing,
        packing=left,
        kept=kept,
        worth=Worth.scaled(reducing.weight[kept].tolist(), preference[kept]),
        offset=reducing.offset,
        gone=tuple(reducing.gone),
    )


def _is_of_sets(packing: Packing) -> bool:
    """Return whether on no row two bids fit together."""
    order = np.lexsort((packing.amount, packing.row))
    row, amount = packing.row[order], packing.amount[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    ends = np.append(first[1:], len(row))
    pairs = first[ends - first > 1]
    fits_alone = bool((packing.amount <= packing.capacity[packing.row]).all())
    return fits_alone and bool((amount[pairs] + amount[pairs + 1] > packing.capacity[row[pairs]]).all())


class _Reducing:
    """The graph of bids that exclude each other, and what has left it."""

    def __init__(self, excludes: BoolArray, weight: IntArray, preference: FloatArray) -> None:
        count = len(weight)
        self.weight, self.offset = weight, 0
        self.alive: BoolArray = np.ones(count, np.bool_)
        self.gone: list[_Gone] = []
        self._preference = preference
        # What a simplicial bid lends is its weight: of two objectives it could lend but one.
        self._may_lend = not preference.any()
        self._excludes = excludes
        self._rivals = excludes.sum(axis=1)
        np.fill_diagonal(excludes, val=True)
        self._words = _packed(excludes)
        np.fill_diagonal(excludes, val=False)
        self._alive_words = _packed(self.alive[None, :])[0]
        self._left = _MOST_WORDS
        self._queue = deque(np.argsort(self._rivals, kind="stable").tolist())
        self._is_queued: BoolArray = np.ones(count, np.bool_)

    def run(self) -> None:
        """Look at each bid, and again at those around one that left, while any work remains."""
        while self._queue and self._left > 0:
            bid = self._queue.popleft()
            self._is_queued[bid] = False
            if self.alive[bid]:
                self._look(bid)

    def _look(self, bid: int) -> None:
        rivals = np.flatnonzero(self._excludes[bid] & self.alive)
        for one in self._dominated(bid, rivals).tolist():
            self._leaves(one, bid)
        rivals = rivals[self.alive[rivals]]
        if not len(rivals):
            self.offset += int(self.weight[bid])
            self._leaves(bid, _WINS)
        elif self._may_lend and len(rivals) <= _MOST_RIVALS and self._all_rivals(rivals):
            self._lends(bid, rivals)

    def _dominated(self, bid: int, rivals: IntArray) -> IntArray:
        """Return which rivals are worth no more and exclude whatever the bid excludes."""
        weight, preference = self.weight, self._preference
        no_more = (weight[rivals] < weight[bid]) | (
            (weight[rivals] == weight[bid]) & (preference[rivals] <= preference[bid])
        )
        could = rivals[no_more & (self._rivals[rivals] >= self._rivals[bid])]
        self._left -= (len(could) + 1) * self._words.shape[1]
        beyond = self._words[bid] & self._alive_words & ~self._words[could]
        dominated: IntArray = could[~beyond.any(axis=1)]
        return dominated

    def _all_rivals(self, bids: IntArray) -> bool:
        """Return whether bids all exclude each other."""
        self._left -= len(bids) * len(bids) // 8
        among = self._excludes[np.ix_(bids, bids)]
        return int(among.sum()) == len(bids) * (len(bids) - 1)

    def _lends(self, bid: int, rivals: IntArray) -> None:
        """Let a simplicial bid leave; a rival of it wins only for its worth beyond it."""
        self.offset += int(self.weight[bid])
        self.weight[rivals] -= self.weight[bid]
        self._leaves(bid, _LENDS, rivals)
        # Worth less now, they may be dominated by bids that are no rivals of the one that left.
        self._again(np.flatnonzero(self._excludes[rivals].any(axis=0) & self.alive))

    def _leaves(self, bid: int, by: int, rivals: IntArray | None = None) -> None:
        others = np.zeros(0, np.int64) if rivals is None else rivals
        self.gone.append(_Gone(bid, by, int(self.weight[bid]), others))
        self.alive[bid] = False
        self._alive_words[bid // _BITS] &= ~(np.uint64(1) << np.uint64(bid % _BITS))
        near = np.flatnonzero(self._excludes[bid] & self.alive)
        self._rivals[near] -= 1
        self._again(near)

    def _again(self, bids: IntArray) -> None:
        """Look again at bids that have fewer rivals than before."""
        for one in bids[~self._is_queued[bids]].tolist():
            self._is_queued[one] = True
            self._queue.append(one)


def _packed(flags: BoolArray) -> npt.NDArray[np.uint64]:
    """Return flags as bits, bid b in word b // 64, shape (rows, words)."""
    rows, count = flags.shape
    padded = np.zeros((rows, -(-count // _BITS) * _BITS), np.bool_)
    padded[:, :count] = flags
    packed: npt.NDArray[np.uint64] = np.packbits(padded, axis=1, bitorder="little").view("<u8")
    return packed


#: Beyond so many bids the matrix of who excludes whom is not made (64 MB).
MOST_BIDS = 8000
#: Values below this are 0, and violations below this are none.
_NOTHING, _VIOLATED = 1e-4, 1e-3
#: Cliques looked for at once.
_MOST_CLIQUES = 200


def exclusions(packing: Packing) -> BoolArray:
    """Return which bids exclude each other, shape (bids, bids), the diagonal False."""
    by_row = packing.by_row()
    excludes = excluding(by_row.indptr, by_row.bid, by_row.amount, packing.capacity, len(packing))
    excludes |= packing.job[:, None] == packing.job
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
    """Grow a clique from one bid: in turn by own value, and by the value left to choose from."""
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
