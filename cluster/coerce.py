"""Conversion of users' values to this room's types: numpy's integers, lists, single names.

Frozen types settle their members once, while they are constructed. What cannot be made into the type is left
as it is, for the checks that follow to refuse by its path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import index
from typing import Any, SupportsIndex, TypeAlias

from .errors import InputError

#: One name, or several in any collection.
Names: TypeAlias = str | Iterable[str]


def settle(target: object, **members: Any) -> None:
    """Set members of a frozen object that is being constructed."""
    for name, value in members.items():
        object.__setattr__(target, name, value)


def whole(value: Any) -> Any:
    """Return an integer of whatever library as Python's; anything else as it is.

    Examples:
        >>> whole(3), whole(-1.5), whole(True)
        (3, -1.5, True)
    """
    if type(value) is int or isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return value
    try:
        return index(value)
    except TypeError:
        return value


def settle_integers(target: object, *names: str) -> None:
    """Let each of these members be Python's integer where it is one of another library."""
    for name in names:
        value = getattr(target, name)
        if value is not None and type(value) is not int:
            object.__setattr__(target, name, whole(value))


def as_int(values: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return counts by name with Python's integers.

    Raises:
        InputError: it is no mapping.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{values!r} is not a mapping of names to counts", path=path)
    if all(type(value) is int for value in values.values()):
        return values
    return {name: whole(value) for name, value in values.items()}


def several(value: Names | None, path: str) -> tuple[str, ...]:
    """Return names as a tuple; a text is one name.

    Raises:
        InputError: it is neither.

    Examples:
        >>> several("n1", "nodes"), several(["n1", "n2"], "nodes")
        (('n1',), ('n1', 'n2'))
    """
    if isinstance(value, tuple):
        return value
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise InputError(f"{value!r} is not a list of names", path=path)
    return tuple(value)


def settle_names(target: object, *names: str) -> None:
    """Let each of these members be a tuple of names."""
    for name in names:
        if type(getattr(target, name)) is not tuple:
            object.__setattr__(target, name, several(getattr(target, name), name))


def settle_sets(target: object, *names: str) -> None:
    """Let each of these members be a set of names."""
    for name in names:
        if type(getattr(target, name)) is not frozenset:
            object.__setattr__(target, name, frozenset(several(getattr(target, name), name)))


def settle_rows(target: object, *names: str) -> None:
    """Let each of these members be a tuple where another collection was given.

    Raises:
        InputError: it is none.
    """
    for name in names:
        value = getattr(target, name)
        if type(value) is tuple or value is None:
            continue
        if not isinstance(value, Collection) or isinstance(value, (str, Mapping)):
            raise InputError(f"{value!r} is not a list", path=name)
        object.__setattr__(target, name, tuple(value))
