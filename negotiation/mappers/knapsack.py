"""The integer program of an offer of equal nodes: each job wins at most one of its counts, and all fit.

    max Σ v_b x_b    Σ_{b of j} x_b ≤ 1    Σ k_b x_b ≤ free    Σ_{b long} k_b x_b ≤ extra

Equal nodes make a bid on a node set a bid on a count: which nodes is the second question (placing.py). Small
programs are solved by dynamic programming over both capacities, exactly in integers; large ones by HiGHS from
a greedy start, with a limit of branch-and-bound nodes, so that the answer never depends on a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...models.solve.solver import IntegerProgram, SolverOptions, solve

IntArray = npt.NDArray[np.int64]
#: Table cells × bids up to which the program is solved by dynamic programming.
_CELLS = 4_000_000
#: Branch-and-bound nodes and absolute gap (of values scaled to 10⁴) of the solver on larger ones.
_NODES, _SCALE, _GAP = 50, 1e4, 0.5
#: Seconds that stand for no limit: only nodes count.
_NO_CLOCK = 1e9
#: Sums up to this are exact in 64-bit integers.
_EXACT = 2**62


class Bid(NamedTuple):
    """A count that a job bids on; ``is_long``: it would still run when the guarded job could start."""

    nodes: int
    value: int
    is_long: bool = False


def best_bids(jobs: Sequence[Sequence[Bid]], free: int, extra: int | None) -> list[int | None]:
    """Return the winning bid of each job, by its place, None where it has none.

    Args:
        jobs: the bids of each job; values are positive integers.
        free: nodes.
        extra: nodes that long bids may take together, None when there is no guard.
    """
    fitting = [[bid for bid in bids if fits(bid, free, extra)] for bids in jobs]
    if not any(fitting):
        return [None] * len(jobs)
    cells = (free + 1) * (1 if extra is None else min(extra, free) + 1)
    if cells * sum(map(len, fitting)) <= _CELLS:
        chosen = by_table(fitting, free, extra)
    else:
        chosen = by_solver(fitting, free, extra)
    return [
        None if place is None else bids.index(mine[place])
        for bids, mine, place in zip(map(list, jobs), fitting, chosen, strict=True)
    ]


def fits(bid: Bid, free: int, extra: int | None) -> bool:
    """Say whether a bid alone fits both capacities."""
    return bid.nodes <= free and (extra is None or not bid.is_long or bid.nodes <= extra)


def by_table(jobs: list[list[Bid]], free: int, extra: int | None) -> list[int | None]:
    """Dynamic programming: the best value for every use of both capacities, job after job."""
    width = 1 if extra is None else min(extra, free) + 1
    largest = sum(max((bid.value for bid in bids), default=0) for bids in jobs)
    kind = np.int64 if largest < _EXACT else object
    best = np.full((free + 1, width), -1, dtype=kind)
    best[0, 0] = 0
    choices = []
    for bids in jobs:
        after = best.copy()
        choice = np.full(best.shape, -1, np.int16)
        for place, bid in enumerate(bids):
            long = bid.nodes if bid.is_long and extra is not None else 0
            before = best[: free + 1 - bid.nodes, : width - long]
            value = np.where(before >= 0, before + bid.value, -1)
            better = value > after[bid.nodes :, long:]
            after[bid.nodes :, long:][better] = value[better]
            choice[bid.nodes :, long:][better] = place
        best = after
        choices.append(choice)
    at, long_at = (int(index) for index in np.unravel_index(int(best.argmax()), best.shape))
    chosen: list[int | None] = []
    for bids, choice in zip(reversed(jobs), reversed(choices), strict=True):
        place = int(choice[at, long_at])
        chosen.append(None if place < 0 else place)
        if place >= 0:
            at -= bids[place].nodes
            long_at -= bids[place].nodes if bids[place].is_long and extra is not None else 0
    return chosen[::-1]


def by_solver(jobs: list[list[Bid]], free: int, extra: int | None) -> list[int | None]:
    """HiGHS from a greedy start; the better of both."""
    start = _greedy(jobs, free, extra)
    program, place_of = _program(jobs, free, extra)
    values = np.zeros(program.columns)
    for job, place in enumerate(start):
        if place is not None:
            values[place_of[job] + place] = 1.0
    options = SolverOptions(time_limit_s=_NO_CLOCK, absolute_gap=_GAP, extra={"mip_max_nodes": _NODES})
    report = solve(program, options, values)
    if report.values is None:
        return start
    found: list[int | None] = []
    for job, bids in enumerate(jobs):
        mine = report.values[place_of[job] : place_of[job] + len(bids)]
        found.append(int(mine.argmax()) if len(mine) and mine.max() > 0.5 else None)  # noqa: PLR2004 - 0/1
    return max(start, found, key=lambda one: worth(jobs, one))


def worth(jobs: list[list[Bid]], chosen: Sequence[int | None]) -> int:
    """Return what an award is worth."""
    return sum(bids[place].value for bids, place in zip(jobs, chosen, strict=True) if place is not None)


def _greedy(jobs: list[list[Bid]], free: int, extra: int | None) -> list[int | None]:
    """Take bids by value for each node as they fit, the most valuable first among equals."""
    order = sorted(
        (
            (-bid.value / bid.nodes, -bid.value, job, place)
            for job, bids in enumerate(jobs)
            for place, bid in enumerate(bids)
        )
    )
    chosen: list[int | None] = [None] * len(jobs)
    for _, _, job, place in order:
        bid = jobs[job][place]
        if chosen[job] is None and fits(bid, free, extra):
            chosen[job] = place
            free -= bid.nodes
            if extra is not None and bid.is_long:
                extra -= bid.nodes
    return chosen


def _program(jobs: list[list[Bid]], free: int, extra: int | None) -> tuple[IntegerProgram, list[int]]:
    bids = [bid for mine in jobs for bid in mine]
    job = np.repeat(np.arange(len(jobs)), [len(mine) for mine in jobs])
    place_of = np.concatenate([[0], np.cumsum([len(mine) for mine in jobs])]).astype(int).tolist()
    count = np.array([bid.nodes for bid in bids], np.float64)
    value = np.array([float(bid.value) for bid in bids])
    columns = len(bids)
    bidding = np.unique(job)
    lengths = np.bincount(job)[bidding]
    program = IntegerProgram(
        objective=value / value.max() * _SCALE,
        lower=np.zeros(columns),
        upper=np.ones(columns),
        is_integer=np.ones(columns, np.bool_),
        row_lower=np.full(len(bidding), -np.inf),
        row_upper=np.ones(len(bidding)),
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        index=np.arange(columns),
        value=np.ones(columns),
    )
    program = program.with_row(count, -np.inf, float(free))
    long = count * np.array([bid.is_long for bid in bids])
    if extra is not None and long.any():
        program = program.with_row(long, -np.inf, float(extra))
    return program, place_of
