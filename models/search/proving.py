"""Proofs by branch and bound (proofs.py): the best award over few bids.

HiGHS says so too, in forty times the time: with some dozens of bids it mostly starts up. A
clock says only whether there is time: a packing gives the same answer, compiled or not.
"""

from functools import cache

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray, sums_before
from ..solve.decomposition import AmountFlow
from ..solve.lexicographic import NO_LIMIT_S
from ..solve.program import IntegerProgram, Rows
from ..solve.reduced_program import strengthened
from ..solve.solver import RelaxedSolver
from .compiled_search import as_lists, compiled_proofs, is_loaded, load_within
from .packing import EXACT_SUM, Packing, Worth, packing_from
from .proofs import Branch, ProofBids, prove
from .search_parameters import SearchLimits

#: Bids of which every choice is looked at: without it `response` on KTH-SP2 takes 1.5 % longer.
_FEW_BIDS = 8
#: Looks that come before prices are asked for: without them it takes 1.3 % longer.
_FEW_LOOKS = 200
#: Looks at bids that a proof takes at most: before the compiled loop is loaded, without prices,
#: with them (a tenth of a second compiled, some seconds in plain Python), and in plain Python where
#: a clock runs or sums of weights are 2^52 and more.
_FIRST_LOOKS, _UNPRICED_LOOKS, _LOOKS, _PLAIN_LOOKS = 20_000, 2_000_000, 8_000_000, 200_000
#: Entries of a branch's columns: some megabytes, and counts of jobs times weights stay in 64 bits.
_MOST_CELLS = 2_000_000
#: Bids of a whole program that branch and bound is given, and awards that turn out to be none: more
#: than 20 in one of 2 000 auctions of table A.3, where HiGHS then takes 3 s in place of 0.1.
_MOST_BIDS, _MOST_CUTS = 600, 100
#: Bids, and awards that turn out to be none, for which looks without prices come first: proofs of
#: table A.3 take a quarter longer without. Of 130 bids and more they prove four in ten, slowly.
_MOST_BARE, _BARE_CUTS = 100, 5


def best_among(
    packing: Packing,
    worth: Worth,
    award: IntArray,
    bids: IntArray,
    price: FloatArray | None = None,
    *,
    may_wait: bool = True,
) -> tuple[IntArray, bool]:
    """Return the best award found, by weights and then by preference, and whether it is proved.

    It takes up to half a second, longer where nothing is compiled and ``may_wait`` is set.

    Args:
        packing: bids and capacities.
        worth: of the bids.
        award: bids, ascending: what is returned unless something beats it.
        bids: that a better award could hold, ascending.
        price: of each row, any but better the nearer to the relaxation's, in units of
            ``worth.value``; None: 0 each.
        may_wait: the compiled loop may be loaded now, and where there is none seconds may pass.
    """
    bids = bids[packing.fit(bids, packing.capacity)]
    found, proved = _searched(packing, worth, award, bids, price, _FIRST_LOOKS)
    if proved:
        return found, True
    if may_wait:
        load_within(None)
    most = _UNPRICED_LOOKS if price is None else _LOOKS
    looks = most if may_wait or is_loaded() else _PLAIN_LOOKS
    return _searched(packing, worth, found, bids, price, looks)


