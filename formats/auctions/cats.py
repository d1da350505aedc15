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
            raise InputError("a bid stands before the counts of goods and bids", path=path)
        number, bid = _bid(words, names, path)
        if numbers.setdefault(number, line) != line:
            raise InputError(f"bid {number} stands on line {numbers[number]} already", path=path)
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
    """Return the names of all goods and dummies; each text is kept once, however many bids hold it."""
    goods = counts.get("goods", 0) + counts.get("dummy", 0)
    if goods > _MOST_GOODS:
        raise InputError(f"{goods} goods are more than {_MOST_GOODS}", path=path)
    return {name: name for name in map(str, range(goods))}


def _bid(words: list[str], names: dict[str, str], path: str) -> tuple[int, FileBid]:
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
        goods = [_good(word, names, path) for word in goods]
        items = dict.fromkeys(goods, 1)
    if len(items) < len(goods):
        twice = next(good for place, good in enumerate(goods) if good in goods[:place])
        raise InputError(f"the good {twice} stands twice", path=path)
    return number, (None, price, items)


def _good(word: str, names: dict[str, str], path: str) -> str:
    name = str(_count(word, path))
    if name not in names:
        raise InputError(f"{name} is not one of the {len(names)} goods", path=path)
    return names[name]


def _count(word: str, path: str) -> int:
    if len(word) > _LONGEST_COUNT or not (word.isascii() and word.isdigit()):
        raise InputError(f"{word[:60]!r} is not a count", path=path)
    return int(word)
