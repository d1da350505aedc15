"""The loop compiled by numba where it is installed; the same lines in plain Python where it is not.

numba keeps what it compiled beside the source; its key does not hold the files that the loop calls into, so
their text is made part of it here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

from ...runtime.ischeduler import deciding, distributing, execution, harvesting, ordering
from . import loop

#: Set to ``0``, the loop runs in plain Python also where numba is installed.
SWITCH = "AUCSCHED_NUMBA"
#: So many jobs take plain Python longer than numba takes to compile the loop.
MANY = 300_000
_MODULES = (execution, ordering, harvesting, distributing, deciding, loop)

_log = logging.getLogger(__name__)

Loop = Callable[..., None]


@cache
def compiled_loops() -> tuple[Loop, Loop] | None:
    """Return ``play`` and ``play_backfill`` compiled, None without a numba that works.

    The first call in a process loads them; the first on a machine compiles them, which takes seconds.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        import numba  # noqa: PLC0415 - half a second, and an extra
        from numba.extending import register_jitable  # noqa: PLC0415
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - a numba that does not fit numpy or the machine
        _say_without(error)
        return None
    try:
        for module in _MODULES:
            for _, function in getmembers(module, isfunction):
                if function.__module__ == module.__name__:
                    register_jitable(function)
        return _entries(numba.njit(cache=True, nogil=True), _version())
    except Exception as error:  # noqa: BLE001 - no cache can be written, a broken one, no compiler
        _say_without(error)
        return None


def loops(jobs: int) -> tuple[Loop, Loop]:
    """Return both loops: compiled where that is possible, and saves more time than it takes."""
    is_loaded = compiled_loops.cache_info().currsize > 0
    compiled = compiled_loops() if is_loaded or jobs >= MANY else None
    return compiled or (loop.play, loop.play_backfill)


def _entries(compile_: Callable[..., Any], version: int) -> tuple[Loop, Loop]:
    """Return compiled entries; numba's cache key holds what they close over, the version."""
    play, play_backfill = loop.play, loop.play_backfill

    @compile_
    def entry(context, processors, active, starts, ends, harvests, log):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            play(context, processors, active, starts, ends, harvests, log)

    @compile_
    def backfill(jobs, processors, ends, starts, queue, run_end, run_size):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if version:
            play_backfill(jobs, processors, ends, starts, queue, run_end, run_size)

    return entry, backfill


def _version() -> int:
    text = b"".join(Path(str(module.__file__)).read_bytes() for module in _MODULES)
    return int.from_bytes(sha256(text).digest()[:6], "big") | 1


def _say_without(error: Exception) -> None:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    _log.warning("aucsched: numba cannot be used, simulations run in plain Python: %s", reason)
