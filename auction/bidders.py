"""Who bids: jobs that could start now, and of those that ask alike no more than could start at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..bidgen.candidates import GuardedViews, most_at_once
from ..bidgen.generate import Others
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from .state import StepState

#: Jobs that could start from which on only some of those that ask for the same bid.
MANY = 100


def bidders(state: StepState, window: tuple[Demand, ...], reserve: int) -> tuple[tuple[Demand, ...], Others]:
    """Return the jobs of a window that bid, with their places among them, and what the others are to them."""
    able = could_start(window, state.columns)
    return split(window, not_too_many_alike(window, able, state.columns, reserve, MANY), able)


def split(window: tuple[Demand, ...], bidding: set[str], able: set[str]) -> tuple[tuple[Demand, ...], Others]:
    """Return the jobs that bid with their places among them, and those that cannot start seen from each."""
    demands: list[Demand] = []
    after: list[int] = []
    nodes_before: list[int] = []
    nodes = unable = 0
    for demand in window:
        if demand.job.id in bidding:
            place = len(demands)
            demands.append(demand if demand.index == place else replace(demand, index=place))
            after.append(unable)
            nodes_before.append(nodes)
            nodes = 0
        elif demand.job.id not in able:
            unable += 1
            nodes += 0 if demand.node_counts is None else demand.node_counts.minimum
    others = Others(after=unable - np.array(after, np.int64), nodes_before=np.array(nodes_before, np.int64))
    return tuple(demands), others


def could_start(window: tuple[Demand, ...], columns: Columns) -> set[str]:
    """Return the jobs for which there are enough nodes, cores, licences and shares now, by counting."""
    views = GuardedViews(columns, columns.free)
    pools = columns.pools
    return {
        demand.job.id for demand in window if views.of(demand).could_hold(demand) and pools.hold(demand.job)
    }


def not_too_many_alike(
    window: tuple[Demand, ...],
    able: set[str],
    columns: Columns,
    reserve: int,
    all_bid_up_to: int,
    *,
    however_long: bool = False,
) -> set[str]:
    """Return the jobs that bid: of those that ask for the same, as many as could start at once.

    One of them can take the place of another, so those of higher priority stand for the others: the award
    is the same, and a window of thousands costs what its few kinds of jobs cost. As many more of a kind stay
    as there are reservations: the first blocked jobs are among them. Where few could start, all bid, so that
    prices and reasons know of each. ``however_long``: nothing is reserved, their time limits are no matter.
    """
    if len(able) <= all_bid_up_to:
        return able
    views = GuardedViews(columns, columns.free)
    seen: dict[int, int] = {}
    most: dict[int, int] = {}
    bidding: set[str] = set()
    for demand in window:
        if demand.job.id not in able:
            continue
        kind = demand.form if however_long else demand.kind
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] > reserve + 1:
            if kind not in most:
                most[kind] = reserve + max(most_at_once(demand, views.of(demand)), 1)
            if seen[kind] > most[kind]:
                continue
        bidding.add(demand.job.id)
    return bidding
