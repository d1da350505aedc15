"""CATS's files of bids (Leyton-Brown, Pearson, Shoham 2000), as its generator writes them.

After comments (%) come ``goods``, ``bids`` and ``dummy`` with their counts, then one line for each bid: its
number, its price, its goods, ``#``. Each good exists once. Goods numbered from ``goods`` on are dummies: bids
that share one exclude each other.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from ...cluster.bids import AuctionFile, FileBid
from ...cluster.errors import InputError
from ..reading import numbered_lines, text_of

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
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
    for line, text in numbered_lines(text_of(content)):
        if text.startswith("%"):
            continue
        words, path = text.split(), f"line {line}"
        if words[0] in _COUNTS:
            if len(words) != 2 or words[0] in counts:  # noqa: PLR2004 - the word and its count
                raise InputError(f"{text.strip()!r} is not one count of {words[0]}", path=path)
            counts[words[0]] = _count(words[1], path)
            continue
        if len(counts) < 2 or "goods" not in counts or "bids" not in counts:  # noqa: PLR2004 - dummy may lack
            raise InputError("a bid stands before the counts of goods and bids", path=path)
        number, bid = _bid(words, counts["goods"] + counts.get("dummy", 0), path)
        if numbers.setdefault(number, line) != line:
            raise InputError(f"bid {number} stands on line {numbers[number]} already", path=path)
        bids.append(bid)
    missing = [name for name in ("goods", "bids") if name not in counts]
    if missing:
        raise InputError(f"no CATS file: the count of {missing[0]} is missing")
    if len(bids) != counts["bids"]:
        raise InputError(f"{len(bids)} bids instead of {counts['bids']}", path="bids")
    goods = counts["goods"] + counts.get("dummy", 0)
    return AuctionFile(
        bids=tuple(bids),
        numbers=tuple(numbers),
        capacities={str(good): 1 for good in range(goods)},
        groups=(None,) * len(bids),
    )


def _bid(words: list[str], goods: int, path: str) -> tuple[int, FileBid]:
    if words[-1] != "#" or len(words) < 3:  # noqa: PLR2004 - number, price, #
        raise InputError("a bid is its number, its price, its goods and #", path=path)
    number = _count(words[0], path)
    if not _PRICE.fullmatch(words[1]):
        raise InputError(f"{words[1][:60]!r} is not a price", path=path)
    price = Fraction(Decimal(words[1]))
    if price < 0:
        raise InputError(f"the price {words[1]} is below 0", path=path)
    items: dict[str, int | Fraction] = {}
    for word in words[2:-1]:
        good = _count(word, path)
        if good >= goods:
            raise InputError(f"{good} is not one of the {goods} goods", path=path)
        if str(good) in items:
            raise InputError(f"the good {good} stands twice", path=path)
        items[str(good)] = 1
    return number, (None, price, items)


def _count(word: str, path: str) -> int:
    if not _COUNT.fullmatch(word):
        raise InputError(f"{word[:60]!r} is not a count", path=path)
    return int(word)
