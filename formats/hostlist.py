"""Hostlists as Slurm writes them: ``n[01-16,20],gpu-3``; checked and counted before they are expanded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError

from ..cluster.errors import InputError

#: More names than any hostlist may hold; equal to the most nodes a snapshot may have.
LIMIT = 100_000

_RANGES = r"\[\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*\]"
_ITEM = rf"[\w.-]*(?:{_RANGES}[\w.-]*)*"
_HOSTLIST = re.compile(rf"{_ITEM}(?:,{_ITEM})*", re.ASCII)
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_GROUP = re.compile(r"\[([^\]]*)\]")
_DIGITS = re.compile(r"\d+")
_COMMA = re.compile(r",(?![^\[]*\])")


def expand(text: str, path: str = "") -> tuple[str, ...]:
    """Return the names of a hostlist, items in the order written, numbers within an item ascending.

    Raises:
        InputError: it is empty, is not as Slurm writes hostlists (node groups, wildcards and set
            operators are not), counts backwards, repeats a name or holds more than LIMIT names.
    """
    if _PLAIN.fullmatch(text):
        return (text,)
    if not text or not _HOSTLIST.fullmatch(text):
        raise InputError(f"{_short(text)} is not a hostlist", path=path)
    items = _COMMA.split(text)
    if not all(items):
        raise InputError(f"{_short(text)} has an empty name", path=path)
    count = sum(_count(item, path) for item in items)
    if count > LIMIT:
        raise InputError(f"{_short(text)} holds {count} names, above the limit of {LIMIT}", path=path)
    try:
        names = tuple(name for item in items for name in _expand_item(item))
    except (NodeSetParseError, AssertionError) as error:  # it asserts that numbers span less than 10⁹
        raise InputError(f"{_short(text)} is not a hostlist: {error}", path=path) from error
    # Within an item ClusterShell drops what ranges repeat, so the count tells.
    if len(set(names)) < count:
        raise InputError(f"{_short(text)} names a node twice", path=path)
    return names


@lru_cache(maxsize=4096)
def _expand_item(item: str) -> tuple[str, ...]:
    if "[" not in item:
        return (item,)
    return tuple(NodeSet(item, resolver=RESOLVER_NOGROUP))


def _count(item: str, path: str) -> int:
    total = 1
    for group in _GROUP.findall(item):
        total *= sum(_length(part, item, path) for part in group.split(","))
    return total


def _length(part: str, item: str, path: str) -> int:
    first, dash, last = part.partition("-")
    if not dash:
        return 1
    if int(last) < int(first):
        raise InputError(f"{_short(item)} counts backwards in {part!r}", path=path)
    return int(last) - int(first) + 1


def fold(names: Sequence[str]) -> list[str]:
    """Return hostlists that expand to ``names`` in the same order, as few as runs of numbers allow."""
    groups = (list(group) for _, group in groupby(names, key=lambda name: _DIGITS.sub("#", name)))
    return [item for group in groups for item in _fold_alike(group)]


def _fold_alike(names: list[str]) -> list[str]:
    """Fold names that differ in numbers only; they stay as they are where that would change their order."""
    # Of names that no hostlist can hold (the Python API's), none is folded; a pair is the least that folds.
    if len(names) < 2 or not all(map(_PLAIN.fullmatch, names)):  # noqa: PLR2004
        return names
    folded = str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    return [folded] if expand(folded) == tuple(names) else names


def join(names: Iterable[str]) -> str:
    """Return one hostlist that expands to ``names``."""
    return ",".join(fold(list(names)))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004 - an error is one line
