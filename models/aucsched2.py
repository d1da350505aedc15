"""AUCSCHED2: auction with linear topology and generic resource ranges (Soner, chapter 5)."""

from __future__ import annotations

from ..bidgen.columns import Columns
from ..bidgen.guard import Guard
from ..bidgen.table import BidTable
from .auction_model import AuctionModel, FloatArray
from .preference import CORRECTED, Constants, preference_f


class Aucsched2(AuctionModel):
    """Maximise Σ (P_j + α·F_i)·b_i: equations (5.1)-(5.7)."""

    name = "aucsched2"

    def __init__(
        self,
        table: BidTable,
        columns: Columns,
        weights: FloatArray,
        guards: tuple[Guard, ...] = (),
        *,
        constants: Constants = CORRECTED,
        max_level: int = 0,  # noqa: ARG002 - the topology is AUCSCHED3's
    ) -> None:
        self._constants = constants
        super().__init__(table, columns, weights, guards)

    def bid_preference(self) -> FloatArray:
        """F of each bid (5.7): positive, so that a further job never costs preference."""
        return preference_f(self.table, len(self.columns.names), self._constants)

    def shown_preference(self) -> FloatArray:
        """F of each bid."""
        return self.bid_preference()

    def paper_weights(self, priorities: FloatArray) -> FloatArray:
        """P_j + α·F_i with α = P_min / (|B| + 1): equations (5.1), (5.6)."""
        alpha = float(priorities.min()) / (len(self.table) + 1) if len(priorities) else 0.0
        result: FloatArray = priorities[self.table.job] + alpha * self.bid_preference()
        return result
