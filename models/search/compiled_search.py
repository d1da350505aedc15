"""The search's loops (moves, dives, swaps, proofs) compiled by numba, where the extra ``fast`` is installed.

numba keeps what it compiled on disk (``__pycache__`` beside the source or the user's cache; NUMBA_CACHE_DIR
moves it), so that a machine compiles once: at ``make demo`` and ``make test``, or by ``python -m
aucsched.models.search.compiled_search``. Nothing that numba can do wrong ends a run: the same lines in plain
Python take its place, and under a work limit give the same award.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import getmembers, isfunction
from pathlib import Path
from threading import Lock, Timer
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from . import moves, proofs, repair_kernel, swaps
from .moves import (
    COMPLETED,
    COUNTS,
    CYCLE_LENGTH,
    DEPTH,
    KEPT,
    KINDS,
    THRESHOLDS,
    Floats,
    MoveProblem,
    MoveState,
    make_moves,
)
from .proofs import Branch, ProofBids, prove
from .repair_kernel import Dive, DiveBids, make_dives
from .search_columns import dive_at, swaps_at
from .swaps import Swaps, make_swaps

#: Set to ``0``, the loop runs in plain Python also where numba is installed.
SWITCH = "AUCSCHED_NUMBA"
#: Seconds after which a user is told that something is being compiled: reading the cache takes less.
_TOLD_AFTER_S = 2.0
#: A time limit from which on the loops are loaded within it: reading numba and its files takes half of this.
_LOADED_WITHIN_S = 2.0

_log = logging.getLogger(__name__)
_lock = Lock()

Loop = Callable[[MoveProblem, MoveState, Floats, Floats, int], None]
Dives = Callable[[DiveBids, Dive, Floats, int], None]
Swap = Callable[[MoveProblem, Swaps, Floats, int], None]
Proofs = Callable[[ProofBids, Branch, int, float, float, int], bool]
_Columns = TypeVar("_Columns", MoveProblem, MoveState, DiveBids, Dive, Swaps, ProofBids, Branch)


class _Loaded(NamedTuple):
    """The compiled loops; None where the plain ones have to do."""

    loop: Loop | None
    repair_kernel: Dives | None
    swaps: Swap | None
    proofs: Proofs | None


_PLAIN = _Loaded(None, None, None, None)
_loaded: list[_Loaded] = []


def compiled_loop() -> Loop | None:
    """Return the compiled loop of moves, None without a numba that works; the first call may take seconds.

    Call it before a clock starts: a later call costs nothing.
    """
    return _loops().loop


def compiled_dives() -> Dives | None:
    """Return the compiled loop of dives; as ``compiled_loop``, with which it is loaded."""
    return _loops().repair_kernel


def compiled_swaps() -> Swap | None:
    """Return the compiled loop of swaps; as ``compiled_loop``, with which it is loaded."""
    return _loops().swaps


def compiled_proofs() -> Proofs | None:
    """Return the compiled branch and bound; as ``compiled_loop``, with which it is loaded."""
    return _loops().proofs


def load_within(seconds: float | None) -> None:
    """Load the compiled loops where that ends well within a time limit; without one (None) always.

    Loading counts towards the limit. Else the search runs in plain Python until somebody has loaded them.
    Compiling takes longer than any step.
    """
    if seconds is None or (seconds >= _LOADED_WITHIN_S and _is_kept()):
        _loops()


def _is_kept() -> bool:
    """Return whether numba's files of every loop are newer than its source."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    users = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "numba"
    for module, name in (
        (moves, "make_moves"),
        (repair_kernel, "make_dives"),
        (swaps, "make_swaps"),
        (proofs, "prove"),
    ):
        source = Path(str(module.__file__))
        folders = [Path(own)] if own else [source.parent / "__pycache__", users]
        wanted = f"{source.stem}.{name}-*.nbi"
        kept = [one.stat().st_mtime for folder in folders for one in folder.rglob(wanted)]
        if max(kept, default=0.0) < source.stat().st_mtime:
            return False
    return True


def is_loaded() -> bool:
    """Return whether the compiled loops are at hand without waiting."""
    return bool(_loaded) and _loaded[0].loop is not None


def as_lists(columns: _Columns) -> _Columns:
    """Return columns as lists, which plain Python indexes faster than arrays."""
    parts = {
        name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in columns._asdict().items()
    }
    return columns._replace(**parts)


def _loops() -> _Loaded:
    with _lock:
        if not _loaded:
            _loaded.append(_load())
        return _loaded[0]


