"""Files of bids, CATS's text or JSON (``aucsched-auction/1``), plain or gzip; answers written.

CATS's files (Leyton-Brown, Pearson, Shoham 2000) are read as its generator writes them. After
comments (%) come ``goods``, ``bids`` and ``dummy`` with their counts, then one line for each bid:
its number, its price, its goods, ``#``. Each good exists once. Goods numbered from ``goods`` on are
dummies: bids that share one exclude each other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from ..cluster.checks import all_plain, named
from ..cluster.errors import InputError
from ..cluster.text import shown
from .jsontext import decode
from .reading import numbered_lines, read_document, text_of

AUCTION_FORMAT = "aucsched-auction/1"

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


_BLANKS = b" \t\r\n"
#: Digits before and after a number's point, at most.
_MOST_DIGITS = 300


class AuctionBidWire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One bid: for all of its items together."""

    value: Any  # a number, read exactly
    items: dict[str, Any]  # numbers, read exactly
    bidder: str | None = None
    group: str | None = None
    second: Any = None  # a number, read exactly


class AuctionWire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Bids, and how much there is of each item.

    ``groups``: ``xor``: at most one bid of a bidder wins; ``or``: any; a bid's ``group`` overrides.
    """

    format: str
    capacities: dict[str, Any]
    bids: list[AuctionBidWire]
    groups: str = "xor"


def load_auction(path: str | Path, *, rounded: bool | None = None) -> AuctionFile:
    """Read and check a file of bids; ``-`` reads standard input.

    ``rounded``: round values to integers, halves to even; None: in CATS's files.

    Raises:
        InputError: the file cannot be read or is none of bids; names file, path and value.
    """
    return read_document(path, lambda content: _parsed(content, rounded))


def _parsed(content: bytes, rounded: bool | None) -> AuctionFile:
    is_json = content.lstrip(_BLANKS)[:1] in {b"{", b"["}
    read = parse_auction(content) if is_json else parse_cats(content)
    if not (not is_json if rounded is None else rounded):
        return read
    bids = tuple((bidder, round(value), items) for bidder, value, items in read.bids)
    return replace(read, bids=bids, rounded=sum(value.denominator > 1 for _, value, _ in read.bids))


def parse_auction(content: bytes) -> AuctionFile:
    """Return the auction in a JSON file's text; bids are numbered from 0."""
    document = decode(content, AuctionWire, AUCTION_FORMAT)
    if document.groups not in {"xor", "or"}:
        raise InputError(f"{document.groups!r} is not one of xor, or", path="groups")
    all_plain(document.capacities, "capacities")
    for name in document.capacities:
        named(name, "capacities")
    bids = tuple(
        _bid(bid, document.capacities, f"bids[{number}]") for number, bid in enumerate(document.bids)
    )
    return AuctionFile(
        bids=bids,
        numbers=tuple(range(len(bids))),
        capacities={name: _number(one, f"capacities.{name}") for name, one in document.capacities.items()},
        groups=tuple(_group(bid, document.groups) for bid in document.bids),
        second=_second(document.bids),
    )


def _bid(bid: AuctionBidWire, items: Mapping[str, Any], path: str) -> FileBid:
    for name, what in ((bid.bidder, "bidder"), (bid.group, "group")):
        if name is not None:
            named(name, f"{path}.{what}")
    for name in bid.items:
        if name not in items:
            raise InputError(f"{name!r} is not among the capacities", path=f"{path}.items")
    amounts = {name: _number(one, f"{path}.items.{name}") for name, one in bid.items.items()}
    return bid.bidder, _number(bid.value, f"{path}.value"), amounts


def _group(bid: AuctionBidWire, groups: str) -> str | None:
    """Return a bid's group; those named and those of bidders are different ones."""
    if bid.group is not None:
        return f"group {bid.group}"
    return None if groups == "or" or bid.bidder is None else f"bidder {bid.bidder}"


def _second(bids: list[AuctionBidWire]) -> tuple[int | Fraction, ...]:
    if all(bid.second is None for bid in bids):
        return ()
    return tuple(
        0 if bid.second is None else _number(bid.second, f"bids[{number}].second")
        for number, bid in enumerate(bids)
    )


