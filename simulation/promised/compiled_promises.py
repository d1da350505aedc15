"""The loops compiled by numba where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ..compiling import Loop, compile_loops
from . import awards, due, easy_reference, heaps, promise_plan, promise_stepping, refusing

#: So many jobs take plain Python longer than numba takes to compile them.
MANY = 2_000
_MODULES = (heaps, promise_plan, refusing, easy_reference, due, awards, promise_stepping)


class Loops(NamedTuple):
    """What is called from outside: the step on counts, and what nodes ask of the plan."""

    step: Loop
    promise_due: Loop
    refuse_alone: Loop
    refuse_late: Loop


#: In plain Python.
PLAIN = Loops(promise_stepping.step, due.promise_due, refusing.refuse_alone, awards.refuse_late)


@cache
def compiled_loops() -> Loops | None:
    """Return them compiled, None without a numba that works."""
    loops = compile_loops(_MODULES, _entries)
    return None if loops is None else Loops(*loops)


def loops_for(jobs: int) -> tuple[Loops, bool]:
    """Return the loops for so many jobs, and whether they are compiled and want arrays for columns."""
    is_loaded = compiled_loops.cache_info().currsize > 0
    compiled = compiled_loops() if is_loaded or jobs >= MANY else None
    return (PLAIN, False) if compiled is None else (compiled, True)


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, ...]:
    """Return the compiled entries; numba's cache key holds what they close over, the version."""
    step, promise_due = PLAIN.step, PLAIN.promise_due
    refuse_alone, refuse_late = PLAIN.refuse_alone, PLAIN.refuse_late

    @compile_
    def stepped(state, rules, now, ended, arrived, started):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return step(state, rules, now, ended, arrived, started) if version else 0

    @compile_
    def promised(state, rules, now, longest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            promise_due(state, rules, now, longest)

    @compile_
    def alone(state, now, refused):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return refuse_alone(state, now, refused) if version else 0

    @compile_
    def late(state, now, sure, places, refused):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return refuse_late(state, now, sure, places, refused) if version else 0

    return (stepped, promised, alone, late)