def _load() -> _Loaded:
    if os.environ.get(SWITCH) == "0":
        return _PLAIN
    try:
        import numba  # noqa: PLC0415 - half a second, and an extra
        from numba.extending import register_jitable  # noqa: PLC0415
    except ImportError:
        return _PLAIN
    except Exception as error:  # noqa: BLE001 - a numba that does not fit numpy or the machine
        return _without(error)
    try:
        # Calls hand over each array in memory: a fifth more moves without them.
        for part in [*_parts(moves), *_parts(repair_kernel), *_parts(swaps), *_parts(proofs)]:
            register_jitable(forceinline=True)(part)
        loop: Loop = numba.njit(cache=True)(make_moves)
        diving: Dives = numba.njit(cache=True)(make_dives)
        swapping: Swap = numba.njit(cache=True)(make_swaps)
        proving: Proofs = numba.njit(cache=True)(prove)
        with _said():
            loop(*_smallest())
            diving(*_smallest_dive())
            swapping(*_smallest_swap())
            proving(*_smallest_proof())
    except Exception as error:  # noqa: BLE001 - no cache can be written, a broken one, no compiler
        return _without(error)
    return _Loaded(loop, diving, swapping, proving)


def _parts(module: ModuleType) -> list[Callable[..., Any]]:
    """Return what a module's loop calls: it stands in the loop's file, all that numba's cache looks at."""
    own = [one for _, one in getmembers(module, isfunction) if one.__module__ == module.__name__]
    return [one for one in own if one not in (make_moves, make_dives, make_swaps, prove)]


def _without(error: Exception) -> _Loaded:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    _log.warning("aucsched: numba cannot be used, the search runs in plain Python: %s", reason)
    return _PLAIN


@contextmanager
def _said() -> Iterator[None]:
    """Tell what is waited for where it takes long."""
    told = "aucsched: compiling the search, once on this machine"
    timer = Timer(_TOLD_AFTER_S, _log.warning, [told])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _smallest() -> tuple[MoveProblem, MoveState, Any, Any, int]:
    """Return arguments of the types that the search passes: one bid on one row."""

    def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    def real(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.ones(count)

    shape = MoveProblem(
        indptr=column(0, 1),
        row=column(0),
        amount=column(1),
        near_at=column(0, 0),
        near=column(),
        by_row=column(0, 1),
        bid=column(0),
        wanted=column(1),
        room=column(0, 1),
        weight=column(1),
        liked=column(0),
        pool=column(0),
        own=1,
        threshold=real(THRESHOLDS),
        warmth=real(KINDS),
        anew=np.ones(KINDS, np.int64),
        drawn=np.ones(KINDS, np.int64),
        noise=0.5,
    )
    counter = np.zeros(COUNTS, np.int64)
    counter[CYCLE_LENGTH] = 1
    state = MoveState(
        left=column(1),
        place=column(0),
        held=column(0),
        holder=column(0),
        short=column(0),
        won=column(0),
        best=column(0),
        kept=np.zeros(KEPT, np.int64),
        seen=column(0),
        candidate=column(0),
        key=real(1),
        out=column(0),
        into=column(0),
        marked=column(0),
        branch=np.zeros((DEPTH + 1) * COMPLETED, np.int64),
        ends=np.zeros(DEPTH + 1, np.int64),
        begins=np.zeros(DEPTH + 1, np.int64),
        worth=np.zeros(DEPTH + 1, np.int64),
        pick=np.zeros(DEPTH + 1, np.int64),
        found=np.zeros(DEPTH + 1, np.int64),
        counter=counter,
    )
    return shape, state, real(1), real(2), 1


def _smallest_dive() -> tuple[DiveBids, Dive, Any, int]:
    """Return the same of dives."""
    one, real = np.array([1]), np.ones(1)
    bids = DiveBids(
        **dict.fromkeys(("end", "amount", "weight", "capacity"), one),
        **dict.fromkeys(("first", "job", "place", "liked"), one - 1),
        ends=np.array([0, 1]),
        value=real,
    )
    dive = dive_at(np.zeros(0, np.int64), bids, np.zeros(repair_kernel.COUNTS, np.int64))
    return bids, dive, real, 1


def _smallest_swap() -> tuple[MoveProblem, Swaps, Any, int]:
    """Return the same of swaps."""
    shape = _smallest()[0]
    state = swaps_at(np.zeros(0, np.int64), shape, np.zeros(swaps.COUNTS, np.int64))
    return shape, state, np.ones(1), 1


def _smallest_proof() -> tuple[ProofBids, Branch, int, float, float, int]:
    """Return the same of branch and bound."""
    one, ends, real = np.array([1]), np.array([0, 1]), np.ones(2)
    jobs = ProofBids(
        begins=ends,
        indptr=ends,
        row=one - 1,
        amount=one,
        weight=one,
        **dict.fromkeys(("liked", "gain", "joy"), real[:1]),
    )
    columns = {name: np.zeros(2, np.int64) for name in ("next", "taken", "award", "weight")}
    branch = Branch(left=one.copy(), **columns, liked=real.copy(), bound=real.copy(), joy=real.copy())
    return jobs, branch, 1, 1.0, 0.5, 1


def main() -> int:
    """Compile, so that no later run has to; without numba there is nothing to do."""
    compiled_loop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
