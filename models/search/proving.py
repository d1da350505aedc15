"""Proofs by branch and bound (proofs.py): the best award over few bids.

HiGHS says so too, in forty times the time: beside some dozens of bids most of what it does is to
begin. No clock takes part: the same packing gives the same answer, compiled or not.
"""

import numpy as np

from ...cluster.resources.capacity import FloatArray, IntArray, sums_before
from ..solve.decomposition import AmountFlow
from ..solve.lexicographic import NO_LIMIT_S
from ..solve.program import IntegerProgram, Rows
from ..solve.reduced_program import strengthened
from ..solve.solver import RelaxedSolver
from .compiled_search import as_lists, compiled_proofs, is_loaded, load_within
from .packing import SCALE, Packing, Worth, packing_from
from .proofs import Branch, ProofBids, prove

#: Looks at bids that a proof takes: about a second in plain Python.
_LOOKS = 2_000_000
#: Bids of a whole program that branch and bound is given, and awards that turn out to be none: 3
#: at most in 800 auctions of table A.3.
_MOST_BIDS, _MOST_CUTS = 600, 20
#: Sums of weights that integers and floats hold.
_LARGEST_SUM = 1 << 52


def best_among(
    packing: Packing, worth: Worth, award: IntArray, bids: IntArray, price: FloatArray, share: int = 1
) -> tuple[IntArray, bool]:
    """Return the best award by weights and then by preference, and whether that is proved.

    Args:
        packing: bids and capacities.
        worth: of the bids.
        award: bids, ascending: what is returned unless something beats it.
        bids: that a better award could hold, ascending.
        price: of each row, any but better the nearer to the relaxation's, in units of ``worth.value``.
        share: of the looks at bids that a proof may take, 1 / ``share``.
    """
    if not len(bids):
        return award, False
    is_large = _is_large(worth)
    weight = np.array(worth.weights, object if is_large else np.int64)
    unit = float(worth.value.max()) / max(float(weight.max()), 1.0) or 1.0
    joy, most_joy = _joys(packing, worth, award)
    cost = packing.cost(price)
    order = _order(packing, worth, bids, cost[bids])
    jobs = _jobs(packing, worth, order, weight, worth.value / unit - cost / unit, joy)
    branch = _first(packing, jobs, float((packing.capacity * price).sum()) / unit, most_joy)
    best, liked = worth.of(award)
    # As bounds by prices are rounded elsewhere: more than floats can lose.
    slack = 1e-9 * (float(np.abs(jobs.gain).max()) + abs(float(branch.bound[0]))) + 1e-6
    compiled = compiled_proofs() if is_loaded() and not is_large else None
    if compiled is None:
        jobs, branch = as_lists(jobs), as_lists(branch)
    proved = (compiled or prove)(jobs, branch, best, liked, slack, _LOOKS // share)
    taken = np.array(branch.award, np.int64)
    if taken[-1] == 1:
        award = np.sort(order[taken[:-1][taken[:-1] >= 0]])
    return award, proved


def _is_large(worth: Worth) -> bool:
    """Return whether sums are beyond 64 bits: Python's integers are compared, in plain Python."""
    return sum(worth.weights) >= _LARGEST_SUM


def settled(
    packing: Packing, worth: Worth, award: IntArray, dealing: AmountFlow | None = None
) -> tuple[IntArray, FloatArray | None] | None:
    """Return the best award by weights and then by preference, proved, and its dealt amounts, if any.

    None where branch and bound does not prove it soon; no clock takes part.

    Args:
        packing: bids, of which all could win, and capacities.
        worth: of the bids.
        award: one that fits, ascending: what is returned unless something beats it.
        dealing: deals what the packing leaves out; an award to which it cannot is cut off.
    """
    everything = np.arange(len(packing))
    if not 0 < len(packing) <= _MOST_BIDS:
        return None
    program = packing.program(everything, packing.capacity)
    if dealing is not None:
        program = strengthened(program, packing.job, dealing.excluding)
    for _ in range(_MOST_CUTS):
        if dealing is not None:
            rows = Rows.of(program)
            amount, most = rows.value.astype(np.int64), np.floor(rows.upper).astype(np.int64)
            packing = packing_from(packing.job, rows.column, rows.row, amount, most)
        stated = packing.program(everything, packing.capacity)
        price, _ = _prices(packing, stated.maximising(worth.value))
        found, proved = best_among(packing, worth, award, everything, price, share=100)
        if not (proved or _is_large(worth)):
            load_within(None)
            found, proved = best_among(packing, worth, award, everything, price)
        if not proved or dealing is None:
            return (found, None) if proved else None
        amounts = dealing.amounts(np.isin(everything, found).astype(np.float64))
        if amounts is not None:
            return found, amounts
        cut = dealing.cuts[-1]
        program = program.with_row(cut.values, -np.inf, cut.upper)
    return None


def _joys(packing: Packing, worth: Worth, award: IntArray) -> tuple[FloatArray, float]:
    """Return how much each bid is liked beyond what it pays, and what rows cost less what the award counts.

    The prices are of the relaxation that maximises preference among awards that count as much as
    this one; that row has a price too, which bids are paid for what they count.
    """
    liked = worth.preference
    if not liked.any():
        return liked, 0.0
    value = worth.value / SCALE
    least = float(value[award].sum())
    program = packing.program(np.arange(len(packing)), packing.capacity)
    price, others = _prices(packing, program.maximising(liked).with_row(value, least))
    paid = max(-float(others.sum()), 0.0)
    joy = liked + paid * value - packing.cost(price)
    return joy, float((packing.capacity * price).sum()) - paid * least


def _prices(packing: Packing, program: IntegerProgram) -> tuple[FloatArray, FloatArray]:
    """Return the relaxation's prices of a packing's rows, and of the program's rows behind them."""
    # HiGHS gives up where numbers are far apart. Without prices the bound is weaker, and as valid.
    solved = RelaxedSolver(program, is_small=True).solve(NO_LIMIT_S)
    jobs, rows = len(packing.first), len(packing.capacity)
    if solved is None:
        return np.zeros(rows), np.zeros(0)
    return np.maximum(solved.duals[jobs : jobs + rows], 0.0), solved.duals[jobs + rows :]


def _order(packing: Packing, worth: Worth, bids: IntArray, cost: FloatArray) -> IntArray:
    """Return the bids, by what they cost at the prices, in the order of the branches."""
    job = packing.job[bids]
    least = np.full(int(job.max()) + 1, np.inf)
    np.minimum.at(least, job, cost)
    return bids[np.lexsort((-worth.preference[bids], -worth.value[bids], job, -least[job]))]


def _jobs(
    packing: Packing, worth: Worth, order: IntArray, weight: IntArray, gain: FloatArray, joy: FloatArray
) -> ProofBids:
    """Return the bids in an order, job by job."""
    begins = np.flatnonzero(np.diff(packing.job[order], prepend=-1))
    entries = packing.entries(order)
    length = packing.indptr[order + 1] - packing.indptr[order]
    return ProofBids(
        begins=np.append(begins, len(order)),
        indptr=sums_before(length),
        row=packing.row[entries],
        amount=packing.amount[entries],
        weight=weight[order],
        liked=worth.preference[order],
        gain=gain[order],
        joy=joy[order],
    )


def _first(packing: Packing, jobs: ProofBids, bound: float, joy: float) -> Branch:
    """Return the branch in which no job is settled; ``bound``, ``joy``: what all rows cost."""
    count = len(jobs.begins)
    begun = np.zeros(count)
    begun[0] = 1.0
    return Branch(
        left=packing.capacity.copy(),
        next=np.zeros(count, np.int64),
        taken=np.full(count, -1),
        award=np.full(count, -1),
        weight=np.zeros(count, np.int64),
        liked=np.zeros(count),
        bound=bound * begun,
        joy=joy * begun,
    )
