"""An auction as a file holds it: bidders, values, amounts of items, and capacities."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

#: A bid: its bidder (None: no particular one), its value, and the amount of each item.
FileBid = tuple[str | None, int | Fraction, Mapping[str, int | Fraction]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuctionFile:
    """Bids and capacities of a file.

    Attributes:
        bids: in the order of the file, exact; ``rounded`` of their values were no integers.
        numbers: what the file calls each bid, shape (bids,).
        capacities: how much there is of each item.
        groups: of each bid, of which at most one wins; None for a bid in no group.
        second: of each bid, the second objective; empty where there is none.
    """

    bids: tuple[FileBid, ...]
    numbers: tuple[int, ...]
    capacities: Mapping[str, int | Fraction]
    groups: tuple[str | None, ...]
    second: tuple[int | Fraction, ...] = ()
    rounded: int = 0
