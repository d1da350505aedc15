"""Hostlists as Slurm writes them: ``n[01-16,20],gpu-3``; checked and counted before they are expanded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError

from ..cluster.errors import InputError

#: More names than any hostlist may hold; equal to the most nodes a snapshot may have.
LIMIT = 100_000

_RANGES = r"\[\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*\]"
_ITEM = rf"[\w.-]*(?:{_RANGES}[\w.-]*)*"
_HOSTLIST = re.compile(rf"{_ITEM}(?:,{_ITEM})*", re.ASCII)
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_GROUP = re.compile(r"\[([^\]]*)\]")
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
    except NodeSetParseError as error:
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
    if len(names) < 2:  # noqa: PLR2004 - a pair is the least that folds
        return list(names)
    folded = str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
    if expand(folded) == tuple(names):
        return [folded]
    return list(names)


def join(names: Iterable[str]) -> str:
    """Return one hostlist that expands to ``names``."""
    return ",".join(fold(list(names)))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004 - an error is one line
