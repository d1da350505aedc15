"""Members and JSON types of ``aucsched-auction/1`` and ``aucsched-winners/1``."""

from __future__ import annotations

from typing import Any

import msgspec

AUCTION_FORMAT = "aucsched-auction/1"
WINNERS_FORMAT = "aucsched-winners/1"


class AuctionBidWire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One bid: for all of its items together."""

    value: Any  # a number, read exactly
    items: dict[str, Any]  # numbers, read exactly
    bidder: str | None = None
    group: str | None = None
    second: Any = None  # a number, read exactly


class AuctionWire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Bids, and how much there is of each item.

    ``groups``: ``xor``, at most one bid of a bidder wins; ``or``, any; a bid's ``group`` goes before both.
    """

    format: str
    capacities: dict[str, Any]
    bids: list[AuctionBidWire]
    groups: str = "xor"
