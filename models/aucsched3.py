"""AUCSCHED3: auction with hierarchical interconnect support (Soner, chapter 6)."""

from __future__ import annotations

import numpy as np

from ..bidgen.table import BidTable
from ..cluster.resources.columns import Columns
from ..cluster.resources.job_reservations import Guard
from .auction_model import AuctionModel, FloatArray
from .preference import CORRECTED, Constants, cost_k


class Aucsched3(AuctionModel):
    """Maximise Σ (P_j − β·K_ji)·b_i: equations (6.1)-(6.7)."""

    name = "aucsched3"

    def __init__(
        self,
        table: BidTable,
        columns: Columns,
        weights: FloatArray,
        guards: tuple[Guard, ...] = (),
        *,
        constants: Constants = CORRECTED,  # noqa: ARG002 - F is AUCSCHED2's
        max_level: int = 0,
    ) -> None:
        self._max_level = max_level
        super().__init__(table, columns, weights, guards)

    def cost(self) -> FloatArray:
        """K of each bid (6.5)."""
        return cost_k(self.table, len(self.columns.names), self._max_level)

    def bid_preference(self) -> FloatArray:
        """3 − K of each bid: as every bid costs, −ΣK would prefer fewer jobs at an equal priority sum."""
        return 3.0 - self.cost()

    def shown_preference(self) -> FloatArray:
        """−K of each bid."""
        return -self.cost()

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j − β·K_ji with β = P_min_diff / 3 (6.1), (6.6), (6.7); P/3 when the window is one job."""
        result: FloatArray = priorities[self.table.job] - self._beta(priorities) * self.cost()
        return result

    @staticmethod
    def _beta(priorities: FloatArray) -> float:
        if len(priorities) == 1:
            return float(priorities[0]) / 3
        return float(np.diff(np.sort(priorities)).min(initial=np.inf)) / 3 if len(priorities) else 0.0
