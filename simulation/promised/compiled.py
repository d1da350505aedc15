"""The step compiled by numba where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..compiling import Loop, compile_loops
from . import awards, due, easy_copy, heaps, plan, stepping

#: So many jobs take plain Python longer than numba takes to compile the step.
MANY = 2_000
_MODULES = (heaps, plan, easy_copy, due, awards, stepping)


@cache
def compiled_step() -> Loop | None:
    """Return ``step`` compiled, None without a numba that works."""
    loops = compile_loops(_MODULES, _entries)
    return None if loops is None else loops[0]


def step_for(jobs: int) -> tuple[Loop, bool]:
    """Return the step for so many jobs, and whether it is compiled and wants arrays for columns."""
    is_loaded = compiled_step.cache_info().currsize > 0
    compiled = compiled_step() if is_loaded or jobs >= MANY else None
    return (stepping.step, False) if compiled is None else (compiled, True)


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, ...]:
    """Return the compiled entry; numba's cache key holds what it closes over, the version."""
    step = stepping.step

    @compile_
    def entry(state, rules, now, ended, arrived, started):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return step(state, rules, now, ended, arrived, started) if version else 0

    return (entry,)