def _searched(
    packing: Packing,
    worth: Worth,
    award: IntArray,
    bids: IntArray,
    price: FloatArray | None,
    looks: int,
) -> tuple[IntArray, bool]:
    """Return the best award that so many looks at bids find, and whether that is proved."""
    if not len(bids):
        return award, True
    # Beyond 64 bits Python's integers are compared, in plain Python.
    if is_large := sum(worth.weights) >= EXACT_SUM:
        looks = min(looks, _PLAIN_LOOKS)
    weight = np.array(worth.weights, object if is_large else np.int64)
    best, preference = worth.of(award)
    begins = np.flatnonzero(np.diff(packing.job[bids], prepend=-1))
    most = (np.maximum.reduceat(one[bids], begins).clip(0).sum() for one in (weight, worth.preference))
    if next(most) <= best and next(most) <= preference:
        # No award has more than the best bid of every job.
        return award, True
    unit = float(worth.value.max()) / max(float(weight.max()), 1.0) or 1.0
    price = np.zeros(len(packing.capacity)) if price is None else price
    cost = _costs(packing, bids, price)
    order = _order(packing, worth, bids, cost)
    of = _bids(packing, worth, bids[order], weight, (worth.value[bids] - cost)[order] / unit)
    branch = _first(packing, of, float((packing.capacity * price).sum()) / unit)
    if branch is None:
        return award, False
    # As bounds by prices are rounded elsewhere: more than floats can lose.
    slack = 1e-9 * (float(np.abs(of.gain).max()) + abs(float(branch.bound[0]))) + 1e-6
    compiled = compiled_proofs() if is_loaded() and not is_large else None
    if compiled is None:
        of, branch = as_lists(of), as_lists(branch)
    proved = (compiled or prove)(of, branch, best, preference, slack, looks)
    taken = np.array(branch.award, np.int64)
    if taken[-1] == 1:
        award = np.sort(bids[order[taken[:-1][taken[:-1] >= 0]]])
    return award, proved


def proved_award(
    packing: Packing,
    worth: Worth,
    award: IntArray,
    limits: SearchLimits,
    dealing: AmountFlow | None = None,
) -> tuple[IntArray, FloatArray | None] | None:
    """Return the best award by weights, then preference, proved, and its dealt amounts, if any.

    None: branch and bound does not prove it soon, or no steps are counted: that is for HiGHS alone.

    Args:
        packing: bids, of which all could win, and capacities.
        worth: of the bids.
        award: one that fits, ascending: what is returned unless something beats it.
        limits: of the search; of a clock only whether there is time.
        dealing: deals what the packing leaves out; an award to which it cannot is cut off.
    """
    everything = np.arange(len(packing))
    if limits.steps is None or not 0 < len(packing) <= _MOST_BIDS:
        return None
    program = packing.program(everything, packing.capacity)
    # Among few bids looks without prices prove most awards; prices and tighter rows take longer.
    bare_cuts = _BARE_CUTS if len(packing) <= _MOST_BARE else 0
    for is_bare, cuts in ((True, bare_cuts), (False, _MOST_CUTS)):
        if dealing is not None and not is_bare:
            program = strengthened(program, packing.job, dealing.excluding)
            packing = _packing_of(program, packing)
        for _ in range(cuts):
            if not limits.may_prove:
                return None
            if is_bare:
                bids = np.flatnonzero(packing.fits(packing.capacity))
                found, proved = _searched(packing, worth, award, bids, None, _FIRST_LOOKS)
            else:
                price, may_wait = _prices(packing, worth), limits.deadline is None
                found, proved = best_among(packing, worth, award, everything, price, may_wait=may_wait)
            if not proved:
                break
            if dealing is None:
                return found, None
            amounts = dealing.amounts(np.isin(everything, found).astype(np.float64))
            if amounts is not None:
                return found, amounts
            cut = dealing.cuts[-1]
            program = program.with_row(cut.values, -np.inf, cut.upper)
            packing = _packing_of(program, packing)
    return None


def _packing_of(program: IntegerProgram, packing: Packing) -> Packing:
    """Return the packing of a program's rows over the same bids."""
    rows = Rows.of(program)
    amount, most = rows.value.astype(np.int64), np.floor(rows.upper).astype(np.int64)
    return packing_from(packing.job, rows.column, rows.row, amount, most)


def proved_soon(packing: Packing, worth: Worth) -> IntArray | None:
    """Return the best award, by weights that sum to 2^53 at most, if a few looks prove it.

    Of the packing's bids each is another job's.
    """
    everything = np.arange(len(packing))
    bids = np.flatnonzero(packing.fits(packing.capacity))
    if len(bids) <= _FEW_BIDS:
        chosen = _choices(len(bids))
        taken = np.zeros((len(packing), len(packing.capacity)), np.int64)
        np.add.at(taken, (np.repeat(everything, np.diff(packing.indptr)), packing.row), packing.amount)
        fit = (chosen @ taken[bids] <= packing.capacity).all(axis=1)
        weight = np.where(fit, chosen @ np.array(worth.weights, np.int64)[bids], -1)
        best: IntArray = bids[chosen[weight.argmax()] > 0]
        return best
    found, proved = _searched(packing, worth, bids[:0], bids, None, _FEW_LOOKS)
    if not proved:
        found, proved = _searched(packing, worth, found, bids, _prices(packing, worth), _FIRST_LOOKS)
    return found if proved else None


