"""The few range checks that every type of this room makes on construction."""

import re
from collections.abc import Collection, Iterable

from .errors import InputError
from .text import hidden_in, listed, shown

#: Numbers beyond this are no count of anything a cluster has, and would overflow 64-bit sums.
LARGEST_COUNT = 10**12
HOST_NAME = re.compile(r"[\w.-]+", re.ASCII)  # a node's, as hostlists can hold it


def at_least(value: int, minimum: int, path: str) -> None:
    """Raise InputError unless ``value`` is an integer from ``minimum`` to LARGEST_COUNT."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{shown(value)} is not an integer", path=path)
    if value < minimum:
        raise InputError(f"{shown(value)} is below {minimum}", path=path)
    if value > LARGEST_COUNT:
        raise InputError(f"{shown(value)} is above {LARGEST_COUNT}", path=path)


def named(text: str, path: str) -> None:
    """Raise InputError when a name is empty or holds what no name may (``plain``)."""
    plain(text, path)
    if not text:
        raise InputError("'' is empty", path=path)


def plain(text: str, path: str) -> None:
    """Raise InputError unless a name is a text of characters that are seen.

    Names stand in scripts, tables and on terminals: a line break or an escape sequence would say
    there what the name does not.
    """
    of_type(text, (str,), path)
    if found := hidden_in(text):
        raise InputError(f"{shown(text)} holds the control character U+{ord(found):04X}", path=path)


def all_plain(texts: Iterable[str], path: str) -> None:
    """Check each name of several (``plain``)."""
    for text in texts:
        if type(text) is not str or not text.isprintable():
            plain(text, path)


def check_partitions(wanted: Iterable[str], nodes: Iterable[str]) -> None:
    """Raise InputError where no job is in a partition of the nodes: they are another cluster's.

    A job of no partition may be anywhere, one of several has commas; nodes that name none take all.
    """
    named = {name for text in wanted for name in text.split(",")}
    if (there := set(nodes)) and named and named.isdisjoint({"", *there}):
        words = f"the jobs name {listed(sorted(named))}, the nodes {listed(sorted(there))}"
        raise InputError(f"no job is in a partition of the nodes: {words}")


def of_type(value: object, kinds: tuple[type, ...], path: str, source: str = "") -> None:
    """Raise InputError unless a value is of one of some types; ``source`` says what makes one."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        what = "a text" if kinds == (str,) else f"of type {names}"
        raise InputError(f"{shown(value)} is not {what}{source and f': {source}'}", path=path)


def all_of_type(values: Collection[object], kinds: tuple[type, ...], path: str) -> None:
    """Check the type of each value of several; the path of a wrong one ends in its place."""
    if not set(map(type, values)) <= {*kinds}:
        for place, value in enumerate(values):
            of_type(value, kinds, f"{path}[{place}]")


def known(name: str, names: Collection[str], what: str, path: str) -> None:
    """Raise InputError unless ``name`` is one of ``names``; ``what`` is the word for such a one."""
    if name not in names:
        raise InputError(f"{name!r} is not a {what} of this cluster", path=path)


def unique(values: Iterable[str], what: str, member: str) -> dict[str, int]:
    """Return the place of each name in a list; raise InputError where one is listed twice."""
    seen: dict[str, int] = {}
    for index, value in enumerate(values):
        first = seen.setdefault(value, index)
        if first != index:
            message = f"{value!r} is listed at {what}[{first}] already"
            raise InputError(message, path=f"{what}[{index}].{member}")
    return seen
