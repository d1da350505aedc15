"""The loop compiled by numba where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ...negotiation.malleable import deciding, execution, harvesting
from ..compiling import Loop, compile_loops
from . import malleable_loop

#: With this many jobs plain Python takes longer than numba takes to compile the loop.
MANY = 300_000
_MODULES = (execution, harvesting, deciding, malleable_loop)


@cache
def compiled_loops() -> tuple[Loop, ...] | None:
    """Return ``play`` compiled, None without a numba that works."""
    return compile_loops(_MODULES, _entries)


def loop_for(jobs: int) -> Loop:
    """Return the loop, compiled where that is possible, and saves more time than it takes."""
    is_loaded = compiled_loops.cache_info().currsize > 0
    compiled = compiled_loops() if is_loaded or jobs >= MANY else None
    return compiled[0] if compiled else malleable_loop.play


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, ...]:
    """Return compiled entries; numba's cache key holds what they close over, the version."""
    play = malleable_loop.play

    @compile_
    def entry(context, processors, active, starts, ends, harvests, log):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            play(context, processors, active, starts, ends, harvests, log)

    return (entry,)
