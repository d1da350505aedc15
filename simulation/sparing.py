"""Bids that spare generic resources: who asks for none bids where few are free, if that holds it.

A job that fills the cores of a node whose GPUs are free strands them. The auctions' objectives do not see
that (Soner, 5.7 and 6.5), so the nodes that such a job bids on are narrowed instead: to those with none
free, else with at most one, and so on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..bidgen.columns import IntArray
from ..bidgen.demand import Demand, Variant
from .node_select import View


class Sparing:
    """Narrows demands for one pass; jobs that share their variants share the narrowed ones.

    Args:
        view: the free resources.
        window: the jobs that bid; nothing is narrowed unless some of them asks for a gres.
    """

    def __init__(self, view: View, window: list[Demand]) -> None:
        self._view = view
        self._free: IntArray = sum(view.free.gres.values(), np.zeros_like(view.free.cores))
        is_needed = any(not _asks_for_none(demand) for demand in window)
        self._most = int(self._free.max(initial=0)) if is_needed else 0
        self._known: dict[tuple[int, int], tuple[Variant, ...]] = {}

    def narrowed(self, demand: Demand) -> Demand:
        """Return the demand on the nodes with the fewest free gres that hold it."""
        if not _asks_for_none(demand) or len(demand.required) or demand.exclusive:
            return demand
        for most in range(self._most):
            narrow = replace(demand, variants=self._variants(demand, most))
            if self._view.could_hold(narrow):
                return narrow
        return demand

    def _variants(self, demand: Demand, most: int) -> tuple[Variant, ...]:
        key = (id(demand.variants), most)
        if key not in self._known:
            mask = self._free <= most
            self._known[key] = tuple(
                replace(variant, eligible=variant.eligible & mask) for variant in demand.variants
            )
        return self._known[key]


def _asks_for_none(demand: Demand) -> bool:
    return not any(variant.gres or variant.gres_total for variant in demand.variants)
