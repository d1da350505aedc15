"""AUCSCHED2: auction with linear topology and generic resource ranges (Soner, chapter 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .auction_model import LinearAuction
from .model import PAPER


class Aucsched2(LinearAuction):
    """Maximise Σ (P_j + α·F_i)·b_i: equations (5.1)-(5.7)."""

    name = "aucsched2"
    presets: Mapping[str, Mapping[str, Any]] = {"paper": {**PAPER, "preference_table": "printed"}}
    is_searched = True
    reads_preference_table = True
