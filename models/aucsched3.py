"""AUCSCHED3: auction with hierarchical interconnect support (Soner, chapter 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..cluster.resources.capacity import FloatArray
from .auction_model import AuctionModel, cost_k
from .model import PAPER, PLUGIN, ModelInput


class Aucsched3(AuctionModel):
    """Maximise Σ (P_j − β·K_ji)·b_i: equations (6.1)-(6.7)."""

    name = "aucsched3"
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": PAPER,
        "plugin": {
            **PLUGIN,
            "window": 250,
            "time_limit_s": 5.0,
            "max_bids": 25_000,
            "max_bids_per_job": 500,
            "objective": "priority_cores",
        },
    }
    is_searched = True
    uses_switches = True

    @classmethod
    def cost(cls, given: ModelInput) -> FloatArray:
        """K of each bid (6.5), and what it breaks of what is wholly free."""
        return cost_k(given.table, given.nodes, given.topology.max_level) + given.broken()

    @classmethod
    def preferences(cls, given: ModelInput) -> tuple[FloatArray, FloatArray]:
        """3 − K and −K of each bid: as every bid costs, −ΣK would prefer fewer jobs at an equal sum.

        Where what is wholly free counts, K is at most 4.
        """
        cost = cls.cost(given)
        return 3.0 + given.keeps_whole - cost, -cost

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j − β·K_ji with β = P_min_diff / 3 (6.1), (6.6), (6.7); P/3 when the window is one job."""
        result: FloatArray = priorities[self.table.job] - self._beta(priorities) * self.cost(self.given)
        return result

    @staticmethod
    def _beta(priorities: FloatArray) -> float:
        if len(priorities) == 1:
            return float(priorities[0]) / 3
        return float(np.diff(np.sort(priorities)).min(initial=np.inf)) / 3 if len(priorities) else 0.0
