"""AUCSCHED2: auction with linear topology and generic resource ranges (Soner, chapter 5)."""

from __future__ import annotations

from ..bidgen.table import BidTable
from ..cluster.resources.columns import Columns
from ..cluster.resources.job_reservations import Guard
from .auction_model import FloatArray, LinearAuction
from .preference import CORRECTED, Constants


class Aucsched2(LinearAuction):
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
        self.constants = constants
        super().__init__(table, columns, weights, guards)
