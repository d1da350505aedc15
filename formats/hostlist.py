"""Hostlists as Slurm writes them: ``n[01-16,20],gpu-3``; checked and counted before expansion."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import groupby
from math import prod

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError

from ..cluster.checks import HOST_NAME
from ..cluster.errors import InputError
from ..cluster.text import shown

#: More names than any hostlist may hold; equal to the most nodes a snapshot may have.
LIMIT = 100_000

_RANGES = r"\[\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*\]"
_ITEM = rf"[\w.-]*(?:{_RANGES}[\w.-]*)*"
_HOSTLIST = re.compile(rf"{_ITEM}(?:,{_ITEM})*", re.ASCII)
#: An item: what stands between commas that are in no brackets; these are balanced and never nested.
_PIECES = re.compile(r"(?:[^,\[]++|\[[^\]]*+\])++")
_GROUP = re.compile(r"\[([^\]]*)\]")
_DIGITS = re.compile(r"\d+")
#: Slurm itself reads no more groups of ranges in one name.
_MOST_GROUPS = 10
#: The most names that one file's hostlists may hold together, repeats counted: a short file can
#: name every node of a large cluster thousands of times.
MOST_NAMES = 3_000_000
#: Of names in ranges: a host has no longer one.
_LONGEST_NAME = 255
_LARGEST_SHOWN = 10**18
_left: ContextVar[list[int] | None] = ContextVar("names that a file's hostlists may still hold", default=None)


def expand(text: str, path: str = "") -> tuple[str, ...]:
    """Return the names of a hostlist, items in the order written, numbers within an item ascending.

    Raises:
        InputError: it is empty, is not as Slurm writes hostlists (node groups, wildcards and set
            operators are not), counts backwards, repeats a name or holds more than LIMIT names.
    """
    if HOST_NAME.fullmatch(text):
        charge(1, path)
        return (text,)
    if not text or not _HOSTLIST.fullmatch(text):
        raise InputError(f"{shown(text)} is not a hostlist", path=path)
    items = _PIECES.findall(text)
    if ",," in f",{text},":
        raise InputError(f"{shown(text)} has an empty name", path=path)
    count = sum(_count(item, path) for item in items)
    if count > LIMIT:
        raise InputError(f"{shown(text)} holds {count} names, above the limit of {LIMIT}", path=path)
    charge(count, path)
    try:
        names = tuple(name for item in items for name in _expand_item(item))
    except (NodeSetParseError, AssertionError) as error:  # it asserts numbers span less than 10⁹
        raise InputError(f"{shown(text)} is not a hostlist: {error}", path=path) from error
    # Within an item ClusterShell drops what ranges repeat, so the count tells.
    if len(set(names)) < count:
        raise InputError(f"{shown(text)} names a node twice", path=path)
    return names


def names_in(text: str, path: str = "") -> tuple[str, ...]:
    """Return the names of a hostlist that may be empty."""
    return expand(text, path) if text else ()


@contextmanager
def one_file() -> Iterator[None]:
    """Let the hostlists expanded inside hold MOST_NAMES names together, as those of one file."""
    token = _left.set([MOST_NAMES])
    try:
        yield
    finally:
        _left.reset(token)


def charge(count: int, path: str = "") -> None:
    """Count names, or entries made for names, against what one file may hold.

    Raises:
        InputError: they are too many.
    """
    left = _left.get()
    if left is None:
        return
    left[0] -= count
    if left[0] < 0:
        message = (
            f"the file's hostlists hold more than {MOST_NAMES} names together, each with its gres counted"
        )
        raise InputError(message, path=path)


@lru_cache(maxsize=256)
def _expand_item(item: str) -> tuple[str, ...]:
    if "[" not in item:
        return (item,)
    return tuple(NodeSet(item, resolver=RESOLVER_NOGROUP))


def _count(item: str, path: str) -> int:
    if "[" not in item:
        return 1
    groups = _GROUP.findall(item)
    if len(groups) > _MOST_GROUPS:
        message = f"{shown(item)} has {len(groups)} groups of ranges, more than {_MOST_GROUPS}"
        raise InputError(message, path=path)
    if len(_GROUP.sub("", item)) > _LONGEST_NAME:
        raise InputError(f"{shown(item)} is not a hostlist: its names are too long", path=path)
    lengths = (sum(_length(part, item, path) for part in group.split(",")) for group in groups)
    return min(prod(lengths), _LARGEST_SHOWN)


def _length(part: str, item: str, path: str) -> int:
    first, dash, last = part.partition("-")
    if not dash:
        return 1
    if int(last) < int(first):
        raise InputError(f"{shown(item)} counts backwards in {part!r}", path=path)
    return int(last) - int(first) + 1


def fold(names: Sequence[str]) -> list[str]:
    """Return hostlists that expand to ``names`` in the same order, as few as number runs allow."""
    groups = (tuple(group) for _, group in groupby(names, key=lambda name: _DIGITS.sub("#", name)))
    return [item for group in groups for item in _fold_alike(group)]


@lru_cache(maxsize=256)
def _fold_alike(names: tuple[str, ...]) -> tuple[str, ...]:
    """Fold names that differ in numbers only; unchanged where that would change their order.

    Remembered: many partitions hold the same nodes.
    """
    # Names are not folded if no hostlist can hold one (Python API); a pair is the least that folds.
    if len(names) < 2 or not all(map(HOST_NAME.fullmatch, names)):  # noqa: PLR2004
        return names
    # Nor any with more digits than Python reads as a number.
    if max(map(len, names)) > _LONGEST_NAME:
        return names
    folded = str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    return (folded,) if expand(folded) == names else names


def join(names: Iterable[str]) -> str:
    """Return one hostlist that expands to ``names``."""
    return ",".join(fold(list(names)))