def _number(value: Any, path: str) -> int | Fraction:
    """Return a number that is not negative, exactly as it is written."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise InputError(f"{shown(value)} is not a number", path=path)
    if value < 0:
        raise InputError(f"{shown(value)} is below 0", path=path)
    if isinstance(value, Decimal) and value:
        if value.adjusted() > _MOST_DIGITS or value.as_tuple().exponent < -_MOST_DIGITS:  # type: ignore[operator]
            raise InputError(f"{shown(value)} has more than {_MOST_DIGITS} digits", path=path)
        value = Fraction(value)
    found = value if isinstance(value, int) else Fraction(value)
    if found >= 10**_MOST_DIGITS:
        raise InputError(f"it has more than {_MOST_DIGITS} digits", path=path)
    return found.numerator if found.denominator == 1 else found


def exact_number(value: int | Fraction) -> int | msgspec.Raw:
    """Return a number as JSON holds it: an integer, or all digits of a fraction that is a decimal.

    Sums of decimals are decimals: their denominators have no other factors than 2 and 5.
    """
    if value.denominator == 1:
        return value.numerator
    return msgspec.Raw(decimal_text(value).encode())


def decimal_text(value: int | Fraction) -> str:
    """Return a decimal's digits, all of them."""
    # A sum of values has a few digits more than each before the point, and no more behind it.
    with localcontext(prec=3 * _MOST_DIGITS):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


#: Goods with dummies, at most: each is a capacity, whether a bid names it or not.
_MOST_GOODS = 1_000_000
_LONGEST_COUNT = 9
_PRICE = re.compile(r"[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][+-]?[0-9]{1,2})?", re.ASCII)
_COUNTS = ("goods", "bids", "dummy")


def parse_cats(content: bytes) -> AuctionFile:
    """Return the auction in a CATS file's text.

    Raises:
        InputError: it is none; names the line and the value.
    """
    counts: dict[str, int] = {}
    bids: list[FileBid] = []
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    for line, text in numbered_lines(text_of(content)):
        if text.startswith("%"):
            continue
        words, path = text.split(), f"line {line}"
        if words[0] in _COUNTS:
            if len(words) != 2 or words[0] in counts:  # noqa: PLR2004 - the word and its count
                raise InputError(f"{text.strip()!r} is not one count of {words[0]}", path=path)
            counts[words[0]] = _count(words[1], path)
            if words[0] != "bids":
                names = _names(counts, path)
            continue
        if len(counts) < 2 or "goods" not in counts or "bids" not in counts:  # noqa: PLR2004 - dummy may lack
            raise InputError("a bid comes before the counts of goods and bids", path=path)
        number, bid = _cats_bid(words, names, path)
        if numbers.setdefault(number, line) != line:
            raise InputError(f"bid {number} is on line {numbers[number]} already", path=path)
        bids.append(bid)
    missing = [name for name in ("goods", "bids") if name not in counts]
    if missing:
        raise InputError(f"no CATS file: the count of {missing[0]} is missing")
    if len(bids) != counts["bids"]:
        raise InputError(f"{len(bids)} bids instead of {counts['bids']}", path="bids")
    return AuctionFile(
        bids=tuple(bids),
        numbers=tuple(numbers),
        capacities=dict.fromkeys(names, 1),
        groups=(None,) * len(bids),
    )


def _names(counts: dict[str, int], path: str) -> dict[str, str]:
    """Return the names of all goods and dummies; each text is kept once for all bids."""
    goods = counts.get("goods", 0) + counts.get("dummy", 0)
    if goods > _MOST_GOODS:
        raise InputError(f"{goods} goods are more than {_MOST_GOODS}", path=path)
    return {name: name for name in map(str, range(goods))}


def _cats_bid(words: list[str], names: dict[str, str], path: str) -> tuple[int, FileBid]:
    if words[-1] != "#" or len(words) < 3:  # noqa: PLR2004 - number, price, #
        raise InputError("a bid is its number, its price, its goods and #", path=path)
    number = _count(words[0], path)
    if not _PRICE.fullmatch(words[1]):
        raise InputError(f"{words[1][:60]!r} is not a price", path=path)
    price = Fraction(Decimal(words[1]))
    if price.numerator < 0:
        raise InputError(f"the price {words[1]} is below 0", path=path)
    goods = words[2:-1]
    try:
        items: dict[str, int | Fraction] = {names[good]: 1 for good in goods}
    except KeyError:
        # A good with zeros before it, or none.
        goods = [str(_count(word, path)) for word in goods]
        if unknown := next((good for good in goods if good not in names), None):
            raise InputError(f"{unknown} is not one of the {len(names)} goods", path=path) from None
        items = dict.fromkeys(goods, 1)
    if len(items) < len(goods):
        twice = next(good for place, good in enumerate(goods) if good in goods[:place])
        raise InputError(f"the good {twice} is listed twice", path=path)
    return number, (None, price, items)


def _count(word: str, path: str) -> int:
    if len(word) > _LONGEST_COUNT or not (word.isascii() and word.isdigit()):
        raise InputError(f"{word[:60]!r} is not a count", path=path)
    return int(word)
