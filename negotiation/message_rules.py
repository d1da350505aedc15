"""What a message's members may be: rules at the members' types, and the walk that checks them.

A decoder knows types. Counts, times and names have bounds besides, which a member's annotation
states; what several members must be together, a struct's own ``check_together`` says.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import isfinite
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from ..cluster.checks import LARGEST_COUNT
from ..cluster.errors import InputError, errors_below

#: Raises InputError at a value that cannot be.
Rule: TypeAlias = Callable[[Any], None]


def check(value: msgspec.Struct) -> None:
    """Refuse counts, ranges, names and times that no party may say.

    Raises:
        InputError: names the path and the value.
    """
    members, together = _checked_members(type(value))
    for name, rules in members:
        member = getattr(value, name)
        if member is not None:
            try:
                for rule in rules:
                    rule(member)
            except InputError as error:
                raise error.under(name) from error
    if together is not None:
        together(value)


def _each(values: Iterable[msgspec.Struct]) -> None:
    for place, one in enumerate(values):
        with errors_below(f"[{place}]"):
            check(one)


@cache
def _checked_members(kind: type[msgspec.Struct]) -> tuple[tuple[tuple[str, list[Rule]], ...], Rule | None]:
    """Return the members of a struct that have rules or hold structs, and what these are."""
    hints = get_type_hints(kind, include_extras=True)
    found = ((name, list(_rules_in(hints[name]))) for name in kind.__struct_fields__)
    return tuple((name, rules) for name, rules in found if rules), getattr(kind, "check_together", None)


def _rules_in(hint: Any) -> Iterator[Rule]:
    """Yield what a type's own members are checked by, then what the annotation says."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        for one in inside:
            yield from _rules_in(one)
    elif origin is Annotated:
        yield from _rules_in(inside[0])
        yield from filter(callable, inside[1:])
    elif origin is tuple and isinstance(inside[0], type) and issubclass(inside[0], msgspec.Struct):
        yield _each
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct) and any(_checked_members(hint)):
        yield check


def within(least: int, value: int, most: int = LARGEST_COUNT) -> None:
    """Refuse a count that is below the least, or above what any cluster has."""
    if not least <= value <= most:
        raise InputError(f"{value} is not from {least} to {most}", path="")


def is_finite(value: float, least: float, words: str) -> None:
    """Refuse a number that is below the least or no number; ``words`` say what it is then."""
    if not (isfinite(value) and value >= least):
        raise InputError(f"{value:g} is {words}", path="")


def unique(names: Iterable[str]) -> None:
    """Refuse an empty name, and one that is listed twice."""
    seen: set[str] = set()
    for name in names:
        if not name:
            raise InputError("a name is empty", path="")
        if name in seen:
            raise InputError(f"{name!r} is listed twice", path="")
        seen.add(name)


def unique_jobs(entries: Iterable[Any]) -> None:
    """Refuse a job that is listed twice."""
    unique(entry.job for entry in entries)


def unique_within(sets: dict[str, Iterable[str]]) -> None:
    """Refuse a name that is listed twice in one of several sets."""
    for part, names in sets.items():
        with errors_below(part):
            unique(names)


def counts_by_name(counts: dict[str, int]) -> None:
    """Refuse a name without a count."""
    unique(counts)
    for name, count in counts.items():
        with errors_below(name):
            within(1, count)


#: Counts from 0 and from 1 on; names without a repeat; cores by node; times and amounts from 0 on.
Count: TypeAlias = Annotated[int, lambda value: within(0, value)]
Positive: TypeAlias = Annotated[int, lambda value: within(1, value)]
Name: TypeAlias = Annotated[str, lambda value: unique((value,))]
Names: TypeAlias = Annotated[tuple[str, ...], unique]
CoresByNode: TypeAlias = Annotated[dict[str, int], counts_by_name]
Time: TypeAlias = Annotated[float, lambda value: is_finite(value, 0, "not a time of at least 0")]
Amount: TypeAlias = Annotated[float, lambda value: is_finite(value, 0, "not at least 0")]
RunTime: TypeAlias = Annotated[float, lambda value: is_finite(value, 5e-324, "not a time above 0")]
