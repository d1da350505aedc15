"""The few range checks that every type of this room makes on construction."""

import re
from collections.abc import Collection, Iterable, Mapping

from .errors import InputError
from .text import hidden_in

#: Numbers beyond this are no count of anything a cluster has, and would overflow 64-bit sums.
LARGEST_COUNT = 10**12
HOST_NAME = re.compile(r"[\w.-]+", re.ASCII)  # a node's, as hostlists can hold it


def at_least(value: int | None, minimum: int, path: str) -> None:
    """Raise InputError unless ``value`` is absent or an integer from ``minimum`` to LARGEST_COUNT."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{value!r} is not an integer", path=path)
    if value < minimum:
        raise InputError(f"{value} is below {minimum}", path=path)
    if value > LARGEST_COUNT:
        raise InputError(f"{value} is above {LARGEST_COUNT}", path=path)


def counts(values: Mapping[str, int], minimum: int, path: str) -> None:
    """Check every count of a mapping by name; the path of a bad one ends in its name."""
    for name, value in values.items():
        if not name:
            raise InputError("a name is empty", path=path)
        plain(name, path)
        at_least(value, minimum, f"{path}.{name}")


def named(text: str, path: str) -> None:
    """Raise InputError when a name is empty or holds what no name may (``plain``)."""
    if not text:
        raise InputError("'' is empty", path=path)
    plain(text, path)


def plain(text: str | None, path: str) -> None:
    """Raise InputError when a name that is given holds a control character, or another that is not seen.

    Names stand in scripts, tables and on terminals: a line break or an escape sequence would say
    there what the name does not.
    """
    if text is None:
        return
    if not isinstance(text, str):
        raise InputError(f"{text!r} is not a text", path=path)
    if found := hidden_in(text):
        raise InputError(f"{cut(text)} holds the control character U+{ord(found):04X}", path=path)


def all_plain(texts: Iterable[str], path: str) -> None:
    """Check each name of several (``plain``)."""
    for text in texts:
        plain(text, path)


def cut(text: str) -> str:
    """Return a text as an error shows it, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004 - an error is one line


def known(name: str, names: Collection[str], what: str, path: str) -> None:
    """Raise InputError unless ``name`` is one of ``names``; ``what`` says what it should have been."""
    if name not in names:
        raise InputError(f"{name!r} is not a {what} of this snapshot", path=path)


def unique(values: Iterable[str], what: str, member: str, above: str = "") -> dict[str, int]:
    """Return the place of each of some names in a list; raise InputError where one stands twice."""
    seen: dict[str, int] = {}
    for index, value in enumerate(values):
        first = seen.setdefault(value, index)
        if first != index:
            path = f"{above}{what}[{index}].{member}"
            raise InputError(f"{value!r} stands at {what}[{first}] already", path=path)
    return seen
