"""The answer of a winner determination as JSON (``aucsched-winners/1``), its numbers exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

import msgspec

from .auction_wire import WINNERS_FORMAT


def winners_document(
    *,
    status: str,
    value: int | Fraction,
    bound: int | Fraction,
    gap: float,
    chosen: tuple[int, ...],
    prices: Mapping[str, float],
    seconds: float,
) -> dict[str, Any]:
    """Return the document; a gap that no number says (above an award worth nothing) is null."""
    return {
        "format": WINNERS_FORMAT,
        "status": status,
        "value": exact_number(value),
        "bound": exact_number(bound),
        "gap": gap if isfinite(gap) else None,
        "chosen": list(chosen),
        "prices": dict(prices),
        "seconds": round(seconds, 6),
    }


def exact_number(value: int | Fraction) -> int | msgspec.Raw:
    """Return a number as JSON holds it: an integer, or all digits of a fraction that is a decimal.

    Sums of decimals are decimals: their denominators have no other factors than 2 and 5.
    """
    if value.denominator == 1:
        return value.numerator
    return msgspec.Raw(decimal_text(value).encode())


def decimal_text(value: int | Fraction) -> str:
    """Return a decimal's digits, all of them."""
    digits = 0
    while (value * 10**digits).denominator > 1:
        digits += 1
    whole = str(int(value * 10**digits)).rjust(digits + 1, "0")
    return f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
