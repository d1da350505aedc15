"""Bids that spare generic resources: a job bids on the nodes that have the least beyond what it asks for.

A job that fills the cores of a node whose GPUs are free strands them, and one that takes one GPU of three
where another node has just one keeps off those who need three. The auctions' objectives do not see that
(Soner, 5.7 and 6.5), so the nodes that a job bids on are narrowed instead: to those where no more gres are
free than it asks for, else at most one more, and so on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...bidgen.candidates import GuardedViews
from ...bidgen.columns import IntArray
from ...bidgen.demand import Demand, Variant


class Sparing:
    """Narrows demands for one pass; jobs that share their variants share the narrowed ones.

    Args:
        views: the free resources, beside reservations.
        window: the jobs that bid; nothing is narrowed unless some of them asks for a gres.
    """

    def __init__(self, views: GuardedViews, window: list[Demand]) -> None:
        self._views = views
        self._free: IntArray = sum(views.free.gres.values(), np.zeros_like(views.free.cores))
        is_needed = any(variant.gres for demand in window for variant in demand.variants)
        self._most = int(self._free.max(initial=0)) if is_needed else 0
        self._known: dict[tuple[int, int], tuple[Variant, ...]] = {}

    def narrowed(self, demand: Demand) -> Demand:
        """Return the demand on the nodes with the fewest gres to spare that hold it."""
        if demand.contiguous or is_tied(demand):
            return demand
        for most in range(self._most):
            narrow = replace(demand, variants=self._variants(demand, most))
            if self._views.of(demand).could_hold(narrow):
                return narrow
        return demand

    def _variants(self, demand: Demand, most: int) -> tuple[Variant, ...]:
        key = (id(demand.variants), most)
        if key not in self._known:
            self._known[key] = tuple(
                replace(variant, eligible=variant.eligible & (self._free - _asked(variant) <= most))
                for variant in demand.variants
            )
        return self._known[key]


def _asked(variant: Variant) -> int:
    """Return the gres that a job asks for on each node, at most."""
    return sum(span.maximum for _, _, span in variant.gres)


def is_tied(demand: Demand) -> bool:
    """Return whether more than the number of nodes decides: narrowed, a job might miss the place it has."""
    is_total = any(variant.gres_total for variant in demand.variants)
    return is_total or demand.max_switches is not None or len(demand.required) > 0 or demand.exclusive


def narrowed_to(demand: Demand, nodes: IntArray) -> Demand:
    """Return the demand on some nodes only."""
    variants = []
    for variant in demand.variants:
        eligible = np.zeros_like(variant.eligible)
        eligible[nodes] = variant.eligible[nodes]
        variants.append(replace(variant, eligible=eligible))
    return replace(demand, variants=tuple(variants))
