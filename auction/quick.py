"""One attempt of thousands: bids and a greedy search (models/search/quick.py), for simulations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..bidgen.columns import FloatArray, IntArray
from ..bidgen.demand import Demand
from ..bidgen.generate import generate_bids
from ..bidgen.table import BidTable
from ..models.search.packing import packing_of
from ..models.search.quick import solve_quick
from ..models.solve.exact import integer_weights
from .attempt import Cluster, bid_options, preferences
from .ledger import greedy
from .options import StepOptions
from .programs import bid_weights

#: Among bids equally preferred the one with the narrower span, as a share of all nodes, is taken: worth less
#: than one node more or less is worth in (6.5) below 10 000 nodes.
_NARROW = 1e-4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QuickResult:
    """The bids that were auctioned and the winners among them, ascending; nothing is proved."""

    table: BidTable
    chosen: IntArray
    proved: bool = False


def quick_attempt(window: tuple[Demand, ...], cluster: Cluster, options: StepOptions) -> QuickResult:
    """Auction a window's bids by ``options.work_limit`` greedy rounds."""
    columns, guards = cluster.columns, cluster.guards
    bids = generate_bids(window, columns, cluster.topology, bid_options(options), guards)
    table = bids.table
    liked, _ = preferences(table, cluster, options)
    integers, _ = integer_weights(bid_weights(table, options.objective))
    first = np.searchsorted(table.job, np.flatnonzero(bids.first_fit))
    start = np.array(greedy(table, columns, first.tolist(), guards), np.int64)
    packing = packing_of(table, columns, guards)
    liked = liked - _NARROW * _spans(table) / len(columns.names)
    rounds = options.work_limit or 0
    chosen = solve_quick(packing, integers, liked, start, rounds, options.seed)
    return QuickResult(table=table, chosen=chosen)


def _spans(table: BidTable) -> FloatArray:
    if not len(table):
        return np.zeros(0)
    spans: FloatArray = (table.node[table.indptr[1:] - 1] - table.node[table.indptr[:-1]] + 1).astype(
        np.float64
    )
    return spans