@cache
def _choices(count: int) -> IntArray:
    """Return all choices among some things as zeros and ones, shape (2^count, count)."""
    return np.arange(2**count)[:, None] >> np.arange(count) & 1


def _prices(packing: Packing, worth: Worth) -> FloatArray:
    """Return the prices of a packing's rows in its program's relaxation; 0 where HiGHS gives up.

    It does where numbers are far apart. Without prices the bound is weaker, and as valid.
    """
    program = packing.program(np.arange(len(packing)), packing.capacity).maximising(worth.value)
    relaxed, jobs = RelaxedSolver(program, is_small=True), len(packing.first)
    relaxed.solve(NO_LIMIT_S)
    return np.maximum(relaxed.duals[jobs : jobs + len(packing.capacity)], 0.0)


def _order(packing: Packing, worth: Worth, bids: IntArray, cost: FloatArray) -> IntArray:
    """Return the places of bids, by what they cost at the prices, in the order of the branches."""
    job = packing.job[bids]
    least = np.full(int(job.max()) + 1, np.inf)
    np.minimum.at(least, job, cost)
    return np.lexsort((-worth.preference[bids], -worth.value[bids], job, -least[job]))


def _costs(packing: Packing, bids: IntArray, price: FloatArray) -> FloatArray:
    """Return what bids pay, each summed alone: long sums lose digits beside huge amounts."""
    if not price.any():
        return np.zeros(len(bids))
    bid, row, amount = packing.taken(bids)
    costs: FloatArray = np.bincount(bid, amount * price[row], len(bids)).astype(np.float64)
    return costs


def _bids(packing: Packing, worth: Worth, order: IntArray, weight: IntArray, gain: FloatArray) -> ProofBids:
    """Return the bids in an order, job by job."""
    _, row, amount = packing.taken(order)
    return ProofBids(
        job=packing.job[order],
        indptr=sums_before(packing.lengths(order)),
        row=row,
        amount=amount,
        weight=weight[order],
        preference=worth.preference[order],
        size=_costs(packing, order, 1.0 / np.maximum(packing.capacity, 1)),
        gain=gain,
    )


def _first(packing: Packing, bids: ProofBids, bound: float) -> Branch | None:
    """Return the branch without winners; ``bound``: all rows' cost. None: it is too large."""
    job, size = np.asarray(bids.job), np.asarray(bids.size)
    room = int(np.count_nonzero(packing.capacity))
    begins = np.flatnonzero(np.diff(job, prepend=-1, append=-1))
    small = np.sort(np.minimum.reduceat(size, begins[:-1]))
    more = int(np.searchsorted(small.cumsum(), room * (1.0 + 1e-6) + 1e-6, side="right"))
    levels, width, weights = more + 1, len(begins), np.asarray(bids.weight).dtype
    if levels * (len(job) + 6 * width) > _MOST_CELLS:
        return None
    first = np.eye(1, levels)[0]
    return Branch(
        left=packing.capacity.copy(),
        bid=np.resize(np.arange(len(job)), levels * len(job)),
        begins=np.resize(begins, levels * width),
        jobs=np.full(levels, width - 1),
        taken=np.full(levels, -1),
        award=np.full(levels, -1),
        bound=bound * first,
        room=room * first,
        most_weight=np.zeros(levels * width, weights),
        top_weight=np.zeros(levels * width, weights),
        most_preference=np.zeros(levels * width),
        most_gain=np.zeros(levels * width),
        top_preference=np.zeros(levels * width),
        job=np.zeros(levels, np.int64),
        next=np.zeros(levels, np.int64),
        more=np.full(levels, more),
        weight=np.zeros(levels, weights),
        preference=np.zeros(levels),
        small=np.zeros(levels),
    )
