"""Slurm's texts about generic resources: a node's, a running job's and a request's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ...cluster.errors import InputError

_DETAIL = re.compile(r"\([^()]*\)")
_COUNT = re.compile(r"(\d{1,12})([KMGTP]?)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_REQUEST = re.compile(r"(?:gres[:/])(?P<what>.+)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
#: No type's name is longer; a longer one is a count beyond all bounds.
_LONGEST = 60
#: Parts of one text; the commas of a socket list (``S:0,2``) count too.
_MOST_PARTS = 1000
_NOTHING = {"", "N/A", "null", "none"}


def parse_gres(text: str, path: str) -> dict[str, int]:
    """Return the counts in ``gpu:a100:4(S:0-1),shard:8`` by name and type, ``{"gpu:a100": 4, "shard": 8}``.

    Raises:
        InputError: a part is no gres as Slurm writes them.
    """
    counts: Counter[str] = Counter()
    _check_number(text, path)
    for item in _DETAIL.sub("", text).split(","):
        if item.strip() not in _NOTHING:
            name, count = _item(item.strip(), path)
            counts[name] += count
    return dict(counts)


def parse_request(text: str, path: str) -> tuple[dict[str, int], list[str]]:
    """Return a request's gres counts (``gres:gpu:2``, ``gres/gpu:a100=1``) and the parts that are no gres."""
    counts: dict[str, int] = {}
    others: list[str] = []
    _check_number(text, path)
    for item in filter(None, text.split(",")):
        if match := _REQUEST.fullmatch(item):
            name, count = _item(match["what"].replace("=", ":"), path)
            counts[name] = counts.get(name, 0) + count
        else:
            others.append(item)
    return counts, others


def _check_number(text: str, path: str) -> None:
    """Refuse more parts than a node has kinds of resources: they are compared with each other."""
    if (parts := text.count(",") + 1) > _MOST_PARTS:
        raise InputError(f"{text[:60]!r} has {parts} parts, more than {_MOST_PARTS}", path=path)


def _item(item: str, path: str) -> tuple[str, int]:
    """Return the name (with its type) and the count, 1 where none is written."""
    parts = [part for part in item.split(":") if part != "no_consume"]
    count = 1
    if len(parts) > 1 and (match := _COUNT.fullmatch(parts[-1])):
        count = int(match[1]) * _UNITS[match[2].upper()]
        parts.pop()
    too_long = len(parts[-1]) > _LONGEST
    if len(parts) not in (1, 2) or not _NAME.fullmatch(parts[0]) or not parts[-1] or too_long:
        raise InputError(f"{item[:60]!r} is not a gres as Slurm writes it", path=path)
    return ":".join(parts), count


def settle(use: Mapping[str, int], totals: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return ``use`` under the names of a node's ``totals``, and what of it the node does not have.

    Slurm may name a type on one side only: a use without a type is charged to the node's types of that
    kind in their order, a use with a type to the node's untyped count.
    """
    left = dict(totals)
    lost: dict[str, int] = {}
    for name, count in use.items():
        rest = count
        for candidate in _candidates(name, totals):
            taken = min(rest, left[candidate])
            left[candidate] -= taken
            rest -= taken
        if rest:
            lost[name] = rest
    return {name: totals[name] - free for name, free in left.items() if free < totals[name]}, lost


def _candidates(name: str, totals: Mapping[str, int]) -> list[str]:
    kind, colon, _ = name.partition(":")
    if name in totals:
        return [name]
    if colon:
        return [kind] if kind in totals else []
    return [other for other in totals if other.partition(":")[0] == kind]
