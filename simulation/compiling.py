"""Loops compiled by numba where it is installed; the same lines in plain Python where it is not.

numba keeps what it compiled beside the source; its key does not hold the files that a loop calls into, so
their text is made part of it here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from inspect import getmembers, isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

#: Set to ``0``, loops run in plain Python also where numba is installed.
SWITCH = "AUCSCHED_NUMBA"

_log = logging.getLogger(__name__)

Loop = Callable[..., Any]


def compile_loops(
    modules: Sequence[ModuleType],
    make_entries: Callable[[Callable[..., Any], int], tuple[Loop, ...]],
    *,
    allocates: bool = True,
) -> tuple[Loop, ...] | None:
    """Return compiled entries, None without a numba that works.

    The first call in a process loads them; the first on a machine compiles them when they are called,
    which takes seconds.

    Args:
        modules: whose functions the entries call, from the lowest up.
        make_entries: returns the entries from numba's decorator and a number that their text makes: they
            must close over it.
        allocates: whether the loops make arrays; where none does, none has to be counted, which costs as much
            as all else where tuples of arrays are read at every event.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        import numba  # noqa: PLC0415 - half a second, and an extra
        from numba.extending import register_jitable  # noqa: PLC0415
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - a numba that does not fit numpy or the machine
        _warn_uncompiled(error)
        return None
    try:
        # Else LLVM leaves some calls, which hand over every array of every tuple in memory. Which it leaves
        # differs between a loop just compiled and the same from the cache: EASY's took three times as long.
        inlined = register_jitable(forceinline=True)
        for module in modules:
            for _, function in getmembers(module, isfunction):
                if function.__module__ == module.__name__:
                    inlined(function)
        return make_entries(
            numba.njit(cache=True, nogil=True, _nrt=allocates), _version(modules, allocates=allocates)
        )
    except Exception as error:  # noqa: BLE001 - no cache can be written, a broken one, no compiler
        _warn_uncompiled(error)
        return None


def _version(modules: Sequence[ModuleType], *, allocates: bool) -> int:
    """Return a number of all that numba's key lacks: the modules' text, this file's, and how it compiles."""
    files = [Path(__file__), *(Path(str(module.__file__)) for module in modules)]
    text = b"".join(file.read_bytes() for file in files) + bytes([allocates])
    return int.from_bytes(sha256(text).digest()[:6], "big") | 1


def _warn_uncompiled(error: Exception) -> None:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    _log.warning("aucsched: numba cannot be used, simulations run in plain Python: %s", reason)
